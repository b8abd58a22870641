# The program alone, as a user that owns nothing. `docker build -t loopctl .`
FROM rust:1.92-bookworm AS build
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
# Cargo.toml names them; they are not built.
COPY benches benches
COPY src src
RUN cargo fetch --locked
# From here on the network is not needed.
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
