//! `perennial plan`: learned patterns of change, the next visits, and the quality of the archive.

mod next;
mod patterns;
mod quality;

use clap::{Args, Subcommand};

use super::{Context, Exit};

/// Next visits, patterns of change, quality of the archive.
#[derive(Args)]
#[command(after_help = "\
Examples:
  perennial plan next
  perennial plan patterns https://example.org/
  perennial plan quality")]
pub(super) struct PlanArgs {
    #[command(subcommand)]
    command: PlanCommand,
}

#[derive(Subcommand)]
enum PlanCommand {
    Next(next::NextArgs),
    Patterns(patterns::PatternsArgs),
    Quality(quality::QualityArgs),
}

impl PlanArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            PlanCommand::Next(args) => args.run(context),
            PlanCommand::Patterns(args) => args.run(context),
            PlanCommand::Quality(args) => args.run(context),
        }
    }
}
