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
        EndpointRequest(request.path, method: request.method.rawValue, accept: request.header("accept")),
        metrics: { format in
          MetricsAnswer.answer(
            registry.snapshot(), health: health.snapshot(at: ServiceClock.now().instant),
            process: ProcessSample.now(startTime: startTime), as: format)
        },
        health: { health.snapshot(at: ServiceClock.now().instant) })
      return HTTP1Response(
        status: UInt16(clamping: answer.status), contentType: answer.contentType,
        headers: answer.extraHeader.map { [$0] } ?? [], body: Bytes(answer.body))
    }
  }
}
