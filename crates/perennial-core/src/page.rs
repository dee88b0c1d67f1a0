//! The nouns of an archive: which page, which site.

/// A URL we follow, as a dense number that the store hands out: pages are columns, not objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId(pub u32);

/// The host that politeness counts, as a dense number that the store hands out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SiteId(pub u32);
