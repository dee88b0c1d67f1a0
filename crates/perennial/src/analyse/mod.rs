//! Captured bytes -> what a reader saw, what changed, and how much it matters; kept in the state.
//!
//! This is the one place where captures are analysed: the crawler hands each new capture to it, an import
//! its whole history, `perennial analyse` whatever was left. The algorithms are in the core
//! ([`perennial_core::observe`]); here they get their bytes and their results are kept.
//!
//! | file | what becomes what |
//! |---|---|
//! | `reader` | threads that ask -> connections to the state |
//! | `requisites` | an address and a time -> the captured stylesheet or image that a layout needs |
//! | `plans` | layouts of earlier captures -> the layout of a page with the same structure |
//! | `analyst` | text of a page and what was known of it -> an [`perennial_core::observe::Observation`] |
//! | `filters` | filter lists -> is an address an advertisement |
//! | `compare` | two versions of a page -> what changed, as JSON and text |
//! | `lesson` | what a look showed, and what was known -> a [`Lesson`], and what is known from now on |
//! | `spec` | what a user calls a page: a file, Vi-XML, `url@time`, a live page -> its text and its tree |
//! | `backlog` | looks without a lesson -> lessons, page by page, on all cores |

mod analyst;
mod backlog;
mod compare;
mod filters;
mod lesson;
mod plans;
mod reader;
mod requisites;
mod spec;

pub use analyst::{Analyst, Look};
pub use backlog::{Analysed, PageAnalyst, PageLessons, analyse_backlog};
pub use compare::{Comparison, Entry, Report, entry};
pub use filters::{Filters, update as update_filters};
pub use lesson::{KnownPage, Lesson, tree_at, unpack};
pub use reader::Readers;
pub use requisites::Requisites;
pub use spec::{Page, PageSpec};
