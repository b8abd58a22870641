# The program alone, as a user that owns nothing. `docker build -t loopctl .`
# The digests are those of the tags beside them: `docker buildx imagetools inspect IMAGE:TAG` says a newer one.
FROM rust:1.92-bookworm@sha256:e90e846de4124376164ddfbaab4b0774c7bdeef5e738866295e5a90a34a307a2 AS build
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
# Cargo.toml names them; they are not built.
COPY benches benches
COPY src src
COPY packaging/build packaging/build
RUN cargo fetch --locked
# From here on the network is not needed.
RUN packaging/build --offline
# A folder for the store that the user below may write to.
RUN mkdir /state

# glibc, and the certificates that servers of models are known by; no shell.
FROM gcr.io/distroless/cc-debian12:nonroot@sha256:adcd20c7b4c988b73cbfbddb26d2eee574571e6d7c9ffea29b3821e0690efb77
COPY --from=build /source/target/release/loopctl /usr/local/bin/loopctl
COPY --from=build --chown=65532:65532 /state /state
USER 65532:65532
WORKDIR /state
VOLUME /state
ENTRYPOINT ["/usr/local/bin/loopctl"]
CMD ["--help"]
