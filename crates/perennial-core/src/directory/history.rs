//! Versions of a site -> a [`SiteHistory`]: added, changed and removed pages by version.

use super::delta::{DeltaTree, PageTransition, Significance};
use super::tree::{DirectoryNode, DirectoryTree};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageChange {
    /// Number of the page within its history.
    pub page: u32,
    pub change: PageTransition,
    /// Size of the page afterwards; 0 if unknown.
    pub bytes: u32,
}

/// One version of a site.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiteVersion {
    /// As in the source of the history.
    pub date: String,
    /// The differences from the previous version; for the first version, all pages.
    pub changes: Vec<PageChange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SiteKind {
    /// As served.
    #[default]
    Served,
    /// The sources of a site generator, whose directories only resemble URLs.
    Source,
}

/// The versions of a site, as differences.
#[derive(Clone, Debug)]
pub struct SiteHistory {
    /// The site, or the name of the file.
    pub name: String,
    pub kind: SiteKind,
    /// The union of all versions.
    pub tree: DirectoryTree,
    /// The node of each page, by its number.
    pub nodes: Vec<DirectoryNode>,
    /// Oldest first.
    pub versions: Vec<SiteVersion>,
    /// Number of impossible changes, such as the removal of an unknown page. They were skipped.
    pub n_skipped: usize,
    present: Vec<bool>,
}

impl SiteHistory {
    /// The last label of the host, such as `org`; `None` if the name is not a host.
    pub fn domain(&self) -> Option<&str> {
        let (rest, domain) = self.name.rsplit_once('.')?;
        let is_host = !rest.is_empty()
            && self.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
        (is_host && domain.len() >= 2 && domain.bytes().all(|byte| byte.is_ascii_alphabetic()))
            .then_some(domain)
    }

    pub fn new(name: &str) -> SiteHistory {
        SiteHistory {
            name: name.to_owned(),
            kind: SiteKind::Served,
            tree: DirectoryTree::new(name),
            nodes: Vec::new(),
            versions: Vec::new(),
            n_skipped: 0,
            present: Vec::new(),
        }
    }

    /// Starts the next version.
    pub fn begin_version(&mut self, date: &str) {
        self.versions.push(SiteVersion { date: date.to_owned(), changes: Vec::new() });
    }

    /// Adds a page and returns its number.
    pub fn add_page(&mut self, path: &str) -> u32 {
        self.nodes.push(self.tree.page(path));
        self.present.push(false);
        self.nodes.len() as u32 - 1
    }

    /// Adds a change to the latest version. An impossible one is skipped and counted.
    pub fn add_change(&mut self, page: u32, change: PageTransition, bytes: u32) {
        let is_there = &mut self.present[page as usize];
        let is_possible = *is_there != matches!(change, PageTransition::Inserted);
        match self.versions.last_mut().filter(|_| is_possible) {
            Some(version) => version.changes.push(PageChange { page, change, bytes }),
            None => self.n_skipped += 1,
        }
        if is_possible {
            *is_there = !matches!(change, PageTransition::Deleted);
        }
    }

    /// The General Delta Tree of some transitions, starting from the pages that existed before them.
    pub fn delta<'a>(
        &self,
        pages_before: impl IntoIterator<Item = u32>,
        transitions: impl ExactSizeIterator<Item = &'a [PageChange]>,
        significance: Significance,
    ) -> DeltaTree {
        let mut delta = DeltaTree::with_tree(self.tree.clone(), transitions.len(), significance);
        delta.begin(pages_before.into_iter().map(|page| self.nodes[page as usize]));
        for changes in transitions {
            delta.add(changes.iter().map(|change| (self.nodes[change.page as usize], change.change)));
        }
        delta
    }

    /// The General Delta Tree of the last `n` versions.
    pub fn delta_of_last(&self, n: usize, significance: Significance) -> DeltaTree {
        let n_transitions = n.max(1).min(self.versions.len()).saturating_sub(1);
        let (before, after) = self.versions.split_at(self.versions.len() - n_transitions);
        let mut present = vec![false; self.nodes.len()];
        for change in before.iter().flat_map(|version| &version.changes) {
            present[change.page as usize] = change.change != PageTransition::Deleted;
        }
        let pages = (0..present.len() as u32).filter(|&page| present[page as usize]);
        self.delta(pages, after.iter().map(|version| version.changes.as_slice()), significance)
    }
}
