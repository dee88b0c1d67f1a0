//! Full-text search: which pages contained the words, and when.
//!
//! | module | purpose |
//! |---|---|
//! | `indexer` | adds new analyses to the text index, on a thread during a crawl |
//! | `terms` | finds terms that are new in a span |
//! | `query` | finds pages that contained the words, with an excerpt and the times |
//!
//! The index follows the analyses: for each page it records the last indexed observation. It may be deleted at any
//! time. The next analysis rebuilds it.

mod indexer;
mod query;
mod terms;

pub use indexer::{TextIndexer, catch_up, start_indexing};
pub use query::{Excerpt, SearchHit, SearchHits, SearchQuery, find_pages};
pub use terms::{NewTerm, NewTerms, TermsQuery, new_terms};
