//! `/web/diff/<time>/<time>/<url>`: two versions of a page beside each other, with a slider over all versions. `/api/diff` returns the
//! operations between them; `/web/changes` redirects to the last change.

use anyhow::Context as _;
use hyper::http::{HeaderValue, Response, StatusCode, header};
use maud::{Markup, PreEscaped, html};
use perennial_core::memento::replay_url::{escape, latest_time};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::importance::{Importance, ImportanceConfig};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use super::charts::{Axis, VersionMark, strip};
use super::components::{crumbs, date_time, title};
use super::layout::{Place, Shell, Tab, compare_href, host_with_port, page_href, path};
use super::{Problem, Request, known_page};
use crate::body::Body;
use crate::diff::{self, DiffFrame, DiffView, Original};
use crate::pages;
use perennial_archive::SharedSnapshot;
use perennial_archive::store::{AnalysisRow, PageRow, Store};
use perennial_engine::analyse::{AdFilters, Comparison, ComparisonReport, PageSpec, StoredChange};
use perennial_engine::html::dates::{counted, day_short, minute};
use perennial_engine::learn::index_threshold;

/// The comparison of two versions as a page.
pub(crate) fn compare(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let mut parts = request.rest.splitn(3, '/');
    let (before, after, url) = (parts.next(), parts.next(), parts.next());
    let wrong = || Problem::bad_request("Write /web/diff/20260102030405/20260103030405/https://example.org/");
    let pair = VersionPair::parse(before, after, url).ok_or_else(wrong)?;
    let (snapshot, comparison) = pair.load(request)?;
    let rendered = pair.render(request, &snapshot, &comparison);
    let page = rendered.map_err(|error| Problem::internal(&error))?;
    Ok(pages::scripted(page, diff::SCRIPT, "img-src data:; font-src data:"))
}

pub(crate) fn load(request: &Request<'_>) -> Result<ComparisonReport, Problem> {
    let wrong = || {
        Problem::bad_request(
            "Write /api/diff?before=20260102030405&after=20260103030405&url=https://example.org/",
        )
    };
    let given = |name: &str| request.query.get(name);
    let pair = VersionPair::parse(given("before"), given("after"), given("url")).ok_or_else(wrong)?;
    Ok(pair.load(request)?.1.report(FORM))
}

/// Redirects to the last indexed change of a page, else to its last change, else to the page about it. With `before` and `after`, in
/// seconds since 1970, redirects to the comparison of the versions closest to them.
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
            None => last_change_times(store, &page)?,
        };
        Ok(Some(match pair {
            Some((before, after)) => compare_href(base, before, after, &page.url),
            None => page_href(base, &page.url),
        }))
    })?;
    let href = found.ok_or_else(|| Problem::not_archived(url))?;
    let location = HeaderValue::from_str(&href).map_err(|error| Problem::internal(&error.into()))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// Observations that are read.
const MAX_OBSERVATIONS: usize = 5_000;
/// Versions on the slider; more of them could not be distinguished.
const MAX_SHOWN: usize = 600;

fn observations(store: &Store, page: PageId) -> anyhow::Result<Vec<AnalysisRow>> {
    let (first, last) = (Timestamp::EPOCH, Timestamp::from_millis(i64::MAX));
    let mut lines = store.analysis_lines(page, first, last, MAX_OBSERVATIONS)?;
    lines.reverse();
    Ok(lines)
}

/// The two different observations closest to two instants.
fn closest(
    store: &Store,
    page: &PageRow,
    before: Timestamp,
    after: Timestamp,
) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let lines = observations(store, page.id)?;
    let times: Vec<Timestamp> =
        lines.iter().filter(|line| line.status.is_page()).map(|line| line.time).collect();
    let nearest = |to: Timestamp| (0..times.len()).min_by_key(|at| (times[*at] - to).as_millis().abs());
    let Some((before, after)) = nearest(before).zip(nearest(after)) else { return Ok(None) };
    let before = if before == after { before.saturating_sub(1) } else { before };
    let after = if before == after { (after + 1).min(times.len() - 1) } else { after };
    Ok((before < after).then(|| (times[before], times[after])))
}

fn last_change_times(store: &Store, page: &PageRow) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let lines = observations(store, page.id)?;
    let pair = |line: &AnalysisRow| Some((line.before?, line.time));
    let is_change = |line: &&AnalysisRow| matches!(line.status, ChangeStatus::Changed(_));
    let mut changes = lines.iter().rev().filter(is_change);
    let important = changes.clone().find(|line| line.is_indexed);
    Ok(important.or(changes.next()).and_then(pair))
}

#[derive(Clone, Copy, Debug)]
struct SliderVersion {
    time: Timestamp,
    before: Option<Timestamp>,
    importance: f64,
    is_indexed: bool,
    /// Whether nothing or only noise changed.
    is_unchanged: bool,
}

impl SliderVersion {
    fn new(line: &AnalysisRow) -> SliderVersion {
        SliderVersion {
            time: line.time,
            before: line.before,
            importance: line.status.reported_importance().get(),
            is_indexed: line.is_indexed,
            is_unchanged: !line.status.is_new_version(),
        }
    }
}

/// The compared versions among all versions of the page.
struct Slider<'a> {
    place: Place<'a>,
    url: &'a str,
    before: Timestamp,
    after: Timestamp,
    threshold: f64,
    /// Whether the later version is indexed.
    is_indexed: bool,
    versions: Vec<SliderVersion>,
    n_captures: u64,
    /// The previous change, the next change, the next indexed change.
    steps: [Option<SliderVersion>; 3],
}

/// If there are too many versions, keeps the strongest of each group.
fn thin_out(versions: Vec<SliderVersion>) -> Vec<SliderVersion> {
    if versions.len() <= MAX_SHOWN {
        return versions;
    }
    let group_size = versions.len().div_ceil(MAX_SHOWN);
    let strongest =
        |group: &[SliderVersion]| group.iter().copied().max_by(|a, b| a.importance.total_cmp(&b.importance));
    versions.chunks(group_size).filter_map(strongest).collect()
}

/// The formula of the importance.
const FORM: &str = "monotone";

struct VersionPair<'a> {
    url: &'a str,
    before: Timestamp,
    after: Timestamp,
}

impl<'a> VersionPair<'a> {
    fn parse(before: Option<&str>, after: Option<&str>, url: Option<&'a str>) -> Option<VersionPair<'a>> {
        let digits = |text: Option<&str>| {
            text.filter(|text| {
                !text.is_empty() && text.len() <= 14 && text.bytes().all(|b| b.is_ascii_digit())
            })
            .map(latest_time)
        };
        let url = url.filter(|url| !url.is_empty())?;
        Some(VersionPair { url, before: digits(before)?, after: digits(after)? })
    }

    /// Compares the versions; a problem if the page is not archived or a version was not laid out.
    fn load(&self, request: &Request<'_>) -> Result<(SharedSnapshot, Comparison), Problem> {
        if request.with(|snapshot| snapshot.store().page(self.url))?.is_none() {
            return Err(Problem::not_archived(self.url));
        }
        let comparison = self.compare(request).map_err(|error| Problem::internal(&error))?;
        let (snapshot, comparison) = comparison.ok_or_else(|| Problem::nothing_to_compare(self.url))?;
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
            let page = store.page(self.url)?.context("internal error: the page vanished from the store")?;
            let before = store.tree_at(page.id, end_of_second(self.before))?;
            let trees = before.zip(store.tree_at(page.id, end_of_second(self.after))?);
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

    fn render(
        &self,
        request: &Request<'_>,
        snapshot: &SharedSnapshot,
        comparison: &Comparison,
    ) -> anyhow::Result<Markup> {
        let place = request.place();
        let slider = self.slider(place, snapshot, comparison)?;
        let body = self.view(place.base, snapshot, comparison, slider.frame())?;
        let main = html! {
            style { (PreEscaped(diff::STYLE)) }
            (PreEscaped(body))
            script { (PreEscaped(diff::SCRIPT)) }
        };
        let (before, after) = (slider.before.to_digits14(), slider.after.to_digits14());
        let json = format!("/api/diff?before={before}&after={after}&url={}", escape(self.url));
        let title = format!("Changes of {}", host_with_port(self.url));
        Ok(Shell::new(place, Tab::Changes, &title, Some(json)).page(&main))
    }

    fn slider<'p>(
        &self,
        place: Place<'p>,
        snapshot: &SharedSnapshot,
        comparison: &Comparison,
    ) -> anyhow::Result<Slider<'p>>
    where
        'a: 'p,
    {
        let shared = snapshot.lock();
        let store = shared.store();
        let page = store.page(self.url)?.context("internal error: the page vanished from the store")?;
        let all = observations(store, page.id)?;
        let versions: Vec<SliderVersion> =
            all.iter().filter(|line| line.status.is_page()).map(SliderVersion::new).collect();
        let changes =
            || versions.iter().filter(|version| !version.is_unchanged && version.before.is_some()).copied();
        let (end_before, end_after) = (end_of_second(self.before), end_of_second(self.after));
        let shown = |version: &str, requested: Timestamp| Timestamp::parse(version).unwrap_or(requested);
        let after = shown(&comparison.after.version, self.after);
        Ok(Slider {
            place,
            url: self.url,
            before: shown(&comparison.before.version, self.before),
            after,
            threshold: index_threshold(&shared, page.id, self.url)?,
            is_indexed: versions.iter().any(|version| version.time == after && version.is_indexed),
            n_captures: page.n_captures,
            steps: [
                changes().rfind(|version| version.time <= end_before),
                changes().find(|version| version.time > end_after),
                changes().find(|version| version.time > end_after && version.is_indexed),
            ],
            versions: thin_out(versions),
        })
    }

    fn view(
        &self,
        base: &str,
        snapshot: &SharedSnapshot,
        comparison: &Comparison,
        frame: DiffFrame,
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
        let pin_url =
            |selector: &str| format!("{base}/pin?url={}&selector={}", escape(self.url), escape(selector));
        let pin = is_followed(self.url).then_some(pin_url);
        let view = DiffView {
            comparison,
            form: FORM,
            before: Some(Original { url: self.url, html: &before.html, subresources: &subresources_before }),
            after: Some(Original { url: self.url, html: &after.html, subresources: &subresources_after }),
            pin: pin.as_ref().map(|pin| pin as &dyn Fn(&str) -> String),
            frame: Some(frame),
        };
        Ok(view.body())
    }
}

impl Slider<'_> {
    /// The elements that the diff view places around its own.
    fn frame(&self) -> DiffFrame {
        let path = html! { a href=(page_href(self.place.base, self.url)) { (title(path(self.url))) } };
        DiffFrame {
            crumbs: crumbs(self.place, self.url, &path).0,
            threshold: self.threshold,
            is_indexed: self.is_indexed,
            steps: self.steps().0,
            slider: self.render().0,
        }
    }

    /// The comparison of a version with the observation before it.
    fn href(&self, version: &SliderVersion) -> Option<String> {
        Some(compare_href(self.place.base, version.before?, version.time, self.url))
    }

    fn steps(&self) -> Markup {
        let [earlier, later, important] =
            self.steps.map(|version| Some((self.href(&version?)?, version?.importance)));
        html! {
            p.row {
                @if let Some((href, _)) = earlier {
                    a.btn rel="prev" href=(href) { span aria-hidden="true" { "‹" } " Earlier" }
                }
                @if let Some((href, _)) = later {
                    a.btn rel="next" href=(href) { "Later " span aria-hidden="true" { "›" } }
                }
                @if let Some((href, importance)) = important {
                    a.btn href=(href) { "Next important change, " (format!("{importance:.2}")) }
                }
            }
        }
    }

    /// The versions on a time axis, with two handles. Without a script, the button goes to the versions closest to the handles.
    fn render(&self) -> Markup {
        let Some((first, last)) = self.versions.first().zip(self.versions.last()) else { return html! {} };
        let axis = Axis { from: first.time.min(self.before), until: last.time.max(self.after) };
        if axis.from == axis.until {
            return html! {};
        }
        let mark = |version: &SliderVersion| {
            Some(VersionMark {
                time: version.time,
                importance: version.importance,
                is_indexed: version.is_indexed,
                href: self.href(version)?,
                title: format!("{}, importance {:.2}", date_time(version.time), version.importance),
            })
        };
        let (unchanged, changes): (Vec<SliderVersion>, Vec<SliderVersion>) =
            self.versions.iter().partition(|version| version.is_unchanged);
        let marks: Vec<VersionMark> = changes.iter().filter_map(mark).collect();
        let unchanged: Vec<Timestamp> = unchanged.iter().map(|version| version.time).collect();
        let captures = counted(self.n_captures, "capture", "captures");
        let label = format!(
            "{captures} of the page; comparing {} and {}",
            date_time(self.before),
            date_time(self.after)
        );
        let mut times: Vec<i64> = self.versions.iter().map(|version| version.time.as_secs()).collect();
        times.extend([self.before.as_secs(), self.after.as_secs()]);
        times.sort_unstable();
        times.dedup();
        let times = times.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
        let chosen = [("before", "Before", self.before), ("after", "After", self.after)];
        html! {
            form.pd-slider action={ (self.place.base) "/web/changes" } data-times=(times) {
                (strip(axis, &marks, &unchanged, (self.before, self.after), &label))
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

/// The last millisecond of a second: URLs have seconds, captures have milliseconds.
fn end_of_second(second: Timestamp) -> Timestamp {
    Timestamp::from_secs(second.as_secs() + 1) - Span::from_millis(1)
}
