# The daily commands. `just` alone lists them.

default:
    @just --list

# All that a change must pass
ci:
    .ci/run

# Format everything
fmt:
    cargo fmt

# Lints, as strict as the gate
lint:
    cargo clippy --all-targets --locked -- -D warnings

# Tests, all or those whose name has FILTER in it
test *FILTER:
    cargo test --locked {{FILTER}}

# Lints and tests of the spans, which only builds with the feature have
spans:
    cargo clippy --all-targets --features otel --locked -- -D warnings
    cargo test --features otel --locked telemetry

# What is too long for each commit: kills at random, rounds of drivers, 100,000 simulated worlds, the suite in pieces
nightly:
    cargo test --locked --test crash --test simulation --test serve --test check_hostile --test run -- --ignored --nocapture --test-threads 1

# The suite of tests/run, every process of it killed after each event and resumed
in-pieces:
    cargo test --locked --test run always_resumed -- --ignored --nocapture

# The main example, without a key or a network
demo:
    cargo run --release -- run examples/support-triage/loop.json --input ticket_id=TK-1042

# Forget the runs and the databases of the examples
forget:
    rm -rf examples/*/.loopctl

# The JSON Schemas for editors, from src/language
schemas:
    UPDATE_SCHEMAS=1 cargo test --locked --test schemas

# docs/diagnostics.md, from the pages of the rules
diagnostics:
    UPDATE_DOCS=1 cargo test --locked --test diagnostics_doc

# The figures of benches/README.md
figures *ARGUMENTS:
    python3 benches/figures.py {{ARGUMENTS}}

# Licences, advisories and sources of the dependencies (needs cargo-deny)
deny:
    cargo deny --locked check

# Every fuzz target for so many seconds, one after another (fuzz/README.md)
fuzz SECONDS="60":
    fuzz/play {{SECONDS}}

# Which changes of FILE no test of the library sees: `just mutants src/policy/host.rs policy::host` (needs cargo-mutants)
mutants FILE *FILTER:
    cargo mutants --file {{FILE}} --output target/mutants --iterate --timeout 60 --cargo-arg=--lib -- -- {{FILTER}}

# The documentation of the library
doc:
    cargo doc --no-deps --open
