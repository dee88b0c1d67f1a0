//! Captured bytes -> what a reader saw, what changed, and its importance; stored in the state.
//!
//! All captures are analysed here: each new capture of a crawl, the whole history of an import, and with
//! `perennial analyse` those that no command has analysed yet. The algorithms are in the core
//! ([`perennial_core::page::observe`]); this module reads their input and stores their results.
//!
//! | file | what becomes what |
//! |---|---|
//! | `reader` | threads that read the state -> a connection for each |
//! | `subresources` | an address and a time -> the captured stylesheet or image that a layout needs |
//! | `plans` | layouts of earlier captures -> the layout of a page with the same structure, without the engine |
//! | `analyst` | the text of a page and what was known of it -> a [`perennial_core::page::observe::VersionComparison`] |
//! | `filters` | filter lists -> whether an address is an advertisement |
//! | `changed` | a change in the state -> the operations between its two trees, weighed |
//! | `bulk` | a filter -> all trees or all deltas as one XML document |
//! | `compare` | two versions of a page -> what changed, as JSON and text |
//! | `part` | a selector -> the words of that part in both versions of a change; which changes touched it |
//! | `analysis` | what a capture showed, and the page's state before -> an [`Analysis`](perennial_archive::store::Analysis), and the state after |
//! | `spec` | a page named on the command line: a file, Vi-XML, `url@time`, a URL -> its text and its tree |
//! | `backlog` | captures that were not analysed -> analyses, page by page, on all cores |

mod analysis;
mod analyst;
mod backlog;
mod bulk;
mod changed;
mod compare;
mod filters;
mod part;
mod plans;
mod reader;
mod spec;
mod subresources;

pub use analyst::{Analyst, PageText};
pub use backlog::{BacklogCounts, Headline, PageAnalyses, PageAnalyst, analyse_backlog};
pub use bulk::{write_deltas, write_trees};
pub use changed::{Changed, ChangedReader};
pub use compare::{
    Comparison, ComparisonReport, Content, Entry, History, KnownChange, headlines, reported_entries,
};
pub use filters::{Filters, update as update_filters};
pub use part::{OtherImportance, PartEffect, PartFate, PartQuestion, part_texts};
pub use reader::Readers;
pub use spec::{LoadedPage, PageSpec};
pub use subresources::Requisites;
