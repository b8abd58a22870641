//! The program: arguments in, exit code out. The only exit.

use std::process::ExitCode;

fn main() -> ExitCode {
    loopctl::cli::main()
}
