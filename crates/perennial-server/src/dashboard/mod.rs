//! The pages of the server that people read first, and the same for programs.
//!
//! One file per page: `load` reads its view from the archive, the view serialises to the JSON of the API, `render` makes the HTML of it.
//! HTML is written with `maud`, which escapes; titles and URLs of captured pages go through `components::untrusted` or `components::title`
//! as well. The pages need no script.
//!
//! | file | page |
//! |---|---|
//! | `home` | `/`: which changes matter lately, with `overview`, the state of the archive, in its margin |
//! | `changes` | `/changes`: the changes that match a query |
//! | `compare` | `/web/diff/`: two versions, around the diff view |
//! | `page` | `/page`: versions of a page, when it changes, its next visit; with `headlines` of a listing page through time |
//! | `sites`, `site` | `/sites`, `/site/`: all sites; hours, directories, pages, coherence and feeds of one |
//! | `schedule` | `/schedule`: the next visits, or why a page is visited when it is |
//! | `search` | `/search`: which pages contained the words, and when |
//! | `terms` | `/terms`: terms that are new in a span |
//! | `articles` | `/objects`, `/object`: articles and posts that feeds announced; the edits of one |
//! | `notices` | `/notices`: how to be notified of changes, and who is |
//! | `pin` | `/pin`: what a pinned or ignored part would have changed |
//! | `admin` | `/acts`, `/login`, and the forms that change what is followed |
//! | `calendar` | `/calendar`, `/web/*/`: captures by day, lists of captures and URLs |
//!
//! | file | shared by the pages |
//! |---|---|
//! | `layout` | the shell, and the addresses of our pages |
//! | `parts` | untrusted text, times, importance, words, fields |
//! | `change` | the entry of a change |
//! | `charts`, `thumb` | SVG |
//! | `looked` | the cookie by which home knows what its reader has seen |
//! | `openapi` | the description of the API, made of the views |

pub(crate) mod admin;
pub(crate) mod articles;
pub(crate) mod calendar;
mod change;
pub(crate) mod changes;
mod charts;
pub(crate) mod compare;
pub(crate) mod components;
mod headlines;
pub(crate) mod home;
pub mod layout;
pub(crate) mod notices;
pub(crate) mod openapi;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod pin;
pub(crate) mod plan;
mod reader_cookie;
pub(crate) mod search;
pub(crate) mod site;
pub(crate) mod sites;
pub(crate) mod terms;
mod thumbnail;

use hyper::http::Response;
use maud::Markup;
use perennial_core::url::canonical;
use serde::Serialize;

use self::layout::Place;
use super::body::Body;
use super::problem::Problem;
use super::request::{Form, Request};
use super::{api, pages};
use perennial_archive::store::{PageRow, Store};

/// Spans that can be chosen.
const SPANS: [(&str, &str); 3] = [("1d", "24 hours"), ("7d", "7 days"), ("30d", "30 days")];

/// Responds with a page, or with its view as JSON.
pub(crate) fn respond<V: Serialize>(
    request: &Request<'_>,
    view: &V,
    render: impl FnOnce(&V, Place<'_>) -> Markup,
) -> Response<Body> {
    match request.form {
        Form::Html => pages::html(render(view, request.place())),
        Form::Json => api::json(view),
    }
}

/// The page that somebody means by a URL: as it is stored, as the crawl would write it, with the other scheme, or with one.
fn known_page(store: &Store, url: &str) -> anyhow::Result<Option<PageRow>> {
    if let Some(page) = store.page(url)? {
        return Ok(Some(page));
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or(url);
    let schemes = if url.starts_with("http://") { ["http", "https"] } else { ["https", "http"] };
    for scheme in schemes {
        let Some(url) = canonical::parse(&format!("{scheme}://{rest}")) else { continue };
        if let Some(page) = store.page(url.as_str())? {
            return Ok(Some(page));
        }
    }
    Ok(None)
}
