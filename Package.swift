// swift-tools-version: 6.2
import PackageDescription

/// Every target is compiled with the same rules: the Swift 6 language mode, imports internal unless they say
/// otherwise, and each unsafe construct marked where it stands.
let rules: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("ExistentialAny"),
  .enableExperimentalFeature("Lifetimes"),
  .strictMemorySafety(),
]

func library(_ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource]? = nil) -> Target {
  .target(name: name, dependencies: dependencies, resources: resources, swiftSettings: rules)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies + ["TestSupport"], swiftSettings: rules)
}

/// The program that libFuzzer drives: it can be linked only with that library, as scripts/fuzz does.
let fuzzing: [Target] =
  Context.environment["MARTLET_FUZZ"] == nil
  ? []
  : [
    .systemLibrary(name: "CLibFuzzer", path: "Fuzz/CLibFuzzer"),
    .executableTarget(
      name: "fuzz", dependencies: ["FuzzTargets", "CLibFuzzer"], path: "Fuzz/Run", swiftSettings: rules),
  ]

let package = Package(
  name: "martlet",
  products: [.executable(name: "martlet", targets: ["martlet"])],
  targets: [
    .systemLibrary(name: "CRdKafka", pkgConfig: "rdkafka", providers: [.apt(["librdkafka-dev"])]),
    .systemLibrary(name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CLinux"),

    library("Wire"),
    library("APNs", ["Wire"]),
    library("Delivery", ["APNs", "Wire"]),
    library("Kafka", ["CRdKafka", "Wire"]),
    library("Transport", ["CLinux", "CNGHTTP2", "COpenSSL", "Wire"]),
    library(
      "Service", ["Delivery", "APNs", "Kafka", "Transport", "Wire"],
      // The program carries its status page, so that one file is all there is to install.
      resources: ["html", "css", "js"].map { .embedInCode("Endpoint/Status/Page/page.\($0)") }),
    library("MockAPNs", ["Transport", "APNs", "Wire"]),
    .executableTarget(
      name: "martlet", dependencies: ["Service", "MockAPNs", "Kafka", "Transport", "APNs", "Wire"],
      swiftSettings: rules),

    .executableTarget(
      name: "microbench", dependencies: ["Service", "Delivery", "Transport", "APNs", "Wire"], path: "Benchmarks/Micro",
      swiftSettings: rules),

    .target(name: "TestSupport", dependencies: ["Transport", "Wire"], path: "Tests/TestSupport", swiftSettings: rules),
    tests("WireTests", ["Wire"]),
    tests("APNsTests", ["APNs", "Wire"]),
    tests("DeliveryTests", ["Delivery", "APNs", "Wire"]),
    tests("KafkaTests", ["Kafka", "Wire"]),
    tests("TransportTests", ["Transport", "Wire"]),
    tests("ServiceTests", ["Service", "Delivery", "APNs", "Kafka", "Transport", "Wire"]),
    tests("CommandTests", ["martlet", "Service", "Kafka", "Transport", "Wire"]),
    tests("MockAPNsTests", ["MockAPNs", "Transport", "APNs", "Wire"]),
    tests("EndToEndTests", ["Service", "MockAPNs", "Delivery", "Kafka", "Transport", "APNs", "Wire"]),
    tests("HouseTests", []),
    .target(
      name: "FuzzTargets", dependencies: ["Service", "Delivery", "Transport", "APNs", "Wire"], path: "Fuzz/Targets",
      swiftSettings: rules),
    tests("FuzzTests", ["FuzzTargets"]),
    .target(
      name: "Simulation", dependencies: ["Delivery", "APNs", "Wire"], path: "Tests/Simulation", swiftSettings: rules),
    .executableTarget(name: "simulate", dependencies: ["Simulation"], path: "Tests/Simulate", swiftSettings: rules),
    tests("SimulationTests", ["Simulation"]),
  ] + fuzzing
)
