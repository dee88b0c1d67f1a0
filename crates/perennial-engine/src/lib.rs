//! An archive -> what people and the scheduler want to know of it: analysis, learning, changes, search, notices.
//!
//! Each module uses only those above it.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`background`] | a thread -> one that yields to visits and readers |
//! | [`analyse`] | captures -> what a reader saw, what changed and its importance, stored in the state |
//! | [`admin`] | what a person decides about sites -> perennial.toml, and a line of acts.log |
//! | [`search`] | lessons -> texts of blocks by interval; a question -> which pages said it, from when to when |
//! | [`changes`] | what a user asks of changes -> those for which it holds, a part of the list at a time |
//! | [`notify`] | lessons and what users want to hear of -> notices, sent at least once and in order |
//! | [`learn`] | looks, links and settings -> a scheduler that has learned from them |
//! | [`quality`] | looks -> estimates of completeness and coherence |
//! | [`html`] | values -> HTML and SVG |
//! | [`feeds`] | feeds at hand -> subscriptions, objects with versions |

pub mod background;

pub mod analyse;

pub mod admin;

pub mod search;

pub mod changes;

pub mod notify;

pub mod learn;

pub mod quality;

pub mod html;

pub mod feeds;
