import Glibc
import Wire

// What the loop does with a stream. Anything the delegate is told goes out from `turnEnded` or `descriptorReady`, so a
// delegate is never entered from its own call.
extension ByteStream: EventHandler, TimerHandler, TurnHandler {
  /// Reads made for one readiness, so that a fast peer does not starve the others.
  private static let readsAtOnce = 4
  /// Ciphertext made before the kernel is asked to take it; more at once only costs memory.
  private static let ciphertextAtOnce = 128 * 1024
  /// The largest plaintext of a TLS record (RFC 8446, section 5.1).
  private static let recordSize = 16 * 1024

  package func descriptorReady(_ descriptor: Int32, _ readiness: Readiness) {
    if readiness.contains(.writable) { pump() }
    if readiness.contains(.readable) || readiness.contains(.broken) { readAvailable(readiness) }
  }

  package func timerFired(_ timer: Timer) {
    self.timer = nil
    switch state {
    case .connecting:
      finish(TransportError(.timedOut, peer, "\(connector?.waitsFor ?? "connect"): no answer in time"))
    case .handshaking:
      finish(TransportError(.timedOut, peer, "TLS handshake: no answer in time"))
    case .closing:
      finish(TransportError(.timedOut, peer, "close: \(bufferedOutput) bytes were not taken in time"))
    case .lingering:
      finish(nil)
    case .open, .closed:
      break
    }
  }

  package func loopStopped(_ loop: EventLoop) {
    finish(TransportError(.cancelled, peer, "the loop was stopped"))
  }

  package func turnEnded() {
    turnScheduled = false
    if owesOpened {
      owesOpened = false
      if state == .open { delegate?.streamOpened(self) }
    }
    pump()
    if owesRoom {
      owesRoom = false
      if state == .open { delegate?.streamHasRoom(self) }
    }
    guard state == .closed, let delegate else { return }
    self.delegate = nil
    delegate.streamClosed(self, endedBy)
  }

  func scheduleTurn() {
    guard !turnScheduled else { return }
    turnScheduled = true
    loop.atEndOfTurn(self)
  }

  /// Puts the descriptor under the interest that the state calls for; a system call only when it changes.
  func updateInterest() {
    guard descriptor >= 0 else { return }
    var wanted: Interest = []
    let reads = state == .lingering || (!readingPaused && state != .closing) || state == .handshaking
    if reads && !peerEnded { wanted.insert(.readable) }
    if bufferedOutput > 0 && state != .lingering && wantsWritable { wanted.insert(.writable) }
    guard wanted != interest else { return }
    interest = wanted
    loop.modify(descriptor, interest: wanted)
  }

  // MARK: Opening

  func opened() {
    state = .open
    loop.cancel(timer)
    timer = nil
    owesOpened = true
    scheduleTurn()
  }

  /// Goes on with the handshake as far as the bytes at hand allow.
  func shakeHands() {
    guard let tls else { return }
    switch tls.handshake() {
    case .needsInput:
      break
    case .done:
      applicationProtocol = tls.applicationProtocol
      opened()
    case .failed(let error):
      // The alert that tells the peer why is in the output; the kernel takes that much.
      pump()
      finish(error)
      return
    }
    pump()
  }

  // MARK: Reading

  private func readAvailable(_ readiness: Readiness) {
    if !interest.contains(.readable) {
      // Paused, or only the rest of the output matters: a broken connection would be reported for ever.
      if readiness.contains(.broken) { broke(Socket.pendingError(descriptor)) }
      return
    }
    for _ in 0..<Self.readsAtOnce {
      switch unsafe Syscalls.receive(descriptor, into: loop.receiveBuffer) {
      case .bytes(0):
        return endOfInput()
      case .bytes(let count):
        unsafe received(UnsafeRawBufferPointer(rebasing: loop.receiveBuffer[..<count]))
        if unsafe count < loop.receiveBuffer.count || !interest.contains(.readable) || descriptor < 0 { return }
      case .wouldBlock:
        return
      case .failed(let number):
        return broke(number)
      }
    }
  }

  private func received(_ bytes: UnsafeRawBufferPointer) {
    guard state == .open || state == .handshaking else { return }
    guard let tls else { return unsafe deliver(bytes) }
    unsafe tls.receive(bytes)
    if state == .handshaking { shakeHands() }
    if state == .open { decrypt(tls) }
    if !tls.output.isEmpty { scheduleTurn() }
  }

  private func deliver(_ bytes: UnsafeRawBufferPointer) {
    if owesOpened {
      owesOpened = false
      delegate?.streamOpened(self)
      guard state == .open else { return }
    }
    unsafe bytes.withMemoryRebound(to: UInt8.self) { bytes in
      let span = unsafe bytes.span
      delegate?.streamReceived(self, span)
    }
  }

  /// Decrypts all that was received, gathering records into large chunks.
  private func decrypt(_ tls: TLSSession) {
    while state == .open {
      var filled = 0
      var end: TLSSession.ReadResult = .needsInput
      gathering: while unsafe filled < loop.plainBuffer.count {
        end = unsafe tls.read(into: UnsafeMutableRawBufferPointer(rebasing: loop.plainBuffer[filled...]))
        guard case .bytes(let count) = end else { break gathering }
        filled += count
      }
      if filled > 0 {
        unsafe deliver(UnsafeRawBufferPointer(rebasing: loop.plainBuffer[..<filled]))
        if state != .open { return }
      }
      switch end {
      case .bytes: continue
      case .needsInput: return
      case .closed: return endOfInput()
      case .failed(let error): return finish(error)
      }
    }
  }

  /// The peer shut its side. What the delegate still has to say goes out; then it is over.
  private func endOfInput() {
    guard !peerEnded else { return }
    if let writeFailure { return broke(writeFailure) }
    peerEnded = true
    switch state {
    case .handshaking:
      finish(TransportError(.endedEarly, peer, "the peer closed the connection during the TLS handshake"))
    case .open:
      if let tls, !tls.peerClosed {
        finish(TransportError(.endedEarly, peer, "the peer closed the connection without ending TLS"))
      } else {
        if owesOpened {
          owesOpened = false
          delegate?.streamOpened(self)
        }
        if state == .open { beginClosing(within: .seconds(5)) }
      }
    case .lingering:
      finish(nil)
    case .connecting, .closing, .closed:
      break
    }
    updateInterest()
  }

  private func broke(_ number: Int32) {
    if state == .lingering || (state == .closing && bufferedOutput == 0) { return finish(nil) }
    let cause = writeFailure ?? (number == 0 ? EPIPE : number)
    finish(TransportError(.reset, peer, "connection", errno: cause))
  }

  // MARK: Writing

  /// Encrypts and sends as much as the kernel takes.
  func pump() {
    guard state == .open || state == .handshaking || state == .closing, writeFailure == nil else { return }
    let before = bufferedOutput
    if before > Self.lowWaterMark { aboveLowWater = true }
    if before > 0 { sendBuffered() }
    guard state != .closed, writeFailure == nil else { return updateInterest() }
    let left = bufferedOutput
    if left < before { lastTaken = loop.now }
    if aboveLowWater && left <= Self.lowWaterMark {
      aboveLowWater = false
      owesRoom = true
      scheduleTurn()
    }
    if left == 0 && state == .closing { endOutput() }
    updateInterest()
  }

  private func sendBuffered() {
    wantsWritable = false
    guard let tls else {
      while !output.isEmpty && !wantsWritable {
        output.consume(unsafe send(output.readable))
      }
      return
    }
    while !wantsWritable {
      if state != .handshaking {
        while !output.isEmpty && tls.output.count < Self.ciphertextAtOnce {
          let chunk = min(output.count, Self.recordSize)
          if let error = unsafe tls.write(UnsafeRawBufferPointer(rebasing: output.readable[..<chunk])) {
            return finish(error)
          }
          output.consume(chunk)
        }
      }
      if tls.output.isEmpty { return }
      tls.output.consume(unsafe send(tls.output.readable))
    }
  }

  /// Sends once; what the kernel did not take waits until it is writable again.
  ///
  /// - Returns: how much the kernel took.
  private func send(_ bytes: UnsafeRawBufferPointer) -> Int {
    switch unsafe Syscalls.send(descriptor, bytes) {
    case .bytes(let count):
      wantsWritable = count < bytes.count
      return count
    case .wouldBlock:
      wantsWritable = true
    case .failed(let number):
      // Not the end yet: the descriptor is reported as broken next turn, and reading then tells the cause.
      writeFailure = number
      output = OutputBuffer()
      tls?.output = OutputBuffer()
    }
    return 0
  }

  // MARK: Closing

  func beginClosing(within limit: Duration) {
    state = .closing
    loop.cancel(timer)
    timer = loop.schedule(at: loop.now + limit, self)
    updateInterest()
    scheduleTurn()
  }

  /// All is sent: end TLS and our side of TCP.
  private func endOutput() {
    if let tls {
      tls.close()
      // A few bytes to a socket whose buffer has just been emptied; if it refuses them, the peer learns from TCP.
      tls.output.consume(unsafe send(tls.output.readable))
    }
    if peerEnded { return finish(nil) }
    Socket.shutdownWriting(descriptor)
    state = .lingering
  }

  /// The one way to the end: gives everything up and tells the delegate at the end of the turn.
  func finish(_ error: TransportError?) {
    guard state != .closed else { return }
    state = .closed
    endedBy = error
    loop.cancel(timer)
    timer = nil
    connector?.cancel()
    connector = nil
    if descriptor >= 0 {
      loop.deregister(descriptor)
      Syscalls.close(descriptor)
      descriptor = -1
    }
    tls = nil
    output = OutputBuffer()
    exchange(&onRelease, with: nil)?()
    scheduleTurn()
  }
}
