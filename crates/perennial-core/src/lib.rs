//! Every type and every algorithm of Perennial, pure: no clock, network, disk, thread or log.
//!
//! Time is an argument, chance is a seed, failure of one page is a value. The crawler, the simulator and
//! the readers of an archive drive the same code.
//!
//! The modules stand in the order in which data flows; each uses only those above it (a test checks it).
//!
//! | module | what becomes what |
//! |---|---|
//! | [`time`] | digits and dates -> [`time::Timestamp`], local days |
//! | [`page`] | the nouns: pages and sites |
//! | [`charset`] | bytes of a text -> characters |
//! | [`links`] | HTML, CSS -> the addresses they refer to |
//! | [`http`] | the head of an archived HTTP message -> status and fields |
//! | [`warc`] | archived bytes <-> records, sound or damaged |
//! | [`layout`] | what a renderer delivers: boxes, fonts, colours of every node |
//! | [`segment`] | layout -> [`segment::BlockTree`] (VIPS), Vi-XML |
//! | [`diff`] | two block trees -> [`diff::Delta`] (Vi-DIFF), Vi-Delta, apply |
//! | [`importance`] | 0 to 1: how much a change matters |
//! | [`schedule`] | what is known of pages -> the next [`schedule::Visit`] |

pub mod time;

pub mod page;

pub mod charset;

pub mod links;

pub mod http;

pub mod warc;

pub mod layout;

pub mod segment;

pub mod diff;

pub mod importance;

pub mod schedule;
