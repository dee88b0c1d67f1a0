//! Feeds -> the statistics and figures of P-FEED, and channel pages as they must have been (docs/feeds.md).
//!
//! | file | what becomes what |
//! |---|---|
//! | [`statistics`] | feeds of an archive, or files -> the paper's numbers and tables |
//! | [`charts`] | statistics -> the paper's figures |
//! | [`inferred`] | the items known at an instant -> the channel page, marked as inferred |

pub mod charts;
pub mod inferred;
pub mod statistics;
