import Wire

/// The consumer group: who owns which partition, and how that changes.
///
/// Eager rebalances take all partitions from all members and deal them anew; cooperative ones take only those that
/// move. A member that crashed is missed after a session timeout; one whose session is lost hears of it late.
final class Group {
  private let world: World
  private let broker: Broker
  private let isCooperative: Bool
  private var members: [Replica] = []
  private var owners: [PartitionID: Replica] = [:]
  /// Counts the assignments of each partition.
  private var epochs: [PartitionID: Int] = [:]
  private var waiting: [Replica] = []
  private var isRebalancing = false
  /// All have given back what moves, and wait to be told their parts.
  private var isDealing = false
  private var mustRebalanceAgain = false
  private(set) var rebalances = 0

  init(world: World, broker: Broker, isCooperative: Bool) {
    self.world = world
    self.broker = broker
    self.isCooperative = isCooperative
  }

  func owner(of id: PartitionID) -> Replica? { owners[id] }
  func epoch(of id: PartitionID) -> Int { epochs[id] ?? 0 }

  /// Whether a member has asked to join and waits for the others, and then for its part.
  func isJoining(_ replica: Replica) -> Bool {
    (isRebalancing || isDealing) && members.contains { $0 === replica } && !waiting.contains { $0 === replica }
  }

  // MARK: Members come and go

  func join(_ replica: Replica) {
    members.append(replica)
    world.after(.milliseconds(50)) { self.rebalance() }
  }

  /// It leaves in order: its partitions are revoked as in a rebalance.
  func leave(_ replica: Replica) {
    members.removeAll { $0 === replica }
    guard !isRebalancing || !waiting.contains(where: { $0 === replica }) else { return }
    replica.revoke(owned(by: replica), isLost: false)
  }

  func crashed(_ replica: Replica) {
    world.after(broker.awayFor + world.between(.seconds(1), .seconds(6))) { [self] in
      members.removeAll { $0 === replica }
      takeAway(replica)
      rebalance()
    }
  }

  /// The group throws a live member out; its partitions are others' from now on, and it hears of that later.
  func loseSession(_ replica: Replica) {
    guard broker.awayFor == .zero, members.contains(where: { $0 === replica }),
      !waiting.contains(where: { $0 === replica })
    else { return }
    let lost = owned(by: replica)
    members.removeAll { $0 === replica }
    takeAway(replica)
    rebalance()
    world.after(world.between(.milliseconds(1), .seconds(3))) { replica.revoke(lost, isLost: true) }
  }

  private func takeAway(_ replica: Replica) {
    for id in owned(by: replica) { owners[id] = nil }
    waiting.removeAll { $0 === replica }
    finishIfReady()
  }

  private func owned(by replica: Replica) -> [PartitionID] {
    broker.partitions.filter { owners[$0] === replica }
  }

  // MARK: Rebalances

  func rebalance() {
    guard broker.awayFor == .zero else {
      world.after(broker.awayFor) { self.rebalance() }
      return
    }
    guard !isRebalancing else {
      mustRebalanceAgain = true
      return
    }
    isRebalancing = true
    rebalances += 1
    let targets = deal()
    for member in members {
      let leaving = owned(by: member).filter { !isCooperative || targets[$0] !== member }
      guard !leaving.isEmpty else { continue }
      waiting.append(member)
      member.revoke(leaving, isLost: false)
    }
    finishIfReady()
  }

  /// Partitions to members; those of a cooperative group stay mostly where they are.
  private func deal() -> [PartitionID: Replica] {
    guard !members.isEmpty else { return [:] }
    let shift = world.random.uniform(below: members.count)
    var targets: [PartitionID: Replica] = [:]
    for (index, id) in broker.partitions.enumerated() {
      if isCooperative, let owner = owners[id], members.contains(where: { $0 === owner }), world.random.chance(0.6) {
        targets[id] = owner
      } else {
        targets[id] = members[(index + shift) % members.count]
      }
    }
    return targets
  }

  /// A member has given partitions back.
  func released(_ replica: Replica, _ ids: [PartitionID]) {
    for id in ids where owners[id] === replica { owners[id] = nil }
    waiting.removeAll { $0 === replica }
    finishIfReady()
  }

  private func finishIfReady() {
    guard isRebalancing, waiting.isEmpty else { return }
    isRebalancing = false
    isDealing = true
    world.after(broker.awayFor + .milliseconds(30)) { [self] in
      guard !isRebalancing else { return }
      isDealing = false
      let targets = deal()
      for member in members {
        let new = broker.partitions.filter { owners[$0] == nil && targets[$0] === member }
        guard !new.isEmpty else { continue }
        for id in new {
          owners[id] = member
          epochs[id, default: 0] += 1
        }
        member.assign(Dictionary(uniqueKeysWithValues: new.map { ($0, epoch(of: $0)) }))
      }
      for member in members { member.wake() }
      if mustRebalanceAgain {
        mustRebalanceAgain = false
        rebalance()
      }
    }
  }
}
