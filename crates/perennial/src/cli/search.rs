//! `perennial search`: words -> the pages that said them, from when to when.

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
Looks through everything that a reader could read on any analysed page at any time. Words in one \
question must stand in one paragraph, heading, cell or link.
  ferry harbour      both words, in any order
  \"new ferry line\"   these words in a row
  harb*              words that begin so
  'ferry -harbour'   without that word; in quotation marks, or it would be taken for an option
  ferry OR boat      one or the other
Case and accents do not count. Times are those of looks: what appeared did so after the look \
before, and what vanished did so before the look that did not show it any more.

--important leaves out versions below the index threshold of their page (docs/papers.md).

Examples:
  perennial search ferry
  perennial search '\"the ferry is safe\"' --site example.org
  perennial search 'limit* speed' --vanished --since 2026-01-01
  perennial search brücke --json";

/// Find pages that contained the words, and when.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Search {
    /// The words
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Only pages of this host, with :port if it has an unusual one
    #[arg(long, value_name = "HOST")]
    site: Option<String>,
    /// Only this page
    #[arg(long, value_name = "URL")]
    page: Option<String>,
    /// Only what stood there at this time or later: 24h, yesterday, 2026-11-16
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only what stood there before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Only what is not there any more
    #[arg(long)]
    vanished: bool,
    /// Only what versions worth indexing brought
    #[arg(long)]
    important: bool,
    /// At most so many pages, those where the words appeared last
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

#[derive(Serialize)]
struct Found<'a> {
    n_pages: usize,
    /// Whether only the latest answers were looked at.
    is_partial: bool,
    pages: Vec<FoundPage<'a>>,
}

#[derive(Serialize)]
struct FoundPage<'a> {
    url: &'a str,
    title: Option<&'a str>,
    /// The words as they stood there last, with the text around them.
    text: &'a str,
    /// Where they stand in it, in bytes.
    found: Vec<(usize, usize)>,
    role: &'static str,
    stays: Vec<FoundStay>,
}

#[derive(Serialize)]
struct FoundStay {
    /// The last look that did not show it.
    absent_until: Option<String>,
    first: String,
    last: String,
    /// The look that did not show it any more.
    gone: Option<String>,
}

impl Search {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let query = TextQuery::parse(&self.words.join(" "))?;
        let snapshot = context.snapshot()?;
        let Some(texts) = Texts::open_read(&snapshot.archive().texts_path())? else {
            bail!("nothing of this archive can be searched yet: `perennial analyse` makes the text index");
        };
        self.check_place(snapshot.store())?;
        let question = SearchQuery {
            host: self.site.as_deref(),
            url: self.page.as_deref(),
            since: self.since,
            until: self.until,
            is_vanished: self.vanished,
            is_important: self.important,
            limit: self.limit,
        };
        let answers = find_pages(snapshot.store(), &texts, &query, &question)?;
        context.print(&found(&answers), |out| write_answers(out, &answers))?;
        Ok(Exit::Done)
    }

    fn check_place(&self, store: &Store) -> anyhow::Result<()> {
        if let Some(page) = &self.page
            && store.page(page)?.is_none()
        {
            return Err(not_found(store, page));
        }
        match &self.site {
            Some(site) if store.pages_of_host(site)?.is_empty() => Err(not_found(store, site)),
            _ => Ok(()),
        }
    }
}

fn found(answers: &SearchHits) -> Found<'_> {
    let page = |hit: &'_ SearchHit| -> (Vec<(usize, usize)>, Vec<FoundStay>) {
        let found = hit.excerpt.found.iter().map(|at| (at.start, at.end)).collect();
        (found, hit.stays.iter().map(found_stay).collect())
    };
    let pages = answers.hits.iter().map(|hit| {
        let (found, stays) = page(hit);
        FoundPage {
            url: &hit.url,
            title: hit.title.as_deref(),
            text: &hit.excerpt.text,
            found,
            role: hit.excerpt.role.name(),
            stays,
        }
    });
    Found { n_pages: answers.n_pages, is_partial: answers.is_partial, pages: pages.collect() }
}

fn found_stay(stay: &PassagePresence) -> FoundStay {
    FoundStay {
        absent_until: stay.absent_until.map(Timestamp::to_rfc3339),
        first: stay.first.to_rfc3339(),
        last: stay.last.to_rfc3339(),
        gone: stay.gone.map(Timestamp::to_rfc3339),
    }
}

fn write_answers(out: &mut dyn Write, answers: &SearchHits) -> std::io::Result<()> {
    if answers.hits.is_empty() {
        return writeln!(out, "no page said so: try fewer words, or part of a word with * behind it");
    }
    for hit in &answers.hits {
        writeln!(out, "{}  {}", hit.url, hit.title.as_deref().unwrap_or_default())?;
        writeln!(out, "  {}: {}", hit.excerpt.role.name(), marked(&hit.excerpt))?;
        for stay in &hit.stays {
            writeln!(out, "  {}", told(stay))?;
        }
    }
    let n_shown = answers.hits.len();
    match (answers.is_partial, answers.n_pages > n_shown) {
        (true, _) => writeln!(
            out,
            "\nmore than can be looked at: these are among the latest; ask for more words, or a --site"
        ),
        (false, true) => writeln!(out, "\n{n_shown} of {} pages; --limit shows more", answers.n_pages),
        (false, false) => Ok(()),
    }
}

/// When it appeared and when it vanished, as far as looks tell.
fn told(stay: &PassagePresence) -> String {
    let appeared = match stay.absent_until {
        Some(absent) => format!("appeared between {absent} and {}", stay.first),
        None => format!("there at the first look, {}", stay.first),
    };
    match stay.gone {
        Some(gone) => format!("{appeared}; vanished between {} and {gone}", stay.last),
        None => format!("{appeared}; still there at {}", stay.last),
    }
}

/// The text with the words that answer in brackets.
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
