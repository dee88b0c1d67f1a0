//! The dashboard: pages for readers of an archive, and the same data as JSON.
//!
//! One file per page: `load` reads its view from the archive, the view serialises to the JSON of the API, `render` makes its HTML.
//! `maud` escapes HTML. Titles and URLs of captured pages also pass through `components::untrusted` or `components::title`. The pages
//! need no script.
//!
//! | file | page |
//! |---|---|
//! | `home` | `/`: recent important changes, with `overview`, the state of the archive, in a sidebar |
//! | `changes` | `/changes`: the changes that match a query |
//! | `compare` | `/web/diff/`: the frame around the diff view of two versions |
//! | `page` (a folder) | `/page`: versions of a page, its pattern of change, its next visit; `headlines` of a listing page through time |
//! | `sites`, `site` | `/sites`, `/site/`: all sites; activity by hour, directories, pages, coherence and feeds of a site |
//! | `plan` | `/plan`: the next visits, or why a page is visited when it is |
//! | `search` | `/search`: which pages contained the words, and when |
//! | `terms` | `/terms`: new terms of a span |
//! | `articles` | `/articles`, `/article`: articles and posts that feeds announced; the edits of an article |
//! | `notices` | `/notices`: how to be notified of changes, and existing rules |
//! | `pin` | `/pin`: preview of pinning or ignoring a part of a page |
//! | `admin` | `/audit`, `/login`, and the forms that change settings |
//! | `calendar` | `/calendar`, `/web/*/`: captures by day, lists of captures and URLs |
//!
//! | file | shared by pages |
//! |---|---|
//! | `follow` | the form that follows a page, and the page of a URL that waits for its first capture |
//! | `layout` | the frame of all pages, and the paths of pages |
//! | `components` | untrusted text, times, importance, words, form fields |
//! | `change` | the entry of a change |
//! | `charts`, `thumbnail` | SVG |
//! | `reader_cookie` | the cookie that remembers which changes the reader has seen |
//! | `openapi` | the description of the API, generated from the views |

pub(crate) mod admin;
pub(crate) mod articles;
pub(crate) mod calendar;
mod change;
pub(crate) mod changes;
mod charts;
pub(crate) mod compare;
pub(crate) mod components;
mod follow;
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
use super::request::{Request, ResponseFormat};
use super::{api, pages};
use perennial_archive::store::{PageRow, Store};

const SPANS: [(&str, &str); 3] = [("1d", "24 hours"), ("7d", "7 days"), ("30d", "30 days")];

/// Responds with a page, or with its view as JSON.
pub(crate) fn respond<V: Serialize>(
    request: &Request<'_>,
    view: &V,
    render: impl FnOnce(&V, Place<'_>) -> Markup,
) -> Response<Body> {
    match request.form {
        ResponseFormat::Html => pages::html(render(view, request.place())),
        ResponseFormat::Json => api::json(view),
    }
}

/// The page of a URL that a person typed: as stored, in canonical form, with the other scheme, or with a scheme added.
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
