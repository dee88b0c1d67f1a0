//! `perennial run`: addresses -> an archive of them, made if there is none, crawled until stopped.

use std::io::IsTerminal;
use std::net::SocketAddr;

use clap::Args;
use url::Url;

use super::crawl::Crawl;
use super::serve::serve_beside;
use super::{Context, Exit};
use perennial_archive::settings::Seed;
use perennial_archive::settings::site::parse_address;
use perennial_engine::admin::AdminAction;
use perennial_server::AdminOptions;

const AFTER_HELP: &str = "\
Examples:
  perennial run https://example.org/ --budget 100/1h
  perennial --archive news run https://example.org/ https://example.net/ --once

This is `init`, `add` and `crawl` in one. Sites that are followed already keep their settings. While it \
crawls it serves the dashboard to this machine and prints its address; with --once or --no-serve it does not.";

/// Archive sites from now on: make the archive if needed, follow them, crawl until stopped.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Run {
    /// Where to start; https is assumed when no scheme is given
    #[arg(required = true, value_name = "URL", value_parser = parse_address)]
    urls: Vec<Url>,
    /// Where to serve the dashboard, on this machine [default: 127.0.0.1:8080, or any port where that is taken]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<SocketAddr>,
    /// Let an operator change what is followed from the dashboard, also where nobody watches a terminal
    #[arg(long, conflicts_with = "no_serve")]
    operate: bool,
    /// Serve no dashboard beside the crawl
    #[arg(long, conflicts_with = "listen")]
    no_serve: bool,
    #[command(flatten)]
    crawl: Crawl,
}

impl Run {
    /// Follows the sites and crawls.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open_or_create()?;
        let seeds = &archive.settings().seeds;
        let wanted: Vec<Seed> =
            self.urls.iter().filter_map(|url| self.wanted(url, seeds.with_url(url))).collect();
        context.perform(&archive, &AdminAction::Follow(wanted))?;
        let ends_soon = self.crawl.once && self.listen.is_none();
        if !self.no_serve && !ends_soon {
            // Opened anew: the sites are followed since.
            // A key is for the person who started this, not for a log.
            let is_seen = self.operate || std::io::stderr().is_terminal();
            serve_beside(context.open()?, self.listen, is_seen.then(AdminOptions::default))?;
        }
        self.crawl.run(context)
    }

    /// What is to be written of a site: all of a new one, and what was said of one that is followed. A later `crawl` would
    /// forget an option of this command alone.
    fn wanted(&self, url: &Url, known: Option<&Seed>) -> Option<Seed> {
        let allow_private = self.crawl.allow_private;
        match known {
            Some(seed) if allow_private && !seed.allow_private => {
                Some(Seed { allow_private, ..seed.clone() })
            }
            Some(_) => None,
            None => Some(Seed { allow_private, ..Seed::of_host(url.clone()) }),
        }
    }
}
