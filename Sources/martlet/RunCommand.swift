import Kafka
import Service
import Transport

/// `martlet run`: the service.
enum RunCommand {
  static let command = Command(
    "run", "Deliver notifications from Kafka until a signal says stop.",
    options: [Option("config", value: "FILE", "The configuration (JSON5).", isRequired: true)],
    examples: [
      ("martlet run --config /etc/martlet/martlet.json5", "Runs the service; SIGTERM drains it, SIGHUP reloads."),
      ("martlet check --config martlet.json5", "Looks the configuration over first."),
    ],
    run: run)

  @Sendable
  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    guard let signals = Signals.install() else {
      Console.error("martlet run: signal handlers could not be installed")
      return .unavailable
    }
    let loaded: LoadedSettings
    do {
      loaded = try SettingsLoader.load(file: try arguments.required("config"), toleratesUnreadableApps: true)
    } catch let error as ConfigurationError {
      for problem in error.problems { Console.error(problem.text) }
      return .configuration
    }
    let log = Log(level: loaded.settings.log.level, format: loaded.settings.log.format)
    for warning in loaded.warnings { log.problem(warning) }
    let service: Service
    do {
      service = try Service.start(loaded.settings, log: log, registry: Registry(versions: .current))
    } catch {
      log.error("cannot_start", "the service cannot start", [.cause(CauseText(error.description))])
      log.flush()
      return error.isConfiguration ? .configuration : .unavailable
    }
    let watcher = ConfigurationWatcher(file: try arguments.required("config"), files: loaded.files, service: service)
    let watching = Task { await watcher.run() }
    defer { watching.cancel() }
    let systemd = Systemd()
    systemd?.ready("Metrics and health are at port \(service.endpointPort)")
    let beating = Task { await systemd?.watch(service) }
    defer { beating.cancel() }
    let listener = Task {
      for await request in signals {
        switch request {
        case .drain:
          watching.cancel()
          systemd?.stopping(within: service.longestDrain)
          service.drain()
        // A reload must not keep the next signal waiting.
        case .reload:
          Task {
            systemd?.reloading(at: ServiceClock.now())
            defer { systemd?.ready("Metrics and health are at port \(service.endpointPort)") }
            guard await watcher.reload() == .unchanged else { return }
            log.info("reload_unchanged", "the configuration was read again and has not changed")
          }
        case .exitNow: break
        }
      }
    }
    defer { listener.cancel() }
    switch await service.ended() {
    case .drained: return .ok
    case .failed: return .unavailable
    }
  }
}

extension BuildVersions {
  static var current: BuildVersions {
    BuildVersions(
      martlet: MartletVersion.text, librdkafka: KafkaLibrary.version, nghttp2: TransportLibraries.nghttp2,
      openssl: TransportLibraries.openSSL)
  }
}
