package import APNs
import Wire

/// What decoding and routing must know of an app. Credentials and hosts are not among it.
package struct AppRules: Hashable, Sendable {
  /// Which of Apple's environments the app's device tokens belong to.
  package enum Environment: String, CaseIterable, Sendable { case production, sandbox }

  package var name: String
  package var bundleID: String
  package var environment: Environment
  /// Added to the record's time for requests that name no expiration; `nil`: none.
  package var defaultExpiration: Duration?
  /// Its own cap on notifications in flight; `nil`: that of all apps.
  package var maxInFlight: Int?
  /// How many lanes it may use, so that it does not open more connections than it may; `nil`: as many as all apps.
  package var maxLanes: Int?
  /// Push types that `PushType` does not know, and what is put behind the bundle id for the topic of each.
  package var pushTypes: [String: String]
  /// What the app's certificate is good for; `nil` for an app with a provider token.
  package var certificate: CertificateRules?

  package init(
    name: String, bundleID: String, environment: Environment, defaultExpiration: Duration? = nil,
    maxInFlight: Int? = nil, maxLanes: Int? = nil, pushTypes: [String: String] = [:],
    certificate: CertificateRules? = nil
  ) {
    self.name = name
    self.bundleID = bundleID
    self.environment = environment
    self.defaultExpiration = defaultExpiration
    self.maxInFlight = maxInFlight
    self.maxLanes = maxLanes
    self.pushTypes = pushTypes
    self.certificate = certificate
  }
}

/// What an app may send with a certificate.
package struct CertificateRules: Hashable, Sendable {
  /// The topics that are written in it; `nil`: it does not say.
  package var topics: [String]?

  package init(topics: [String]?) { self.topics = topics }
}

/// The configured apps, found by the bytes of their names without an allocation.
///
/// An app keeps its index for as long as the process runs: an update changes its rules in place, and a removed app
/// stays where it is, marked as removed, because notifications in flight still name it. The same name added again
/// gets its old index back.
///
/// The index is an open-addressed table, never more than half full, over the FNV-1a hash of the name. The names come
/// from the configuration, so nobody outside can make them collide.
package struct AppTable: Sendable {
  private struct Entry: Sendable {
    var rules: AppRules
    var name: [UInt8]
    /// The default topic of each push type, by its raw value.
    var topics: [[UInt8]]
    /// That of each push type that only the configuration knows; a few at most.
    var otherTopics: [(type: [UInt8], topic: [UInt8])]
    var hasCertificate: Bool
    /// The topics in its certificate; `nil`: any.
    var certificateTopics: [[UInt8]]?
    var isRemoved: Bool
  }

  private struct Slot: Sendable {
    var hash: UInt32
    /// -1: free.
    var entry: Int32

    static let free = Slot(hash: 0, entry: -1)
  }

  private var entries: [Entry] = []
  private var slots: [Slot]

  package init() {
    slots = Array(repeating: .free, count: 8)
  }

  /// Of several rules with one name, the last counts.
  package init(_ rules: some Sequence<AppRules>) {
    self.init()
    for rule in rules { update(rule) }
  }

  /// How many indices there are, those of removed apps included.
  package var count: Int { entries.count }

  /// The apps that are configured now.
  package var active: [AppIndex] {
    entries.indices.filter { !entries[$0].isRemoved }.map { AppIndex(Int32($0)) }
  }

  /// The names of all apps by their indices, removed ones included.
  package var names: [String] { entries.map(\.rules.name) }

  /// - Precondition: `app` came from this table.
  package subscript(app: AppIndex) -> AppRules { entries[Int(app.value)].rules }

  /// The UTF-8 of the app's name.
  package func name(of app: AppIndex) -> [UInt8] { entries[Int(app.value)].name }

  /// Whether the app has a certificate rather than a provider token.
  func hasCertificate(_ app: AppIndex) -> Bool { entries[Int(app.value)].hasCertificate }

  /// Whether the app's certificate allows pushes to the topic, or does not say.
  func certificateCovers(_ topic: Span<UInt8>, of app: AppIndex) -> Bool {
    guard let topics = entries[Int(app.value)].certificateTopics else { return true }
    for index in topics.indices where Self.equal(topics[index], topic) { return true }
    return false
  }

  /// The app's own cap; read on each notification, without a copy of all rules.
  package func maxInFlight(of app: AppIndex) -> Int? { entries[Int(app.value)].rules.maxInFlight }
  /// How many lanes the app may use.
  package func maxLanes(of app: AppIndex) -> Int? { entries[Int(app.value)].rules.maxLanes }

  /// Whether the app is no longer configured.
  package func isRemoved(_ app: AppIndex) -> Bool { entries[Int(app.value)].isRemoved }

  /// The topic of a push that names none: the bundle id with the suffix of the push type.
  package func topic(for app: AppIndex, _ type: PushType) -> [UInt8] {
    entries[Int(app.value)].topics[Int(type.rawValue)]
  }

  /// The same for a push type that only the configuration knows; `nil` where it does not either.
  package func topic(for app: AppIndex, typeNamed name: Span<UInt8>) -> [UInt8]? {
    let others = entries[Int(app.value)].otherTopics
    for index in others.indices where Self.equal(others[index].type, name) { return others[index].topic }
    return nil
  }

  /// Whether a topic is the app's bundle id itself.
  func isBundleID(_ topic: Span<UInt8>, of app: AppIndex) -> Bool {
    Self.equal(self.topic(for: app, .alert), topic)
  }

  /// Adds an app, or replaces the rules of the one with that name (also of a removed one, which is then back).
  @discardableResult
  package mutating func update(_ rules: AppRules) -> AppIndex {
    let name = Array(rules.name.utf8)
    if let known = find(name.span) {
      entries[Int(known.value)] = Self.entry(rules, name)
      return known
    }
    entries.append(Self.entry(rules, name))
    let index = AppIndex(Int32(entries.count - 1))
    if entries.count * 2 > slots.count {
      rebuild(slotCount: slots.count * 2)
    } else {
      place(index.value, hash: FNV1a.hash32(name.span))
    }
    return index
  }

  /// Marks an app as removed; its rules and topics stay readable.
  package mutating func remove(_ app: AppIndex) {
    entries[Int(app.value)].isRemoved = true
  }

  /// The app of that name, also when it is removed.
  package func find(_ name: Span<UInt8>) -> AppIndex? {
    let hash = FNV1a.hash32(name)
    let mask = slots.count - 1
    var place = Int(hash) & mask
    while slots[place].entry >= 0 {
      if slots[place].hash == hash, Self.equal(entries[Int(slots[place].entry)].name, name) {
        return AppIndex(slots[place].entry)
      }
      place = (place + 1) & mask
    }
    return nil
  }

  /// The app of that name, also when it is removed.
  package func find(_ name: String) -> AppIndex? {
    let bytes = Array(name.utf8)
    return find(bytes.span)
  }

  private static func entry(_ rules: AppRules, _ name: [UInt8]) -> Entry {
    let topics = PushType.allCases.map { Array($0.topic(bundleID: rules.bundleID).utf8) }
    let others = rules.pushTypes.map { type, suffix in
      (type: Array(type.utf8), topic: Array((rules.bundleID + suffix).utf8))
    }
    return Entry(
      rules: rules, name: name, topics: topics, otherTopics: others, hasCertificate: rules.certificate != nil,
      certificateTopics: rules.certificate?.topics?.map { Array($0.utf8) }, isRemoved: false)
  }

  private mutating func rebuild(slotCount: Int) {
    slots = Array(repeating: .free, count: slotCount)
    for index in entries.indices {
      let name = entries[index].name
      place(Int32(index), hash: FNV1a.hash32(name.span))
    }
  }

  private mutating func place(_ entry: Int32, hash: UInt32) {
    let mask = slots.count - 1
    var place = Int(hash) & mask
    while slots[place].entry >= 0 { place = (place + 1) & mask }
    slots[place] = Slot(hash: hash, entry: entry)
  }

  private static func equal(_ left: borrowing [UInt8], _ right: Span<UInt8>) -> Bool {
    left.span.equals(right)
  }
}
