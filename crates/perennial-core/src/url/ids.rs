//! The numbers by which an archive names its pages and sites.

/// A URL that is followed, as a dense number that the store hands out. What is known of pages lies in columns by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId(pub u32);

/// The host that politeness counts, as a dense number that the store hands out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SiteId(pub u32);
