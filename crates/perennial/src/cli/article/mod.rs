//! `perennial article`: the articles, posts and messages that archived pages contain.

pub(super) mod extract;
mod list;
mod show;
mod terms;

use clap::{Args, Subcommand};

use super::{Context, Exit};

/// Articles of pages: list, show, extract, new terms.
#[derive(Args)]
#[command(after_help = "\
Examples:
  perennial article list news.example --since 24h
  perennial article show https://news.example/2026/ferry.html --history")]
pub(super) struct ArticleArgs {
    #[command(subcommand)]
    command: ArticleCommand,
}

#[derive(Subcommand)]
enum ArticleCommand {
    List(list::ListArticlesArgs),
    Show(show::ShowArticleArgs),
    Extract(Box<extract::ExtractArticleArgs>),
    Terms(terms::TermsArgs),
}

impl ArticleArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            ArticleCommand::List(args) => args.run(context),
            ArticleCommand::Show(args) => args.run(context),
            ArticleCommand::Extract(args) => args.run(context),
            ArticleCommand::Terms(args) => args.run(context),
        }
    }
}
