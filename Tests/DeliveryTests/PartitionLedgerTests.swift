import Testing
import Wire

@testable import Delivery

@Suite struct PartitionLedgerTests {
  private func admit(_ ledger: inout PartitionLedger, _ offset: Int64, items: Int = 1) -> Int {
    guard case .admitted(let sequence) = ledger.admit(offset: offset, items: items) else {
      Issue.record("offset \(offset) was not admitted")
      return -1
    }
    return sequence
  }

  @Test func theCommitPointNeverPassesWhatHasNotSettled() {
    var ledger = PartitionLedger()
    let sequences = (0..<10).map { admit(&ledger, Int64($0)) }
    for index in 0..<10 where index != 3 { ledger.settle(sequence: sequences[index]) }
    #expect(ledger.commitPoint == 3)
    #expect(ledger.trackedCount == 7)
    #expect(ledger.settledBeyondCommitPoint() == [4..<10])
    ledger.settle(sequence: sequences[3])
    #expect(ledger.commitPoint == 10)
    #expect(ledger.settledBeyondCommitPoint().isEmpty)
  }

  @Test func nothingIsCommittedBeforeAnythingWasPolled() {
    var ledger = PartitionLedger(settled: SettledOffsets(records: [5..<7]))
    #expect(ledger.commitPoint == nil)
    #expect(ledger.takeCommit() == nil)
  }

  @Test func gapsInTheOffsetsAreNothingToWaitFor() {
    var ledger = PartitionLedger()
    let first = admit(&ledger, 100)
    let second = admit(&ledger, 250)
    ledger.settle(sequence: second)
    #expect(ledger.commitPoint == 100)
    ledger.settle(sequence: first)
    #expect(ledger.commitPoint == 251)
  }

  @Test func aGapAtTheEndIsPassedWhenAllBeforeItHasSettled() {
    var ledger = PartitionLedger()
    let first = admit(&ledger, 5)
    ledger.pass(to: 8)
    #expect(ledger.commitPoint == 5)
    ledger.settle(sequence: first)
    #expect(ledger.takeCommit()?.offset == 8)
    // What is known already is no news.
    ledger.pass(to: 8)
    ledger.pass(to: 6)
    #expect(ledger.takeCommit() == nil)
    let second = admit(&ledger, 9)
    ledger.settle(sequence: second)
    #expect(ledger.takeCommit()?.offset == 10)
  }

  @Test func aGapThatIsAllThatThereIsIsPassed() {
    var ledger = PartitionLedger(from: 7, settled: SettledOffsets(records: [9..<10, 20..<22]))
    ledger.pass(to: 7)
    #expect(ledger.takeCommit() == nil)
    ledger.pass(to: 12)
    let taken = ledger.takeCommit()
    #expect(taken?.offset == 12)
    #expect(ledger.settledBeyondCommitPoint() == [20..<22])
  }

  @Test func aBatchSettlesWithItsLastItem() {
    var ledger = PartitionLedger()
    let sequence = admit(&ledger, 7, items: 3)
    ledger.settle(sequence: sequence, item: 2)
    ledger.settle(sequence: sequence, item: 0)
    ledger.settle(sequence: sequence, item: 0)
    #expect(ledger.commitPoint == 7)
    ledger.settle(sequence: sequence, item: 1)
    #expect(ledger.commitPoint == 8)
  }

  @Test func theSettledItemsOfABatchAreNamedAndNotDoneAgain() throws {
    var ledger = PartitionLedger()
    let batch = admit(&ledger, 7, items: 4)
    let next = admit(&ledger, 8)
    ledger.settle(sequence: batch, item: 1)
    ledger.settle(sequence: batch, item: 3)
    ledger.settle(sequence: next)
    let taken = ledger.takeCommit()
    let commit = try #require(taken)
    let settled = LedgerCodec.decode(commit.metadata.text, commitPoint: commit.offset)
    #expect(commit.offset == 7)
    #expect(settled == SettledOffsets(records: [8..<9], batches: [SettledBatch(offset: 7, items: ItemSet([1, 3]))]))

    // What is not polled yet must not be forgotten, should it crash now.
    var heir = PartitionLedger(from: 5, settled: settled)
    #expect(heir.admit(offset: 5, items: 0) == .admitted(sequence: 0))
    let passedOn = heir.takeCommit()
    let again = try #require(passedOn)
    #expect(LedgerCodec.decode(again.metadata.text, commitPoint: again.offset) == settled)
    heir = PartitionLedger(from: 7, settled: settled)
    let repeated = admit(&heir, 7, items: 4)
    #expect(heir.settledItems(of: repeated) == ItemSet([1, 3]))
    #expect(heir.admit(offset: 8, items: 1) == .alreadySettled)
    heir.settle(sequence: repeated, item: 1)
    heir.settle(sequence: repeated, item: 0)
    #expect(heir.commitPoint == 7)
    heir.settle(sequence: repeated, item: 2)
    #expect(heir.commitPoint == 9)
  }

  @Test func settlingTwiceCountsOnce() {
    var ledger = PartitionLedger()
    let first = admit(&ledger, 0)
    let second = admit(&ledger, 1, items: 2)
    ledger.settle(sequence: first)
    ledger.settle(sequence: first)
    ledger.settle(sequence: second)
    #expect(ledger.commitPoint == 1)
  }

  @Test func aRecordWithoutItemsIsSettledByBeingSkipped() {
    var ledger = PartitionLedger()
    _ = ledger.admit(offset: 0, items: 0)
    #expect(ledger.takeCommit()?.offset == 1)
  }

  @Test func whatTheMetadataNamesAsSettledIsSkippedAndStaysNamed() {
    var ledger = PartitionLedger(settled: SettledOffsets(records: [2..<4, 6..<7]))
    let zero = admit(&ledger, 0)
    let one = admit(&ledger, 1)
    #expect(ledger.admit(offset: 2, items: 1) == .alreadySettled)
    // 3 and 6 have not been polled again yet: a crash now must not forget them.
    #expect(ledger.settledBeyondCommitPoint() == [2..<3, 3..<4, 6..<7])
    #expect(ledger.admit(offset: 3, items: 1) == .alreadySettled)
    let four = admit(&ledger, 4)
    _ = admit(&ledger, 5)
    #expect(ledger.admit(offset: 6, items: 1) == .alreadySettled)
    for sequence in [zero, one, four] { ledger.settle(sequence: sequence) }
    #expect(ledger.commitPoint == 5)
    #expect(ledger.settledBeyondCommitPoint() == [6..<7])
  }

  @Test func anOffsetPolledTwiceIsKnownAndOneBelowTheCommitPointIsARewind() {
    var ledger = PartitionLedger()
    let first = admit(&ledger, 10)
    _ = admit(&ledger, 11)
    #expect(ledger.admit(offset: 11, items: 1) == .known)
    ledger.settle(sequence: first)
    #expect(ledger.admit(offset: 10, items: 1) == .rewound)
    #expect(ledger.commitPoint == 11)
  }

  @Test func anotherRecordAtAKnownOffsetIsARewind() {
    var ledger = PartitionLedger()
    let sequences = (0..<6).map { offset in
      guard case .admitted(let sequence) = ledger.admit(offset: Int64(offset), items: 1, mark: 1) else { return -1 }
      return sequence
    }
    #expect(ledger.admit(offset: 2, items: 1, mark: 1) == .known)
    // Nothing is settled, so the new records lie at or beyond the commit point.
    #expect(ledger.admit(offset: 2, items: 1, mark: 2) == .rewound)
    ledger.rewind(to: 2)
    guard case .admitted(let new) = ledger.admit(offset: 2, items: 1, mark: 2) else {
      Issue.record("it is not taken up")
      return
    }
    // What was polled there before settles nothing any more, and what came before it does.
    for sequence in sequences { ledger.settle(sequence: sequence) }
    #expect(ledger.commitPoint == 2)
    #expect(ledger.settledBeyondCommitPoint().isEmpty)
    ledger.settle(sequence: new)
    #expect(ledger.commitPoint == 3)
  }

  @Test func aCommitIsHandedOutOnlyWhenSomethingChangedAndAgainAfterAFailure() {
    var ledger = PartitionLedger()
    let sequence = admit(&ledger, 0)
    #expect(ledger.takeCommit() == nil)
    ledger.settle(sequence: sequence)
    #expect(ledger.takeCommit()?.offset == 1)
    #expect(ledger.takeCommit() == nil)
    ledger.commitFailed()
    #expect(ledger.takeCommit()?.offset == 1)
  }

  /// Against a model that knows everything: random admissions, gaps and settlements.
  @Test(arguments: 0..<40)
  func agreesWithAPlainModel(seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    var ledger = PartitionLedger()
    var open: [(offset: Int64, sequence: Int, left: Int)] = []
    var settled: Set<Int64> = []
    var next: Int64 = Int64(random.uniform(below: 1000))
    var polled: [Int64] = []
    for _ in 0..<5000 {
      if random.chance(0.5) || open.isEmpty {
        next += random.chance(0.1) ? Int64(random.uniform(below: 50)) : 0
        let items = random.uniform(below: 3)
        guard case .admitted(let sequence) = ledger.admit(offset: next, items: items) else {
          Issue.record("refused \(next)")
          return
        }
        polled.append(next)
        if items == 0 { settled.insert(next) } else { open.append((next, sequence, items)) }
        next += 1
      } else {
        let index = random.uniform(below: open.count)
        open[index].left -= 1
        ledger.settle(sequence: open[index].sequence, item: open[index].left)
        if open[index].left == 0 {
          settled.insert(open[index].offset)
          open.remove(at: index)
        }
      }
      let expected = open.map(\.offset).min() ?? next
      #expect(ledger.commitPoint == (open.isEmpty ? polled.last.map { $0 + 1 } : expected))
    }
    let point = ledger.commitPoint ?? 0
    let ranges = ledger.settledBeyondCommitPoint()
    let beyond = polled.filter { $0 > point && settled.contains($0) }
    #expect(beyond.allSatisfy { offset in ranges.contains { $0.contains(offset) } })
    #expect(open.allSatisfy { item in !ranges.contains { $0.contains(item.offset) } })
  }

  @Test func whatWasRewoundHoldsNothingUp() {
    var ledger = PartitionLedger()
    for offset in 0..<3 { _ = ledger.admit(offset: Int64(offset), items: 1, mark: 1) }
    ledger.rewind(to: 0)
    guard case .admitted(let sequence) = ledger.admit(offset: 0, items: 1, mark: 2) else {
      Issue.record("the new record is not taken up")
      return
    }
    ledger.settle(sequence: sequence)
    #expect(ledger.takeCommit()?.offset == 1)
  }

  @Test func aRewindBelowTheCommitPointForgetsAll() {
    var ledger = PartitionLedger(settled: SettledOffsets(records: [8..<9]))
    let sequences = (0..<6).map { admit(&ledger, Int64($0)) }
    for sequence in sequences[..<3] { ledger.settle(sequence: sequence) }
    ledger.settle(sequence: sequences[4])
    #expect(ledger.takeCommit()?.offset == 3)
    #expect(ledger.admit(offset: 1, items: 1, mark: 7) == .rewound)
    ledger.rewind(to: 1)
    #expect(ledger.takeCommit()?.offset == 1)
    let new = [1, 2].map { admit(&ledger, Int64($0)) }
    for sequence in sequences { ledger.settle(sequence: sequence) }
    #expect(ledger.commitPoint == 1)
    #expect(ledger.settledBeyondCommitPoint().isEmpty)
    for sequence in new { ledger.settle(sequence: sequence) }
    #expect(ledger.takeCommit()?.offset == 3)
    #expect(ledger.admit(offset: 8, items: 1) == .admitted(sequence: new[1] + 1))
  }
}
