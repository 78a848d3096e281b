import Transport

/// What a push certificate says about the app that it is for.
package enum DirectIdentity {
  /// The bundle id, or an MDM certificate's topic, that Apple wrote into the certificate; `nil` where there is none.
  package static func topic(of certificate: CertificateSettings) throws(DirectFault) -> String? {
    do {
      let password = try certificate.passwordFile.map { try FileProbe.line($0) }
      let identity = try Identity.load(
        certificateFile: certificate.file, keyFile: certificate.keyFile, password: password)
      return identity.userID ?? identity.pushScope.topics?.first
    } catch {
      throw DirectFault(message: "\(error)")
    }
  }
}
