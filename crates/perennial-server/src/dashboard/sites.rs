//! `/sites`: all sites, and what is followed.

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;

use super::admin::followed;
use super::components::{Range, Time, columns, empty, percent, short, untrusted};
use super::layout::{Place, Shell, Tab, site_address};
use super::{Problem, Request};
use perennial_archive::settings::Seed;
use perennial_engine::html::dates::{counted, grouped};

/// Sites that are listed.
const MAX_SITES: usize = 1_000;

/// A site in the list of all.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SiteRow {
    pub(crate) host: String,
    /// Pages that people read.
    pub(crate) n_pages: u64,
    /// Captures of everything.
    pub(crate) n_captures: u64,
    pub(crate) completeness: Option<Range>,
    /// What is wrong with it.
    pub(crate) need: Option<String>,
}

/// The list of sites.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Sites")]
pub(crate) struct View {
    /// The largest first.
    sites: Vec<SiteRow>,
    /// What the user follows.
    followed: Vec<Seed>,
    #[serde(skip)]
    made: Option<Time>,
}

pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    request.with_summary(|snapshot, standing| {
        Ok(View {
            sites: standing.map(|standing| standing.sites.clone()).unwrap_or_default(),
            followed: snapshot.archive().settings().seeds.iter().cloned().collect(),
            made: standing.and_then(|standing| standing.overview.made),
        })
    })
}

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
    let main = html! {
        div.head {
            div {
                h1 { (counted(view.sites.len() as u64, "site", "sites")) }
                p.lead { "Largest first" @if let Some(made) = view.made { ", as of " (short(*made)) } "." }
            }
        }
        @if !view.sites.is_empty() { (table(&view.sites, place.base)) }
        @else if view.followed.is_empty() {
            (empty(
                "Nothing is followed yet",
                "Name a site and Perennial visits it, politely, for as long as it is let.",
                Some("perennial run https://example.org/"),
            ))
        } @else {
            (empty("Nothing was captured yet", "A crawl visits what is followed below.", Some("perennial crawl")))
        }
        (followed(place, &view.followed))
    };
    Shell::new(place, Tab::Sites, "Sites", Some("/api/sites".into())).page(&main)
}

fn table(sites: &[SiteRow], base: &str) -> Markup {
    html! {
        table.t.vers {
            (columns(&["Site", "Pages", "Captures", "Completeness, likely", "Needs you"]))
            tbody {
                @for site in sites.iter().take(MAX_SITES) {
                    tr {
                        td.w { a href=(site_address(base, &site.host)) { (untrusted(&site.host)) } }
                        td data-l="Pages" { (grouped(site.n_pages)) }
                        td data-l="Captures" { (grouped(site.n_captures)) }
                        td.w data-l="Completeness, likely" {
                            @match site.completeness {
                                Some(Range { at_least, likely, at_most }) => {
                                    (percent(likely)) " % " span.mute { "(" (percent(at_least)) " to " (percent(at_most)) ")" }
                                },
                                None => "not known yet",
                            }
                        }
                        td.w data-l="Needs you" {
                            @match &site.need { Some(need) => (need), None => span.mute { "nothing" } }
                        }
                    }
                }
            }
        }
        @if sites.len() > MAX_SITES { p.more.mute { (MAX_SITES) " of " (sites.len()) " are shown." } }
    }
}
