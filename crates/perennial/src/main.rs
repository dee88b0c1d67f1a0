//! The `perennial` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    crate::cli::run()
}
