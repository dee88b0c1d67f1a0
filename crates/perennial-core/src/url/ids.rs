//! Numbers of pages and sites in an archive.

/// A followed URL, as a dense number that the store assigns. Columns about pages are indexed by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId(pub u32);

/// A host for politeness, as a dense number that the store assigns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SiteId(pub u32);
