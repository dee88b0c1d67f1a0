//! `perennial diff`: two versions of a page -> the operations between them and their importance.

use std::io::Write;

use anyhow::bail;
use clap::ValueEnum;
use perennial_core::importance::{Form, Importance, ImportanceConfig};
use perennial_core::time::Timestamp;

use super::context::{document_on_stdout, json_on_stdout, text_on_stdout};
use super::{Context, Exit};
use crate::analyse::{Analyst, Comparison, Filters, PageSpec};
use crate::archive::{Snapshot, is_archive};
use crate::html::diff::to_html;

/// Shows what changed between two versions of a page, and how much it matters.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  perennial diff before.html after.html
  perennial diff before.html after.html --format html > changes.html
  perennial diff v1.xml v2.xml --format videlta
  perennial diff https://example.org/@20260101 https://example.org/@20260201 --format json")]
pub(super) struct Diff {
    /// File (HTML, Vi-XML, PDF, JSON, CSV, XML, text), an archived version as URL@TIME, or the URL of a live page
    before: PageSpec,
    /// The later version, in the same forms
    after: PageSpec,
    /// Output format
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    format: DiffFormat,
    /// Formula of the importance: visual-2009, pattern-2011 or monotone
    #[arg(long, default_value_t = ImportanceConfig::default().form, value_name = "FORM")]
    importance: Form,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum DiffFormat {
    /// One line an operation, the most important first
    Text,
    /// Importance, operations and structure
    Json,
    /// The delta as XML
    Videlta,
    /// Both versions side by side, one file for any browser
    Html,
}

/// What the archive knows of the same two versions, where it compared them: the number that `perennial changes` shows.
fn known_importance(snapshot: &Snapshot, comparison: &Comparison) -> anyhow::Result<Option<Importance>> {
    let (before, after) = (&comparison.before, &comparison.after);
    let times = Timestamp::parse(&before.version).ok().zip(Timestamp::parse(&after.version).ok());
    let Some((from, to)) = times.filter(|_| before.url == after.url) else { return Ok(None) };
    Ok(snapshot.store().importance_between(&after.url, from, to)?.map(Importance::new))
}

impl Diff {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let analyst = self.analyst(context)?;
        // Both versions from one state of the archive.
        let snapshot = match self.before.snapshot(|| context.snapshot())? {
            Some(snapshot) => Some(snapshot),
            None => self.after.snapshot(|| context.snapshot())?,
        };
        let (before, note_before) = analyst.tree_of(&self.before, snapshot.as_ref())?;
        let (after, note_after) = analyst.tree_of(&self.after, snapshot.as_ref())?;
        [note_before, note_after].into_iter().flatten().for_each(|note| context.note(note));
        if before.engine != after.engine && !before.engine.is_empty() && !after.engine.is_empty() {
            bail!(
                "the two versions were segmented differently ({} and {}), by different engines or different `pin` and `ignore` in \
                 perennial.toml: make both trees with the same engine and settings",
                before.engine,
                after.engine
            );
        }
        let config = ImportanceConfig::of(self.importance);
        let mut comparison = Comparison::new(before, after, &config, analyst.filters());
        if let Some(snapshot) = &snapshot
            && config.form == ImportanceConfig::default().form
            && let Some(importance) = known_importance(&snapshot.lock(), &comparison)?
        {
            comparison.assessment.importance = importance;
        }
        self.print(context, &comparison)?;
        Ok(Exit::Done)
    }

    /// Addresses are analysed with the archive's filters and settings, if there is an archive; files need none.
    fn analyst(&self, context: &Context) -> anyhow::Result<Analyst> {
        let dir = context.archive_dir();
        let has_address = [&self.before, &self.after].iter().any(|spec| !matches!(spec, PageSpec::File(_)));
        match has_address && is_archive(&dir) {
            true => Analyst::for_archive(&context.open()?),
            false => Analyst::new(Filters::load(dir.is_dir().then_some(dir.as_path()))?),
        }
    }

    fn print(&self, context: &Context, comparison: &Comparison) -> anyhow::Result<()> {
        let form = self.importance.to_string();
        let mut out = match self.format {
            _ if context.json => json_on_stdout(),
            DiffFormat::Json => json_on_stdout(),
            DiffFormat::Text => text_on_stdout(),
            DiffFormat::Videlta | DiffFormat::Html => document_on_stdout(),
        };
        match self.format {
            _ if context.json => serde_json::to_writer_pretty(&mut out, &comparison.report(&form))?,
            DiffFormat::Json => serde_json::to_writer_pretty(&mut out, &comparison.report(&form))?,
            DiffFormat::Text => comparison.write_text(&mut out)?,
            DiffFormat::Videlta => out.write_all(comparison.delta.to_operations_xml().as_bytes())?,
            DiffFormat::Html => out.write_all(to_html(comparison, &form).as_bytes())?,
        }
        if context.json || self.format == DiffFormat::Json {
            writeln!(out)?;
        }
        Ok(out.flush()?)
    }
}
