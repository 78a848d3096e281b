/// How the program ends, by the numbers of sysexits.h.
enum ExitCode: Int32, Sendable {
  case ok = 0
  /// The command line cannot be understood.
  case usage = 64
  /// Input that is wrong.
  case badData = 65
  /// Something that is needed is not there: a broker, APNs.
  case unavailable = 69
  /// The configuration is wrong.
  case configuration = 78
}
