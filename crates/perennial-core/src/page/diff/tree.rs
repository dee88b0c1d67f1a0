//! A block tree -> an array of nodes. Node numbers are cheap to compare, and deep nesting needs no recursion.

use super::BlockRef;
use crate::page::segment::{Block, BlockTree};

/// One block. The root represents the page.
pub(super) struct DiffNode<'a> {
    /// `None` for the root only.
    pub(super) block: Option<&'a Block>,
    pub(super) parent: usize,
    /// Index among its siblings.
    pub(super) position: usize,
    pub(super) depth: usize,
    pub(super) children: Vec<usize>,
}

/// All blocks of a tree, parents before children. Number 0 is the root.
pub(super) struct DiffTree<'a> {
    pub(super) all: Vec<DiffNode<'a>>,
}

impl<'a> DiffTree<'a> {
    pub(super) fn new(tree: &'a BlockTree) -> DiffTree<'a> {
        let root = DiffNode { block: None, parent: 0, position: 0, depth: 0, children: Vec::new() };
        let mut nodes = DiffTree { all: vec![root] };
        let mut pending: Vec<(usize, usize, &Block)> = Vec::new();
        pending.extend(tree.blocks.iter().enumerate().rev().map(|(position, block)| (0, position, block)));
        while let Some((parent, position, block)) = pending.pop() {
            let number = nodes.push(parent, position, block);
            pending.extend(block.children.iter().enumerate().rev().map(|(i, child)| (number, i, child)));
        }
        nodes
    }

    fn push(&mut self, parent: usize, position: usize, block: &'a Block) -> usize {
        let number = self.all.len();
        let depth = self.all[parent].depth + 1;
        self.all[parent].children.push(number);
        self.all.push(DiffNode { block: Some(block), parent, position, depth, children: Vec::new() });
        number
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The reference that follows from the block's position in the tree.
    pub(super) fn reference(&self, mut number: usize) -> BlockRef {
        let mut numbers = Vec::with_capacity(self.all[number].depth);
        while number != 0 {
            numbers.push(u16::try_from(self.all[number].position + 1).unwrap_or(u16::MAX));
            number = self.all[number].parent;
        }
        numbers.reverse();
        BlockRef(numbers)
    }
}
