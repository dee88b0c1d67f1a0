//! `perennial lab`: simulations of strategies, and the experiments of the papers.

mod channel;
mod extract;
mod feeds;
mod reproduce;
mod rules;
mod segment;
mod simulate;
mod xpath;

use clap::{Args, Subcommand};

use super::{Context, Exit};

/// Simulate strategies and repeat the experiments of the papers.
#[derive(Args)]
#[command(after_help = "\
Examples:
  perennial lab reproduce
  perennial lab simulate
  perennial lab segment page.html --format svg --output page.svg")]
pub(super) struct Lab {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    Reproduce(reproduce::Reproduce),
    Simulate(Box<simulate::Simulate>),
    Rules(Box<rules::Rules>),
    Feeds(feeds::Feeds),
    Channel(channel::Channel),
    Extract(Box<extract::Extract>),
    Segment(segment::Segment),
    Xpath(xpath::XpathArgs),
}

impl Lab {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            LabCommand::Reproduce(args) => args.run(context),
            LabCommand::Simulate(args) => args.run(context),
            LabCommand::Rules(args) => args.run(context),
            LabCommand::Feeds(args) => args.run(context),
            LabCommand::Channel(args) => args.run(context),
            LabCommand::Extract(args) => args.run(context),
            LabCommand::Segment(args) => args.run(context),
            LabCommand::Xpath(args) => args.run(context),
        }
    }
}
