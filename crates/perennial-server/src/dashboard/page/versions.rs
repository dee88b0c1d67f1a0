//! The listed versions of a page, with what changed in each.

use std::collections::HashMap;

use maud::{Markup, html};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::time::{Span, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::PageView;
use crate::dashboard::change::{ChangeSummary, event};
use crate::dashboard::components::{Time, date_time, importance, operations, segments, words};
use crate::dashboard::layout::page_href;
use perennial_archive::store::{AnalysisRow, ChangeFilter, ChangeRow, Store};
use perennial_engine::analyse::{AdFilters, ChangeReader};
use perennial_engine::html::dates::{counted, day_long, day_of_year, grouped, minute};

/// Versions whose words are looked up.
const MAX_WITH_WORDS: usize = 20;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Version {
    /// The first capture that showed it.
    pub(super) time: Time,
    /// The observation before.
    pub(super) before: Option<Time>,
    pub(super) importance: f64,
    pub(super) is_indexed: bool,
    /// Whether the capture shows no new version, because nothing or only noise changed.
    pub(super) is_unchanged: bool,
    /// What happened, if it is not an edit.
    pub(super) event: Option<&'static str>,
    pub(super) n_operations: usize,
    /// The operations; `None` if they are not looked up.
    #[serde(skip)]
    pub(super) summary: Option<ChangeSummary>,
}

/// The listed captures; the latest important ones have their words.
pub(super) fn load_versions(
    store: &Store,
    url: &str,
    lines: &[AnalysisRow],
    shows_all: bool,
) -> anyhow::Result<Vec<Version>> {
    let (Some(last), Some(first)) = (lines.first(), lines.last()) else { return Ok(Vec::new()) };
    let mut rows: HashMap<Timestamp, ChangeRow> = HashMap::new();
    let until = Some(last.time + Span::from_millis(1));
    let filter = ChangeFilter { url: Some(url), since: Some(first.time), until, ..ChangeFilter::default() };
    store.each_change(&filter, |row| {
        rows.insert(row.time, row);
        Ok(())
    })?;
    let filters = AdFilters::built_in();
    let mut reader = ChangeReader::new(store, &filters);
    let mut n_with_words = 0;
    let mut versions = Vec::with_capacity(lines.len());
    for line in lines {
        let is_unchanged = !line.status.is_new_version();
        let wants_words = !is_unchanged && (line.is_indexed || shows_all) && n_with_words < MAX_WITH_WORDS;
        let summary = match rows.get(&line.time).filter(|_| wants_words) {
            Some(row) => Some(ChangeSummary::read(&mut reader, row)?),
            None => wants_words.then(ChangeSummary::default),
        };
        n_with_words += usize::from(summary.is_some());
        versions.push(Version {
            time: line.time.into(),
            before: line.before.map(Time),
            importance: line.status.reported_importance().get(),
            is_indexed: line.is_indexed,
            is_unchanged,
            event: if line.status == ChangeStatus::New { Some("First capture") } else { event(line.status) },
            n_operations: line.n_operations,
            summary,
        });
    }
    Ok(versions)
}

pub(super) fn version_table(view: &PageView, base: &str) -> Markup {
    let (from, until) = (day_of_year(*view.from), day_of_year(*view.until));
    let other = format!(
        "{}&until={}{}",
        page_href(base, &view.url),
        view.until.to_digits14(),
        if view.shows_all { "" } else { "&show=all" }
    );
    let all = format!("All {}", grouped(view.n_observations));
    let choices = match view.shows_all {
        true => [("Important".to_owned(), Some(other)), (all, None)],
        false => [("Important".to_owned(), None), (all, Some(other))],
    };
    let [previous, next] = view.important;
    let steps =
        [("prev", "Previous important version, ", previous), ("next", "Next important version, ", next)];
    html! {
        section #versions {
            div.sec {
                h2 { (from) @if from != until { " to " (until) } }
                p.row {
                    (segments(choices))
                    @for (rel, words, at) in steps {
                        @if let Some(at) = at {
                            a.btn rel=(rel) href=(view.href(base, Some(Timestamp::from_secs(at.as_secs() + 1)))) { (words) (date_time(at)) }
                        }
                    }
                }
            }
            table.t.vers {
                thead {
                    tr {
                        th scope="col" { "Time" } th scope="col" { "Importance" } th scope="col" { "Words" }
                        th.wide-only scope="col" { "Operations" } th scope="col" { span.vh { "Compare" } }
                    }
                }
                tbody { @for row in rows(view, base) { (row) } }
            }
            @if view.has_more {
                p.more { a.btn href=(view.href(base, view.versions.last().map(|version| *version.time))) { "Older" } }
            }
        }
    }
}

/// One row per listed version; the versions between two of them are folded and counted.
fn rows(view: &PageView, base: &str) -> Vec<Markup> {
    let is_listed = |version: &Version| version.summary.is_some() || view.shows_all && !version.is_unchanged;
    let mut last_day = String::new();
    let row = |versions: &[Version]| match versions {
        [version] if is_listed(version) => {
            let day = day_long(*version.time);
            let is_new = std::mem::replace(&mut last_day, day.clone()) != day;
            html! {
                @if is_new { tr.day { th colspan="5" scope="colgroup" { (day) } } }
                (row(view, version, base))
            }
        }
        folded => fold(folded),
    };
    view.versions.chunk_by(|a, b| !is_listed(a) && !is_listed(b)).map(row).collect()
}

fn row(view: &PageView, version: &Version, base: &str) -> Markup {
    let summary = version.summary.clone().unwrap_or_default();
    html! {
        tr {
            td.nowrap { a href=(view.open(base, *version.time)) { time datetime=(version.time.to_rfc3339()) { (minute(*version.time)) } } }
            td { (importance(version.importance, version.is_indexed, Some(view.index_threshold))) }
            td.w {
                div.pair {
                    @if let Some(event) = version.event { span { (event) } }
                    @for line in &summary.words { (words(line)) }
                }
            }
            td.wide-only { (operations(&summary.operations)) }
            td.r { @if let Some(compare) = view.compare(base, version) { a href=(compare) { "Compare" } } }
        }
    }
}

fn fold(folded: &[Version]) -> Markup {
    let (Some(last), Some(first)) = (folded.first(), folded.last()) else { return html! {} };
    let n_unchanged = folded.iter().filter(|version| version.is_unchanged).count();
    let n_minor = folded.len() - n_unchanged;
    html! {
        tr.fold {
            td.nowrap { time { (minute(*first.time)) @if first.time != last.time { " to " (minute(*last.time)) } } }
            td colspan="4" {
                @if n_unchanged > 0 { (n_unchanged) " unchanged" }
                @if n_unchanged > 0 && n_minor > 0 { ", " }
                @if n_minor > 0 { (counted(n_minor as u64, "minor version", "minor versions")) }
            }
        }
    }
}
