# Commands for daily work. `just` without arguments lists them.

default:
    @just --list

# All checks that a change must pass
ci:
    .ci/run

# Format everything
fmt:
    cargo fmt

# Lints, with the options of `.ci/run`
lint:
    cargo clippy --all-targets --locked -- -D warnings

# All tests, or those whose name contains FILTER
test *FILTER:
    cargo test --locked {{FILTER}}

# Lints and tests of the spans, which need the feature `otel`
spans:
    cargo clippy --all-targets --features otel --locked -- -D warnings
    cargo test --features otel --locked telemetry

# Lints and tests of mail, which need the feature `email`
email:
    cargo clippy --all-targets --features email --locked -- -D warnings
    cargo test --features email --locked mail

# Lints and tests of MySQL and MariaDB, which need the feature `mysql` (and the package mariadb-server)
mysql:
    cargo clippy --all-targets --features mysql --locked -- -D warnings
    cargo test --features mysql --locked mysql

# The official conformance suite of MCP, as a client and as a server, by both revisions (needs npm for its first time: Node 22 is installed by it where there is none)
conformance:
    cargo build --locked
    tests/conformance/play

# Lints and tests of OpenAPI pages in YAML, which need the feature `openapi-yaml`
openapi-yaml:
    cargo clippy --all-targets --features openapi-yaml --locked -- -D warnings
    cargo test --features openapi-yaml --locked --test it openapi::

# Lints and tests of `loopctl-restate`, with the kills of the nightly (needs restate-server on the PATH, as npm i @restatedev/restate-server puts it into node_modules/@restatedev/restate-server-linux-x64/bin: the file in .bin starts the server as a child, which a kill does not reach)
restate:
    cargo clippy --all-targets --features restate --locked -- -D warnings
    cargo test --features restate --locked --test restate -- --include-ignored --nocapture --test-threads 1

# Lints of what is built with other features: the spans, MySQL, mail and pages in YAML, and what an embedder compiles, without the command line, the server and the stores
features:
    cargo clippy --features otel,mysql,email,openapi-yaml --locked --lib --bins --test it -- -D warnings
    cargo clippy --no-default-features --lib --locked -- -D warnings
    cargo clippy --no-default-features --features http,sqlite,testing --lib --locked -- -D warnings

# A program of its own that embeds the library without its default features: its types of serde stay what they were, and it has no client of
# HTTP. And the tests of the library as such a program builds it
host:
    ! cargo tree --locked --no-default-features -e normal --prefix none | grep -E '^(reqwest|rustls|ring|hyper) '
    cp Cargo.lock tests/host/Cargo.lock
    cargo test --offline --manifest-path tests/host/Cargo.toml --target-dir target/host
    cargo test --locked --no-default-features --lib --workspace --exclude loopctl-runtime --target-dir target/host

# Whether the library resolves beside other crates that link SQLite (needs the registry, and says so without it)
neighbours:
    tests/host/neighbours

# What is compiled for other systems, and played on none of them: macOS and Windows, for each target that rustup has added (`rustup target add x86_64-pc-windows-gnu aarch64-apple-darwin`)
systems:
    packaging/systems

# Tests that take too long for each commit: random kills, rounds of drivers, 100,000 simulated worlds of loops and of workflows, tests/it/run in pieces, 1,000 scenarios, all pairs of faults of tests/it/check, ten times the cases of tests/it/agreement and the size of tests/it/wide, mutations of the examples, new cases of the property tests, the services of packaging/compose, and faults of clusters up to their floors
nightly: features systems host neighbours
    cargo test --locked --test it -- --ignored --nocapture --test-threads 1
    LOOPCTL_NIGHTLY=1 cargo test --locked --test it -- agreement:: cluster::migrations crash simulation::flows:: wide:: replay::forked heavy_schemas sarif provider_limits serve::outages _fold simulation::parallel serve::machines
    PROPTEST_CASES=4000 cargo test --locked --lib
    just mysql
    just email
    just openapi-yaml
    just conformance
    just restate

# The tests of tests/it/run, with each process killed after each event and resumed
in-pieces:
    cargo test --locked --test it always_resumed -- --ignored --nocapture

# Twenty runs against a real llama.cpp server with a small model: a download of 130 MB, and minutes of processor time
live *OPTIONS:
    cargo build --release --locked
    python3 tests/live/llama_cpp.py {{OPTIONS}}

# A run at each provider of models that there is a key for in the environment; the others are skipped
live-providers *OPTIONS:
    cargo build --release --locked
    python3 tests/live/providers.py {{OPTIONS}}

# The main example, without a key or a network
demo:
    cargo run -- run examples/support-triage/loop.json --input ticket_id=TK-1042

# Delete the runs and the databases of the examples
forget:
    rm -rf examples/*/.loopctl

# Generate the JSON Schemas for editors from crates/lang/src/language
schemas:
    UPDATE_SCHEMAS=1 cargo test --locked --test it schemas::

# Generate docs/diagnostics.md from the pages of the rules
diagnostics:
    UPDATE_DOCS=1 cargo test --locked --test it diagnostics_doc::

# Draw docs/terminal.svg, the picture of the README, from what a terminal shows
picture:
    UPDATE_PICTURE=1 cargo test --locked --test it picture::

# The documentation as a book in target/book, with search, each page also as Markdown, llms.txt and llms-full.txt (needs mdbook: cargo install mdbook)
book:
    packaging/book

# Measure the figures of benches/README.md
figures *ARGUMENTS:
    python3 benches/figures.py {{ARGUMENTS}}

# Lint the Helm chart, and hold what it renders against the schemas of Kubernetes (needs helm and kubernetes-validate)
chart:
    packaging/helm/check

# Check licences, advisories and sources of the dependencies (needs cargo-deny)
deny:
    cargo deny --locked check

# Run each fuzz target for SECONDS, one after the other (fuzz/README.md)
fuzz SECONDS="60":
    fuzz/play {{SECONDS}}

# Report changes of FILE that no test of the library detects: `just mutants crates/lang/src/policy/host.rs policy::host` (needs cargo-mutants)
mutants FILE *FILTER:
    cargo mutants --file {{FILE}} --output target/mutants --iterate --timeout 60 --cargo-arg=--lib -- -- {{FILTER}}

# The page in which `loopctl check` judges as one types (playground/README.md), and the tests of its crate
playground:
    cargo test --locked --manifest-path playground/Cargo.toml
    playground/build

# The documentation of the library
doc:
    cargo doc --no-deps --open
