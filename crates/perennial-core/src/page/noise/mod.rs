//! The history of a page's changes -> how much of a change is noise, and why: counters, dates, nonces, rotating teasers
//! (P-VISUAL 6; docs/papers.md, Advertisements and noise).
//!
//! Noise is earned. A change that repeats at most visits without new words, or that returns to an earlier value, informs
//! nobody. So a small state per page counts how often each element changed without new words, and stores what
//! disappeared and may come back. The form of a text (`text::stamps`) says only where to begin: a clock weighs little at
//! first sight, a number in a sentence fully. A page that changes for the first time is reported in any case.
//!
//! | file | input and output |
//! |---|---|
//! | `history` | the deltas of successive visits -> how often each element changed, and what vanished |
//! | `judge` | an operation and the history -> how much of it is noise |
//! | `whole` | a delta -> patterns that only several operations show together |
//! | `reason` | how much is noise, and why, in words |
//! | `stored` | a history <-> bytes |

mod history;
mod judge;
mod reason;
mod stored;
mod whole;

pub use history::NoiseHistory;
pub use judge::NoiseJudge;
pub use reason::{Noise, NoiseKind, NoiseReason};
pub use stored::NoiseError;

#[cfg(test)]
mod tests;
