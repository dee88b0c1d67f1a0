//! Two instants and an address -> the diff view in a page of ours.

use anyhow::Context as _;
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use data_encoding::BASE64;
use perennial_core::importance::ImportanceConfig;
use perennial_core::markup::escaped;
use perennial_core::memento::address::time_of_digits;
use perennial_core::time::{Span, Timestamp};
use sha2::{Digest, Sha256};

use super::super::pages;
use super::super::pages::place_of;
use super::super::problem::Problem;
use super::super::replay::Asking;
use crate::analyse::{Comparison, Filters, History, PageSpec};
use crate::archive::SharedSnapshot;
use crate::html::diff::{self, DiffView, Original};
use crate::html::face::{Framed, Tab, page_address};

/// `/web/diff/<time>/<time>/<url>`: the two versions beside each other.
pub fn compare(asking: &Asking<'_>, rest: &str) -> Result<Response<Body>, Problem> {
    let mut parts = rest.splitn(3, '/');
    let digits = |part: Option<&str>| {
        part.filter(|part| !part.is_empty() && part.len() <= 14 && part.bytes().all(|b| b.is_ascii_digit()))
            .map(time_of_digits)
    };
    let times = digits(parts.next()).zip(digits(parts.next()));
    let Some(((before, after), url)) = times.zip(parts.next().filter(|url| !url.is_empty())) else {
        return Err(Problem::bad_request(
            "Write /web/diff/20260102030405/20260103030405/https://example.org/",
        ));
    };
    let held = asking.served.pool.with(|snapshot| snapshot.store().page(url).map(|page| page.is_some()));
    if !held.and_then(|held| held).map_err(|error| Problem::internal(&error))? {
        return Err(Problem::not_archived(url));
    }
    let made = comparison(asking, url, before, after).map_err(|error| Problem::internal(&error))?;
    made.map(|body| with_script(asking, url, &body))
        .ok_or_else(|| Problem::not_held(url, &before.to_digits14()))
}

/// The diff component; `None` where one of the two versions was not laid out.
fn comparison(
    asking: &Asking<'_>,
    url: &str,
    before: Timestamp,
    after: Timestamp,
) -> anyhow::Result<Option<String>> {
    let snapshot = SharedSnapshot::new(asking.served.pool.archive().snapshot()?);
    let (trees, noise) = {
        let shared = snapshot.lock();
        let store = shared.store();
        let page = store.page(url)?.context("the page has gone")?;
        let trees = store.tree_at(page.id, end_of(before))?.zip(store.tree_at(page.id, end_of(after))?);
        (trees, store.change_between(url, before, after)?)
    };
    let Some((tree_before, tree_after)) = trees else { return Ok(None) };
    let history = noise.as_ref().map_or(History::Unknown, |(_, noise)| History::Stored(noise));
    let filters = Filters::load(Some(asking.served.pool.archive().root()))?;
    let comparison =
        Comparison::new(tree_before, tree_after, &ImportanceConfig::default(), &filters, history);
    let load = |time: Timestamp| {
        PageSpec::Archived { url: url.to_string(), time: Some(time) }.load_named(Some(&snapshot))
    };
    let (page_before, page_after) = (load(before)?, load(after)?);
    let (requisites_before, requisites_after) =
        (|url: &str| page_before.requisite(url), |url: &str| page_after.requisite(url));
    let view = DiffView {
        comparison: &comparison,
        form: "monotone",
        before: Some(Original { url, html: &page_before.html, requisites: &requisites_before }),
        after: Some(Original { url, html: &page_after.html, requisites: &requisites_after }),
    };
    Ok(Some(view.body()))
}

/// The last instant of a second: an address has seconds, a capture has milliseconds.
fn end_of(second: Timestamp) -> Timestamp {
    Timestamp::from_secs(second.as_secs() + 1) - Span::from_millis(1)
}

/// The page around the diff component, which may run its own script and no other.
fn with_script(asking: &Asking<'_>, url: &str, body: &str) -> Response<Body> {
    let all = page_address(&asking.served.base, url);
    let main = format!(
        "<p class=\"crumbs\"><a href=\"{}\">All versions of this page</a></p><style>{}</style>{body}<script>{}</script>",
        escaped(&all),
        diff::STYLE,
        diff::SCRIPT
    );
    let frame = Framed { place: place_of(asking), tab: Tab::Other, title: "Compare", query: "", json: None };
    let mut response = pages::html(frame.html(&main));
    let hash = BASE64.encode(&Sha256::digest(diff::SCRIPT.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; script-src 'sha256-{hash}'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
