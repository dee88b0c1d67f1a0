//! `perennial search`: words -> the pages that contained them, and when.

use std::io::Write;

use anyhow::bail;
use perennial_core::search::{PassagePresence, TextQuery};
use perennial_core::time::Timestamp;
use serde::Serialize;

use super::context::not_found;
use super::{Context, Exit, parse_time};
use perennial_archive::store::{Store, Texts};
use perennial_engine::search::{Excerpt, SearchHit, SearchHits, SearchQuery, find_pages};

const AFTER_HELP: &str = "\
Searches all text that was visible on an analysed page at any time. All words must be in the same paragraph, heading, cell or link.


Examples:
  perennial search ferry
  perennial search '\"the ferry is safe\"' --site example.org
  perennial search 'limit* speed' --vanished --since 2026-01-01
  perennial search brücke --json";

/// Find pages that contained the words, and when.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct SearchArgs {
    /// The query
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Only pages of this host, with :port if it is not the default
    #[arg(long, value_name = "HOST")]
    site: Option<String>,
    /// Only this page
    #[arg(long, value_name = "URL")]
    page: Option<String>,
    /// Only text that was present at this time or later: 24h, yesterday, 2026-11-16
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only text that was present before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Only text that has vanished
    #[arg(long)]
    vanished: bool,
    /// Only text of versions above the index threshold of their page
    #[arg(long)]
    important: bool,
    /// Show at most N pages, the latest appearance first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

#[derive(Serialize)]
struct SearchReport<'a> {
    n_pages: usize,
    /// Only the latest hits were considered.
    is_partial: bool,
    pages: Vec<PageHit<'a>>,
}

#[derive(Serialize)]
struct PageHit<'a> {
    url: &'a str,
    title: Option<&'a str>,
    /// The latest passage with the words.
    text: &'a str,
    /// Byte ranges of the words in `text`.
    found: Vec<(usize, usize)>,
    role: &'static str,
    presence: Vec<PresenceRow>,
}

#[derive(Serialize)]
struct PresenceRow {
    /// The last observation without the passage.
    absent_until: Option<String>,
    first: String,
    last: String,
    /// The first observation without the passage.
    gone: Option<String>,
}

impl SearchArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let query = TextQuery::parse(&self.words.join(" "))?;
        let snapshot = context.snapshot()?;
        let Some(texts) = Texts::open_read(&snapshot.archive().texts_path())? else {
            bail!("the archive has no text index; run `perennial analyse`");
        };
        self.check_place(snapshot.store())?;
        let search = SearchQuery {
            host: self.site.as_deref(),
            url: self.page.as_deref(),
            since: self.since,
            until: self.until,
            is_vanished: self.vanished,
            is_important: self.important,
            limit: self.limit,
        };
        let hits = find_pages(snapshot.store(), &texts, &query, &search)?;
        context.print(&found(&hits), |out| write_hits(out, &hits))?;
        Ok(Exit::Done)
    }

    fn check_place(&self, store: &Store) -> anyhow::Result<()> {
        if let Some(page) = &self.page
            && store.page(page)?.is_none()
        {
            return Err(not_found(store, page));
        }
        match &self.site {
            Some(site) if store.host_pages(site)?.is_empty() => Err(not_found(store, site)),
            _ => Ok(()),
        }
    }
}

fn found(hits: &SearchHits) -> SearchReport<'_> {
    let page = |hit: &'_ SearchHit| -> (Vec<(usize, usize)>, Vec<PresenceRow>) {
        let found = hit.excerpt.found.iter().map(|at| (at.start, at.end)).collect();
        (found, hit.presences.iter().map(presence_row).collect())
    };
    let pages = hits.hits.iter().map(|hit| {
        let (found, presences) = page(hit);
        PageHit {
            url: &hit.url,
            title: hit.title.as_deref(),
            text: &hit.excerpt.text,
            found,
            role: hit.excerpt.role.name(),
            presence: presences,
        }
    });
    SearchReport { n_pages: hits.n_pages, is_partial: hits.is_partial, pages: pages.collect() }
}

fn presence_row(presence: &PassagePresence) -> PresenceRow {
    PresenceRow {
        absent_until: presence.absent_until.map(Timestamp::to_rfc3339),
        first: presence.first.to_rfc3339(),
        last: presence.last.to_rfc3339(),
        gone: presence.gone.map(Timestamp::to_rfc3339),
    }
}

fn write_hits(out: &mut dyn Write, hits: &SearchHits) -> std::io::Result<()> {
    if hits.hits.is_empty() {
        return writeln!(out, "no page contained this; try fewer words, or a prefix such as harb*");
    }
    for hit in &hits.hits {
        writeln!(out, "{}  {}", hit.url, hit.title.as_deref().unwrap_or_default())?;
        writeln!(out, "  {}: {}", hit.excerpt.role.name(), marked(&hit.excerpt))?;
        for presence in &hit.presences {
            writeln!(out, "  {}", describe(presence))?;
        }
    }
    let n_shown = hits.hits.len();
    match (hits.is_partial, hits.n_pages > n_shown) {
        (true, _) => writeln!(out, "\ntoo many hits: these are among the latest; add words or --site"),
        (false, true) => writeln!(out, "\n{n_shown} of {} pages; --limit shows more", hits.n_pages),
        (false, false) => Ok(()),
    }
}

/// When the passage appeared and vanished. Both are known up to the time between two observations.
fn describe(presence: &PassagePresence) -> String {
    let appeared = match presence.absent_until {
        Some(absent) => format!("appeared between {absent} and {}", presence.first),
        None => format!("present at the first observation, {}", presence.first),
    };
    match presence.gone {
        Some(gone) => format!("{appeared}; vanished between {} and {gone}", presence.last),
        None => format!("{appeared}; still present at {}", presence.last),
    }
}

/// The passage with the found words in brackets.
fn marked(excerpt: &Excerpt) -> String {
    let mut text = String::from(if excerpt.is_cut.0 { "..." } else { "" });
    let mut done = 0;
    for at in &excerpt.found {
        if at.start >= done {
            text += &format!("{}[{}]", &excerpt.text[done..at.start], &excerpt.text[at.clone()]);
            done = at.end;
        }
    }
    text += &excerpt.text[done..];
    if excerpt.is_cut.1 {
        text += "...";
    }
    text
}
