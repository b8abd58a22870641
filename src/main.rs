//! The program: parses the arguments, and exits with the code of the command. Nothing else exits.

use std::process::ExitCode;

fn main() -> ExitCode {
    loopctl::cli::main()
}
