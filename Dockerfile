# syntax=docker/dockerfile:1

# The image of the service:            docker build --tag martlet .
# Its symbols, for a debugger or perf: docker build --target symbols --output type=local,dest=. .
#
# scripts/image-check follows these steps without a container engine, and runs what comes of them.

# Built with the toolchain of the Debian release that it runs on, so that the C libraries are the same.
FROM swift:6.3.1-bookworm AS build

# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends librdkafka-dev libnghttp2-dev libssl-dev pkg-config \
  && rm -rf /var/lib/apt/lists/*

WORKDIR /source
COPY Package.swift ./
COPY Sources ./Sources
COPY Tests ./Tests
COPY Benchmarks/Micro ./Benchmarks/Micro
COPY Fuzz ./Fuzz
COPY scripts/build-program ./scripts/build-program

RUN ["scripts/build-program", "/out"]

FROM scratch AS symbols

COPY --from=build /out/martlet.debug /

FROM debian:bookworm-20260824-slim

# Security updates of the release are wanted, so these are not pinned further.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates libnghttp2-14 librdkafka1 libssl3 \
  && rm -rf /var/lib/apt/lists/*

COPY --from=build /out/martlet /usr/local/bin/martlet

ARG VERSION=0.1.0
ARG REVISION=
ARG CREATED=
LABEL org.opencontainers.image.title="martlet" \
  org.opencontainers.image.description="Delivers Apple push notifications that are requested over Kafka" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.base.name="docker.io/library/debian:bookworm-20260824-slim" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" \
  org.opencontainers.image.created="$CREATED"

USER 65532:65532
WORKDIR /
EXPOSE 9464
STOPSIGNAL SIGTERM
# Alive means that the loops turn; a broker or APNs being away does not count. Kubernetes has probes of its own.
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 \
  CMD ["/usr/local/bin/martlet", "health", "--config", "/etc/martlet/martlet.json5"]
ENTRYPOINT ["/usr/local/bin/martlet"]
CMD ["run", "--config", "/etc/martlet/martlet.json5"]
