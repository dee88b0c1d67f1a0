//! The articles that feeds announced and captures contain, with their versions.
//!
//! Articles are computed on request from the captures of a page, its feed items, and the template that it shares with
//! other pages of the site. Nothing is stored, so a rebuilt archive gives the same articles.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use perennial_core::article::version::{Edit, EditRun, EditedField, edits, same_version};
use perennial_core::article::{Article, ArticleContext as Known, MAX_NEIGHBOURS, Template, extract};
use perennial_core::text::dom::Dom;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use perennial_warc::payload::IncompleteCause;
use perennial_warc::surt::{KeyRange, MatchType};
use serde::Serialize;
use serde_json::{Value, json};

use crate::analyse::PageSpec;
use perennial_archive::SharedSnapshot;
use perennial_archive::store::{AnnouncedFilter, AnnouncedPage, CaptureFilter, PageRow, parse_site_name};

/// Latest versions of a page that are read.
const MAX_VERSIONS: usize = 500;
/// Comments of one version that are kept.
const MAX_COMMENTS: usize = 10_000;
/// Two pages may have something in common by chance. Five pages give a reliable template.
const MIN_NEIGHBOURS: usize = 5;
/// Pages read for the template of one page. More than ten hardly improve it.
const N_AROUND: usize = 12;
/// URLs among which these are searched.
const MAX_LISTED: usize = 200;

/// One version of an article.
pub struct ArticleVersion {
    /// The first capture that showed it.
    pub since: Timestamp,
    pub article: Article,
}

impl ArticleVersion {
    /// Adds the comments of a later capture of the same version. A comment is not an edit of the article.
    fn add_comments(&mut self, later: Article) {
        let known: HashSet<&String> = self.article.comments.iter().collect();
        let new: Vec<String> =
            later.comments.iter().filter(|comment| !known.contains(comment)).cloned().collect();
        self.article.comments.extend(new);
        self.article.comments.truncate(MAX_COMMENTS);
        if !later.comments_url.is_empty() {
            self.article.comments_url = later.comments_url;
        }
    }
}

/// An article with its history.
pub struct ArchivedArticle {
    pub url: String,
    /// The feed item that announced it first.
    pub announced: Option<AnnouncedPage>,
    /// Oldest first.
    pub versions: Vec<ArticleVersion>,
    /// Unreadable captures.
    pub n_unread: u64,
}

/// Templates by site, computed once per site.
pub struct SiteTemplates {
    neighbours: HashMap<String, Vec<String>>,
    made: HashMap<String, Option<Template>>,
}

impl SiteTemplates {
    /// The neighbours of a page are the other announced pages of its site.
    pub fn new(announced: &[AnnouncedPage]) -> SiteTemplates {
        let mut neighbours: HashMap<String, Vec<String>> = HashMap::new();
        for page in announced {
            let of_site = neighbours.entry(parse_site_name(&page.url)).or_default();
            if of_site.len() < MAX_NEIGHBOURS {
                of_site.push(page.url.clone());
            }
        }
        SiteTemplates { neighbours, made: HashMap::new() }
    }

    fn template(&mut self, shared: &SharedSnapshot, url: &str) -> Option<&Template> {
        let site = parse_site_name(url);
        if !self.made.contains_key(&site) {
            let urls = self.neighbours.get(&site).map_or(&[][..], Vec::as_slice);
            let latest = |url: &String| read(shared, url, None).ok().flatten().map(|html| Dom::parse(&html));
            let pages: Vec<Dom> = urls.iter().filter_map(latest).collect();
            let template = (pages.len() >= MIN_NEIGHBOURS).then(|| Template::from_neighbours(&pages));
            self.made.insert(site.clone(), template);
        }
        self.made.get(&site)?.as_ref()
    }
}

/// The template that a page shares with others of its site: announced pages first, then pages of its folder, then
/// any. `None` if there are too few.
pub fn template_around(shared: &SharedSnapshot, url: &str) -> anyhow::Result<Option<Template>> {
    let site = parse_site_name(url);
    let mut urls: Vec<String> = {
        let snapshot = shared.lock();
        let store = snapshot.store();
        let announced =
            store.announced_pages(&AnnouncedFilter { site: Some(&site), ..AnnouncedFilter::default() })?;
        let mut urls: Vec<String> = announced.into_iter().map(|page| page.url).collect();
        let folder = url.rsplit_once('/').map_or(url, |(folder, _)| folder);
        for (start, matching) in [(folder, MatchType::Prefix), (url, MatchType::Host)] {
            let range = KeyRange::of(start, matching);
            let pages = store.pages_in_keys(&range, None, MAX_LISTED)?;
            let is_page = |page: &PageRow| {
                page.status == Some(200) && page.mime.as_deref().is_some_and(|mime| mime.contains("html"))
            };
            urls.extend(pages.into_iter().filter(is_page).map(|page| page.url));
        }
        urls
    };
    let mut seen = HashSet::new();
    urls.retain(|other| other != url && parse_site_name(other) == site && seen.insert(other.clone()));
    let latest = |url: &String| read(shared, url, None).ok().flatten().map(|html| Dom::parse(&html));
    let pages: Vec<Dom> = urls.iter().filter_map(latest).take(N_AROUND).collect();
    Ok((pages.len() >= MIN_NEIGHBOURS).then(|| Template::from_neighbours(&pages)))
}

/// The HTML of an archived version; `None` if it is not a page. A damaged record is an error, because its missing end
/// would look like an edit.
fn read(shared: &SharedSnapshot, url: &str, time: Option<Timestamp>) -> anyhow::Result<Option<String>> {
    {
        let snapshot = shared.lock();
        let near = time.unwrap_or_else(perennial_archive::now);
        let capture = snapshot.store().closest_observation(url, near)?;
        let document = capture.map(|capture| snapshot.document(&capture)).transpose()?.flatten();
        if let Some(cut) = document.and_then(|document| document.cut) {
            anyhow::ensure!(!is_damage(cut.cause), "the record is damaged: see `perennial verify`");
        }
    }
    let spec = PageSpec::Archived { url: url.to_owned(), time };
    let page = spec.load(Some(shared), false)?;
    Ok(page.document.is_none().then(|| page.html.clone()).filter(|html| !html.is_empty()))
}

/// Whether a body is incomplete because its record is damaged, not because the response was incomplete or too large.
fn is_damage(cause: IncompleteCause) -> bool {
    cause == IncompleteCause::Source
}

/// Start (inclusive) and end (exclusive).
pub type Period = (Option<Timestamp>, Option<Timestamp>);

impl ArchivedArticle {
    /// Reads the versions of a page. Unreadable ones are counted.
    pub fn load(
        shared: &SharedSnapshot,
        url: &str,
        page: PageId,
        announced: Option<AnnouncedPage>,
        templates: &mut SiteTemplates,
        (since, until): Period,
    ) -> anyhow::Result<ArchivedArticle> {
        let mut rows = shared.lock().store().page_versions(page)?;
        rows.retain(|row| {
            since.is_none_or(|since| row.last_time >= since)
                && until.is_none_or(|until| row.first_time < until)
        });
        let template = templates.template(shared, url);
        let title = announced.as_ref().map(|item| item.title.as_str());
        let description =
            announced.as_ref().map(|item| item.summary.as_str()).filter(|text| !text.is_empty());
        let (mut versions, mut n_unread): (Vec<ArticleVersion>, u64) = (Vec::new(), 0);
        for row in rows.iter().skip(rows.len().saturating_sub(MAX_VERSIONS)) {
            // A damaged capture must not hide the others.
            let Ok(page) = read(shared, url, Some(row.first_time)) else {
                n_unread += 1;
                continue;
            };
            let Some(html) = page else { continue };
            let article =
                extract(&Dom::parse(&html), &Known { title, description, url: Some(url), template });
            match versions.last_mut().filter(|last| same_version(&last.article, &article)) {
                Some(last) => last.add_comments(article),
                None if article.text.is_empty() && article.title.is_empty() => {}
                None => versions.push(ArticleVersion { since: row.first_time, article }),
            }
        }
        Ok(ArchivedArticle { url: url.to_owned(), announced, versions, n_unread })
    }

    /// The article as JSON, latest version first. With `is_whole` every version has its text; otherwise earlier
    /// versions are given by their edits.
    pub fn to_json(&self, is_whole: bool) -> Option<Value> {
        let latest = self.versions.last()?;
        let mut line = article_json(&latest.article);
        line["page"] = json!(self.url);
        line["capture"] = json!(latest.since.to_rfc3339());
        if let Some(announced) = &self.announced {
            line["feed"] = json!(announced.feed);
            line["published"] = json!(announced.published.map(Timestamp::to_rfc3339));
            line["first_seen"] = json!(announced.first_seen.to_rfc3339());
        }
        let mut before: Option<&ArticleVersion> = None;
        let mut versions = Vec::new();
        for (place, version) in self.versions.iter().enumerate() {
            let edits = before.map(|before| edits(&before.article, &version.article)).unwrap_or_default();
            let mut entry = json!({ "since": version.since.to_rfc3339(), "title": version.article.title });
            entry["edits"] = edits.iter().map(edit_json).collect();
            if is_whole && place + 1 < self.versions.len() {
                entry["lead"] = json!(version.article.lead);
                entry["text"] = json!(version.article.text);
            }
            versions.push(entry);
            before = Some(version);
        }
        line["versions"] = versions.into();
        Some(line)
    }

    /// Writes headline, author, time and text of the latest version as Markdown. With `is_whole` also images and
    /// earlier versions.
    pub fn write_markdown(&self, out: &mut dyn Write, is_whole: bool) -> io::Result<()> {
        let Some((ArticleVersion { since, article }, earlier)) = self.versions.split_last() else {
            return Ok(());
        };
        writeln!(out, "# {}\n", one_line(&article.title))?;
        let time = article.time.or_else(|| self.announced.as_ref().and_then(|item| item.published));
        let byline = [article.author.clone(), time.map(Timestamp::to_rfc3339).unwrap_or_default()];
        let byline: Vec<String> = byline.into_iter().filter(|part| !part.is_empty()).collect();
        if !byline.is_empty() {
            writeln!(out, "*{}*\n", one_line(&byline.join(", ")))?;
        }
        writeln!(out, "<{}>, captured {}\n", self.url, since.to_rfc3339())?;
        write_texts(out, article)?;
        if !is_whole {
            return Ok(());
        }
        for image in &article.images {
            writeln!(out, "![{}](<{}>)\n", one_line(&image.description), image.url)?;
        }
        for version in earlier.iter().rev() {
            writeln!(out, "## From {}: {}\n", version.since.to_rfc3339(), one_line(&version.article.title))?;
            write_texts(out, &version.article)?;
        }
        Ok(())
    }
}

fn write_texts(out: &mut dyn Write, article: &Article) -> io::Result<()> {
    for part in [&article.lead, &article.text].into_iter().filter(|part| !part.is_empty()) {
        for line in part.lines() {
            writeln!(out, "{}", plain_line(line))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes a line that Markdown would read as a heading, a quotation or a list.
fn plain_line(line: &str) -> String {
    let is_marked = line.starts_with(['#', '>', '-', '+', '*', '=', '~', '`', '|']);
    if is_marked { format!("\\{line}") } else { line.to_owned() }
}

/// Format of an export of articles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArticleFormat {
    /// One article per line.
    JsonLines,
    /// All articles in one readable document.
    Markdown,
}

/// The counts of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArticleExportCounts {
    /// Exported articles.
    pub n_articles: u64,
    /// Their versions.
    pub n_versions: u64,
    /// Unreadable captures, which were left out.
    pub n_unread: u64,
}

/// The announced pages that match a filter.
pub fn announced(shared: &SharedSnapshot, filter: &CaptureFilter) -> anyhow::Result<Vec<AnnouncedPage>> {
    let of_site = AnnouncedFilter { site: filter.site.as_deref(), ..AnnouncedFilter::default() };
    let mut pages = shared.lock().store().announced_pages(&of_site)?;
    pages.retain(|page| filter.page.as_ref().is_none_or(|url| *url == page.url));
    Ok(pages)
}

/// Exports articles with all their versions. `progress` is called after each page.
pub fn export(
    shared: &SharedSnapshot,
    pages: Vec<AnnouncedPage>,
    filter: &CaptureFilter,
    format: ArticleFormat,
    out: &mut dyn Write,
    progress: &dyn Fn(),
) -> anyhow::Result<ArticleExportCounts> {
    // The template needs the neighbours even if the filter names one page only.
    let neighbours = shared.lock().store().announced_pages(&AnnouncedFilter::default())?;
    let mut templates = SiteTemplates::new(&neighbours);
    let mut report = ArticleExportCounts::default();
    for page in pages {
        let (url, id) = (page.url.clone(), page.page);
        let period = (filter.since, filter.until);
        let article = ArchivedArticle::load(shared, &url, id, Some(page), &mut templates, period)?;
        report.n_unread += article.n_unread;
        progress();
        let Some(line) = article.to_json(true) else { continue };
        report.n_articles += 1;
        report.n_versions += article.versions.len() as u64;
        match format {
            ArticleFormat::JsonLines => {
                serde_json::to_writer(&mut *out, &line)?;
                writeln!(out)?;
            }
            ArticleFormat::Markdown => article.write_markdown(out, true)?,
        }
    }
    Ok(report)
}

/// An article as JSON.
pub fn article_json(article: &Article) -> Value {
    json!({
        "title": article.title,
        "lead": article.lead,
        "time": article.time.map(|time| time.to_rfc3339()),
        "author": article.author,
        "categories": article.categories,
        "text": article.text,
        "links": article.links,
        "images": article.images,
        "wrapper": article.wrapper,
        "comments": article.comments,
        "comments_url": article.comments_url,
    })
}

/// An edit as JSON.
pub fn edit_json(edit: &Edit) -> Value {
    let run = |run: &EditRun| match run {
        EditRun::Kept(words) => json!({"kept": words}),
        EditRun::TakenOut(words) => json!({"taken_out": words}),
        EditRun::Added(words) => json!({"added": words}),
    };
    json!({"field": field_name(edit.field), "words": edit.runs.iter().map(run).collect::<Vec<_>>()})
}

pub fn field_name(field: EditedField) -> &'static str {
    match field {
        EditedField::Title => "title",
        EditedField::Text => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(secs: i64, title: &str, text: &str) -> ArticleVersion {
        let article = Article { title: title.into(), text: text.into(), ..Article::default() };
        ArticleVersion { since: Timestamp::from_secs(secs), article }
    }

    fn edited() -> ArchivedArticle {
        let versions =
            vec![version(0, "One dead", "- First.\n\n# Second."), version(60, "Two dead", "Third.")];
        ArchivedArticle { url: "http://a.example/1".into(), announced: None, versions, n_unread: 0 }
    }

    #[test]
    fn an_export_has_every_version_whole() {
        let line = edited().to_json(true).unwrap();
        assert_eq!((&line["title"], &line["text"]), (&json!("Two dead"), &json!("Third.")));
        assert_eq!(line["versions"][0]["text"], "- First.\n\n# Second.");
        assert_eq!(line["versions"][1]["text"], Value::Null, "the latest is the line's own");
        assert_eq!(line["versions"][1]["edits"][0]["field"], "title");
        assert_eq!(edited().to_json(false).unwrap()["versions"][0]["text"], Value::Null);
    }

    #[test]
    fn comments_since_belong_to_the_version() {
        let mut one = version(0, "A", "Text.");
        one.article.comments = vec!["First!".into()];
        let later = |comments: &[&str]| Article {
            comments: comments.iter().map(|comment| (*comment).to_owned()).collect(),
            ..Article::default()
        };
        one.add_comments(later(&["First!", "Second."]));
        one.add_comments(later(&["Second.", "Third."]));
        assert_eq!(one.article.comments, ["First!", "Second.", "Third."]);
    }

    #[test]
    fn text_is_no_markdown() {
        let mut out = Vec::new();
        edited().write_markdown(&mut out, true).unwrap();
        let text = String::from_utf8(out).unwrap();
        let marks: Vec<&str> = text.lines().filter(|line| line.starts_with(['#', '-'])).collect();
        assert_eq!(marks, ["# Two dead", "## From 1970-01-01T00:00:00Z: One dead"]);
        assert!(text.contains("\\- First.") && text.contains("\\# Second."), "{text}");
    }
}
