import Kafka
import Service
import Wire

/// One run of `martlet produce`: what was published, what was refused and why.
struct ProduceRun {
  /// So many refusals are told one by one; further ones are counted.
  static let mostTold = 20
  /// So many kinds of refusal are told apart.
  static let mostKinds = 50

  private var judge: RequestJudge
  /// `nil`: a trial run.
  private let publisher: RequestPublisher?
  private(set) var good = 0
  private(set) var published = 0
  private(set) var failed = 0
  private(set) var refused = 0
  private(set) var stoppedAt: Int?
  /// Refusals by their rule.
  private(set) var reasons: [String: Int] = [:]
  private var withUnknownFields = 0
  /// Where records went, for a run with few.
  private var places: [String] = []
  private var source = ""
  private var isTold = false

  init(judge: RequestJudge, publisher: RequestPublisher?) {
    self.judge = judge
    self.publisher = publisher
  }

  var exitCode: ExitCode { failed > 0 || stoppedAt != nil ? .unavailable : refused > 0 ? .badData : .ok }

  // MARK: From options

  mutating func take(_ requests: [NotificationOptions.Request]) {
    for (index, request) in requests.enumerated() {
      switch judge.judge(RecordBody(key: nil, value: request.value)) {
      case .refused(let message): refuse(NotificationOptions.inOptionTerms(message), at: nil)
      case .good(let storage, let value, let key, _):
        good += 1
        if publisher == nil { Console.out(String(decoding: request.value, as: UTF8.self)) }
        publish(storage, key, value, at: index)
      }
    }
    isTold = true
  }

  // MARK: From lines

  mutating func take(_ lines: consuming LineReader, named name: String, progress: consuming ProgressBar?) throws {
    source = name
    var bar = progress
    var sinceLook = 0
    reading: while !StopSignal.isSet {
      switch try lines.next() {
      case .line(let line, let number): take(line, number)
      case .tooLong(let number): refuse("the line is longer than 4 MiB", at: number)
      case .pause: sinceLook = .max - 1
      case .end: break reading
      }
      sinceLook += 1
      guard sinceLook >= 500 else { continue }
      sinceLook = 0
      look()
      bar?.show(bytes: lines.bytes, done: good, refused: refused, at: ServiceClock.now().instant)
      if failed > 0, published == 0 { break }
    }
    bar?.clear()
    if StopSignal.isSet { stoppedAt = good + refused }
  }

  private mutating func take(_ line: [UInt8], _ number: Int) {
    let range = ByteRange(0, line.count)
    switch judge.judge(RecordBody(storage: line, key: nil, value: range)) {
    case .refused(let message): refuse(message, at: number)
    case .good(let storage, let value, let key, let unknownFields):
      good += 1
      if unknownFields > 0 { withUnknownFields += 1 }
      publish(storage, key, value, at: number)
    }
  }

  private mutating func publish(_ storage: [UInt8], _ key: ByteRange?, _ value: ByteRange, at number: Int) {
    guard let publisher else { return }
    if let error = publisher.publish(storage, key: key, value: value, ticket: number) {
      fail(error, at: number, publisher)
    }
  }

  private mutating func refuse(_ message: String, at line: Int?) {
    refused += 1
    let rule = message.split(separator: ";", maxSplits: 1).first.map(String.init) ?? message
    if reasons[rule] != nil || reasons.count < Self.mostKinds { reasons[rule, default: 0] += 1 }
    guard refused <= Self.mostTold else { return }
    Console.error(line.map { "\(source):\($0): \(message)" } ?? "martlet produce: \(message)")
    if refused == Self.mostTold { Console.error("(further refusals are only counted)") }
  }

  private mutating func fail(_ error: KafkaError, at line: Int, _ publisher: RequestPublisher) {
    failed += 1
    guard failed <= 3 else { return }
    let place = source.isEmpty ? "martlet produce" : "\(source):\(line)"
    Console.error("\(place): not published: \(publisher.explain(error))")
  }

  // MARK: The end

  private mutating func look() {
    guard let publisher else { return }
    for receipt in publisher.receipts() {
      switch receipt.outcome {
      case .success(let place):
        published += 1
        if isTold { places.append("[\(place.partition)]" + (place.offset.map { " offset \($0)" } ?? "")) }
      case .failure(let error): fail(error, at: receipt.ticket, publisher)
      }
    }
  }

  /// Waits until Kafka has answered for every record; each is answered for within its timeout.
  mutating func finish() {
    guard let publisher else { return }
    while !publisher.wait() { look() }
    look()
  }

  func summary(topic: String) -> String {
    var lines: [String] = []
    if publisher == nil {
      if source.isEmpty { return refused == 0 ? "the request is good; nothing was published" : "nothing was published" }
      lines.append("\(Self.count(good, "request")) good, \(refused) refused; nothing was published")
    } else {
      let rest = (refused > 0 ? ", \(refused) refused" : "") + (failed > 0 ? ", \(failed) failed" : "")
      lines.append("\(Self.count(published, "request")) published to \(topic)\(places.joined(separator: ", "))\(rest)")
    }
    if refused > 1 {
      for (rule, count) in reasons.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
        lines.append("  \(count) refused: \(rule)")
      }
    }
    if withUnknownFields > 0 {
      lines.append("\(Self.count(withUnknownFields, "request")) with fields that the contract does not know")
    }
    if let stoppedAt { lines.append("stopped by a signal after \(Self.count(stoppedAt, "request"))") }
    return lines.joined(separator: "\n")
  }

  private static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

  /// `ok`, `topic`, the counts, and refusals by rule.
  func json(topic: String) -> String {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("ok")
    writer.bool(exitCode == .ok)
    writer.key("topic")
    writer.string(topic)
    for (name, value) in [("good", good), ("published", published), ("refused", refused), ("failed", failed)] {
      writer.key(name)
      writer.integer(value)
    }
    writer.key("reasons")
    writer.beginObject()
    for (rule, count) in reasons.sorted(by: { $0.key < $1.key }) {
      writer.key(rule)
      writer.integer(count)
    }
    writer.endObject()
    writer.endObject()
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
