//! Finds feeds, imports subscriptions, and extracts articles with their versions (docs/feeds.md).
//!
//! | module | purpose |
//! |---|---|
//! | [`discover`] | finds the feeds of a site |
//! | [`subscriptions`] | reads sites to follow from a list of URLs or OPML |
//! | [`articles`] | extracts the articles of announced pages, with versions |

pub mod articles;
pub mod discover;
pub mod subscriptions;
