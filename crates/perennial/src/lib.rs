//! Everything of Perennial that has effects: the archive on disk, the network, the command line.
//!
//! The algorithms are in `perennial-core`; this crate runs them. Each module uses only those above it (a test checks it).
//!
//! | module | what becomes what |
//! |---|---|
//! | [`disk`] | bytes -> a file that is whole or not there |
//! | [`fetch`] | a URL -> the exact bytes of an HTTP exchange, within limits |
//! | [`settings`] | perennial.toml -> typed tables; unknown keys and wrong values are named with their line |
//! | [`store`] | captures -> what is known of sites, pages, versions, links (SQLite) |
//! | [`archive`] | exchanges and files -> WARC on disk, index; recovery, import, export, verify |
//! | [`analyse`] | captures -> what a reader saw, what changed and its importance, stored in the state |
//! | [`operate`] | what a person decides about sites -> perennial.toml, and a line of acts.log |
//! | [`search`] | lessons -> texts of blocks by interval; a question -> which pages said it, from when to when |
//! | [`changes`] | what a user asks of changes -> those for which it holds, a part of the list at a time |
//! | [`notify`] | analyses and what users want to hear of -> notices, sent at least once and in order |
//! | [`learn`] | observations, links and settings -> a scheduler that has learned from them |
//! | [`quality`] | observations -> estimates of completeness and coherence |
//! | [`html`] | values -> HTML and SVG |
//! | [`feeds`] | feeds at hand -> statistics, subscriptions, inferred channel pages |
//! | [`crawl`] | sites and a strategy -> polite visits and their captures |
//! | [`serve`] | a snapshot of archives -> HTTP: replay, Memento, CDX |
//! | [`demo`] | a seed -> the living web: sites that change by known patterns, served on loopback |
//! | [`doctor`] | this machine -> what an archive needs of it and lacks, each with its cure |
//! | [`cli`] | arguments -> calls, results -> print |

// `println!` panics when the reader of a pipe has gone: print through `cli::Context::print`.
#![warn(clippy::print_stdout)]

pub mod disk;

pub mod fetch;

pub mod settings;

pub mod store;

pub mod archive;

pub mod analyse;

pub mod operate;

pub mod search;

pub mod changes;

pub mod notify;

pub mod learn;

pub mod quality;

pub mod html;

pub mod feeds;

pub mod crawl;

pub mod serve;

pub mod demo;

pub mod doctor;

pub mod cli;
