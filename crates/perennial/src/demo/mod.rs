//! The living web: a small web of several sites that changes by known patterns, served on loopback.
//!
//! `perennial demo` and the end-to-end tests archive it. Every change is known, so they can measure which changes an
//! archive caught and missed.
//!
//! | file | input and output |
//! |---|---|
//! | `web` | a seed -> sites, pages, every change with its time and amount |
//! | `truth` | all versions of all pages -> the importance of each change |
//! | `prose`, `template` | a page and its version -> HTML, with noise that differs at every request |
//! | `subresource` | a style sheet or picture and an instant -> its bytes |
//! | `server` | requests -> responses, at the current instant of the crawl's virtual clock |
//! | `run` | options -> an archive of the web, made by the real crawler |
//! | `measure` | the archive's WARC files and the truth -> the caught changes |
//! | `learned` | the archive -> the hourly rates of change that the crawler learned |
//! | `report` | results -> an HTML page with charts |

mod learned;
mod measure;
mod prose;
mod report;
mod run;
mod server;
mod subresource;
mod template;
mod truth;
mod web;

pub use report::html;
pub use run::{Caught, Crawls, DemoOptions, DemoResult, FeedsResult, SiteResult, demo};
pub use server::{LivingServer, Now};
pub use template::{STYLE, VERSION_META};
pub use truth::Truth;
pub use web::{Amount, LivingChange, LivingKind, LivingPage, LivingSite, LivingWeb};
