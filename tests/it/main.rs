//! The only integration-test binary. It tests the real executable, with servers on 127.0.0.1:0.
//!
//! Put a new test into the module named after the subcommand or the promise that it checks.

// A test that cannot continue should panic. Clippy's own exception covers only `#[test]` functions.
#![allow(clippy::unwrap_used)]

mod admin;
#[cfg(feature = "interop")]
mod admin_browser;
mod archive;
mod articles;
#[cfg(feature = "interop")]
mod axe;
#[cfg(feature = "interop")]
mod browser;
mod budget;
mod changes_query;
mod coherence;
mod corpus;
mod crawl_again;
#[cfg(feature = "interop")]
mod crawl_browser;
mod crawl_killed;
#[cfg(feature = "interop")]
mod crawl_login;
mod crawl_network;
#[cfg(feature = "interop")]
mod crawl_reader;
mod crawled;
mod dashboard;
mod dashboard_pages;
mod demo;
mod diff;
mod diff_view;
mod doctor;
mod documents;
mod durability;
mod evidence;
mod extract;
mod facts;
mod feeds;
mod flips;
mod formats;
mod hostile_archive;
#[cfg(feature = "interop")]
mod hostile_browser;
mod hostile_hosts;
#[cfg(feature = "interop")]
mod hostile_reader;
#[cfg(feature = "interop")]
mod hostile_replay;
mod hostile_tables;
mod hostile_time;
mod hostile_web;
mod hostile_worker;
mod hubs;
mod index;
mod interop;
mod keep;
mod killed;
mod language;
mod layers;
mod noise;
mod notices;
mod observations;
mod outline;
mod parts;
mod patterns;
mod policy;
mod power;
mod program;
mod readers;
mod reading;
mod rebuild;
mod render;
#[cfg(feature = "interop")]
mod replay;
#[cfg(feature = "interop")]
mod replay_pages;
mod replay_post;
#[cfg(feature = "interop")]
mod replay_scripts;
mod replayed;
mod reports;
mod reproduce;
mod requests;
mod rules;
mod search;
mod serve;
mod server;
mod settings;
mod simulate;
mod snapshots;
mod sources;
mod sql;
mod stopping;
mod tables;
mod terms;
#[cfg(feature = "interop")]
mod timestamps;
mod town;
mod tutorial;
mod unfinished;
mod visits;
mod wait;
mod watching;
mod web;

#[test]
fn version_is_printed() {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_perennial")).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("perennial "));
}
