//! `perennial remove`: takes seeds out of perennial.toml; what is archived stays.

use clap::Args;
use url::Url;

use super::{Context, Exit};
use crate::settings::site::parse_address;
use crate::settings::unfollow;

const AFTER_HELP: &str = "\
What was captured stays in the archive.

Examples:
  perennial remove https://example.org/";

/// Stop following sites.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Remove {
    /// Address of the seed, as `perennial list` shows it
    #[arg(required = true, value_name = "URL", value_parser = parse_address)]
    urls: Vec<Url>,
}

impl Remove {
    /// Removes the seeds. An address that is no seed is an error, and then none is removed.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        unfollow(&archive.settings_path(), &self.urls)?;
        let urls: Vec<&str> = self.urls.iter().map(Url::as_str).collect();
        context.print(&urls, |out| urls.iter().try_for_each(|url| writeln!(out, "removed {url}")))?;
        Ok(Exit::Done)
    }
}
