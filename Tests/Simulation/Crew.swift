import Delivery
import Wire

/// The replicas of a run, and what befalls them.
final class Crew {
  private let world: World
  private let broker: Broker
  private let group: Group
  private let servers: [AppleServer]
  private let settings: Replica.Settings
  private var replicas: [Replica] = []
  private var started = 0
  private var isEnding = false
  /// The configuration as it is now.
  private var apps: AppTable

  init(
    world: World, broker: Broker, group: Group, servers: [AppleServer], settings: Replica.Settings, apps: AppTable
  ) {
    self.world = world
    self.broker = broker
    self.group = group
    self.servers = servers
    self.settings = settings
    self.apps = apps
  }

  func start() {
    guard !isEnding else { return }
    started += 1
    let replica = Replica(
      id: started, world: world, broker: broker, group: group, servers: servers, settings: settings, apps: apps)
    replicas.removeAll { $0.isDead }
    replicas.append(replica)
    replica.onEnd = { [unowned self] in
      if !isEnding { world.after(world.between(.milliseconds(100), .seconds(3))) { self.start() } }
    }
    group.join(replica)
    replica.wake()
  }

  /// From time to time a replica crashes, is replaced, is thrown out, or partitions move.
  func makeTrouble() {
    guard !world.isCalm else { return }
    troubleKafka()
    if let victim = running.randomElement(using: &world.random) {
      if world.strikes(.crash) {
        victim.crash()
        world.after(world.between(.milliseconds(100), .seconds(8))) { self.start() }
      } else if world.strikes(.restart) {
        victim.drain()
      } else if world.strikes(.sessionLost) {
        group.loseSession(victim)
      } else if world.strikes(.rebalance) {
        group.rebalance()
      } else if world.strikes(.offsetReset) {
        victim.rewind()
      } else if world.strikes(.reload) {
        reload()
      }
    }
    world.after(world.between(.milliseconds(50), .seconds(1))) { self.makeTrouble() }
  }

  private func troubleKafka() {
    if world.strikes(.truncation) { broker.truncate() }
    if world.strikes(.topicRemade) {
      broker.remake()
      group.rebalance()
    }
    if world.strikes(.partitionsAdded), broker.requestPartitions < 8 {
      broker.addPartition()
      group.rebalance()
    }
    if world.strikes(.brokersAway), broker.awayFor == .zero {
      broker.goAway(for: world.between(.milliseconds(500), .seconds(20)))
    }
  }

  /// An app is renewed, or goes and comes back.
  private func reload() {
    guard let app = apps.active.randomElement(using: &world.random) else { return }
    guard world.random.chance(0.5), apps.active.count > 1 else {
      tell(renewed: [app])
      return
    }
    broker.oracle.removed(Int(app.value))
    apps.remove(app)
    tell(renewed: [])
    world.after(world.between(.milliseconds(10), .seconds(10))) { [self] in
      apps.update(apps[app])
      tell(renewed: [app])
    }
  }

  private func tell(renewed: [AppIndex]) {
    let apps = apps
    for replica in replicas {
      world.after(world.between(.zero, .seconds(2))) { replica.reload(apps, renewed: renewed) }
    }
  }

  private var running: [Replica] { replicas.filter { $0.isRunning } }

  /// Whether a log was cut short and is as long again as it was, so that its reader stands at its end and has committed
  /// all, as far as it can know.
  func isUnaware(of id: PartitionID) -> Bool {
    broker.log(id).cuts > 0 && running.contains { $0.owned[id]?.position == broker.log(id).nextOffset }
  }

  /// A request that is done with may still be in the memory of one that was thrown out.
  var isAnyoneBusy: Bool { replicas.contains { !$0.isDead && !$0.machine.isIdle } }

  func checkPauses() {
    for replica in running {
      for (id, assigned) in replica.owned {
        world.check(!assigned.isPaused, "\(replica.name) has \(id) paused though all is settled")
        world.check(
          !assigned.awaitsRewind, "\(replica.name) did not say that the offsets of \(id) began again")
      }
    }
  }

  func end() {
    isEnding = true
    for replica in running { replica.drain() }
  }

  var hasEnded: Bool { replicas.allSatisfy { $0.isDead } }

  var state: String {
    replicas.filter { !$0.isDead }.map { replica in
      "\(replica.name): \(replica.machine.inFlight) in flight, \(replica.machine.waiting) waiting, "
        + "\(replica.owned.count) partitions, \(replica.owned.count { $0.value.isPaused }) paused, "
        + "\(replica.backlog.count) to produce"
    }.joined(separator: "; ")
  }
}
