//! The living web: a small web of several sites that changes by known patterns, served on loopback.
//!
//! It is the stage of `perennial demo` and of the end-to-end tests: because every change is known, what an
//! archive caught and missed can be measured.

mod prose;
mod server;
mod template;
mod web;

pub use server::{LivingServer, Now};
pub use template::VERSION_META;
pub use web::{Amount, Change, Kind, LivingPage, LivingSite, LivingWeb};
