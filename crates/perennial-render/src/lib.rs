//! Bytes of a page -> [`perennial_core::page::layout::Layout`]: the embedded engine, and Chromium.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`resource`] | a captured stylesheet or image -> its text or size |
//! | [`parsed`] | tree -> the nodes that a structure fingerprint reads |
//! | [`engine`] | tree and subresources -> layout, by style and boxes |
//! | [`structural`] | tree -> a plain layout from tags alone, when the engine fails |
//! | [`confine`] | a process -> one that can only compute |
//! | `pipe` | bytes <-> a child process, within a deadline |
//! | [`wire`], [`worker`], [`pool`] | pages -> layouts in processes of their own, bounded in time and memory |
//! | [`launch`] | a browser's executable -> a running browser without a network |
//! | [`snapshot`] | what a browser says of its boxes -> layout |
//! | [`cdp`], [`chromium`] | pages -> layouts through a browser, scripts included |

pub mod resource;

pub mod parsed;

mod alternative;
mod build;
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

pub use cdp::BrowserError;
pub use chromium::{BrowserOptions, BrowserPage, Chromium};
pub use engine::LayoutEngine;
pub use perennial_core::text::dom;
pub use pool::{Fallback, PageLimits, RenderedLayout, WorkerCommand, WorkerPool};
pub use resource::{CapturedResource, SubresourceLookup};
