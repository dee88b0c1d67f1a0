//! What a user asks of the changes of an archive -> those for which it holds, a part of the list at a time.
//!
//! One language for all who ask: `perennial changes`, `/`, `/changes`, `/api/changes`, `/changes.atom`, and the rules of `[[notify]]`, which ask
//! the same of each change as it comes ([`perennial_core::notice::Condition`]).
//!
//! | file | what becomes what |
//! |---|---|
//! | `matcher` | a change in the state and a condition -> whether it holds |
//! | `change` | a change for which it holds -> what is said of it, with the operations that were asked for |
//! | `query` | the parameters of an address <-> a question |
//! | `find` | a question and a place in the list -> the changes behind it, within bounds of work |

mod change;
mod find;
mod matcher;
mod query;

pub use change::MatchingChange;
pub use find::{ChangeBatch, ChangeFinder, WorkLimits, each_match};
pub use matcher::{CandidateChange, ChangeMatcher};
pub use query::ChangeQuery;
