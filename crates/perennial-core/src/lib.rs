//! Every type and every algorithm of Perennial, without effects: no clock, network, disk, thread or log.
//!
//! Time is an argument, chance is a seed, and the failure of one page is a value. The crawler, the simulator and
//! the readers of an archive drive the same code. What comes from the papers is explained in docs/papers.md, which also
//! explains the short names of the papers, such as P-PATTERN.
//!
//! The modules stand in the order in which data flows; each uses only those above it (a test checks it).
//!
//! | module | what becomes what |
//! |---|---|
//! | [`time`] | digits and dates -> [`time::Timestamp`], local days |
//! | [`dates`] | dates as people and programs write them -> instants |
//! | [`chance`] | a seed -> the same numbers on every machine |
//! | [`markup`] | text -> what may stand in HTML, SVG and XML |
//! | [`foreign`] | text that strangers wrote -> bounded text, and text that a terminal only shows |
//! | [`page`] | the numbers of pages and sites |
//! | [`charset`] | bytes of a text -> characters |
//! | [`xml`] | XML as it is found on the web -> tags and texts |
//! | [`tokens`] | the text of a page -> its tokens, in work that its length bounds |
//! | [`dom`] | the text of a page -> a bounded tree of elements and texts |
//! | [`links`] | HTML, CSS -> the addresses they refer to |
//! | [`feed`] | RSS, Atom, JSON Feed, OPML -> items; when to look again; statistics |
//! | [`http`] | the head of an archived HTTP message -> status and fields |
//! | [`payload`] | a stored HTTP body -> the bytes it stands for |
//! | [`warc`] | archived bytes <-> records, sound or damaged |
//! | [`surt`] | a URL -> the key by which indexes are sorted |
//! | [`cdxj`] | captures <-> lines of the sorted CDXJ index, looked up in the file |
//! | [`address`] | an IP address -> whether it may be fetched from |
//! | [`canonical`] | an address as written -> one form per page |
//! | [`trap`] | an address -> whether it is one of endlessly many |
//! | [`twin`] | an address -> the shorter one that names the same page |
//! | [`scope`] | a seed and its limits -> which addresses belong to it |
//! | [`robots`] | robots.txt -> what may be fetched (RFC 9309) |
//! | [`politeness`] | a host's answers -> when it may be asked again |
//! | [`sitemap`] | sitemap bytes -> addresses |
//! | [`validator`] | ETag and Last-Modified over time -> whether a 304 can be trusted |
//! | [`verdict`] | an HTTP answer -> what it says of page, host and validators |
//! | [`soft_error`] | a page that was delivered -> whether it says that there is none |
//! | [`layout`] | the boxes, fonts and colours of every node, as a renderer delivers them |
//! | [`segment`] | layout -> [`segment::BlockTree`] (VIPS), Vi-XML |
//! | [`diff`] | two block trees -> [`diff::Delta`] (Vi-DIFF), Vi-Delta, apply |
//! | [`document`] | text, JSON, CSV, XML, PDF -> [`segment::BlockTree`] |
//! | [`object`] | a page and what is known of it -> the article or post that it holds, and its versions |
//! | [`figures`] | two texts that differ in numbers -> whether the number is news |
//! | [`importance`] | delta -> [`importance::Importance`], 0 to 1: how much it matters |
//! | [`noise`] | a page's history of changes -> how much of a change is noise |
//! | [`observe`] | a capture and what was known of its page -> delta, importance, what is known now |
//! | [`look`] | two answers in a row -> what the later look at a page showed |
//! | [`series`] | importance by time -> what happened in each period of a day |
//! | [`pattern`] | time series and visits -> what is expected in each period |
//! | [`memento`] | addresses of replay, dates and links of RFC 7089; intervals and an instant -> the coherent choice |
//! | [`threshold`] | versions by importance -> those that reach the index threshold |
//! | [`directory`] | versions of a site -> trees, rules of their evolution, what need not be visited |
//! | [`rank`] | the link graph -> omega(P), PageRank |
//! | [`schedule`] | what is known of pages -> the next [`schedule::Visit`] |
//! | [`amounts`] | what users write for times, sizes, shares, budgets -> values |
//! | [`parquet`] | rows of a table -> the bytes of a Parquet file, row group by row group |
//! | [`search`] | trees of a page through time and a question -> where its words stood, since when, until when |
//! | [`notice`] | a change and what a user wants to hear of -> whether it is told |
//! | [`quality`] | captures against the truth -> completeness, coherence; estimates where it is unknown |

#![deny(clippy::iter_over_hash_type)]
// The bans hold for the library as it is shipped; its tests may collect into a map and look at all of it.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::iter_over_hash_type))]

pub mod time;

pub mod dates;

pub mod chance;

pub mod markup;

pub mod foreign;

pub mod page;

pub mod charset;

pub mod xml;

pub mod tokens;

pub mod dom;

pub mod links;

pub mod feed;

pub mod http;

pub mod payload;

pub mod warc;

pub mod surt;

pub mod cdxj;

pub mod address;

pub mod canonical;

pub mod trap;

pub mod twin;

pub mod scope;

pub mod robots;

pub mod politeness;

pub mod sitemap;

pub mod validator;

pub mod verdict;

pub mod soft_error;

pub mod layout;

pub mod segment;

pub mod diff;

pub mod document;

pub mod object;

pub mod figures;

pub mod importance;

pub mod noise;

pub mod observe;

pub mod look;

pub mod series;

pub mod pattern;

pub mod memento;

pub mod threshold;

pub mod directory;

pub mod rank;

pub mod schedule;

pub mod amounts;

pub mod parquet;

pub mod search;

pub mod notice;

pub mod quality;
