//! Captured bytes -> what a reader saw, what changed, and its importance; stored in the state.
//!
//! All captures are analysed here: each new capture of a crawl, the whole history of an import, and with
//! `perennial analyse` those that no command has analysed yet. The algorithms are in the core
//! ([`perennial_core::page::observe`]); this module reads their input and stores their results.
//!
//! | file | what becomes what |
//! |---|---|
//! | `store_pool` | threads that read the state -> a connection for each |
//! | `subresources` | an address and a time -> the captured stylesheet or image that a layout needs |
//! | `layout_cache` | layouts of earlier captures -> the layout of a page with the same structure, without the engine |
//! | `analyst` | the text of a page and what was known of it -> a [`perennial_core::page::observe::VersionComparison`] |
//! | `filters` | filter lists -> whether an address is an advertisement |
//! | `change_reader` | a change in the state -> the operations between its two trees, weighed |
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
mod change_reader;
mod compare;
mod filters;
mod layout_cache;
mod part;
mod spec;
mod store_pool;
mod subresources;

pub use analyst::{Analyst, PageText};
pub use backlog::{BacklogCounts, PageAnalyses, PageAnalyst, PageHeadline, analyse_backlog};
pub use bulk::{write_deltas, write_trees};
pub use change_reader::{ChangeDetails, ChangeReader};
pub use compare::{
    Comparison, ComparisonReport, ElementContent, NoiseSource, OperationReport, StoredChange, headlines,
    reported_entries,
};
pub use filters::{AdFilters, update as update_filters};
pub use part::{ImportanceShift, PartEffect, PartEffectQuery, PartTreatment, part_texts};
pub use spec::{LoadedPage, PageSpec};
pub use store_pool::StorePool;
pub use subresources::SubresourceCache;
