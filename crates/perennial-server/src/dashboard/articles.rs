//! `/articles`, `/article?url=`: the articles and posts that feeds announced; one of them with its versions and edits.

use maud::{Markup, html};
use perennial_core::article::version::{WordRun, edits};
use perennial_core::memento::replay_url::escape;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::components::{Time, empty, field, time, title, untrusted};
use super::layout::{Place, Shell, Tab, page_address, query, version_address, without_scheme};
use super::{Problem, Request, known_page};
use perennial_archive::SharedSnapshot;
use perennial_archive::store::{AnnouncedFilter, site_of};
use perennial_engine::feeds::articles::{ArchivedArticle, SiteTemplates, field_name};
use perennial_engine::html::dates::counted;

/// Articles of one part of the list.
const MAX_ARTICLES: usize = 50;
/// Pages that an article's page is compared with, to know what it shares with them.
const MAX_BESIDE: usize = 12;
/// Letters of kept words around an edit.
const MAX_KEPT: usize = 80;

/// An article in the list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Announced {
    /// The page that holds it.
    url: String,
    /// Headline in the feed.
    title: String,
    /// When it was published, or first announced.
    time: Time,
    /// The feed that announced it first.
    feed: String,
    /// Distinct contents of the page.
    n_contents: usize,
}

/// The list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Objects")]
pub(crate) struct List {
    /// The latest first.
    objects: Vec<Announced>,
    /// Where the list goes on.
    next: Option<usize>,
    #[serde(skip)]
    site: Option<String>,
}

/// The list, the latest first.
pub(crate) fn load_list(request: &Request<'_>) -> Result<List, Problem> {
    let skip = request.given("skip").map(str::parse::<u32>).transpose();
    let skip = skip.map_err(|_| Problem::bad_request("skip: take it from `next` of the answer before."))?;
    let (skip, site) = (skip.unwrap_or_default() as usize, request.given("site"));
    request.with(|snapshot| {
        let store = snapshot.store();
        let filter =
            AnnouncedFilter { site, skip, limit: Some(MAX_ARTICLES + 1), ..AnnouncedFilter::default() };
        let mut pages = store.announced_pages(&filter)?;
        let has_more = pages.len() > MAX_ARTICLES;
        pages.truncate(MAX_ARTICLES);
        let mut objects = Vec::with_capacity(pages.len());
        for page in pages {
            objects.push(Announced {
                n_contents: store.versions_of(page.page)?.len(),
                time: page.published.unwrap_or(page.first_seen).into(),
                url: page.url,
                title: page.title,
                feed: page.feed,
            });
        }
        Ok(List { objects, next: has_more.then_some(skip + MAX_ARTICLES), site: site.map(str::to_owned) })
    })
}

pub(crate) fn render_list(list: &List, place: Place<'_>) -> Markup {
    let base = place.base;
    let site = list.site.as_deref();
    let main = html! {
        div.head {
            div {
                h1 {
                    @match list.objects.len() {
                        0 => "No article or post",
                        n => { (counted(n as u64, "article or post", "articles and posts")) @if list.next.is_some() { " and more" } },
                    }
                }
                p.lead { "What feeds announced and captures show, the latest first." }
            }
        }
        form.filters aria-label="Filter" action={ (base) "/articles" } {
            (field("site", "Site", 22, site.unwrap_or_default(), "all"))
            button { "Show" }
        }
        @if list.objects.is_empty() {
            (empty(
                "No feed has announced a captured page",
                "Feeds are found on the pages of followed sites and read beside the visits.",
                Some("perennial feeds"),
            ))
        } @else {
            (table(&list.objects, base))
        }
        @if let Some(next) = list.next {
            p.more {
                a.btn rel="next" href={ (base) "/articles?" (query(&[("site", site), ("skip", Some(&next.to_string()))])) } { "Go on" }
            }
        }
    };
    let json = format!("/api/articles?{}", query(&[("site", site)]));
    Shell::new(place, Tab::Sites, "Articles and posts", Some(json)).page(&main)
}

fn table(objects: &[Announced], base: &str) -> Markup {
    html! {
        table.t {
            thead { tr { th scope="col" { "Time" } th scope="col" { "Headline" } th.r scope="col" { "Contents" } } }
            tbody {
                @for row in objects {
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

/// Words of an edit: those that both versions have, that only the version before has, that only this version has.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditWords {
    Kept(String),
    TakenOut(String),
    Added(String),
}

/// An edit.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Edited {
    /// `title` or `text`.
    field: &'static str,
    words: Vec<EditWords>,
}

/// A version of an article.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ObjectVersion")]
pub(crate) struct Version {
    /// The capture that showed it first.
    since: Time,
    title: String,
    /// What was edited since the version before.
    edits: Vec<Edited>,
}

/// One article with its history.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Object")]
pub(crate) struct View {
    title: String,
    text: String,
    /// The page that holds it.
    page: String,
    /// The capture that showed the latest version first.
    capture: Time,
    /// The oldest first.
    versions: Vec<Version>,
    time: Option<Time>,
    author: String,
    /// What else is known of it.
    #[serde(flatten)]
    #[schemars(with = "Further")]
    further: Value,
    #[serde(skip)]
    n_unread: u64,
}

/// What else is known of an article, as `perennial export` writes it.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct Further {
    lead: String,
    categories: Vec<String>,
    links: Vec<Value>,
    images: Vec<Value>,
    /// Where it is in the page, as a selector.
    wrapper: String,
    comments: Vec<String>,
    comments_address: String,
    feed: Option<String>,
    published: Option<String>,
    first_seen: Option<String>,
}

pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    let url = request.needed("url")?;
    let found = article(request, url).map_err(|error| Problem::internal(&error))?;
    found.ok_or_else(|| Problem::no_such_page(url))
}

fn article(request: &Request<'_>, url: &str) -> anyhow::Result<Option<View>> {
    let pool = &request.served.pool;
    let Some(row) = pool.with(|snapshot| known_page(snapshot.store(), url))?? else { return Ok(None) };
    // The captures are read without holding a snapshot of those that others wait for.
    let archive = pool.with(|snapshot| snapshot.archive().clone())?;
    let shared = SharedSnapshot::new(archive.snapshot()?);
    let site = site_of(&row.url);
    let (announced, beside) = {
        let locked = shared.lock();
        let filter =
            AnnouncedFilter { site: Some(&site), limit: Some(MAX_BESIDE), ..AnnouncedFilter::default() };
        (locked.store().announced_page(row.id)?, locked.store().announced_pages(&filter)?)
    };
    let mut templates = SiteTemplates::new(&beside);
    let found = ArchivedArticle::load(&shared, &row.url, row.id, announced, &mut templates, (None, None))?;
    let Some(further) = found.to_json(false) else { return Ok(None) };
    Ok(view_of(found, row.url, further))
}

fn view_of(found: ArchivedArticle, page: String, mut further: Value) -> Option<View> {
    let latest = found.versions.last()?;
    for known in ["title", "text", "page", "capture", "versions", "time", "author"] {
        further.as_object_mut()?.remove(known);
    }
    let words = |run: &WordRun| match run {
        WordRun::Kept(words) => EditWords::Kept(words.clone()),
        WordRun::TakenOut(words) => EditWords::TakenOut(words.clone()),
        WordRun::Added(words) => EditWords::Added(words.clone()),
    };
    let versions = found.versions.iter().enumerate().map(|(number, version)| {
        let before = number.checked_sub(1).and_then(|before| found.versions.get(before));
        let edits = before.map(|before| edits(&before.object, &version.object)).unwrap_or_default();
        let edit = |edit: &perennial_core::article::version::Edit| Edited {
            field: field_name(edit.field),
            words: edit.runs.iter().map(words).collect(),
        };
        Version {
            since: version.since.into(),
            title: version.object.title.clone(),
            edits: edits.iter().map(edit).collect(),
        }
    });
    Some(View {
        title: latest.object.title.clone(),
        text: latest.object.text.clone(),
        time: latest.object.time.map(Time),
        author: latest.object.author.clone(),
        capture: latest.since.into(),
        versions: versions.collect(),
        n_unread: found.n_unread,
        page,
        further,
    })
}

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
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
                    a href=(page_address(place.base, &view.page)) { (untrusted(without_scheme(&view.page))) }
                }
            }
        }
        @for (number, version) in view.versions.iter().enumerate().rev() {
            (step(number, version, &view.page, place.base))
        }
        @if view.n_unread > 0 {
            p.mute {
                (counted(view.n_unread, "capture cannot be read", "captures cannot be read")) ": see "
                code { "perennial verify" } "."
            }
        }
        section {
            h2 { "As it says now" }
            p.mute { (untrusted(&stated.join(", "))) }
            @for line in view.text.lines().filter(|line| !line.trim().is_empty()) { p { (untrusted(line)) } }
        }
    };
    let json = format!("/api/article?url={}", escape(&view.page));
    Shell::new(place, Tab::Sites, "Article", Some(json)).page(&main)
}

fn step(number: usize, version: &Version, url: &str, base: &str) -> Markup {
    html! {
        article.entry style="display:block" {
            h2.h3 { @if number == 0 { "First seen " } @else { "Edited " } (time(*version.since)) }
            p.meta {
                span { (title(&version.title)) }
                span { a href=(version_address(base, *version.since, url)) { "Open" } }
            }
            @for edit in &version.edits {
                p.inline {
                    span.mute { (edit.field) ":" } " "
                    @for words in &edit.words {
                        @match words {
                            EditWords::Kept(words) => (untrusted(&shortened(words))),
                            EditWords::TakenOut(words) => del { (untrusted(words)) },
                            EditWords::Added(words) => ins { (untrusted(words)) },
                        }
                        " "
                    }
                }
            }
        }
    }
}

/// Of words that were kept, those next to an edit.
fn shortened(words: &str) -> String {
    if words.chars().count() <= 2 * MAX_KEPT {
        return words.to_owned();
    }
    let head: String = words.chars().take(MAX_KEPT).collect();
    let tail: Vec<char> = words.chars().rev().take(MAX_KEPT).collect();
    format!("{head} … {}", tail.into_iter().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use perennial_core::time::Timestamp;

    use super::*;

    #[test]
    fn what_strangers_wrote_is_escaped() {
        let hostile = "<script>alert(1)</script>";
        let at = Time(Timestamp::EPOCH);
        let words = vec![EditWords::TakenOut(hostile.into()), EditWords::Added("new".into())];
        let edited =
            Version { since: at, title: hostile.into(), edits: vec![Edited { field: "title", words }] };
        let first = Version { since: at, title: String::new(), edits: Vec::new() };
        let view = View {
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
        let row = Announced {
            url: hostile.into(),
            title: hostile.into(),
            time: at,
            feed: hostile.into(),
            n_contents: 2,
        };
        let list = List { objects: vec![row], next: Some(50), site: Some(hostile.into()) };
        let list = render_list(&list, place).0;
        assert!(!list.contains("<script") && list.contains("skip=50"), "{list}");
        assert!(shortened(&"ß ".repeat(500)).chars().count() < 200);
    }
}
