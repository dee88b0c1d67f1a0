//! The headlines of a listing page through time -> rows of intervals: when each came, was retitled, moved, left.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, PreEscaped, html};
use perennial_core::page::segment::ListItem;
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::charts::{Axis, Bar, intervals};
use super::components::{Time, became, segments, title};
use perennial_engine::html::dates::{counted, day_and_minute};

/// One look at the headlines: those that stood there, in order.
pub(crate) struct Headline {
    /// The look that showed this list first.
    pub(crate) first: Timestamp,
    /// The last look that showed it.
    pub(crate) last: Timestamp,
    /// The headlines.
    pub(crate) items: Vec<ListItem>,
}

/// Which headlines are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ItemView {
    /// Those that got other words.
    #[default]
    Retitled,
    /// Those that came while the page was watched.
    Came,
    /// Those that left.
    Left,
    /// All of them.
    All,
}

impl ItemView {
    const ALL: [(ItemView, &'static str, &'static str); 4] = [
        (ItemView::Retitled, "retitled", "Retitled"),
        (ItemView::Came, "came", "Came"),
        (ItemView::Left, "left", "Left"),
        (ItemView::All, "all", "All"),
    ];

    /// From an address.
    pub(crate) fn parse(name: &str) -> Option<ItemView> {
        ItemView::ALL.iter().find(|(_, known, _)| *known == name).map(|(view, ..)| *view)
    }
}

/// A title of a headline.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Titled {
    /// The capture that showed it first.
    time: Time,
    title: String,
}

/// A stretch of time in which a headline was on the page.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct Stretch {
    first: Time,
    last: Time,
    /// Whether it was among the first three.
    is_high: bool,
}

/// A headline through time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Headline")]
pub(crate) struct ItemRow {
    /// Its URL; empty where it is not a link.
    address: String,
    titles: Vec<Titled>,
    stays: Vec<Stretch>,
    /// The highest place that it had, from 1.
    highest_place: usize,
    lowest_place: usize,
    /// Whether it was not there at the first capture.
    has_come: bool,
    /// Whether it was there at the last.
    is_there: bool,
    /// Gaps between two captures in which it left.
    #[serde(skip)]
    gaps: Vec<(Timestamp, Timestamp)>,
}

/// The headlines of a page.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Items {
    rows: Vec<ItemRow>,
    /// Most headlines at one time.
    #[serde(skip)]
    n_places: usize,
    #[serde(skip)]
    axis: Axis,
    #[serde(skip)]
    view: ItemView,
}

/// Rows that are shown.
const MOST_ROWS: usize = 40;
/// Places that count as high.
const HIGH: usize = 3;

impl Items {
    /// Follows the headlines from list to list; `None` where no list has any.
    pub(crate) fn new(lists: &[Headline], view: ItemView) -> Option<Items> {
        let (first, last) = (lists.first()?, lists.last()?);
        let mut rows: HashMap<String, (usize, ItemRow)> = HashMap::new();
        for (index, list) in lists.iter().enumerate() {
            let mut here = BTreeSet::new();
            for (place, item) in list.items.iter().enumerate().filter(|(_, item)| !item.title.is_empty()) {
                let key = item.key();
                if !here.insert(key.clone()) {
                    continue;
                }
                let n_known = rows.len();
                let (_, row) = rows.entry(key).or_insert_with(|| (n_known, ItemRow::new(item, index > 0)));
                row.see(list, item, place);
            }
            let next = lists.get(index + 1);
            for (key, (_, row)) in &mut rows {
                row.is_there = here.contains(key);
                let was_here = row.stays.last().is_some_and(|stay| *stay.last == list.last);
                let stays = next.is_some_and(|next| next.items.iter().any(|item| item.key() == *key));
                if let (true, false, Some(next)) = (was_here, stays, next) {
                    row.gaps.push((list.last, next.first));
                }
            }
        }
        let mut rows: Vec<(usize, ItemRow)> = rows.into_values().collect();
        rows.sort_by_key(|(number, row)| (std::cmp::Reverse(row.titles.len()), *number));
        let n_places = lists.iter().map(|list| list.items.len()).max().unwrap_or(0);
        let rows: Vec<ItemRow> = rows.into_iter().map(|(_, row)| row).collect();
        let axis = Axis { from: first.first, until: last.last };
        (!rows.is_empty()).then_some(Items { rows, n_places, axis, view })
    }

    fn shown(&self, view: ItemView) -> Vec<&ItemRow> {
        let is_shown = |row: &&ItemRow| match view {
            ItemView::Retitled => row.titles.len() > 1,
            ItemView::Came => row.has_come,
            ItemView::Left => !row.is_there,
            ItemView::All => true,
        };
        self.rows.iter().filter(is_shown).collect()
    }

    /// The words for the head of the page.
    pub(crate) fn describe(&self) -> String {
        format!(
            "A front page: {} passed through {}.",
            counted(self.rows.len() as u64, "headline", "headlines"),
            counted(self.n_places as u64, "place", "places")
        )
    }

    /// The section; `address` is that of the page, to which a view is added.
    pub(crate) fn render(&self, address: &str) -> Markup {
        let rows = self.shown(self.view);
        let n_titles: usize = rows.iter().map(|row| row.titles.len().saturating_sub(1)).sum();
        let views = ItemView::ALL.map(|(view, name, words)| {
            let link = (view != self.view).then(|| format!("{address}&items={name}"));
            (format!("{words} {}", self.shown(view).len()), link)
        });
        html! {
            section {
                div.sec { h2 { "Headlines through time" } p.legend { (LEGEND) } }
                p.row style="margin-bottom:8px" {
                    (segments(views))
                    span.mute {
                        @if self.view == ItemView::Retitled {
                            (counted(n_titles as u64, "new title", "new titles")) " for "
                            (counted(rows.len() as u64, "story", "stories")) "; same address, other words; most often first"
                        } @else { "in order of their first place" }
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
                    @for row in rows.iter().take(MOST_ROWS) { (row.render(self.axis)) }
                }
                @if rows.is_empty() { p.mute.more { "None in this span." } }
                @else if rows.len() > MOST_ROWS { p.mute.more { (MOST_ROWS) " of " (rows.len()) " are shown." } }
            }
        }
    }
}

const LEGEND: PreEscaped<&str> = PreEscaped(
    "<span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect class=\"f4\" y=\"1\" width=\"24\" height=\"12\"/></svg>first three places</span>\
     <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect class=\"f3\" y=\"4\" width=\"24\" height=\"6\"/></svg>lower</span>\
     <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect y=\"4\" width=\"24\" height=\"6\" fill=\"url(#hatch)\"/></svg>left in this gap</span>\
     <span><svg width=\"14\" height=\"14\" viewBox=\"-7 -7 14 14\" aria-hidden=\"true\"><path d=\"M0-6 6 0 0 6-6 0z\" fill=\"var(--upd)\"/></svg>retitled</span>\
     <span>&#9656; still there</span>",
);

impl ItemRow {
    fn new(item: &ListItem, has_come: bool) -> ItemRow {
        ItemRow {
            address: item.address.clone(),
            titles: Vec::new(),
            stays: Vec::new(),
            gaps: Vec::new(),
            has_come,
            is_there: true,
            highest_place: usize::MAX,
            lowest_place: 0,
        }
    }

    fn see(&mut self, list: &Headline, item: &ListItem, place: usize) {
        if self.titles.last().is_none_or(|last| last.title != item.title) {
            self.titles.push(Titled { time: list.first.into(), title: item.title.clone() });
        }
        self.highest_place = self.highest_place.min(place + 1);
        self.lowest_place = self.lowest_place.max(place + 1);
        let now = Stretch { first: list.first.into(), last: list.last.into(), is_high: place < HIGH };
        let was_here =
            self.gaps.last().is_none_or(|(left, _)| self.stays.last().is_some_and(|stay| *stay.last > *left));
        match self.stays.last_mut().filter(|_| was_here) {
            Some(stay) if stay.is_high == now.is_high => stay.last = now.last,
            Some(stay) => {
                stay.last = now.first;
                self.stays.push(now);
            }
            None => self.stays.push(now),
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
        bars.extend(self.stays.iter().map(|stay| Bar::ChangeStatus(*stay.first, *stay.last, stay.is_high)));
        bars.extend(self.stays.first().filter(|_| self.has_come).map(|stay| Bar::Came(*stay.first)));
        bars.extend(self.titles.iter().skip(1).map(|known| {
            Bar::Retitled(*known.time, format!("{}: {}", day_and_minute(*known.time), known.title))
        }));
        bars.extend(self.stays.last().filter(|_| self.is_there).map(|stay| Bar::Open(*stay.last)));
        bars
    }

    fn label(&self) -> String {
        let ends = self.stays.first().zip(self.stays.last());
        ends.map(|(first, last)| {
            format!("On the page from {} to {}", day_and_minute(*first.first), day_and_minute(*last.last))
        })
        .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(hour: u8, titles: &[(&str, &str)]) -> Headline {
        let at = |minute: u8| Timestamp::parse(&format!("2026-03-02T{hour:02}:{minute:02}:00Z")).unwrap();
        let item = |(address, title): &(&str, &str)| ListItem {
            address: format!("https://a.example/{address}"),
            title: (*title).to_string(),
            ..ListItem::default()
        };
        Headline { first: at(0), last: at(30), items: titles.iter().map(item).collect() }
    }

    #[test]
    fn headlines_come_move_change_their_words_and_leave() {
        let lists = [
            list(1, &[("a", "One"), ("b", "Two"), ("c", "Three"), ("d", "Four <script>")]),
            list(2, &[("d", "Four <script>"), ("a", "One, again"), ("b", "Two"), ("c", "Three")]),
            list(3, &[("e", "Five"), ("d", "Four <script>"), ("b", "Two"), ("a", "One, again")]),
        ];
        let items = Items::new(&lists, ItemView::Retitled).unwrap();
        assert_eq!((items.rows.len(), items.n_places), (5, 4));
        let of = |address: &str| items.rows.iter().find(|row| row.address.ends_with(address)).unwrap();
        assert_eq!(of("/a").titles.len(), 2);
        assert!(!of("/c").is_there && of("/c").gaps == [(lists[1].last, lists[2].first)]);
        assert!(of("/e").has_come && !of("/b").has_come);
        // Fourth, then first, then second: two stretches, without a hole between them.
        let moved = &of("/d").stays;
        assert_eq!(moved.len(), 2);
        assert_eq!((moved[0].last, moved[1].is_high, *moved[1].last), (moved[1].first, true, lists[2].last));
        assert_eq!((of("/d").highest_place, of("/d").lowest_place), (1, 4));
        assert_eq!(items.shown(ItemView::Left).len(), 1);
        let html = items.render("/page?url=x").0;
        assert!(
            !html.contains("<script") && html.contains("Retitled 1") && html.contains("Left 1"),
            "{html}"
        );
        assert!(Items::new(&[], ItemView::All).is_none());
    }

    #[test]
    fn a_headline_that_comes_back_has_two_stretches() {
        let lists = [
            list(1, &[("a", "One"), ("b", "Two")]),
            list(2, &[("b", "Two")]),
            list(3, &[("a", "One"), ("b", "Two")]),
        ];
        let items = Items::new(&lists, ItemView::All).unwrap();
        let row = items.rows.iter().find(|row| row.address.ends_with("/a")).unwrap();
        assert_eq!((row.stays.len(), row.gaps.len(), row.is_there), (2, 1, true));
        assert_eq!(*row.stays[1].first, lists[2].first);
    }
}
