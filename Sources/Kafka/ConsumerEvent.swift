package import Wire

/// What a poll of the consumer can bring beside records.
package enum ConsumerEvent: Sendable {
  /// The group gives these partitions to us. Nothing is fetched, and the group waits, until `Consumer.assign` is
  /// called: also with an empty list.
  ///
  /// With an eager assignor this is the whole assignment; with a cooperative one, what comes in addition.
  case assign([PartitionID])

  /// The group wants these partitions back, and waits until `Consumer.unassign` is called, for `max.poll.interval.ms`
  /// at the most. Before that is the time to commit.
  ///
  /// Until the answer the library fetches from no partition at all, also from those that stay: a slow answer is a
  /// stall. What it fetched before may still be polled.
  ///
  /// `lost` partitions may already belong to another member: a commit would be refused. They must be unassigned all
  /// the same.
  case revoke([PartitionID], lost: Bool)

  /// The answer to `Consumer.commit(_:ticket:)`.
  case committed(CommitResult)

  /// An error of the client, of the group or of a partition. Unless it is fatal the library goes on trying.
  case error(KafkaError)
}

/// What became of a commit.
package struct CommitResult: Sendable {
  /// One partition's part of it.
  package struct Entry: Sendable {
    package var partition: PartitionID
    /// The offset that was to be committed.
    package var offset: Int64
    /// `nil` when it is committed.
    package var error: KafkaError?
  }

  /// As given to `commit`.
  package var ticket: UInt64
  /// The failure of the commit as a whole; then no entry is committed. `rebalanceInProgress`, `illegalGeneration` and
  /// `unknownMember` are everyday matters around a rebalance.
  package var error: KafkaError?
  package var entries: [Entry]
}

/// What a group has committed for one partition.
package struct CommittedOffset: Hashable, Sendable {
  package var partition: PartitionID
  /// `nil` when nothing is committed.
  package var offset: Int64?
  package var metadata: String
}

/// Where a partition is to be read from.
package struct StartingPoint: Hashable, Sendable {
  package var partition: PartitionID
  /// `nil`: from the committed offset, or as `auto.offset.reset` says where there is none. Or one of those below.
  package var offset: Int64?

  /// In place of an offset: the first record that there is.
  package static let beginning: Int64 = -2
  /// In place of an offset: after the last record that there is.
  package static let end: Int64 = -1

  package init(partition: PartitionID, offset: Int64? = nil) {
    self.partition = partition
    self.offset = offset
  }
}

/// The first and the next offset of a partition's log, as the last fetch showed them.
package struct Watermarks: Hashable, Sendable {
  package var low: Int64
  package var high: Int64
}
