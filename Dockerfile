# syntax=docker/dockerfile:1
# An image of the program alone: no shell, no package manager, nobody but an unprivileged user. Both stages run the
# Makefile, so that what is in the image is built as anywhere else.
#
# The images are named by their tags. To pin one, look up the digest of its list of platforms and write it behind the tag, as in
# node:24@sha256:…, here and for the images of deploy/compose/compose.yaml:
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
# The one directory of the base image that this user may write to; mount a volume there to keep the record of calls.
ENV ODDSGRAPH_STATE_DIR=/home/nonroot
USER 65532:65532
# The second port is for operators: publish it to nobody else.
EXPOSE 8080 9091
HEALTHCHECK --interval=10s --timeout=6s --start-period=5s CMD ["/oddsgraph", "healthcheck"]
ENTRYPOINT ["/oddsgraph"]
