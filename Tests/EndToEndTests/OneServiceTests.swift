import APNs
import MockAPNs
import Service
import TestSupport
import Testing
import Transport
import Wire

/// What one running service does for many apps at once; each test has an app of its own, with an APNs of its own.
@Suite(InOneWorld(plan: .ofOneService), .timeLimit(.minutes(3)))
struct OneServiceTests {
  static func world() throws -> World { try #require(InOneWorld.current).world }
  static func service() throws -> RunningService { try #require(InOneWorld.current).service }
}

extension Plan {
  private static func delay(_ milliseconds: Int) -> Script.Rule {
    Script.Rule(.delay(.milliseconds(milliseconds), upTo: .milliseconds(milliseconds)))
  }

  private static func goAway(_ last: Script.LastStream) -> Script {
    let action = Script.Action.goAway(code: HTTP2Code.noError, last: last, debugData: "", closes: false)
    return Script([Script.Rule(Script.Condition(afterRequests: 30, times: 1), action), delay(30)])
  }

  fileprivate static var ofOneService: Plan {
    var plan = Plan([
      Plan.Server(name: "contract", script: .wellKnown),
      Plan.Server(name: "teams"),
      Plan.Server(name: "narrow", script: Script([delay(20)]), streams: (1, 7)),
      Plan.Server(name: "wide", script: Script([delay(300)]), streams: (1, 1000)),
      Plan.Server(
        name: "flaky", script: Script([Script.Rule(Script.Condition(times: 1), .answer(Answer(.serviceUnavailable)))])),
      Plan.Server(name: "goaway-newest", script: goAway(.newest)),
      Plan.Server(name: "goaway-previous", script: goAway(.previous)),
      Plan.Server(
        name: "aborting",
        script: Script([
          Script.Rule(Script.Condition(connection: 1, every: 40, times: 1), .abort),
          Script.Rule(Script.Condition(connection: 2, every: 40, times: 1), .abort), delay(50),
        ])),
      Plan.Server(
        name: "refusing",
        script: Script([Script.Rule(Script.Condition(every: 3), .reset(code: HTTP2Code.refusedStream))])),
      Plan.Server(
        name: "silent", script: Script([Script.Rule(Script.Condition(tokenPrefix: "51", times: 3), .silence)]),
        streams: (1000, 1000)),
    ]) { settings in
      settings.delivery.requestTimeout = .seconds(4)
    }
    plan.apps.append(Plan.App(name: "shop", team: 2, server: "teams"))
    plan.apps.append(Plan.App(name: "news", team: 2, server: "teams"))
    plan.apps.append(Plan.App(name: "bank", team: 3, server: "teams"))
    return plan
  }
}
