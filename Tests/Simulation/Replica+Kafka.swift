import Delivery
import Wire

// Polling, the group, commits.
extension Replica {
  /// - Parameter ids: with the number of each assignment, which fences its commits.
  func assign(_ ids: [PartitionID: Int]) {
    controls.append(.assign(ids))
    wake()
  }

  func revoke(_ ids: [PartitionID], isLost: Bool) {
    controls.append(.revoke(ids, isLost: isLost))
    wake()
  }

  var hasRecords: Bool {
    owned.contains { id, assigned in
      !assigned.isPaused && broker.canFetch(id) && broker.log(id).nextOffset > assigned.position
    }
  }

  /// Polls while there is room, and one word of the group in any case.
  func poll(_ moment: Moment) {
    noticeCuts()
    let room = backlog.isEmpty ? min(machine.recordRoom(), settings.pollLimit) : 0
    let records = fetch(room)
    if !records.isEmpty { machine.take(records, at: moment) }
    if records.count < room { reachEnds() }
    // The group's next word waits until the last one is done with.
    if releaseBound == nil, !controls.isEmpty { handle(controls.removeFirst(), moment) }
  }

  private func fetch(_ room: Int) -> [Record] {
    guard room > 0, hasRecords else { return [] }
    var records: [Record] = []
    let ids = broker.partitions.filter { owned[$0] != nil }.shuffled(using: &world.random)
    for id in ids {
      guard records.count < room, let assigned = owned[id], !assigned.isPaused, broker.canFetch(id) else { continue }
      let log = broker.log(id)
      let first = log.place(of: assigned.position)
      let last = min(log.records.count, first + room - records.count)
      guard first < last else { continue }
      for place in first..<last {
        records.append(log.records[place].record)
        deliver(log.records[place])
      }
      owned[id]?.position = log.records[last - 1].record.offset + 1
      // What has lost its app ends at once.
      let due =
        log.records[first..<last].filter { record in
          record.items.allSatisfy { !apps.isRemoved(AppIndex(Int32(max(oracle[$0].app, 0)))) }
        }.map(\.notBefore).max() ?? assigned.notBefore
      owned[id]?.notBefore = max(due, assigned.notBefore)
    }
    return records
  }

  private func deliver(_ record: LogRecord) {
    let (id, offset) = (record.record.source, record.record.offset)
    notePolled(record)
    guard let assigned = owned[id], !assigned.isLeaving else { return }
    let isRepeated = !broker.noteDelivery(of: record)
    for (index, item) in record.items.enumerated() {
      let isNamed = assigned.covers(offset, index, of: record.items.count)
      // The metadata speaks of another record that had this offset: it may be skipped, and nobody can tell.
      if isNamed, record.cuts > assigned.coveredCuts { oracle.lost(item, in: record) }
      if isNamed, record.cuts <= assigned.coveredCuts, !assigned.isRewound {
        // Unless another record stands for it, which came before.
        if carriers[item] == nil { covered.insert(item) }
      } else {
        covered.remove(item)
        // Which of the two a push of the item belongs to cannot be told from outside.
        if carriers[item] != nil { carriedTwice.insert(item) }
        carriers[item] = Carrier(
          partition: record.record.source, offset: record.record.offset, epoch: assigned.epoch,
          attempts: record.attempts, notBefore: record.notBefore, storedAt: record.record.timestamp)
        oracle.delivered(item, isRepeated: isRepeated)
      }
    }
  }

  private func handle(_ control: Control, _ moment: Moment) {
    switch control {
    case .assign(let ids): begin(ids)
    case .revoke(let ids, let isLost):
      world.note("\(name) must give back \(ids.count), lost: \(isLost)")
      for id in ids where owned[id]?.isLeaving == false { owned[id]?.leavingSince = moment.instant }
      let timeout = phase.timeToFinish(settings.limits.revocationTimeout, now: moment.instant)
      machine.revoke(ids, isLost: isLost, within: timeout, at: moment)
      isThrownOut = isLost
      let deadline = moment.instant + (isLost ? .zero : timeout)
      releaseDeadline = deadline
      releaseBound = deadline + CommitPlan.releaseTimeout + .milliseconds(500)
      wake()
    }
  }

  private func begin(_ ids: [PartitionID: Int]) {
    var starts: [(partition: PartitionID, committed: (offset: Int64, metadata: String)?)] = []
    for id in broker.partitions {
      guard let epoch = ids[id] else { continue }
      var committed = broker.log(id).committed
      if var known = committed, !known.metadata.isEmpty, world.strikes(.damagedMetadata) {
        known.metadata = damaged(known.metadata)
        committed = known
      }
      let covered = committed.map { LedgerCodec.decode($0.metadata, commitPoint: $0.offset) } ?? SettledOffsets()
      world.check(
        covered.isEmpty || committed?.metadata == broker.log(id).committed?.metadata, "damaged metadata is believed")
      let log = broker.log(id)
      let start = committed?.offset ?? log.start
      // Out of range: from the beginning. And what was written below it since, nobody will ever look for.
      let isOutOfRange = !log.has(start)
      if !isOutOfRange { broker.lose(id, before: start, newerThan: log.committedCuts) }
      owned[id] = Assigned(
        epoch: epoch, position: isOutOfRange ? log.start : start, start: committed?.offset ?? 0, covered: covered,
        coveredCuts: log.namedCuts,
        noticedCuts: log.cuts, bookCuts: log.cuts, committed: committed, isRewound: isOutOfRange)
      starts.append((id, committed))
      world.note("\(name) owns \(id) from \(start) on")
    }
    machine.assign(starts)
  }

  private func damaged(_ metadata: String) -> String {
    var bytes = Array(metadata.utf8)
    let place = world.random.uniform(below: bytes.count)
    if world.random.chance(0.3) {
      bytes.removeSubrange(place...)
    } else {
      bytes[place] = bytes[place] == 0x41 ? 0x42 : 0x41
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  // MARK: Commits

  func commit(_ moment: Moment) {
    if let release = machine.takeRelease(at: moment) {
      verifyHandover(release)
      world.check(!isThrownOut || release.commits.isEmpty, "\(name) commits what it has lost")
      let ticket = send(release.commits)
      plan.release(release.partitions, after: ticket, now: moment.instant)
    }
    if let partitions = plan.takeRelease(now: moment.instant) {
      releaseBound = nil
      for id in partitions { owned[id] = nil }
      group.released(self, partitions)
      if isThrownOut, isRunning { group.join(self) }
      isThrownOut = false
      wake()
    }
    guard mayCommit, plan.isDue(now: moment.instant) else { return }
    sendAll()
  }

  /// Commits all that has settled.
  func sendAll() {
    let commits = machine.takeCommits()
    // Of what is given back the last word was said; while it is on its way the machine has no book of that any more.
    let released = plan.release?.partitions ?? []
    for id in broker.partitions
    where owned[id] != nil && !released.contains(id) && group.owner(of: id) === self {
      let commit = commits.first { $0.partition == id }
      world.check(
        owned[id]?.mustCommit != true || owned[id]?.isRewound == true || commit != nil,
        "\(name) does not say again what a failed commit said of \(id)")
      verifySaid(id, by: commit, "commits \(id)")
    }
    send(commits)
  }

  var mayCommit: Bool { phase.mayCommit(isJoining: group.isJoining(self)) }

  @discardableResult
  func send(_ commits: [OffsetCommit]) -> UInt64 {
    let ticket = plan.begin(commits.map(\.partition))
    guard !commits.isEmpty else { return ticket }
    world.check(!group.isJoining(self), "\(name) commits while it joins its group, which may cost it its partitions")
    var fences: [PartitionID: Fence] = [:]
    for commit in commits {
      if let assigned = owned[commit.partition] {
        fences[commit.partition] = Fence(assigned)
        verify(commit, assigned)
        world.check(
          commit.offset >= assigned.committed?.offset ?? 0 || assigned.isRewound,
          "\(name) commits \(commit.offset) of \(commit.partition) after \(assigned.committed?.offset ?? 0)")
        owned[commit.partition]?.committed = (commit.offset, commit.metadata)
        owned[commit.partition]?.mustCommit = false
      } else {
        world.fail("\(name) commits \(commit.partition), which is not its own")
      }
    }
    answer(commits, ticket, fences)
    return ticket
  }

  /// Kafka's part of a commit: applied or not, heard of or not.
  private func answer(_ commits: [OffsetCommit], _ ticket: UInt64, _ fences: [PartitionID: Fence]) {
    let isLost = world.strikes(.commitLost)
    let isAnswerLost = world.strikes(.commitAnswerLost)
    let delay =
      world.strikes(.commitSlow)
      ? world.between(.seconds(1), .seconds(6)) : world.between(.milliseconds(2), .milliseconds(30))
    world.after(delay + broker.awayFor) { [self] in
      var failed: [PartitionID] = []
      for commit in commits {
        guard let fence = fences[commit.partition] else { continue }
        let isFenced =
          group.owner(of: commit.partition) !== self || group.epoch(of: commit.partition) != fence.epoch
        if !isFenced && !isLost { broker.commit(commit, fence) }
        if isFenced || isLost || isAnswerLost { failed.append(commit.partition) }
      }
      guard !isDead else { return }
      _ = plan.answered(ticket)
      for id in failed {
        machine.commitFailed(id)
        if owned[id]?.epoch == fences[id]?.epoch { owned[id]?.mustCommit = true }
      }
      wake()
    }
  }

  /// What is revoked must be given back when nothing of it is out, and not when the time is up.
  func checkRelease() {
    guard releaseBound != nil, plan.release == nil, !isThrownOut else { return }
    // Where an item came with two records, nobody can tell which of them is out.
    guard tracked.values.allSatisfy({ !carriedTwice.contains($0.item) }) else { return }
    let leaving = owned.filter { $0.value.isLeaving }
    let isOut = tracked.values.contains { push in
      (push.isOut || push.awaited != 0) && leaving[push.carrier.partition]?.epoch == push.carrier.epoch
    }
    world.check(isOut, "\(name) keeps what was revoked, though nothing of it is out")
  }

  private func isBusy(_ id: PartitionID) -> Bool {
    guard let epoch = owned[id]?.epoch else { return false }
    return tracked.values.contains { push in
      !carriedTwice.contains(push.item) && push.carrier.partition == id && push.carrier.epoch == epoch
        && (push.isOut || push.awaited != 0)
    }
  }

  /// What this machine knows to be stored when it gives a partition back must be in the commit that goes with it.
  private func verifyHandover(_ release: Release) {
    for id in release.partitions {
      let isOverdue = world.now >= releaseDeadline ?? world.now
      // A book that was begun anew knows nothing of what was out or settled before.
      guard let assigned = owned[id], !assigned.isRewound else { continue }
      world.check(
        isOverdue || !isBusy(id), "\(name) gives \(id) back while something of it is out")
      guard group.owner(of: id) === self else { continue }
      verifySaid(id, by: release.commits.first { $0.partition == id }, "gives \(id) back")
    }
  }

  /// A commit, or the one before where nothing has settled since, must say all that this machine knows to be stored: only
  /// what settles from then on may repeat.
  private func verifySaid(_ id: PartitionID, by commit: OffsetCommit?, _ what: String) {
    guard settings.limits.metadataBytes == LedgerCodec.maximumBytes, let assigned = owned[id], !assigned.isRewound
    else { return }
    let committed = commit.map { ($0.offset, $0.metadata) } ?? assigned.committed
    let named = committed.map { LedgerCodec.decode($0.1, commitPoint: $0.0) } ?? SettledOffsets()
    let log = broker.log(id)
    let position = log.place(of: assigned.position)
    // What the metadata named when the assignment began must be handed on, though it was not polled yet.
    let end = assigned.covered.isEmpty ? position : log.records.count
    for place in min(log.place(of: committed?.0 ?? 0), end)..<end {
      let record = log.records[place]
      // Where two records stand for one item, nobody here can tell which of them has settled.
      guard !record.items.isEmpty, record.items.allSatisfy({ oracle[$0].isUnrepeated }) else { continue }
      let isNamed = named.records.contains { $0.contains(record.record.offset) }
      let batch = named.batches.first { $0.offset == record.record.offset }
      for (index, item) in record.items.enumerated() {
        guard
          assigned.settled.contains(Part(offset: record.record.offset, item: item))
            || (record.cuts <= assigned.coveredCuts
              && assigned.covers(record.record.offset, index, of: record.items.count))
        else { continue }
        world.check(
          isNamed || batch?.items.contains(index) == true,
          "\(name) \(what) and does not say that item \(item) at \(record.record.offset) is settled")
      }
    }
  }
}
