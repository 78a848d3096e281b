import APNs
import Delivery
import MockAPNs
import Service
import TestSupport
import Testing
import Transport
import Wire

/// Apps that come, change and go while requests flow.
@Suite struct ReloadTests {
  @Test(.timeLimit(.minutes(3)))
  func everyRequestHasOneResultWhileAppsComeChangeAndGo() async throws {
    // Slow enough that requests are open at each moment of a change.
    let world = try ReloadWorld(
      apps: ["stays": 1, "goes": 1, "turns": 1],
      script: Script([.init(.delay(.milliseconds(5), upTo: .milliseconds(40)))]))
    let traffic = world.traffic
    try await traffic.produce(["stays", "goes", "turns"], 50)
    #expect(await traffic.wait(for: 150), "\(world.log)")

    // One that is new.
    try world.writeApp("comes", key: 2)
    try await traffic.produce(["stays", "goes", "turns"], 50)
    await world.look()
    #expect(world.registry.snapshot().value(.reloads) == 1, "\(world.log)")
    try await traffic.produce(["stays", "goes", "turns", "comes"], 50)

    // Another key, of another team.
    try world.writeApp("turns", key: 2)
    await world.look()
    #expect(world.registry.snapshot().value(.reloads) == 2)
    try await traffic.produce(["stays", "goes", "turns", "comes"], 50)

    // One that is no good changes nothing, also not for those that are.
    try world.files.replace("apps/bad.json5", "{ bundleId: 1 }")
    world.files.remove("apps/goes.json5")
    await world.look()
    #expect(world.registry.snapshot().value(.reloadFailures) == 1)
    #expect(world.registry.snapshot().value(.reloads) == 2 && world.log.contains("apps.bad.bundleId"))
    let safe = await traffic.count
    #expect(await traffic.wait(for: safe))
    #expect(await traffic.status("goes") == ["delivered": 200])

    // One that goes, with its requests still coming.
    world.files.remove("apps/bad.json5")
    try await traffic.produce(["stays", "goes", "turns", "comes"], 100)
    await world.look()
    #expect(world.registry.snapshot().value(.reloads) == 3)
    try await traffic.produce(["stays", "goes", "turns", "comes"], 100)
    let count = await traffic.count
    #expect(await traffic.wait(for: count), "\(world.log)")
    #expect(waitUntil { world.registry.snapshot().value(.connections(.open), app: AppIndex(0)) == 0 })
    try await judge(world, turned: 2)
  }

  /// - Parameter turned: the key that "turns" has at the end.
  private func judge(_ world: ReloadWorld, turned: Int) async throws {
    let traffic = world.traffic
    let repeated = await traffic.results.filter { $0.value.count != 1 }
    #expect(repeated.isEmpty)
    #expect(await traffic.results.count == traffic.count)
    for app in ["stays", "turns", "comes"] {
      let produced = await traffic.produced[app]?.count
      #expect(await traffic.status(app) == ["delivered": produced ?? 0])
    }
    let gone = await traffic.status("goes")
    #expect((gone["delivered"] ?? 0) >= 200 && (gone["invalid"] ?? 0) >= 100, "\(gone)")
    #expect((gone["delivered"] ?? 0) + (gone["invalid"] ?? 0) + (gone["failed"] ?? 0) == 400)
    let reasons = await traffic.results.filter { $0.key.hasPrefix("goes-") && $0.value[0].status == "invalid" }
    #expect(reasons.allSatisfy { $0.value[0].reason == "UnknownApp" })

    // One provider token for each key, whatever came and went, and no connection that has seen two.
    let seen = world.apns.journal.seen
    var tokens: [Int: Set<String>] = [:]
    for request in seen {
      tokens[request.connection, default: []].formUnion(
        request.fields.filter { $0.name == "authorization" }.map(\.value))
    }
    #expect(tokens.values.allSatisfy { $0.count == 1 })
    #expect(Set(tokens.values.flatMap { $0 }).count == 2)
    let turns = Set(seen.filter { $0.topic == "com.example.turns" }.map(\.connection))
    #expect(turns.count >= 2)
    #expect(world.registry.snapshot().configuredApps == 3)
    guard case .drained(unfinished: 0) = await world.end() else {
      Issue.record("the service did not drain")
      return
    }
  }

  @Test(.timeLimit(.minutes(3)), arguments: [true, false])
  func anAppWhoseKeyWasBrokenAtTheStartComesAlive(isMissing: Bool) async throws {
    let world = try ReloadWorld(apps: ["good": 1, "late": 2], script: Script()) { files in
      try files.replace("TESTKEY002.p8", "nothing that is a key")
      if isMissing { files.remove("TESTKEY002.p8") }
    }
    try await world.traffic.produce(["good", "late"], 20)
    #expect(await world.traffic.wait(for: 20))
    #expect(await world.traffic.status("late").isEmpty)
    // Nothing has changed: what is broken is no reason to refuse, nor to change anything.
    await world.watcher.reload()
    #expect(world.registry.snapshot().value(.reloadFailures) == 0)
    try world.files.replace("TESTKEY002.p8", world.keys[1])
    await world.look()
    #expect(await world.traffic.wait(for: 40), "\(world.log)")
    #expect(await world.traffic.status("late") == ["delivered": 20])
    _ = await world.end()
  }
}
