# syntax=docker/dockerfile:1
# An image with only the program: no shell, no package manager, and an unprivileged user. Both build stages run make, so the
# image contains the same program as any other build.
#
# Tags name the base images, here and in deploy/compose/compose.yaml. To pin a base image, append the digest of its
# multi-platform manifest to the tag, as in node:24@sha256:…. This command prints the digest:
#
#   docker buildx imagetools inspect node:24 --format '{{.Manifest.Digest}}'
#
# To build:
#
#   docker build --build-arg VERSION="$(git describe --tags --always)" -t oddsgraph .

FROM --platform=$BUILDPLATFORM node:24 AS web
WORKDIR /src
COPY Makefile schema.graphqls ./
COPY examples examples
COPY web web
RUN --mount=type=cache,target=/root/.npm make web

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
COPY --from=web /src/web/dist web/dist
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=devel
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build GOOS=$TARGETOS GOARCH=$TARGETARCH make binary VERSION=$VERSION

FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION=devel
LABEL org.opencontainers.image.title="oddsgraph" \
      org.opencontainers.image.description="One GraphQL endpoint in front of a prediction-market venue" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version=$VERSION
COPY --from=build /src/bin/oddsgraph /oddsgraph
COPY --from=build /src/LICENSE /src/THIRD_PARTY_LICENSES /src/web/dist/licenses.txt /licenses/
ENV ODDSGRAPH_LISTEN=:8080
ENV ODDSGRAPH_ADMIN_LISTEN=:9091
ENV ODDSGRAPH_LOG_FORMAT=json
USER 65532:65532
# Port 9091 is for operators. Do not publish it to clients.
EXPOSE 8080 9091
HEALTHCHECK --interval=10s --timeout=6s --start-period=5s CMD ["/oddsgraph", "healthcheck"]
ENTRYPOINT ["/oddsgraph"]
