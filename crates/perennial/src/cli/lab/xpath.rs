//! `perennial lab xpath`: the Vi-Delta of each change, or the Vi-XML of each version -> the nodes that an XPath selects.

use std::io::Write;

use perennial_archive::store::{CaptureFilter, ChangeFilter};
use perennial_core::page::segment::vixml;
use perennial_core::time::Timestamp;
use perennial_engine::analyse::{AdFilters, ChangeReader};
use perennial_lab::xpath::{XPath, XmlDocument};
use serde::Serialize;

use crate::cli::context::text_on_stdout;
use crate::cli::{Context, Exit, parse_time};

const AFTER_HELP: &str = "\
The expression applies to one document at a time: the Vi-Delta of a change (docs/videlta.md), or with --trees the Vi-XML of a version \
(docs/vixml.md). It may use /, //, *, ., @name, text(), [predicates], and, or, count, contains, starts-with, not. For all of XPath and \
XQuery, export the documents with `perennial export --format videlta` or `vixml`.

Examples:
  perennial lab xpath \"//Insert/link/@name\"
  perennial lab xpath \"//Block[@importance > 0.2]/Update/txt/@newText\" --site news.example --since 7d
  perennial lab xpath \"count(//link)\" --trees --page https://news.example/ --json";

/// Query the changes of pages with XPath, without an export.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct XpathArgs {
    /// The expression
    #[arg(value_name = "XPATH")]
    path: XPath,
    /// Query the blocks of versions instead of changes
    #[arg(long)]
    trees: bool,
    /// Only the pages of this host
    #[arg(long, value_name = "HOST")]
    site: Option<String>,
    /// Only this page
    #[arg(long, value_name = "URL")]
    page: Option<String>,
    /// Only from this time on
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
}

/// The nodes of one document that the expression selects.
#[derive(Serialize)]
struct XpathMatch {
    url: String,
    time: String,
    selected: Vec<String>,
}

impl XpathArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let store = snapshot.store();
        let mut out = text_on_stdout();
        let spinner = context.progress_count(0, "documents");
        let mut show = |url: &str, time: Timestamp, xml: &str| -> anyhow::Result<()> {
            spinner.inc(1);
            let selected = self.path.select(&XmlDocument::parse(xml)?);
            if selected.is_empty() {
                return Ok(());
            }
            let found = XpathMatch { url: url.to_owned(), time: time.to_rfc3339(), selected };
            if context.json {
                serde_json::to_writer(&mut *out, &found)?;
                return Ok(writeln!(out)?);
            }
            writeln!(out, "{} {}", found.time, found.url)?;
            Ok(found.selected.iter().try_for_each(|text| writeln!(out, "    {text}"))?)
        };
        if self.trees {
            let (site, page) = (self.site.clone(), self.page.clone());
            let filter = CaptureFilter {
                site,
                page,
                since: self.since,
                until: self.until,
                ..CaptureFilter::default()
            };
            store
                .select_captures(&filter, |_| Ok(None))?
                .each_tree(|url, time, tree| show(url, time, &vixml::write(tree)))?;
        } else {
            let filters = AdFilters::load(Some(snapshot.archive().root()))?;
            let mut reader = ChangeReader::new(store, &filters);
            let (host, url) = (self.site.as_deref(), self.page.as_deref());
            let wanted =
                ChangeFilter { host, url, since: self.since, until: self.until, ..ChangeFilter::default() };
            store.each_change(&wanted, |row| match reader.read(&row)? {
                Some(change) => show(&row.url, row.time, &change.delta.to_operations_xml()),
                None => Ok(()),
            })?;
        }
        spinner.finish_and_clear();
        out.flush()?;
        Ok(Exit::Done)
    }
}
