//! A URL as written -> one form per page, and whether it is worth fetching.
//!
//! | module | what becomes what |
//! |---|---|
//! | `ids` | the numbers of pages and sites |
//! | [`canonical`] | a URL as written -> one form per page |
//! | [`trap`] | a URL -> whether a server could generate endless URLs like it |
//! | [`alias`] | two URLs -> whether one is a longer name of the other |
//! | [`scope`] | a seed and its limits -> the URLs that belong to it |

mod ids;

pub mod canonical;

pub mod trap;

pub mod alias;

pub mod scope;

pub use ids::{PageId, SiteId};
