import CLinux
import Glibc

/// A POSIX thread of our own: for what blocks, and for loops. To be joined or detached.
package struct NativeThread: Sendable {
  private let handle: pthread_t

  private final class Work: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Runs `body` on a new thread, which signals that are meant for the process leave alone.
  ///
  /// - Parameter name: as `ps -L` and `top -H` show it (15 characters of it).
  /// - Throws: `system`, when there can be no more threads.
  package static func start(
    _ name: String, _ body: @escaping @Sendable () -> Void
  ) throws(TransportError) -> NativeThread {
    let work = unsafe Unmanaged.passRetained(Work(name, body))
    var thread = pthread_t()
    let status = unsafe pthread_create(
      &thread, nil,
      { context in
        guard let context = unsafe context else { return nil }
        // The retain above is taken over here.
        let work = unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue()
        NativeThread.prepare(work.name)
        work.body()
        return nil
      }, work.toOpaque())
    guard status == 0 else {
      unsafe work.release()
      throw TransportError(.system, name, "pthread_create", errno: status)
    }
    return NativeThread(handle: thread)
  }

  /// Waits for its end.
  package func join() { pthread_join(handle, nil) }

  /// Nobody will wait for its end.
  package func detach() { pthread_detach(handle) }

  private static func prepare(_ name: String) {
    _ = unsafe pthread_setname_np(pthread_self(), String(decoding: name.utf8.prefix(15), as: UTF8.self))
    var blocked = sigset_t()
    unsafe sigemptyset(&blocked)
    for number in [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2] { unsafe sigaddset(&blocked, number) }
    unsafe pthread_sigmask(SIG_BLOCK, &blocked, nil)
  }
}
