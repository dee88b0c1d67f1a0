//! `/web/diff/<time>/<time>/<url>`: two versions of a page beside each other, with a slider over all others. `/api/diff` has the
//! operations between them, `/web/changes` leads to the last change.

use anyhow::Context as _;
use hyper::http::{HeaderValue, Response, StatusCode, header};
use maud::{Markup, PreEscaped, html};
use perennial_core::memento::replay_url::{escape, latest_time};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::importance::{Importance, ImportanceConfig};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use super::charts::{Axis, Mark, strip};
use super::components::{crumbs, date_time, title};
use super::layout::{Place, Shell, Tab, compare_address, host_with_port, page_address, path};
use super::{Problem, Request, known_page};
use crate::body::Body;
use crate::diff::{self, Around, DiffView, Original};
use crate::pages;
use perennial_archive::SharedSnapshot;
use perennial_archive::store::{AnalysisLine, PageRow, Store};
use perennial_engine::analyse::{AdFilters, Comparison, ComparisonReport, PageSpec, StoredChange};
use perennial_engine::html::dates::{counted, day_short, minute};

/// The comparison of two versions, in a page.
pub(crate) fn compare(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let mut parts = request.rest.splitn(3, '/');
    let (before, after, url) = (parts.next(), parts.next(), parts.next());
    let wrong = || Problem::bad_request("Write /web/diff/20260102030405/20260103030405/https://example.org/");
    let pair = Pair::of(before, after, url).ok_or_else(wrong)?;
    let (snapshot, comparison) = pair.compared(request)?;
    let rendered = pair.render(request, &snapshot, &comparison);
    let page = rendered.map_err(|error| Problem::internal(&error))?;
    Ok(pages::scripted(page, diff::SCRIPT, "img-src data:; font-src data:"))
}

/// The operations between two versions.
pub(crate) fn load(request: &Request<'_>) -> Result<ComparisonReport, Problem> {
    let wrong = || {
        Problem::bad_request(
            "Write /api/diff?before=20260102030405&after=20260103030405&url=https://example.org/",
        )
    };
    let given = |name: &str| request.query.get(name);
    let pair = Pair::of(given("before"), given("after"), given("url")).ok_or_else(wrong)?;
    Ok(pair.compared(request)?.1.report(FORM))
}

/// Leads to the last change of a page that is kept in the index, or to its last change, or to the page about it if there is none. With
/// `before` and `after`, in seconds since 1970: to its versions that are closest to these.
pub(crate) fn last_change(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let url = if request.rest.is_empty() { request.needed("url")? } else { request.rest };
    let base = &request.served.base;
    let wanted = |name: &str| {
        let secs: Option<i64> = request.query.get(name)?.parse().ok();
        secs.map(Timestamp::from_secs)
    };
    let found = request.with(|snapshot| {
        let store = snapshot.store();
        let Some(page) = known_page(store, url)? else { return Ok(None) };
        let pair = match wanted("before").zip(wanted("after")) {
            Some((before, after)) => closest(store, &page, before.min(after), before.max(after))?,
            None => last_change_of(store, &page)?,
        };
        Ok(Some(match pair {
            Some((before, after)) => compare_address(base, before, after, &page.url),
            None => page_address(base, &page.url),
        }))
    })?;
    let address = found.ok_or_else(|| Problem::not_archived(url))?;
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

/// The looks that are closest to two instants; two different ones.
fn closest(
    store: &Store,
    page: &PageRow,
    before: Timestamp,
    after: Timestamp,
) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let looks = looks_of(store, page.id)?;
    let looks: Vec<Timestamp> =
        looks.iter().filter(|look| look.status.is_page()).map(|look| look.time).collect();
    let nearest = |to: Timestamp| (0..looks.len()).min_by_key(|at| (looks[*at] - to).as_millis().abs());
    let Some((before, after)) = nearest(before).zip(nearest(after)) else { return Ok(None) };
    let before = if before == after { before.saturating_sub(1) } else { before };
    let after = if before == after { (after + 1).min(looks.len() - 1) } else { after };
    Ok((before < after).then(|| (looks[before], looks[after])))
}

fn last_change_of(store: &Store, page: &PageRow) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let looks = looks_of(store, page.id)?;
    let pair = |look: &AnalysisLine| Some((look.before?, look.time));
    let is_change = |look: &&AnalysisLine| matches!(look.status, ChangeStatus::Changed(_));
    let mut changes = looks.iter().rev().filter(is_change);
    let important = changes.clone().find(|look| look.is_indexed);
    Ok(important.or(changes.next()).and_then(pair))
}

/// A version on the slider.
#[derive(Clone, Copy, Debug)]
struct Version {
    time: Timestamp,
    before: Option<Timestamp>,
    importance: f64,
    is_indexed: bool,
    /// Whether it differs by noise only, or not at all.
    is_noise: bool,
}

impl Version {
    fn of(look: &AnalysisLine) -> Version {
        Version {
            time: look.time,
            before: look.before,
            importance: look.status.reported_importance().get(),
            is_indexed: look.is_indexed,
            is_noise: !look.status.is_new_version(),
        }
    }
}

/// Two versions among all others of their page.
struct Versions<'a> {
    place: Place<'a>,
    url: &'a str,
    /// The two that are compared.
    before: Timestamp,
    after: Timestamp,
    threshold: f64,
    /// Whether the later one is kept in the index.
    is_indexed: bool,
    /// Those that are drawn.
    drawn: Vec<Version>,
    n_captures: u64,
    /// The change before this one, the one after it, and the next important one.
    beside: [Option<Version>; 3],
}

/// Where there are too many to be told apart: the strongest of each stretch.
fn thinned(looks: Vec<Version>) -> Vec<Version> {
    if looks.len() <= MAX_DRAWN {
        return looks;
    }
    let per_stretch = looks.len().div_ceil(MAX_DRAWN);
    let strongest =
        |stretch: &[Version]| stretch.iter().copied().max_by(|a, b| a.importance.total_cmp(&b.importance));
    looks.chunks(per_stretch).filter_map(strongest).collect()
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
            .map(latest_time)
        };
        let url = url.filter(|url| !url.is_empty())?;
        Some(Pair { url, before: digits(before)?, after: digits(after)? })
    }

    /// Compares the two; a problem if the page is not archived or one of them was not laid out.
    fn compared(&self, request: &Request<'_>) -> Result<(SharedSnapshot, Comparison), Problem> {
        if request.with(|snapshot| snapshot.store().page(self.url))?.is_none() {
            return Err(Problem::not_archived(self.url));
        }
        let compared = self.compare(request).map_err(|error| Problem::internal(&error))?;
        let (snapshot, comparison) = compared.ok_or_else(|| Problem::nothing_to_compare(self.url))?;
        let (before, after) = (&comparison.before, &comparison.after);
        if !Comparison::is_fair(before, after) {
            return Err(Problem::cut_differently(self.url, &before.engine, &after.engine));
        }
        Ok((snapshot, comparison))
    }

    fn compare(&self, request: &Request<'_>) -> anyhow::Result<Option<(SharedSnapshot, Comparison)>> {
        let snapshot = SharedSnapshot::new(request.served.pool.archive().snapshot()?);
        let (trees, known) = {
            let shared = snapshot.lock();
            let store = shared.store();
            let page = store.page(self.url)?.context("the page has gone")?;
            let before = store.tree_at(page.id, end_of(self.before))?;
            let trees = before.zip(store.tree_at(page.id, end_of(self.after))?);
            (trees, StoredChange::between(store, self.url, self.before, self.after)?)
        };
        let Some((before, after)) = trees else { return Ok(None) };
        let filters = AdFilters::load(Some(request.served.pool.archive().root()))?;
        let mut comparison =
            Comparison::new(before, after, &ImportanceConfig::default(), &filters, known.history());
        if let Some((importance, _)) = known.found {
            comparison.assessment.importance = Importance::new(importance);
        }
        Ok(Some((snapshot, comparison)))
    }

    /// The whole page.
    fn render(
        &self,
        request: &Request<'_>,
        snapshot: &SharedSnapshot,
        comparison: &Comparison,
    ) -> anyhow::Result<Markup> {
        let place = request.place();
        let versions = self.versions(place, snapshot, comparison)?;
        let body = self.view(place.base, snapshot, comparison, versions.around())?;
        let main = html! {
            style { (PreEscaped(diff::STYLE)) }
            (PreEscaped(body))
            script { (PreEscaped(diff::SCRIPT)) }
        };
        let (before, after) = (versions.before.to_digits14(), versions.after.to_digits14());
        let json = format!("/api/diff?before={before}&after={after}&url={}", escape(self.url));
        let title = format!("Changes of {}", host_with_port(self.url));
        Ok(Shell::new(place, Tab::Changes, &title, Some(json)).page(&main))
    }

    fn versions<'p>(
        &self,
        place: Place<'p>,
        snapshot: &SharedSnapshot,
        comparison: &Comparison,
    ) -> anyhow::Result<Versions<'p>>
    where
        'a: 'p,
    {
        let shared = snapshot.lock();
        let store = shared.store();
        let page = store.page(self.url)?.context("the page has gone")?;
        let all = looks_of(store, page.id)?;
        let looks: Vec<Version> = all.iter().filter(|look| look.status.is_page()).map(Version::of).collect();
        let changes = || looks.iter().filter(|look| !look.is_noise && look.before.is_some()).copied();
        let (end_before, end_after) = (end_of(self.before), end_of(self.after));
        let shown = |version: &str, asked: Timestamp| Timestamp::parse(version).unwrap_or(asked);
        let after = shown(&comparison.after.version, self.after);
        Ok(Versions {
            place,
            url: self.url,
            before: shown(&comparison.before.version, self.before),
            after,
            threshold: store.index_threshold(page.id)?,
            is_indexed: looks.iter().any(|look| look.time == after && look.is_indexed),
            n_captures: page.n_captures,
            beside: [
                changes().rfind(|look| look.time <= end_before),
                changes().find(|look| look.time > end_after),
                changes().find(|look| look.time > end_after && look.is_indexed),
            ],
            drawn: thinned(looks),
        })
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
        let (subresources_before, subresources_after) =
            (|url: &str| before.subresource(url), |url: &str| after.subresource(url));
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
            before: Some(Original { url: self.url, html: &before.html, subresources: &subresources_before }),
            after: Some(Original { url: self.url, html: &after.html, subresources: &subresources_after }),
            pin: pin.as_ref().map(|pin| pin as &dyn Fn(&str) -> String),
            around: Some(around),
        };
        Ok(view.body())
    }
}

impl Versions<'_> {
    /// The parts that the diff view puts around its own.
    fn around(&self) -> Around {
        let path = html! { a href=(page_address(self.place.base, self.url)) { (title(path(self.url))) } };
        Around {
            crumbs: crumbs(self.place, self.url, &path).0,
            threshold: self.threshold,
            is_indexed: self.is_indexed,
            steps: self.steps().0,
            slider: self.slider().0,
        }
    }

    /// The comparison of a version with the observation before it.
    fn address(&self, version: &Version) -> Option<String> {
        Some(compare_address(self.place.base, version.before?, version.time, self.url))
    }

    fn steps(&self) -> Markup {
        let [earlier, later, important] =
            self.beside.map(|version| Some((self.address(&version?)?, version?.importance)));
        html! {
            p.row {
                @if let Some((address, _)) = earlier {
                    a.btn rel="prev" href=(address) { span aria-hidden="true" { "‹" } " Earlier" }
                }
                @if let Some((address, _)) = later {
                    a.btn rel="next" href=(address) { "Later " span aria-hidden="true" { "›" } }
                }
                @if let Some((address, importance)) = important {
                    a.btn href=(address) { "Next important " (format!("{importance:.2}")) }
                }
            }
        }
    }

    /// The versions on a scale of time, with two handles under them. Without a script the button goes to the versions that are closest
    /// to the handles.
    fn slider(&self) -> Markup {
        let Some((first, last)) = self.drawn.first().zip(self.drawn.last()) else { return html! {} };
        let axis = Axis { from: first.time.min(self.before), until: last.time.max(self.after) };
        if axis.from == axis.until {
            return html! {};
        }
        let mark = |version: &Version| {
            Some(Mark {
                time: version.time,
                importance: version.importance,
                is_indexed: version.is_indexed,
                href: self.address(version)?,
                title: format!("{}, importance {:.2}", date_time(version.time), version.importance),
            })
        };
        let (noise, changes): (Vec<Version>, Vec<Version>) =
            self.drawn.iter().partition(|version| version.is_noise);
        let marks: Vec<Mark> = changes.iter().filter_map(mark).collect();
        let noise: Vec<Timestamp> = noise.iter().map(|version| version.time).collect();
        let captures = counted(self.n_captures, "capture", "captures");
        let label = format!(
            "{captures} of the page; compared are {} and {}",
            date_time(self.before),
            date_time(self.after)
        );
        let mut times: Vec<i64> = self.drawn.iter().map(|version| version.time.as_secs()).collect();
        times.extend([self.before.as_secs(), self.after.as_secs()]);
        times.sort_unstable();
        times.dedup();
        let times = times.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
        let chosen = [("before", "Before", self.before), ("after", "After", self.after)];
        html! {
            form.pd-slider action={ (self.place.base) "/web/changes" } data-times=(times) {
                (strip(axis, &marks, &noise, (self.before, self.after), &label))
                input type="hidden" name="url" value=(self.url);
                div.track {
                    @for (name, label, time) in chosen {
                        input type="range" name=(name) min=(axis.from.as_secs()) max=(axis.until.as_secs()) value=(time.as_secs())
                            aria-label=(label) aria-valuetext=(date_time(time));
                    }
                }
                p.chosen {
                    @for (name, label, time) in chosen {
                        span { (label) " " b data-of=(name) { (day_short(time)) " " (minute(time)) } }
                    }
                    button { "Compare these" }
                }
            }
        }
    }
}

/// The last instant of a second: an address has seconds, a capture has milliseconds.
fn end_of(second: Timestamp) -> Timestamp {
    Timestamp::from_secs(second.as_secs() + 1) - Span::from_millis(1)
}
