//! Statistics and figures of P-FEED, inferred channel pages, and the paper's own extraction algorithm (docs/feeds.md).
//!
//! | file | input -> output |
//! |---|---|
//! | [`intervals`] | the dates of items -> update intervals, quartiles, deviations |
//! | [`statistics`] | feeds of an archive, or files -> the paper's numbers and tables |
//! | [`charts`] | statistics -> the paper's figures |
//! | [`channel`] | a channel page and items -> the page with these items in its list |
//! | [`inferred`] | the items known at an instant -> the channel page, marked as inferred |
//! | `concepts` | title and description of an item -> words that carry the subject |
//! | [`extraction`] | a page -> its text by Algorithm 1, in the variants of Table 3 |

pub mod channel;
pub mod charts;
mod concepts;
pub mod extraction;
pub mod inferred;
pub mod intervals;
pub mod statistics;
