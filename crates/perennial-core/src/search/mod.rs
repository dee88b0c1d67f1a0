//! Block trees over time and a query -> where the words were on a page, from when to when.
//!
//! | file | what becomes what |
//! |---|---|
//! | `terms` | a text -> its words in normal form, with their positions |
//! | `query` | a typed query -> its clauses; a query and a text -> the matches |
//! | `passages` | a tree -> the texts of its blocks, without repetitions |
//! | `surprise` | passages of a period and those before it -> new or more frequent terms |
//! | `presence` | presences of the matching passages -> presences of the match on the page |
//!
//! The unit is a passage: one text of a block (a paragraph, a heading, a cell, the text of a link). A passage that
//! does not change between observations is one entry with one presence, so an index of passages grows with the
//! changes.

mod passages;
mod presence;
mod query;
mod surprise;
mod terms;

pub use passages::{Passage, passages};
pub use presence::{PassagePresence, join};
pub use query::{TextClause, TextQuery, TextQueryError};
pub use surprise::{TermCandidate, TermCounts, surprise};
pub use terms::{TextTerm, folded, terms};
