//! The headlines of a front page through time -> rows of intervals: when each came, was retitled, moved, left.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use perennial_core::page::segment::Item;
use perennial_core::text::markup::escaped;
use perennial_core::time::Timestamp;
use serde_json::{Value, json};

use super::foreign;
use super::parts::marked_or_plain;
use perennial_engine::html::chart::stretched::{Axis, Bar, intervals};
use perennial_engine::html::dates::{counted, day_and_minute};

/// One look at the headlines: those that stood there, in order.
pub struct Headline {
    /// The look that showed this list first.
    pub first: Timestamp,
    /// The last look that showed it.
    pub last: Timestamp,
    /// The headlines.
    pub items: Vec<Item>,
}

/// Which headlines are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ItemView {
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
    pub fn of(name: &str) -> Option<ItemView> {
        ItemView::ALL.iter().find(|(_, known, _)| *known == name).map(|(view, ..)| *view)
    }
}

/// A headline through time.
#[derive(Clone, Debug)]
pub struct ShownItem {
    /// Where it leads; empty where it leads nowhere.
    pub address: String,
    /// Its titles, each with the look that showed it first.
    pub titles: Vec<(Timestamp, String)>,
    /// Stretches in which it stood there: from, to, whether among the first three.
    pub stretches: Vec<(Timestamp, Timestamp, bool)>,
    /// Gaps between two looks in which it left.
    pub gaps: Vec<(Timestamp, Timestamp)>,
    /// Whether it was not there at the first look.
    pub has_come: bool,
    /// Whether it was there at the last.
    pub is_there: bool,
    /// Places that it had, from 1: the highest and the lowest.
    pub places: (usize, usize),
}

/// The headlines of a page.
#[derive(Clone, Debug)]
pub struct Items {
    rows: Vec<ShownItem>,
    /// Most headlines at one time.
    n_places: usize,
    axis: (Timestamp, Timestamp),
    view: ItemView,
}

/// Rows that are shown.
const MOST_ROWS: usize = 40;
/// Places that count as high.
const HIGH: usize = 3;

impl Items {
    /// Follows the headlines from list to list; `None` where no list has any.
    pub fn of(lists: &[Headline], view: ItemView) -> Option<Items> {
        let (first, last) = (lists.first()?, lists.last()?);
        let mut rows: HashMap<String, (usize, ShownItem)> = HashMap::new();
        for (index, list) in lists.iter().enumerate() {
            let mut here = BTreeSet::new();
            for (place, item) in list.items.iter().enumerate().filter(|(_, item)| !item.title.is_empty()) {
                let key = item.key();
                if !here.insert(key.clone()) {
                    continue;
                }
                let n_known = rows.len();
                let (_, row) = rows.entry(key).or_insert_with(|| (n_known, ShownItem::new(item, index > 0)));
                row.see(list, item, place);
            }
            let next = lists.get(index + 1);
            for (key, (_, row)) in &mut rows {
                row.is_there = here.contains(key);
                let was_here = row.stretches.last().is_some_and(|(_, until, _)| *until == list.last);
                let stays = next.is_some_and(|next| next.items.iter().any(|item| item.key() == *key));
                if let (true, false, Some(next)) = (was_here, stays, next) {
                    row.gaps.push((list.last, next.first));
                }
            }
        }
        let mut rows: Vec<(usize, ShownItem)> = rows.into_values().collect();
        rows.sort_by_key(|(number, row)| (std::cmp::Reverse(row.titles.len()), *number));
        let n_places = lists.iter().map(|list| list.items.len()).max().unwrap_or(0);
        let rows: Vec<ShownItem> = rows.into_iter().map(|(_, row)| row).collect();
        (!rows.is_empty()).then_some(Items { rows, n_places, axis: (first.first, last.last), view })
    }

    fn shown(&self, view: ItemView) -> Vec<&ShownItem> {
        let is_shown = |row: &&ShownItem| match view {
            ItemView::Retitled => row.titles.len() > 1,
            ItemView::Came => row.has_come,
            ItemView::Left => !row.is_there,
            ItemView::All => true,
        };
        self.rows.iter().filter(is_shown).collect()
    }

    /// The words for the head of the page.
    pub(super) fn told(&self) -> String {
        format!(
            "A front page: {} passed through {}.",
            counted(self.rows.len() as u64, "headline", "headlines"),
            counted(self.n_places as u64, "place", "places")
        )
    }

    /// The section; `address` is that of the page, to which a view is added.
    pub(super) fn write(&self, out: &mut String, address: &str) {
        out.push_str(
            "<section><div class=\"sec\"><h2>Headlines through time</h2><p class=\"legend\">\
             <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect class=\"f4\" y=\"1\" width=\"24\" height=\"12\"/></svg>first three places</span>\
             <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect class=\"f3\" y=\"4\" width=\"24\" height=\"6\"/></svg>lower</span>\
             <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect y=\"4\" width=\"24\" height=\"6\" fill=\"url(#hatch)\"/></svg>left in this gap</span>\
             <span><svg width=\"14\" height=\"14\" viewBox=\"-7 -7 14 14\" aria-hidden=\"true\"><path d=\"M0-6 6 0 0 6-6 0z\" fill=\"var(--upd)\"/></svg>retitled</span>\
             <span>&#9656; still there</span></p></div><p class=\"row\" style=\"margin-bottom:8px\"><span class=\"seg\">",
        );
        for (view, name, title) in ItemView::ALL {
            let n = self.shown(view).len();
            let _ = match view == self.view {
                true => write!(out, "<span aria-current=\"true\">{title} {n}</span>"),
                false => write!(out, "<a href=\"{}&amp;items={name}\">{title} {n}</a>", escaped(address)),
            };
        }
        let rows = self.shown(self.view);
        let n_titles: usize = rows.iter().map(|row| row.titles.len().saturating_sub(1)).sum();
        let said = match self.view {
            ItemView::Retitled => format!(
                "{} for {}; same address, other words; most often first",
                counted(n_titles as u64, "new title", "new titles"),
                counted(rows.len() as u64, "story", "stories")
            ),
            _ => "in order of their first place".to_string(),
        };
        let axis = Axis { from: self.axis.0, until: self.axis.1 };
        let _ = write!(
            out,
            "</span><span class=\"mute\">{said}</span></p><div class=\"rows\">{}<div class=\"iv axisrow\"><div class=\"say small mute\" style=\"padding-bottom:4px\">{}</div>{}</div>",
            axis.grid("grid wide-only"),
            if self.view == ItemView::Retitled { "Last two titles" } else { "Title" },
            axis.head()
        );
        rows.iter().take(MOST_ROWS).for_each(|row| row.write(out, axis));
        out.push_str("</div>");
        if rows.is_empty() {
            out.push_str("<p class=\"mute more\">None in this span.</p>");
        } else if rows.len() > MOST_ROWS {
            let _ = write!(out, "<p class=\"mute more\">{MOST_ROWS} of {} are shown.</p>", rows.len());
        }
        out.push_str("</section>");
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let row = |row: &&ShownItem| {
            json!({
                "address": row.address,
                "titles": row.titles.iter().map(|(time, title)| json!({ "time": time.to_rfc3339(), "title": title })).collect::<Vec<_>>(),
                "stays": row.stretches.iter().map(|(from, until, is_high)| json!({
                    "first": from.to_rfc3339(), "last": until.to_rfc3339(), "is_high": is_high,
                })).collect::<Vec<_>>(),
                "highest_place": row.places.0,
                "lowest_place": row.places.1,
                "has_come": row.has_come,
                "is_there": row.is_there,
            })
        };
        self.rows.iter().collect::<Vec<_>>().iter().map(row).collect()
    }
}

impl ShownItem {
    fn new(item: &Item, has_come: bool) -> ShownItem {
        ShownItem {
            address: item.address.clone(),
            titles: Vec::new(),
            stretches: Vec::new(),
            gaps: Vec::new(),
            has_come,
            is_there: true,
            places: (usize::MAX, 0),
        }
    }

    fn see(&mut self, list: &Headline, item: &Item, place: usize) {
        if self.titles.last().is_none_or(|(_, title)| *title != item.title) {
            self.titles.push((list.first, item.title.clone()));
        }
        self.places = (self.places.0.min(place + 1), self.places.1.max(place + 1));
        let is_high = place < HIGH;
        let was_here = self
            .gaps
            .last()
            .is_none_or(|(left, _)| self.stretches.last().is_some_and(|(_, until, _)| until > left));
        match self.stretches.last_mut().filter(|_| was_here) {
            Some(stretch) => {
                stretch.1 = list.first;
                if stretch.2 == is_high {
                    stretch.1 = list.last;
                    return;
                }
                self.stretches.push((list.first, list.last, is_high));
            }
            None => self.stretches.push((list.first, list.last, is_high)),
        }
    }

    fn write(&self, out: &mut String, axis: Axis) {
        out.push_str("<div class=\"iv\"><div class=\"say\"><div class=\"pair\">");
        let n = self.titles.len();
        match self.titles[..] {
            [] => {}
            [(_, ref title)] => {
                let _ = write!(out, "<span>{}</span>", foreign(title));
            }
            [.., (_, ref before), (_, ref after)] => {
                let (before, after) = marked_or_plain(before, after);
                let _ = write!(
                    out,
                    "<p><span class=\"op d\" title=\"deleted\"><span class=\"vh\">deleted </span>−</span><span>{before}</span></p>\
                     <p><span class=\"op i\" title=\"inserted\"><span class=\"vh\">inserted </span>+</span><span>{after}</span></p>"
                );
            }
        }
        out.push_str("</div>");
        if n > 2 {
            let _ = write!(
                out,
                "<details class=\"alike\" style=\"margin-top:0\"><summary class=\"small\">{}</summary>",
                counted(n as u64 - 2, "earlier title", "earlier titles")
            );
            for (time, title) in self.titles[..n - 2].iter().rev() {
                let _ =
                    write!(out, "<p class=\"small mute\">{} {}</p>", day_and_minute(*time), foreign(title));
            }
            out.push_str("</details>");
        }
        let _ = write!(out, "</div>{}</div>", intervals(axis, &self.bars(), &self.label()));
    }

    fn bars(&self) -> Vec<Bar> {
        let mut bars: Vec<Bar> = self.gaps.iter().map(|(from, until)| Bar::Gap(*from, *until)).collect();
        bars.extend(self.stretches.iter().map(|(from, until, is_high)| Bar::Seen(*from, *until, *is_high)));
        if let Some((from, ..)) = self.stretches.first().filter(|_| self.has_come) {
            bars.push(Bar::Came(*from));
        }
        let retitled = self.titles.iter().skip(1);
        bars.extend(
            retitled.map(|(time, title)| Bar::Retitled(*time, format!("{}: {title}", day_and_minute(*time)))),
        );
        if let Some((_, until, _)) = self.stretches.last().filter(|_| self.is_there) {
            bars.push(Bar::Open(*until));
        }
        bars
    }

    fn label(&self) -> String {
        let ends = self.stretches.first().zip(self.stretches.last());
        ends.map(|((from, ..), (_, until, _))| {
            format!("On the page from {} to {}", day_and_minute(*from), day_and_minute(*until))
        })
        .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(hour: u8, titles: &[(&str, &str)]) -> Headline {
        let at = |minute: u8| Timestamp::parse(&format!("2026-03-02T{hour:02}:{minute:02}:00Z")).unwrap();
        let item = |(address, title): &(&str, &str)| Item {
            address: format!("https://a.example/{address}"),
            title: (*title).to_string(),
            ..Item::default()
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
        let items = Items::of(&lists, ItemView::Retitled).unwrap();
        assert_eq!((items.rows.len(), items.n_places), (5, 4));
        let of = |address: &str| items.rows.iter().find(|row| row.address.ends_with(address)).unwrap();
        assert_eq!(of("/a").titles.len(), 2);
        assert!(!of("/c").is_there && of("/c").gaps == [(lists[1].last, lists[2].first)]);
        assert!(of("/e").has_come && !of("/b").has_come);
        // Fourth, then first, then second: two stretches, without a hole between them.
        let moved = &of("/d").stretches;
        assert_eq!(moved.len(), 2);
        assert_eq!((moved[0].1, moved[1].2, moved[1].1), (moved[1].0, true, lists[2].last));
        assert_eq!(of("/d").places, (1, 4));
        assert_eq!(items.shown(ItemView::Left).len(), 1);
        let mut html = String::new();
        items.write(&mut html, "/page?url=x");
        assert!(
            !html.contains("<script") && html.contains("Retitled 1") && html.contains("Left 1"),
            "{html}"
        );
        assert!(Items::of(&[], ItemView::All).is_none());
    }

    #[test]
    fn a_headline_that_comes_back_has_two_stretches() {
        let lists = [
            list(1, &[("a", "One"), ("b", "Two")]),
            list(2, &[("b", "Two")]),
            list(3, &[("a", "One"), ("b", "Two")]),
        ];
        let items = Items::of(&lists, ItemView::All).unwrap();
        let row = items.rows.iter().find(|row| row.address.ends_with("/a")).unwrap();
        assert_eq!((row.stretches.len(), row.gaps.len(), row.is_there), (2, 1, true));
        assert_eq!(row.stretches[1].0, lists[2].first);
    }
}
