internal import Glibc
internal import Transport
internal import Wire

/// What stands in a file or directory, told apart by content and never by name or date alone.
enum FileContent: Hashable, Sendable {
  case absent
  /// It is there and cannot be read.
  case unreadable
  case file(ContentDigest)
  /// The names in a directory, hidden ones left out.
  case directory([String])

  /// Whether two that are equal have the same content.
  var isKnown: Bool { if case .file = self { true } else { false } }

  /// Reads it; symbolic links are followed.
  static func read(_ path: String) -> FileContent {
    if FileProbe.isDirectory(path) {
      guard let names = try? FileProbe.list(directory: path) else { return .unreadable }
      return .directory(names)
    }
    do {
      return .file(ContentDigest(of: try FileProbe.read(path, atMost: SettingsLoader.longestFile)))
    } catch {
      return FileStamp.read(path) == nil ? .absent : .unreadable
    }
  }
}

/// What the file system says of a file without opening it.
struct FileStamp: Equatable, Sendable {
  var device: UInt64
  var inode: UInt64
  var size: Int64
  /// Of content and of the inode, in nanoseconds since 1970.
  var modified: Int64
  var changed: Int64
  var isDirectory: Bool

  /// `nil` where there is nothing.
  static func read(_ path: String) -> FileStamp? {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    return FileStamp(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
      modified: nanoseconds(status.st_mtim), changed: nanoseconds(status.st_ctim),
      isDirectory: status.st_mode & S_IFMT == S_IFDIR)
  }

  private static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  /// Whether another write could leave the same stamp: file systems count time in steps of up to two seconds.
  func isYoung(at now: UnixTime) -> Bool { max(modified, changed) / 1_000_000 + 2000 > now.milliseconds }
}

/// Tells when the files that a configuration is made of have changed, whichever way: written in place, replaced, or
/// swapped by a symbolic link as Kubernetes does with `..data`.
///
/// It is asked again and again (`look`). A change counts when two looks in a row have seen the same content that differs
/// from what counted last, so that half a change is not taken for a whole one: several files may change one after the
/// other, or be gone for a moment. The first content that it sees counts too, since the files may have changed between
/// the reading of the settings and the first look.
///
/// A look costs one `stat` for each file; only what it says has changed is read.
struct FileWatch: Sendable {
  private(set) var files: [String]
  private var seen: [String: (stamp: FileStamp?, content: FileContent)] = [:]
  /// What counted last.
  private var settled: [String: FileContent]?
  private var candidate: [String: FileContent]?

  init(files: [String]) { self.files = files }

  /// - Returns: whether there is a change that counts, and that was not told before.
  mutating func look(at now: UnixTime) -> Bool {
    let current = contents(now)
    defer { candidate = current }
    guard current != settled, current == candidate else { return false }
    settled = current
    return true
  }

  /// What is there now counts as told: somebody reads the files in any case.
  mutating func catchUp(at now: UnixTime) {
    settled = contents(now)
    candidate = settled
  }

  /// Other files from now on; changes of those that were there before count as ever.
  ///
  /// - Parameter areNewTold: whether what is in the new ones counts as told. If not, the next looks tell of it once.
  mutating func follow(_ files: [String], areNewTold: Bool, at now: UnixTime) {
    self.files = files
    let current = contents(now)
    seen = seen.filter { current[$0.key] != nil }
    candidate = nil
    guard let before = settled?.filter({ current[$0.key] != nil }) else { return }
    settled = areNewTold ? before.merging(current) { told, _ in told } : before
  }

  private mutating func contents(_ now: UnixTime) -> [String: FileContent] {
    var contents: [String: FileContent] = [:]
    for file in files where contents[file] == nil {
      let stamp = FileStamp.read(file)
      if let known = seen[file], known.stamp == stamp, let stamp, !stamp.isDirectory, !stamp.isYoung(at: now) {
        contents[file] = known.content
      } else {
        let content = stamp == nil ? .absent : FileContent.read(file)
        seen[file] = (stamp, content)
        contents[file] = content
      }
    }
    return contents
  }
}
