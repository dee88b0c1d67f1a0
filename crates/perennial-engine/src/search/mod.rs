//! Lessons -> the text index; a question -> which pages said it, from when to when.
//!
//! | file | what becomes what |
//! |---|---|
//! | `indexer` | lessons that are new -> passages and stays in the text index; a thread of its own beside a crawl |
//! | `terms` | a span -> the terms that came in it and were rare before |
//! | `query` | a question and a filter -> pages, the sentence on each, and the times at which it stood there |
//!
//! The index follows the lessons: it knows for each page the last look that it has taken in, and takes in the later ones. It can
//! be deleted at any time, and the next analysis makes it again.

mod indexer;
mod query;
mod terms;

pub use indexer::{TextIndexer, catch_up, start_indexing};
pub use query::{Excerpt, SearchHit, SearchHits, SearchQuery, find_pages};
pub use terms::{NewTerm, NewTerms, TermsQuery, new_terms};
