//! `/search?q=...`: which pages contained the words, from when to when, on one scale of time.

use std::collections::BTreeSet;
use std::ops;

use maud::{Markup, PreEscaped, html};
use perennial_core::search::{PassagePresence, TextQuery as Words};
use perennial_core::time::{Span, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::charts::{Axis, Bar, HATCH, intervals};
use super::components::{Time, alert, date_time, empty, field, tick, title, untrusted};
use super::layout::{
    Place, Shell, Tab, host_with_port, page_address, query, site_address, version_address, without_scheme,
};
use super::{Problem, Request};
use perennial_archive::Snapshot;
use perennial_archive::store::{Store, Texts};
use perennial_engine::html::dates::{counted, day_and_minute, minute, size};
use perennial_engine::search::{SearchHit, SearchQuery, find_pages};

/// Pages that are shown, and their captures that are drawn.
const MAX_ANSWERS: usize = 50;
const MAX_LOOKS: usize = 200;
/// Times at which a page had the words that are told at sight.
const MAX_STAYS: usize = 4;

/// A page that contained the words.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SearchHit")]
pub(crate) struct Row {
    url: String,
    title: Option<String>,
    /// The sentence.
    text: String,
    /// The part of the page that it is in.
    place: &'static str,
    /// When it was there.
    stays: Vec<Presence>,
    /// The words in the sentence that match.
    #[serde(skip)]
    found: Vec<ops::Range<usize>>,
    /// When the page was captured.
    #[serde(skip)]
    looks: Vec<Timestamp>,
}

/// From when to when a passage was on a page, as far as captures tell.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct Presence {
    /// The last capture before it that did not show it; null if the first capture showed it.
    absent_until: Option<Time>,
    first: Time,
    last: Time,
    /// The first capture after that, which did not show it any more; null while it is there.
    gone: Option<Time>,
}

impl From<PassagePresence> for Presence {
    fn from(stay: PassagePresence) -> Presence {
        Presence {
            absent_until: stay.absent_until.map(Time),
            first: stay.first.into(),
            last: stay.last.into(),
            gone: stay.gone.map(Time),
        }
    }
}

/// What a search in important versions saves, and what it does not find.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct Restricted {
    /// Pages that contained the words in any version.
    n_pages_in_all: usize,
    /// Bytes of text that are searched; null while that is being computed.
    text_bytes: Option<u64>,
    all_text_bytes: Option<u64>,
}

/// What the user asked for.
#[derive(Default)]
struct Asked {
    site: Option<String>,
    from: Option<String>,
    to: Option<String>,
    is_phrase: bool,
    is_vanished: bool,
    is_important: bool,
}

/// The page.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Search")]
pub(crate) struct View {
    words: String,
    /// Why there is no answer.
    problem: Option<String>,
    /// How many pages contained them.
    n_pages: usize,
    /// Whether there may be more.
    is_partial: bool,
    restricted: Option<Restricted>,
    answers: Vec<Row>,
    #[serde(skip)]
    asked: Asked,
}

pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    let text = |name: &str| request.given(name).map(str::to_owned);
    let mut view = View {
        words: text("q").unwrap_or_default(),
        problem: None,
        n_pages: 0,
        is_partial: false,
        restricted: None,
        answers: Vec::new(),
        asked: Asked {
            site: text("site"),
            from: text("from"),
            to: text("to"),
            is_phrase: request.query.is_on("phrase"),
            is_vanished: request.query.is_on("vanished"),
            is_important: request.query.is_on("important"),
        },
    };
    if !view.words.is_empty() {
        request.with(|snapshot| search(request, snapshot, &mut view))?;
    }
    Ok(view)
}

/// A day or an instant as users write it.
fn instant(text: Option<&str>) -> Result<Option<Timestamp>, String> {
    text.map(Timestamp::parse).transpose().map_err(|error| error.to_string())
}

fn search(request: &Request<'_>, snapshot: &Snapshot, view: &mut View) -> anyhow::Result<()> {
    let asked = &view.asked;
    let quoted = format!("\"{}\"", view.words.replace('"', " "));
    let words =
        Words::parse(if asked.is_phrase { &quoted } else { &view.words }).map_err(|error| error.to_string());
    let (from, to) = (asked.from.as_deref(), asked.to.as_deref());
    let (words, since, until) = match words.and_then(|words| Ok((words, instant(from)?, instant(to)?))) {
        Ok(read) => read,
        Err(problem) => {
            view.problem = Some(problem);
            return Ok(());
        }
    };
    let Some(texts) = Texts::open_read(&snapshot.archive().texts_path())? else {
        let problem =
            "Nothing of this archive can be searched yet: `perennial analyse` makes the text index.";
        view.problem = Some(problem.into());
        return Ok(());
    };
    // A day that is named belongs to the span.
    let is_day = to.is_some_and(|to| to.len() == 10);
    let question = SearchQuery {
        host: asked.site.as_deref(),
        since,
        until: until.map(|until| if is_day { until + Span::from_hours(24) } else { until }),
        is_vanished: asked.is_vanished,
        is_important: asked.is_important,
        limit: MAX_ANSWERS,
        ..SearchQuery::default()
    };
    let store = snapshot.store();
    let found = find_pages(store, &texts, &words, &question)?;
    if asked.is_important {
        let all = SearchQuery { is_important: false, limit: 1, ..question };
        let summary = request.served.summaries.latest(&request.served.pool)?;
        let bytes = summary.and_then(|summary| summary.text_bytes);
        view.restricted = Some(Restricted {
            n_pages_in_all: find_pages(store, &texts, &words, &all)?.n_pages,
            text_bytes: bytes.map(|(searched, _)| searched),
            all_text_bytes: bytes.map(|(_, all)| all),
        });
    }
    (view.n_pages, view.is_partial) = (found.n_pages, found.is_partial);
    view.answers = found.hits.into_iter().map(|hit| row(store, hit)).collect::<anyhow::Result<_>>()?;
    Ok(())
}

fn row(store: &Store, hit: SearchHit) -> anyhow::Result<Row> {
    let looks = store.analysed_observations(hit.page, None)?;
    let step = looks.len().div_ceil(MAX_LOOKS).max(1);
    Ok(Row {
        url: hit.url,
        title: hit.title,
        text: hit.excerpt.text,
        found: hit.excerpt.found,
        place: hit.excerpt.role.name(),
        stays: hit.stays.into_iter().map(Presence::from).collect(),
        looks: looks.iter().step_by(step).map(|look| look.time).collect(),
    })
}

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
    let main = html! {
        (PreEscaped(HATCH))
        h1.vh { "Search all versions" }
        (form(view, place.base))
        @if let Some(restricted) = &view.restricted { (cost(view, restricted)) }
        @if let Some(problem) = &view.problem {
            (alert(problem))
        } @else if view.words.is_empty() {
            div.empty {
                h2.h3 { "What was ever said" }
                p {
                    "Words are looked for in everything that any analysed page ever showed: " code { "ferry harbour" } " both words, "
                    code { "\"new ferry line\"" } " in a row, " code { "harb*" } " words that begin so, " code { "-boat" } " without, "
                    code { "OR" } " either."
                }
            }
        } @else if view.answers.is_empty() {
            (empty(
                "No page said so",
                "No analysed page of this archive ever showed these words as they are asked for. Fewer words, or part of a word with * behind it, find more.",
                None,
            ))
        } @else {
            (facts(view))
            (answers(view, place.base))
        }
    };
    let json = (!view.words.is_empty()).then(|| format!("/api/search?{}", query_of(view)));
    Shell { place, tab: Tab::Search, title: "Search", query: &view.words, json }.page(&main)
}

fn query_of(view: &View) -> String {
    let asked = &view.asked;
    let on = |is_on: bool| is_on.then_some("1");
    query(&[
        ("q", Some(&view.words)),
        ("site", asked.site.as_deref()),
        ("from", asked.from.as_deref()),
        ("to", asked.to.as_deref()),
        ("phrase", on(asked.is_phrase)),
        ("vanished", on(asked.is_vanished)),
        ("important", on(asked.is_important)),
    ])
}

/// What a narrower search saves and loses, in a sentence.
fn cost(view: &View, restricted: &Restricted) -> Markup {
    html! {
        p.cap {
            "Important versions only: "
            @if let Some((searched, all)) = restricted.text_bytes.zip(restricted.all_text_bytes) {
                (size(searched)) " of " (size(all)) " of text are looked in. "
            }
            @match restricted.n_pages_in_all.saturating_sub(view.n_pages) {
                0 => "No page is lost by it.",
                n => { (counted(n as u64, "more page", "more pages")) " said it in versions below the index threshold alone." },
            }
        }
    }
}

fn form(view: &View, base: &str) -> Markup {
    let asked = &view.asked;
    html! {
        form role="search" action={ (base) "/search" } {
            div.searchbar {
                input type="search" name="q" value=(view.words) aria-label="Words in any version" placeholder="Words in any version" required autocomplete="off";
                button.btn.go { "Search" }
            }
            div.row style="padding:8px 0 16px;gap:8px 16px" {
                (field("site", "Site", 16, asked.site.as_deref().unwrap_or_default(), "all"))
                (field("from", "From", 10, asked.from.as_deref().unwrap_or_default(), "2026-01-28"))
                (field("to", "to", 10, asked.to.as_deref().unwrap_or_default(), "2026-01-30"))
                (tick("phrase", "exact phrase", asked.is_phrase))
                (tick("vanished", "gone by now", asked.is_vanished))
                (tick("important", "important versions only", asked.is_important))
            }
        }
    }
}

fn facts(view: &View) -> Markup {
    let rows = &view.answers;
    let n_there = rows.iter().filter(|row| row.stays.last().is_some_and(|stay| stay.gone.is_none())).count();
    let first =
        rows.iter().filter_map(|row| Some((row.stays.first()?, row))).min_by_key(|(stay, _)| stay.first);
    let gone = rows.iter().filter_map(|row| Some((row.stays.last()?, row.stays.last()?.gone?, row)));
    let gone = gone.max_by_key(|(_, gone, _)| *gone);
    let hosts: BTreeSet<&str> = rows.iter().map(|row| host_with_port(&row.url)).collect();
    let day_of = |at: Time| at.as_secs().div_euclid(86_400);
    html! {
        dl.facts {
            div {
                dt { "Said by" }
                dd {
                    @if view.is_partial { "at least " }
                    (counted(view.n_pages as u64, "page", "pages"))
                    small { "on " (counted(hosts.len() as u64, "site", "sites")) }
                }
            }
            @if let Some((stay, row)) = first {
                div {
                    dt { "First seen" }
                    dd {
                        (day_and_minute(*stay.first))
                        small {
                            (untrusted(host_with_port(&row.url))) ", "
                            @match stay.absent_until {
                                Some(absent) => { "not yet at " (day_and_minute(*absent)) },
                                None => "at its first look",
                            }
                        }
                    }
                }
            }
            div {
                dt { "Last gone" }
                dd {
                    @match gone {
                        Some((stay, gone, row)) => {
                            (day_and_minute(*stay.last)) " to "
                            @if day_of(stay.last) == day_of(gone) { (minute(*gone)) } @else { (day_and_minute(*gone)) }
                            small { (untrusted(host_with_port(&row.url))) }
                        },
                        None => { "nowhere" small { "no page took it back" } },
                    }
                }
            }
            div {
                dt { "Still there at the last look" }
                dd { (n_there) " of " (rows.len()) " shown" small { (rows.len() - n_there) " gone" } }
            }
        }
    }
}

const LEGEND: PreEscaped<&str> = PreEscaped(
    "<span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect class=\"f4\" y=\"1\" width=\"24\" height=\"12\"/></svg>seen</span>\
     <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect y=\"4\" width=\"24\" height=\"6\" fill=\"url(#hatch)\"/></svg>came or went in this gap</span>\
     <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><path class=\"sm\" d=\"M4 5v6M12 5v6M20 5v6\"/></svg>looks</span><span>&#9656; still there</span>",
);

fn answers(view: &View, base: &str) -> Markup {
    let axis = axis_of(&view.answers);
    let mut hosts: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in &view.answers {
        let host = host_with_port(&row.url);
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            Some((_, rows)) => rows.push(row),
            None => hosts.push((host, vec![row])),
        }
    }
    html! {
        section style="padding-top:16px" {
            div.sec { h2 { "When each page said it" } p.legend { (LEGEND) } }
            div.rows {
                (axis.grid("grid wide-only"))
                div.iv.axisrow { div.say.small.mute style="padding-bottom:4px" { "By site" } (axis.head()) }
                @for (host, rows) in &hosts {
                    h3.grp {
                        a.quiet href=(site_address(base, host)) { (untrusted(host)) } " "
                        span { (counted(rows.len() as u64, "page", "pages")) }
                    }
                    @for row in rows { (answer_row(row, base, axis)) }
                }
            }
        }
        @if view.n_pages > view.answers.len() {
            p.more.mute {
                (counted((view.n_pages - view.answers.len()) as u64, "more page", "more pages"))
                ": a site, a span or another word brings them here, and " code { "perennial search --limit" } " lists all."
            }
        }
    }
}

fn answer_row(row: &Row, base: &str, axis: Axis) -> Markup {
    let open = row.stays.last().map(|stay| version_address(base, *stay.last, &row.url)).unwrap_or_default();
    let label = row.stays.first().map(told).unwrap_or_default();
    html! {
        div.iv {
            div.say {
                p { a.quiet href=(open) { (marked(&row.text, &row.found)) } }
                p.small.mute {
                    a href=(page_address(base, &row.url)) { (untrusted(without_scheme(&row.url))) } ", "
                    @if let Some(name) = &row.title { (title(name)) ", " } (row.place)
                }
                (stays(&row.stays))
            }
            (intervals(axis, &bars(row, axis), &label))
        }
    }
}

fn bars(row: &Row, axis: Axis) -> Vec<Bar> {
    let mut bars = Vec::new();
    for stay in &row.stays {
        bars.extend(stay.absent_until.map(|absent| Bar::Gap(*absent, *stay.first)));
        bars.extend(stay.gone.map(|gone| Bar::Gap(*stay.last, *gone)));
        bars.push(Bar::ChangeStatus(*stay.first, *stay.last, true));
        if stay.gone.is_none() {
            bars.push(Bar::Open(*stay.last));
        }
    }
    let looks = row.looks.iter().filter(|look| **look >= axis.from && **look <= axis.until);
    bars.extend(looks.map(|look| Bar::Look(*look)));
    bars
}

/// When it came and went: the first time and the last ones in sight, those between on demand.
fn stays(stays: &[Presence]) -> Markup {
    let n_folded = if stays.len() > MAX_STAYS { stays.len() - MAX_STAYS } else { 0 };
    let line = |stay: &Presence| html! { p.small.mute { (told(stay)) } };
    let (first, rest) = stays.split_at(stays.len().min(1));
    let (folded, last) = rest.split_at(n_folded);
    html! {
        @for stay in first { (line(stay)) }
        @if !folded.is_empty() {
            details.small.mute {
                summary { "came and went " (n_folded) " times more" }
                @for stay in folded { (line(stay)) }
            }
        }
        @for stay in last { (line(stay)) }
    }
}

fn told(stay: &Presence) -> String {
    let appeared = match stay.absent_until {
        Some(absent) => format!("appeared between {} and {}", date_time(*absent), date_time(*stay.first)),
        None => format!("there at the first look, {}", date_time(*stay.first)),
    };
    match stay.gone {
        Some(gone) => format!("{appeared}; gone between {} and {}", date_time(*stay.last), date_time(*gone)),
        None => format!("{appeared}; still there at the last look, {}", date_time(*stay.last)),
    }
}

fn marked(text: &str, found: &[ops::Range<usize>]) -> Markup {
    let mut done = 0;
    let mut pieces = Vec::new();
    for at in found.iter().filter(|at| at.end <= text.len()) {
        if at.start >= done {
            pieces.push((&text[done..at.start], &text[at.clone()]));
            done = at.end;
        }
    }
    html! { @for (before, found) in pieces { (before) mark { (found) } } (&text[done..]) }
}

/// One scale of time for all rows.
fn axis_of(rows: &[Row]) -> Axis {
    let stays = || rows.iter().flat_map(|row| &row.stays);
    let from = stays().map(|stay| *stay.absent_until.unwrap_or(stay.first)).min().unwrap_or(Timestamp::EPOCH);
    let until = stays().map(|stay| *stay.gone.unwrap_or(stay.last)).max().unwrap_or(from);
    Axis { from, until }
}
