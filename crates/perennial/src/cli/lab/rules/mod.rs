//! `perennial lab rules`: how the directories of a site change together, and command could be skipped (P-NEAR, docs/rules.md).

mod eval;
mod figure;
mod mine;
mod read;

use clap::{Args, Subcommand};
use perennial_core::directory::{Alpha, Thresholds};
use perennial_core::schedule::units::{UnitError, parse_share};

use crate::cli::{Context, Exit};

const AFTER_HELP: &str = "\
Examples:
  perennial lab rules mine example.org
  perennial lab rules mine --history site.tsv.xz --format svg > site.svg
  perennial lab rules eval --history *.tsv.xz --plan all
  perennial lab rules eval example.org --plan combined --max-loss 0.05 --json

A history is a file of versions; docs/rules.md has the format.";

/// Show which directories of a site change together.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Rules {
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Subcommand)]
enum RulesCommand {
    Mine(mine::Mine),
    Eval(eval::Eval),
    Figure(figure::Figure),
}

impl Rules {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            RulesCommand::Mine(args) => args.run(context),
            RulesCommand::Eval(args) => args.run(context),
            RulesCommand::Figure(args) => args.run(context),
        }
    }
}

/// The thresholds of rules.
#[derive(Args, Clone, Copy)]
struct ThresholdOptions {
    /// Least degree of a significant change [default: each directory's median]
    #[arg(long, value_name = "A", value_parser = share)]
    alpha: Option<f64>,

    /// Least share of versions in which the head changes together
    #[arg(long, value_name = "B", default_value = "0.2", value_parser = share)]
    beta: f64,

    /// Least negative correlation [default: 0.5 to 0.3, until a rule appears]
    #[arg(long, value_name = "G", value_parser = share)]
    gamma: Option<f64>,

    /// Least confidence
    #[arg(long, value_name = "T", default_value = "0.7", value_parser = share)]
    theta: f64,

    /// Reject rules with an undefined correlation
    #[arg(long)]
    strict: bool,
}

impl ThresholdOptions {
    fn thresholds(&self) -> Thresholds {
        Thresholds {
            alpha: self.alpha.map_or(Alpha::Adaptive, Alpha::Fixed),
            beta: self.beta,
            gamma: self.gamma,
            theta: self.theta,
            is_strict: self.strict,
        }
    }
}

/// A share, as 0.05 or 5 %.
fn share(text: &str) -> Result<f64, UnitError> {
    parse_share(text)
}
