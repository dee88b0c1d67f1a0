//! `perennial export`: a part of the archive -> one WACZ, WARC or CDXJ file.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use perennial_core::time::Timestamp;

use super::{Context, Exit, context::human_bytes, parse_time};
use crate::archive::export::{self, export};
use crate::store::Filter;

const AFTER_HELP: &str = "\
Times are 2026-11-16T09:30:00Z, 2026-11-16 or digits such as 20261116. A WACZ opens in ReplayWeb.page.

Examples:
  perennial export --format wacz --output news.wacz --site news.example
  perennial export --format warc --output page.warc.gz --page https://news.example/ --since 2026-01-01
  perennial export --format cdxj --output index.cdxj
  perennial export --format warc --output blocks.warc.gz --trees";

/// Writes a part of the archive, or all of it, into one file for other tools.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Export {
    /// What to write
    #[arg(long, value_enum)]
    format: ExportFormat,

    /// Where to
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Only pages of this host (with :port if it has an unusual one)
    #[arg(long, value_name = "HOST")]
    site: Option<String>,

    /// Only this page
    #[arg(long, value_name = "URL")]
    page: Option<String>,

    /// Only captures from this time on
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,

    /// Only captures before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,

    /// Add the blocks of each analysed page as urn:vixml: records (WARC and WACZ)
    #[arg(long)]
    trees: bool,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// What an export is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum ExportFormat {
    /// A zip with WARC, index and page list, for ReplayWeb.page and others
    Wacz,
    /// One WARC file, a gzip member for each record
    Warc,
    /// The index lines, with the names of this archive's files
    Cdxj,
}

impl From<ExportFormat> for export::Format {
    fn from(format: ExportFormat) -> export::Format {
        match format {
            ExportFormat::Wacz => export::Format::Wacz,
            ExportFormat::Warc => export::Format::Warc,
            ExportFormat::Cdxj => export::Format::Cdxj,
        }
    }
}

impl Export {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        if self.output.exists() && !self.force {
            bail!("{} exists: choose another --output, or replace it with --force", self.output.display());
        }
        let filter = Filter { site: self.site, page: self.page, since: self.since, until: self.until };
        // Written beside its place, so that no one takes a half-written file for an export.
        let beside = self.output.with_added_extension("part");
        let mut out = File::create(&beside).with_context(|| format!("cannot write {}", beside.display()))?;
        let bar = context.progress_count(snapshot.store().counts()?.n_captures, "exporting");
        let now = crate::archive::now();
        let result =
            export(&snapshot, self.format.into(), &filter, self.trees, now, &mut out, &|n| bar.inc(n));
        bar.finish_and_clear();
        if result.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        let report = result?;
        std::fs::rename(&beside, &self.output)?;
        context.print(&report, |out| {
            let more = match report.n_origins {
                0 => String::new(),
                n => format!(" and {n} more whose content they share"),
            };
            let (n, size) = (report.n_captures, human_bytes(report.bytes));
            writeln!(out, "{}: {n} captures{more}, {size}", self.output.display())
        })?;
        Ok(Exit::Done)
    }
}
