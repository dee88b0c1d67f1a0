//! URLs -> the directory tree of a site, shared by all its versions (P-NEAR 3.1).
//!
//! A node is a directory or a page, and has a label and a parent. A query belongs to the label of its page and is
//! never a level. A URL that is both page and directory is a directory that contains the page.

use std::collections::HashMap;

use super::labels::Labels;

/// The number of a node; [`DirectoryTree::ROOT`] is the site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DirectoryNode(pub u32);

/// The label of the page `/a/` inside the directory `a`.
const INDEX: &str = "/";
/// The label of the page `/a` inside the directory `a`.
const ITSELF: &str = "";
/// Levels below the site. Deeper paths are one label, so no URL creates thousands of levels.
const MOST_LEVELS: usize = 32;

const NONE: u32 = u32::MAX;

/// The nodes of all versions of a site. Nodes are never removed.
#[derive(Clone, Debug)]
pub struct DirectoryTree {
    labels: Labels,
    parent: Vec<u32>,
    label: Vec<u32>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    previous_sibling: Vec<u32>,
    /// Levels below the root; pages have the highest bit set.
    level: Vec<u8>,
    by_label: HashMap<(u32, u32), u32>,
}

/// The bit of `level` that marks a page.
const IS_PAGE: u8 = 0x80;

impl DirectoryTree {
    /// The site itself.
    pub const ROOT: DirectoryNode = DirectoryNode(0);

    /// A site without pages.
    pub fn new(site: &str) -> DirectoryTree {
        let mut labels = Labels::default();
        let label = labels.number(site);
        DirectoryTree {
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

    /// The node of a page, which is added if it is new. `path` is the URL after the host, including its query, or the
    /// path of a file.
    pub fn page(&mut self, path: &str) -> DirectoryNode {
        let (folders, name) = split_path(path);
        let mut at = DirectoryTree::ROOT.0;
        for folder in folders {
            at = self.directory_in(at, folder);
        }
        let label = self.labels.number(name);
        let found = self.by_label.get(&(at, label)).copied();
        let node = match found {
            Some(node) if self.is_page(DirectoryNode(node)) => node,
            Some(directory) => self.page_in(directory, ITSELF),
            None => self.add(at, label, true),
        };
        DirectoryNode(node)
    }

    /// The node of an existing directory, by its path without a slash at the end.
    pub fn directory(&self, path: &str) -> Option<DirectoryNode> {
        let mut at = DirectoryTree::ROOT.0;
        for folder in path.split('/').filter(|folder| !folder.is_empty()) {
            at = *self.by_label.get(&(at, self.labels.find(folder)?))?;
        }
        Some(DirectoryNode(at)).filter(|node| !self.is_page(*node))
    }

    fn page_in(&mut self, directory: u32, name: &str) -> u32 {
        let label = self.labels.number(name);
        match self.by_label.get(&(directory, label)) {
            Some(&node) => node,
            None => self.add(directory, label, true),
        }
    }

    /// The node of a directory. A page of that name becomes a directory that contains the page.
    fn directory_in(&mut self, parent: u32, name: &str) -> u32 {
        let label = self.labels.number(name);
        match self.by_label.get(&(parent, label)).copied() {
            Some(node) if !self.is_page(DirectoryNode(node)) => node,
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

    /// Makes a node the first child of a directory.
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

    pub fn len(&self) -> usize {
        self.parent.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    pub fn is_page(&self, node: DirectoryNode) -> bool {
        self.level[node.0 as usize] & IS_PAGE != 0
    }

    pub fn level(&self, node: DirectoryNode) -> usize {
        usize::from(self.level[node.0 as usize] & !IS_PAGE)
    }

    pub fn parent(&self, node: DirectoryNode) -> Option<DirectoryNode> {
        Some(self.parent[node.0 as usize]).filter(|&parent| parent != NONE).map(DirectoryNode)
    }

    pub fn label(&self, node: DirectoryNode) -> &str {
        self.labels.name(self.label[node.0 as usize])
    }

    /// The children of a directory, the latest first.
    pub fn children(&self, node: DirectoryNode) -> impl Iterator<Item = DirectoryNode> + '_ {
        let next = |node: &DirectoryNode| {
            Some(self.next_sibling[node.0 as usize]).filter(|&next| next != NONE).map(DirectoryNode)
        };
        let first = Some(self.first_child[node.0 as usize]).filter(|&first| first != NONE).map(DirectoryNode);
        std::iter::successors(first, next)
    }

    /// A node and its ancestors, the site last.
    pub fn upwards(&self, node: DirectoryNode) -> impl Iterator<Item = DirectoryNode> + '_ {
        std::iter::successors(Some(node), |node| self.parent(*node))
    }

    /// Whether `node` is `directory` or inside it.
    pub fn is_within(&self, node: DirectoryNode, directory: DirectoryNode) -> bool {
        let n_up = self.level(node).checked_sub(self.level(directory));
        n_up.is_some_and(|n| self.upwards(node).nth(n) == Some(directory))
    }

    /// The path of a node below the site; directories end with a slash, and the site is `/`.
    pub fn path(&self, node: DirectoryNode) -> String {
        let mut names: Vec<&str> =
            self.upwards(node).filter(|up| *up != DirectoryTree::ROOT).map(|up| self.label(up)).collect();
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

    pub fn n_bytes(&self) -> usize {
        let columns = 20 * self.parent.capacity() + self.level.capacity();
        columns + 13 * self.by_label.capacity() + self.labels.n_bytes()
    }
}

/// The directories of a path, and the name of its page.
fn split_path(path: &str) -> (Vec<&str>, &str) {
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

    fn labels_below(tree: &DirectoryTree, path: &str) -> Vec<String> {
        let directory = tree.directory(path).unwrap();
        let mut names: Vec<String> =
            tree.children(directory).map(|node| tree.label(node).to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_query_is_part_of_its_page_and_never_a_level() {
        let mut tree = DirectoryTree::new("a.example");
        let page = tree.page("/find/it?path=/x/y&z=1");
        assert_eq!(tree.path(page), "/find/it?path=/x/y&z=1");
        assert_eq!(tree.level(page), 2);
        assert_eq!(labels_below(&tree, "find"), ["it?path=/x/y&z=1"]);
    }

    #[test]
    fn a_page_that_is_also_a_directory_lies_inside_it() {
        for paths in [["/docs", "/docs/x"], ["/docs/x", "/docs"]] {
            let mut tree = DirectoryTree::new("a.example");
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
        let mut tree = DirectoryTree::new("a.example");
        let page = tree.page(&"/x".repeat(10_000));
        assert_eq!(tree.level(page), MOST_LEVELS + 1);
    }

    proptest! {
        #[test]
        fn a_path_has_one_node_whatever_else_is_there(
            paths in prop::collection::vec("(/[ab]{0,1}){1,4}(\\?/a){0,1}", 1..30),
        ) {
            let mut tree = DirectoryTree::new("a.example");
            let nodes: Vec<DirectoryNode> = paths.iter().map(|path| tree.page(path)).collect();
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
            for directory in (0..tree.len() as u32).map(DirectoryNode) {
                let mut labels: Vec<&str> = tree.children(directory).map(|node| tree.label(node)).collect();
                let n = labels.len();
                labels.sort_unstable();
                labels.dedup();
                prop_assert_eq!(labels.len(), n, "no two siblings alike");
            }
        }
    }
}
