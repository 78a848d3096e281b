import CNGHTTP2
import COpenSSL

/// The versions of the libraries that this module stands on, as they are loaded.
package enum TransportLibraries {
  package static var nghttp2: String {
    guard let info = unsafe nghttp2_version(0) else { return "unknown" }
    return unsafe String(cString: info.pointee.version_str)
  }

  package static var openSSL: String {
    guard let text = unsafe OpenSSL_version(OPENSSL_VERSION_STRING) else { return "unknown" }
    return unsafe String(cString: text)
  }
}
