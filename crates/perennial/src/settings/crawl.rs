//! `[crawl]` of perennial.toml -> manners and limits.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use perennial_core::politeness::PolitenessConfig;
use perennial_core::schedule::Budget;
use perennial_core::time::Span;
use serde::Deserialize;

use super::amounts::{parse_budget, parse_bytes};
use crate::fetch::Limits;

/// `[crawl]`: manners and limits.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct CrawlTable {
    /// An address or a web page where site owners reach the one who crawls.
    pub contact: String,
    /// Replaces the whole User-Agent; its first word is what robots.txt is read for.
    pub user_agent: Option<String>,
    /// Whether robots.txt is obeyed.
    pub robots: bool,
    /// Whether `noarchive` of a page is obeyed.
    pub noarchive: bool,
    /// Whether sitemaps are read.
    pub sitemaps: bool,
    /// Whether style sheets, images, fonts and scripts are captured with their pages.
    pub requisites: bool,
    /// A requisite that was captured less than this ago is not fetched again.
    pub requisite_hours: f64,
    /// `http://host:port` of a proxy.
    pub proxy: Option<String>,
    /// A PEM file of certificates to trust beside those that browsers trust; from the archive's folder.
    pub tls_roots: Option<PathBuf>,
    /// Longest time that the browser gets for one page.
    pub browser_timeout_secs: f64,
    /// Fetches at a time over all hosts.
    pub max_workers: usize,
    /// Larger bodies are cut.
    pub max_body_bytes: u64,
    /// Larger response heads are errors.
    pub max_head_bytes: usize,
    /// For name lookup, TCP, TLS, each.
    pub connect_timeout_secs: f64,
    /// Until the response head is there.
    pub head_timeout_secs: f64,
    /// For a whole exchange.
    pub total_timeout_secs: f64,
    /// A body must bring `min_bytes_per_window` in each window.
    pub drip_window_secs: f64,
    /// See `drip_window_secs`.
    pub min_bytes_per_window: u64,
    /// The delay between two fetches of a host is this many times the last fetch...
    pub delay_factor: f64,
    /// ...but no less than this...
    pub min_delay_secs: f64,
    /// ...and no more than that.
    pub max_delay_secs: f64,
    /// First pause after 429, 5xx or silence.
    pub first_backoff_secs: f64,
    /// Longest such pause.
    pub max_backoff_secs: f64,
    /// Attempts at one page before `--once` gives it up.
    pub max_tries: u16,
    /// `--once` does not wait longer than this for a host.
    pub max_wait_secs: f64,
    /// Redirects followed in a row.
    pub max_redirects: u32,
    /// Links followed from a seed when its own `depth` says nothing.
    pub max_depth: u32,
    /// Pages of one host whose addresses differ only in numbers and values.
    pub max_pages_per_shape: u32,
    /// Visits of pages of all sites together, such as `1000/1h`.
    pub budget: Option<String>,
    /// Bytes of bodies of all sites together, such as `2GB`.
    pub bytes_per_day: Option<String>,
}

impl Default for CrawlTable {
    fn default() -> CrawlTable {
        CrawlTable {
            contact: String::new(),
            user_agent: None,
            robots: true,
            noarchive: false,
            sitemaps: true,
            requisites: true,
            requisite_hours: 24.0,
            proxy: None,
            tls_roots: None,
            browser_timeout_secs: 30.0,
            max_workers: 64,
            max_body_bytes: 1 << 30,
            max_head_bytes: 256 << 10,
            connect_timeout_secs: 15.0,
            head_timeout_secs: 60.0,
            total_timeout_secs: 1200.0,
            drip_window_secs: 30.0,
            min_bytes_per_window: 3000,
            delay_factor: 5.0,
            min_delay_secs: 3.0,
            max_delay_secs: 30.0,
            first_backoff_secs: 60.0,
            max_backoff_secs: 86_400.0,
            max_tries: 3,
            max_wait_secs: 600.0,
            max_redirects: 10,
            max_depth: 100,
            max_pages_per_shape: 100_000,
            budget: None,
            bytes_per_day: None,
        }
    }
}

/// What may be spent.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Allowance {
    /// Visits of pages.
    pub visits: Option<Budget>,
    /// Bytes of bodies, of requisites too.
    pub bytes_per_day: Option<u64>,
}

impl CrawlTable {
    /// How the crawler introduces itself: name, version and whom to write to.
    pub fn user_agent(&self) -> String {
        match &self.user_agent {
            Some(own) => own.clone(),
            None if self.contact.is_empty() => concat!("perennial/", env!("CARGO_PKG_VERSION")).to_string(),
            None => format!("perennial/{} (+{})", env!("CARGO_PKG_VERSION"), self.contact),
        }
    }

    /// What may be spent on all sites together.
    pub fn allowance(&self) -> anyhow::Result<Allowance> {
        allowance(self.budget.as_deref(), self.bytes_per_day.as_deref()).context("[crawl] in perennial.toml")
    }

    /// The limits of an exchange.
    pub fn limits(&self) -> Limits {
        let secs = |secs: f64| Duration::from_secs_f64(secs.clamp(0.001, 1e7));
        Limits {
            max_body_bytes: self.max_body_bytes,
            max_head_bytes: self.max_head_bytes,
            connect_timeout: secs(self.connect_timeout_secs),
            head_timeout: secs(self.head_timeout_secs),
            total_timeout: secs(self.total_timeout_secs),
            drip_window: secs(self.drip_window_secs),
            min_bytes_per_window: self.min_bytes_per_window,
            ..Limits::default()
        }
    }

    /// The manners towards a host.
    pub fn politeness(&self) -> PolitenessConfig {
        let span = |secs: f64| Span::from_millis((secs.clamp(0.0, 1e9) * 1000.0) as i64);
        PolitenessConfig {
            factor: self.delay_factor,
            min_delay: span(self.min_delay_secs),
            max_delay: span(self.max_delay_secs),
            first_backoff: span(self.first_backoff_secs),
            max_backoff: span(self.max_backoff_secs),
            ..PolitenessConfig::default()
        }
    }
}

/// Reads `budget` and `bytes_per_day`.
pub(super) fn allowance(budget: Option<&str>, bytes_per_day: Option<&str>) -> anyhow::Result<Allowance> {
    let hour = Span::from_hours(1);
    Ok(Allowance {
        visits: budget.map(|text| parse_budget(text, hour)).transpose().map_err(anyhow::Error::msg)?,
        bytes_per_day: bytes_per_day.map(parse_bytes).transpose().map_err(anyhow::Error::msg)?,
    })
}
