//! Feeds at hand -> statistics, subscriptions, and channel pages as they must have been (P-FEED; docs/feeds.md).
//!
//! | file | what becomes what |
//! |---|---|
//! | [`statistics`] | feeds of an archive, or files -> the paper's figures and tables |
//! | [`discover`] | an address -> the feeds that it names or that lie where feeds usually do |
//! | [`subscriptions`] | a list of addresses, OPML -> sites to follow |
//! | [`objects`] | announced pages -> their articles, with versions |
//! | [`inferred`] | the items known at an instant -> the channel page, marked as inferred |

pub mod discover;
pub mod inferred;
pub mod objects;
pub mod statistics;
pub mod subscriptions;
