//! The living web: a small web of several sites that changes by known patterns, served on loopback.
//!
//! `perennial demo` and the end-to-end tests archive it. Because every change is known, what an archive caught and missed
//! can be measured.
//!
//! | file | what becomes what |
//! |---|---|
//! | `web` | a seed -> sites, pages, every change with its time and amount |
//! | `truth` | all versions of all pages -> the importance of each change |
//! | `prose`, `template` | a page and its version -> HTML, with noise that differs at every request |
//! | `requisite` | a style sheet or picture and an instant -> its bytes |
//! | `server` | requests -> answers, at the instant that the crawl's virtual clock shows |
//! | `run` | options -> an archive of it, made by the real crawler |
//! | `measure` | that archive's WARC files and the truth -> what was caught |
//! | `learned` | that archive -> the hourly rates of change that the crawler learned |
//! | `report` | results -> an HTML page with charts |

mod learned;
mod measure;
mod prose;
mod report;
mod requisite;
mod run;
mod server;
mod template;
mod truth;
mod web;

pub use report::html;
pub use run::{Caught, Crawls, DemoOptions, DemoResult, FeedsResult, SiteResult, demo};
pub use server::{LivingServer, Now};
pub use template::{STYLE, VERSION_META};
pub use truth::Truth;
pub use web::{Amount, LivingChange, LivingKind, LivingPage, LivingSite, LivingWeb};
