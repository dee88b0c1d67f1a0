//! `perennial objects`, `perennial object`: archived pages -> the articles and posts that they held, with their versions.
//!
//! Objects are derived when they are asked for: from the captures of a page, what a feed said of it, and what it shares with other pages of
//! its site. Nothing is stored.

use std::collections::HashMap;
use std::io::Write;

use anyhow::Context as _;
use perennial_core::dom::Dom;
use perennial_core::object::version::{edits, n_edited, same_version};
use perennial_core::object::{Context as Known, MAX_NEIGHBOURS, Object, Template, extract};
use perennial_core::page::PageId;
use perennial_core::time::Timestamp;
use regex::Regex;
use serde_json::{Value, json};

use super::context::{json_on_stdout, text_on_stdout};
use super::extract::{json_of, json_of_edit, write_edits, write_text};
use super::{Context, Exit, parse_time};
use crate::analyse::PageSpec;
use crate::archive::SharedSnapshot;
use crate::store::{AnnouncedFilter, AnnouncedPage, site_of};

/// Versions of a page that are read, the latest of them.
const MAX_VERSIONS: usize = 500;

const AFTER_HELP: &str = "\
An object is what a feed announced and a capture shows: an article, a post, a message. A version counts when its own words,
links or images changed; surroundings, comments and dates do not. --edited shows what was edited, the headline first.
With --json one object a line is printed, with all its versions.

Examples:
  perennial objects news.example --since 24h
  perennial objects --edited --json
  perennial objects --feed https://news.example/feed.xml --text 'ferr(y|ies)'
  perennial objects --format markdown > corpus.md";

/// Lists the articles and posts that feeds announced, with their versions.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Objects {
    /// A site, as example.org or example.org:8080
    site: Option<String>,
    /// Only what this feed announced
    #[arg(long, value_name = "URL")]
    feed: Option<String>,
    /// Only what was first announced since then: 24h, yesterday, 2026-11-16
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only objects with such words in headline or text: a regular expression
    #[arg(long, value_name = "RE")]
    text: Option<Regex>,
    /// Only objects that were edited, with their edits
    #[arg(long)]
    edited: bool,
    /// At most so many, the latest first
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How they are written: a line each, or headline and text free of layout
    #[arg(long, value_name = "NAME", default_value = "lines", value_parser = ["lines", "markdown"])]
    format: String,
}

const AFTER_HELP_OF_ONE: &str = "\
Examples:
  perennial object https://news.example/2026/ferry.html
  perennial object https://news.example/2026/ferry.html --history
  perennial object https://news.example/2026/ferry.html --json";

/// Shows the article or post of an archived page, and with --history its versions and what was edited.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP_OF_ONE)]
pub(super) struct OneObject {
    /// Address of the page
    url: String,
    /// Show every version with the words that were taken out and added
    #[arg(long)]
    history: bool,
}

/// One version of an object.
struct Version {
    since: Timestamp,
    object: Object,
}

/// An object with all that is known of it.
struct Told {
    url: String,
    announced: Option<AnnouncedPage>,
    versions: Vec<Version>,
}

impl Objects {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let shared = SharedSnapshot::new(context.snapshot()?);
        let (site, feed) = (self.site.as_deref(), self.feed.as_deref());
        let filter = AnnouncedFilter { site, feed, since: self.since };
        let announced = shared.lock().store().announced_pages(&filter)?;
        let mut templates = Templates::of(&announced);
        let mut out = if context.json { json_on_stdout() } else { text_on_stdout() };
        let progress = context.progress_count(announced.len() as u64, "reading objects");
        let mut n_told = 0;
        for page in announced {
            progress.inc(1);
            if n_told >= self.limit.unwrap_or(usize::MAX) {
                break;
            }
            let told = Told::of(&shared, &page.url.clone(), page.page, Some(page), &mut templates)?;
            if self.lets_through(&told) {
                n_told += 1;
                self.tell(context, &told, &mut *out)?;
            }
        }
        progress.finish_and_clear();
        if n_told == 0 && !context.json {
            writeln!(out, "no such object: `perennial feeds` tells which feeds are followed")?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn lets_through(&self, told: &Told) -> bool {
        let has_words = |re: &Regex| {
            told.versions.iter().any(|version| {
                re.is_match(&version.object.title)
                    || re.is_match(&version.object.text)
                    || re.is_match(&version.object.lead)
            })
        };
        !told.versions.is_empty()
            && (!self.edited || told.versions.len() > 1)
            && self.text.as_ref().is_none_or(has_words)
    }

    fn tell(&self, context: &Context, told: &Told, out: &mut dyn Write) -> anyhow::Result<()> {
        if context.json {
            return told.write_json(out);
        }
        match self.format.as_str() {
            "markdown" => Ok(told.write_markdown(out)?),
            _ => Ok(told.write_line(out, self.edited)?),
        }
    }
}

impl OneObject {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let shared = SharedSnapshot::new(context.snapshot()?);
        let missing = || format!("the archive has no page {}: see `perennial info --sites 50`", self.url);
        let page = shared.lock().store().page(&self.url)?.with_context(missing)?;
        let announced = shared.lock().store().announced_page(page.id)?;
        let neighbours = shared.lock().store().announced_pages(&AnnouncedFilter::default())?;
        let mut templates = Templates::of(&neighbours);
        let told = Told::of(&shared, &self.url, page.id, announced, &mut templates)?;
        let mut out = if context.json { json_on_stdout() } else { text_on_stdout() };
        if context.json {
            told.write_json(&mut *out)?;
        } else if self.history {
            told.write_history(&mut *out)?;
        } else if let Some(latest) = told.versions.last() {
            write_text(&mut *out, &latest.object)?;
        } else {
            anyhow::bail!("no capture of {} can be read as a page: see `perennial log`", self.url);
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

/// What the pages of a site share, made once for each site.
struct Templates {
    neighbours: HashMap<String, Vec<String>>,
    made: HashMap<String, Option<Template>>,
}

impl Templates {
    fn of(announced: &[AnnouncedPage]) -> Templates {
        let mut neighbours: HashMap<String, Vec<String>> = HashMap::new();
        for page in announced {
            let of_site = neighbours.entry(site_of(&page.url)).or_default();
            if of_site.len() < MAX_NEIGHBOURS {
                of_site.push(page.url.clone());
            }
        }
        Templates { neighbours, made: HashMap::new() }
    }

    fn of_page(&mut self, shared: &SharedSnapshot, url: &str) -> Option<&Template> {
        let site = site_of(url);
        if !self.made.contains_key(&site) {
            let urls = self.neighbours.get(&site).map_or(&[][..], Vec::as_slice);
            let latest = |url: &String| read(shared, url, None).map(|html| Dom::parse(&html));
            let pages: Vec<Dom> = urls.iter().filter_map(latest).collect();
            // Two pages share by chance; five tell.
            let template = (pages.len() >= 5).then(|| Template::of(&pages));
            self.made.insert(site.clone(), template);
        }
        self.made.get(&site)?.as_ref()
    }
}

/// The HTML of an archived version; `None` when it cannot be read, or is no page.
fn read(shared: &SharedSnapshot, url: &str, time: Option<Timestamp>) -> Option<String> {
    let spec = PageSpec::Archived { url: url.to_owned(), time };
    let page = spec.load(Some(shared), false).ok()?;
    page.document.is_none().then(|| page.html.clone()).filter(|html| !html.is_empty())
}

impl Told {
    fn of(
        shared: &SharedSnapshot,
        url: &str,
        page: PageId,
        announced: Option<AnnouncedPage>,
        templates: &mut Templates,
    ) -> anyhow::Result<Told> {
        let rows = shared.lock().store().versions_of(page)?;
        let template = templates.of_page(shared, url);
        let title = announced.as_ref().map(|item| item.title.as_str());
        let description =
            announced.as_ref().map(|item| item.summary.as_str()).filter(|text| !text.is_empty());
        let mut versions: Vec<Version> = Vec::new();
        for row in rows.iter().skip(rows.len().saturating_sub(MAX_VERSIONS)) {
            let Some(html) = read(shared, url, Some(row.first_time)) else { continue };
            let object = extract(&Dom::parse(&html), &Known { title, description, url: Some(url), template });
            let is_new = versions.last().is_none_or(|last| !same_version(&last.object, &object));
            if is_new && !(object.text.is_empty() && object.title.is_empty()) {
                versions.push(Version { since: row.first_time, object });
            }
        }
        Ok(Told { url: url.to_owned(), announced, versions })
    }

    fn write_json(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let Some(latest) = self.versions.last() else { return Ok(()) };
        let mut line = json_of(&latest.object);
        line["page"] = json!(self.url);
        line["capture"] = json!(latest.since.to_rfc3339());
        if let Some(announced) = &self.announced {
            line["feed"] = json!(announced.feed);
            line["published"] = json!(announced.published.map(Timestamp::to_rfc3339));
            line["first_seen"] = json!(announced.first_seen.to_rfc3339());
        }
        let mut before: Option<&Version> = None;
        let mut versions = Vec::new();
        for version in &self.versions {
            let edits = before.map(|before| edits(&before.object, &version.object)).unwrap_or_default();
            let edits: Vec<Value> = edits.iter().map(json_of_edit).collect();
            versions.push(json!({
                "since": version.since.to_rfc3339(), "title": version.object.title, "edits": edits,
            }));
            before = Some(version);
        }
        line["versions"] = versions.into();
        serde_json::to_writer(&mut *out, &line)?;
        Ok(writeln!(out)?)
    }

    fn write_line(&self, out: &mut dyn Write, with_edits: bool) -> std::io::Result<()> {
        let Some(latest) = self.versions.last() else { return Ok(()) };
        let time = self
            .announced
            .as_ref()
            .map(|item| item.published.unwrap_or(item.first_seen))
            .or(latest.object.time);
        let time = time.map(Timestamp::to_rfc3339).unwrap_or_default();
        let n_edits = self.versions.len() - 1;
        let edited = match n_edits {
            0 => String::new(),
            1 => " (edited once)".to_owned(),
            n => format!(" (edited {n} times)"),
        };
        writeln!(out, "{time} {}{edited}\n  {}", latest.object.title, self.url)?;
        for pair in self.versions.windows(2).filter(|_| with_edits) {
            writeln!(out, "\nseen {}:", pair[1].since.to_rfc3339())?;
            write_edits(out, &pair[0].object, &pair[1].object)?;
        }
        Ok(())
    }

    fn write_history(&self, out: &mut dyn Write) -> std::io::Result<()> {
        if let Some(first) = self.versions.first() {
            writeln!(out, "first seen {}:\n", first.since.to_rfc3339())?;
            write_text(out, &first.object)?;
        }
        for pair in self.versions.windows(2) {
            let (n_taken_out, n_added) = n_edited(&edits(&pair[0].object, &pair[1].object));
            writeln!(out, "seen {}: {n_taken_out} words out, {n_added} in", pair[1].since.to_rfc3339())?;
            write_edits(out, &pair[0].object, &pair[1].object)?;
        }
        Ok(())
    }

    /// Free of layout, for corpora and for readers of a later time.
    fn write_markdown(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let Some(Version { since, object }) = self.versions.last() else { return Ok(()) };
        writeln!(out, "# {}\n", object.title)?;
        let time = object.time.or_else(|| self.announced.as_ref().and_then(|item| item.published));
        let said = [object.author.clone(), time.map(Timestamp::to_rfc3339).unwrap_or_default()];
        let said: Vec<String> = said.into_iter().filter(|said| !said.is_empty()).collect();
        if !said.is_empty() {
            writeln!(out, "*{}*\n", said.join(", "))?;
        }
        writeln!(out, "<{}>, captured {}\n", self.url, since.to_rfc3339())?;
        for part in [&object.lead, &object.text].into_iter().filter(|part| !part.is_empty()) {
            writeln!(out, "{part}\n")?;
        }
        Ok(())
    }
}
