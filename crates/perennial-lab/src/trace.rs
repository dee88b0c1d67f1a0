//! Reads a [`World`] from files of observed changes.
//!
//! There are two formats, distinguished by their first data line (docs/traces.md):
//! - *plain*: `page <tab> time <tab> importance`;
//! - *polled*: `P id path lines` starts a page. Rows of `seconds since the previous row, lines added, deleted, lines
//!   after` follow, as made from version histories.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use perennial_core::page::importance::Importance;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::canonical::host_with_port;

use crate::rng::WorldRng;
use crate::world::{Change, SiteNames, World, WorldPage};

/// The error for an unreadable trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}; {hint}")]
pub struct TraceError {
    /// The line number, starting at 1.
    pub line: usize,
    pub problem: String,
    pub hint: &'static str,
}

/// Where the simulated days begin within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TraceStart {
    /// At the first row, or at the busiest days if fewer than half of the pages change in the days after the first row.
    #[default]
    Auto,
    First,
    /// At the start with the most changes after it.
    Busiest,
    At(Timestamp),
}

const PLAIN_HINT: &str = "write `page<TAB>time<TAB>importance`, the time as 2026-11-16T09:30:00Z or unix seconds, \
                          the importance from 0 to 1";
const POLLED_HINT: &str = "write `P<TAB>id<TAB>path<TAB>lines`, then rows of four numbers: seconds since the previous row, lines added, \
     lines deleted, lines after";

/// Reads a trace in either format. `name` is the name of the group, and of the site if a page names none.
pub fn parse(name: &str, text: &str) -> Result<World, TraceError> {
    let first = text.lines().find(|line| !line.starts_with('#') && !line.trim().is_empty());
    match first {
        Some(line) if line.starts_with("P\t") => parse_polled(name, text),
        _ => parse_plain(name, text),
    }
}

/// The pages read so far, by name.
#[derive(Default)]
struct TracePages {
    sites: SiteNames,
    pages: Vec<WorldPage>,
    by_name: HashMap<String, usize>,
}

impl TracePages {
    fn page(&mut self, group: &str, name: &str) -> &mut WorldPage {
        let place = *self.by_name.entry(name.to_owned()).or_insert(self.pages.len());
        if place == self.pages.len() {
            let site = self.sites.id(&site_name(group, name));
            let name = name.to_owned();
            self.pages.push(WorldPage { name, site, weight: 1.0, changes: Vec::new(), truth: None });
        }
        &mut self.pages[place]
    }

    fn into_world(self, name: &str) -> World {
        World::from_pages(name, self.sites.into_names(), self.pages)
    }
}

/// The site of a page: the host of a URL, else a folder that looks like a host, else the group.
fn site_name(group: &str, name: &str) -> String {
    if name.contains("://") {
        return host_with_port(name).to_owned();
    }
    let mut folders = name.split('/').rev().skip(1);
    folders.find(|folder| folder.contains('.')).unwrap_or(group).to_owned()
}

fn parse_plain(name: &str, text: &str) -> Result<World, TraceError> {
    let mut pages = TracePages::default();
    for (place, line) in text.lines().enumerate() {
        if let Some(weight) = line.strip_prefix("#weight\t") {
            read_weight(&mut pages, name, weight).ok_or_else(|| {
                trace_error(place, "not a weight", "write `#weight<TAB>page<TAB>number above 0`")
            })?;
            continue;
        }
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let mut fields = line.split('\t');
        let (Some(page), Some(time), Some(importance), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(trace_error(place, "not three fields", PLAIN_HINT));
        };
        let at = read_time(time)
            .ok_or_else(|| trace_error(place, &format!("`{time}` is not a time"), PLAIN_HINT))?;
        let importance: f64 =
            importance.trim().parse().ok().filter(|value| (0.0..=1.0).contains(value)).ok_or_else(|| {
                trace_error(place, &format!("`{importance}` is not a number from 0 to 1"), PLAIN_HINT)
            })?;
        let change = Change { at, importance: Importance::new(importance) };
        pages.page(name, page).changes.push(change);
    }
    Ok(pages.into_world(name))
}

fn read_weight(pages: &mut TracePages, group: &str, line: &str) -> Option<()> {
    let (page, weight) = line.split_once('\t')?;
    let weight: f64 =
        weight.trim().parse().ok().filter(|weight: &f64| weight.is_finite() && *weight > 0.0)?;
    pages.page(group, page).weight = weight;
    Some(())
}

/// Reads a number of nine to eleven digits as Unix seconds, anything else as a date.
fn read_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if (9..=11).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(Timestamp::from_secs);
    }
    Timestamp::parse(text).ok()
}

fn parse_polled(name: &str, text: &str) -> Result<World, TraceError> {
    let mut pages = TracePages::default();
    let mut current: Option<String> = None;
    let mut clock: Option<i64> = None;
    for (place, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        if let Some(header) = line.strip_prefix("P\t") {
            let path = header
                .split('\t')
                .nth(1)
                .ok_or_else(|| trace_error(place, "the page has no path", POLLED_HINT))?;
            pages.page(name, path);
            (current, clock) = (Some(path.to_owned()), None);
            continue;
        }
        let page =
            current.as_deref().ok_or_else(|| trace_error(place, "the row has no page", POLLED_HINT))?;
        let row =
            read_row(line).ok_or_else(|| trace_error(place, "not a row of four numbers", POLLED_HINT))?;
        let secs = clock.map_or(row[0], |before| before.saturating_add(row[0]));
        // The first row of a page is its first version, not a change.
        if clock.is_some() {
            let change = Change { at: Timestamp::from_secs(secs), importance: changed_share(&row) };
            pages.page(name, page).changes.push(change);
        }
        clock = Some(secs);
    }
    Ok(pages.into_world(name))
}

fn read_row(line: &str) -> Option<[i64; 4]> {
    let mut fields = line.split('\t').map(|field| field.trim().parse::<i64>().ok().filter(|n| *n >= 0));
    let row = [fields.next()??, fields.next()??, fields.next()??, fields.next()??];
    fields.next().is_none().then_some(row)
}

/// (added + deleted) / (before + after): the share of changed lines.
fn changed_share([_, added, deleted, after]: &[i64; 4]) -> Importance {
    let (added, deleted, after) = (*added as f64, *deleted as f64, *after as f64);
    let before = (after - added + deleted).max(0.0);
    Importance::new((added + deleted) / (before + after).max(1.0))
}

fn trace_error(place: usize, problem: &str, hint: &'static str) -> TraceError {
    TraceError { line: place + 1, problem: problem.to_owned(), hint }
}

/// Moves every change to a random instant between its poll and the previous one, at most an hour earlier. A poller
/// finds the changes of all pages at the same instant, which makes visits around it look more coherent than they would
/// be. Any instant at which some page of the trace changed is taken as a poll.
pub fn spread_polls(mut world: World, seed: u64) -> World {
    let mut polls: Vec<Timestamp> =
        world.pages.iter().flat_map(|page| &page.changes).map(|change| change.at).collect();
    polls.sort_unstable();
    polls.dedup();
    for (place, page) in world.pages.iter_mut().enumerate() {
        let mut rng = WorldRng::fork(seed, place as u64);
        for change in &mut page.changes {
            let before =
                polls.partition_point(|poll| *poll < change.at).checked_sub(1).map(|before| polls[before]);
            let hour = change.at - Span::from_hours(1);
            let since = before.map_or(hour, |before| before.max(hour));
            let room = (change.at - since).as_millis() as f64;
            change.at = change.at - Span::from_millis((room * rng.unit()) as i64);
        }
        // A page may change twice at one instant.
        page.changes.sort_by_key(|change| change.at);
    }
    world
}

/// Reads trace files and combines `days` days of each. If there is a seed, [`spread_polls`] moves their changes.
pub fn read_files(
    files: &[PathBuf],
    days: u32,
    start: TraceStart,
    spread: Option<u64>,
) -> anyhow::Result<World> {
    let mut worlds: Vec<World> = files.iter().map(|file| read_file(file)).collect::<anyhow::Result<_>>()?;
    if let Some(seed) = spread {
        worlds = worlds.into_iter().map(|world| spread_polls(world, seed)).collect();
    }
    let name = worlds.iter().map(|world| world.name.as_str()).collect::<Vec<_>>().join("+");
    let world = combine_worlds(&name, &worlds, days, start);
    if world.pages.is_empty() {
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        anyhow::bail!("{}: the trace has no pages; docs/traces.md describes the formats", files.join(", "));
    }
    Ok(world)
}

fn read_file(file: &Path) -> anyhow::Result<World> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("reading the trace {}", file.display()))?;
    let name =
        file.file_stem().map_or_else(|| "trace".to_owned(), |stem| stem.to_string_lossy().into_owned());
    parse(&name, &text).with_context(|| file.display().to_string())
}

/// Cuts `days` days out of each world and puts their pages into one world. The cuts are moved by whole weeks onto the
/// first one, which keeps hours and weekdays. Pages without a change in their cut are kept, because a crawler has to
/// find out that they do not change.
pub fn combine_worlds(name: &str, worlds: &[World], days: u32, start: TraceStart) -> World {
    let length = Span::from_hours(i64::from(days) * 24);
    let cuts: Vec<Timestamp> = worlds.iter().map(|world| cut_start(world, length, start)).collect();
    let base = cuts.first().copied().unwrap_or(Timestamp::EPOCH);
    let mut sites = SiteNames::default();
    let mut pages = Vec::new();
    for (world, cut) in worlds.iter().zip(&cuts) {
        let moved = round_to_weeks(base - *cut);
        for page in &world.pages {
            let site = world.sites.get(page.site.0 as usize).map_or(world.name.as_str(), String::as_str);
            let changes = page.changes_between(*cut - Span::from_millis(1), *cut + length);
            let moved = changes.iter().map(|change| Change { at: change.at + moved, ..*change });
            let changes = moved.filter(|change| change.at >= base && change.at < base + length).collect();
            pages.push(WorldPage { site: sites.id(site), changes, ..page.clone() });
        }
    }
    World {
        name: name.to_owned(),
        start: base,
        end: base + length,
        sites: sites.into_names(),
        pages,
        clocks: Vec::new(),
    }
}

fn round_to_weeks(span: Span) -> Span {
    const WEEK_MILLIS: i64 = 7 * 86_400_000;
    Span::from_millis(((span.as_millis() as f64) / WEEK_MILLIS as f64).round() as i64 * WEEK_MILLIS)
}

fn cut_start(world: &World, length: Span, start: TraceStart) -> Timestamp {
    let first = day_start(world.start);
    match start {
        TraceStart::First => first,
        TraceStart::At(instant) => instant,
        TraceStart::Busiest => busiest_start(world, length),
        TraceStart::Auto => {
            let alive = world
                .pages
                .iter()
                .filter(|page| !page.changes_between(first, first + length).is_empty())
                .count();
            if alive * 2 >= world.pages.len() { first } else { busiest_start(world, length) }
        }
    }
}

/// The last midnight UTC at or before an instant.
fn day_start(instant: Timestamp) -> Timestamp {
    Timestamp::from_secs(instant.as_secs().div_euclid(86_400) * 86_400)
}

/// The start with the most changes after it, in steps of a week from the first day.
fn busiest_start(world: &World, length: Span) -> Timestamp {
    let events = world.events();
    let first = day_start(world.start);
    let count = |from: Timestamp| {
        events.partition_point(|event| event.at < from + length)
            - events.partition_point(|event| event.at < from)
    };
    let n_weeks = ((world.end - first).as_millis() / (7 * 86_400_000)).clamp(0, 5200);
    let starts = (0..=n_weeks).map(|week| first + Span::from_hours(week * 168));
    starts.fold((first, 0), |best, from| if count(from) > best.1 { (from, count(from)) } else { best }).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_become_pages_and_changes() {
        let text = "# ours\n#weight\thttps://a.example/x\t2.5\n\
                    https://a.example/x\t2026-01-05T10:00:00Z\t0.5\n\
                    https://b.example/\t1767607200\t1\n\
                    https://a.example/x\t2026-01-05T09:00:00Z\t0.25\n";
        let world = parse("mine", text).unwrap();
        assert_eq!(world.sites, ["a.example", "b.example"]);
        assert_eq!(world.pages[0].weight, 2.5);
        let importances: Vec<f64> = world.pages[0].changes.iter().map(|c| c.importance.get()).collect();
        assert_eq!(importances, [0.25, 0.5]);
        assert_eq!(world.pages[1].changes[0].at, Timestamp::parse("2026-01-05T10:00:00Z").unwrap());
    }

    #[test]
    fn polled_rows_become_shares_of_lines() {
        let text = "#repo x\nP\t0\tdocs/snapshots/bild.de/ausland.json\t30\n1736093924\t46\t0\t46\n\
                    3600\t4\t10\t40\n60\t0\t0\t40\nP\t1\tplain.html\t3\n1736093924\t3\t0\t3\n";
        let world = parse("front", text).unwrap();
        assert_eq!(world.sites, ["bild.de", "front"]);
        let changes = &world.pages[0].changes;
        assert_eq!(changes.len(), 2);
        assert_eq!(changes[0].at.as_secs(), 1_736_093_924 + 3600);
        assert!((changes[0].importance.get() - 14.0 / 86.0).abs() < 1e-6);
        assert_eq!(changes[1].importance, Importance::NONE);
        assert!(world.pages[1].changes.is_empty());
    }

    #[test]
    fn errors_name_line_and_hint() {
        let message = parse("x", "a\tb\n").unwrap_err().to_string();
        assert!(message.starts_with("line 1: not three fields; write `page<TAB>"), "{message}");
        assert!(parse("x", "a\tnever\t0.5").unwrap_err().to_string().contains("`never` is not a time"));
        assert!(parse("x", "a\t2026\t1.5").unwrap_err().to_string().contains("`1.5` is not a number"));
        assert!(parse("x", "P\t0\tp\t1\n1\t2\n").unwrap_err().to_string().contains("line 2"));
        assert!(parse("x", "").unwrap().pages.is_empty());
    }

    #[test]
    fn mixing_keeps_hours_and_weekdays() {
        let early = parse("a", "p\t2020-03-02T10:00:00Z\t0.5\np\t2020-03-09T11:00:00Z\t0.5\n").unwrap();
        let late = parse("b", "q\t2024-05-07T15:00:00Z\t0.5\n").unwrap();
        let world = combine_worlds("both", &[early, late], 14, TraceStart::Auto);
        assert_eq!(world.start, Timestamp::parse("2020-03-02").unwrap());
        assert_eq!(world.pages[0].changes.len(), 2);
        // 2024-05-07 was a Tuesday: it becomes the Tuesday of the first week.
        assert_eq!(world.pages[1].changes[0].at, Timestamp::parse("2020-03-03T15:00:00Z").unwrap());
    }

    #[test]
    fn changes_move_between_two_polls_only() {
        let text = "p\t2020-03-02T10:00:00Z\t0.5\nq\t2020-03-02T10:00:00Z\t0.5\nq\t2020-03-02T10:20:00Z\t0.4\n\
                    p\t2020-03-02T15:00:00Z\t0.5\n";
        let before = parse("a", text).unwrap();
        let after = spread_polls(before.clone(), 3);
        let at = |world: &World, page: usize, change: usize| world.pages[page].changes[change].at;
        let instant = |text: &str| Timestamp::parse(text).unwrap();
        for (page, change, since) in [(1, 1, "2020-03-02T10:00:00Z"), (0, 1, "2020-03-02T14:00:00Z")] {
            let (then, now) = (at(&before, page, change), at(&after, page, change));
            assert!(now <= then && now > instant(since), "{now}");
        }
        assert_ne!(at(&after, 0, 0), at(&after, 1, 0));
        assert_eq!(after, spread_polls(before, 3));
    }

    #[test]
    fn the_busiest_days_are_found() {
        let mut text = String::from("p\t2020-01-06T00:00:00Z\t0.1\n");
        for hour in 10..20 {
            text.push_str(&format!("p\t2020-06-03T{hour}:00:00Z\t0.1\n"));
        }
        let world = parse("a", &text).unwrap();
        let cut = combine_worlds("cut", &[world], 7, TraceStart::Busiest);
        assert_eq!(cut.pages[0].changes.len(), 10);
        assert!(cut.start <= Timestamp::parse("2020-06-03").unwrap());
    }
}
