# An image with a static program only, which runs as a user without privileges. `docker build -t loopctl .`
# It is built for the processor of the builder: x86_64 or aarch64.
# The digest belongs to the tag before it. `docker buildx imagetools inspect IMAGE:TAG` prints the current digest.
FROM rust:1.92-bookworm@sha256:e90e846de4124376164ddfbaab4b0774c7bdeef5e738866295e5a90a34a307a2 AS build
# What links C code with musl; and the root certificates of the day.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates musl-tools \
 && rm -rf /var/lib/apt/lists/* \
 && rustup target add "$(uname -m)-unknown-linux-musl"
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
# Cargo.toml names the benches, but they are not built.
COPY benches benches
COPY crates crates
COPY src src
# `loopctl demo` has some of these files in it, and Cargo.toml names others.
COPY examples examples
COPY packaging/build packaging/image packaging/
RUN cargo fetch --locked
# The following steps need no network.
RUN packaging/build --offline --target "$(uname -m)-unknown-linux-musl"
RUN packaging/image "target/$(uname -m)-unknown-linux-musl/dist/loopctl" /image

FROM scratch
COPY --from=build /image/ /
# The folder of the store, and one for files of the moment. The user below may write to them.
COPY --from=build --chown=65532:65532 /image/state /state
COPY --from=build --chown=65532:65532 /image/tmp /tmp
USER 65532:65532
WORKDIR /state
VOLUME /state
# It asks the server of this container for /readyz, without a shell. It is for `serve` on port 3009.
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["/usr/local/bin/loopctl", "ready"]
ENTRYPOINT ["/usr/local/bin/loopctl"]
CMD ["--help"]
