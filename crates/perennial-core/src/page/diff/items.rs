//! Two item lists -> inserted, removed and rewritten headlines, and the share of the list that changed.
//!
//! Items are matched by key, then by a long number that their URLs share, then by an equal title nearby. An item near
//! the top of the page weighs more than one further down. Items in a side column weigh little. Moves weigh nothing.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::str::FromStr;

use super::words::{word_distance, word_hashes};
use crate::page::segment::{ItemList, ListItem};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ItemChangeKind {
    /// It is new on the page.
    Insert,
    /// It has left the page.
    Leave,
    /// Its headline was rewritten.
    Retitle,
    /// Words other than its headline changed.
    Edit,
    /// Its URL changed.
    Readdress,
    /// A reader sees no difference: only a time, a counter or its position changed.
    Respell,
}

impl ItemChangeKind {
    const NAMES: [(ItemChangeKind, &'static str); 6] = [
        (ItemChangeKind::Insert, "insert"),
        (ItemChangeKind::Leave, "leave"),
        (ItemChangeKind::Retitle, "retitle"),
        (ItemChangeKind::Edit, "edit"),
        (ItemChangeKind::Readdress, "readdress"),
        (ItemChangeKind::Respell, "respell"),
    ];

    pub fn name(self) -> &'static str {
        ItemChangeKind::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    fn factor(self) -> f64 {
        match self {
            ItemChangeKind::Insert => 1.0,
            ItemChangeKind::Leave => 0.8,
            ItemChangeKind::Retitle => 0.5,
            ItemChangeKind::Edit => 0.1,
            // Nobody reads URLs. The URLs of a whole list together weigh less than one headline.
            ItemChangeKind::Readdress => 0.003,
            ItemChangeKind::Respell => 0.0,
        }
    }

    pub(super) fn has_before(self) -> bool {
        self != ItemChangeKind::Insert
    }
}

impl FromStr for ItemChangeKind {
    type Err = String;

    fn from_str(text: &str) -> Result<ItemChangeKind, String> {
        let found = ItemChangeKind::NAMES.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind);
        found.ok_or_else(|| format!("{text:?} is not an item change"))
    }
}

/// An item that was inserted, removed or changed.
#[derive(Clone, PartialEq, Debug)]
pub struct ItemChange {
    pub kind: ItemChangeKind,
    /// Its rank before; `None` when it is new.
    pub rank_before: Option<u32>,
    /// Its rank after; `None` when it has left.
    pub rank_after: Option<u32>,
    pub before: Option<ListItem>,
    pub after: Option<ListItem>,
    /// Its share of both lists together. The shares of all changes sum to 1 at most.
    pub share: f64,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct ItemDelta {
    /// The new list without its items. `None` if the new version has no list.
    pub size: Option<ItemList>,
    /// Whether both versions are listing pages. If so, the items decide how important the change is.
    pub is_listing: bool,
    pub prose_share: f64,
    /// Old ranks of the unchanged items, in their new order.
    pub kept: Vec<u32>,
    /// All other items by new rank. Removed items come last.
    pub changes: Vec<ItemChange>,
}

impl ItemDelta {
    pub fn importance(&self) -> f64 {
        self.changes.iter().map(|change| change.share).sum::<f64>().clamp(0.0, 1.0)
    }

    /// The changes that a reader can see.
    pub fn visible_changes(&self) -> impl Iterator<Item = &ItemChange> {
        self.changes.iter().filter(|change| change.kind != ItemChangeKind::Respell)
    }

    pub fn n_changes(&self, kind: ItemChangeKind) -> usize {
        self.changes.iter().filter(|change| change.kind == kind).count()
    }

    /// The smallest number of unchanged items that must move to produce the new order.
    pub fn n_moved(&self) -> usize {
        let mut ends: Vec<u32> = Vec::new();
        for &rank in &self.kept {
            let at = ends.partition_point(|end| *end < rank);
            match ends.get_mut(at) {
                Some(end) => *end = rank,
                None => ends.push(rank),
            }
        }
        self.kept.len() - ends.len()
    }

    /// Applies the changes to the list before.
    pub(super) fn apply(&self, before: Option<&ItemList>) -> Result<Option<ItemList>, String> {
        let Some(size) = &self.size else { return Ok(None) };
        let known = before.map_or(&[][..], |list| &list.items);
        let mut changed: Vec<(u32, &ListItem)> = self
            .changes
            .iter()
            .filter_map(|change| Some((change.rank_after?, change.after.as_ref()?)))
            .collect();
        changed.sort_by_key(|(rank, _)| *rank);
        let mut changed = changed.into_iter().peekable();
        let mut kept = self.kept.iter();
        let mut items = Vec::with_capacity(known.len());
        loop {
            let next = changed.next_if(|(rank, _)| *rank as usize == items.len());
            match (next, next.is_none().then(|| kept.next()).flatten()) {
                (Some((_, item)), _) => items.push(item.clone()),
                (None, Some(&rank)) => {
                    let item = known.get(rank as usize).ok_or_else(|| format!("it has no item {rank}"))?;
                    items.push(item.clone());
                }
                (None, None) => break,
            }
        }
        match changed.next() {
            Some((rank, _)) => Err(format!("no item comes before rank {rank}")),
            None => Ok(Some(ItemList { items, ..size.clone() })),
        }
    }
}

/// The item delta of an unchanged list on a page that changed elsewhere. `None` if the page is not a listing page.
pub(super) fn same_items(list: Option<&ItemList>) -> Option<ItemDelta> {
    let list = list.filter(|list| list.is_listing())?;
    Some(ItemDelta {
        size: Some(ItemList { items: Vec::new(), ..list.clone() }),
        is_listing: true,
        prose_share: list.prose_share(),
        kept: (0..list.items.len() as u32).collect(),
        changes: Vec::new(),
    })
}

/// Compares two lists. Returns `None` if they are equal.
pub(super) fn compare_items(before: Option<&ItemList>, after: Option<&ItemList>) -> Option<ItemDelta> {
    if before == after {
        return None;
    }
    let Some(new) = after else { return Some(ItemDelta::default()) };
    let empty = ItemList::default();
    let old = before.unwrap_or(&empty);
    let pairs = pair_items(&old.items, &new.items);
    let mut delta = ItemDelta {
        size: Some(ItemList { items: Vec::new(), ..new.clone() }),
        is_listing: before.is_some_and(ItemList::is_listing) && new.is_listing(),
        prose_share: new.prose_share(),
        ..ItemDelta::default()
    };
    let (old_weights, new_weights) = (weights(&old.items), weights(&new.items));
    let mut has_left = vec![true; old.items.len()];
    for (rank, item) in new.items.iter().enumerate() {
        let rank_after = Some(rank as u32);
        let Some(pair) = pairs[rank] else {
            let (kind, after) = (ItemChangeKind::Insert, Some(item.clone()));
            let share = kind.factor() * new_weights[rank];
            delta.changes.push(ItemChange {
                kind,
                rank_before: None,
                rank_after,
                before: None,
                after,
                share,
            });
            continue;
        };
        has_left[pair] = false;
        let was = &old.items[pair];
        if was == item {
            delta.kept.push(pair as u32);
            continue;
        }
        let (kind, distance) = judge(was, item);
        let share = kind.factor() * distance * new_weights[rank];
        let (before, after) = (Some(was.clone()), Some(item.clone()));
        let rank_before = Some(pair as u32);
        delta.changes.push(ItemChange { kind, rank_before, rank_after, before, after, share });
    }
    for (rank, item) in old.items.iter().enumerate().filter(|(rank, _)| has_left[*rank]) {
        let (kind, before) = (ItemChangeKind::Leave, Some(item.clone()));
        let (rank_before, share) = (Some(rank as u32), kind.factor() * old_weights[rank]);
        delta.changes.push(ItemChange { kind, rank_before, rank_after: None, before, after: None, share });
    }
    let inserted = delta.changes.iter().filter(|change| change.kind == ItemChangeKind::Insert);
    let mass = old_weights.iter().sum::<f64>() + inserted.map(|change| change.share).sum::<f64>();
    delta.changes.iter_mut().for_each(|change| change.share /= mass.max(f64::MIN_POSITIVE));
    scale_to_reader(&mut delta.changes, old_weights.iter().sum());
    Some(delta)
}

/// Readers only read the top of a long list. So a new item at the top of 2,000 counts about as much as one at the top
/// of 20. The order of the changes by share is kept.
fn scale_to_reader(changes: &mut [ItemChange], list: f64) {
    let all: f64 = changes.iter().map(|change| change.share).sum();
    if all > 0.0 && list > TAKEN_IN {
        let taken_in = 1.0 - (1.0 - all.min(1.0)).powf(list / TAKEN_IN);
        changes.iter_mut().for_each(|change| change.share *= taken_in / all);
    }
}

/// The weight of the first forty items, which is about as much of a list as people read.
const TAKEN_IN: f64 = 22.0;

/// The weight of each position. It decreases slowly, because new items at the top of a long list must still count.
fn weights(items: &[ListItem]) -> Vec<f64> {
    const DEPTH: f64 = 20.0;
    let mut passed = 0.0;
    let weigh = |item: &ListItem| {
        let own = f64::from(item.weight.clamp(0.0, 1.0));
        let weight = DEPTH * ((DEPTH + passed + own) / (DEPTH + passed)).ln();
        passed += own;
        weight
    };
    items.iter().map(weigh).collect()
}

/// For each new item, the index of the matching old item.
fn pair_items(old: &[ListItem], new: &[ListItem]) -> Vec<Option<usize>> {
    let mut pairs = vec![None; new.len()];
    let mut is_taken = vec![false; old.len()];
    let keys = |items: &[ListItem]| items.iter().map(ListItem::key).collect::<Vec<String>>();
    let (old_keys, new_keys) = (keys(old), keys(new));
    let by_key: HashMap<&str, usize> = (0..).zip(&old_keys).map(|(at, key)| (key.as_str(), at)).collect();
    for (place, key) in new_keys.iter().enumerate() {
        pairs[place] =
            by_key.get(key.as_str()).copied().filter(|&at| !std::mem::replace(&mut is_taken[at], true));
    }
    let numbers = |keys: &[String], is_open: &dyn Fn(usize) -> bool| {
        let mut found: HashMap<String, Option<usize>> = HashMap::new();
        for (at, key) in keys.iter().enumerate().filter(|(at, _)| is_open(*at)) {
            for number in long_numbers(key) {
                found.entry(number.to_owned()).and_modify(|at| *at = None).or_insert(Some(at));
            }
        }
        found
    };
    let old_numbers = numbers(&old_keys, &|at| !is_taken[at]);
    let new_numbers = numbers(&new_keys, &|at| pairs[at].is_none());
    for (place, key) in new_keys.iter().enumerate() {
        let is_unique = |number: &&str| new_numbers.get(*number) == Some(&Some(place));
        let found =
            long_numbers(key).filter(is_unique).find_map(|number| old_numbers.get(number).copied().flatten());
        if pairs[place].is_none() {
            pairs[place] = found.filter(|&at| !std::mem::replace(&mut is_taken[at], true));
        }
    }
    pair_by_title(old, new, &mut pairs, &mut is_taken);
    pairs
}

/// Maximum distance in ranks between two items of the same title that match. Further apart, "Read more" and "Live" are
/// different stories with the same title.
const NEAR_RANKS: usize = 10;

fn pair_by_title(old: &[ListItem], new: &[ListItem], pairs: &mut [Option<usize>], is_taken: &mut [bool]) {
    let mut titles: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, item) in old.iter().enumerate().filter(|(at, item)| !is_taken[*at] && !item.title.is_empty()) {
        titles.entry(item.title.as_str()).or_default().push(at);
    }
    for (place, item) in new.iter().enumerate() {
        if pairs[place].is_some() {
            continue;
        }
        let alike = titles.get(item.title.as_str()).map_or(&[][..], Vec::as_slice);
        // Ranks are sorted, so only the nearby ones are compared.
        let from = alike.partition_point(|at| at + NEAR_RANKS < place);
        let near = alike[from..].iter().copied().take_while(|at| *at <= place + NEAR_RANKS);
        let found = near.take(NEAR_RANKS).find(|&at| !is_taken[at]);
        if let Some(at) = found {
            is_taken[at] = true;
            pairs[place] = Some(at);
        }
    }
}

/// Numbers of six or more digits, which usually identify an article.
fn long_numbers(key: &str) -> impl Iterator<Item = &str> {
    key.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() >= 6)
}

/// Classifies the change of a matched item. Returns the kind and the share of its words that changed.
fn judge(before: &ListItem, after: &ListItem) -> (ItemChangeKind, f64) {
    if let Some(distance) = retitled(before, after) {
        return (ItemChangeKind::Retitle, distance);
    }
    if before.key() != after.key() {
        return (ItemChangeKind::Readdress, 1.0);
    }
    let (old, new) = (lasting_words(&before.teaser), lasting_words(&after.teaser));
    // An item that now appears first in a different list may have a different teaser there.
    let is_same_place =
        before.places.first().map(|place| place.template) == after.places.first().map(|place| place.template);
    match is_same_place && old != new {
        true => (ItemChangeKind::Edit, word_distance(&old, &new)),
        false => (ItemChangeKind::Respell, 0.0),
    }
}

/// The share of the headline's words that were rewritten. `None` if the headline is unchanged in any place. Places in
/// the same list are compared first, because a short and a long list may word the same item differently.
fn retitled(before: &ListItem, after: &ListItem) -> Option<f64> {
    let templates: HashSet<u32> = before.places.iter().map(|place| place.template).collect();
    let shared: Vec<u32> = after
        .places
        .iter()
        .map(|place| place.template)
        .filter(|template| templates.contains(template))
        .collect();
    let titles = |item: &ListItem| {
        let places = item.places.iter().filter(|place| shared.is_empty() || shared.contains(&place.template));
        places.map(|place| lasting_words(&place.title)).collect::<Vec<String>>()
    };
    let (old, new) = (titles(before), titles(after));
    if old.iter().any(|title| new.contains(title)) {
        return None;
    }
    let (old, new) = (old.first()?, new.first()?);
    let is_reworded = !(shared.is_empty() && is_shortened(old, new));
    (is_reworded && !old.is_empty() && !new.is_empty()).then(|| word_distance(old, new))
}

/// Whether one title is a shortened form of the other. Both have the same words in the same order. At most a fifth of
/// the words are new, and at least twice as many are removed as added. Otherwise it is a different headline.
fn is_shortened(one: &str, other: &str) -> bool {
    let (one, other) = (word_hashes(one), word_hashes(other));
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let n_own = short.len() - n_in_order(&short, &long);
    5 * n_own <= short.len() && long.len() - short.len() >= 2 * n_own
}

/// Words that are compared individually. No real headline has more.
const MAX_TITLE_WORDS: usize = 64;

/// The length of the longest common subsequence of words.
fn n_in_order(one: &[u32], other: &[u32]) -> usize {
    let mut row = vec![0; other.len().min(MAX_TITLE_WORDS) + 1];
    for word in one.iter().take(MAX_TITLE_WORDS) {
        let mut diagonal = 0;
        for (place, of_other) in other.iter().take(MAX_TITLE_WORDS).enumerate() {
            let above = row[place + 1];
            row[place + 1] = if word == of_other { diagonal + 1 } else { above.max(row[place]) };
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// The text in lower case without numbers, times, names of months and reader counts.
fn lasting_words(text: &str) -> String {
    let mut out = String::new();
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() || word.chars().any(|c| c.is_ascii_digit()) || is_fleeting(word) {
            continue;
        }
        let _ = write!(out, "{}{word}", if out.is_empty() { "" } else { " " });
    }
    out
}

fn is_fleeting(word: &str) -> bool {
    const WORDS: &str = " january february march april june july august september october november december januar februar märz mai juni juli \
        oktober dezember uhr vor min mins minute minuten minutes stunde stunden std hour hours ago heute gestern today yesterday kommentar kommentare \
        comment comments live update aktualisiert updated video plus abo exklusiv bezahlt sekunden seconds ";
    WORDS.contains(&format!(" {word} "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::page::segment::ItemPlace;

    fn item(number: usize, title: &str) -> ListItem {
        let places = vec![ItemPlace { template: 7, title: title.into() }];
        let url = format!("http://a.example/news/story-of-number-{number}");
        ListItem { url, title: title.into(), teaser: String::new(), weight: 1.0, places }
    }

    fn list(numbers: &[usize]) -> ItemList {
        let items = numbers
            .iter()
            .map(|&n| item(n, &format!("headline {}", "abcdefghijklmnopqrstuvwxyz".split_at(n % 26).1)))
            .collect();
        ItemList { items, n_item_words: 500, n_prose_words: 10, n_body_words: 10 }
    }

    fn compare(before: &ItemList, after: &ItemList) -> ItemDelta {
        compare_items(Some(before), Some(after)).unwrap()
    }

    #[test]
    fn headlines_are_inserted_removed_and_rewritten() {
        let before = list(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let mut after = list(&[10, 1, 2, 3, 4, 5, 6, 8, 9]);
        after.items[2] = item(2, "another headline altogether");
        let delta = compare(&before, &after);
        assert!(delta.is_listing);
        let n = |kind| delta.n_changes(kind);
        assert_eq!(
            (n(ItemChangeKind::Insert), n(ItemChangeKind::Leave), n(ItemChangeKind::Retitle)),
            (1, 1, 1)
        );
        assert_eq!(delta.n_moved(), 0);
        assert!((0.1..0.5).contains(&delta.importance()), "{}", delta.importance());
    }

    #[test]
    fn a_headline_in_another_list_is_rewritten_only_by_other_words() {
        let in_another_list = |before: &str, after: &str| {
            let mut after = item(1, after);
            after.places[0].template = 8;
            judge(&item(1, before), &after).0
        };
        let (dinner, lunch) =
            ("he asks a fortune for a dinner for two", "he asks a fortune for a lunch for two");
        assert_eq!(in_another_list(dinner, lunch), ItemChangeKind::Retitle);
        assert_eq!(in_another_list(&format!("gala: {dinner} guests"), dinner), ItemChangeKind::Respell);
        let turned = ("the dilemma of the old harbour", "the old dilemma of the busy harbour");
        assert_eq!(in_another_list(turned.0, turned.1), ItemChangeKind::Retitle);
    }

    #[test]
    fn the_length_of_a_list_hardly_matters() {
        let [few, many] = [20, 2000].map(|n| {
            let numbers: Vec<usize> = (0..=n).collect();
            compare(&list(&numbers[1..]), &list(&numbers)).importance()
        });
        assert!(few < 3.0 * many && many < 3.0 * few, "{few} {many}");
    }

    #[test]
    fn clocks_counters_and_order_weigh_nothing() {
        let before = list(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let mut after = list(&[8, 1, 2, 3, 4, 5, 6, 7]);
        after.items[3].teaser = "vor 14 Minuten 23 Kommentare".into();
        let title = after.items[4].title.clone();
        after.items[4].places.push(ItemPlace { template: 9, title });
        let delta = compare(&before, &after);
        assert_eq!((delta.importance(), delta.n_moved()), (0.0, 1));
    }

    #[test]
    fn a_changed_url_of_the_same_article_is_not_news() {
        let mut before = list(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let mut after = before.clone();
        before.items[0].url = "http://a.example/old-name-here-1234567.html".into();
        after.items[0].url = "http://a.example/new-name-here-1234567.html".into();
        let delta = compare(&before, &after);
        assert_eq!((delta.n_changes(ItemChangeKind::Readdress), delta.changes.len()), (1, 1));
    }

    #[test]
    fn changed_urls_of_a_whole_list_weigh_less_than_one_new_headline() {
        let addressed = |folder: &str, n: usize| {
            let mut list = list(&(0..n).collect::<Vec<_>>());
            for (number, item) in list.items.iter_mut().enumerate() {
                item.title = format!("the same headline as before {number}");
                item.places[0].title = item.title.clone();
                item.url = format!("http://a.example/{folder}/{number}.html");
            }
            list
        };
        for n in [8, 60, 2000] {
            let (before, after) = (addressed("posts", n), addressed("blog", n));
            let delta = compare(&before, &after);
            assert_eq!((delta.n_changes(ItemChangeKind::Readdress), delta.changes.len()), (n, n));
            assert!(delta.importance() < 0.02, "{n}: {}", delta.importance());
            let mut longer = before.clone();
            longer.items.insert(0, item(5_000, "something that nobody knew"));
            assert!(delta.importance() < compare(&before, &longer).importance(), "{n}");
        }
    }

    #[test]
    fn a_new_entry_at_the_top_is_not_lost_in_a_long_list() {
        let importance = |n: usize| {
            let before: Vec<usize> = (1..=n).collect();
            let after: Vec<usize> = std::iter::once(100_000).chain(before.iter().copied()).collect();
            compare(&list(&before), &list(&after)).importance()
        };
        assert!(importance(20) / importance(2000) < 10.0);
        assert!(importance(20) > importance(2000));
    }

    proptest! {
        #[test]
        fn a_delta_gives_the_list_after(before in proptest::collection::vec(0..40usize, 0..30), after in proptest::collection::vec(0..40usize, 0..30)) {
            let unique = |numbers: Vec<usize>| {
                let mut seen = HashSet::new();
                list(&numbers.into_iter().filter(|n| seen.insert(*n)).collect::<Vec<_>>())
            };
            let (before, after) = (unique(before), unique(after));
            match compare_items(Some(&before), Some(&after)) {
                Some(delta) => {
                    prop_assert_eq!(delta.apply(Some(&before)).unwrap(), Some(after));
                    prop_assert!((0.0..=1.0).contains(&delta.importance()));
                }
                None => prop_assert_eq!(before, after),
            }
        }

        #[test]
        fn one_more_headline_never_weighs_less(before in 8..40usize, n_new in 0..10usize) {
            let old = list(&(0..before).collect::<Vec<_>>());
            let with = |n: usize| list(&(0..before).chain(100..100 + n).collect::<Vec<_>>());
            let weigh = |n| compare_items(Some(&old), Some(&with(n))).map_or(0.0, |delta| delta.importance());
            prop_assert!(weigh(n_new + 1) > weigh(n_new));
        }
    }
}
