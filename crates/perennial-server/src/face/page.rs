//! An address -> its versions in time, when it changes, its next visit, its headlines.

use std::collections::HashMap;

use axum::body::Body;
use axum::http::Response;
use perennial_core::memento::address::{Query, time_of_digits};
use perennial_core::page::look::ChangeStatus;
use perennial_core::schedule::{Ranked, peak_of};
use perennial_core::time::{DayKind, LocalClock, Span, Timestamp};
use perennial_core::url::PageId;

use super::super::pages::place_of;
use super::super::problem::Problem;
use super::super::replay::Asking;
use super::super::standing::Standing;
use super::words::{event_of, told};
use super::{Form, known_page, schedule, with};
use crate::html_face::{
    Expected, Headline, ItemView, Items, PageView, PatternView, Picture, SeriesDay, VersionLine,
};
use perennial_archive::Snapshot;
use perennial_archive::store::{AnalysisLine, ChangeFilter, ChangeRow, Store, TreeReader};
use perennial_engine::analyse::{ChangedReader, Filters};
use perennial_engine::learn::{expected_by_period, sureness_of};

/// The stretch that is shown whole.
const WINDOW: Span = Span::from_hours(7 * 24);
/// A history that is not much longer is shown as a whole.
const WHOLE: Span = Span::from_hours(10 * 24);
/// Looks of the window that are read.
const MAX_LOOKS: usize = 2_000;
/// Versions whose words are looked up, and those that are drawn.
const MAX_TOLD: usize = 20;
const MAX_PICTURES: usize = 8;
/// Days that are shown hour by hour.
const N_SERIES: usize = 14;
/// Lists of headlines that are followed.
const MAX_LISTS: usize = 80;
/// Days that the calendar and the overview reach back.
const MAX_DAYS: Span = Span::from_hours(370 * 24);

/// `/page/<url>` and `/page?url=...`.
pub fn page(asking: &Asking<'_>, url: &str, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let asked = AskedPage { url, query, form };
    let answered = with(asking, |snapshot, standing| asked.answer(asking, snapshot, standing))?;
    answered.ok_or_else(|| Problem::not_archived(url))
}

struct AskedPage<'a> {
    url: &'a str,
    query: &'a Query,
    form: Form,
}

impl AskedPage<'_> {
    fn answer(
        &self,
        asking: &Asking<'_>,
        snapshot: &Snapshot,
        standing: Option<&Standing>,
    ) -> anyhow::Result<Option<Response<Body>>> {
        let store = snapshot.store();
        let Some(row) = known_page(store, self.url)? else { return Ok(None) };
        if row.url != self.url {
            return AskedPage { url: &row.url, ..*self }.answer(asking, snapshot, standing);
        }
        let (page, span) = (row.id, row.first_seen.zip(row.last_seen));
        let window = self.window(span);
        let shows_all = self.query.get("show") == Some("all");
        let lines = store.analysis_lines(page, window.0, window.1 + Span::from_millis(1), MAX_LOOKS + 1)?;
        let has_more = lines.len() > MAX_LOOKS;
        let until = span.map_or(window.1, |(_, last)| last);
        let lists = headlines(store, page, window)?;
        let steps_before = store.steps_around(page, window.0 - Span::from_millis(1))?;
        let steps_after = store.steps_around(page, window.1)?;
        let before = steps_before.here.filter(|step| step.is_important).or(steps_before.previous_important);
        let mut looks: Vec<&AnalysisLine> = lines.iter().collect();
        looks.sort_by_key(|look| std::cmp::Reverse(look.time));
        // The first of the looks that found no page, back from the last one.
        let vanished = looks.into_iter().take_while(|look| !look.status.is_page()).last();
        let parsed = url::Url::parse(self.url).ok();
        let is_followed =
            parsed.is_some_and(|url| snapshot.archive().settings().seeds.of_page(&url).is_some());
        let view = PageView {
            vanished: vanished.map(|gone| (gone.time, gone.before)),
            is_followed,
            place: place_of(asking),
            url: self.url,
            title: store.title_of(page)?,
            n_captures: row.n_captures,
            span,
            counts: store.analysis_counts(page)?,
            threshold: store.index_threshold(page)?,
            window,
            lines: told_lines(store, self.url, &lines[..lines.len().min(MAX_LOOKS)], shows_all)?,
            has_more,
            shows_all,
            days: store.analysis_days(page, until - MAX_DAYS)?,
            important: [before.map(|step| step.time), steps_after.next_important.map(|step| step.time)],
            last_important: last_important(store, page, until)?,
            pattern: standing.and_then(|standing| pattern_of(standing, page, self.url)),
            series: match standing {
                Some(standing) => series_of(store, page, until, &clock_of(standing, self.url))?,
                None => Vec::new(),
            },
            expected: expected_of(snapshot, standing, page, self.url)?,
            pictures: pictures_of(store, page, self.url, &lines)?,
            items: Items::of(&lists, self.query.get("items").and_then(ItemView::of).unwrap_or_default()),
        };
        Ok(Some(self.form.answer(|| view.html(), || view.json())))
    }

    /// The week up to the instant in the query, or up to the last capture; all of a short history.
    fn window(&self, span: Option<(Timestamp, Timestamp)>) -> (Timestamp, Timestamp) {
        let digits =
            self.query.get("until").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let until = digits.filter(|digits| (4..=14).contains(&digits.len())).map(time_of_digits);
        let Some((first, last)) = span else { return (Timestamp::EPOCH, Timestamp::EPOCH) };
        if last - first <= WHOLE && until.is_none() {
            return (first, last);
        }
        let until = until.unwrap_or(last).clamp(first, last.max(first));
        ((until - WINDOW).max(first), until)
    }
}

fn last_important(
    store: &Store,
    page: PageId,
    until: Timestamp,
) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let steps = store.steps_around(page, until)?;
    let important = steps.here.filter(|step| step.is_important).or(steps.previous_important);
    let Some(time) = important.map(|step| step.time) else { return Ok(None) };
    let line = store.analysis_lines(page, time, time + Span::from_millis(1), 1)?;
    Ok(line.first().and_then(|line| Some((line.before?, line.time))))
}

/// The looks as they are shown, the latest important ones with their words.
fn told_lines(
    store: &Store,
    url: &str,
    lines: &[AnalysisLine],
    shows_all: bool,
) -> anyhow::Result<Vec<VersionLine>> {
    let (Some(last), Some(first)) = (lines.first(), lines.last()) else { return Ok(Vec::new()) };
    let mut rows: HashMap<Timestamp, ChangeRow> = HashMap::new();
    let until = Some(last.time + Span::from_millis(1));
    let filter = ChangeFilter { url: Some(url), since: Some(first.time), until, ..ChangeFilter::default() };
    store.each_change(&filter, |row| {
        rows.insert(row.time, row);
        Ok(())
    })?;
    let filters = Filters::built_in();
    let mut reader = ChangedReader::new(store, &filters);
    let mut n_told = 0;
    let mut shown = Vec::with_capacity(lines.len());
    for line in lines {
        let is_noise = !line.status.is_new_version();
        let wants_words = !is_noise && (line.is_indexed || shows_all) && n_told < MAX_TOLD;
        let words = match rows.get(&line.time).filter(|_| wants_words) {
            Some(row) => Some(told(&mut reader, row)?).map(|told| (told.lines, told.n_operations)),
            None => wants_words.then(Default::default),
        };
        n_told += usize::from(words.is_some());
        shown.push(VersionLine {
            time: line.time,
            before: line.before,
            importance: line.status.reported_importance().get(),
            is_indexed: line.is_indexed,
            is_noise,
            event: event_of(line.status)
                .map(|event| if line.status == ChangeStatus::New { "First capture" } else { event }),
            n_operations: line.n_operations,
            words,
        });
    }
    Ok(shown)
}

/// Drawings of the latest important versions.
fn pictures_of(
    store: &Store,
    page: PageId,
    url: &str,
    lines: &[AnalysisLine],
) -> anyhow::Result<Vec<Picture>> {
    let mut reader = TreeReader::new(store);
    let filters = Filters::built_in();
    let mut changed = ChangedReader::new(store, &filters);
    let mut pictures = Vec::new();
    for line in lines.iter().filter(|line| {
        line.is_indexed && !matches!(line.status, ChangeStatus::Vanished | ChangeStatus::Redirected(_))
    }) {
        if pictures.len() == MAX_PICTURES {
            break;
        }
        if let Some(tree) = reader.tree_at(page, line.time)? {
            let filter = ChangeFilter {
                url: Some(url),
                since: Some(line.time),
                until: Some(line.time + Span::from_millis(1)),
                ..ChangeFilter::default()
            };
            let mut blocks = Vec::new();
            store.each_change(&filter, |row| {
                blocks = told(&mut changed, &row)?.blocks;
                Ok(())
            })?;
            let importance = line.status.reported_importance().get();
            pictures.push(Picture { time: line.time, importance, tree, changed: blocks });
        }
    }
    Ok(pictures)
}

/// The lists of headlines in the window, where the last of them is that of a front page.
fn headlines(store: &Store, page: PageId, window: (Timestamp, Timestamp)) -> anyhow::Result<Vec<Headline>> {
    let mut reader = TreeReader::new(store);
    let last = reader.tree_at(page, window.1)?;
    if !last.and_then(|tree| tree.list).is_some_and(|list| list.is_hub()) {
        return Ok(Vec::new());
    }
    let looks = store.analysed_observations(page, Some(window.0 - Span::from_millis(1)))?;
    let looks: Vec<_> = looks.into_iter().filter(|look| look.time <= window.1).collect();
    let trees: Vec<usize> = (0..looks.len()).filter(|at| looks[*at].has_tree).collect();
    let trees = &trees[trees.len().saturating_sub(MAX_LISTS)..];
    let mut lists = Vec::with_capacity(trees.len());
    // Backwards: a tree is kept as what differs from the next.
    for (place, at) in trees.iter().enumerate().rev() {
        let next = trees.get(place + 1).copied().unwrap_or(looks.len());
        let Some(tree) = reader.tree_at(page, looks[*at].time)? else { continue };
        let last = looks[*at..next].last().map_or(looks[*at].time, |look| look.time);
        lists.push(Headline { first: looks[*at].time, last, items: tree.list.unwrap_or_default().items });
    }
    lists.reverse();
    Ok(lists)
}

fn clock_of(standing: &Standing, url: &str) -> LocalClock {
    standing.followed.clock_of(url).unwrap_or_else(LocalClock::utc)
}

fn pattern_of(standing: &Standing, page: PageId, url: &str) -> Option<PatternView> {
    let belief = standing.scheduler.belief(page).filter(|belief| belief.n_visits > 0)?;
    let clock = clock_of(standing, url);
    let local = clock.local(standing.at);
    let kind = |kind: DayKind| usize::from(kind != DayKind::Workday);
    let values = expected_by_period(&belief);
    // What is shaded is what the bars say: how much is expected, and not how often.
    let bars: Vec<f32> = values.iter().flatten().map(|value| *value as f32).collect();
    let peak = peak_of(&bars);
    Some(PatternView {
        values,
        sureness: sureness_of(&belief),
        peak: peak.map(|peak| (kind(peak.kind), peak.from_hour, peak.to_hour)),
        now: (kind(clock.kind_of(local.day)), local.millis_of_day as f64 / 3_600_000.0),
        zone: clock.zone().to_string(),
    })
}

/// The latest local days with what was seen in each of their hours.
fn series_of(
    store: &Store,
    page: PageId,
    until: Timestamp,
    clock: &LocalClock,
) -> anyhow::Result<Vec<SeriesDay>> {
    let from = until - Span::from_hours(24 * N_SERIES as i64);
    let lines = store.analysis_lines(page, from, until + Span::from_millis(1), MAX_LOOKS)?;
    let mut days: Vec<SeriesDay> = Vec::new();
    for line in &lines {
        let local = clock.local(line.time);
        let (number, hour) = (i64::from(local.day.0), (local.millis_of_day / 3_600_000) as usize);
        if days.last().is_none_or(|day| day.number != number) {
            days.push(SeriesDay { number, hours: [None; 24] });
        }
        let cell = days.last_mut().and_then(|day| day.hours.get_mut(hour));
        if let Some(cell) = cell {
            // What a first look shows has not changed then.
            let is_change = line.status.is_change();
            let importance = if is_change { line.status.observed_importance().get() } else { 0.0 };
            *cell = Some(cell.unwrap_or(0.0) + importance);
        }
    }
    days.truncate(N_SERIES);
    Ok(days)
}

/// What the scheduler says of the page, in sentences.
fn expected_of(
    snapshot: &Snapshot,
    standing: Option<&Standing>,
    page: PageId,
    url: &str,
) -> anyhow::Result<Expected> {
    let Some(standing) = standing else {
        let next_visit = "Being reckoned. Reload in a moment.".to_string();
        return Ok(Expected { next_visit, ..Expected::default() });
    };
    let why = schedule::why(snapshot, standing, url)?;
    let next_visit = std::iter::once(why.answer.as_str()).chain(why.because.first().map(String::as_str));
    let mut expected = Expected {
        next_visit: next_visit.collect::<Vec<_>>().join(" "),
        visit: why.next,
        ..Expected::default()
    };
    let Some(belief) = standing.scheduler.belief(page).filter(|belief| belief.n_visits > 0) else {
        expected.believes = "Nothing yet: the page must be looked at twice.".to_string();
        return Ok(expected);
    };
    let ranked = standing.ranks.get(&page).map(|(_, ranked)| ranked);
    let habit = ranked.and_then(Ranked::habit).map(|habit| format!(", most {habit}")).unwrap_or_default();
    expected.believes = format!(
        "{:.1} changes a day{habit}. Learned from {} looks, {} of which found a change; sure to {:.0} %.",
        belief.changes_per_day(),
        belief.n_visits,
        belief.n_changed,
        100.0 * sureness_of(&belief)
    );
    if let (Some(ranked), Some(since)) = (ranked, why.last_visit) {
        let clock = clock_of(standing, url);
        let zone = Some(&clock).filter(|clock| clock.zone() != "UTC");
        expected.expects = format!(
            "{:.3} of important change since {}.",
            ranked.expected.get(),
            perennial_core::schedule::local_minute(since, zone)
        );
    }
    Ok(expected)
}
