//! `/articles`, `/article?url=`: the articles and posts that feeds announced; an article with its versions and edits.

use maud::{Markup, html};
use perennial_core::article::version::{EditRun, edits};
use perennial_core::memento::replay_url::escape;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::components::{Time, empty, field, time, title, untrusted};
use super::layout::{Place, Shell, Tab, page_href, query, version_href, without_scheme};
use super::{Problem, Request, known_page};
use perennial_archive::SharedSnapshot;
use perennial_archive::store::{AnnouncedFilter, parse_site_name};
use perennial_engine::feeds::articles::{ArchivedArticle, SiteTemplates, field_name};
use perennial_engine::html::dates::counted;

/// Articles per part of the list.
const MAX_ARTICLES: usize = 50;
/// Other pages of the site, from which the site's template is learned.
const MAX_OTHER_PAGES: usize = 12;
/// Characters of unchanged text around an edit.
const MAX_CONTEXT: usize = 80;

#[derive(Serialize, JsonSchema)]
pub(crate) struct ArticleRow {
    url: String,
    /// The headline in the feed.
    title: String,
    /// When it was published or first announced.
    time: Time,
    /// The feed that announced it first.
    feed: String,
    /// Different contents of the page.
    n_contents: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Articles")]
pub(crate) struct ListView {
    /// Latest first.
    articles: Vec<ArticleRow>,
    /// The position at which the next part of the list begins.
    next: Option<usize>,
    #[serde(skip)]
    site: Option<String>,
}

pub(crate) fn load_list(request: &Request<'_>) -> Result<ListView, Problem> {
    let skip = request.given("skip").map(str::parse::<u32>).transpose();
    let skip =
        skip.map_err(|_| Problem::bad_request("skip: write the value of `next` of the previous response"))?;
    let (skip, site) = (skip.unwrap_or_default() as usize, request.given("site"));
    request.with(|snapshot| {
        let store = snapshot.store();
        let filter =
            AnnouncedFilter { site, skip, limit: Some(MAX_ARTICLES + 1), ..AnnouncedFilter::default() };
        let mut pages = store.announced_pages(&filter)?;
        let has_more = pages.len() > MAX_ARTICLES;
        pages.truncate(MAX_ARTICLES);
        let mut articles = Vec::with_capacity(pages.len());
        for page in pages {
            articles.push(ArticleRow {
                n_contents: store.page_versions(page.page)?.len(),
                time: page.published.unwrap_or(page.first_seen).into(),
                url: page.url,
                title: page.title,
                feed: page.feed,
            });
        }
        Ok(ListView {
            articles,
            next: has_more.then_some(skip + MAX_ARTICLES),
            site: site.map(str::to_owned),
        })
    })
}

pub(crate) fn render_list(list: &ListView, place: Place<'_>) -> Markup {
    let base = place.base;
    let site = list.site.as_deref();
    let main = html! {
        div.head {
            div {
                h1 {
                    @match list.articles.len() {
                        0 => "No articles or posts",
                        n => { (counted(n as u64, "article or post", "articles and posts")) @if list.next.is_some() { " and more" } },
                    }
                }
                p.lead { "Announced by feeds and captured, the latest first." }
            }
        }
        form.filters aria-label="Filter" action={ (base) "/articles" } {
            (field("site", "Site", 22, site.unwrap_or_default(), "all"))
            button { "Show" }
        }
        @if list.articles.is_empty() {
            (empty(
                "No feed has announced a captured page",
                "Perennial finds feeds on the pages of followed sites and reads them.",
                Some("perennial feed list"),
            ))
        } @else {
            (table(&list.articles, base))
        }
        @if let Some(next) = list.next {
            p.more {
                a.btn rel="next" href={ (base) "/articles?" (query(&[("site", site), ("skip", Some(&next.to_string()))])) } { "Next" }
            }
        }
    };
    let json = format!("/api/articles?{}", query(&[("site", site)]));
    Shell::new(place, Tab::Articles, "Articles and posts", Some(json)).page(&main)
}

fn table(articles: &[ArticleRow], base: &str) -> Markup {
    html! {
        table.t {
            thead { tr { th scope="col" { "Time" } th scope="col" { "Headline" } th.r scope="col" { "Versions" } } }
            tbody {
                @for row in articles {
                    tr {
                        td { (time(*row.time)) }
                        td.w {
                            a href={ (base) "/article?url=" (escape(&row.url)) } { (title(title_or_url(&row.title, &row.url))) } br;
                            span.small.mute { (untrusted(without_scheme(&row.url))) }
                        }
                        td.r { (row.n_contents) }
                    }
                }
            }
        }
    }
}

fn title_or_url<'a>(title: &'a str, url: &'a str) -> &'a str {
    if title.is_empty() { without_scheme(url) } else { title }
}

/// Words of an edit: in both versions, only in the version before, only in this version.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditWords {
    Unchanged(String),
    Deleted(String),
    Inserted(String),
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct EditView {
    /// `title` or `text`.
    field: &'static str,
    words: Vec<EditWords>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ArticleVersion")]
pub(crate) struct ArticleVersionView {
    /// The first capture that showed it.
    since: Time,
    title: String,
    edits: Vec<EditView>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Article")]
pub(crate) struct ArticleView {
    title: String,
    text: String,
    page: String,
    /// The first capture that showed the latest version.
    capture: Time,
    /// Oldest first.
    versions: Vec<ArticleVersionView>,
    time: Option<Time>,
    author: String,
    /// Its other fields.
    #[serde(flatten)]
    #[schemars(with = "ArticleFields")]
    further: Value,
    #[serde(skip)]
    n_unread: u64,
}

/// The other fields of an article, as `perennial export` writes them.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct ArticleFields {
    lead: String,
    categories: Vec<String>,
    links: Vec<Value>,
    images: Vec<Value>,
    /// A selector.
    wrapper: String,
    comments: Vec<String>,
    comments_url: String,
    feed: Option<String>,
    published: Option<String>,
    first_seen: Option<String>,
}

pub(crate) fn load(request: &Request<'_>) -> Result<ArticleView, Problem> {
    let url = request.needed("url")?;
    let found = article(request, url).map_err(|error| Problem::internal(&error))?;
    found.ok_or_else(|| Problem::no_such_page(url))
}

fn article(request: &Request<'_>, url: &str) -> anyhow::Result<Option<ArticleView>> {
    let pool = &request.served.pool;
    let Some(row) = pool.with(|snapshot| known_page(snapshot.store(), url))?? else { return Ok(None) };
    // Reading the captures is slow, so it uses a snapshot of its own instead of one from the pool.
    let archive = pool.with(|snapshot| snapshot.archive().clone())?;
    let shared = SharedSnapshot::new(archive.snapshot()?);
    let site = parse_site_name(&row.url);
    let (announced, others) = {
        let locked = shared.lock();
        let filter =
            AnnouncedFilter { site: Some(&site), limit: Some(MAX_OTHER_PAGES), ..AnnouncedFilter::default() };
        (locked.store().announced_page(row.id)?, locked.store().announced_pages(&filter)?)
    };
    let mut templates = SiteTemplates::new(&others);
    let found = ArchivedArticle::load(&shared, &row.url, row.id, announced, &mut templates, (None, None))?;
    let Some(further) = found.to_json(false) else { return Ok(None) };
    Ok(article_view(found, row.url, further))
}

fn article_view(found: ArchivedArticle, page: String, mut further: Value) -> Option<ArticleView> {
    let latest = found.versions.last()?;
    for known in ["title", "text", "page", "capture", "versions", "time", "author"] {
        further.as_object_mut()?.remove(known);
    }
    let words = |run: &EditRun| match run {
        EditRun::Kept(words) => EditWords::Unchanged(words.clone()),
        EditRun::TakenOut(words) => EditWords::Deleted(words.clone()),
        EditRun::Added(words) => EditWords::Inserted(words.clone()),
    };
    let versions = found.versions.iter().enumerate().map(|(number, version)| {
        let before = number.checked_sub(1).and_then(|before| found.versions.get(before));
        let edits = before.map(|before| edits(&before.article, &version.article)).unwrap_or_default();
        let edit = |edit: &perennial_core::article::version::Edit| EditView {
            field: field_name(edit.field),
            words: edit.runs.iter().map(words).collect(),
        };
        ArticleVersionView {
            since: version.since.into(),
            title: version.article.title.clone(),
            edits: edits.iter().map(edit).collect(),
        }
    });
    Some(ArticleView {
        title: latest.article.title.clone(),
        text: latest.article.text.clone(),
        time: latest.article.time.map(Time),
        author: latest.article.author.clone(),
        capture: latest.since.into(),
        versions: versions.collect(),
        n_unread: found.n_unread,
        page,
        further,
    })
}

pub(crate) fn render(view: &ArticleView, place: Place<'_>) -> Markup {
    let stated = [view.author.clone(), view.time.map(|time| time.to_rfc3339()).unwrap_or_default()];
    let stated: Vec<&str> = stated.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    let main = html! {
        div.head {
            div {
                h1 { (title(title_or_url(&view.title, &view.page))) }
                p.lead {
                    @match view.versions.len().saturating_sub(1) as u64 {
                        0 => "Not edited",
                        n => { "Edited " (counted(n, "time", "times")) },
                    }
                    " since " @if let Some(first) = view.versions.first() { (time(*first.since)) } ". "
                    a href=(page_href(place.base, &view.page)) { (untrusted(without_scheme(&view.page))) }
                }
            }
        }
        @for (number, version) in view.versions.iter().enumerate().rev() {
            (version_entry(number, version, &view.page, place.base))
        }
        @if view.n_unread > 0 {
            p.mute {
                (counted(view.n_unread, "capture cannot be read", "captures cannot be read")) "; see "
                code { "perennial verify" } "."
            }
        }
        section {
            h2 { "Latest text" }
            p.mute { (untrusted(&stated.join(", "))) }
            @for line in view.text.lines().filter(|line| !line.trim().is_empty()) { p { (untrusted(line)) } }
        }
    };
    let json = format!("/api/article?url={}", escape(&view.page));
    Shell::new(place, Tab::Articles, "Article", Some(json)).page(&main)
}

fn version_entry(number: usize, version: &ArticleVersionView, url: &str, base: &str) -> Markup {
    html! {
        article.entry style="display:block" {
            h2.h3 { @if number == 0 { "First seen " } @else { "Edited " } (time(*version.since)) }
            p.meta {
                span { (title(&version.title)) }
                span { a href=(version_href(base, *version.since, url)) { "Open" } }
            }
            @for edit in &version.edits {
                p.inline {
                    span.mute { (edit.field) ":" } " "
                    @for words in &edit.words {
                        @match words {
                            EditWords::Unchanged(words) => (untrusted(&shorten_middle(words))),
                            EditWords::Deleted(words) => del { (untrusted(words)) },
                            EditWords::Inserted(words) => ins { (untrusted(words)) },
                        }
                        " "
                    }
                }
            }
        }
    }
}

/// Keeps the words next to an edit.
fn shorten_middle(words: &str) -> String {
    if words.chars().count() <= 2 * MAX_CONTEXT {
        return words.to_owned();
    }
    let head: String = words.chars().take(MAX_CONTEXT).collect();
    let tail: Vec<char> = words.chars().rev().take(MAX_CONTEXT).collect();
    format!("{head} … {}", tail.into_iter().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use perennial_core::time::Timestamp;

    use super::*;

    #[test]
    fn untrusted_text_is_escaped() {
        let hostile = "<script>alert(1)</script>";
        let at = Time(Timestamp::EPOCH);
        let words = vec![EditWords::Deleted(hostile.into()), EditWords::Inserted("new".into())];
        let edited = ArticleVersionView {
            since: at,
            title: hostile.into(),
            edits: vec![EditView { field: "title", words }],
        };
        let first = ArticleVersionView { since: at, title: String::new(), edits: Vec::new() };
        let view = ArticleView {
            title: hostile.into(),
            text: hostile.into(),
            page: hostile.into(),
            capture: at,
            versions: vec![first, edited],
            time: None,
            author: hostile.into(),
            further: serde_json::json!({}),
            n_unread: 1,
        };
        let place = Place { name: hostile, ..Place::default() };
        let html = render(&view, place).0;
        assert!(
            !html.contains("<script") && html.contains("<ins>new</ins>") && html.contains("Edited 1 time"),
            "{html}"
        );
        let row = ArticleRow {
            url: hostile.into(),
            title: hostile.into(),
            time: at,
            feed: hostile.into(),
            n_contents: 2,
        };
        let list = ListView { articles: vec![row], next: Some(50), site: Some(hostile.into()) };
        let list = render_list(&list, place).0;
        assert!(!list.contains("<script") && list.contains("skip=50"), "{list}");
        assert!(shorten_middle(&"ß ".repeat(500)).chars().count() < 200);
    }
}
