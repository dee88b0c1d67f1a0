//! Leaves and boxes of one page, with the sums from which a wrapper is chosen.

use super::Context;
use super::beside;
use super::boxes::{BoxKind, Kinds, kind_of};
use super::context::Grams;
use super::leaves::{Leaf, LeafKind, Leaves};
use crate::text::dom::Dom;

/// What is known of each leaf and element of a page.
pub(super) struct Page<'d> {
    pub(super) leaves: Leaves<'d>,
    /// By leaf: the kinds of the boxes that hold it.
    pub(super) kinds: Vec<Kinds>,
    /// The same by node.
    pub(super) node_kinds: Vec<Kinds>,
    /// By leaf: whether it stands on other pages of the site too.
    pub(super) is_template: Vec<bool>,
    /// By leaf: grams of the context.
    pub(super) grams: Vec<Vec<u64>>,
    /// Whether it is known from elsewhere where the object ends, so that no line has to be judged by its words.
    pub(super) is_bounded: bool,
    /// Outermost zones of comments.
    pub(super) comment_zones: Vec<u32>,
}

impl<'d> Page<'d> {
    pub(super) fn of(dom: &'d Dom, grams: &Grams, context: &Context<'_>) -> Page<'d> {
        let leaves = Leaves::of(dom, context.url);
        let is_template = match context.template {
            Some(template) => leaves.leaves.iter().map(|leaf| template.holds(&leaf.text)).collect(),
            None => vec![false; leaves.leaves.len()],
        };
        let found = leaves.leaves.iter().map(|leaf| grams.found_in(&leaf.text)).collect();
        let is_bounded = context.template.is_some_and(|template| template.n_pages() >= MIN_KNOWN_PAGES);
        let mut page = Page {
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

    pub(super) fn leaf(&self, index: usize) -> &Leaf {
        &self.leaves.leaves[index]
    }

    pub(super) fn n_leaves(&self) -> usize {
        self.leaves.leaves.len()
    }

    /// Sums over leaves, from which the sum below any element is a difference.
    pub(super) fn sums(&self, value: impl Fn(usize) -> f32) -> Sums {
        Sums::of_values((0..self.n_leaves()).map(value))
    }

    /// Which boxes hold each leaf; those that hold too much of the running text are none.
    fn find_boxes(&mut self) {
        let good = self.sums(|index| if self.leaf(index).is_good { self.leaf(index).length } else { 0.0 });
        let total = good.all().max(1.0);
        let dom = self.leaves.dom;
        let mut by_node: Vec<Kinds> = vec![0; dom.nodes.len()];
        let mut zones = Vec::new();
        // What the names of each element say, however much it holds.
        let mut named: Vec<Option<BoxKind>> = vec![None; dom.nodes.len()];
        for (index, node) in dom.nodes.iter().enumerate() {
            let above = node.parent.map_or(0, |parent| by_node[parent as usize]);
            by_node[index] = above;
            let below = self.leaves.below(index as u32);
            if below.is_empty() || node.tag().is_empty() {
                continue;
            }
            named[index] = kind_of(node);
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
        for (node, kind) in beside::find(&self.leaves, &self.kinds, &named) {
            self.put_in_box(&mut by_node, node, kind);
            if kind == BoxKind::Comments {
                zones.push(node);
            }
        }
        self.node_kinds = by_node;
        self.comment_zones = zones;
    }

    /// Everything below an element is in a box of this kind.
    fn put_in_box(&mut self, by_node: &mut [Kinds], node: u32, kind: BoxKind) {
        // Boxes are found at any depth, so one that lies in another of its kind is done already.
        if by_node[node as usize] & kind.bit() != 0 {
            return;
        }
        let end = self.leaves.dom.nodes[node as usize].end;
        by_node[node as usize..end as usize].iter_mut().for_each(|kinds| *kinds |= kind.bit());
        let below = self.leaves.below(node);
        self.kinds[below].iter_mut().for_each(|kinds| *kinds |= kind.bit());
    }

    /// What is below an element is not beside the object: the object is there.
    pub(super) fn take_in(&mut self, node: u32) {
        let below = self.leaves.below(node);
        self.kinds[below].iter_mut().for_each(|kinds| *kinds &= !BoxKind::Beside.bit());
    }

    /// What a leaf says for the element that holds it.
    pub(super) fn value(&self, index: usize, dropped: Kinds) -> f32 {
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

/// So many pages of a site show what all of them have.
const MIN_KNOWN_PAGES: usize = 5;
/// What a gram of the context adds to a leaf, in letters.
const GRAM_BONUS: f32 = 30.0;
/// Grams of one leaf that count.
const MAX_GRAMS: usize = 20;
/// What a letter in a list, a table or code counts where it is no running text.
const LISTED_WORTH: f32 = 0.3;
/// What a letter in a link takes away.
const LINK_PENALTY: f32 = 0.6;

/// Sums over leaves.
pub(super) struct Sums(Vec<f64>);

impl Sums {
    /// One value for each leaf, in order.
    pub(super) fn of_values(values: impl ExactSizeIterator<Item = f32>) -> Sums {
        let mut sums = Vec::with_capacity(values.len() + 1);
        let mut sum = 0.0;
        sums.push(0.0);
        for value in values {
            sum += f64::from(value);
            sums.push(sum);
        }
        Sums(sums)
    }

    pub(super) fn of(&self, range: std::ops::Range<usize>) -> f64 {
        self.0[range.end] - self.0[range.start]
    }

    pub(super) fn all(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}
