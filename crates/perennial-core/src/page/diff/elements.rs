//! Matched blocks -> operations on their links, images and texts: steps 1 and 2 of Vi-DIFF (P-VISUAL 5.2;
//! docs/papers.md, Vi-DIFF and Vi-Delta).
//!
//! Elements with equal IDs in matched blocks are unchanged, in any order. Equal IDs in different blocks are moves. The
//! remaining elements of a block are paired by name, by URL, or by common words and characters (`similar`). Unpaired
//! elements were inserted or deleted.

use std::collections::{HashMap, HashSet};

use url::Url;

use super::matching::Matching;
use super::regroup::{Regrouped, find_regrouped};
use super::similar::{UnmatchedElement, pair_similar};
use super::structure::longest_increasing;
use super::tree::DiffTree;
use super::words::{hash, n_words, word_distance};
use super::{
    BlockDelta, Delta, Element, ElementKind, ElementMove, LinksInTexts, Regrouping, Typography, Update,
};
use crate::page::segment::{Block, BlockRef, NodeId, item_key, names_article};
use crate::text::typography::without_typography;

/// Moved elements by block number and kind, with their indexes.
#[derive(Default)]
pub(super) struct MovedElements {
    pub(super) moved_out: HashMap<(usize, ElementKind), Vec<u32>>,
    pub(super) moved_in: HashMap<(usize, ElementKind), Vec<u32>>,
}

/// Indexes of elements of one kind in two blocks: unchanged, updated and unmatched ones.
#[derive(Default)]
struct ListMatch {
    /// Before and after, in the order after.
    unmoved: Vec<(u32, u32)>,
    updated: Vec<(u32, u32)>,
    /// Merged and split texts, before and after.
    regrouped: Vec<(Vec<u32>, Vec<u32>)>,
    rest_before: Vec<u32>,
    rest_after: Vec<u32>,
}

/// A pair of matched blocks, or an inserted or deleted block, with its three lists.
struct BlockPair {
    before: Option<usize>,
    after: Option<usize>,
    lists: [ListMatch; 3],
}

/// An element in both versions: block number and index, before and after.
#[derive(Clone, Copy)]
pub(super) struct ElementPair {
    pub(super) kind: ElementKind,
    pub(super) before: (usize, u32),
    pub(super) after: (usize, u32),
}

/// The matches between the elements of both versions.
pub(super) struct ElementMatches {
    /// Elements that moved into inserted or out of deleted blocks.
    pub(super) moved: MovedElements,
    /// Matched leaves with equal content.
    pub(super) same_leaves: Vec<(usize, usize)>,
    /// Elements of the other blocks that stayed in their block.
    pub(super) pairs: Vec<ElementPair>,
    /// Elements that moved to a different block.
    pub(super) moves: Vec<ElementPair>,
}

/// Adds all changes within blocks to the delta and returns the matches between elements.
pub(super) fn find_changes(
    before: &DiffTree,
    after: &DiffTree,
    matching: &Matching,
    typography: Typography,
    delta: &mut Delta,
) -> ElementMatches {
    let (mut entries, same_leaves) = entries(before, after, matching);
    let mut moves = find_moves(before, after, &mut entries);
    for entry in &mut entries {
        let (Some(b), Some(a)) = (entry.before, entry.after) else { continue };
        let (Some(was), Some(is)) = (before.all[b].block, after.all[a].block) else { continue };
        for kind in ElementKind::ALL.into_iter().filter(|_| typography == Typography::Ignored) {
            match_apart_from_typography(was, is, kind, &mut entry.lists[kind as usize]);
        }
        find_updates(was, is, &mut entry.lists);
    }
    // Last, because an edit in the same block is more likely.
    moves.extend(find_edited_moves(before, after, &mut entries));
    let mut moved = MovedElements::default();
    let mut n_moved_in: HashMap<usize, [u32; 3]> = HashMap::new();
    for &ElementPair { kind, before: (b, i), after: (a, j) } in &moves {
        moved.moved_out.entry((b, kind)).or_default().push(i);
        moved.moved_in.entry((a, kind)).or_default().push(j);
        n_moved_in.entry(a).or_default()[kind as usize] += 1;
    }
    let mut pairs = Vec::new();
    for entry in &mut entries {
        let (Some(b), Some(a)) = (entry.before, entry.after) else { continue };
        let (Some(was), Some(is)) = (before.all[b].block, after.all[a].block) else { continue };
        let moved_in = n_moved_in.get(&a).copied().unwrap_or_default();
        if let Some(mut block) = block_delta(was, is, &entry.lists, moved_in) {
            (block.before, block.after) = (before.reference(b), after.reference(a));
            delta.blocks.push(block);
        }
        for kind in ElementKind::ALL {
            let list = &entry.lists[kind as usize];
            let both = list.unmoved.iter().chain(&list.updated);
            pairs.extend(both.map(|&(i, j)| ElementPair { kind, before: (b, i), after: (a, j) }));
        }
    }
    ElementMatches { moved, same_leaves, pairs, moves }
}

/// Adds moved elements to the delta. `has_moved` marks those whose place in the reading order changed.
pub(super) fn add_moves(
    before: &DiffTree,
    after: &DiffTree,
    moves: &[ElementPair],
    has_moved: &[bool],
    delta: &mut Delta,
) {
    for (pair, has_moved) in moves.iter().zip(has_moved) {
        let Some(moved) = element_move(before, after, pair) else { continue };
        let is_seen = *has_moved || moved.before.is_some();
        if is_seen { delta.moves.push(moved) } else { delta.shifted.push(moved) }
    }
    mark_links_in_moved_texts(after, &mut delta.moves);
}

/// Marks the links whose names are part of a text that moved too.
fn mark_links_in_moved_texts(after: &DiffTree, moves: &mut [ElementMove]) {
    let texts: HashSet<(BlockRef, u32)> = moves
        .iter()
        .filter(|moved| moved.element.kind() == ElementKind::Text)
        .map(|moved| (moved.to.clone(), moved.to_index))
        .collect();
    if texts.is_empty() {
        return;
    }
    let blocks: HashMap<BlockRef, &Block> =
        (1..after.len()).filter_map(|n| Some((after.reference(n), after.all[n].block?))).collect();
    for moved in moves.iter_mut().filter(|moved| moved.element.kind() == ElementKind::Link) {
        let text = blocks.get(&moved.to).and_then(|block| block.text_around_link(moved.to_index));
        moved.is_in_text = text.is_some_and(|text| texts.contains(&(moved.to.clone(), text)));
    }
}

/// Returns the blocks with changed content, and the matched leaves with equal content.
fn entries(
    before: &DiffTree,
    after: &DiffTree,
    matching: &Matching,
) -> (Vec<BlockPair>, Vec<(usize, usize)>) {
    let (mut entries, mut same_leaves) = (Vec::new(), Vec::new());
    for (a, partner) in matching.to_before.iter().enumerate().skip(1) {
        let Some(is) = after.all[a].block else { continue };
        let was = partner.and_then(|b| before.all[b].block);
        if let Some(b) = partner.filter(|_| was.is_some_and(|was| same_content(was, is))) {
            // The content of an inner block is that of its leaves.
            if is.is_leaf() {
                same_leaves.push((b, a));
            }
            continue;
        }
        let lists = ElementKind::ALL.map(|kind| match_same_ids(was, is, kind));
        entries.push(BlockPair { before: *partner, after: Some(a), lists });
    }
    for b in (1..before.len()).filter(|&b| matching.to_after[b].is_none()) {
        let Some(was) = before.all[b].block else { continue };
        let lists = ElementKind::ALL.map(|kind| all_rest(n_elements(was, kind)));
        entries.push(BlockPair { before: Some(b), after: None, lists });
    }
    (entries, same_leaves)
}

/// Compares the full content, because equal IDs may hide a changed session ID.
fn same_content(was: &Block, is: &Block) -> bool {
    was.links == is.links && was.images == is.images && was.texts == is.texts
}

fn all_rest(n: usize) -> ListMatch {
    ListMatch { rest_before: (0..n as u32).collect(), ..ListMatch::default() }
}

fn n_elements(block: &Block, kind: ElementKind) -> usize {
    match kind {
        ElementKind::Link => block.links.len(),
        ElementKind::Image => block.images.len(),
        ElementKind::Text => block.texts.len(),
    }
}

fn id_at(block: &Block, kind: ElementKind, index: u32) -> NodeId {
    match kind {
        ElementKind::Link => block.links[index as usize].id,
        ElementKind::Image => block.images[index as usize].id,
        ElementKind::Text => block.texts[index as usize].id,
    }
}

fn element_at(block: &Block, kind: ElementKind, index: u32) -> Element {
    match kind {
        ElementKind::Link => Element::Link(block.links[index as usize].clone()),
        ElementKind::Image => Element::Image(block.images[index as usize].clone()),
        ElementKind::Text => Element::Text(block.texts[index as usize].clone()),
    }
}

fn text_at(block: &Block, kind: ElementKind, index: u32) -> &str {
    match kind {
        ElementKind::Link => &block.links[index as usize].name,
        ElementKind::Image => &block.images[index as usize].name,
        ElementKind::Text => &block.texts[index as usize].text,
    }
}

fn url_at(block: &Block, kind: ElementKind, index: u32) -> &str {
    match kind {
        ElementKind::Link => &block.links[index as usize].url,
        ElementKind::Image => &block.images[index as usize].source,
        ElementKind::Text => "",
    }
}

fn match_same_ids(was: Option<&Block>, is: &Block, kind: ElementKind) -> ListMatch {
    let n_after = n_elements(is, kind) as u32;
    let Some(was) = was else {
        return ListMatch { rest_after: (0..n_after).collect(), ..ListMatch::default() };
    };
    let n_before = n_elements(was, kind) as u32;
    let alike = |i: &u32| id_at(was, kind, *i) == id_at(is, kind, *i);
    let n_alike = (0..n_before.min(n_after)).take_while(alike).count() as u32;
    let mut list = ListMatch { unmoved: (0..n_alike).map(|i| (i, i)).collect(), ..ListMatch::default() };
    let mut places: HashMap<NodeId, Vec<u32>> = HashMap::new();
    for i in (n_alike..n_before).rev() {
        places.entry(id_at(was, kind, i)).or_default().push(i);
    }
    for j in n_alike..n_after {
        match places.get_mut(&id_at(is, kind, j)).and_then(Vec::pop) {
            Some(i) => list.unmoved.push((i, j)),
            None => list.rest_after.push(j),
        }
    }
    #[expect(clippy::disallowed_methods, reason = "sorted right after")]
    list.rest_before.extend(places.into_values().flatten());
    list.rest_before.sort_unstable();
    list
}

/// Removes moved elements from the unmatched ones and returns them.
fn find_moves(before: &DiffTree, after: &DiffTree, entries: &mut [BlockPair]) -> Vec<ElementPair> {
    let mut moves = Vec::new();
    for kind in ElementKind::ALL {
        let mut sources = left_over(before, entries, kind);
        if sources.is_empty() {
            continue;
        }
        let mut gone: HashMap<usize, Vec<u32>> = HashMap::new();
        for entry in entries.iter_mut() {
            let Some((a, is)) = entry.after.and_then(|a| Some((a, after.all[a].block?))) else { continue };
            entry.lists[kind as usize].rest_after.retain(|&j| {
                let source = sources.get_mut(&id_at(is, kind, j)).and_then(Vec::pop);
                moves.extend(source.map(|before| ElementPair { kind, before, after: (a, j) }));
                gone.entry(source.map_or(0, |(b, _)| b)).or_default().extend(source.map(|(_, i)| i));
                source.is_none()
            });
        }
        for entry in entries.iter_mut() {
            let Some(gone) = entry.before.and_then(|b| gone.get_mut(&b)) else { continue };
            gone.sort_unstable();
            entry.lists[kind as usize].rest_before.retain(|i| gone.binary_search(i).is_err());
        }
    }
    moves
}

/// Minimum number of words of a text that is recognised in another block though it was edited, and maximum word
/// distance. Both are stricter than within a block ([`super::similar`]), because blocks of a page often share short texts
/// and phrases.
const MIN_MOVED_WORDS: usize = 5;
const MOVED: f64 = 0.3;

/// Texts without a partner that were edited and are in another block now, such as a paragraph that became a list item.
/// Removes them from the unmatched ones.
fn find_edited_moves<'b>(
    before: &'b DiffTree,
    after: &'b DiffTree,
    entries: &mut [BlockPair],
) -> Vec<ElementPair> {
    const KIND: ElementKind = ElementKind::Text;
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    for entry in entries.iter() {
        let list = &entry.lists[KIND as usize];
        if let Some((b, was)) = entry.before.and_then(|b| Some((b, before.all[b].block?))) {
            gone.extend(list.rest_before.iter().map(|&i| (b, i, was)));
        }
        if let Some((a, is)) = entry.after.and_then(|a| Some((a, after.all[a].block?))) {
            come.extend(list.rest_after.iter().map(|&j| (a, j, is)));
        }
    }
    let is_long =
        |(_, index, block): &(usize, u32, &Block)| n_words(text_at(block, KIND, *index)) >= MIN_MOVED_WORDS;
    gone.retain(is_long);
    come.retain(is_long);
    if gone.is_empty() || come.is_empty() {
        return Vec::new();
    }
    // No two places are the same, so only the words decide.
    let [texts_before, texts_after] = [(&gone, 0), (&come, 1)].map(|(texts, odd)| {
        let open = |(n, &(_, index, block)): (usize, &(usize, u32, &'b Block))| UnmatchedElement {
            text: text_at(block, KIND, index),
            place: 2 * n + odd,
            story: story_at(block, KIND, index),
        };
        texts.iter().enumerate().map(open).collect::<Vec<_>>()
    });
    let near = |&(i, j): &(usize, usize)| word_distance(texts_before[i].text, texts_after[j].text) <= MOVED;
    let pairs: Vec<_> = pair_similar(&texts_before, &texts_after).into_iter().filter(near).collect();
    let (mut taken_before, mut taken_after) = (HashSet::new(), HashSet::new());
    let mut moves = Vec::new();
    for (i, j) in pairs {
        let (before, after) = ((gone[i].0, gone[i].1), (come[j].0, come[j].1));
        taken_before.insert(before);
        taken_after.insert(after);
        moves.push(ElementPair { kind: KIND, before, after });
    }
    for entry in entries {
        let list = &mut entry.lists[KIND as usize];
        if let Some(b) = entry.before {
            list.rest_before.retain(|i| !taken_before.contains(&(b, *i)));
        }
        if let Some(a) = entry.after {
            list.rest_after.retain(|j| !taken_after.contains(&(a, *j)));
        }
    }
    moves
}

/// Unmatched elements by ID, in reverse order because `pop` must return the first.
fn left_over(
    before: &DiffTree,
    entries: &[BlockPair],
    kind: ElementKind,
) -> HashMap<NodeId, Vec<(usize, u32)>> {
    let mut sources: HashMap<NodeId, Vec<(usize, u32)>> = HashMap::new();
    for entry in entries.iter().rev() {
        let Some((b, was)) = entry.before.and_then(|b| Some((b, before.all[b].block?))) else { continue };
        for &i in entry.lists[kind as usize].rest_before.iter().rev() {
            sources.entry(id_at(was, kind, i)).or_default().push((b, i));
        }
    }
    sources
}

fn element_move(before: &DiffTree, after: &DiffTree, pair: &ElementPair) -> Option<ElementMove> {
    let &ElementPair { kind, before: (b, i), after: (a, to_index) } = pair;
    let is = after.all[a].block?;
    Some(ElementMove {
        from: before.reference(b),
        from_index: i,
        to: after.reference(a),
        to_index,
        importance: is.importance,
        element: element_at(is, kind, to_index),
        before: edited(before.all[b].block?, is, kind, (i, to_index)),
        is_in_text: false,
    })
}

/// The text before, if words of it changed.
fn edited(was: &Block, is: &Block, kind: ElementKind, (i, j): (u32, u32)) -> Option<Element> {
    let (before, after) = (text_at(was, kind, i), text_at(is, kind, j));
    let is_edited = kind == ElementKind::Text && without_typography(before) != without_typography(after);
    is_edited.then(|| element_at(was, kind, i))
}

fn find_updates(was: &Block, is: &Block, lists: &mut [ListMatch; 3]) {
    for kind in [ElementKind::Link, ElementKind::Image] {
        let list = &mut lists[kind as usize];
        pair_by_key(list, |i| text_at(was, kind, i), |j| text_at(is, kind, j));
        pair_by_key(list, |i| url_at(was, kind, i), |j| url_at(is, kind, j));
    }
    for kind in ElementKind::ALL {
        let list = &mut lists[kind as usize];
        if list.rest_before.is_empty() || list.rest_after.is_empty() {
            continue;
        }
        if kind == ElementKind::Text {
            let (before, after) = unmatched(was, is, kind, list);
            accept_regrouped(list, find_regrouped(&before, &after));
        }
        let (open_before, open_after) = unmatched(was, is, kind, list);
        let pairs = pair_similar(&open_before, &open_after);
        let pairs = pairs.into_iter().map(|(i, j)| (list.rest_before[i], list.rest_after[j])).collect();
        accept_updates(list, pairs);
    }
}

/// The elements without a partner, in order.
fn unmatched<'b>(
    was: &'b Block,
    is: &'b Block,
    kind: ElementKind,
    list: &ListMatch,
) -> (Vec<UnmatchedElement<'b>>, Vec<UnmatchedElement<'b>>) {
    let kept = pairs_in_order(list);
    let open = |block: &'b Block, index: u32, place: usize| UnmatchedElement {
        text: text_at(block, kind, index),
        place,
        story: story_at(block, kind, index),
    };
    let before = list.rest_before.iter().map(|&i| open(was, i, kept.partition_point(|pair| pair.0 < i)));
    let after = list.rest_after.iter().map(|&j| open(is, j, kept.partition_point(|pair| pair.1 < j)));
    (before.collect(), after.collect())
}

/// A hash of the article to which an element leads: a link, or a text that mainly consists of one.
fn story_at(block: &Block, kind: ElementKind, index: u32) -> Option<u32> {
    let link = match kind {
        ElementKind::Link => index as usize,
        ElementKind::Image => return None,
        ElementKind::Text => {
            let n_bytes = block.texts[index as usize].text.len() as u32;
            block.places.links.iter().position(|place| place.text == index && 2 * place.n_bytes >= n_bytes)?
        }
    };
    let key = item_key(&Url::parse(&block.links.get(link)?.url).ok()?);
    names_article(&key).then(|| hash(&key))
}

/// Elements that differ only in typography are unchanged.
fn match_apart_from_typography(was: &Block, is: &Block, kind: ElementKind, list: &mut ListMatch) {
    if list.rest_before.is_empty() || list.rest_after.is_empty() {
        return;
    }
    let key = |block, index| (without_typography(text_at(block, kind, index)), url_at(block, kind, index));
    let mut places: HashMap<(String, &str), Vec<u32>> = HashMap::new();
    for &i in list.rest_before.iter().rev() {
        places.entry(key(was, i)).or_default().push(i);
    }
    let found =
        list.rest_after.iter().filter_map(|&j| Some((places.get_mut(&key(is, j)).and_then(Vec::pop)?, j)));
    let pairs: Vec<(u32, u32)> = found.collect();
    if !pairs.is_empty() {
        take_pairs(list, pairs.clone());
        list.unmoved.extend(pairs);
        list.unmoved.sort_unstable_by_key(|pair| pair.1);
    }
}

fn accept_regrouped(list: &mut ListMatch, found: Vec<Regrouped>) {
    let of = |all: &[u32], range: std::ops::Range<usize>| all[range].to_vec();
    for (before, after) in found {
        list.regrouped.push((of(&list.rest_before, before), of(&list.rest_after, after)));
    }
    let before: HashSet<u32> = list.regrouped.iter().flat_map(|pair| &pair.0).copied().collect();
    let after: HashSet<u32> = list.regrouped.iter().flat_map(|pair| &pair.1).copied().collect();
    list.rest_before.retain(|i| !before.contains(i));
    list.rest_after.retain(|j| !after.contains(j));
}

/// The longest run of matched elements whose order is unchanged. The others are located relative to it.
fn pairs_in_order(list: &ListMatch) -> Vec<(u32, u32)> {
    let mut pairs: Vec<(u32, u32)> = list.unmoved.iter().chain(&list.updated).copied().collect();
    pairs.sort_unstable_by_key(|pair| pair.1);
    let places: Vec<usize> = pairs.iter().map(|pair| pair.0 as usize).collect();
    let is_kept = longest_increasing(&places);
    pairs.into_iter().zip(is_kept).filter(|(_, is_kept)| *is_kept).map(|(pair, _)| pair).collect()
}

/// Pairs unmatched elements with equal keys, in order.
fn pair_by_key<'a>(
    list: &mut ListMatch,
    key_before: impl Fn(u32) -> &'a str,
    key_after: impl Fn(u32) -> &'a str,
) {
    if list.rest_before.is_empty() || list.rest_after.is_empty() {
        return;
    }
    let mut places: HashMap<&str, Vec<u32>> = HashMap::new();
    for &i in list.rest_before.iter().rev().filter(|&&i| !key_before(i).is_empty()) {
        places.entry(key_before(i)).or_default().push(i);
    }
    let pairs: Vec<(u32, u32)> = list
        .rest_after
        .iter()
        .filter_map(|&j| Some((places.get_mut(key_after(j)).and_then(Vec::pop)?, j)))
        .collect();
    accept_updates(list, pairs);
}

fn accept_updates(list: &mut ListMatch, pairs: Vec<(u32, u32)>) {
    let mut pairs = take_pairs(list, pairs);
    list.updated.append(&mut pairs);
}

/// Removes pairs from the unmatched elements and returns them in their order after.
fn take_pairs(list: &mut ListMatch, mut pairs: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    pairs.sort_unstable();
    list.rest_before.retain(|i| pairs.binary_search_by_key(i, |pair| pair.0).is_err());
    pairs.sort_unstable_by_key(|pair| pair.1);
    list.rest_after.retain(|j| pairs.binary_search_by_key(j, |pair| pair.1).is_err());
    pairs
}

/// The delta of a pair of blocks. `None` if nothing changed.
fn block_delta(was: &Block, is: &Block, lists: &[ListMatch; 3], moved_in: [u32; 3]) -> Option<BlockDelta> {
    let (importance, importance_before, role) = (is.importance, was.importance, is.role);
    let mut block = BlockDelta { importance, importance_before, role, ..BlockDelta::default() };
    for kind in ElementKind::ALL {
        let list = &lists[kind as usize];
        block.inserted.extend(list.rest_after.iter().map(|&j| (j, element_at(is, kind, j))));
        block.deleted.extend(list.rest_before.iter().map(|&i| (i, element_at(was, kind, i))));
        block.updated.extend(list.updated.iter().map(|&(i, j)| Update {
            index: i,
            before: element_at(was, kind, i),
            after: element_at(is, kind, j),
            distance_outside_links: distance_outside_links(was, is, kind, i, j),
        }));
        block.regrouped.extend(list.regrouped.iter().map(|(before, after)| {
            let elements =
                |block, all: &[u32]| all.iter().map(|&n| (n, element_at(block, kind, n))).collect();
            Regrouping::new(elements(was, before), elements(is, after))
        }));
        let respelled = list.unmoved.iter().filter(|&&(i, j)| has_different_spelling(was, is, kind, i, j));
        block.respelled.extend(respelled.map(|&(_, j)| (j, element_at(is, kind, j))));
        block.reordered.extend(order_after(list).map(|order| (kind, order)));
    }
    let quiet = block.regrouped.is_empty()
        && block.respelled.is_empty()
        && block.reordered.is_empty()
        && moved_in == [0; 3];
    if quiet && !block.has_operations() {
        return None;
    }
    for kind in ElementKind::ALL {
        let list = &lists[kind as usize];
        let n_inserted = (list.rest_after.len() + list.regrouped.len()) as u32;
        block.n_elements[kind as usize] = n_elements(was, kind) as u32 + n_inserted + moved_in[kind as usize];
    }
    block.n_words = n_block_words(was);
    block.in_texts = links_in_texts(was, is, lists);
    Some(block)
}

/// The word distance of an updated text outside the names of its links. `None` without such links.
fn distance_outside_links(was: &Block, is: &Block, kind: ElementKind, i: u32, j: u32) -> Option<f32> {
    let has_link = |block: &Block, text: u32| {
        block.places.links.iter().any(|place| place.text == text && place.n_bytes > 0)
    };
    if kind != ElementKind::Text || !(has_link(was, i) || has_link(is, j)) {
        return None;
    }
    let outside = |block: &Block, text: u32| {
        block.words_outside_links(text).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    Some(word_distance(&outside(was, i), &outside(is, j)) as f32)
}

/// The changed links whose names are part of a changed text.
fn links_in_texts(was: &Block, is: &Block, lists: &[ListMatch; 3]) -> LinksInTexts {
    let (links, texts) = (&lists[ElementKind::Link as usize], &lists[ElementKind::Text as usize]);
    let is_in = |block: &Block, link: u32, changed: &HashSet<u32>| {
        block.text_around_link(link).is_some_and(|text| changed.contains(&text))
    };
    let before: HashSet<u32> =
        texts.rest_before.iter().copied().chain(texts.updated.iter().map(|pair| pair.0)).collect();
    let after: HashSet<u32> =
        texts.rest_after.iter().copied().chain(texts.updated.iter().map(|pair| pair.1)).collect();
    let is_renamed = |&(i, j): &(u32, u32)| was.links[i as usize].name != is.links[j as usize].name;
    let updated = links.updated.iter().filter(|pair| is_renamed(pair));
    let mut updated: Vec<u32> = updated
        .filter(|&&(i, j)| is_in(was, i, &before) && is_in(is, j, &after))
        .map(|pair| pair.0)
        .collect();
    updated.sort_unstable();
    LinksInTexts {
        inserted: links.rest_after.iter().copied().filter(|&j| is_in(is, j, &after)).collect(),
        deleted: links.rest_before.iter().copied().filter(|&i| is_in(was, i, &before)).collect(),
        updated,
    }
}

fn has_different_spelling(was: &Block, is: &Block, kind: ElementKind, i: u32, j: u32) -> bool {
    text_at(was, kind, i) != text_at(is, kind, j) || url_at(was, kind, i) != url_at(is, kind, j)
}

/// Old ranks of the matched elements in their new order. `None` if the order is unchanged.
fn order_after(list: &ListMatch) -> Option<Vec<u32>> {
    let mut pairs: Vec<(u32, u32)> = list.unmoved.iter().chain(&list.updated).copied().collect();
    pairs.sort_unstable_by_key(|pair| pair.1);
    if pairs.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        return None;
    }
    let mut sorted: Vec<u32> = pairs.iter().map(|pair| pair.0).collect();
    sorted.sort_unstable();
    let rank = |i: &u32| sorted.partition_point(|other| other < i) as u32;
    Some(pairs.iter().map(|(i, _)| rank(i)).collect())
}

pub(super) fn n_block_words(block: &Block) -> u32 {
    let images = block.images.iter().map(|image| n_words(&image.name));
    block.words().map(n_words).chain(images).sum::<usize>() as u32
}
