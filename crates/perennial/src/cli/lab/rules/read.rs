//! Files and archives -> histories.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use perennial_core::directory::SiteHistory;
use perennial_core::schedule::units::parse_span;
use perennial_core::time::Span;

use crate::cli::Context;
use crate::cli::context::not_found;
use perennial_engine::learn::site_history;
use perennial_lab::rules::{read_history, without_paths};

/// Whose history.
#[derive(Args)]
pub(super) struct HistorySource {
    /// A site of the archive, by its host
    #[arg(value_name = "SITE", conflicts_with = "history", required_unless_present = "history")]
    site: Option<String>,

    /// Files of versions, plain or packed with gzip, zstd or xz
    #[arg(long, value_name = "FILE", num_args = 1..)]
    history: Vec<PathBuf>,

    /// Leave out pages whose path contains this text
    #[arg(long, value_name = "TEXT")]
    without: Option<String>,

    /// Length of a version of a site [default: median time between observations]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    every: Option<Span>,
}

impl HistorySource {
    /// Reads all of them, with progress.
    pub(super) fn read(&self, context: &Context) -> anyhow::Result<Vec<SiteHistory>> {
        let mut histories = Vec::new();
        if let Some(site) = &self.site {
            let snapshot = context.snapshot()?;
            let history = site_history(snapshot.store(), site, self.every, perennial_archive::now())?;
            if history.versions.is_empty() {
                return Err(not_found(snapshot.store(), site));
            }
            if history.versions.len() < 3 {
                bail!(
                    "{site} has {} versions; rules need at least three, better ten: crawl longer, or shorten them with --every",
                    history.versions.len()
                );
            }
            histories.push(history);
        }
        histories.extend(read_files(context, &self.history)?);
        if let Some(text) = &self.without {
            histories = histories.iter().map(|history| without_paths(history, text)).collect();
        }
        Ok(histories)
    }
}

/// Reads files of versions, with progress.
pub(super) fn read_files(context: &Context, files: &[PathBuf]) -> anyhow::Result<Vec<SiteHistory>> {
    let mut histories = Vec::new();
    let bar = context.progress_count(files.len() as u64, "reading histories");
    for file in files {
        let history = read_history(file).with_context(|| format!("reading {}", file.display()))?;
        if history.n_skipped > 0 {
            context.note(format_args!(
                "{}: {} impossible changes were skipped, such as the removal of an unknown page",
                file.display(),
                history.n_skipped
            ));
        }
        histories.push(history);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(histories)
}
