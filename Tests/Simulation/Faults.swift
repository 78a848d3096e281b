import Wire

/// What can go wrong in a simulated run.
package enum Fault: String, CaseIterable, Sendable {
  case produceSlow, produceLost, produceAckLost, tooLarge, neverStorable, queueFull
  case commitLost, commitAnswerLost, commitSlow, damagedMetadata, rebalance, sessionLost
  case offsetReset, truncation, topicRemade, partitionsAdded, brokersAway
  case crash, restart, reload
  case badRecords, offsetGaps, batches, expirations
  case refused, handshake, blackHole, silent, throttled, serverErrors, badCredentials, slowAnswers
  case goAway, connectionReset, streamReset, streamLimit, deadTokens, outputFull, tokenGone

  /// Whose trouble it is.
  package enum Kind: String, CaseIterable, Sendable {
    case producing = "Kafka, as a producer meets it"
    case group = "Kafka, as a member of the group meets it"
    case replicas = "the replicas"
    case requests = "what is asked for"
    case apple = "Apple"
  }

  package var kind: Kind {
    switch self {
    case .produceSlow, .produceLost, .produceAckLost, .tooLarge, .neverStorable, .queueFull: .producing
    case .commitLost, .commitAnswerLost, .commitSlow, .damagedMetadata, .rebalance, .sessionLost, .offsetReset,
      .truncation, .topicRemade, .partitionsAdded, .brokersAway:
      .group
    case .crash, .restart, .reload: .replicas
    case .badRecords, .offsetGaps, .batches, .expirations: .requests
    case .refused, .handshake, .blackHole, .silent, .throttled, .serverErrors, .badCredentials, .slowAnswers, .goAway,
      .connectionReset, .streamReset, .streamLimit, .deadTokens, .outputFull, .tokenGone:
      .apple
    }
  }
}

/// Which faults a run has, and how likely each is each time that it could strike.
///
/// A run has about half of the faults, each with a weight of its own ("swarm testing"): with all of them at once, many
/// states that a few of them lead to would never be reached.
struct FaultPlan: Sendable {
  private(set) var weights: [Fault: Double] = [:]

  init(random: inout SeededRandom, allowed: (Fault) -> Bool) {
    for fault in Fault.allCases {
      let isOn = random.chance(0.5)
      let factor = random.unit()
      if isOn, allowed(fault) { weights[fault] = Self.likelihood(fault) * (0.1 + 1.9 * factor * factor) }
    }
  }

  private static func likelihood(_ fault: Fault) -> Double {
    switch fault {
    case .produceSlow, .produceLost, .produceAckLost: 0.05
    case .tooLarge, .neverStorable: 0.03
    case .queueFull: 0.5
    case .commitLost, .commitAnswerLost, .commitSlow: 0.2
    case .damagedMetadata: 0.3
    case .rebalance: 0.15
    case .sessionLost, .crash, .restart, .reload: 0.05
    case .offsetReset, .topicRemade: 0.01
    case .truncation, .partitionsAdded, .brokersAway: 0.03
    case .badRecords, .offsetGaps, .batches, .expirations: 0.15
    // A mood that the server of a sick app may come into.
    case .refused, .handshake, .blackHole, .silent, .throttled, .serverErrors, .badCredentials, .slowAnswers: 0.5
    case .goAway, .connectionReset: 0.004
    case .streamReset: 0.02
    case .streamLimit: 0.02
    case .deadTokens: 0.05
    case .outputFull: 0.01
    // A connection's provider token is kept no longer.
    case .tokenGone: 0.003
    }
  }
}

/// The shape of a run, drawn from its seed.
struct Scenario {
  enum Kind: String {
    /// Anything may happen.
    case swarm
    /// Only Apple's side of some apps is sick; the others must not notice.
    case isolation
  }

  var kind: Kind
  var faults: FaultPlan
  var partitions: Int
  var deferredPartitions: Int
  var replicas: Int
  var isCooperative: Bool
  var apps: Int
  /// Apps whose server may be in a bad mood; the others' servers are always well.
  var sickApps: Int
  var requests: Int
  /// How long requests keep coming, and the faults.
  var duration: Duration
  /// At most one request of a record key is out at a time.
  var isOrderedByKey: Bool
  var random: SeededRandom

  /// Whether the order of each key must hold from the first request to the last: one replica keeps all in mind, no
  /// record is read twice nor parked twice, and no app is so sick that its requests are parked again and again.
  var isOrderStrict: Bool {
    isOrderedByKey && replicas == 1 && sickApps == 0 && Self.repeating.allSatisfy { faults.weights[$0] == nil }
  }

  private static let repeating: [Fault] = [
    .crash, .restart, .sessionLost, .offsetReset, .rebalance, .damagedMetadata, .commitLost, .commitAnswerLost,
    .produceLost, .produceAckLost, .tooLarge, .neverStorable, .batches, .truncation, .topicRemade, .partitionsAdded,
    // What waits for its acknowledgement may be parked again, and then it can be overtaken.
    .brokersAway,
  ]

  init(seed: UInt64, without disabled: Set<Fault>) {
    var random = SeededRandom(seed: seed ^ 0x5ca1_ab1e)
    let kind: Kind = random.chance(0.2) ? .isolation : .swarm
    self.kind = kind
    // A healthy app with few keys would be slow by itself.
    let isOrderedByKey = random.chance(0.35) && kind == .swarm
    self.isOrderedByKey = isOrderedByKey
    let isAlone = kind == .isolation || random.chance(0.4)
    faults = FaultPlan(random: &random) { fault in
      !disabled.contains(fault) && (kind == .swarm || Scenario.isOfApple(fault))
        && !(isOrderedByKey && isAlone && Scenario.repeating.contains(fault))
    }
    partitions = 1 + random.uniform(below: 5)
    deferredPartitions = 1 + random.uniform(below: 2)
    replicas = isAlone ? 1 : 2 + random.uniform(below: 2)
    isCooperative = random.chance(0.5)
    apps = 2 + random.uniform(below: 4)
    sickApps = kind == .isolation ? 1 + random.uniform(below: apps - 1) : random.uniform(below: apps + 1)
    requests = 50 + random.uniform(below: 350)
    duration = .seconds(10 + random.uniform(below: 50))
    self.random = random
  }

  /// Faults that only the requests and the servers of sick apps can show.
  private static func isOfApple(_ fault: Fault) -> Bool {
    switch fault {
    case .refused, .handshake, .blackHole, .silent, .throttled, .serverErrors, .badCredentials, .slowAnswers,
      .deadTokens, .offsetGaps, .badRecords, .streamReset:
      true
    default: false
    }
  }
}
