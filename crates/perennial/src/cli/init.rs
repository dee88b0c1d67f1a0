//! `perennial init`: a folder -> an empty archive with commented settings.

use std::path::PathBuf;

use serde_json::json;

use super::{Context, Exit};
use crate::archive::Archive;

/// Makes a new archive: a folder with `perennial.toml`, `warc/`, `index/` and `state.db`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  perennial init\n  perennial init /srv/news-archive")]
pub(super) struct Init {
    /// Where [default: --archive, else ./archive]
    dir: Option<PathBuf>,
}

impl Init {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let dir = self.dir.or_else(|| context.archive_option().map(PathBuf::from));
        let dir = dir.unwrap_or_else(|| PathBuf::from("archive"));
        let archive = Archive::create(&dir)?;
        context.print(&json!({ "archive": archive.root() }), |out| {
            writeln!(out, "{} is an archive now; its settings are in perennial.toml", dir.display())
        })?;
        Ok(Exit::Done)
    }
}
