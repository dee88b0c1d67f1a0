//! Two instants and an address -> the diff view in a page of ours.

use anyhow::Context as _;
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use data_encoding::BASE64;
use perennial_core::importance::{Importance, ImportanceConfig};
use perennial_core::markup::escaped;
use perennial_core::memento::address::{Query, escape, time_of_digits};
use perennial_core::time::{Span, Timestamp};
use sha2::{Digest, Sha256};

use super::super::pages::place_of;
use super::super::problem::Problem;
use super::super::replay::Asking;
use super::super::{api, pages};
use crate::analyse::{Comparison, Filters, KnownChange, PageSpec};
use crate::archive::SharedSnapshot;
use crate::html::diff::{self, DiffView, Original};
use crate::html::face::{Framed, Tab, page_address};

/// `/web/diff/<time>/<time>/<url>`: the two versions beside each other.
pub fn compare(asking: &Asking<'_>, rest: &str) -> Result<Response<Body>, Problem> {
    let mut parts = rest.splitn(3, '/');
    let (before, after, url) = (parts.next(), parts.next(), parts.next());
    let wrong = || Problem::bad_request("Write /web/diff/20260102030405/20260103030405/https://example.org/");
    let asked = Pair::of(before, after, url).ok_or_else(wrong)?;
    asked.answer(asking, |snapshot, comparison| {
        let body = asked.view(&asking.served.base, snapshot, comparison)?;
        Ok(with_script(asking, &asked, &body))
    })
}

/// `/api/diff?before=...&after=...&url=...`: the operations between the two.
pub fn operations(asking: &Asking<'_>, query: &Query) -> Result<Response<Body>, Problem> {
    let wrong = || {
        Problem::bad_request(
            "Write /api/diff?before=20260102030405&after=20260103030405&url=https://example.org/",
        )
    };
    let asked = Pair::of(query.get("before"), query.get("after"), query.get("url")).ok_or_else(wrong)?;
    asked.answer(asking, |_, comparison| Ok(api::json(&serde_json::to_value(comparison.report(FORM))?)))
}

/// The formula of the importance.
const FORM: &str = "monotone";

/// Two versions of a page.
struct Pair<'a> {
    url: &'a str,
    before: Timestamp,
    after: Timestamp,
}

impl<'a> Pair<'a> {
    fn of(before: Option<&str>, after: Option<&str>, url: Option<&'a str>) -> Option<Pair<'a>> {
        let digits = |text: Option<&str>| {
            text.filter(|text| {
                !text.is_empty() && text.len() <= 14 && text.bytes().all(|b| b.is_ascii_digit())
            })
            .map(time_of_digits)
        };
        let url = url.filter(|url| !url.is_empty())?;
        Some(Pair { url, before: digits(before)?, after: digits(after)? })
    }

    /// Compares the two; a problem where the page is not held or one of them was not laid out.
    fn answer(
        &self,
        asking: &Asking<'_>,
        told: impl FnOnce(&SharedSnapshot, &Comparison) -> anyhow::Result<Response<Body>>,
    ) -> Result<Response<Body>, Problem> {
        let held =
            asking.served.pool.with(|snapshot| snapshot.store().page(self.url).map(|page| page.is_some()));
        if !held.and_then(|held| held).map_err(|error| Problem::internal(&error))? {
            return Err(Problem::not_archived(self.url));
        }
        let compared = self.compared(asking).map_err(|error| Problem::internal(&error))?;
        let missing = || Problem::nothing_to_compare(self.url);
        let (snapshot, comparison) = compared.ok_or_else(missing)?;
        let (before, after) = (&comparison.before, &comparison.after);
        if !Comparison::is_fair(before, after) {
            return Err(Problem::cut_differently(self.url, &before.engine, &after.engine));
        }
        told(&snapshot, &comparison).map_err(|error| Problem::internal(&error))
    }

    fn compared(&self, asking: &Asking<'_>) -> anyhow::Result<Option<(SharedSnapshot, Comparison)>> {
        let snapshot = SharedSnapshot::new(asking.served.pool.archive().snapshot()?);
        let (trees, known) = {
            let shared = snapshot.lock();
            let store = shared.store();
            let page = store.page(self.url)?.context("the page has gone")?;
            let before = store.tree_at(page.id, end_of(self.before))?;
            let trees = before.zip(store.tree_at(page.id, end_of(self.after))?);
            (trees, KnownChange::between(store, self.url, self.before, self.after)?)
        };
        let Some((before, after)) = trees else { return Ok(None) };
        let filters = Filters::load(Some(asking.served.pool.archive().root()))?;
        let mut comparison =
            Comparison::new(before, after, &ImportanceConfig::default(), &filters, known.history());
        if let Some((importance, _)) = known.found {
            comparison.assessment.importance = Importance::new(importance);
        }
        Ok(Some((snapshot, comparison)))
    }

    /// The diff component.
    fn view(&self, base: &str, snapshot: &SharedSnapshot, comparison: &Comparison) -> anyhow::Result<String> {
        let load = |time: Timestamp| {
            PageSpec::Archived { url: self.url.to_string(), time: Some(time) }.load_named(Some(snapshot))
        };
        let (before, after) = (load(self.before)?, load(self.after)?);
        let (requisites_before, requisites_after) =
            (|url: &str| before.requisite(url), |url: &str| after.requisite(url));
        let is_followed = |url: &str| {
            let url = url::Url::parse(url).ok();
            url.is_some_and(|url| snapshot.lock().archive().settings().seeds.of_page(&url).is_some())
        };
        let at =
            |selector: &str| format!("{base}/pin?url={}&selector={}", escape(self.url), escape(selector));
        let pin = is_followed(self.url).then_some(at);
        let view = DiffView {
            comparison,
            form: FORM,
            before: Some(Original { url: self.url, html: &before.html, requisites: &requisites_before }),
            after: Some(Original { url: self.url, html: &after.html, requisites: &requisites_after }),
            pin: pin.as_ref().map(|pin| pin as &dyn Fn(&str) -> String),
        };
        Ok(view.body())
    }
}

/// The last instant of a second: an address has seconds, a capture has milliseconds.
fn end_of(second: Timestamp) -> Timestamp {
    Timestamp::from_secs(second.as_secs() + 1) - Span::from_millis(1)
}

/// The page around the diff component, which may run its own script and no other.
fn with_script(asking: &Asking<'_>, asked: &Pair<'_>, body: &str) -> Response<Body> {
    let all = page_address(&asking.served.base, asked.url);
    let main = format!(
        "<p class=\"crumbs\"><a href=\"{}\">All versions of this page</a></p><style>{}</style>{body}<script>{}</script>",
        escaped(&all),
        diff::STYLE,
        diff::SCRIPT
    );
    let (before, after) = (asked.before.to_digits14(), asked.after.to_digits14());
    let json = format!("/api/diff?before={before}&after={after}&url={}", escape(asked.url));
    let frame =
        Framed { place: place_of(asking), tab: Tab::Other, title: "Compare", query: "", json: Some(&json) };
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
