//! `perennial init`: a folder -> an empty archive with commented settings.

use std::path::PathBuf;

use serde_json::json;

use super::{Context, Exit};
use perennial_archive::Archive;

/// Create an empty archive.
#[derive(clap::Args)]
#[command(
    after_help = "perennial.toml explains each setting.\n\nExamples:\n  perennial init\n  perennial init /srv/news-archive"
)]
pub(super) struct InitArgs {
    /// Folder to create [default: --archive, else ./archive]
    dir: Option<PathBuf>,
}

impl InitArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let dir = self.dir.or_else(|| context.archive_option().map(PathBuf::from));
        let dir = dir.unwrap_or_else(|| PathBuf::from("archive"));
        let archive = Archive::create(&dir)?;
        context.print(&json!({ "archive": archive.root() }), |out| {
            writeln!(out, "created an empty archive in {}", dir.display())?;
            writeln!(out, "its settings are in perennial.toml; follow a site with `perennial add URL`")
        })?;
        Ok(Exit::Done)
    }
}
