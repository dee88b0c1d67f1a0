//! The domain of Perennial, without effects: no clock, network, disk, thread or log.
//!
//! Time is an argument, randomness is a seed, and the failure of one page is a value. The crawler, the simulator and
//! the readers of an archive drive the same code. What comes from the papers is explained in docs/papers.md, which also
//! explains the short names of the papers, such as P-PATTERN.
//!
//! The groups stand in the order in which data flows; each uses only those above it (a test checks it).
//!
//! | group | what becomes what |
//! |---|---|
//! | [`time`] | digits and dates -> [`time::Timestamp`], local days and times |
//! | [`rng`] | a seed -> the same random numbers on every machine |
//! | [`text`] | bytes of a document -> characters, tokens, a tree of elements; links, numbers, escaping |
//! | [`url`] | a URL as written -> one form per page; scope, traps, aliases |
//! | [`http`] | a response -> what it means for the page, the host and validators; robots.txt, politeness |
//! | [`feed`] | RSS, Atom, JSON Feed, OPML, sitemaps -> items and URLs; when to poll again |
//! | [`page`] | a layout -> blocks, changes between two versions, their importance, noise |
//! | [`article`] | a page -> the article or post that it contains, and its versions |
//! | [`pattern`] | observations over time -> when a page changes and how much |
//! | [`memento`] | replay URLs, dates and links of RFC 7089; the coherent choice among captures |
//! | [`directory`] | versions of a site -> which directories change together, what need not be visited |
//! | [`schedule`] | what is known of pages and a budget -> the next [`schedule::Visit`] |
//! | [`search`] | block trees over time and a query -> where the words were, from when to when |
//! | [`notice`] | a change and a notification rule -> whether it is reported |
//! | [`quality`] | captures -> bounds and likely values of completeness and coherence |

#![deny(clippy::iter_over_hash_type)]
// The bans hold for the library as it is shipped; its tests may collect into a map and look at all of it.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::iter_over_hash_type))]

pub mod time;

pub mod rng;

pub mod text;

pub mod url;

pub mod http;

pub mod feed;

pub mod page;

pub mod article;

pub mod pattern;

pub mod memento;

pub mod directory;

pub mod schedule;

pub mod search;

pub mod notice;

pub mod quality;
