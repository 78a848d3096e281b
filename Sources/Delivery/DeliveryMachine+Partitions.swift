package import Wire

/// Partitions that may be given back now, with what is to be committed for them first.
package struct Release: Equatable, Sendable {
  package var partitions: [PartitionID]
  package var commits: [OffsetCommit]
}

/// Partitions that the group takes away, while what is out for them finishes.
struct Revocation: Sendable {
  var partitions: [PartitionID]
  var deadline: Instant
}

// Assignment -> revocation -> release; the commit.
extension DeliveryMachine {
  /// Partitions are ours now.
  ///
  /// - Parameter starts: each with the committed offset and its metadata, where there are any. What the metadata names
  ///   as settled is skipped when it is polled.
  package mutating func assign(_ starts: [(partition: PartitionID, committed: (offset: Int64, metadata: String)?)]) {
    for start in starts {
      let settled = start.committed.map { LedgerCodec.decode($0.metadata, commitPoint: $0.offset) } ?? SettledOffsets()
      partitions.assign(start.partition, from: start.committed?.offset ?? 0, settled: settled)
    }
  }

  /// The group takes partitions away.
  ///
  /// Waiting pushes are let go unsent; what is out has `revocationTimeout` to finish. Then `takeRelease` says so. With
  /// `isLost` they belong to somebody else already: nothing of them may be committed any more.
  ///
  /// - Parameter timeout: a shorter one than `revocationTimeout`.
  package mutating func revoke(
    _ ids: [PartitionID], isLost: Bool, within timeout: Duration? = nil, at moment: Moment
  ) {
    let places = Set(ids.compactMap { partitions.place(of: $0) })
    for slot in pushes.slots(where: { push in
      guard case .waiting = push.state, places.contains(push.place) else { return false }
      return partitions.isCurrent(push.place, epoch: push.epoch)
    }) {
      abandon(slot, at: moment)
    }
    for place in places {
      partitions[place].phase = .draining
      partitions[place].letGo()
      if isLost { partitions.release(partitions[place].id) }
    }
    waitingForRoom.removeAll { places.contains($0.place) }
    notePatience(at: moment)
    let deadline = isLost ? moment.instant : moment.instant + (timeout ?? limits.revocationTimeout)
    let earlier = revocation?.partitions ?? []
    revocation = Revocation(partitions: earlier + ids, deadline: min(deadline, revocation?.deadline ?? deadline))
  }

  /// The partitions that may be given back now, once: all that was out for them has settled, or their time is up.
  package mutating func takeRelease(at moment: Moment) -> Release? {
    guard let revocation else { return nil }
    let places = revocation.partitions.compactMap { partitions.place(of: $0) }
    guard moment.instant >= revocation.deadline || places.allSatisfy({ partitions[$0].busy == 0 }) else { return nil }
    self.revocation = nil
    let commits = places.compactMap { takeCommit($0) }
    for id in revocation.partitions { partitions.release(id) }
    return Release(partitions: revocation.partitions, commits: commits)
  }

  /// What has settled since the last call, for every partition that is ours.
  package mutating func takeCommits() -> [OffsetCommit] {
    partitions.indices.compactMap { partitions.slots[$0] == nil ? nil : takeCommit($0) }
  }

  /// Whether every commit that there is to make was taken, and none of them came back as failed.
  package var isAllCommitted: Bool { partitions.slots.allSatisfy { $0.map { !$0.ledger.isDirty } ?? true } }

  /// A commit did not get through; it is said again with the next one.
  package mutating func commitFailed(_ id: PartitionID) {
    if let place = partitions.place(of: id) { partitions[place].ledger.commitFailed() }
  }

  /// All that a partition has before this offset was polled, and given to `take` before this call.
  package mutating func reachedEnd(of id: PartitionID, at offset: Int64) {
    guard !isDraining, let place = partitions.place(of: id), case .consuming = partitions[place].phase else { return }
    partitions[place].reachedEnd(offset)
  }

  private mutating func takeCommit(_ place: Int) -> OffsetCommit? {
    partitions[place].passEnd()
    guard let (offset, encoded) = partitions[place].ledger.takeCommit(limit: limits.metadataBytes) else { return nil }
    let tracked = partitions[place].ledger.trackedCount
    // What the metadata cannot say would be sent again after a crash: better to wait until it can.
    partitions[place].isOverfull = !encoded.isComplete || tracked > limits.maxTracked
    partitions[place].isCrowded = encoded.isCrowded || tracked > limits.maxTracked / 2
    partitions[place].mustThin = partitions[place].isCrowded
    updatePause(place)
    return OffsetCommit(partition: partitions[place].id, offset: offset, metadata: encoded.text)
  }

  // MARK: Drain

  /// Stops the intake and lets go of what waits; what is out may finish (`isIdle`).
  package mutating func beginDrain(at moment: Moment) {
    isDraining = true
    for slot in pushes.slots(where: { if case .waiting = $0.state { true } else { false } }) {
      abandon(slot, at: moment)
    }
    for place in partitions.indices where partitions.slots[place] != nil {
      partitions[place].letGo()
    }
    waitingForRoom = []
    notePatience(at: moment)
  }

  /// Nothing is out any more: all that could settle has.
  package var isIdle: Bool { pushes.countInUse == 0 }
}
