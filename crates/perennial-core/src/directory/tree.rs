//! Addresses -> the directory tree of a site, shared by all its versions (P-NEAR 3.1).
//!
//! A node is a directory or a page, and knows its label and its parent. A query belongs to the label of its page and is never
//! a level. An address that is both page and directory is a directory with a page of its own inside.

use std::collections::HashMap;

use super::labels::Labels;

/// The number of a node; [`Tree::ROOT`] is the site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Node(pub u32);

/// The label of the page `/a/` inside the directory `a`.
const INDEX: &str = "/";
/// The label of the page `/a` inside the directory `a`.
const ITSELF: &str = "";
/// Levels below the site. What lies deeper is one label, so that no address makes a tree of thousands of levels.
const MOST_LEVELS: usize = 32;

const NONE: u32 = u32::MAX;

/// The union of all versions of a site: nodes are added and never removed.
#[derive(Clone, Debug)]
pub struct Tree {
    labels: Labels,
    parent: Vec<u32>,
    label: Vec<u32>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    previous_sibling: Vec<u32>,
    /// Levels below the root; the highest bit is set for pages.
    level: Vec<u8>,
    by_label: HashMap<(u32, u32), u32>,
}

/// The bit of `level` that says "page".
const IS_PAGE: u8 = 0x80;

impl Tree {
    /// The site itself.
    pub const ROOT: Node = Node(0);

    /// A site without pages.
    pub fn new(site: &str) -> Tree {
        let mut labels = Labels::default();
        let label = labels.number(site);
        Tree {
            labels,
            parent: vec![NONE],
            label: vec![label],
            first_child: vec![NONE],
            next_sibling: vec![NONE],
            previous_sibling: vec![NONE],
            level: vec![0],
            by_label: HashMap::new(),
        }
    }

    /// The node of a page, a new one if it is not there. `path` is what follows the host, with its query, or the path of a
    /// file.
    pub fn page(&mut self, path: &str) -> Node {
        let (folders, name) = parts(path);
        let mut at = Tree::ROOT.0;
        for folder in folders {
            at = self.directory_in(at, folder);
        }
        let label = self.labels.number(name);
        let found = self.by_label.get(&(at, label)).copied();
        let node = match found {
            Some(node) if self.is_page(Node(node)) => node,
            Some(directory) => self.page_in(directory, ITSELF),
            None => self.add(at, label, true),
        };
        Node(node)
    }

    /// The node of a directory that is there, by its path without a slash at the end.
    pub fn directory(&self, path: &str) -> Option<Node> {
        let mut at = Tree::ROOT.0;
        for folder in path.split('/').filter(|folder| !folder.is_empty()) {
            at = *self.by_label.get(&(at, self.labels.find(folder)?))?;
        }
        Some(Node(at)).filter(|node| !self.is_page(*node))
    }

    fn page_in(&mut self, directory: u32, name: &str) -> u32 {
        let label = self.labels.number(name);
        match self.by_label.get(&(directory, label)) {
            Some(&node) => node,
            None => self.add(directory, label, true),
        }
    }

    /// A page of that name becomes a directory with the page inside.
    fn directory_in(&mut self, parent: u32, name: &str) -> u32 {
        let label = self.labels.number(name);
        match self.by_label.get(&(parent, label)).copied() {
            Some(node) if !self.is_page(Node(node)) => node,
            Some(page) => {
                self.by_label.remove(&(parent, label));
                let directory = self.add(parent, label, false);
                self.move_into(page, parent, directory);
                directory
            }
            None => self.add(parent, label, false),
        }
    }

    fn add(&mut self, parent: u32, label: u32, is_page: bool) -> u32 {
        let node = self.parent.len() as u32;
        self.parent.push(parent);
        self.label.push(label);
        self.first_child.push(NONE);
        self.next_sibling.push(NONE);
        self.previous_sibling.push(NONE);
        self.link(node, parent);
        let level = (self.level[parent as usize] & !IS_PAGE) + 1;
        self.level.push(if is_page { level | IS_PAGE } else { level });
        self.by_label.insert((parent, label), node);
        node
    }

    /// Makes a node the first of a directory.
    fn link(&mut self, node: u32, parent: u32) {
        let next = std::mem::replace(&mut self.first_child[parent as usize], node);
        self.next_sibling[node as usize] = next;
        self.previous_sibling[node as usize] = NONE;
        if next != NONE {
            self.previous_sibling[next as usize] = node;
        }
    }

    fn unlink(&mut self, node: u32, parent: u32) {
        let (previous, next) = (self.previous_sibling[node as usize], self.next_sibling[node as usize]);
        match previous {
            NONE => self.first_child[parent as usize] = next,
            previous => self.next_sibling[previous as usize] = next,
        }
        if next != NONE {
            self.previous_sibling[next as usize] = previous;
        }
    }

    fn move_into(&mut self, page: u32, parent: u32, directory: u32) {
        self.unlink(page, parent);
        self.link(page, directory);
        self.label[page as usize] = self.labels.number(ITSELF);
        self.parent[page as usize] = directory;
        self.level[page as usize] = (self.level[directory as usize] + 1) | IS_PAGE;
        self.by_label.insert((directory, self.label[page as usize]), page);
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Whether there is no page.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// Whether a node is a page.
    pub fn is_page(&self, node: Node) -> bool {
        self.level[node.0 as usize] & IS_PAGE != 0
    }

    /// Levels below the site.
    pub fn level(&self, node: Node) -> usize {
        usize::from(self.level[node.0 as usize] & !IS_PAGE)
    }

    /// The directory in which a node lies.
    pub fn parent(&self, node: Node) -> Option<Node> {
        Some(self.parent[node.0 as usize]).filter(|&parent| parent != NONE).map(Node)
    }

    /// The name of a node within its directory.
    pub fn label(&self, node: Node) -> &str {
        self.labels.name(self.label[node.0 as usize])
    }

    /// The nodes of a directory, the latest first.
    pub fn children(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        let next =
            |node: &Node| Some(self.next_sibling[node.0 as usize]).filter(|&next| next != NONE).map(Node);
        let first = Some(self.first_child[node.0 as usize]).filter(|&first| first != NONE).map(Node);
        std::iter::successors(first, next)
    }

    /// The directory and those that it lies in, the site last.
    pub fn upwards(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        std::iter::successors(Some(node), |node| self.parent(*node))
    }

    /// Whether `node` lies in `directory` or is it.
    pub fn is_within(&self, node: Node, directory: Node) -> bool {
        let n_up = self.level(node).checked_sub(self.level(directory));
        n_up.is_some_and(|n| self.upwards(node).nth(n) == Some(directory))
    }

    /// The path of a node below the site, a directory with a slash at its end; the site is `/`.
    pub fn path(&self, node: Node) -> String {
        let mut names: Vec<&str> =
            self.upwards(node).filter(|up| *up != Tree::ROOT).map(|up| self.label(up)).collect();
        names.reverse();
        let mut path = String::new();
        for name in names {
            path.push('/');
            path.push_str(if name == INDEX { ITSELF } else { name });
        }
        if !self.is_page(node) {
            path.push('/');
        } else if self.label(node) == ITSELF {
            path.pop();
        }
        path
    }

    /// Bytes that the tree takes.
    pub fn n_bytes(&self) -> usize {
        let columns = 20 * self.parent.capacity() + self.level.capacity();
        columns + 13 * self.by_label.capacity() + self.labels.n_bytes()
    }
}

/// The folders of a path, and the name of its page.
fn parts(path: &str) -> (Vec<&str>, &str) {
    let path = path.trim_start_matches('/');
    let end_of_path = path.find('?').unwrap_or(path.len());
    let mut folders = Vec::new();
    let mut rest = path;
    while let Some(slash) = rest.find('/') {
        let is_query = path.len() - rest.len() + slash >= end_of_path;
        if is_query || folders.len() == MOST_LEVELS {
            break;
        }
        if slash > 0 {
            folders.push(&rest[..slash]);
        }
        rest = &rest[slash + 1..];
    }
    (folders, if rest.is_empty() { INDEX } else { rest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels_below(tree: &Tree, path: &str) -> Vec<String> {
        let directory = tree.directory(path).unwrap();
        let mut names: Vec<String> =
            tree.children(directory).map(|node| tree.label(node).to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_query_is_part_of_its_page_and_never_a_level() {
        let mut tree = Tree::new("a.example");
        let page = tree.page("/find/it?path=/x/y&z=1");
        assert_eq!(tree.path(page), "/find/it?path=/x/y&z=1");
        assert_eq!(tree.level(page), 2);
        assert_eq!(labels_below(&tree, "find"), ["it?path=/x/y&z=1"]);
    }

    #[test]
    fn a_page_that_is_also_a_directory_lies_inside_it() {
        for paths in [["/docs", "/docs/x"], ["/docs/x", "/docs"]] {
            let mut tree = Tree::new("a.example");
            let nodes = paths.map(|path| tree.page(path));
            tree.page("/other");
            assert_eq!(labels_below(&tree, "docs"), ["", "x"], "{paths:?}");
            assert_eq!(labels_below(&tree, ""), ["docs", "other"]);
            assert_eq!(nodes.map(|node| tree.path(node)), paths.map(str::to_owned));
            assert_eq!(paths.map(|path| tree.page(path)), nodes, "found again");
            let index = tree.page("/docs/");
            assert_eq!(tree.path(index), "/docs/");
            assert_eq!(labels_below(&tree, "docs"), ["", "/", "x"]);
        }
    }

    #[test]
    fn depth_is_bounded() {
        let mut tree = Tree::new("a.example");
        let page = tree.page(&"/x".repeat(10_000));
        assert_eq!(tree.level(page), MOST_LEVELS + 1);
    }

    proptest! {
        #[test]
        fn a_path_has_one_node_whatever_else_is_there(
            paths in prop::collection::vec("(/[ab]{0,1}){1,4}(\\?/a){0,1}", 1..30),
        ) {
            let mut tree = Tree::new("a.example");
            let nodes: Vec<Node> = paths.iter().map(|path| tree.page(path)).collect();
            for (path, node) in paths.iter().zip(&nodes) {
                prop_assert_eq!(tree.page(path), *node);
                prop_assert!(tree.is_page(*node));
                let again = tree.path(*node);
                prop_assert_eq!(tree.page(&again), *node, "{} {}", path, again);
                for up in tree.upwards(*node).skip(1) {
                    prop_assert!(!tree.is_page(up));
                    prop_assert!(tree.is_within(*node, up));
                    prop_assert!(tree.children(up).any(|child| tree.is_within(*node, child)));
                }
            }
            for directory in (0..tree.len() as u32).map(Node) {
                let mut labels: Vec<&str> = tree.children(directory).map(|node| tree.label(node)).collect();
                let n = labels.len();
                labels.sort_unstable();
                labels.dedup();
                prop_assert_eq!(labels.len(), n, "no two siblings alike");
            }
        }
    }
}
