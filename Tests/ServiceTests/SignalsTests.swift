import Glibc
import Testing

@testable import Service

struct SignalsTests {
  @Test
  func theSecondRequestToStopIsNotTheFirst() {
    var policy = SignalPolicy()
    #expect(policy.receive(SIGHUP) == .reload)
    #expect(policy.receive(SIGTERM) == .drain)
    #expect(policy.receive(SIGHUP) == .reload)
    #expect(policy.receive(SIGINT) == .exitNow(signal: SIGINT))
    #expect(policy.receive(SIGUSR1) == nil)
  }

  @Test
  func signalsOfTheProcessArrive() async {
    let (stream, continuation) = AsyncStream.makeStream(of: SignalRequest.self)
    #expect(Signals.install { continuation.yield($0) })
    #expect(!Signals.install { _ in })
    // Whoever stops the test run must still be heard.
    defer { for signal in [SIGTERM, SIGINT, SIGHUP] { _ = Glibc.signal(signal, SIG_DFL) } }
    var requests = stream.makeAsyncIterator()
    kill(getpid(), SIGHUP)
    #expect(await requests.next() == .reload)
    kill(getpid(), SIGTERM)
    #expect(await requests.next() == .drain)
    kill(getpid(), SIGTERM)
    #expect(await requests.next() == .exitNow(signal: SIGTERM))
    // SIGPIPE's default would end the process here.
    kill(getpid(), SIGPIPE)
  }
}
