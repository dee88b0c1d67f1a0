//! `perennial article terms`: passages of a span -> words that are new or became frequent.

use std::io::Write;

use anyhow::bail;
use clap::Args;
use perennial_core::time::Timestamp;
use serde::Serialize;

use crate::cli::context::not_found;
use crate::cli::{Context, Exit, parse_time};
use perennial_archive::store::Texts;
use perennial_engine::search::{NewTerm, NewTerms, TermsQuery, new_terms};

const AFTER_HELP: &str = "\
A term is one word or two adjacent words. `now` counts the paragraphs, headings, cells and links with the term that appeared in the \
span, without advertisements and comments. The surprise is the log-likelihood ratio of this count to earlier passages (docs/search.md).

Examples:
  perennial article terms
  perennial article terms --since 24h --site example.org
  perennial article terms --since 2026-11-01 --until 2026-11-08 --limit 100 --json";

/// List terms that are new or became much more frequent.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct TermsArgs {
    /// Start of the span
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_time)]
    since: Timestamp,
    /// End of the span [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Only the pages of this host
    #[arg(long, value_name = "HOST")]
    site: Option<String>,
    /// Show at most N terms
    #[arg(long, value_name = "N", default_value_t = 40)]
    limit: usize,
}

#[derive(Serialize)]
struct TermsReport {
    since: String,
    until: Option<String>,
    /// Passages that appeared in the span.
    n_passages: u64,
    /// Earlier passages.
    n_before: u64,
    /// Only the latest passages of the span were read.
    is_partial: bool,
    terms: Vec<TermRow>,
}

#[derive(Serialize)]
struct TermRow {
    term: String,
    n_passages: u64,
    n_before: u64,
    surprise: f64,
}

impl TermsArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let store = snapshot.store();
        let Some(texts) = Texts::open_read(&snapshot.archive().texts_path())? else {
            bail!("the text index is missing or of another release; run `perennial analyse`");
        };
        if let Some(site) = &self.site
            && store.host_pages(site)?.is_empty()
        {
            return Err(not_found(store, site));
        }
        let (since, until) = (self.since, self.until);
        let query = TermsQuery { since, until, host: self.site.as_deref(), limit: self.limit };
        let found = new_terms(store, &texts, &query)?;
        let report = TermsReport {
            since: since.to_rfc3339(),
            until: until.map(Timestamp::to_rfc3339),
            n_passages: found.n_passages,
            n_before: found.n_before,
            is_partial: found.is_partial,
            terms: found.terms.iter().map(term_row).collect(),
        };
        context.print(&report, |out| write_terms(out, &found))?;
        Ok(Exit::Done)
    }
}

fn term_row(term: &NewTerm) -> TermRow {
    let NewTerm { shown, n_passages, n_before, surprise } = term.clone();
    TermRow { term: shown, n_passages, n_before, surprise }
}

fn write_terms(out: &mut dyn Write, found: &NewTerms) -> std::io::Result<()> {
    if found.terms.is_empty() {
        let n = found.n_passages;
        return writeln!(out, "no surprising term in {n} passages; try a longer span, such as --since 30d");
    }
    writeln!(out, "surprise  now  before  term")?;
    for term in &found.terms {
        let before = if term.n_before == 0 { "new".to_owned() } else { term.n_before.to_string() };
        writeln!(out, "{:8.1}  {:3}  {before:>6}  {}", term.surprise, term.n_passages, term.shown)?;
    }
    if found.is_partial {
        writeln!(out, "\nonly the latest {} passages of the span were read", found.n_passages)?;
    }
    Ok(())
}
