internal import Delivery
internal import Wire

/// What came of a reload.
package enum ReloadOutcome: Equatable, Sendable {
  case applied(ReloadPlan)
  /// Nothing that can take effect now differs from what is in effect.
  case unchanged
  /// An app cannot be used; nothing has changed. The texts say which and why.
  case refused([String])
}

/// Brings another configuration into effect while traffic flows.
///
/// First everything is loaded that may fail, on copies. Then, in this order, so that no notification is ever without its
/// app: the lanes get what is new or changed; the pipeline gets the new table, so that from then on new apps are known
/// and removed ones are not; the lanes let go of removed apps. Each step is done before the next one begins.
actor Reloader {
  /// What a reload has an effect on.
  struct Parts: Sendable {
    var lanes: [Lane]
    var pipeline: Pipeline
    var registry: Registry
    var expiry: ExpiryReporter
    var log: Log
  }

  /// No more apps than this are named in the log one by one.
  private static let mostNamed = 50

  private let parts: Parts
  private let metrics: MetricShard
  /// The apps and the log level in effect, and all other settings as they were at the start.
  private var running: ConfigurationImage
  private var apps: AppTable
  private var loader: AppLoader
  /// Of the apps that can be used, by name.
  private var runtimes: [String: AppRuntime]
  private var last: Task<ReloadOutcome, Never>?

  init(
    running: ConfigurationImage, apps: AppTable, loader: AppLoader, runtimes: [String: AppRuntime], parts: Parts
  ) {
    self.parts = parts
    self.running = running
    self.apps = apps
    self.loader = loader
    self.runtimes = runtimes
    metrics = parts.registry.makeShard()
    let now = ServiceClock.now().time
    Self.show(running.settings, runtimes, parts, at: now)
    metrics.set(.lastReloadGood, to: 1)
    metrics.set(.configuredAt, to: Int(now.seconds))
  }

  /// Waits for the reload before, then does this one.
  func reload(_ loaded: LoadedSettings) async -> ReloadOutcome {
    let before = last
    let task = Task {
      _ = await before?.value
      return await perform(loaded)
    }
    last = task
    return await task.value
  }

  /// The configuration cannot be read: nothing changes.
  func refuse(_ error: ConfigurationError) {
    for problem in error.problems { parts.log.problem(problem) }
    noteRefusal(error.problems.count { $0.severity == .error })
  }

  private func noteRefusal(_ problems: Int) {
    metrics.add(.reloadFailures)
    metrics.set(.lastReloadGood, to: 0)
    parts.log.error(
      "reload_refused", "the new configuration cannot be used; the one in effect stays", [.count(problems)])
  }

  // MARK: One reload

  /// What was loaded and waits to be brought into effect.
  private struct Draft {
    var plan: ReloadPlan
    var loader: AppLoader
    var apps: AppTable
    /// Of the apps that are new, changed, or could not be used until now.
    var renewed: [(name: String, runtime: AppRuntime)] = []
  }

  private func perform(_ loaded: LoadedSettings) async -> ReloadOutcome {
    let next = ConfigurationImage(
      reading: loaded.settings, and: running.settings.delivery.proxy?.files ?? [])
    var draft = Draft(plan: ReloadPlan(from: running, to: next), loader: loader, apps: apps)
    if !draft.plan.needsRestart.isEmpty {
      parts.log.warning(
        "restart_needed", "settings have changed that take effect with the next start only",
        [.setting(draft.plan.needsRestart.joined(separator: ", "))])
    }
    let refused = load(next, into: &draft)
    guard refused.isEmpty else {
      for fault in refused {
        parts.log.error("app_unusable", "an app could not be served", [.app(fault.app), .cause(CauseText(fault.text))])
      }
      noteRefusal(refused.count)
      return .refused(refused.map { "\($0.app): \($0.text)" })
    }
    metrics.set(.lastReloadGood, to: 1)
    guard !draft.plan.isEmpty else {
      parts.log.debug("reload_unchanged", "the configuration has not changed")
      return .unchanged
    }
    for warning in loaded.warnings { parts.log.problem(warning) }
    await apply(draft, next)
    note(draft.plan)
    return .applied(draft.plan)
  }

  /// Loads the apps that need it. An app that could not be used and has not changed is tried again, but is no reason to
  /// refuse what is good.
  ///
  /// - Returns: why the reload is refused; empty: it is not.
  private func load(_ next: ConfigurationImage, into draft: inout Draft) -> [AppLoader.Fault] {
    let wanted = Set(draft.plan.added + draft.plan.changed)
    var refused: [AppLoader.Fault] = []
    for app in next.settings.apps where wanted.contains(app.name) || runtimes[app.name] == nil {
      switch draft.loader.load(app, next.contents) {
      case .success(let runtime):
        draft.renewed.append((app.name, runtime))
        if !wanted.contains(app.name) {
          draft.plan.changed.append(app.name)
          draft.plan.adjusted.removeAll { $0 == app.name }
        }
      case .failure(let fault): if wanted.contains(app.name) { refused.append(fault) }
      }
    }
    return refused
  }

  private func apply(_ draft: Draft, _ next: ConfigurationImage) async {
    var draft = draft
    let altered = Set(draft.plan.added + draft.plan.changed + draft.plan.adjusted)
    let loaded = Dictionary(draft.renewed.map { ($0.name, $0.runtime) }, uniquingKeysWith: { $1 })
    for app in next.settings.apps where altered.contains(app.name) {
      draft.apps.update(AppRules(app, loaded[app.name] ?? runtimes[app.name]))
    }
    let removed = draft.plan.removed.compactMap { draft.apps.find($0) }
    for app in removed { draft.apps.remove(app) }
    let renewed = draft.renewed.compactMap { app in draft.apps.find(app.name).map { ($0, app.runtime) } }

    for lane in parts.lanes { for (index, runtime) in renewed { lane.install(runtime, at: index) } }
    for lane in parts.lanes { await lane.caughtUp() }
    let names = next.settings.apps.map(\.name)
    // Of the others the health board knows what is wrong with them.
    let unchanged = Set(names).subtracting(draft.renewed.map(\.name))
    await parts.pipeline.update(
      AppsUpdate(
        table: draft.apps, renewed: renewed.map(\.0), removed: removed, names: names, unchanged: unchanged))

    apps = draft.apps
    for name in draft.plan.removed { runtimes[name] = nil }
    for (name, runtime) in draft.renewed { runtimes[name] = runtime }
    loader = draft.loader
    loader.forget(unusedBy: runtimes.values, now: ServiceClock.now().instant)
    settle(next)
  }

  /// Notes what is in effect now. What takes effect with the next start only stays as it was, so that it is told again.
  private func settle(_ next: ConfigurationImage) {
    var contents = next.contents
    for file in running.settings.kafka.files { contents[file] = running.contents[file] }
    var settings = running.settings
    settings.apps = next.settings.apps
    settings.log.level = next.settings.log.level
    running = ConfigurationImage(settings: settings, contents: contents)
    parts.log.setLevel(settings.log.level)
    let now = ServiceClock.now().time
    Self.show(settings, runtimes, parts, at: now)
    metrics.set(.configuredAt, to: Int(now.seconds))
  }

  /// Has metrics and warnings know the credentials of all apps that can use theirs.
  private static func show(
    _ settings: Settings, _ runtimes: [String: AppRuntime], _ parts: Parts, at now: UnixTime
  ) {
    let credentials = settings.apps.compactMap { app in
      runtimes[app.name].map { runtime in
        switch runtime.credentials {
        case .token(let source): CredentialSample(app: app.name, token: source.gauge)
        case .certificate(let validUntil, _): CredentialSample(app: app.name, validUntil: validUntil)
        }
      }
    }
    parts.registry.setCredentials(credentials)
    parts.expiry.check(credentials.compactMap { CertificateSample($0) }, at: now)
  }

  private func note(_ plan: ReloadPlan) {
    metrics.add(.reloads)
    let changes = plan.added.count + plan.changed.count + plan.adjusted.count + plan.removed.count
    if changes <= Self.mostNamed {
      for name in plan.added { parts.log.info("app_added", "an app was added", [.app(name)]) }
      for name in plan.changed {
        parts.log.info(
          "app_changed", "an app has new settings or credentials; its connections are replaced", [.app(name)])
      }
      for name in plan.adjusted { parts.log.info("app_changed", "an app has new settings", [.app(name)]) }
      for name in plan.removed { parts.log.info("app_removed", "an app was removed; it drains", [.app(name)]) }
    }
    parts.log.info("reloaded", "a new configuration is in effect; so many apps have changed", [.count(changes)])
  }
}
