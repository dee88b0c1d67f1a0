//! `perennial erase`: removes captures for legal reasons.

use anyhow::bail;
use clap::Args;

use super::{Context, Exit, context::human_bytes};
use perennial_archive::erase::{ErasedPart, ErasureReport, erase, plan_erasure};

const AFTER_HELP: &str = "\
Without --yes it only lists what would be erased. With --yes the records of the page or site are overwritten by tombstones in all \
WARC files, and analyses, texts, index and notices forget them. This cannot be undone. The manifest records what was erased and why.

Examples:
  perennial erase https://example.org/private --reason \"request of 2026-11-19\"
  perennial erase https://example.org/private --reason \"request of 2026-11-19\" --yes
  perennial erase example.org --reason \"court order 12/345\" --yes";

/// Erase the captures of a page or a site, for legal requests.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct EraseArgs {
    /// URL of a page, or host of a site
    #[arg(value_name = "URL|SITE")]
    what: String,

    /// Why; the tombstones and the manifest contain it
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Erase now; without this, only list what would be erased
    #[arg(long)]
    yes: bool,
}

impl EraseArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let part = ErasedPart::parse(&self.what)?;
        if self.reason.trim().is_empty() || self.reason.chars().any(char::is_control) {
            bail!("--reason: write one line of text, such as \"request of 2026-11-19\"");
        }
        let bar = context.progress_bytes(archive.warc_bytes()?, "reading");
        let progress = |bytes| bar.inc(bytes);
        let report = match self.yes {
            true => erase(&archive, &part, &self.reason, &progress)?,
            false => plan_erasure(&archive, &part, &progress)?,
        };
        bar.finish_and_clear();
        if report.is_done {
            // The text index was removed, because it contained the words.
            context.index_texts(&archive)?;
        }
        context.print(&report, |out| print(&report, self.yes, out))?;
        if report.n_records == 0 {
            bail!("no record of {} is in the archive: nothing was erased", report.what);
        }
        Ok(Exit::Done)
    }
}

fn print(report: &ErasureReport, is_confirmed: bool, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    for url in &report.urls {
        writeln!(out, "{url}")?;
    }
    let n_more = report.n_urls.saturating_sub(report.urls.len() as u64);
    if n_more > 0 {
        writeln!(out, "... and {n_more} more URLs")?;
    }
    let verb = if report.is_done { "erased" } else { "would erase" };
    writeln!(
        out,
        "{verb} {} records of {} URLs, {}, in {} WARC files",
        report.n_records,
        report.n_urls,
        human_bytes(report.bytes),
        report.files.len()
    )?;
    for file in &report.not_erased {
        writeln!(out, "not touched, may contain the same: {file}")?;
    }
    if report.is_done {
        writeln!(out, "exclude it in perennial.toml, or the next crawl captures it again")?;
    } else if !is_confirmed && report.n_records > 0 {
        writeln!(out, "nothing was changed: add --yes to erase")?;
    }
    Ok(())
}
