//! `perennial export`: the archive, or a part of it -> one file: records, articles, blocks, changes or tables.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use perennial_core::time::Timestamp;

use super::tables::{ExportTable, TableForm};
use super::{Context, Exit, context::human_bytes, parse_time};
use perennial_archive::export::{self, export};
use perennial_archive::parts::with_subresources;
use perennial_archive::signature::SigningKey;
use perennial_archive::store::CaptureFilter;
use perennial_archive::{SharedSnapshot, Snapshot};
use perennial_engine::analyse::{AdFilters, write_deltas, write_trees};
use perennial_engine::feeds::articles::{self, ArticleFormat};

const AFTER_HELP: &str = "\
`wacz` is a zip for ReplayWeb.page, `warc` one WARC file, `cdxj` the index. `articles` are the articles that feeds \
announced, one per line as JSON with every version, `articles-markdown` the same as Markdown. `vixml` has the blocks of every version, \
`videlta` the operations of every change. `csv` and `parquet` have one row per entry of --table, with the columns of docs/sql.md. \
Times are 2026-11-16T09:30:00Z, 2026-11-16 or digits such as 20261116. A damaged record is omitted and counted, and the exit code is 4.

Examples:
  perennial export --format wacz --output news.wacz --site news.example
  perennial export --format warc --output page.warc.gz --page https://news.example/ --since 2026-01-01
  perennial export --format cdxj --output index.cdxj
  perennial export --format articles --output corpus.jsonl --site news.example
  perennial export --format videlta --output deltas.xml --site news.example
  perennial export --format csv --output changes.csv --since 2026-01-01
  perennial export --format parquet --table deltas --output deltas.parquet
  perennial export --format warc --output blocks.warc.gz --trees";

/// Write the archive, or a part of it, into one file.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ExportArgs {
    /// Format of the file
    #[arg(long, value_enum)]
    format: ExportFormat,

    /// Path of the file
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

    /// Sign a WACZ file with the archive's key, signing.key, which is made on first use
    #[arg(long)]
    sign: bool,

    /// Table of a CSV or Parquet file
    #[arg(long, value_enum, default_value_t = ExportTable::Changes)]
    table: ExportTable,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum ExportFormat {
    Wacz,
    Warc,
    Cdxj,
    Articles,
    ArticlesMarkdown,
    Vixml,
    Videlta,
    Csv,
    Parquet,
}

/// The code that writes a format.
enum ExportWriter {
    Records(export::RecordFormat),
    Articles(ArticleFormat),
    Trees,
    Deltas,
    Table(TableForm),
}

impl ExportFormat {
    fn writer(self) -> ExportWriter {
        match self {
            ExportFormat::Wacz => ExportWriter::Records(export::RecordFormat::Wacz),
            ExportFormat::Warc => ExportWriter::Records(export::RecordFormat::Warc),
            ExportFormat::Cdxj => ExportWriter::Records(export::RecordFormat::Cdxj),
            ExportFormat::Articles => ExportWriter::Articles(ArticleFormat::JsonLines),
            ExportFormat::ArticlesMarkdown => ExportWriter::Articles(ArticleFormat::Markdown),
            ExportFormat::Vixml => ExportWriter::Trees,
            ExportFormat::Videlta => ExportWriter::Deltas,
            ExportFormat::Csv => ExportWriter::Table(TableForm::Csv),
            ExportFormat::Parquet => ExportWriter::Table(TableForm::Parquet),
        }
    }
}

impl ExportArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if self.output.exists() && !self.force {
            bail!("{} exists: choose another --output, or replace it with --force", self.output.display());
        }
        // Written under a temporary name, so a half-written file is not mistaken for an export.
        let beside = self.output.with_added_extension("part");
        let out = File::create(&beside).with_context(|| format!("cannot write {}", beside.display()))?;
        let (site, page) = (self.site.clone(), self.page.clone());
        let filter =
            CaptureFilter { site, page, since: self.since, until: self.until, ..CaptureFilter::default() };
        let result = match self.format.writer() {
            ExportWriter::Records(format) => self.export_records(context, format, &filter, out),
            ExportWriter::Articles(format) => self.export_articles(context, format, &filter, out),
            ExportWriter::Trees => export_xml(context, "trees", out, |snapshot, out, progress| {
                write_trees(snapshot.store(), &filter, out, progress)
            }),
            ExportWriter::Deltas => export_xml(context, "deltas", out, |snapshot, out, progress| {
                let filters = AdFilters::load(Some(snapshot.archive().root()))?;
                write_deltas(snapshot.store(), &filters, &filter, out, progress)
            }),
            ExportWriter::Table(form) => self.export_table(context, form, &filter, out),
        };
        if result.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        let summary = result?;
        std::fs::rename(&beside, &self.output)?;
        context
            .print(&summary.report, |out| writeln!(out, "{}: {}", self.output.display(), summary.words))?;
        if summary.n_damaged == 0 {
            return Ok(Exit::Done);
        }
        context.note(format_args!(
            "{} captures have damaged records and were omitted: see `perennial verify`",
            summary.n_damaged
        ));
        Ok(Exit::Defects)
    }

    fn export_records(
        &self,
        context: &Context,
        format: export::RecordFormat,
        filter: &CaptureFilter,
        mut out: File,
    ) -> anyhow::Result<ExportSummary> {
        let snapshot = context.snapshot()?;
        // A WACZ is for players, which need the subresources of its pages.
        let whole = match format {
            export::RecordFormat::Wacz => Some(with_subresources(&snapshot, filter)?),
            _ => None,
        };
        let filter = whole.as_ref().unwrap_or(filter);
        let key = match self.sign {
            true if format != export::RecordFormat::Wacz => bail!("--sign: only WACZ files can be signed"),
            true => Some(SigningKey::open_or_make(snapshot.archive())?),
            false => None,
        };
        let bar = context
            .progress_count(snapshot.store().counts(snapshot.archive().horizon())?.n_captures, "exporting");
        let now = perennial_archive::now();
        let options = export::ExportOptions { format, with_trees: self.trees, key: key.as_ref() };
        let report = export(&snapshot, &options, filter, now, &mut out, &|n| bar.inc(n));
        bar.finish_and_clear();
        let report = report?;
        let more = match report.n_origins {
            0 => String::new(),
            n => format!(" and {n} more whose content they share"),
        };
        let words = format!("{} captures{more}, {}", report.n_captures, human_bytes(report.bytes));
        Ok(ExportSummary { words, n_damaged: report.n_damaged, report: serde_json::to_value(&report)? })
    }

    fn export_articles(
        &self,
        context: &Context,
        format: ArticleFormat,
        filter: &CaptureFilter,
        out: File,
    ) -> anyhow::Result<ExportSummary> {
        let shared = SharedSnapshot::new(context.snapshot()?);
        let pages = articles::announced(&shared, filter)?;
        let bar = context.progress_count(pages.len() as u64, "reading articles");
        let mut out = BufWriter::new(out);
        let report = articles::export(&shared, pages, filter, format, &mut out, &|| bar.inc(1));
        bar.finish_and_clear();
        let report = report?;
        if report.n_articles == 0 {
            bail!(
                "no article fits: `perennial article list` shows what feeds announced, and `perennial feed list` the feeds"
            );
        }
        let bytes = finished(out)?;
        let (n, n_versions) = (report.n_articles, report.n_versions);
        let words = format!("{n} articles with {n_versions} versions, {}", human_bytes(bytes));
        let mut line = serde_json::to_value(report)?;
        line["bytes"] = bytes.into();
        Ok(ExportSummary { words, n_damaged: report.n_unread, report: line })
    }
}

impl ExportArgs {
    fn export_table(
        &self,
        context: &Context,
        form: TableForm,
        filter: &CaptureFilter,
        out: File,
    ) -> anyhow::Result<ExportSummary> {
        let (archive, table) = (context.open()?, self.table.name());
        let bar = context.progress_count(0, "exporting");
        let written = self.table.write(&archive, filter, form, out, &|| bar.inc(1));
        bar.finish_and_clear();
        let (n_rows, out) = written?;
        let bytes = finished(out)?;
        let report = serde_json::json!({ "table": table, "n_rows": n_rows, "bytes": bytes });
        Ok(ExportSummary { words: format!("{n_rows} {table}, {}", human_bytes(bytes)), n_damaged: 0, report })
    }
}

/// Writes one XML document.
fn export_xml(
    context: &Context,
    what: &'static str,
    out: File,
    write: impl FnOnce(&Snapshot, &mut dyn std::io::Write, &dyn Fn()) -> anyhow::Result<u64>,
) -> anyhow::Result<ExportSummary> {
    let snapshot = context.snapshot()?;
    let bar = context.progress_count(0, "exporting");
    let mut out = BufWriter::new(out);
    let written = write(&snapshot, &mut out, &|| bar.inc(1));
    bar.finish_and_clear();
    let (n, bytes) = (written?, finished(out)?);
    let report = serde_json::json!({ "what": what, "n": n, "bytes": bytes });
    Ok(ExportSummary { words: format!("{n} {what}, {}", human_bytes(bytes)), n_damaged: 0, report })
}

/// Syncs a file; returns its length.
fn finished(out: BufWriter<File>) -> anyhow::Result<u64> {
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// The result, for programs and for people.
struct ExportSummary {
    report: serde_json::Value,
    words: String,
    n_damaged: u64,
}
