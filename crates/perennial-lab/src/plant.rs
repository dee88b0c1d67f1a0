//! Plants operations into a page, to check that a diff finds exactly these: the change simulator of P-VISUAL 7.2
//! (docs/papers.md, Vi-DIFF and Vi-Delta).
//!
//! Only operations with a unique answer are planted. Elements and blocks that occur twice on the page are left alone,
//! because either of the two could have moved. No block loses so much that it would count as a different one. A moved
//! element passes at least one that stays, because the reading order would otherwise be the same.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use perennial_core::page::diff::{Delta, Element, ElementKind, Operation, OperationKind, Subject, n_words};
use perennial_core::page::layout::Rect;
use perennial_core::page::segment::{Block, BlockTree, ElementPositions, Image, Link, NodeId, Text};
use perennial_core::rng::Rng;

/// Shares of links, images, texts and leaf blocks that each kind of operation changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PlantRates {
    /// Share of elements per kind of operation.
    pub elements: f64,
    /// Share of leaf blocks per kind of operation. Whole blocks are never updated.
    pub blocks: f64,
}

impl Default for PlantRates {
    /// The paper's 10 % of each.
    fn default() -> PlantRates {
        PlantRates { elements: 0.1, blocks: 0.1 }
    }
}

/// An operation and its content, without its position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlantedOperation {
    pub kind: OperationKind,
    /// The kind of element; `None` for a block.
    pub element: Option<ElementKind>,
    /// ID of the content before, 0 if none.
    pub before: NodeId,
    /// ID of the content after, 0 if none.
    pub after: NodeId,
}

/// How well a delta recovers the planted operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    pub n_planted: usize,
    pub n_found: usize,
    pub n_right: usize,
}

impl Recovery {
    /// Share of the delta that was planted.
    pub fn precision(&self) -> f64 {
        if self.n_found == 0 { 1.0 } else { self.n_right as f64 / self.n_found as f64 }
    }

    /// Share of the planted operations in the delta.
    pub fn recall(&self) -> f64 {
        if self.n_planted == 0 { 1.0 } else { self.n_right as f64 / self.n_planted as f64 }
    }

    /// Adds the counts of a further comparison.
    pub fn add(&mut self, other: Recovery) {
        self.n_planted += other.n_planted;
        self.n_found += other.n_found;
        self.n_right += other.n_right;
    }
}

/// Compares a delta with the planted operations, as multisets.
pub fn measure_recovery(before: &BlockTree, planted: &[PlantedOperation], delta: &Delta) -> Recovery {
    let mut open: HashMap<PlantedOperation, usize> = HashMap::new();
    for operation in planted {
        *open.entry(*operation).or_default() += 1;
    }
    let found = delta_operations(before, delta);
    let n_right = found
        .iter()
        .filter(|operation| match open.get_mut(operation) {
            Some(n) if *n > 0 => {
                *n -= 1;
                true
            }
            _ => false,
        })
        .count();
    Recovery { n_planted: planted.len(), n_found: found.len(), n_right }
}

fn delta_operations(before: &BlockTree, delta: &Delta) -> Vec<PlantedOperation> {
    let ids: HashMap<&[u16], NodeId> =
        before.walk().map(|block| (block.reference.as_slice(), block.content_id())).collect();
    let signature = |operation: Operation| {
        let none = NodeId::default();
        let (before, after) = match operation.subject {
            Subject::Element { before, after } => {
                (before.map_or(none, Element::id), after.map_or(none, Element::id))
            }
            Subject::Block(Some(block)) if operation.kind == OperationKind::Insert => {
                (none, block.content_id())
            }
            Subject::Block(Some(block)) => (block.content_id(), none),
            Subject::Block(None) => {
                let id = operation.block_before.and_then(|reference| ids.get(reference)).copied();
                (id.unwrap_or_default(), id.unwrap_or_default())
            }
        };
        PlantedOperation { kind: operation.kind, element: operation.element_kind(), before, after }
    };
    delta.operations().map(signature).collect()
}

/// Plants operations into a copy of a sealed tree. The same seed plants the same operations.
pub fn plant(before: &BlockTree, rates: PlantRates, seed: u64) -> (BlockTree, Vec<PlantedOperation>) {
    let mut planter = Planter::new(before, seed);
    planter.change_elements(rates.elements);
    planter.change_blocks(rates.blocks);
    let mut after = BlockTree { version: format!("{}+planted", before.version), ..before.clone() };
    after.blocks = planter.rebuild(&before.blocks, &[]);
    after.seal();
    (after, planter.planted)
}

/// A leaf with its future content.
struct PlantLeaf {
    reference: Vec<u16>,
    block: Block,
    /// How many of its elements may still be changed.
    budget: usize,
    was_touched: bool,
}

struct Planter {
    rng: Rng,
    leaves: Vec<PlantLeaf>,
    n_children: HashMap<Vec<u16>, usize>,
    /// Number of occurrences of each content, name and URL on the page.
    counts: HashMap<String, usize>,
    block_counts: HashMap<NodeId, usize>,
    n_fresh: u64,
    planted: Vec<PlantedOperation>,
    gone: BTreeSet<Vec<u16>>,
    /// New siblings, by the reference of the preceding leaf.
    following: BTreeMap<Vec<u16>, Vec<Block>>,
    /// Parents with changed children. One structural change per parent keeps the answer unique.
    busy: BTreeSet<Vec<u16>>,
}

impl Planter {
    fn new(tree: &BlockTree, seed: u64) -> Planter {
        let mut planter = Planter {
            rng: Rng::new(seed),
            leaves: Vec::new(),
            n_children: HashMap::from([(Vec::new(), tree.blocks.len())]),
            counts: HashMap::new(),
            block_counts: HashMap::new(),
            n_fresh: 0,
            planted: Vec::new(),
            gone: BTreeSet::new(),
            following: BTreeMap::new(),
            busy: BTreeSet::new(),
        };
        for block in tree.walk() {
            planter.n_children.insert(block.reference.clone(), block.children.len());
            *planter.block_counts.entry(block.content_id()).or_default() += 1;
            if block.is_leaf() {
                planter.count_words(block);
                let n = block.links.len() + block.images.len() + block.texts.len();
                let (reference, block) = (block.reference.clone(), block.clone());
                planter.leaves.push(PlantLeaf { reference, block, budget: n * 2 / 5, was_touched: false });
            }
        }
        planter
    }

    fn count_words(&mut self, block: &Block) {
        let links = block.links.iter().flat_map(|link| [&link.name, &link.url]);
        let images = block.images.iter().flat_map(|image| [&image.name, &image.source]);
        for key in links.chain(images).chain(block.texts.iter().map(|text| &text.text)) {
            *self.counts.entry(key.clone()).or_default() += 1;
        }
    }

    fn is_unique(&self, element: &Element) -> bool {
        let once = |key: &str| key.is_empty() || self.counts.get(key) == Some(&1);
        !element.text().is_empty() && once(element.text()) && once(element.url())
    }

    /// A word that does not occur on the page.
    fn new_word(&mut self) -> String {
        self.n_fresh += 1;
        format!("planted{}x{:04x}", self.n_fresh, self.rng.bits() & 0xffff)
    }

    fn change_elements(&mut self, rate: f64) {
        for kind in ElementKind::ALL {
            let mut open: Vec<(usize, Element)> = Vec::new();
            for (number, leaf) in self.leaves.iter().enumerate() {
                open.extend(block_elements(&leaf.block, kind).map(|element| (number, element)));
            }
            let n_each = (open.len() as f64 * rate).round() as usize;
            open.retain(|(_, element)| self.is_unique(element));
            self.rng.shuffle(&mut open);
            for operation in [OperationKind::Delete, OperationKind::Update, OperationKind::Move] {
                let mut n = 0;
                while n < n_each {
                    let Some((leaf, element)) = open.pop() else { break };
                    n += usize::from(self.plant_operation(operation, leaf, &element));
                }
            }
            for _ in 0..n_each {
                self.insert(kind);
            }
        }
    }

    /// Returns false if the operation on this element would not have a unique answer.
    fn plant_operation(&mut self, operation: OperationKind, leaf: usize, element: &Element) -> bool {
        if self.leaves[leaf].budget == 0 {
            return false;
        }
        let after = match operation {
            OperationKind::Update => match self.updated_element(element) {
                Some(updated) => {
                    replace_element(&mut self.leaves[leaf].block, element, Some(&updated));
                    updated.id()
                }
                None => return false,
            },
            OperationKind::Move => {
                let to = self.rng.below(self.leaves.len());
                if to == leaf || self.leaves[to].budget == 0 || !self.keep_leaf_between(leaf, to) {
                    return false;
                }
                replace_element(&mut self.leaves[leaf].block, element, None);
                self.put(to, element.clone());
                element.id()
            }
            _ => {
                replace_element(&mut self.leaves[leaf].block, element, None);
                NodeId::default()
            }
        };
        self.leaves[leaf].budget -= 1;
        self.leaves[leaf].was_touched = true;
        self.leaves[leaf].block.places = ElementPositions::default();
        self.planted.push(PlantedOperation {
            kind: operation,
            element: Some(element.kind()),
            before: element.id(),
            after,
        });
        true
    }

    /// Whether there is a leaf with content between two others. It is kept in place from now on.
    fn keep_leaf_between(&mut self, one: usize, other: usize) -> bool {
        let between = one.min(other) + 1..one.max(other);
        let has_content = |leaf: &&mut PlantLeaf| {
            leaf.block.links.len() + leaf.block.images.len() + leaf.block.texts.len() > 2
        };
        match self.leaves.get_mut(between).into_iter().flatten().find(has_content) {
            Some(leaf) => {
                leaf.was_touched = true;
                true
            }
            None => false,
        }
    }

    fn put(&mut self, leaf: usize, element: Element) {
        let place = self.rng.bits() as usize;
        let leaf = &mut self.leaves[leaf];
        leaf.was_touched = true;
        leaf.block.places = ElementPositions::default();
        leaf.budget = leaf.budget.saturating_sub(1);
        match element {
            Element::Link(link) => leaf.block.links.insert(place % (leaf.block.links.len() + 1), link),
            Element::Image(image) => leaf.block.images.insert(place % (leaf.block.images.len() + 1), image),
            Element::Text(text) => leaf.block.texts.insert(place % (leaf.block.texts.len() + 1), text),
        }
    }

    fn updated_element(&mut self, element: &Element) -> Option<Element> {
        let word = self.new_word();
        let url = format!("http://planted.example/{word}");
        let rename = self.rng.below(2) == 0;
        match element {
            Element::Link(link) if rename && !link.url.is_empty() => {
                Some(Element::Link(Link::new(word, link.url.as_str())))
            }
            Element::Link(link) => Some(Element::Link(Link::new(link.name.as_str(), url))),
            Element::Image(image) if rename && !image.source.is_empty() => {
                Some(Element::Image(Image::new(word, image.source.as_str())))
            }
            Element::Image(image) => Some(Element::Image(Image::new(image.name.as_str(), url))),
            Element::Text(text) => self.reword(&text.text).map(|text| Element::Text(Text::new(text))),
        }
    }

    /// Replaces up to three of ten words. A text of three words or fewer would become a different text.
    fn reword(&mut self, text: &str) -> Option<String> {
        let mut words: Vec<String> = text.split(' ').map(str::to_string).collect();
        if words.len() < 4 || n_words(text) != words.len() {
            return None;
        }
        let n_changed = 1 + self.rng.below(words.len() * 3 / 10);
        for _ in 0..n_changed {
            let place = self.rng.below(words.len());
            words[place] = self.new_word();
        }
        Some(words.join(" "))
    }

    fn insert(&mut self, kind: ElementKind) {
        let open: Vec<usize> = (0..self.leaves.len()).filter(|&leaf| self.leaves[leaf].budget > 0).collect();
        if open.is_empty() {
            return;
        }
        let leaf = open[self.rng.below(open.len())];
        let element = self.new_element(kind);
        let after = element.id();
        self.planted.push(PlantedOperation {
            kind: OperationKind::Insert,
            element: Some(kind),
            before: NodeId::default(),
            after,
        });
        self.put(leaf, element);
    }

    fn new_element(&mut self, kind: ElementKind) -> Element {
        let (name, url) = (self.new_word(), format!("http://planted.example/{}", self.new_word()));
        match kind {
            ElementKind::Link => Element::Link(Link::new(name, url)),
            ElementKind::Image => Element::Image(Image::new(name, url)),
            ElementKind::Text => {
                let words: Vec<String> = (0..8).map(|_| self.new_word()).collect();
                Element::Text(Text::new(words.join(" ")))
            }
        }
    }

    fn change_blocks(&mut self, rate: f64) {
        let n_each = (self.leaves.len() as f64 * rate).round() as usize;
        let mut open: Vec<usize> =
            (0..self.leaves.len()).filter(|&leaf| self.can_change_block(leaf)).collect();
        self.rng.shuffle(&mut open);
        for operation in [OperationKind::Delete, OperationKind::Move, OperationKind::Insert] {
            let mut n = 0;
            while n < n_each {
                let Some(leaf) = open.pop() else { break };
                n += usize::from(self.change_block(operation, leaf));
            }
        }
    }

    /// Whether a leaf is unchanged, unique and not empty.
    fn can_change_block(&self, leaf: usize) -> bool {
        let leaf = &self.leaves[leaf];
        let unlike_others = self.block_counts.get(&leaf.block.content_id()) == Some(&1);
        let block = &leaf.block;
        let n = block.links.len() + block.images.len() + block.texts.len();
        !leaf.was_touched && unlike_others && n > 0
    }

    fn change_block(&mut self, operation: OperationKind, leaf: usize) -> bool {
        let reference = self.leaves[leaf].reference.clone();
        let parent = parent(&reference);
        let n_siblings = self.n_children.get(&parent).copied().unwrap_or(0);
        if self.busy.contains(&parent) || (n_siblings < 3 && operation != OperationKind::Insert) {
            return false;
        }
        let none = NodeId::default();
        let id = self.leaves[leaf].block.content_id();
        let (before, after) = match operation {
            OperationKind::Insert => {
                let block = self.new_block();
                let id = block.content_id();
                self.following.entry(reference).or_default().push(block);
                (none, id)
            }
            OperationKind::Delete => {
                self.gone.insert(reference);
                (id, none)
            }
            _ => {
                let Some(to) = self.move_target(leaf, &parent) else { return false };
                self.gone.insert(reference);
                let block = self.leaves[leaf].block.clone();
                self.following.entry(to).or_default().push(block);
                (id, id)
            }
        };
        self.busy.insert(parent);
        self.planted.push(PlantedOperation { kind: operation, element: None, before, after });
        true
    }

    /// A leaf of a different parent, after which a block may be moved.
    fn move_target(&mut self, moved: usize, parent: &[u16]) -> Option<Vec<u16>> {
        let free = |leaf: &&PlantLeaf| {
            let home = self::parent(&leaf.reference);
            home != parent && !self.busy.contains(&home) && !self.gone.contains(&leaf.reference)
        };
        let homes = self.leaves.iter().enumerate().filter(|(_, leaf)| free(leaf));
        let homes: Vec<(usize, Vec<u16>)> =
            homes.map(|(number, leaf)| (number, leaf.reference.clone())).collect();
        let (number, chosen) = homes.get(self.rng.below(homes.len()))?.clone();
        if !self.keep_leaf_between(moved, number) {
            return None;
        }
        self.busy.insert(self::parent(&chosen));
        Some(chosen)
    }

    /// Gives the block its own column. Otherwise it could be mistaken for the neighbour whose place it takes.
    fn new_block(&mut self) -> Block {
        let links = (0..2).map(|_| self.new_element(ElementKind::Link));
        let mut block = Block::leaf(Vec::new(), Vec::new(), Vec::new());
        for element in links.collect::<Vec<_>>() {
            if let Element::Link(link) = element {
                block.links.push(link);
            }
        }
        if let Element::Text(text) = self.new_element(ElementKind::Text) {
            block.texts.push(text);
        }
        block.rect = Rect { x: 1.0, y: 0.0, w: 37.0, h: 40.0 };
        block
    }

    fn rebuild(&self, blocks: &[Block], above: &[u16]) -> Vec<Block> {
        let mut after = Vec::new();
        for (number, block) in (1u16..).zip(blocks) {
            let reference: Vec<u16> = above.iter().copied().chain([number]).collect();
            let leaf = self.leaves.binary_search_by(|leaf| leaf.reference.cmp(&reference));
            if !self.gone.contains(&reference) {
                let children = self.rebuild(&block.children, &reference);
                let content = leaf.map_or(block, |leaf| &self.leaves[leaf].block);
                after.push(Block { children, ..content.clone() });
            }
            after.extend(self.following.get(&reference).into_iter().flatten().cloned());
        }
        after
    }
}

fn parent(reference: &[u16]) -> Vec<u16> {
    reference.split_last().map(|(_, parent)| parent.to_vec()).unwrap_or_default()
}

fn block_elements(block: &Block, kind: ElementKind) -> Box<dyn Iterator<Item = Element> + '_> {
    match kind {
        ElementKind::Link => Box::new(block.links.iter().cloned().map(Element::Link)),
        ElementKind::Image => Box::new(block.images.iter().cloned().map(Element::Image)),
        ElementKind::Text => Box::new(block.texts.iter().cloned().map(Element::Text)),
    }
}

/// Replaces or removes an element.
fn replace_element(block: &mut Block, element: &Element, by: Option<&Element>) {
    fn edit<T: PartialEq + Clone>(list: &mut Vec<T>, item: &T, by: Option<T>) {
        if let Some(place) = list.iter().position(|other| other == item) {
            list.splice(place..=place, by);
        }
    }
    match (element, by) {
        (Element::Link(link), Some(Element::Link(by))) => edit(&mut block.links, link, Some(by.clone())),
        (Element::Link(link), _) => edit(&mut block.links, link, None),
        (Element::Image(image), Some(Element::Image(by))) => edit(&mut block.images, image, Some(by.clone())),
        (Element::Image(image), _) => edit(&mut block.images, image, None),
        (Element::Text(text), Some(Element::Text(by))) => edit(&mut block.texts, text, Some(by.clone())),
        (Element::Text(text), _) => edit(&mut block.texts, text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perennial_core::page::diff::diff;
    use perennial_core::page::importance::{ImportanceConfig, ImportanceForm, importance};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn tree(blocks: Vec<Block>) -> BlockTree {
        let mut tree = BlockTree { url: "http://a.org/".into(), blocks, ..BlockTree::default() };
        tree.seal();
        tree
    }

    /// The delta turns the earlier version into the later one, also after writing and reading it.
    fn check(before: &BlockTree, after: &BlockTree) -> Delta {
        let delta = diff(before, after);
        assert_eq!(&delta.apply(before).unwrap(), after, "{delta:#?}");
        assert_eq!(Delta::from_xml(&delta.to_operations_xml()).unwrap(), delta);
        assert_eq!(&Delta::from_xml(&delta.to_xml(after)).unwrap().apply(before).unwrap(), after);
        delta
    }

    #[test]
    fn planted_changes_come_back() {
        let mut total = Recovery::default();
        for seed in 0..20 {
            let before = news_page(seed);
            let (after, planted) = plant(&before, PlantRates::default(), seed);
            let found = measure_recovery(&before, &planted, &check(&before, &after));
            total.add(found);
        }
        assert!(total.n_planted > 400, "{total:?}");
        assert!(total.precision() >= 0.99 && total.recall() >= 0.99, "{total:?}");
    }

    /// A page like those of news sites: menu, teasers in columns, article, footer.
    fn news_page(seed: u64) -> BlockTree {
        let words = |salt: u64, n: u64| {
            let word = |i: u64| format!("w{}", (salt * 7919 + i * 104_729 + seed) % 500);
            (0..n).map(word).collect::<Vec<_>>().join(" ")
        };
        let links = |salt: u64, n: u64| {
            (0..n)
                .map(|i| Link::new(words(salt * 31 + i, 4), format!("http://a.org/{salt}/{i}")))
                .collect::<Vec<_>>()
        };
        let teaser = |salt: u64| {
            let image = Image::new(format!("photo {salt}"), format!("http://a.org/{salt}.jpg"));
            Block::leaf(links(salt, 3), vec![image], (0..4).map(|i| Text::new(words(salt + i, 12))).collect())
        };
        let column = |salt: u64, n: u64| Block::inner((0..n).map(|i| teaser(salt * 100 + i)).collect());
        let article = Block::leaf(vec![], vec![], (0..30).map(|i| Text::new(words(9000 + i, 40))).collect());
        let menu = Block::leaf(links(77, 20), vec![], vec![]);
        let footer =
            Block::leaf(links(78, 8), vec![], vec![Text::new("All rights reserved by nobody at all")]);
        let main = Block::inner(vec![column(1, 6), column(2, 5), article, column(3, 4)]);
        tree(vec![menu, main, column(4, 5), footer])
    }

    fn any_leaf() -> impl Strategy<Value = Block> {
        let link = ("[abc]{0,2}", "/[xy]{0,2}").prop_map(|(name, url)| Link::new(name, url));
        let image = ("[ab]{0,1}", "/[xy]{0,2}").prop_map(|(name, source)| Image::new(name, source));
        let text = "([abcd] ){0,5}<?".prop_map(Text::new);
        (vec(link, 0..4), vec(image, 0..3), vec(text, 0..4), 0.01..1.0f32).prop_map(
            |(links, images, texts, importance)| Block { importance, ..Block::leaf(links, images, texts) },
        )
    }

    fn any_tree() -> impl Strategy<Value = BlockTree> {
        let block = any_leaf().prop_recursive(4, 24, 4, |child| vec(child, 1..4).prop_map(Block::inner));
        vec(block, 0..5).prop_map(tree)
    }

    proptest! {
        #[test]
        fn planted_trees_come_back_and_are_weighed(before in any_tree(), seed in any::<u64>()) {
            let (after, _) = plant(&before, PlantRates { elements: 0.3, blocks: 0.3 }, seed);
            let delta = check(&before, &after);
            for (form, _) in ImportanceForm::NAMES {
                let value = importance(&delta, &ImportanceConfig::new(form)).get();
                prop_assert!((0.0..=1.0).contains(&value), "{}: {}", form, value);
            }
        }
    }
}
