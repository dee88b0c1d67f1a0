//! The `perennial` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    perennial::cli::run()
}
