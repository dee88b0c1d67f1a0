//! The headlines of a listing page over time: when each was added, retitled, moved and removed.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, PreEscaped, html};
use perennial_core::page::segment::ListItem;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::Serialize;

use super::charts::{Axis, Bar, intervals};
use super::components::{Time, became, segments, title};
use perennial_archive::store::{Store, TreeReader};
use perennial_engine::html::dates::{counted, day_and_minute};

/// Lists of headlines that are compared.
const MAX_LISTS: usize = 80;

/// A list of headlines, in order.
pub(crate) struct HeadlineList {
    /// The first capture that showed this list.
    pub(crate) first: Timestamp,
    /// The last capture that showed it.
    pub(crate) last: Timestamp,
    pub(crate) items: Vec<ListItem>,
}

/// The lists of headlines in the window, if the last one belongs to a listing page.
pub(crate) fn headline_lists(
    store: &Store,
    page: PageId,
    window: (Timestamp, Timestamp),
) -> anyhow::Result<Vec<HeadlineList>> {
    let mut reader = TreeReader::new(store);
    let last = reader.tree_at(page, window.1)?;
    if !last.and_then(|tree| tree.list).is_some_and(|list| list.is_listing()) {
        return Ok(Vec::new());
    }
    let observations = store.analysed_observations(page, Some(window.0 - Span::from_millis(1)))?;
    let observations: Vec<_> =
        observations.into_iter().filter(|observation| observation.time <= window.1).collect();
    let trees: Vec<usize> = (0..observations.len()).filter(|at| observations[*at].has_tree).collect();
    let trees = &trees[trees.len().saturating_sub(MAX_LISTS)..];
    let mut lists = Vec::with_capacity(trees.len());
    // Backwards, because a tree is stored as its difference from the next one.
    for (number, at) in trees.iter().enumerate().rev() {
        let next = trees.get(number + 1).copied().unwrap_or(observations.len());
        let Some(tree) = reader.tree_at(page, observations[*at].time)? else { continue };
        let last =
            observations[*at..next].last().map_or(observations[*at].time, |observation| observation.time);
        lists.push(HeadlineList {
            first: observations[*at].time,
            last,
            items: tree.list.unwrap_or_default().items,
        });
    }
    lists.reverse();
    Ok(lists)
}

/// The headlines to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ItemView {
    #[default]
    Retitled,
    /// Added after the first capture.
    Added,
    Removed,
    All,
}

impl ItemView {
    const ALL: [(ItemView, &'static str, &'static str); 4] = [
        (ItemView::Retitled, "retitled", "Retitled"),
        (ItemView::Added, "came", "Added"),
        (ItemView::Removed, "left", "Removed"),
        (ItemView::All, "all", "All"),
    ];

    pub(crate) fn parse(name: &str) -> Option<ItemView> {
        ItemView::ALL.iter().find(|(_, known, _)| *known == name).map(|(view, ..)| *view)
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct DatedTitle {
    /// The first capture that showed it.
    time: Time,
    title: String,
}

/// An interval in which a headline was on the page.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct HeadlinePresence {
    first: Time,
    last: Time,
    /// Whether it was in one of the first positions.
    is_high: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Headline")]
pub(crate) struct HeadlineRow {
    /// Empty if the headline is not a link.
    url: String,
    titles: Vec<DatedTitle>,
    presence: Vec<HeadlinePresence>,
    /// From 1.
    highest_position: usize,
    lowest_position: usize,
    /// Whether it is missing in the first capture.
    is_added: bool,
    /// Whether it is in the last capture.
    is_present: bool,
    /// The intervals between captures in which it was removed.
    #[serde(skip)]
    gaps: Vec<(Timestamp, Timestamp)>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Headlines {
    rows: Vec<HeadlineRow>,
    /// The length of the longest list.
    #[serde(skip)]
    n_positions: usize,
    #[serde(skip)]
    axis: Axis,
    #[serde(skip)]
    view: ItemView,
}

/// Headlines that are shown.
const MAX_ROWS: usize = 40;
/// Positions that count as high.
const HIGH: usize = 3;

impl Headlines {
    /// Follows the headlines from list to list; `None` if all lists are empty.
    pub(crate) fn new(lists: &[HeadlineList], view: ItemView) -> Option<Headlines> {
        let (first, last) = (lists.first()?, lists.last()?);
        let mut rows: HashMap<String, (usize, HeadlineRow)> = HashMap::new();
        for (index, list) in lists.iter().enumerate() {
            let mut here = BTreeSet::new();
            for (position, item) in list.items.iter().enumerate().filter(|(_, item)| !item.title.is_empty()) {
                let key = item.key();
                if !here.insert(key.clone()) {
                    continue;
                }
                let n_known = rows.len();
                let (_, row) =
                    rows.entry(key).or_insert_with(|| (n_known, HeadlineRow::new(item, index > 0)));
                row.add(list, item, position);
            }
            let next = lists.get(index + 1);
            for (key, (_, row)) in &mut rows {
                row.is_present = here.contains(key);
                let was_here = row.presence.last().is_some_and(|presence| *presence.last == list.last);
                let is_in_next = next.is_some_and(|next| next.items.iter().any(|item| item.key() == *key));
                if let (true, false, Some(next)) = (was_here, is_in_next, next) {
                    row.gaps.push((list.last, next.first));
                }
            }
        }
        let mut rows: Vec<(usize, HeadlineRow)> = rows.into_values().collect();
        rows.sort_by_key(|(number, row)| (std::cmp::Reverse(row.titles.len()), *number));
        let n_positions = lists.iter().map(|list| list.items.len()).max().unwrap_or(0);
        let rows: Vec<HeadlineRow> = rows.into_iter().map(|(_, row)| row).collect();
        let axis = Axis { from: first.first, until: last.last };
        (!rows.is_empty()).then_some(Headlines { rows, n_positions, axis, view })
    }

    fn shown(&self, view: ItemView) -> Vec<&HeadlineRow> {
        let is_shown = |row: &&HeadlineRow| match view {
            ItemView::Retitled => row.titles.len() > 1,
            ItemView::Added => row.is_added,
            ItemView::Removed => !row.is_present,
            ItemView::All => true,
        };
        self.rows.iter().filter(is_shown).collect()
    }

    /// A sentence for the head of the page.
    pub(crate) fn describe(&self) -> String {
        format!(
            "A listing page: {} in {}.",
            counted(self.rows.len() as u64, "headline", "headlines"),
            counted(self.n_positions as u64, "position", "positions")
        )
    }

    /// The section; `address` is the path of the page, to which the chosen view is added.
    pub(crate) fn render(&self, url: &str) -> Markup {
        let rows = self.shown(self.view);
        let n_titles: usize = rows.iter().map(|row| row.titles.len().saturating_sub(1)).sum();
        let views = ItemView::ALL.map(|(view, name, words)| {
            let link = (view != self.view).then(|| format!("{url}&items={name}"));
            (format!("{words} {}", self.shown(view).len()), link)
        });
        html! {
            section {
                div.sec { h2 { "Headlines over time" } p.legend { (LEGEND) } }
                p.row style="margin-bottom:8px" {
                    (segments(views))
                    span.mute {
                        @if self.view == ItemView::Retitled {
                            (counted(n_titles as u64, "new title", "new titles")) " for "
                            (counted(rows.len() as u64, "story", "stories")) "; the same URL with different words, most often changed first"
                        } @else { "in the order of their first positions" }
                    }
                }
                div.rows {
                    (self.axis.grid("grid wide-only"))
                    div.iv.axisrow {
                        div.say.small.mute style="padding-bottom:4px" {
                            @if self.view == ItemView::Retitled { "Last two titles" } @else { "Title" }
                        }
                        (self.axis.head())
                    }
                    @for row in rows.iter().take(MAX_ROWS) { (row.render(self.axis)) }
                }
                @if rows.is_empty() { p.mute.more { "None in this span." } }
                @else if rows.len() > MAX_ROWS { p.mute.more { (MAX_ROWS) " of " (rows.len()) " shown." } }
            }
        }
    }
}

const LEGEND: PreEscaped<&str> = PreEscaped(
    "<span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect class=\"f4\" y=\"1\" width=\"24\" height=\"12\"/></svg>first three positions</span>\
     <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect class=\"f3\" y=\"4\" width=\"24\" height=\"6\"/></svg>lower</span>\
     <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect y=\"4\" width=\"24\" height=\"6\" fill=\"url(#hatch)\"/></svg>removed in this gap</span>\
     <span><svg width=\"14\" height=\"14\" viewBox=\"-7 -7 14 14\" aria-hidden=\"true\"><path d=\"M0-6 6 0 0 6-6 0z\" fill=\"var(--upd)\"/></svg>retitled</span>\
     <span>&#9656; still on the page</span>",
);

impl HeadlineRow {
    fn new(item: &ListItem, is_added: bool) -> HeadlineRow {
        HeadlineRow {
            url: item.url.clone(),
            titles: Vec::new(),
            presence: Vec::new(),
            gaps: Vec::new(),
            is_added,
            is_present: true,
            highest_position: usize::MAX,
            lowest_position: 0,
        }
    }

    fn add(&mut self, list: &HeadlineList, item: &ListItem, position: usize) {
        if self.titles.last().is_none_or(|last| last.title != item.title) {
            self.titles.push(DatedTitle { time: list.first.into(), title: item.title.clone() });
        }
        self.highest_position = self.highest_position.min(position + 1);
        self.lowest_position = self.lowest_position.max(position + 1);
        let now =
            HeadlinePresence { first: list.first.into(), last: list.last.into(), is_high: position < HIGH };
        let was_here = self
            .gaps
            .last()
            .is_none_or(|(left, _)| self.presence.last().is_some_and(|interval| *interval.last > *left));
        match self.presence.last_mut().filter(|_| was_here) {
            Some(interval) if interval.is_high == now.is_high => interval.last = now.last,
            Some(interval) => {
                interval.last = now.first;
                self.presence.push(now);
            }
            None => self.presence.push(now),
        }
    }

    fn render(&self, axis: Axis) -> Markup {
        html! {
            div.iv {
                div.say {
                    div.pair {
                        @match &self.titles[..] {
                            [] => {},
                            [only] => span { (title(&only.title)) },
                            [.., before, after] => (became(&before.title, &after.title)),
                        }
                    }
                    @if let [earlier @ .., _, _] = &self.titles[..] {
                        @if !earlier.is_empty() {
                            details.alike style="margin-top:0" {
                                summary.small { (counted(earlier.len() as u64, "earlier title", "earlier titles")) }
                                @for known in earlier.iter().rev() {
                                    p.small.mute { (day_and_minute(*known.time)) " " (title(&known.title)) }
                                }
                            }
                        }
                    }
                }
                (intervals(axis, &self.bars(), &self.label()))
            }
        }
    }

    fn bars(&self) -> Vec<Bar> {
        let mut bars: Vec<Bar> = self.gaps.iter().map(|(from, until)| Bar::Gap(*from, *until)).collect();
        bars.extend(
            self.presence
                .iter()
                .map(|interval| Bar::Present(*interval.first, *interval.last, interval.is_high)),
        );
        bars.extend(
            self.presence.first().filter(|_| self.is_added).map(|interval| Bar::Added(*interval.first)),
        );
        bars.extend(self.titles.iter().skip(1).map(|known| {
            Bar::Retitled(*known.time, format!("{}: {}", day_and_minute(*known.time), known.title))
        }));
        bars.extend(
            self.presence.last().filter(|_| self.is_present).map(|interval| Bar::Open(*interval.last)),
        );
        bars
    }

    fn label(&self) -> String {
        let ends = self.presence.first().zip(self.presence.last());
        ends.map(|(first, last)| {
            format!("On the page from {} to {}", day_and_minute(*first.first), day_and_minute(*last.last))
        })
        .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(hour: u8, titles: &[(&str, &str)]) -> HeadlineList {
        let at = |minute: u8| Timestamp::parse(&format!("2026-03-02T{hour:02}:{minute:02}:00Z")).unwrap();
        let item = |(url, title): &(&str, &str)| ListItem {
            url: format!("https://a.example/{url}"),
            title: (*title).to_string(),
            ..ListItem::default()
        };
        HeadlineList { first: at(0), last: at(30), items: titles.iter().map(item).collect() }
    }

    #[test]
    fn headlines_are_added_moved_retitled_and_removed() {
        let lists = [
            list(1, &[("a", "One"), ("b", "Two"), ("c", "Three"), ("d", "Four <script>")]),
            list(2, &[("d", "Four <script>"), ("a", "One, again"), ("b", "Two"), ("c", "Three")]),
            list(3, &[("e", "Five"), ("d", "Four <script>"), ("b", "Two"), ("a", "One, again")]),
        ];
        let items = Headlines::new(&lists, ItemView::Retitled).unwrap();
        assert_eq!((items.rows.len(), items.n_positions), (5, 4));
        let row = |url: &str| items.rows.iter().find(|row| row.url.ends_with(url)).unwrap();
        assert_eq!(row("/a").titles.len(), 2);
        assert!(!row("/c").is_present && row("/c").gaps == [(lists[1].last, lists[2].first)]);
        assert!(row("/e").is_added && !row("/b").is_added);
        // Fourth, then first, then second: two intervals without a gap.
        let moved = &row("/d").presence;
        assert_eq!(moved.len(), 2);
        assert_eq!((moved[0].last, moved[1].is_high, *moved[1].last), (moved[1].first, true, lists[2].last));
        assert_eq!((row("/d").highest_position, row("/d").lowest_position), (1, 4));
        assert_eq!(items.shown(ItemView::Removed).len(), 1);
        let html = items.render("/page?url=x").0;
        assert!(
            !html.contains("<script") && html.contains("Retitled 1") && html.contains("Removed 1"),
            "{html}"
        );
        assert!(Headlines::new(&[], ItemView::All).is_none());
    }

    #[test]
    fn a_headline_that_returns_has_two_intervals() {
        let lists = [
            list(1, &[("a", "One"), ("b", "Two")]),
            list(2, &[("b", "Two")]),
            list(3, &[("a", "One"), ("b", "Two")]),
        ];
        let items = Headlines::new(&lists, ItemView::All).unwrap();
        let row = items.rows.iter().find(|row| row.url.ends_with("/a")).unwrap();
        assert_eq!((row.presence.len(), row.gaps.len(), row.is_present), (2, 1, true));
        assert_eq!(*row.presence[1].first, lists[2].first);
    }
}
