# The program alone, as a user that owns nothing. `docker build -t loopctl .`
FROM rust:1.92-bookworm AS build
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
COPY benches benches
COPY examples examples
COPY src src
# From here on the network is not needed.
RUN cargo fetch --locked
RUN cargo build --release --locked --offline --bin loopctl
# A folder for the store that the user below may write to.
RUN mkdir /state

# glibc, and the certificates that servers of models are known by; no shell.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /source/target/release/loopctl /usr/local/bin/loopctl
COPY --from=build --chown=65532:65532 /state /state
USER 65532:65532
WORKDIR /state
VOLUME /state
ENTRYPOINT ["/usr/local/bin/loopctl"]
CMD ["--help"]
