/// Martlet's own version (semver.org).
package enum MartletVersion {
  package static let text = "0.1.0"
}
