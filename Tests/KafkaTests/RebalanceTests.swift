import Testing
import Wire

@testable import Kafka

struct RebalanceTests {
  private static let strategies = ["range", "cooperative-sticky"]
  private let all: Set<PartitionID> = Set((0..<4).map { partition($0) })

  private func settings(_ strategy: String) -> [(String, String)] {
    [
      ("partition.assignment.strategy", strategy), ("session.timeout.ms", "3000"), ("heartbeat.interval.ms", "200"),
    ]
  }

  /// One group's whole life: alone, with a second member, alone again. The answers come late, and polling goes on.
  @Test(arguments: strategies)
  func partitionsMoveWhenTheAnswersComeLate(strategy: String) throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 4)
    let writer = try Writer(cluster.bootstrapServers)
    for number in 0..<4 { #expect(try writer.fill("t", partition: Int32(number), count: 5)) }

    let first = try Reader(cluster, group: "g", topics: ["t"], settings: settings(strategy))
    first.answersAtOnce = false
    #expect(try first.run { !first.unanswered.isEmpty })
    // While the assignment is unanswered nothing is delivered, and the committed offsets can be asked for.
    let committed = try first.consumer.committed(Array(all), timeout: .seconds(30))
    #expect(committed.count == 4)
    try first.turn()
    #expect(first.records.isEmpty)
    try first.answerAll()
    #expect(try first.run { first.records.count == 20 })
    #expect(first.assigned == all)

    let second = try Reader(cluster, group: "g", topics: ["t"], settings: settings(strategy))
    #expect(try runTogether([first, second]) { !first.unanswered.isEmpty })
    let isCooperative = strategy == "cooperative-sticky"
    let isCommitted = try pollAndCommitUnanswered(first, writer)
    // An eager group gathers meanwhile; a cooperative one does only if the second member was quick to join again.
    #expect(isCooperative || !isCommitted)
    try first.answerAll()
    first.answersAtOnce = true
    #expect(
      try runTogether([first, second]) {
        first.assigned.count == 2 && second.assigned.count == 2 && first.assigned.union(second.assigned) == all
      })
    // Everything is read on: from the commit, or from the start where there is none.
    func offsets(_ number: Int32) -> [Int64] {
      (first.records + second.records).filter { $0.source == partition(number) }.map(\.offset).sorted()
    }
    #expect(try runTogether([first, second]) { (0..<4).allSatisfy { Set(offsets($0)) == Set(0..<10) } })
    if isCommitted {
      for number in Int32(0)..<4 { #expect(offsets(number) == Array(0..<10)) }
    }
    #expect(first.revocations.allSatisfy { !$0.lost })
    if isCooperative {
      #expect(first.revocations.allSatisfy { $0.partitions.count < 4 })
    }

    // The second member leaves: its revocation is served during the close, and the first takes over.
    try second.consumer.close()
    #expect(try runTogether([first, second]) { second.consumer.isClosed && first.assigned == all })
    #expect(second.assigned.isEmpty)
    #expect(second.revocations.last?.lost == false)
    #expect(first.errors.isEmpty && second.errors.isEmpty)
  }

  /// While a revocation waits for its answer.
  ///
  /// - Returns: whether the commit was taken.
  private func pollAndCommitUnanswered(_ reader: Reader, _ writer: Writer) throws -> Bool {
    // Nothing is fetched any more, neither from these partitions nor from others, but the polls go on.
    for number in 0..<4 { #expect(try writer.fill("t", partition: Int32(number), count: 5, from: 5)) }
    for _ in 0..<20 {
      _ = reader.wakeup.wait(milliseconds: 10)
      try reader.turn()
    }
    #expect(reader.records.count == 20)
    // A commit inside the revocation. Real brokers take it; the mock ones refuse it while a group gathers.
    let result = try reader.commit(all.map { OffsetCommit(partition: $0, offset: 5, metadata: "m") })
    #expect(result.isComplete || result.error?.code == .rebalanceInProgress, "\(result)")
    return result.isComplete
  }

  @Test(arguments: ["range", "cooperative-sticky"])
  func closeServesTheRevocationAndALastCommit(strategy: String) throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 4)
    let reader = try Reader(cluster, group: "g", topics: ["t"], settings: settings(strategy))
    #expect(try reader.run { reader.assigned == all })
    reader.answersAtOnce = false
    try reader.consumer.close()
    try reader.consumer.close()
    #expect(try reader.run { !reader.unanswered.isEmpty })
    #expect(!reader.consumer.isClosed)
    try reader.consumer.commit([OffsetCommit(partition: partition(1), offset: 9, metadata: "last")], ticket: 4)
    #expect(try reader.run { !reader.commits.isEmpty })
    #expect(reader.commits.first?.isComplete == true)
    try reader.answerAll()
    #expect(try reader.run { reader.consumer.isClosed })
    let other = try Reader(cluster, group: "g", topics: ["t"], membership: .manual)
    let committed = try other.consumer.committed([partition(1)], timeout: .seconds(30))
    #expect(committed == [CommittedOffset(partition: partition(1), offset: 9, metadata: "last")])
  }

  /// The first member waits for others, so the join takes its time.
  @Test func aJoinIsToldFromItsRequestToTheAnswer() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 4)
    let reader = try Reader(cluster, group: "g", topics: ["t"], settings: settings("cooperative-sticky"))
    #expect(!reader.consumer.isJoining)
    #expect(try reader.run { reader.consumer.isJoining })
    #expect(try reader.run { reader.assigned == all })
    #expect(!reader.consumer.isJoining)
  }

  @Test func theEndOfAPartitionIsToldAfterItsRecords() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 4)
    let writer = try Writer(cluster.bootstrapServers)
    #expect(try writer.fill("t", partition: 2, count: 5))
    let reader = try Reader(cluster, group: "g", topics: ["t"], settings: settings("range"))
    #expect(try reader.run { reader.ends.count == 4 })
    #expect(reader.records.count == 5)
    #expect(reader.ends == [partition(0): 0, partition(1): 0, partition(2): 5, partition(3): 0])
    #expect(reader.errors.isEmpty)
  }

  @Test func aConsumerThatNeverJoinedClosesToo() throws {
    let cluster = try MockCluster()
    let reader = try Reader(cluster, group: "g", topics: ["t"])
    #expect(try reader.leave())
  }

  /// The group knows the member and the assignor, but the first assignment does not come.
  @Test func aCooperativeMemberMayBeDroppedBeforeItsFirstAssignment() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 4)
    cluster.pushErrors(Array(repeating: .rebalanceInProgress, count: 1000), for: .syncGroup)
    let reader = try Reader(
      cluster, group: "g", topics: ["t"], settings: settings("cooperative-sticky") + [("debug", "cgrp")])
    #expect(try reader.run { reader.log.lines.contains { $0.text.contains("SyncGroup response: ") } })
    #expect(reader.assignments.isEmpty && reader.unanswered.isEmpty)
    // It goes out of scope; the process ends or it does not.
  }

  @Test func aConsumerMayBeDroppedAtAnyTime() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 4)
    let reader = try Reader(cluster, group: "g", topics: ["t"], settings: settings("range"))
    reader.answersAtOnce = false
    #expect(try reader.run { !reader.unanswered.isEmpty })
    // It goes out of scope with an unanswered assignment; the test ends or it does not.
  }

  /// The coordinator forgets the member: what it had is lost, and it joins anew.
  @Test func aMemberThatIsForgottenLosesItsPartitionsAndJoinsAgain() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 4)
    let reader = try Reader(cluster, group: "g", topics: ["t"], settings: settings("range"))
    #expect(try reader.run { reader.assigned == all })
    cluster.pushErrors([.unknownMember], for: .heartbeat)
    #expect(try reader.run { reader.revocations.count == 1 && reader.assigned == all })
    #expect(reader.revocations.first?.lost == true)
    #expect(reader.assignments.count == 2)
  }

  /// Without a poll for `max.poll.interval.ms` the member is put out; the polls of an idle consumer keep it in.
  @Test func pollingAnIdleConsumerKeepsItInTheGroup() throws {
    let cluster = try MockCluster()
    try cluster.createTopic("t", partitions: 4)
    let reader = try Reader(
      cluster, group: "g", topics: ["t"],
      settings: settings("range") + [("max.poll.interval.ms", "3000")])
    #expect(try reader.run { reader.assigned == all })
    let end = ContinuousClock.now + .seconds(4)
    #expect(try reader.run { ContinuousClock.now > end })
    #expect(reader.errors.isEmpty)
    #expect(reader.revocations.isEmpty)
  }

  /// The versions before 2.1.0 lose records of a batch in a cooperative rebalance.
  @Test(arguments: [
    (true, 0x0200_02ff, true), (true, 0x0200_ffff, true), (true, 0x0201_00ff, false), (true, 0x0206_00ff, false),
    (false, 0x0200_02ff, false), (false, 0x0201_00ff, false),
  ])
  func recordsAreReadOneByOneWhereABatchCouldLoseSome(isCooperative: Bool, version: Int, isNeeded: Bool) {
    #expect(Consumer.mustReadOneByOne(isCooperative: isCooperative, version: Int32(version)) == isNeeded)
  }
}
