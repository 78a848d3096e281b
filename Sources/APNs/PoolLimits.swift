/// The bounds of one app's connections on one lane.
package struct PoolLimits: Sendable {
  /// Connections that are open or being opened; draining ones are not counted, so that a replacement need not wait.
  package var maxConnections = 4
  /// Streams that we put on one connection at most, whatever the peer allows.
  package var maxStreamsPerConnection = 500
  /// From the first packet to the end of the TLS handshake.
  package var connectTimeout: Duration = .seconds(10)
  /// How long a draining connection may take to finish, and how long one may stay at a stream limit of 0.
  package var requestTimeout: Duration = .seconds(30)
  /// After this long without a word from the peer (an answer, SETTINGS, a PING's acknowledgement), a connection must
  /// prove that it is alive.
  package var idlePing: Duration = .seconds(60)
  /// How long the answer to such a PING may take. One that is sent because requests wait gets half of it.
  package var pingTimeout: Duration = .seconds(10)
  /// A push on a connection that was silent for this long takes a PING along, so that a path that was cut in silence
  /// is found out before the request's own timeout.
  package var probeAfter: Duration = .seconds(5)
  /// A connection that is not the last one is closed after this long without a push.
  package var idleClose: Duration = .seconds(600)
  /// The age at which a connection is replaced, give or take a tenth.
  package var maxAge: Duration = .seconds(6 * 3600)
  /// The first delay between failed attempts to connect; it doubles up to `backoffCap`, and each one is drawn evenly
  /// between zero and that ("full jitter").
  package var backoffBase: Duration = .milliseconds(500)
  package var backoffCap: Duration = .seconds(30)
  /// Server errors or timeouts in a row after which a connection is replaced.
  package var faultsInARow = 3
  /// A connection that carried nothing for this long is not trusted with what APNs then answers: after a server error
  /// it is replaced at once.
  package var restAfter: Duration = .seconds(60)
  /// A connection of this age is replaced when APNs keeps refusing the credentials on it, for it knows only the apps
  /// that the team had when it was made. A younger one is kept: the next would fare no better.
  package var refusalAge: Duration = .seconds(300)
  /// Apple wants no change of provider token on one connection sooner than this after the last one.
  package var tokenChangeInterval: Duration = .seconds(20 * 60)
  /// A connection that ends younger than this and never did any good counts as a failure to connect.
  package var shortLife: Duration = .seconds(60)
  /// One that did some good first does so if it ends younger than this, and before so many good answers: a server that
  /// closes after each push must not have us connect for each push.
  package var shortUsefulLife: Duration = .seconds(5)
  package var worthwhileAnswers = 100

  package init() {}
}
