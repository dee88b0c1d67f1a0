//! What all pages share: the shell with navigation, search field and footer, and the addresses of our pages.

use maud::{Markup, PreEscaped, html};
use perennial_core::memento::address::escape;
use perennial_core::time::Timestamp;
pub(crate) use perennial_core::url::canonical::{host_with_port, without_scheme};

use perennial_engine::html;

/// The stylesheet of these pages.
pub const STYLE: &str = include_str!("dashboard.css");

/// Where a page stands in the navigation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tab {
    /// What changed.
    Changes,
    /// Sites and their pages.
    Sites,
    /// The plan of visits.
    Schedule,
    /// Search.
    Search,
    /// Calendars of captures.
    Calendar,
    /// None of them.
    Other,
}

/// Whether the reader of a page may act.
#[derive(Clone, Copy, Debug, Default)]
pub enum AdminAccess<'a> {
    /// Nobody may.
    #[default]
    Off,
    /// Who logs in may.
    LoggedOut,
    /// With this token in each form.
    On(&'a str),
}

/// The archive that a page is about, and what its reader may do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where its addresses begin.
    pub base: &'a str,
    /// Whether the reader may act.
    pub operating: AdminAccess<'a>,
}

const TABS: [(Tab, &str, &str); 5] = [
    (Tab::Changes, "/", "Changes"),
    (Tab::Sites, "/sites", "Sites"),
    (Tab::Schedule, "/schedule", "Schedule"),
    (Tab::Search, "/search", "Search"),
    (Tab::Calendar, "/calendar", "Calendar"),
];

/// The mark of the project.
const MARK: PreEscaped<&str> = PreEscaped(
    "<svg width=\"20\" height=\"20\" viewBox=\"0 0 20 20\" fill=\"none\" stroke=\"currentColor\" aria-hidden=\"true\">\
    <circle cx=\"10\" cy=\"10\" r=\"9\" stroke-width=\"1.5\"/><circle cx=\"9.2\" cy=\"10.6\" r=\"5.8\" stroke-width=\"1.5\"/>\
    <circle cx=\"8.6\" cy=\"11\" r=\"2.8\" stroke-width=\"1.5\"/></svg>",
);

/// The shell of a page.
pub struct Shell<'a> {
    /// Of which archive.
    pub place: Place<'a>,
    /// Where the page stands.
    pub tab: Tab,
    /// What the window is called.
    pub title: &'a str,
    /// Words in the field for a search.
    pub query: &'a str,
    /// The same for programs.
    pub json: Option<String>,
}

impl<'a> Shell<'a> {
    /// The shell of a page without words in its field.
    pub fn new(place: Place<'a>, tab: Tab, title: &'a str, json: Option<String>) -> Shell<'a> {
        Shell { place, tab, title, query: "", json }
    }

    /// The whole page.
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
                    // The page of the search has its own field.
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
                    span { "Times are UTC unless a zone is named." }
                    span { "Importance runs from 0 to 1." }
                    @if let Some(path) = &self.json { a href={ (base) (path) } { "JSON" } }
                    a href={ (base) "/api/openapi.json" } { "API" }
                }
            }
        };
        PreEscaped(html::page(&format!("{} - Perennial", self.title), STYLE, &body.0))
    }
}

/// The address of the page about a page.
pub fn page_address(base: &str, url: &str) -> String {
    format!("{base}/page?url={}", escape(url))
}

/// The address of the page about a site.
pub fn site_address(base: &str, host: &str) -> String {
    format!("{base}/site/{}", escape(host))
}

/// The address of an archived page at a time.
pub fn version_address(base: &str, at: Timestamp, url: &str) -> String {
    format!("{base}/web/{}/{url}", at.to_digits14())
}

/// The address of the comparison of two versions.
pub fn compare_address(base: &str, before: Timestamp, after: Timestamp, url: &str) -> String {
    format!("{base}/web/diff/{}/{}/{url}", before.to_digits14(), after.to_digits14())
}

/// The address of the page that says how to be notified of these changes.
pub fn notices_address(base: &str, place: Option<&str>, least: Option<f64>) -> String {
    format!(
        "{base}/notices?{}",
        query(&[("place", place), ("least", least.map(|least| least.to_string()).as_deref())])
    )
}

/// The parameters that have a value, as the query of an address.
pub fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", escape((*value)?))));
    given.collect::<Vec<_>>().join("&")
}

/// The path of a URL.
pub fn path_of(url: &str) -> &str {
    let rest = without_scheme(url);
    rest.find('/').map_or("/", |slash| &rest[slash..])
}
