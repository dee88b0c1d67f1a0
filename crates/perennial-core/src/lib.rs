//! The domain of Perennial, without effects: no clock, network, disk, thread or log.
//!
//! Time is an argument, randomness is a seed, and the failure of one page is a value. The crawler, the simulator and
//! the readers of an archive drive the same code. docs/papers.md explains what the code takes from the papers, and their
//! short names, such as P-PATTERN.
//!
//! The groups are listed in the order of the data flow. Each uses only those above it, which a test checks.
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
//! | [`directory`] | versions of a site -> directories that change together |
//! | [`schedule`] | page histories and a budget -> the next [`schedule::Visit`] |
//! | [`search`] | block trees over time and a query -> where and when the words were on a page |
//! | [`notice`] | a change and a notification rule -> whether it is reported |
//! | [`quality`] | captures -> bounds and likely values of completeness and coherence |

#![deny(clippy::iter_over_hash_type)]
// The bans apply to the library; tests may iterate over maps.
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
