//! `/sites`: all sites with captures, and the settings of followed sites.

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;

use super::admin::all_settings;
use super::components::{Range, Time, columns, date_time, empty, percent, untrusted};
use super::layout::{Place, Shell, Tab, site_href};
use super::{Problem, Request};
use perennial_archive::settings::Seed;
use perennial_engine::html::dates::{counted, grouped};

const MAX_SITES: usize = 1_000;

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SiteRow {
    pub(crate) host: String,
    /// Documents, without subresources.
    pub(crate) n_pages: u64,
    /// Including subresources.
    pub(crate) n_captures: u64,
    pub(crate) completeness: Option<Range>,
    /// A warning, if there is one.
    pub(crate) warning: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Sites")]
pub(crate) struct SitesView {
    /// Largest first.
    sites: Vec<SiteRow>,
    followed: Vec<Seed>,
    #[serde(skip)]
    computed: Option<Time>,
}

pub(crate) fn load(request: &Request<'_>) -> Result<SitesView, Problem> {
    request.with_summary(|snapshot, summary| {
        Ok(SitesView {
            sites: summary.map(|summary| summary.sites.clone()).unwrap_or_default(),
            followed: snapshot.archive().settings().seeds.iter().cloned().collect(),
            computed: summary.and_then(|summary| summary.overview.computed),
        })
    })
}

pub(crate) fn render(view: &SitesView, place: Place<'_>) -> Markup {
    let main = html! {
        div.head {
            div {
                h1 { (counted(view.sites.len() as u64, "site", "sites")) }
                p.lead { "Largest first" @if let Some(computed) = view.computed { ", as of " (date_time(*computed)) } "." }
            }
        }
        @if !view.sites.is_empty() { (table(&view.sites, place.base)) }
        @else if view.followed.is_empty() {
            (empty(
                "Nothing is followed yet",
                "Name a site, and Perennial visits it politely until you stop it.",
                Some("perennial run https://example.org/"),
            ))
        } @else {
            (empty("No captures yet", "A crawl visits the sites below.", Some("perennial run")))
        }
        (all_settings(place, &view.followed))
    };
    Shell::new(place, Tab::Sites, "Sites", Some("/api/sites".into())).page(&main)
}

fn table(sites: &[SiteRow], base: &str) -> Markup {
    html! {
        table.t.vers {
            (columns(&["Site", "Pages", "Captures", "Completeness", "Warning"]))
            tbody {
                @for site in sites.iter().take(MAX_SITES) {
                    tr {
                        td.w { a href=(site_href(base, &site.host)) { (untrusted(&site.host)) } }
                        td data-l="Pages" { (grouped(site.n_pages)) }
                        td data-l="Captures" { (grouped(site.n_captures)) }
                        td.w data-l="Completeness" {
                            @match site.completeness {
                                Some(Range { at_least, likely, at_most }) => {
                                    (percent(likely)) " % " span.mute { "(" (percent(at_least)) " to " (percent(at_most)) ")" }
                                },
                                None => "not yet known",
                            }
                        }
                        td.w data-l="Warning" {
                            @match &site.warning { Some(warning) => (warning), None => span.mute { "none" } }
                        }
                    }
                }
            }
        }
        @if sites.len() > MAX_SITES { p.more.mute { (MAX_SITES) " of " (sites.len()) " shown." } }
    }
}
