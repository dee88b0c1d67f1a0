//! Leaves and boxes of one page, with the sums that determine the wrapper.

use super::ArticleContext;
use super::boxes::{BoxKind, BoxKinds, box_kind};
use super::context::Grams;
use super::leaves::{LeafKind, Leaves, TextLeaf};
use super::surroundings;
use crate::text::dom::Dom;

/// The data about each leaf and element of a page.
pub(super) struct LeafPage<'d> {
    pub(super) leaves: Leaves<'d>,
    /// By leaf: the kinds of the boxes around it.
    pub(super) kinds: Vec<BoxKinds>,
    /// The same by node.
    pub(super) node_kinds: Vec<BoxKinds>,
    /// By leaf: whether it also occurs on other pages of the site.
    pub(super) is_template: Vec<bool>,
    /// By leaf: its grams of the context.
    pub(super) grams: Vec<Vec<u64>>,
    /// Whether the end of the article is known, so no line has to be judged by its words.
    pub(super) is_bounded: bool,
    /// Outermost comment sections.
    pub(super) comment_zones: Vec<u32>,
}

impl<'d> LeafPage<'d> {
    pub(super) fn new(dom: &'d Dom, grams: &Grams, context: &ArticleContext<'_>) -> LeafPage<'d> {
        let leaves = Leaves::from_dom(dom, context.url);
        let is_template = match context.template {
            Some(template) => leaves.leaves.iter().map(|leaf| template.holds(&leaf.text)).collect(),
            None => vec![false; leaves.leaves.len()],
        };
        let found = leaves.leaves.iter().map(|leaf| grams.found_in(&leaf.text)).collect();
        let is_bounded = context.template.is_some_and(|template| template.n_pages() >= MIN_KNOWN_PAGES);
        let mut page = LeafPage {
            leaves,
            kinds: Vec::new(),
            node_kinds: Vec::new(),
            is_template,
            grams: found,
            comment_zones: Vec::new(),
            is_bounded,
        };
        page.find_boxes();
        page
    }

    pub(super) fn leaf(&self, index: usize) -> &TextLeaf {
        &self.leaves.leaves[index]
    }

    pub(super) fn n_leaves(&self) -> usize {
        self.leaves.leaves.len()
    }

    /// Prefix sums over leaves, so the sum below any element is a difference.
    pub(super) fn sums(&self, value: impl Fn(usize) -> f32) -> LeafSums {
        LeafSums::new((0..self.n_leaves()).map(value))
    }

    /// Finds the boxes around each leaf. A box with too much running text does not count.
    fn find_boxes(&mut self) {
        let good = self.sums(|index| if self.leaf(index).is_good { self.leaf(index).length } else { 0.0 });
        let total = good.all().max(1.0);
        let dom = self.leaves.dom;
        let mut by_node: Vec<BoxKinds> = vec![0; dom.nodes.len()];
        let mut zones = Vec::new();
        // The kind by name of each element, regardless of its size.
        let mut named: Vec<Option<BoxKind>> = vec![None; dom.nodes.len()];
        for (index, node) in dom.nodes.iter().enumerate() {
            let above = node.parent.map_or(0, |parent| by_node[parent as usize]);
            by_node[index] = above;
            let below = self.leaves.below(index as u32);
            if below.is_empty() || node.tag().is_empty() {
                continue;
            }
            named[index] = box_kind(node);
            if let Some(kind) = named[index] {
                let share = good.of(below.clone()) / total;
                if share <= f64::from(kind.max_share()) {
                    by_node[index] |= kind.bit();
                    if kind == BoxKind::Comments && above & kind.bit() == 0 {
                        zones.push(index as u32);
                    }
                }
            }
        }
        self.kinds = self.leaves.leaves.iter().map(|leaf| by_node[leaf.node as usize]).collect();
        for (node, kind) in surroundings::find(&self.leaves, &self.kinds, &named) {
            self.put_in_box(&mut by_node, node, kind);
            if kind == BoxKind::Comments {
                zones.push(node);
            }
        }
        self.node_kinds = by_node;
        self.comment_zones = zones;
    }

    /// Puts everything below an element into a box of this kind.
    fn put_in_box(&mut self, by_node: &mut [BoxKinds], node: u32, kind: BoxKind) {
        // Boxes exist at any depth, so a box inside one of the same kind is already done.
        if by_node[node as usize] & kind.bit() != 0 {
            return;
        }
        let end = self.leaves.dom.nodes[node as usize].end;
        by_node[node as usize..end as usize].iter_mut().for_each(|kinds| *kinds |= kind.bit());
        let below = self.leaves.below(node);
        self.kinds[below].iter_mut().for_each(|kinds| *kinds |= kind.bit());
    }

    /// Removes everything below an element from the surroundings, because the article is there.
    pub(super) fn include(&mut self, node: u32) {
        let below = self.leaves.below(node);
        self.kinds[below].iter_mut().for_each(|kinds| *kinds &= !BoxKind::Surrounding.bit());
    }

    /// The value of a leaf for the elements around it.
    pub(super) fn value(&self, index: usize, dropped: BoxKinds) -> f32 {
        if self.kinds[index] & dropped != 0 || self.is_template[index] {
            return 0.0;
        }
        let leaf = self.leaf(index);
        let bonus = GRAM_BONUS * self.grams[index].len().min(MAX_GRAMS) as f32;
        if leaf.is_good {
            return leaf.length + bonus;
        }
        let is_listed = matches!(leaf.kind, LeafKind::Item | LeafKind::Cell | LeafKind::Preformatted);
        let own = if is_listed { LISTED_WORTH * leaf.length * (1.0 - leaf.link_share) } else { 0.0 };
        own + bonus - LINK_PENALTY * leaf.length * leaf.link_share
    }
}

/// This many pages of a site reveal its template.
const MIN_KNOWN_PAGES: usize = 5;
/// The bonus of a gram of the context, in letters.
const GRAM_BONUS: f32 = 30.0;
/// Grams per leaf that count.
const MAX_GRAMS: usize = 20;
/// The value of a letter in a list, a table or code outside of running text.
const LISTED_WORTH: f32 = 0.3;
/// The penalty of a letter in a link.
const LINK_PENALTY: f32 = 0.6;

/// Prefix sums over leaves.
pub(super) struct LeafSums(Vec<f64>);

impl LeafSums {
    /// From one value per leaf, in order.
    pub(super) fn new(values: impl ExactSizeIterator<Item = f32>) -> LeafSums {
        let mut sums = Vec::with_capacity(values.len() + 1);
        let mut sum = 0.0;
        sums.push(0.0);
        for value in values {
            sum += f64::from(value);
            sums.push(sum);
        }
        LeafSums(sums)
    }

    pub(super) fn of(&self, range: std::ops::Range<usize>) -> f64 {
        self.0[range.end] - self.0[range.start]
    }

    pub(super) fn all(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}
