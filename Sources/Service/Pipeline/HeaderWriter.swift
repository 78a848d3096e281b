import APNs
package import Transport
import Wire

/// Writes Apple's header fields into an HTTP/2 header list.
package struct HeaderWriter: HeaderSink {
  package var list: HeaderList

  package init(list: HeaderList = HeaderList()) { self.list = list }

  package mutating func add(name: StaticString, value: Span<UInt8>, neverIndexed: Bool) {
    list.append(name: name, value: value, indexing: neverIndexed ? .never : .always)
  }

  package mutating func add(name: StaticString, neverIndexed: Bool, value: (inout [UInt8]) -> Void) {
    list.append(name: name, indexing: neverIndexed ? .never : .always, value: value)
  }
}
