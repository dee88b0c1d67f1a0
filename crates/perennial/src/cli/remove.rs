//! `perennial remove`: takes seeds out of perennial.toml; what is archived stays.

use anyhow::bail;
use clap::Args;
use toml_edit::Item;

use super::{Context, Exit};
use crate::settings::edit;

const AFTER_HELP: &str = "\
What was captured stays in the archive and can be read and replayed.

Examples:
  perennial remove https://example.org/";

/// Stop following sites.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Remove {
    /// As `perennial list` shows it
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
}

impl Remove {
    /// Removes the seeds; one that is not there is an error and nothing is changed.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let canonical = |url: &str| perennial_core::canonical::parse(url).map(|url| url.to_string());
        let urls: Vec<String> = self.urls.iter().map(|url| canonical(url).unwrap_or(url.clone())).collect();
        edit(&archive.settings_path(), |document| {
            let sites = document.get_mut("site").and_then(Item::as_array_of_tables_mut);
            let Some(sites) = sites else { bail!("no site is followed: see `perennial list`") };
            for url in &urls {
                let n_before = sites.len();
                sites.retain(|table| {
                    let written = table.get("url").and_then(Item::as_str);
                    written != Some(url) && written.and_then(canonical).as_ref() != Some(url)
                });
                if sites.len() == n_before {
                    bail!("{url} is not followed: see `perennial list`");
                }
            }
            Ok(())
        })?;
        context.print(&urls, |out| urls.iter().try_for_each(|url| writeln!(out, "removed {url}")))?;
        Ok(Exit::Done)
    }
}
