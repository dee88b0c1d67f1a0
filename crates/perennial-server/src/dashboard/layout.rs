//! What all pages share: navigation, search field and footer; the paths of our pages.

use maud::{Markup, PreEscaped, html};
use perennial_core::memento::replay_url::escape;
use perennial_core::time::Timestamp;
pub(crate) use perennial_core::url::canonical::{host_with_port, without_scheme};

use super::components::IMPORTANCE;
use perennial_engine::html;

pub const STYLE: &str = include_str!("dashboard.css");

/// The entry of the navigation to which a page belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tab {
    Changes,
    Sites,
    Articles,
    Search,
    Calendar,
    Plan,
    Notices,
    Audit,
    /// Not in the navigation.
    Other,
}

/// Whether the reader of a page may change settings.
#[derive(Clone, Copy, Debug, Default)]
pub enum AdminAccess<'a> {
    /// The server is read-only.
    #[default]
    Off,
    /// After logging in.
    LoggedOut,
    /// Logged in; each form contains this token.
    On(&'a str),
}

/// The archive of a page, and what its reader may do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    pub name: &'a str,
    /// The start of the archive's paths: empty, or a slash and its name.
    pub base: &'a str,
    pub admin: AdminAccess<'a>,
}

const TABS: [(Tab, &str, &str); 8] = [
    (Tab::Changes, "/", "Changes"),
    (Tab::Sites, "/sites", "Sites"),
    (Tab::Articles, "/articles", "Articles"),
    (Tab::Search, "/search", "Search"),
    (Tab::Calendar, "/calendar", "Calendar"),
    (Tab::Plan, "/plan", "Plan"),
    (Tab::Notices, "/notices", "Notices"),
    (Tab::Audit, "/audit", "Audit"),
];

/// The project's logo.
const MARK: PreEscaped<&str> = PreEscaped(
    "<svg width=\"20\" height=\"20\" viewBox=\"0 0 20 20\" fill=\"none\" stroke=\"currentColor\" aria-hidden=\"true\">\
    <circle cx=\"10\" cy=\"10\" r=\"9\" stroke-width=\"1.5\"/><circle cx=\"9.2\" cy=\"10.6\" r=\"5.8\" stroke-width=\"1.5\"/>\
    <circle cx=\"8.6\" cy=\"11\" r=\"2.8\" stroke-width=\"1.5\"/></svg>",
);

/// The frame of a page.
pub struct Shell<'a> {
    pub place: Place<'a>,
    pub tab: Tab,
    pub title: &'a str,
    /// Words in the search field.
    pub query: &'a str,
    /// The path of the same data as JSON.
    pub json: Option<String>,
}

impl<'a> Shell<'a> {
    pub fn new(place: Place<'a>, tab: Tab, title: &'a str, json: Option<String>) -> Shell<'a> {
        Shell { place, tab, title, query: "", json }
    }

    pub fn page(&self, main: &Markup) -> Markup {
        let Place { name, base, .. } = self.place;
        let body = html! {
            a.skip href="#main" { "Skip to content" }
            header.top {
                div.wrap {
                    a.brand href={ (base) "/" } { (MARK) "Perennial" }
                    span.where { (name) }
                    nav.main aria-label="Archive" {
                        @for (tab, path, text) in TABS {
                            a href={ (base) (path) } aria-current=[(tab == self.tab).then_some("page")] { (text) }
                        }
                    }
                    // The search page has its own field.
                    @if self.tab != Tab::Search {
                        form.q role="search" action={ (base) "/search" } {
                            input type="search" name="q" value=(self.query) size="24" aria-label="Words in any version" placeholder="Words in any version";
                        }
                    }
                }
            }
            main.wrap #main { (main) }
            footer.bot {
                div.wrap {
                    span { "Times are UTC, unless a time zone is named." }
                    span title=(IMPORTANCE) { "Importance, 0 to 1: how much of what a reader sees has changed." }
                    @if let Some(path) = &self.json { a href={ (base) (path) } { "JSON" } }
                    a href={ (base) "/api/openapi.json" } { "API" }
                }
            }
        };
        PreEscaped(html::page(&format!("{} - Perennial", self.title), STYLE, &body.0))
    }
}

pub fn page_href(base: &str, url: &str) -> String {
    format!("{base}/page?url={}", escape(url))
}

pub fn site_href(base: &str, host: &str) -> String {
    format!("{base}/site/{}", escape(host))
}

/// The replayed page at an instant.
pub fn version_href(base: &str, at: Timestamp, url: &str) -> String {
    format!("{base}/web/{}/{url}", at.to_digits14())
}

/// The comparison of two versions.
pub fn compare_href(base: &str, before: Timestamp, after: Timestamp, url: &str) -> String {
    format!("{base}/web/diff/{}/{}/{url}", before.to_digits14(), after.to_digits14())
}

/// The page about notification rules, with these conditions filled in.
pub fn notices_href(base: &str, place: Option<&str>, least: Option<f64>) -> String {
    format!(
        "{base}/notices?{}",
        query(&[("place", place), ("least", least.map(|least| least.to_string()).as_deref())])
    )
}

/// Encodes the parameters that have a value.
pub fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", escape((*value)?))));
    given.collect::<Vec<_>>().join("&")
}

pub fn path(url: &str) -> &str {
    let rest = without_scheme(url);
    rest.find('/').map_or("/", |slash| &rest[slash..])
}
