/// As `waitUntil`, for conditions that are asked for asynchronously. It holds no thread meanwhile, so that any number
/// of tests can wait at once.
///
/// - Parameter limit: far beyond what a busy machine needs; it only ends a test that has failed.
/// - Returns: whether it came to hold in time.
package nonisolated(nonsending) func eventually(
  within limit: Duration = .seconds(60), _ condition: nonisolated(nonsending) () async throws -> Bool
) async rethrows -> Bool {
  let deadline = ContinuousClock.now + limit
  while try await !condition() {
    guard ContinuousClock.now < deadline else { return false }
    // A test that is cancelled asks once more and goes on.
    try? await Task.sleep(for: .milliseconds(10))
  }
  return true
}
