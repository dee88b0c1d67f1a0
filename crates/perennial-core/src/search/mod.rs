//! Trees of a page through time and a question -> where the words stood, since when, until when.
//!
//! | file | what becomes what |
//! |---|---|
//! | `terms` | a text -> its words in the form in which they are compared, with their places |
//! | `query` | what a user typed -> a question; a question and a text -> the places that answer it |
//! | `passages` | a tree -> the texts of its blocks, each once |
//! | `surprise` | passages of a span and what stood there before -> the terms that are new or more frequent |
//! | `stays` | from when to when each passage that answers stood there -> from when to when the page said it |
//!
//! The unit is a passage: one text of a block (a paragraph, a heading, a cell, the name of a link). A passage that does not change
//! from look to look is one entry with one stay, so an index of passages grows with what changed.

mod passages;
mod query;
mod stays;
mod surprise;
mod terms;

pub use passages::{Passage, passages};
pub use query::{Clause, Query, QueryError};
pub use stays::{Stay, join};
pub use surprise::{Candidate, TermCounts, surprise};
pub use terms::{Term, folded, terms};
