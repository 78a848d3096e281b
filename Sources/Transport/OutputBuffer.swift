/// Bytes that wait to be sent: appended at the end, taken at the front, in one piece of memory.
///
/// Freed space at the front is used again when room runs short, so that a steady flow neither allocates nor grows.
@safe
struct OutputBuffer: ~Copyable {
  private var storage: UnsafeMutableRawBufferPointer
  private var head = 0
  private var tail = 0

  /// What an empty buffer keeps; a burst beyond it is given back.
  private static let keptCapacity = 256 * 1024
  private static let firstCapacity = 16 * 1024

  init() {
    unsafe storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  deinit { unsafe storage.deallocate() }

  var count: Int { tail - head }
  var isEmpty: Bool { tail == head }

  /// The bytes in order, valid until the next change.
  @unsafe var readable: UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(rebasing: storage[head..<tail])
  }

  @unsafe mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard unsafe !bytes.isEmpty else { return }
    reserve(bytes.count)
    unsafe UnsafeMutableRawBufferPointer(rebasing: storage[tail...]).copyMemory(from: bytes)
    tail += bytes.count
  }

  /// Drops the first `count` bytes.
  mutating func consume(_ count: Int) {
    precondition(count <= tail - head)
    head += count
    guard head == tail else { return }
    head = 0
    tail = 0
    if unsafe storage.count > Self.keptCapacity { replaceStorage(capacity: Self.keptCapacity) }
  }

  /// Makes room for `count` more bytes.
  mutating func reserve(_ count: Int) {
    let capacity = unsafe storage.count
    if tail + count <= capacity { return }
    let live = tail - head
    // Moving is worth it only when it frees at least half; else growing costs less in the long run.
    if live + count <= capacity / 2 {
      unsafe storage.copyMemory(from: readable)
      head = 0
      tail = live
    } else {
      replaceStorage(capacity: max(Self.firstCapacity, max(capacity * 2, live + count)))
    }
  }

  private mutating func replaceStorage(capacity: Int) {
    let live = tail - head
    let new = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    unsafe new.copyMemory(from: readable)
    unsafe storage.deallocate()
    unsafe storage = new
    head = 0
    tail = live
  }
}
