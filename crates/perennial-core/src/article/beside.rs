//! A page -> what stands beside its article by the way the page is built, whatever it is called: cards that lead to other pages, columns
//! next to an article that says that it is one, and threads of answers.
//!
//! Names fail where a box holds more text than the article itself, as the column of a news site does, or where there are no names. The
//! shape of siblings does not: cards are built alike and each has a line that is a link, answers are built alike and each can be answered.
//! Work is linear: what is below an element is a difference of sums.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::boxes::{BoxKind, Kinds, is_marked_body};
use super::leaves::{Leaf, LeafKind, Leaves};
use super::page::Sums;
use super::phrases::Phrases;
use crate::text::dom::{Dom, DomKind};

/// Siblings that make a list of cards.
const MIN_CARDS: usize = 3;
/// The share of them that must lead on.
const MIN_LEADING: f64 = 0.8;
/// Cards are short, on the average.
const MAX_CARD_LENGTH: f64 = 450.0;
/// A line that leads to another page by itself has at least this length.
const MIN_HEADLINE_LENGTH: f32 = 20.0;
/// Cards are beside an article only where so much running text is outside of them; otherwise they are what the page is about.
const MIN_OUTSIDE: f64 = 600.0;
/// It also is this share of what is in them.
const MIN_OUTSIDE_SHARE: f64 = 0.1;
/// An article that says that it is one has at least so much running text.
const MIN_MARKED: f64 = 400.0;
/// It has this share of all text that is marked so.
const MIN_OF_MARKED: f64 = 0.6;
/// Answers of a thread.
const MIN_ANSWERS: usize = 2;
/// An answer says something.
const MIN_ANSWER_LENGTH: f64 = 12.0;
/// Longer texts do not only offer to answer.
const MAX_OFFER_BYTES: usize = 24;

/// Elements with what they are: beside the article, or comments. `dropped` says by leaf which boxes hold it already, `named` by element what
/// its names say.
pub(super) fn find(leaves: &Leaves<'_>, dropped: &[Kinds], named: &[Option<BoxKind>]) -> Vec<(u32, BoxKind)> {
    let good =
        sums(leaves, |index, leaf| if leaf.is_good && dropped[index] == 0 { leaf.length } else { 0.0 });
    let groups = siblings_alike(leaves.dom, leaves);
    let mut boxes = threads(leaves, &groups, &good);
    boxes.extend(cards(leaves, &groups, &good));
    boxes.extend(columns(leaves, named));
    boxes
}

fn sums(leaves: &Leaves<'_>, value: impl Fn(usize, &Leaf) -> f32) -> Sums {
    Sums::of_values(leaves.leaves.iter().enumerate().map(|(index, leaf)| value(index, leaf)))
}

/// Siblings of one tag and class with something to read, at least two of them each.
fn siblings_alike(dom: &Dom, leaves: &Leaves<'_>) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut places: HashMap<(u32, &str, Option<&str>), usize> = HashMap::new();
    for (index, node) in dom.nodes.iter().enumerate() {
        let Some(parent) = node.parent else { continue };
        if !may_repeat(node.tag()) || leaves.below(index as u32).is_empty() {
            continue;
        }
        let key = (parent, node.tag(), node.first_class());
        let place = *places.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[place].push(index as u32);
    }
    groups.retain(|group| group.len() >= MIN_ANSWERS);
    groups
}

fn may_repeat(tag: &str) -> bool {
    matches!(
        tag,
        "div"
            | "li"
            | "article"
            | "section"
            | "tr"
            | "dd"
            | "aside"
            | "a"
            | "figure"
            | "table"
            | "blockquote"
    )
}

/// Lists whose entries each have a line that leads to another page of the site.
fn cards(leaves: &Leaves<'_>, groups: &[Vec<u32>], good: &Sums) -> Vec<(u32, BoxKind)> {
    let leading = sums(leaves, |_, leaf| f32::from(u8::from(is_headline(leaf))));
    let length = sums(leaves, |_, leaf| leaf.length);
    let is_list = |group: &&Vec<u32>| {
        let n_leading = group.iter().filter(|&&card| leading.of(leaves.below(card)) > 0.0).count();
        let total: f64 = group.iter().map(|&card| length.of(leaves.below(card))).sum();
        group.len() >= MIN_CARDS
            && n_leading as f64 >= MIN_LEADING * group.len() as f64
            && total <= MAX_CARD_LENGTH * group.len() as f64
    };
    let found: Vec<u32> = groups.iter().filter(is_list).flatten().copied().collect();
    let inside = good_inside(leaves, &found, good);
    let outside = good.all() - inside;
    if outside < MIN_OUTSIDE || outside < MIN_OUTSIDE_SHARE * inside {
        return Vec::new();
    }
    found.into_iter().map(|card| (card, BoxKind::Beside)).collect()
}

/// Running text below any of some elements, each leaf counted once.
fn good_inside(leaves: &Leaves<'_>, elements: &[u32], good: &Sums) -> f64 {
    let mut elements = elements.to_vec();
    elements.sort_unstable();
    let (mut total, mut until) = (0.0, 0);
    for element in elements {
        if element >= until {
            total += good.of(leaves.below(element));
            until = leaves.dom.nodes[element as usize].end;
        }
    }
    total
}

fn is_headline(leaf: &Leaf) -> bool {
    let is_heading = matches!(leaf.kind, LeafKind::Heading(_));
    leaf.link_share >= 0.9 && !leaf.leads_out && (is_heading || leaf.length >= MIN_HEADLINE_LENGTH)
}

/// Boxes outside of an article that says that it is one: however much they hold, they are not it.
fn columns(leaves: &Leaves<'_>, named: &[Option<BoxKind>]) -> Vec<(u32, BoxKind)> {
    let good = sums(leaves, |_, leaf| if leaf.is_good { leaf.length } else { 0.0 });
    let Some(article) = marked_article(leaves, &good) else { return Vec::new() };
    let dom = leaves.dom;
    let own = article..dom.nodes[article as usize].end;
    let is_around = |node: u32| (node..dom.nodes[node as usize].end).contains(&article);
    let mut found = Vec::new();
    let mut node = 0;
    while (node as usize) < dom.nodes.len() {
        let source = &dom.nodes[node as usize];
        if own.contains(&node) {
            node = own.end;
        } else if !is_around(node) && named[node as usize].is_some_and(is_column) {
            found.push((node, BoxKind::Beside));
            node = source.end;
        } else {
            node += 1;
        }
    }
    found
}

/// Kinds of boxes that stand next to an article and not in it.
fn is_column(kind: BoxKind) -> bool {
    use BoxKind::*;
    matches!(kind, Navigation | Footer | Aside | Related | Advertisement | Newsletter | Share | Notice)
}

/// The one element that says that it holds the article's text, else the one that says that it is the article.
fn marked_article(leaves: &Leaves<'_>, good: &Sums) -> Option<u32> {
    let dom = leaves.dom;
    let largest = |is_marked: &dyn Fn(u32) -> bool| {
        let (mut most, mut total, mut node) = ((0.0, None), 0.0, 0);
        while (node as usize) < dom.nodes.len() {
            if !is_marked(node) {
                node += 1;
                continue;
            }
            let held = good.of(leaves.below(node));
            total += held;
            if held > most.0 {
                most = (held, Some(node));
            }
            node = dom.nodes[node as usize].end;
        }
        most.1.filter(|_| most.0 >= MIN_MARKED && most.0 >= MIN_OF_MARKED * total)
    };
    largest(&|node| is_marked_body(&dom.nodes[node as usize]))
        .or_else(|| largest(&|node| dom.nodes[node as usize].tag() == "article"))
}

/// Siblings that each offer to be answered. Where the first of them is the first text of the page, it is what the others answer.
fn threads(leaves: &Leaves<'_>, groups: &[Vec<u32>], good: &Sums) -> Vec<(u32, BoxKind)> {
    let offers = offers_to_answer(leaves.dom);
    if offers.len() < MIN_ANSWERS {
        return Vec::new();
    }
    let n_offers = |range: Range<u32>| {
        offers.partition_point(|&node| node < range.end) - offers.partition_point(|&node| node < range.start)
    };
    let length = sums(leaves, |_, leaf| leaf.length);
    let first = (0..leaves.leaves.len()).find(|&index| good.of(index..index + 1) > 0.0);
    let mut found = Vec::new();
    for group in groups {
        let is_answer = |&&node: &&u32| {
            n_offers(node..leaves.dom.nodes[node as usize].end) > 0
                && length.of(leaves.below(node)) >= MIN_ANSWER_LENGTH
        };
        let n_answers = group.iter().filter(is_answer).count();
        if n_answers < MIN_ANSWERS || n_answers * 2 < group.len() {
            continue;
        }
        let asks = |node: &u32| first.is_some_and(|first| leaves.below(*node).contains(&first));
        found.extend(group.iter().filter(|node| !asks(node)).map(|&node| (node, BoxKind::Comments)));
    }
    found
}

/// The texts that offer to answer, those on buttons too.
fn offers_to_answer(dom: &Dom) -> Vec<u32> {
    static OFFERS: Phrases = LazyLock::new(|| include_str!("phrases/offers_to_answer.txt").lines().collect());
    let offers = |text: &str| {
        let text = text.trim_matches(|c: char| !c.is_alphabetic() && c != '↓');
        text.len() >= 5 && text.len() <= MAX_OFFER_BYTES && OFFERS.contains(&text.to_lowercase().as_str())
    };
    let texts = dom.nodes.iter().enumerate().filter(|(_, node)| match &node.kind {
        DomKind::Text(text) => text.len() <= 4 * MAX_OFFER_BYTES && offers(text),
        DomKind::Element { .. } => false,
    });
    texts.map(|(index, _)| index as u32).collect()
}
