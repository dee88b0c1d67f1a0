//! `perennial article list`: feeds and archived pages -> the articles that feeds announced, with their versions.

use std::io::Write;

use perennial_core::time::Timestamp;
use regex::Regex;

use super::extract::write_edits;
use super::show::write_json;
use crate::cli::context::{json_on_stdout, text_on_stdout};
use crate::cli::{Context, Exit, parse_time};
use perennial_archive::SharedSnapshot;
use perennial_archive::store::AnnouncedFilter;
use perennial_engine::feeds::articles::{ArchivedArticle, SiteTemplates};

const AFTER_HELP: &str = "\
An article is announced by a feed and shown by a capture: a news article, a post, a message. It has a new version if its words, links \
or images changed; the rest of the page, comments and dates do not count. --json prints one article per line, with all versions.

Examples:
  perennial article list news.example --since 24h
  perennial article list --edited --json
  perennial article list --feed https://news.example/feed.xml --text 'ferr(y|ies)'
  perennial article list --format markdown > corpus.md";

/// List the articles that feeds announced, with their versions.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ListArticlesArgs {
    /// A site, as example.org or example.org:8080
    site: Option<String>,
    /// Only articles that this feed announced
    #[arg(long, value_name = "URL")]
    feed: Option<String>,
    /// Only articles first announced since then: 24h, yesterday, 2026-11-16
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only articles with a match of this regular expression in headline or text
    #[arg(long, value_name = "RE")]
    text: Option<Regex>,
    /// Only edited articles, with their edits
    #[arg(long)]
    edited: bool,
    /// Show at most N articles, the latest first
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print one line per article, or headline and text as Markdown
    #[arg(long, value_name = "NAME", default_value = "lines", value_parser = ["lines", "markdown"])]
    format: String,
}

impl ListArticlesArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let shared = SharedSnapshot::new(context.snapshot()?);
        let (site, feed) = (self.site.as_deref(), self.feed.as_deref());
        let filter = AnnouncedFilter { site, feed, since: self.since, ..AnnouncedFilter::default() };
        let announced = shared.lock().store().announced_pages(&filter)?;
        let mut templates = SiteTemplates::new(&announced);
        let mut out = if context.json { json_on_stdout() } else { text_on_stdout() };
        let progress = context.progress_count(announced.len() as u64, "reading articles");
        let mut n_printed = 0;
        for page in announced {
            progress.inc(1);
            if n_printed >= self.limit.unwrap_or(usize::MAX) {
                break;
            }
            let article = {
                let (url, id) = (page.url.clone(), page.page);
                ArchivedArticle::load(&shared, &url, id, Some(page), &mut templates, (None, None))?
            };
            if self.matches(&article) {
                n_printed += 1;
                self.print(context, &article, &mut *out)?;
            }
        }
        progress.finish_and_clear();
        if n_printed == 0 && !context.json {
            writeln!(out, "no such article; `perennial feed list` shows the feeds")?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn matches(&self, article: &ArchivedArticle) -> bool {
        let has_words = |re: &Regex| {
            article.versions.iter().any(|version| {
                re.is_match(&version.article.title)
                    || re.is_match(&version.article.text)
                    || re.is_match(&version.article.lead)
            })
        };
        !article.versions.is_empty()
            && (!self.edited || article.versions.len() > 1)
            && self.text.as_ref().is_none_or(has_words)
    }

    fn print(&self, context: &Context, article: &ArchivedArticle, out: &mut dyn Write) -> anyhow::Result<()> {
        if context.json {
            return write_json(article, out);
        }
        match self.format.as_str() {
            "markdown" => Ok(article.write_markdown(out, false)?),
            _ => Ok(write_line(article, out, self.edited)?),
        }
    }
}

/// Writes one line, then the edits if `with_edits`.
fn write_line(article: &ArchivedArticle, out: &mut dyn Write, with_edits: bool) -> std::io::Result<()> {
    let Some(latest) = article.versions.last() else { return Ok(()) };
    let time = article
        .announced
        .as_ref()
        .map(|item| item.published.unwrap_or(item.first_seen))
        .or(latest.article.time);
    let time = time.map(Timestamp::to_rfc3339).unwrap_or_default();
    let n_edits = article.versions.len() - 1;
    let edited = match n_edits {
        0 => String::new(),
        1 => " (edited once)".to_owned(),
        n => format!(" (edited {n} times)"),
    };
    writeln!(out, "{time} {}{edited}\n  {}", latest.article.title, article.url)?;
    for pair in article.versions.windows(2).filter(|_| with_edits) {
        writeln!(out, "\nseen {}:", pair[1].since.to_rfc3339())?;
        write_edits(out, &pair[0].article, &pair[1].article)?;
    }
    Ok(())
}
