import CLinux
import Glibc

/// What a descriptor is watched for. Errors and hang-ups are always reported.
package struct Interest: OptionSet, Sendable {
  package var rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let readable = Interest(rawValue: 1)
  package static let writable = Interest(rawValue: 2)

  /// Report each change once, instead of what is not taken up again and again. For eventfds, which then need no read.
  static let edges = Interest(rawValue: 4)

  /// The mask for `epoll_ctl`.
  var mask: UInt32 {
    (contains(.readable) ? EPOLLIN.rawValue : 0) | (contains(.writable) ? EPOLLOUT.rawValue : 0)
      | (contains(.edges) ? EPOLLET.rawValue : 0)
  }
}

/// What a descriptor is ready for.
package struct Readiness: OptionSet, Sendable {
  package var rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let readable = Readiness(rawValue: 1)
  package static let writable = Readiness(rawValue: 2)
  /// Both directions are shut, or the socket has an error to be fetched.
  package static let broken = Readiness(rawValue: 4)

  init(mask: UInt32) {
    var readiness: Readiness = []
    if mask & EPOLLIN.rawValue != 0 { readiness.insert(.readable) }
    if mask & EPOLLOUT.rawValue != 0 { readiness.insert(.writable) }
    if mask & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 { readiness.insert(.broken) }
    self = readiness
  }
}

/// Handles a descriptor of a loop; all calls come on the loop.
package protocol EventHandler: AnyObject {
  func descriptorReady(_ descriptor: Int32, _ readiness: Readiness)
  /// The loop ends: give up the descriptor.
  func loopStopped(_ loop: EventLoop)
}

/// Handles timers of a loop; the call comes on the loop.
package protocol TimerHandler: AnyObject {
  func timerFired(_ timer: Timer)
}

/// Handles the end of a turn; the call comes on the loop.
package protocol TurnHandler: AnyObject {
  func turnEnded()
}

/// A closure as a timer's handler.
final class TimerClosure: TimerHandler {
  private let work: () -> Void

  init(work: @escaping () -> Void) { self.work = work }

  func timerFired(_ timer: Timer) { work() }
}

/// An eventfd whose signals run a handler on a loop. Made by `EventLoop.makeWakeup`.
///
/// Whoever gave `fileDescriptor` to a C library keeps this object until that library has let go of it.
package final class Wakeup: EventHandler, Sendable {
  package let fileDescriptor: Int32
  private let loop: EventLoop
  private let handler: @Sendable () -> Void

  init(loop: EventLoop, fileDescriptor: Int32, handler: @escaping @Sendable () -> Void) {
    self.loop = loop
    self.fileDescriptor = fileDescriptor
    self.handler = handler
  }

  deinit { Syscalls.close(fileDescriptor) }

  /// Wakes the loop; from any thread.
  package func signal() { Syscalls.signal(fileDescriptor) }

  /// Takes it off the loop; the handler is not called again once this has run there. From any thread.
  package func cancel() {
    if loop.isCurrent {
      loop.deregister(fileDescriptor)
    } else {
      loop.execute { self.loop.deregister(self.fileDescriptor) }
    }
  }

  func begin() {
    do {
      try loop.register(fileDescriptor, interest: [.readable, .edges], handler: self)
    } catch {
      // Only a full kernel table gets here; without the descriptor the handler is at least run once.
      handler()
    }
  }

  package func descriptorReady(_ descriptor: Int32, _ readiness: Readiness) { handler() }

  package func loopStopped(_ loop: EventLoop) {}
}
