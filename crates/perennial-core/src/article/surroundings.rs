//! A page -> boxes around its article, by the structure of the page: cards that link to other pages, columns next to
//! an element marked as article, and threads of replies.
//!
//! Names do not suffice if a box contains more text than the article, as the column of a news site does, or if there
//! are no names. The structure of siblings is more reliable. Cards are alike and each has a line that is a link;
//! replies are alike and each has a reply button. The work is linear, because the content of an element is a
//! difference of sums.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::boxes::{BoxKind, BoxKinds, is_marked_body};
use super::leaves::{LeafKind, Leaves, TextLeaf};
use super::page::LeafSums;
use super::phrases::Phrases;
use crate::text::dom::{Dom, DomKind};

/// The minimum number of cards in a list.
const MIN_CARDS: usize = 3;
/// The minimum share of cards with a link to another page.
const MIN_LEADING: f64 = 0.8;
/// The maximum mean length of a card.
const MAX_CARD_LENGTH: f64 = 450.0;
/// The minimum length of a line that is a link to another page.
const MIN_HEADLINE_LENGTH: f32 = 20.0;
/// The minimum running text outside of cards; with less, the cards are the subject of the page.
const MIN_OUTSIDE: f64 = 600.0;
/// The same, as a share of the text in the cards.
const MIN_OUTSIDE_SHARE: f64 = 0.1;
/// The minimum running text of an element marked as article.
const MIN_MARKED: f64 = 400.0;
/// The same, as a share of all text in marked elements.
const MIN_OF_MARKED: f64 = 0.6;
/// The minimum number of replies in a thread.
const MIN_ANSWERS: usize = 2;
/// The minimum length of a reply.
const MIN_ANSWER_LENGTH: f64 = 12.0;
/// Longer texts are more than a reply button.
const MAX_OFFER_BYTES: usize = 24;

/// The surrounding elements and the comments of a page. `dropped` contains the boxes around each leaf, `named` the
/// kind of each element by its names.
pub(super) fn find(
    leaves: &Leaves<'_>,
    dropped: &[BoxKinds],
    named: &[Option<BoxKind>],
) -> Vec<(u32, BoxKind)> {
    let good =
        sums(leaves, |index, leaf| if leaf.is_good && dropped[index] == 0 { leaf.length } else { 0.0 });
    let groups = siblings_alike(leaves.dom, leaves);
    let mut boxes = threads(leaves, &groups, &good);
    boxes.extend(cards(leaves, &groups, &good));
    boxes.extend(columns(leaves, named));
    boxes
}

fn sums(leaves: &Leaves<'_>, value: impl Fn(usize, &TextLeaf) -> f32) -> LeafSums {
    LeafSums::new(leaves.leaves.iter().enumerate().map(|(index, leaf)| value(index, leaf)))
}

/// Groups of at least two siblings with the same tag and class and with text.
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

/// Finds lists in which each entry has a line that links to another page of the site.
fn cards(leaves: &Leaves<'_>, groups: &[Vec<u32>], good: &LeafSums) -> Vec<(u32, BoxKind)> {
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
    found.into_iter().map(|card| (card, BoxKind::Surrounding)).collect()
}

/// The running text below some elements, with each leaf counted once.
fn good_inside(leaves: &Leaves<'_>, elements: &[u32], good: &LeafSums) -> f64 {
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

fn is_headline(leaf: &TextLeaf) -> bool {
    let is_heading = matches!(leaf.kind, LeafKind::Heading(_));
    leaf.link_share >= 0.9 && !leaf.leads_out && (is_heading || leaf.length >= MIN_HEADLINE_LENGTH)
}

/// Finds boxes outside of an element marked as article, however much they contain.
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
            found.push((node, BoxKind::Surrounding));
            node = source.end;
        } else {
            node += 1;
        }
    }
    found
}

/// Kinds of boxes next to an article.
fn is_column(kind: BoxKind) -> bool {
    use BoxKind::*;
    matches!(kind, Navigation | Footer | Sidebar | Related | Advertisement | Newsletter | Share | Notice)
}

/// The element marked as the text of an article, or else as an article.
fn marked_article(leaves: &Leaves<'_>, good: &LeafSums) -> Option<u32> {
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

/// Finds siblings with reply buttons. If the first one is the first text of the page, the others reply to it.
fn threads(leaves: &Leaves<'_>, groups: &[Vec<u32>], good: &LeafSums) -> Vec<(u32, BoxKind)> {
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
        let is_call_to_action = |node: &u32| first.is_some_and(|first| leaves.below(*node).contains(&first));
        found.extend(
            group.iter().filter(|node| !is_call_to_action(node)).map(|&node| (node, BoxKind::Comments)),
        );
    }
    found
}

/// The texts of reply buttons.
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
