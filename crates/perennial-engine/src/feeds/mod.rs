//! Feeds at hand -> subscriptions, and articles with versions (docs/feeds.md).
//!
//! | file | what becomes what |
//! |---|---|
//! | [`discover`] | an address -> the feeds that it names or that lie where feeds usually do |
//! | [`subscriptions`] | a list of addresses, OPML -> sites to follow |
//! | [`articles`] | announced pages -> their articles, with versions |

pub mod articles;
pub mod discover;
pub mod subscriptions;
