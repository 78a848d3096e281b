import Glibc
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

/// What must hold with and without TLS.
enum Cover: CaseIterable, Sendable {
  case plain
  case tls

  func contexts() throws -> (client: TLSContext?, server: TLSContext?) {
    guard self == .tls else { return (nil, nil) }
    let authority = try CertificateAuthority(name: "Root")
    let server = try TLSContext.server(identity: try authority.issueServer(names: ["127.0.0.1", "localhost"]))
    return (try TLSContext.client(trust: .pem(try authority.pem())), server)
  }
}

@Suite struct ByteStreamTests {
  @Test(arguments: Cover.allCases)
  func largeTransfersBothWaysArriveWhole(_ cover: Cover) throws {
    let fixture = try LoopFixture()
    let (client, server) = try cover.contexts()
    let listener = try fixture.listen(tls: server) { echo() }
    let data = pattern(5_000_000)
    let recorder = Recorder(
      opened: { stream in stream.write(data.span) },
      received: { _, _ in })
    fixture.connect(to: listener.endpoint, tls: client, recorder)
    #expect(recorder.log.wait { $0.count >= data.count || $0.closed > 0 })
    let log = recorder.log.value
    #expect(log.bytes == data)
    #expect(log.opened == 1 && log.closed == 0)
    #expect(log.applicationProtocol == (cover == .tls ? "h2" : nil))
    #expect(log.roomTold >= 1)
    listener.close()
  }

  @Test(arguments: Cover.allCases)
  func anOrderlyCloseDeliversEverythingFirst(_ cover: Cover) throws {
    let fixture = try LoopFixture()
    let (client, server) = try cover.contexts()
    let sink = Recorder()
    let listener = try fixture.listen(tls: server) { sink }
    let data = pattern(1_000_000)
    let recorder = Recorder(opened: { stream in
      stream.write(data.span)
      stream.close()
      write("dropped", to: stream)
    })
    fixture.connect(to: listener.endpoint, tls: client, recorder)
    let ours = try #require(recorder.waitForEnd())
    let theirs = try #require(sink.waitForEnd())
    #expect(theirs.bytes == data)
    #expect(ours.error == nil && theirs.error == nil)
    #expect(ours.closed == 1 && theirs.closed == 1)
    #expect(ours.callsAfterClose == 0 && theirs.callsAfterClose == 0)
  }

  @Test(arguments: Cover.allCases)
  func anAnswerToAPeerThatHasShutItsSideStillGoesOut(_ cover: Cover) throws {
    let fixture = try LoopFixture()
    let (client, server) = try cover.contexts()
    let answer = pattern(700_000)
    let listener = try fixture.listen(tls: server) {
      Recorder(received: { stream, _ in stream.write(answer.span) })
    }
    let recorder = Recorder(opened: { stream in
      write("question", to: stream)
      stream.flush()
      // Only our side of TCP (and TLS) is shut; the stream goes on reading.
      if let tls = stream.tls {
        tls.close()
        stream.flush()
      }
      Socket.shutdownWriting(stream.descriptor)
    })
    fixture.connect(to: listener.endpoint, tls: client, recorder)
    let log = try #require(recorder.waitForEnd())
    #expect(log.bytes == answer)
    #expect(log.error == nil)
  }

  @Test(arguments: Cover.allCases)
  func anAbortByThePeerIsToldOnceAsAReset(_ cover: Cover) throws {
    let fixture = try LoopFixture()
    let (client, server) = try cover.contexts()
    let listener = try fixture.listen(tls: server) { Recorder(received: { stream, _ in stream.abort() }) }
    let recorder = Recorder(opened: { stream in write("hello", to: stream) })
    fixture.connect(to: listener.endpoint, tls: client, recorder)
    let log = try #require(recorder.waitForEnd())
    #expect(log.closed == 1 && log.callsAfterClose == 0)
    #expect(log.error?.kind == .reset)
    #expect(log.error?.grade == .transient)
  }

  @Test(arguments: Cover.allCases)
  func aPeerThatDoesNotReadDoesNotMakeTheOutputGrow(_ cover: Cover) throws {
    let fixture = try LoopFixture()
    let (client, server) = try cover.contexts()
    let slow = Monitor<ByteStream?>(nil)
    let reader = Recorder(
      keepsBytes: false,
      opened: { stream in
        stream.pauseReading()
        slow.update { $0 = stream }
      })
    let listener = try fixture.listen(tls: server) { reader }
    let chunk = pattern(16 * 1024)
    let total = 40_000_000
    let produced = Monitor((count: 0, most: 0))
    @Sendable func produce(_ stream: ByteStream) {
      while stream.hasRoom && produced.value.count < total {
        stream.write(chunk.span)
        produced.update { state in
          state.count += chunk.count
          state.most = max(state.most, stream.bufferedOutput)
        }
      }
    }
    let recorder = Recorder(opened: { produce($0) }, hasRoom: { produce($0) })
    fixture.connect(to: listener.endpoint, tls: client, recorder)
    #expect(slow.wait { $0 != nil })
    // It stops: the kernel's buffers and ours are full.
    var last = 0
    var looksWithoutChange = 0
    #expect(
      waitUntil {
        let count = produced.value.count
        looksWithoutChange = count == last ? looksWithoutChange + 1 : 0
        last = count
        return looksWithoutChange >= 25 && count > 0
      })
    #expect(produced.value.count < total)
    fixture.loop.execute { slow.update { $0 }?.resumeReading() }
    #expect(reader.log.wait { $0.count >= total })
    #expect(produced.value.most <= ByteStream.highWaterMark + chunk.count + 64 * 1024)
    slow.update { $0 = nil }
  }

  @Test func aRefusedConnectionIsTold() throws {
    let fixture = try LoopFixture()
    let listener = try fixture.listen { echo() }
    listener.close()
    _ = fixture.onLoop { true }
    let recorder = Recorder()
    fixture.connect(to: listener.endpoint, recorder)
    let log = try #require(recorder.waitForEnd())
    #expect(log.error?.kind == .connect)
    #expect(log.error?.code == UInt(ECONNREFUSED))
    #expect(log.error?.subject == listener.endpoint.description)
  }

  @Test func aNameWithADeadAddressIsReachedAtTheNextOne() throws {
    let fixture = try LoopFixture()
    // Only IPv4 listens; where "localhost" is ::1 too, that address is refused.
    let listener = try fixture.listen { echo() }
    for _ in 0..<4 {
      let recorder = Recorder(
        opened: { stream in write("x", to: stream) }, received: { stream, _ in stream.close() })
      fixture.connect(to: Endpoint(host: "localhost", port: listener.endpoint.port), recorder)
      #expect(try #require(recorder.waitForEnd()).count == 1)
    }
  }

  @Test func connectionAttemptsThatHangAreOvertakenByTheNext() throws {
    let fixture = try LoopFixture()
    let listener = try fixture.listen { echo() }
    // A listener whose backlog is full answers no further attempt, as a dead host does.
    guard case .value(let deaf) = Socket.make(family: AF_INET) else { return }
    var attempts = [deaf]
    defer { for attempt in attempts { Syscalls.close(attempt) } }
    let any = try Resolver.passiveAddresses(of: "127.0.0.1", port: 0)[0]
    #expect(unsafe any.withPointer { unsafe bind(deaf, $0, $1) } == 0)
    #expect(listen(deaf, 0) == 0)
    let dead = try #require(Socket.localAddress(deaf))
    for _ in 0..<3 {
      guard case .value(let attempt) = Socket.make(family: AF_INET) else { continue }
      attempts.append(attempt)
      _ = Socket.connect(attempt, to: dead)
    }
    let live = try Resolver.passiveAddresses(of: "127.0.0.1", port: listener.endpoint.port)[0]
    let winner = Monitor<UInt16?>(nil)
    let keep = Monitor<Connector?>(nil)
    fixture.loop.execute { [loop = fixture.loop] in
      let connector = Connector(loop: loop, addresses: [dead, live], of: listener.endpoint) { result in
        guard case .success(let descriptor) = result else { return }
        let port = Socket.peerAddress(descriptor)?.endpoint?.port
        Syscalls.close(descriptor)
        winner.update { $0 = port }
      }
      keep.update { $0 = connector }
    }
    #expect(winner.wait { $0 != nil })
    #expect(winner.value == listener.endpoint.port)
  }

  @Test func aHandshakeThatIsNeverAnsweredEndsAtItsDeadline() throws {
    let fixture = try LoopFixture()
    let (client, _) = try Cover.tls.contexts()
    let listener = try fixture.listen { Recorder() }
    let recorder = Recorder()
    fixture.connect(to: listener.endpoint, tls: client, within: .milliseconds(100), recorder)
    let log = try #require(recorder.waitForEnd())
    #expect(log.opened == 0)
    #expect(log.error?.kind == .timedOut)
    #expect(log.error?.cause.contains("handshake") == true)
  }

  @Test func aUnixSocketCarriesAStream() throws {
    let fixture = try LoopFixture()
    let directory = try TemporaryFiles()
    let endpoint = Endpoint(unixPath: directory.path(of: "socket"))
    let listener = try fixture.listen(at: endpoint) { echo() }
    let recorder = Recorder(opened: { stream in write("hello", to: stream) })
    fixture.connect(to: listener.endpoint, recorder)
    #expect(recorder.log.wait { $0.count == 5 })
    #expect(listener.endpoint == endpoint)
  }

  @Test func aPortInUseIsAnErrorThatNamesIt() throws {
    let fixture = try LoopFixture()
    let listener = try fixture.listen { echo() }
    let error = try #require(throws: TransportError.self) {
      _ = try fixture.listen(at: listener.endpoint) { echo() }
    }
    #expect(error.kind == .bind && error.code == UInt(EADDRINUSE))
    #expect(error.subject == listener.endpoint.description)
  }

  @Test func aListenerKeepsToItsLimitAndGoesOnWhenAPlaceIsFree() throws {
    let fixture = try LoopFixture()
    let listener = try fixture.listen(limit: 2) { echo() }
    let streams = Monitor<[ByteStream]>([])
    let recorders = (0..<5).map { _ in
      Recorder(opened: { stream in
        streams.update { $0.append(stream) }
        write("x", to: stream)
      })
    }
    for recorder in recorders { fixture.connect(to: listener.endpoint, recorder) }
    for served in 1...5 {
      #expect(waitUntil { recorders.count { $0.log.value.count > 0 } >= min(served + 1, 5) })
      #expect(listener.connections.load(ordering: .relaxed) <= 2)
      let index = recorders.firstIndex { $0.log.value.count > 0 && $0.log.value.closed == 0 }
      let recorder = recorders[try #require(index)]
      fixture.loop.execute {
        streams.update { $0 }.first { $0.delegate === recorder }?.close()
      }
      #expect(recorder.waitForEnd() != nil)
    }
    streams.update { $0 = [] }
  }

  @Test func aStoppedLoopClosesItsStreams() throws {
    let loop = try EventLoop.start(name: "test")
    let fixture = try LoopFixture()
    let listener = try fixture.listen { echo() }
    let open = Recorder(opened: { stream in write("x", to: stream) })
    let connecting = Recorder()
    loop.execute {
      _ = ByteStream.connect(
        on: loop, to: listener.endpoint, tls: nil, deadline: loop.now + .seconds(60), delegate: open)
    }
    #expect(open.log.wait { $0.count == 1 })
    loop.execute {
      _ = ByteStream.connect(
        on: loop, to: Endpoint(host: "no-such-host.invalid", port: 1), tls: nil, deadline: loop.now + .seconds(60),
        delegate: connecting)
    }
    loop.stop()
    #expect(open.log.value.closed == 1)
    #expect(open.log.value.error?.kind == .cancelled)
    #expect(connecting.log.value.closed == 1)
  }
}

/// Alone in its suite, for it counts the descriptors of the whole process.
@Suite(.serialized) struct DescriptorTests {
  @Test(arguments: Cover.allCases)
  func descriptorsAreLevelAfterManyConnections(_ cover: Cover) throws {
    let fixture = try LoopFixture()
    let (client, server) = try cover.contexts()
    let listener = try fixture.listen(tls: server) { echo() }
    for round in 0..<200 {
      let recorder = Recorder(
        opened: { stream in write("x", to: stream) },
        received: { stream, _ in if round % 2 == 0 { stream.close() } else { stream.abort() } })
      fixture.connect(to: listener.endpoint, tls: client, recorder)
      #expect(recorder.waitForEnd() != nil)
    }
    // Descriptors of tests that run beside this one come and go; 400 that leaked would stay.
    #expect(waitUntil { listener.connections.load(ordering: .relaxed) == 0 })
    #expect(waitUntil { openDescriptors() < 400 })
  }
}
