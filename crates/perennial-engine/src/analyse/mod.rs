//! Analyses captures: visible content, changes and importance. Results are stored in the state.
//!
//! All captures are analysed here: each new capture of a crawl, the history of an import, and with `perennial
//! analyse` all captures without an analysis. The algorithms are in the core ([`perennial_core::page::observe`]).
//! This module reads their input and stores their results.
//!
//! | module | purpose |
//! |---|---|
//! | `store_pool` | gives each thread a connection to the state |
//! | `subresources` | finds the captured stylesheet or image that a layout needs |
//! | `layout_cache` | reuses the layout of an earlier page with the same structure |
//! | `analyst` | lays out a page and makes a [`perennial_core::page::observe::VersionComparison`] |
//! | `filters` | recognises advertisements and annoyances by filter lists |
//! | `change_reader` | recomputes the weighted operations of a stored change |
//! | `bulk` | exports all trees or all deltas as one XML document |
//! | `compare` | compares two versions of a page and reports the changes as JSON and text |
//! | `excerpt` | shows the parts in which two texts differ |
//! | `part` | finds the words of a selected part, and estimates the effect of pinning or ignoring it |
//! | `analysis` | makes the [`Analysis`](perennial_archive::store::Analysis) of a capture and the page's next state |
//! | `spec` | loads a page named on the command line: a file, Vi-XML, `url@time` or a URL |
//! | `backlog` | analyses captures without an analysis, page by page, on all cores |

mod analysis;
mod analyst;
mod backlog;
mod bulk;
mod change_reader;
mod compare;
mod excerpt;
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
    operations_for_people, reported_entries,
};
pub use excerpt::{ChangedPart, changed_parts};
pub use filters::{AdFilters, AnnoyanceFilters, update as update_filters};
pub use part::{ImportanceShift, PartEffect, PartEffectQuery, PartTreatment, is_entry_in_part, part_texts};
pub use spec::{LoadedPage, PageSpec};
pub use store_pool::StorePool;
pub use subresources::SubresourceCache;
