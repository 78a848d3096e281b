import Testing

@testable import martlet

struct LocalFileTests {
  @Test
  func temporaryFilesGoToTheFirstPlaceThatTakesThem() throws {
    let made = try LocalFile.makeTemporaryDirectory(in: ["/nonexistent", "/proc", "/dev/shm"])
    #expect(made.hasPrefix("/dev/shm/martlet-"))
    LocalFile.remove(file: made + "/none", directory: made)
  }

  @Test
  func whereNoPlaceTakesThemTheFirstIsNamed() {
    #expect(throws: LocalFileError.self) { try LocalFile.makeTemporaryDirectory(in: ["/nonexistent", "/proc"]) }
    do {
      _ = try LocalFile.makeTemporaryDirectory(in: ["/nonexistent", "/proc"])
    } catch {
      #expect(error.path == "/nonexistent")
    }
  }
}
