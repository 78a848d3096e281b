import Transport
import Wire

/// Puts the endpoint's answers on a socket.
enum EndpointShell {
  static func listen(
    _ settings: HTTPSettings, on loop: EventLoop, registry: Registry, health: HealthBoard
  ) throws(TransportError) -> HTTP1Responder {
    let startTime = ServiceClock.now().time
    let endpoint = Endpoint(host: settings.listen.host, port: settings.listen.port)
    return try HTTP1Responder.listen(on: loop, at: endpoint) { request in
      let answer = EndpointRoutes.answer(
        method: request.method.rawValue, target: request.path,
        metrics: { MetricsAnswer.answer(registry.snapshot(), process: ProcessSample.now(startTime: startTime)) },
        health: { health.snapshot(at: ServiceClock.now().instant) })
      return HTTP1Response(
        status: UInt16(clamping: answer.status), contentType: answer.contentType,
        headers: answer.extraHeader.map { [$0] } ?? [], body: Bytes(answer.body))
    }
  }
}
