import Synchronization
import Testing
import Wire

@testable import Service

struct HealthAnswerTests {
  private static func state(
    turned: Duration = .seconds(1), configured: Bool = true, joined: Bool = true, draining: Bool = false,
    apps: [HealthState.App] = [HealthState.App(name: "a", fault: nil)]
  ) -> HealthState {
    let now = Instant(nanoseconds: 100_000_000_000)
    return HealthState(
      now: now,
      loops: [
        .init(name: "delivery", lastTurn: now),
        .init(name: "lane 0", lastTurn: Instant(nanoseconds: now.nanoseconds - turned.nanoseconds)),
      ], longestTurn: .seconds(15), isConfigured: configured, hasJoinedGroup: joined, isDraining: draining, apps: apps)
  }

  private static func body(_ answer: EndpointAnswer) -> String { String(decoding: answer.body, as: UTF8.self) }

  @Test
  func loopsThatTurnAreLive() {
    let answer = HealthAnswer.live(Self.state())
    #expect(answer.status == 200)
    #expect(answer.contentType == "application/json")
    #expect(
      Self.body(answer)
        == #"{"status":"live","checks":[{"check":"loop delivery","ok":true},{"check":"loop lane 0","ok":true}]}"# + "\n"
    )
  }

  @Test
  func anAppWithANoteIsServedAndNamed() {
    let board = HealthBoard()
    board.setApps([HealthState.App(name: "a", fault: nil)])
    board.setJoinedGroup(true)
    board.setNote("look", ofApp: "a")
    // A reload keeps it.
    board.setApps([HealthState.App(name: "a", fault: nil), HealthState.App(name: "b", fault: nil)])
    let answer = HealthAnswer.ready(board.snapshot(at: Instant(nanoseconds: 0)))
    #expect(answer.status == 200)
    #expect(Self.body(answer).contains(#","notes":[{"app":"a","note":"look"}]}"#))
    board.setNote(nil, ofApp: "a")
    #expect(!Self.body(HealthAnswer.ready(board.snapshot(at: Instant(nanoseconds: 0)))).contains("notes"))
  }

  @Test
  func whatKafkaRefusesMakesAReplicaUnreadyUntilItIsOver() {
    let board = HealthBoard()
    board.setApps([HealthState.App(name: "a", fault: nil)])
    board.setJoinedGroup(true)
    let time = { (seconds: Int64) in Instant(nanoseconds: seconds * 1_000_000_000) }
    let ready = { (seconds: Int64) in HealthAnswer.ready(board.snapshot(at: time(seconds))) }
    board.setKafkaFault("bad password", of: "consumer", at: time(100))
    #expect(ready(101).status == 503)
    #expect(Self.body(ready(101)).contains(#"{"check":"kafka","ok":false,"why":"bad password"}"#))
    // It would have been told again.
    #expect(ready(146).status == 200)
    board.setKafkaFault("bad password", of: "consumer", at: time(200))
    board.setKafkaFault("no such topic", of: "topic results", at: nil)
    #expect(Self.body(ready(201)).contains(#""why":"bad password; no such topic""#))
    board.setKafkaFault(nil, of: "consumer", at: nil)
    #expect(Self.body(ready(100_000)).contains(#""why":"no such topic""#))
    board.setKafkaFault(nil, of: "topic results", at: nil)
    #expect(ready(201).status == 200)
  }

  @Test
  func aStuckLoopIsNamed() {
    let answer = HealthAnswer.live(Self.state(turned: .seconds(16)))
    #expect(answer.status == 503)
    #expect(
      Self.body(answer).contains(
        #"{"check":"loop lane 0","ok":false,"why":"has not turned for 16.000 s, allowed are 15.000 s"}"#))
  }

  @Test
  func livenessDependsOnNothingOutside() {
    let state = Self.state(configured: false, joined: false, draining: true, apps: [])
    #expect(HealthAnswer.live(state).status == 200)
  }

  @Test
  func readyWhenAllIsWell() { #expect(HealthAnswer.ready(Self.state()).status == 200) }

  @Test(arguments: [
    (state(configured: false), #""check":"configuration","ok":false,"why":"not loaded""#),
    (state(joined: false), #""check":"consumer group","ok":false,"why":"not joined""#),
    (state(draining: true), #""check":"service","ok":false,"why":"draining""#),
    (state(apps: []), #""check":"apps","ok":false,"why":"none are configured""#),
    (state(apps: [.init(name: "a", fault: "key \"x\" refused")]), #""apps":[{"app":"a","why":"key \"x\" refused"}]"#),
  ])
  func notReadySaysWhatAndWhy(state: HealthState, part: String) {
    let answer = HealthAnswer.ready(state)
    #expect(answer.status == 503)
    #expect(Self.body(answer).contains(part), "\(Self.body(answer))")
  }

  @Test
  func oneUsableAppIsEnoughAndTheOthersAreNamed() {
    let apps = (0..<100).map { HealthState.App(name: "bad\($0)", fault: "refused") } + [.init(name: "good", fault: nil)]
    let answer = HealthAnswer.ready(Self.state(apps: apps))
    #expect(answer.status == 200)
    #expect(Self.body(answer).contains(#""faulty_apps":100"#))
    #expect(!Self.body(answer).contains("bad99"))
  }

  private static func routes(_ switches: EndpointSwitches = EndpointSwitches()) -> EndpointRoutes {
    EndpointRoutes(
      switches,
      metrics: { format in
        MetricsAnswer.answer(Registry(versions: .test).snapshot(), health: state(), process: nil, as: format)
      },
      health: { state(apps: [.init(name: "secret-app", fault: "refused")]) },
      status: { .json(200, Array("{}".utf8)) })
  }

  @Test
  func theStatusPageCanBeSwitchedOff() {
    let routes = Self.routes(EndpointSwitches(statusPage: false))
    for path in ["/", "/status.json"] {
      let answer = routes.answer(EndpointRequest(path))
      #expect(answer.status == 404)
      #expect(!Self.body(answer).contains("status"))
    }
    #expect(routes.answer(EndpointRequest("/metrics")).status == 200)
  }

  @Test(arguments: ["/readyz", "/healthz"])
  func detailsOfHealthCanBeSwitchedOff(path: String) {
    #expect(Self.body(Self.routes().answer(EndpointRequest(path))).contains("checks"))
    let answer = Self.routes(EndpointSwitches(healthDetails: false)).answer(EndpointRequest(path))
    #expect(answer.status == (path == "/readyz" ? 503 : 200))
    #expect(Self.body(answer) == (path == "/readyz" ? "{\"status\":\"not ready\"}\n" : "{\"status\":\"live\"}\n"))
  }

  @Test(arguments: [
    ("GET", "/healthz", 200), ("HEAD", "/readyz?verbose=1", 503), ("GET", "/metrics", 200), ("POST", "/metrics", 405),
    ("GET", "/", 200), ("HEAD", "/?x", 200), ("GET", "/status.json", 200), ("PUT", "/", 405), ("GET", "/index", 404),
    ("GET", "/metrics/", 404), ("DELETE", "/x", 404),
  ])
  func pathsLeadToTheirAnswers(method: String, target: String, status: Int) {
    let answer = Self.routes().answer(EndpointRequest(target, method: method))
    #expect(answer.status == status)
    if status == 404 { for path in Self.routes().paths { #expect(Self.body(answer).contains(path)) } }
    if status == 405 { #expect(answer.headers.map(\.name) == ["Allow"]) }
  }

  @Test
  func theBoardGathersWhatItIsTold() {
    let board = HealthBoard(longestTurn: .seconds(15))
    let start = Instant(nanoseconds: 0)
    let turn = Atomic<Int64>(0)
    board.watch("delivery") { Instant(nanoseconds: turn.load(ordering: .relaxed)) }
    #expect(HealthAnswer.ready(board.snapshot(at: start)).status == 503)
    board.setApps([.init(name: "a", fault: nil)])
    board.setJoinedGroup(true)
    #expect(HealthAnswer.ready(board.snapshot(at: start)).status == 200)
    board.setFault("refused", ofApp: "a")
    #expect(HealthAnswer.ready(board.snapshot(at: start)).status == 503)
    let later = start + .seconds(20)
    #expect(HealthAnswer.live(board.snapshot(at: later)).status == 503)
    turn.store(later.nanoseconds, ordering: .relaxed)
    #expect(HealthAnswer.live(board.snapshot(at: later)).status == 200)
    board.setFault(nil, ofApp: "a")
    board.setDraining()
    #expect(HealthAnswer.ready(board.snapshot(at: later)).status == 503)
  }
}
