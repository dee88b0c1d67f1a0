//! Lays out pages ([`perennial_core::page::layout::Layout`]), with an embedded engine or with Chromium.
//!
//! | module | purpose |
//! |---|---|
//! | [`resource`] | reduces a captured stylesheet or image to its text or size |
//! | [`parsed`] | lists the nodes of a page for the structure fingerprint |
//! | [`engine`] | lays out a page by its styles |
//! | [`structural`] | lays out a page by its tags alone, if the engine fails |
//! | [`confine`] | confines a process to computing |
//! | `pipe` | reads and writes pipes of a child process, within a deadline |
//! | [`wire`], [`worker`], [`pool`] | lay out pages in separate processes, bounded in time and memory |
//! | [`launch`] | starts a browser without a network |
//! | [`snapshot`] | converts a browser's snapshot to a layout |
//! | [`cdp`], [`chromium`] | lay out pages in a browser, which runs their scripts |
//! | [`behaviors`] | acts in a page as a reader would |
//! | [`login`] | replays the recorded steps of a login |

pub mod resource;

pub mod parsed;

mod alternative;
mod build;
mod collapsed;
mod extract;
mod fonts;
mod lines;
mod mentions;
mod scope;
mod sfnt;
mod tables;
mod words;

pub mod engine;

pub mod structural;

pub mod confine;

mod pipe;

pub mod wire;

pub mod worker;

pub mod pool;

pub mod launch;

pub mod cdp;

pub mod snapshot;

pub mod chromium;

pub mod behaviors;

pub mod login;

pub use behaviors::Behaviors;
pub use cdp::BrowserError;
pub use chromium::{BrowserOptions, BrowserPage, BrowserRequest, Chromium, ReaderActions};
pub use engine::LayoutEngine;
pub use login::{BrowserCookie, LoginError};
pub use perennial_core::text::dom;
pub use pool::{Fallback, PageLimits, RenderedLayout, WorkerCommand, WorkerPool};
pub use resource::{CapturedResource, SubresourceLookup};
