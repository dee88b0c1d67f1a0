//! Finds the changes of an archive that match a query.
//!
//! One query language serves `perennial changes`, `/`, `/changes`, `/api/changes` and `/changes.atom`. The rules of
//! `[[notify]]` apply the same conditions to each new change ([`perennial_core::notice::ChangeCondition`]).
//!
//! | module | purpose |
//! |---|---|
//! | `matcher` | tests a change against a condition |
//! | `change` | the report of a matching change |
//! | `query` | parses queries from URL parameters and writes them |
//! | `find` | finds matching changes, in batches of bounded work |

mod change;
mod find;
mod matcher;
mod query;

pub use change::MatchingChange;
pub use find::{ChangeBatch, ChangeFinder, WorkLimits, each_match};
pub use matcher::{CandidateChange, ChangeMatcher};
pub use query::ChangeQuery;
