import Glibc
import TestSupport
import Testing
import Transport
import Wire

@testable import Service

struct FileWatchTests {
  /// Later than any file that a test writes, so that dates are to be relied on.
  private static let later = UnixTime(seconds: 4_000_000_000)

  private let files: TemporaryFiles

  init() throws { files = try TemporaryFiles() }

  private func link(_ target: String, _ name: String) throws {
    try #require(unsafe symlink(target, "\(files.path)/\(name)") == 0)
  }

  private func rename(_ from: String, _ to: String) throws {
    try #require(unsafe Glibc.rename("\(files.path)/\(from)", "\(files.path)/\(to)") == 0)
  }

  /// What the looks until nothing more is told have told.
  private func tell(_ watch: inout FileWatch, looks: Int = 4, at now: UnixTime = later) -> [Bool] {
    (0..<looks).map { _ in watch.look(at: now) }
  }

  /// Puts content as kubelet does: a directory of its own, and the link `..data` is moved over the old one.
  private func swap(_ generation: Int, _ contents: [String: String]) throws {
    try files.makeDirectory("..generation-\(generation)")
    for (name, text) in contents { try files.write("..generation-\(generation)/\(name)", text) }
    try link("..generation-\(generation)", "..data_tmp")
    try rename("..data_tmp", "..data")
  }

  @Test
  func eachSwapOfKubernetesIsToldOnce() throws {
    try swap(0, ["key.p8": "key 0", "ca.pem": "same"])
    try link("..data/key.p8", "key.p8")
    try link("..data/ca.pem", "ca.pem")
    var watch = FileWatch(files: ["\(files.path)/key.p8", "\(files.path)/ca.pem"])
    #expect(tell(&watch) == [false, true, false, false])
    for generation in 1...3 {
      try swap(generation, ["key.p8": "key \(generation)", "ca.pem": "same"])
      #expect(tell(&watch) == [false, true, false, false], "swap \(generation)")
    }
    // Kubernetes swaps also when nothing has changed.
    try swap(4, ["key.p8": "key 3", "ca.pem": "same"])
    #expect(tell(&watch) == [false, false, false, false])
  }

  @Test
  func aDirectoryOfAppsIsWatchedTooAndHiddenNamesAreNot() throws {
    try files.makeDirectory("apps")
    try files.write("apps/a.json5", "{}")
    var watch = FileWatch(files: ["\(files.path)/apps"])
    #expect(tell(&watch) == [false, true, false, false])
    try files.write("apps/.b.json5.swp", "{}")
    #expect(tell(&watch) == [false, false, false, false])
    try files.write("apps/b.json5", "{}")
    #expect(tell(&watch) == [false, true, false, false])
    try rename("apps/b.json5", "c.json5")
    #expect(tell(&watch) == [false, true, false, false])
  }

  @Test
  func aChangeCountsWhenTwoLooksAgree() throws {
    let file = try files.write("a", "1")
    var watch = FileWatch(files: [file])
    _ = tell(&watch)
    try files.write("a", "12")
    #expect(tell(&watch, looks: 1) == [false])
    try files.write("a", "123")
    #expect(tell(&watch, looks: 2) == [false, true])
    // Gone for a moment, and back: no change.
    try rename("a", "b")
    #expect(tell(&watch, looks: 1) == [false])
    try rename("b", "a")
    #expect(tell(&watch) == [false, false, false, false])
    try rename("a", "b")
    #expect(tell(&watch) == [false, true, false, false])
  }

  @Test
  func aWriteThatLeavesDateAndSizeAsTheyWereIsSeenWhileTheFileIsYoung() throws {
    let file = try files.write("a", "old")
    let now = ServiceClock.now().time
    var watch = FileWatch(files: [file])
    #expect(tell(&watch, looks: 2, at: now) == [false, true])
    let stamp = try #require(FileStamp.read(file))
    #expect(stamp.isYoung(at: now) && !stamp.isYoung(at: Self.later))
    try files.write("a", "new")
    #expect(tell(&watch, looks: 2, at: now) == [false, true])
  }

  @Test
  func whatIsReadInAnyCaseIsNotToldAgain() throws {
    let file = try files.write("a", "1")
    var watch = FileWatch(files: [file])
    try files.write("a", "12")
    watch.catchUp(at: Self.later)
    #expect(tell(&watch) == [false, false, false, false])
  }

  @Test
  func filesThatAreNamedAnewAreFollowed() throws {
    let first = try files.write("a", "1")
    let second = "\(files.path)/b"
    var watch = FileWatch(files: [first])
    _ = tell(&watch)
    // A configuration that names a file that is missing was refused: that is known.
    watch.follow([first, second], areNewTold: true, at: Self.later)
    #expect(tell(&watch) == [false, false, false, false])
    try files.write("b", "now it is there")
    #expect(tell(&watch) == [false, true, false, false])
    // One that was accepted may have changed since it was read.
    let third = try files.write("c", "1")
    watch.follow([first, third], areNewTold: false, at: Self.later)
    #expect(tell(&watch) == [false, true, false, false])
    try files.write("b", "nobody cares")
    #expect(tell(&watch) == [false, false, false, false])
  }
}
