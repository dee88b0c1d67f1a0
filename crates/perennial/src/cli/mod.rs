//! The command line: one file a subcommand, each a screenful: parse, call, print.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A web archive that spends its fetches when pages change in ways that matter.
#[derive(Parser)]
#[command(name = "perennial", version, arg_required_else_help = true)]
struct Cli {
    /// The archive's folder [default: the current folder if it is an archive, else ./archive]
    #[arg(long, global = true, value_name = "DIR", env = "PERENNIAL_ARCHIVE")]
    archive: Option<PathBuf>,

    /// Print data as JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {}

/// Runs the command line and says how it went.
pub fn run() -> ExitCode {
    match Cli::parse().command {}
}
