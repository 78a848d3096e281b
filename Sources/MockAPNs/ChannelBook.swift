import Synchronization
import Wire

/// The channels that a look-alike has, by bundle id: what Apple's management of channels would keep. From any thread.
final class ChannelBook: Sendable {
  /// As many as Apple lets an app have in one environment.
  static let mostChannels = 10_000

  private struct Entry {
    var channel: String
    var storesMessages: Bool
  }

  private let apps = Mutex<[String: [Entry]]>([:])

  /// Makes a channel; `nil` where the app has as many as it may.
  func create(_ bundleID: String, storesMessages: Bool, id: UUID) -> String? {
    var bytes: [UInt8] = []
    bytes.append(uuid: id)
    var raw: [UInt8] = []
    _ = Hex.decode(Array(bytes.filter { $0 != 0x2d }).span, into: &raw)
    let channel: String = Base64.encode(raw.span)
    return apps.withLock { apps in
      guard apps[bundleID, default: []].count < Self.mostChannels else { return nil }
      apps[bundleID, default: []].append(Entry(channel: channel, storesMessages: storesMessages))
      return channel
    }
  }

  /// Whether the app has ever made a channel.
  func isUsed(by bundleID: String) -> Bool { apps.withLock { $0[bundleID] != nil } }

  func channels(of bundleID: String) -> [String] { apps.withLock { $0[bundleID, default: []].map(\.channel) } }

  /// Whether the channel keeps the latest message; `nil`: there is no such channel.
  func storesMessages(_ channel: String, of bundleID: String) -> Bool? {
    apps.withLock { $0[bundleID, default: []].first { $0.channel == channel }?.storesMessages }
  }

  /// - Returns: whether there was one.
  func delete(_ channel: String, of bundleID: String) -> Bool {
    apps.withLock { apps in
      guard let place = apps[bundleID, default: []].firstIndex(where: { $0.channel == channel }) else { return false }
      apps[bundleID]?.remove(at: place)
      return true
    }
  }
}
