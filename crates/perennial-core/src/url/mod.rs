//! A URL as written -> one form per page, and whether it is worth fetching.
//!
//! | module | what becomes what |
//! |---|---|
//! | `ids` | the numbers of pages and sites |
//! | [`canonical`] | a URL as written -> one form per page |
//! | [`trap`] | a URL -> whether it is one of endlessly many |
//! | [`twin`] | a URL -> the shorter one that names the same page |
//! | [`scope`] | a seed and its limits -> which URLs belong to it |

mod ids;

pub mod canonical;

pub mod trap;

pub mod twin;

pub mod scope;

pub use ids::{PageId, SiteId};
