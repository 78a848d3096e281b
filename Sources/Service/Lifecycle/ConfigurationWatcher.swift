internal import Wire

/// Has the service reload when the configuration changes: its file, a directory of apps, or any file that it names.
///
/// Contents are looked at rather than events waited for: that works the same on every file system and for every way to
/// change a file, symbolic links that Kubernetes swaps among them.
package actor ConfigurationWatcher {
  /// The time between two looks. A change counts when two of them agree, so it takes effect after two to four seconds.
  package static let period: Duration = .seconds(2)

  private let file: String
  private let environment: @Sendable (String) -> String?
  private let service: Service
  /// The files of the configuration that is in effect.
  private var runningFiles: [String]
  private var watch: FileWatch

  /// - Parameters:
  ///   - file: the configuration file.
  ///   - files: `LoadedSettings.files` of what the service was started with.
  ///   - service: is told of each change.
  ///   - environment: the value of an environment variable, `nil` where it is not set.
  package init(
    file: String, files: [String], service: Service,
    environment: @escaping @Sendable (String) -> String? = SettingsLoader.processEnvironment
  ) {
    self.file = file
    self.environment = environment
    self.service = service
    runningFiles = files
    watch = FileWatch(files: files)
  }

  /// Looks until its task is cancelled.
  package func run() async {
    for await _ in service.ticks(every: Self.period) { await look() }
  }

  /// One look; a change that counts is loaded.
  package func look() async {
    if watch.look(at: ServiceClock.now().time) { await load() }
  }

  /// Reloads now, changed or not (SIGHUP).
  ///
  /// - Returns: `nil` if the configuration cannot be read; that has been told.
  @discardableResult
  package func reload() async -> ReloadOutcome? {
    watch.catchUp(at: ServiceClock.now().time)
    return await load()
  }

  @discardableResult
  private func load() async -> ReloadOutcome? {
    do {
      let loaded = try SettingsLoader.load(
        file: file, environment: environment, toleratesUnreadableApps: true)
      // Before the service reads the keys: whatever changes from here on is seen.
      watch.follow(loaded.files, areNewTold: false, at: ServiceClock.now().time)
      let outcome = await service.reload(loaded)
      if case .refused = outcome { return outcome }
      runningFiles = loaded.files
      return outcome
    } catch {
      // A file that is named anew may be all that is missing, and one that is in effect may be put right.
      watch.follow(runningFiles + error.files, areNewTold: true, at: ServiceClock.now().time)
      await service.reloadFailed(error)
      return nil
    }
  }
}
