//! The program `loopctl-restate`. Nothing else exits.

use std::process::ExitCode;

fn main() -> ExitCode {
    loopctl::cli::restate::main()
}
