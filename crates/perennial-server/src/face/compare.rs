//! Two instants and an address -> the diff view in a page of ours.

use anyhow::Context as _;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use perennial_core::memento::address::{Query, escape, time_of_digits};
use perennial_core::page::importance::{Importance, ImportanceConfig};
use perennial_core::page::look::ChangeStatus;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use super::super::pages::place_of;
use super::super::problem::Problem;
use super::super::replay::Asking;
use super::super::{api, pages};
use super::known_page;
use crate::diff::{self, Around, DiffView, Original};
use crate::html_face::{ComparePage, ComparedVersion, page_address};
use perennial_archive::SharedSnapshot;
use perennial_archive::store::{AnalysisLine, PageRow, Store};
use perennial_engine::analyse::{Comparison, Filters, KnownChange, PageSpec};

/// `/web/diff/<time>/<time>/<url>`: the two versions beside each other.
pub fn compare(asking: &Asking<'_>, rest: &str) -> Result<Response<Body>, Problem> {
    let mut parts = rest.splitn(3, '/');
    let (before, after, url) = (parts.next(), parts.next(), parts.next());
    let wrong = || Problem::bad_request("Write /web/diff/20260102030405/20260103030405/https://example.org/");
    let asked = Pair::of(before, after, url).ok_or_else(wrong)?;
    asked.answer(asking, |snapshot, comparison| {
        let versions = Versions::of(snapshot.lock().store(), &asked)?;
        let page = ComparePage {
            place: place_of(asking),
            url: asked.url,
            before: shown(&comparison.before.version, asked.before),
            after: shown(&comparison.after.version, asked.after),
            threshold: versions.threshold,
            versions: &versions.drawn,
            n_versions: versions.n,
            beside: versions.beside,
        };
        let body = asked.view(&asking.served.base, snapshot, comparison, page.around())?;
        Ok(pages::scripted(page.html(&body), diff::SCRIPT, "img-src data:; font-src data:"))
    })
}

/// `/web/changes/<url>`: the last change of the page that is kept in the index, or its last change; the page itself where there is none.
/// `/web/changes?url=...&before=...&after=...`, in seconds since 1970: its versions that are closest to these.
pub fn changes_of(asking: &Asking<'_>, rest: &str) -> Result<Response<Body>, Problem> {
    let query = rest.strip_prefix('?').map(Query::parse);
    let url = match &query {
        Some(query) => query.get("url").unwrap_or_default(),
        None => rest.strip_prefix('/').unwrap_or_default(),
    };
    if url.is_empty() {
        return Err(Problem::bad_request("Write /web/changes/https://example.org/"));
    }
    let base = &asking.served.base;
    let wanted = |name: &str| {
        let secs: Option<i64> = query.as_ref().and_then(|query| query.get(name)?.parse().ok());
        secs.map(Timestamp::from_secs)
    };
    let found = asking.served.pool.with(|snapshot| {
        let store = snapshot.store();
        let Some(page) = known_page(store, url)? else { return Ok(None) };
        let pair = match wanted("before").zip(wanted("after")) {
            Some((before, after)) => closest(store, &page, before.min(after), before.max(after))?,
            None => last_change(store, &page)?,
        };
        Ok(Some(match pair {
            Some((before, after)) => {
                format!("{base}/web/diff/{}/{}/{}", before.to_digits14(), after.to_digits14(), page.url)
            }
            None => page_address(base, &page.url),
        }))
    });
    let found: anyhow::Result<Option<String>> = found.and_then(|found| found);
    let address = found.map_err(|error| Problem::internal(&error))?;
    let address = address.ok_or_else(|| Problem::not_archived(url))?;
    let location = HeaderValue::from_str(&address).map_err(|error| Problem::internal(&error.into()))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// Looks that are read to find the one that is closest to an instant, and those of a strip.
const MAX_LOOKS: usize = 5_000;
/// Versions that are drawn: more of them are one dark stripe.
const MAX_DRAWN: usize = 600;

fn looks_of(store: &Store, page: PageId) -> anyhow::Result<Vec<AnalysisLine>> {
    let (first, last) = (Timestamp::EPOCH, Timestamp::from_millis(i64::MAX));
    let mut looks = store.analysis_lines(page, first, last, MAX_LOOKS)?;
    looks.reverse();
    Ok(looks)
}

/// Whether a look showed a page that can be compared.
fn is_comparable(look: &AnalysisLine) -> bool {
    look.status.is_page()
}

/// The looks that are closest to two instants; two different ones.
fn closest(
    store: &Store,
    page: &PageRow,
    before: Timestamp,
    after: Timestamp,
) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let looks: Vec<Timestamp> =
        looks_of(store, page.id)?.iter().filter(|look| is_comparable(look)).map(|look| look.time).collect();
    let nearest = |to: Timestamp| (0..looks.len()).min_by_key(|at| (looks[*at] - to).as_millis().abs());
    let Some((before, after)) = nearest(before).zip(nearest(after)) else { return Ok(None) };
    let before = if before == after { before.saturating_sub(1) } else { before };
    let after = if before == after { (after + 1).min(looks.len() - 1) } else { after };
    Ok((before < after).then(|| (looks[before], looks[after])))
}

fn last_change(store: &Store, page: &PageRow) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let looks = looks_of(store, page.id)?;
    let pair = |look: &AnalysisLine| Some((look.before?, look.time));
    let is_change = |look: &&AnalysisLine| matches!(look.status, ChangeStatus::Changed(_));
    let mut changes = looks.iter().rev().filter(is_change);
    let important = changes.clone().find(|look| look.is_indexed);
    Ok(important.or(changes.next()).and_then(pair))
}

/// The versions of a page as the slider over them shows them.
struct Versions {
    threshold: f64,
    drawn: Vec<ComparedVersion>,
    n: u64,
    beside: [Option<ComparedVersion>; 3],
}

impl Versions {
    fn of(store: &Store, asked: &Pair<'_>) -> anyhow::Result<Versions> {
        let page = store.page(asked.url)?.context("the page has gone")?;
        let all = looks_of(store, page.id)?;
        let looks: Vec<ComparedVersion> =
            all.iter().filter(|look| is_comparable(look)).map(version_of).collect();
        let changes = || looks.iter().filter(|look| !look.is_noise && look.before.is_some()).copied();
        let (before, after) = (end_of(asked.before), end_of(asked.after));
        let earlier = changes().rfind(|look| look.time <= before);
        let later = changes().find(|look| look.time > after);
        let important = changes().find(|look| look.time > after && look.is_indexed);
        Ok(Versions {
            threshold: store.index_threshold(page.id)?,
            n: page.n_captures,
            beside: [earlier, later, important],
            drawn: thinned(looks),
        })
    }
}

fn version_of(look: &AnalysisLine) -> ComparedVersion {
    ComparedVersion {
        time: look.time,
        before: look.before,
        importance: look.status.reported_importance().get(),
        is_indexed: look.is_indexed,
        is_noise: !look.status.is_new_version(),
    }
}

/// Where there are too many to be told apart: the strongest of each stretch.
fn thinned(looks: Vec<ComparedVersion>) -> Vec<ComparedVersion> {
    if looks.len() <= MAX_DRAWN {
        return looks;
    }
    let per_stretch = looks.len().div_ceil(MAX_DRAWN);
    let strongest = |stretch: &[ComparedVersion]| {
        stretch.iter().copied().max_by(|a, b| a.importance.total_cmp(&b.importance))
    };
    looks.chunks(per_stretch).filter_map(strongest).collect()
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
    fn view(
        &self,
        base: &str,
        snapshot: &SharedSnapshot,
        comparison: &Comparison,
        around: Around,
    ) -> anyhow::Result<String> {
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
            around: Some(around),
        };
        Ok(view.body())
    }
}

/// When the version was captured that is shown as that of an instant.
fn shown(version: &str, asked: Timestamp) -> Timestamp {
    Timestamp::parse(version).unwrap_or(asked)
}

/// The last instant of a second: an address has seconds, a capture has milliseconds.
fn end_of(second: Timestamp) -> Timestamp {
    Timestamp::from_secs(second.as_secs() + 1) - Span::from_millis(1)
}
