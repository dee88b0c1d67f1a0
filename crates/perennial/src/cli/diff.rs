//! `perennial diff`: two versions of a page -> the operations between them and their importance.

use std::io::Write;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use perennial_core::page::importance::{Importance, ImportanceConfig, ImportanceForm};
use perennial_core::page::segment::BlockTree;
use perennial_core::time::Timestamp;
use perennial_core::url::canonical;
use perennial_render::SubresourceLookup;

use super::context::{document_on_stdout, json_on_stdout, text_on_stdout};
use super::renderer::{RendererArgs, has_nothing_to_read, segment_config};
use super::{Context, Exit};
use perennial_archive::{SharedSnapshot, Snapshot};
use perennial_engine::analyse::{AdFilters, Comparison, LoadedPage, PageSpec, StoredChange};
use perennial_server::diff::{DiffView, Original};

/// Compare two versions of a page.
#[derive(clap::Args)]
#[command(
    after_help = "Formats: `text` has one line per operation, most important first; `json` importance, operations and structure; \
`videlta` the delta as XML; `html` both versions side by side, one file for any browser.

Examples:
  perennial diff before.html after.html
  perennial diff before.html after.html --format html > changes.html
  perennial diff before.html after.html --url https://example.org/news
  perennial diff v1.xml v2.xml --format videlta
  perennial diff https://example.org/@20260101 https://example.org/@20260201 --format json"
)]
pub(super) struct DiffArgs {
    /// File (HTML, Vi-XML, PDF, JSON, CSV, XML, text), an archived version as URL@TIME, or the URL of a live page
    before: PageSpec,
    /// The later version, in the same forms
    after: PageSpec,
    /// Output format
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    format: DiffFormat,
    /// Formula of the importance: visual-2009, pattern-2011 or monotone
    #[arg(long, default_value_t = ImportanceConfig::default().form, value_name = "FORM")]
    importance: ImportanceForm,
    /// URL of the page in the files, against which its links resolve
    #[arg(long, value_parser = parse_page_url)]
    url: Option<String>,
    /// Show changes of quotes, dashes, spaces and letter case too
    #[arg(long)]
    typography: bool,
    #[command(flatten)]
    renderer: RendererArgs,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum DiffFormat {
    Text,
    Json,
    Videlta,
    Html,
}

impl DiffArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let filters = self.filters(context)?;
        // Read both versions from one state of the archive.
        let snapshot = match self.before.snapshot(|| context.snapshot())? {
            Some(snapshot) => Some(snapshot),
            None => self.after.snapshot(|| context.snapshot())?,
        };
        let (mut page_before, mut page_after) =
            (self.before.load_named(snapshot.as_ref())?, self.after.load_named(snapshot.as_ref())?);
        for (spec, page) in [(&self.before, &mut page_before), (&self.after, &mut page_after)] {
            if let (PageSpec::File(_), Some(url)) = (spec, &self.url) {
                page.url.clone_from(url);
            }
        }
        [&page_before.note, &page_after.note].into_iter().flatten().for_each(|note| context.note(note));
        let config_before = segment_config(context, &self.before, &page_before.url)?;
        let config_after = segment_config(context, &self.after, &page_after.url)?;
        let pages = [(&page_before, config_before), (&page_after, config_after)];
        let mut seen = self.renderer.segment_pages(context, &pages)?.into_iter().map(|seen| seen.tree);
        let seen = seen.next().zip(seen.next()).context("internal error: the renderer returned no page")?;
        let (before, after) = alike(snapshot.as_ref(), seen)?;
        if !Comparison::is_fair(&before, &after) {
            bail!(
                "the two versions were segmented differently ({} and {}), by different engines or with different `pin` and `ignore` in \
                 perennial.toml; use the same engine and settings for both",
                before.engine,
                after.engine
            );
        }
        let config = ImportanceConfig::new(self.importance);
        let known = match &snapshot {
            Some(snapshot) => known_change(&snapshot.lock(), &before, &after)?,
            None => StoredChange::default(),
        };
        let compare = if self.typography { Comparison::with_typography } else { Comparison::new };
        let mut comparison = compare(before, after, &config, &filters, known.history());
        if let Some((importance, _)) = known.found.filter(|_| config.form == ImportanceConfig::default().form)
        {
            comparison.assessment.importance = Importance::new(importance);
        }
        self.print(context, &comparison, &page_before, &page_after)?;
        let is_empty = |tree| has_nothing_to_read(context, &self.renderer, tree);
        let n_empty =
            [&comparison.before, &comparison.after].into_iter().filter(|tree| is_empty(tree)).count();
        Ok(if n_empty > 0 { Exit::NothingToRead } else { Exit::Done })
    }

    /// The archive's filter lists, if there is an archive; a diff of files works without one.
    fn filters(&self, context: &Context) -> anyhow::Result<AdFilters> {
        let dir = context.archive_dir();
        AdFilters::load(dir.is_dir().then_some(dir.as_path()))
    }

    fn print(
        &self,
        context: &Context,
        comparison: &Comparison,
        before: &LoadedPage<'_>,
        after: &LoadedPage<'_>,
    ) -> anyhow::Result<()> {
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
            DiffFormat::Html => {
                let subresources_before = |url: &str| before.subresource(url);
                let subresources_after = |url: &str| after.subresource(url);
                let view = DiffView {
                    comparison,
                    form: &form,
                    before: original(before, &subresources_before),
                    after: original(after, &subresources_after),
                    pin: None,
                    frame: None,
                };
                out.write_all(view.page().as_bytes())?;
            }
        }
        if context.json || self.format == DiffFormat::Json {
            writeln!(out)?;
        }
        Ok(out.flush()?)
    }
}

fn parse_page_url(text: &str) -> Result<String, String> {
    let url = canonical::parse(text).map(String::from);
    url.ok_or_else(|| "not a URL of a page; write it with http:// or https://".to_owned())
}

/// The stored analysis of the change between two archived observations.
fn known_change(snapshot: &Snapshot, before: &BlockTree, after: &BlockTree) -> anyhow::Result<StoredChange> {
    let times = Timestamp::parse(&before.version).ok().zip(Timestamp::parse(&after.version).ok());
    match times.filter(|_| before.url == after.url) {
        Some((from, to)) => StoredChange::between(snapshot.store(), &after.url, from, to),
        None => Ok(StoredChange::default()),
    }
}

/// Two versions segmented by the same engine, if the archive has them. Of an unimportant version only the blocks may be stored, by an
/// earlier engine; then that engine segmented the other version too.
fn alike(
    snapshot: Option<&SharedSnapshot>,
    (before, after): (BlockTree, BlockTree),
) -> anyhow::Result<(BlockTree, BlockTree)> {
    let Some(snapshot) = snapshot.filter(|_| before.engine != after.engine) else {
        return Ok((before, after));
    };
    let snapshot = snapshot.lock();
    let store = snapshot.store();
    let as_stored = |seen: &BlockTree| -> anyhow::Result<Option<BlockTree>> {
        let time = Timestamp::parse(&seen.version).ok();
        let Some((page, time)) = store.page(&seen.url)?.zip(time) else { return Ok(None) };
        let (url, version) = (seen.url.clone(), seen.version.clone());
        Ok(store.tree_at(page.id, time)?.map(|tree| BlockTree { url, version, ..tree }))
    };
    let stored = as_stored(&before)?.zip(as_stored(&after)?);
    Ok(stored.filter(|(before, after)| before.engine == after.engine).unwrap_or((before, after)))
}

/// The page as it was captured; `None` for a document that is not HTML.
fn original<'a>(page: &'a LoadedPage<'_>, subresources: &'a SubresourceLookup<'a>) -> Option<Original<'a>> {
    let is_page = page.document.is_none() && !page.html.trim_start().starts_with("<?xml");
    is_page.then_some(Original { url: &page.url, html: &page.html, subresources })
}
