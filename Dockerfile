# syntax=docker/dockerfile:1

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

RUN swift build --configuration release --product martlet --static-swift-stdlib \
  && install -D --strip "$(swift build --configuration release --show-bin-path)/martlet" /out/martlet

FROM debian:12.12-slim

LABEL org.opencontainers.image.title="martlet" \
  org.opencontainers.image.description="Delivers Apple push notifications that are requested over Kafka" \
  org.opencontainers.image.licenses="Apache-2.0"

# Security updates of the release are wanted, so these are not pinned further.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates libnghttp2-14 librdkafka1 libssl3 \
  && rm -rf /var/lib/apt/lists/*

COPY --from=build /out/martlet /usr/local/bin/martlet

USER 65532:65532
WORKDIR /
EXPOSE 9464
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/martlet"]
CMD ["run", "--config", "/etc/martlet/martlet.json5"]
