//! `perennial lab`: the experiments of the papers, and comparisons with what other strategies would do.

mod channel;
mod extract;
mod feeds;
mod rules;
mod simulate;

use clap::{Args, Subcommand};

use super::{Context, Exit};

/// Repeat and extend the experiments of the papers.
#[derive(Args)]
pub(super) struct Lab {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    /// Compare strategies on a simulated or recorded web
    Simulate(Box<simulate::Simulate>),
    /// Show how a site's directories change together, and what could be skipped
    Rules(Box<rules::Rules>),
    /// Show statistics over feeds of this archive, or over files
    Feeds(feeds::Feeds),
    /// Infer a channel page for a time between its captures, from the items of its feed
    Channel(channel::Channel),
    /// Show the text that the paper's own algorithm finds on a page
    Extract(extract::Extract),
}

impl Lab {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            LabCommand::Simulate(args) => args.run(context),
            LabCommand::Rules(args) => args.run(context),
            LabCommand::Feeds(args) => args.run(context),
            LabCommand::Channel(args) => args.run(context),
            LabCommand::Extract(args) => args.run(context),
        }
    }
}
