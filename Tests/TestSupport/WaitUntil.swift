import Glibc

/// State that threads share, and that a test can wait for: `update` from any thread, `wait` until a condition holds.
///
/// `@unchecked Sendable` holds because the state is touched under the mutex only.
@safe
package final class Monitor<State>: @unchecked Sendable {
  private var state: State
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let changed: UnsafeMutablePointer<pthread_cond_t>

  package init(_ state: sending State) {
    self.state = state
    unsafe mutex = .allocate(capacity: 1)
    unsafe changed = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe changed.initialize(to: pthread_cond_t())
    unsafe pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    unsafe pthread_condattr_init(&attributes)
    unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    unsafe pthread_cond_init(changed, &attributes)
    unsafe pthread_condattr_destroy(&attributes)
  }

  deinit {
    unsafe pthread_cond_destroy(changed)
    unsafe pthread_mutex_destroy(mutex)
    unsafe changed.deallocate()
    unsafe mutex.deallocate()
  }

  /// Changes the state and wakes those who wait.
  @discardableResult
  package func update<Result>(_ change: (inout State) -> sending Result) -> sending Result {
    unsafe pthread_mutex_lock(mutex)
    defer {
      unsafe pthread_cond_broadcast(changed)
      unsafe pthread_mutex_unlock(mutex)
    }
    return change(&state)
  }

  /// Blocks until `condition` holds.
  ///
  /// - Parameter limit: far beyond what a busy machine needs; it only ends a test that has failed.
  /// - Returns: whether it came to hold in time.
  package func wait(within limit: Duration = .seconds(30), until condition: (State) -> Bool) -> Bool {
    var deadline = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &deadline)
    deadline.tv_sec += Int(limit.components.seconds) + 1
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    while !condition(state) {
      if unsafe pthread_cond_timedwait(changed, mutex, &deadline) == ETIMEDOUT { return condition(state) }
    }
    return true
  }
}

extension Monitor where State: Sendable {
  /// A copy of the state as it is now.
  package var value: State { update { $0 } }
}

/// Looks at `condition` every few milliseconds until it holds; for what cannot wake a `Monitor` (a counter of the
/// product, the process's descriptors).
///
/// - Returns: whether it came to hold in time.
package func waitUntil(within limit: Duration = .seconds(30), _ condition: () -> Bool) -> Bool {
  var left = limit.components.seconds * 500
  while !condition() {
    guard left > 0 else { return false }
    left -= 1
    usleep(2000)
  }
  return true
}
