//! The version before and a delta -> exactly the version after.

use std::collections::HashMap;

use super::structure::shallow;
use super::tree::DiffTree;
use super::{Appearance, BlockDelta, BlockOperation, Delta, Element, ElementKind, ElementMove};
use crate::page::segment::{Block, BlockTree};

/// The delta refers to something that this version does not contain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the delta does not fit this version: {0}; apply it to the version it was made from")]
pub struct ApplyError(String);

impl Delta {
    /// Applies the delta to the version before. Both trees are sealed.
    pub fn apply(&self, before: &BlockTree) -> Result<BlockTree, ApplyError> {
        if let Some(replacement) = &self.replacement {
            return Ok((**replacement).clone());
        }
        let nodes = DiffTree::new(before);
        let plan = ApplyPlan::new(self, &nodes)?;
        let mut tree = BlockTree {
            url: self.url.clone(),
            version: self.to.clone(),
            engine: self.engine.clone(),
            blocks: plan.children(&mut Vec::new(), Some(0))?,
            list: match &self.items {
                Some(items) => items.apply(before.list.as_ref()).map_err(ApplyError)?,
                None => before.list.clone(),
            },
        };
        tree.seal();
        Ok(tree)
    }
}

/// Maximum nesting. Without it a hostile delta could exhaust the stack.
const MAX_DEPTH: usize = 500;

/// The origin of a block of the new version.
#[derive(Clone, Copy)]
enum BlockSource<'a> {
    Kept(usize),
    New(&'a Block),
}

/// The delta, indexed for building the new tree.
struct ApplyPlan<'a> {
    nodes: &'a DiffTree<'a>,
    /// Blocks that were deleted or moved.
    has_left: Vec<bool>,
    /// Inserted and moved blocks by the new reference of their parent: index and source.
    placed: HashMap<&'a [u16], Vec<(usize, BlockSource<'a>)>>,
    within: HashMap<&'a [u16], &'a BlockDelta>,
    moved_out: HashMap<&'a [u16], Vec<&'a ElementMove>>,
    moved_in: HashMap<&'a [u16], Vec<&'a ElementMove>>,
    appearances: HashMap<&'a [u16], &'a Appearance>,
}

impl<'a> ApplyPlan<'a> {
    fn new(delta: &'a Delta, nodes: &'a DiffTree<'a>) -> Result<ApplyPlan<'a>, ApplyError> {
        let numbers: HashMap<Vec<u16>, usize> = (1..nodes.len()).map(|n| (nodes.reference(n).0, n)).collect();
        let number = |reference: &[u16]| {
            let found = numbers.get(reference).copied();
            found
                .ok_or_else(|| ApplyError(format!("it has no block {}", super::BlockRef(reference.to_vec()))))
        };
        let mut plan = ApplyPlan {
            nodes,
            has_left: vec![false; nodes.len()],
            placed: HashMap::new(),
            within: delta.blocks.iter().map(|block| (block.before.0.as_slice(), block)).collect(),
            moved_out: group(delta.moves.iter().chain(&delta.shifted), |moved| &moved.from.0),
            moved_in: group(delta.moves.iter().chain(&delta.shifted), |moved| &moved.to.0),
            appearances: delta
                .appearances
                .iter()
                .map(|appearance| (appearance.block.0.as_slice(), appearance))
                .collect(),
        };
        for operation in delta.structure.iter().chain(&delta.nested) {
            match operation {
                BlockOperation::Insert(block) => {
                    block.walk().for_each(|block| plan.place(&block.reference, BlockSource::New(block)));
                }
                BlockOperation::Delete(block) => {
                    for block in block.walk() {
                        plan.has_left[number(&block.reference)?] = true;
                    }
                }
                BlockOperation::Move { from, to, .. } => {
                    let from = number(&from.0)?;
                    // Moving one block to two places could double the tree repeatedly.
                    if std::mem::replace(&mut plan.has_left[from], true) {
                        return Err(ApplyError("it moves a block twice".into()));
                    }
                    plan.place(&to.0, BlockSource::Kept(from));
                }
            }
        }
        #[expect(clippy::disallowed_methods, reason = "each list is sorted by itself")]
        plan.placed.values_mut().for_each(|children| children.sort_by_key(|(place, _)| *place));
        Ok(plan)
    }

    fn place(&mut self, reference: &'a [u16], source: BlockSource<'a>) {
        if let Some((last, parent)) = reference.split_last() {
            self.placed.entry(parent).or_default().push((usize::from(last.saturating_sub(1)), source));
        }
    }

    /// Builds the children of the block at the new `reference`, which was block `source` before.
    fn children(&self, reference: &mut Vec<u16>, source: Option<usize>) -> Result<Vec<Block>, ApplyError> {
        if reference.len() > MAX_DEPTH {
            return Err(ApplyError(format!("it nests blocks deeper than {MAX_DEPTH}")));
        }
        let kept = source.into_iter().flat_map(|source| &self.nodes.all[source].children);
        let kept = kept.copied().filter(|&child| !self.has_left[child]).map(BlockSource::Kept);
        let placed = self.placed.get(reference.as_slice()).cloned().unwrap_or_default();
        let mut blocks = Vec::new();
        for child in fill(kept, placed.into_iter()) {
            reference.push(u16::try_from(blocks.len() + 1).unwrap_or(u16::MAX));
            blocks.push(self.block(reference, child)?);
            reference.pop();
        }
        Ok(blocks)
    }

    fn block(&self, reference: &mut Vec<u16>, source: BlockSource) -> Result<Block, ApplyError> {
        let (mut block, number) = match source {
            BlockSource::New(new) => (self.fresh(reference, new), None),
            BlockSource::Kept(number) => (self.kept(reference, number)?, Some(number)),
        };
        block.children = self.children(reference, number)?;
        Ok(block)
    }

    fn fresh(&self, reference: &[u16], new: &Block) -> Block {
        let mut lists = ElementLists::new(new);
        self.move_in(reference, &mut lists);
        lists.into_block(shallow(new))
    }

    fn kept(&self, reference: &[u16], number: usize) -> Result<Block, ApplyError> {
        let Some(was) = self.nodes.all[number].block else { return Ok(Block::default()) };
        let mut block = shallow(was);
        if let Some(appearance) = self.appearances.get(reference) {
            block.rect = appearance.rect.unwrap_or(block.rect);
            block.doc = appearance.doc.unwrap_or(block.doc);
            block.importance = appearance.importance.unwrap_or(block.importance);
            block.role = appearance.role.unwrap_or(block.role);
            block.places = appearance.places.clone().unwrap_or(block.places);
        }
        let home = self.nodes.reference(number);
        let mut lists = ElementLists::new(was);
        let within = self.within.get(home.0.as_slice()).copied();
        let moved_out = self.moved_out.get(home.0.as_slice());
        if within.is_some() || moved_out.is_some() {
            lists.take_out(within, moved_out.map_or(&[], Vec::as_slice))?;
        }
        if let Some(within) = within {
            lists.reorder(within)?;
            lists.put_in(
                within.inserted.iter().map(|(place, element)| (*place, element)).collect(),
                &self.arriving(reference),
            );
            lists.respell(within)?;
        } else {
            self.move_in(reference, &mut lists);
        }
        Ok(lists.into_block(block))
    }

    fn arriving(&self, reference: &[u16]) -> Vec<&'a ElementMove> {
        self.moved_in.get(reference).cloned().unwrap_or_default()
    }

    fn move_in(&self, reference: &[u16], lists: &mut ElementLists) {
        lists.put_in(Vec::new(), &self.arriving(reference));
    }
}

fn group<'a>(
    moves: impl Iterator<Item = &'a ElementMove>,
    key: impl Fn(&'a ElementMove) -> &'a Vec<u16>,
) -> HashMap<&'a [u16], Vec<&'a ElementMove>> {
    let mut groups: HashMap<&[u16], Vec<&ElementMove>> = HashMap::new();
    for moved in moves {
        groups.entry(key(moved)).or_default().push(moved);
    }
    groups
}

/// Puts the second list at its indexes (ascending) and fills the gaps with the first list, in order.
fn fill<T>(kept: impl Iterator<Item = T>, placed: impl Iterator<Item = (usize, T)>) -> Vec<T> {
    let mut kept = kept.into_iter();
    let mut all = Vec::new();
    for (place, item) in placed {
        while all.len() < place {
            match kept.next() {
                Some(next) => all.push(next),
                None => break,
            }
        }
        all.push(item);
    }
    all.extend(kept);
    all
}

/// The links, images and texts of a block as elements.
struct ElementLists([Vec<Element>; 3]);

impl ElementLists {
    fn new(block: &Block) -> ElementLists {
        let mut lists = ElementLists(Default::default());
        for element in Element::in_block(block) {
            lists.0[element.kind() as usize].push(element);
        }
        lists
    }

    fn into_block(self, mut block: Block) -> Block {
        for element in self.0.into_iter().flatten() {
            match element {
                Element::Link(link) => block.links.push(link),
                Element::Image(image) => block.images.push(image),
                Element::Text(text) => block.texts.push(text),
            }
        }
        block
    }

    /// Applies updates, then removes deleted and moved elements, all by old index.
    fn take_out(
        &mut self,
        within: Option<&BlockDelta>,
        moved_out: &[&ElementMove],
    ) -> Result<(), ApplyError> {
        let mut gone: [Vec<u32>; 3] = Default::default();
        for update in within.iter().flat_map(|within| &within.updated) {
            *self.at(update.before.kind(), update.index)? = update.after.clone();
        }
        for (place, element) in within.iter().flat_map(|within| &within.deleted) {
            gone[element.kind() as usize].push(*place);
        }
        for moved in moved_out {
            gone[moved.element.kind() as usize].push(moved.from_index);
        }
        for kind in ElementKind::ALL {
            let gone = &mut gone[kind as usize];
            gone.sort_unstable();
            if let Some(last) = gone.last() {
                self.at(kind, *last)?;
            }
            let mut place = 0;
            self.0[kind as usize].retain(|_| {
                place += 1;
                gone.binary_search(&(place - 1)).is_err()
            });
        }
        Ok(())
    }

    fn at(&mut self, kind: ElementKind, place: u32) -> Result<&mut Element, ApplyError> {
        let found = self.0[kind as usize].get_mut(place as usize);
        found.ok_or_else(|| ApplyError(format!("a block has no {} number {place}", kind.name())))
    }

    fn reorder(&mut self, within: &BlockDelta) -> Result<(), ApplyError> {
        for (kind, order) in &within.reordered {
            let mut rest: Vec<Option<Element>> = self.0[*kind as usize].drain(..).map(Some).collect();
            for rank in order {
                let element = rest.get_mut(*rank as usize).and_then(Option::take);
                let wrong =
                    || ApplyError(format!("an order of {}s contains the invalid rank {rank}", kind.name()));
                self.0[*kind as usize].push(element.ok_or_else(wrong)?);
            }
        }
        Ok(())
    }

    fn put_in<'e>(&mut self, mut placed: Vec<(u32, &'e Element)>, arriving: &[&'e ElementMove]) {
        placed.extend(arriving.iter().map(|moved| (moved.to_index, &moved.element)));
        placed.sort_by_key(|(place, _)| *place);
        for kind in ElementKind::ALL {
            let of_kind = placed.iter().filter(|(_, element)| element.kind() == kind);
            let of_kind: Vec<_> =
                of_kind.map(|(place, element)| (*place as usize, (*element).clone())).collect();
            if !of_kind.is_empty() {
                let kept = std::mem::take(&mut self.0[kind as usize]);
                self.0[kind as usize] = fill(kept.into_iter(), of_kind.into_iter());
            }
        }
    }

    fn respell(&mut self, within: &BlockDelta) -> Result<(), ApplyError> {
        for (place, element) in &within.respelled {
            *self.at(element.kind(), *place)? = element.clone();
        }
        Ok(())
    }
}
