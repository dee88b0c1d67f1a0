//! What follows from an archive's captures: analyses, learned schedules, changes, search results, notices.
//!
//! Each module uses only those above it.
//!
//! | module | purpose |
//! |---|---|
//! | [`background`] | runs threads during the crawl |
//! | [`analyse`] | finds visible content, changes and importance of each capture, and stores them |
//! | [`admin`] | edits perennial.toml for an admin and keeps the audit log |
//! | [`reach`] | checks URLs before they are followed |
//! | [`search`] | indexes the text of pages with the time it was there, and answers queries |
//! | [`changes`] | finds the changes that match a query |
//! | [`notify`] | makes notices of changes by the user's rules, and sends each at least once and in order |
//! | [`learn`] | builds schedulers from observations, links and settings |
//! | [`quality`] | estimates completeness and coherence |
//! | [`html`] | builds HTML and SVG |
//! | [`feeds`] | finds feeds, imports subscriptions, extracts articles |

pub mod background;

pub mod analyse;

pub mod admin;

pub mod reach;

pub mod search;

pub mod changes;

pub mod notify;

pub mod learn;

pub mod quality;

pub mod html;

pub mod feeds;
