# An image with the program only, which runs as a user without privileges. `docker build -t loopctl .`
# Each digest belongs to the tag before it. `docker buildx imagetools inspect IMAGE:TAG` prints the current digest.
FROM rust:1.92-bookworm@sha256:e90e846de4124376164ddfbaab4b0774c7bdeef5e738866295e5a90a34a307a2 AS build
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
# Cargo.toml names the benches, but they are not built.
COPY benches benches
COPY crates crates
COPY src src
# `loopctl demo` has these files in it.
COPY examples/support-triage examples/support-triage
COPY packaging/build packaging/build
RUN cargo fetch --locked
# The following steps need no network.
RUN packaging/build --offline
# The folder of the store. The user below may write to it.
RUN mkdir /state

# This base image has glibc and the root certificates for TLS, and no shell.
FROM gcr.io/distroless/cc-debian12:nonroot@sha256:adcd20c7b4c988b73cbfbddb26d2eee574571e6d7c9ffea29b3821e0690efb77
COPY --from=build /source/target/dist/loopctl /usr/local/bin/loopctl
COPY --from=build --chown=65532:65532 /state /state
USER 65532:65532
WORKDIR /state
VOLUME /state
ENTRYPOINT ["/usr/local/bin/loopctl"]
CMD ["--help"]
