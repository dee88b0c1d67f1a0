//! `perennial article show`: an archived page -> its article, or every version of it.

use std::io::Write;

use anyhow::Context as _;
use perennial_core::article::version::{edits, n_edited};

use super::extract::{write_edits, write_text};
use crate::cli::context::{json_on_stdout, text_on_stdout};
use crate::cli::{Context, Exit};
use perennial_archive::SharedSnapshot;
use perennial_archive::store::AnnouncedFilter;
use perennial_engine::feeds::articles::{ArchivedArticle, SiteTemplates};

const AFTER_HELP: &str = "\
Examples:
  perennial article show https://news.example/2026/ferry.html
  perennial article show https://news.example/2026/ferry.html --history
  perennial article show https://news.example/2026/ferry.html --json";

/// Show the article of an archived page, or all its versions.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ShowArticleArgs {
    /// URL of the page
    url: String,
    /// Show every version with its removed and added words
    #[arg(long)]
    history: bool,
}

impl ShowArticleArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let shared = SharedSnapshot::new(context.snapshot()?);
        let missing = || {
            format!("the archive does not contain the page {}: see `perennial status --sites 50`", self.url)
        };
        let page = shared.lock().store().page(&self.url)?.with_context(missing)?;
        let announced = shared.lock().store().announced_page(page.id)?;
        let neighbours = shared.lock().store().announced_pages(&AnnouncedFilter::default())?;
        let mut templates = SiteTemplates::new(&neighbours);
        let article =
            ArchivedArticle::load(&shared, &self.url, page.id, announced, &mut templates, (None, None))?;
        let mut out = if context.json { json_on_stdout() } else { text_on_stdout() };
        if context.json {
            write_json(&article, &mut *out)?;
        } else if self.history {
            write_history(&article, &mut *out)?;
        } else if let Some(latest) = article.versions.last() {
            write_text(&mut *out, &latest.article)?;
        } else {
            anyhow::bail!("no capture of {} can be read as a page: see `perennial log`", self.url);
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

pub(super) fn write_json(article: &ArchivedArticle, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(line) = article.to_json(false) else { return Ok(()) };
    serde_json::to_writer(&mut *out, &line)?;
    Ok(writeln!(out)?)
}

/// Writes every version with its edits.
fn write_history(article: &ArchivedArticle, out: &mut dyn Write) -> std::io::Result<()> {
    if let Some(first) = article.versions.first() {
        writeln!(out, "first seen {}:\n", first.since.to_rfc3339())?;
        write_text(out, &first.article)?;
    }
    for pair in article.versions.windows(2) {
        let (n_taken_out, n_added) = n_edited(&edits(&pair[0].article, &pair[1].article));
        writeln!(out, "seen {}: {n_taken_out} words out, {n_added} in", pair[1].since.to_rfc3339())?;
        write_edits(out, &pair[0].article, &pair[1].article)?;
    }
    Ok(())
}
