//! `[crawl]` and `[[site]]` of perennial.toml -> how to crawl, and what.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use perennial_core::amounts::{parse_budget, parse_bytes};
use perennial_core::politeness::PolitenessConfig;
use perennial_core::scope::{Scope, ScopeKind};
use perennial_core::time::Span;
use regex::Regex;
use serde::{Deserialize, Serialize};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};
use url::Url;

use super::spending::Allowance;
use crate::archive::settings::{edit, load_tables};
use crate::fetch::Limits;

/// The tables that the crawl reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CrawlSettings {
    /// `[crawl]`
    pub crawl: CrawlTable,
    /// `[[site]]`, in the order of the file.
    pub site: Vec<SiteTable>,
}

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

/// `[[site]]`: a seed and what belongs to it.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct SiteTable {
    /// Where it starts.
    pub url: String,
    /// `page`, `prefix`, `host` or `domain`.
    #[serde(default = "default_scope")]
    pub scope: String,
    /// Only addresses that match one of these.
    #[serde(default)]
    pub include: Vec<String>,
    /// No address that matches one of these.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Links followed from the seed.
    pub depth: Option<u32>,
    /// How much it matters beside other sites.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// IANA name of the zone by whose days it publishes.
    pub timezone: Option<String>,
    /// `auto`, `layout` or `chromium`.
    #[serde(default = "default_renderer")]
    pub renderer: String,
    /// Whether its host may have a private or loopback address.
    #[serde(default)]
    pub allow_private: bool,
    /// Visits of its pages, such as `100/1h`.
    pub budget: Option<String>,
    /// Bytes of bodies, such as `200MB`.
    pub bytes_per_day: Option<String>,
    /// Which versions are stored with their bytes.
    #[serde(default)]
    pub keep: Keep,
}

/// Which versions of a page are stored with their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// All of them.
    #[default]
    All,
    /// Those worth indexing; of the others what changed.
    Important,
}

fn default_scope() -> String {
    ScopeKind::default().name().into()
}

fn default_weight() -> f64 {
    1.0
}

fn default_renderer() -> String {
    "auto".into()
}

impl CrawlSettings {
    /// Reads them.
    pub fn load(path: &Path) -> anyhow::Result<CrawlSettings> {
        load_tables(path)
    }
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
fn allowance(budget: Option<&str>, bytes_per_day: Option<&str>) -> anyhow::Result<Allowance> {
    let hour = Span::from_hours(1);
    Ok(Allowance {
        visits: budget.map(|text| parse_budget(text, hour)).transpose()?,
        bytes_per_day: bytes_per_day.map(parse_bytes).transpose()?,
    })
}

/// A seed ready for use.
#[derive(Debug, Clone)]
pub struct Seed {
    /// What belongs to it.
    pub scope: Scope,
    /// What may be spent on it.
    pub allowance: Allowance,
    /// The rest of what the user said.
    pub table: SiteTable,
}

/// All seeds of an archive.
#[derive(Debug, Clone, Default)]
pub struct Seeds(pub Vec<Seed>);

impl Seeds {
    /// Checks and compiles what the user wrote.
    pub fn compile(tables: &[SiteTable], default_depth: u32) -> anyhow::Result<Seeds> {
        let seeds = tables.iter().map(|table| {
            compile(table, default_depth).with_context(|| format!("site {} in perennial.toml", table.url))
        });
        Ok(Seeds(seeds.collect::<anyhow::Result<_>>()?))
    }

    /// The seed that an address belongs to, its finder's first.
    pub fn owner(&self, url: &Url, depth: u32, finder: usize) -> Option<usize> {
        let contains = |&at: &usize| self.0.get(at).is_some_and(|seed| seed.scope.contains(url, depth));
        Some(finder).filter(contains).or_else(|| (0..self.0.len()).find(contains))
    }
}

fn compile(table: &SiteTable, default_depth: u32) -> anyhow::Result<Seed> {
    let Some(seed) = perennial_core::canonical::parse(&table.url) else {
        bail!("`{}` is not an http or https address: write it like https://example.org/", table.url);
    };
    let Some(kind) = ScopeKind::from_name(&table.scope) else {
        bail!("scope = {:?}: choose one of page, prefix, host, domain", table.scope);
    };
    let rules = |rules: &[String]| -> anyhow::Result<Vec<Regex>> {
        rules.iter().map(|rule| Regex::new(rule).with_context(|| format!("the pattern {rule:?}"))).collect()
    };
    if let Some(zone) = &table.timezone {
        perennial_core::time::LocalClock::of_zone(zone)?;
    }
    let scope = Scope {
        kind,
        seed,
        include: rules(&table.include)?,
        exclude: rules(&table.exclude)?,
        max_depth: Some(table.depth.unwrap_or(default_depth)),
    };
    let allowance = allowance(table.budget.as_deref(), table.bytes_per_day.as_deref())?;
    Ok(Seed { scope, allowance, table: table.clone() })
}
impl SiteTable {
    /// A whole host by the default rules.
    pub fn of_host(url: String) -> SiteTable {
        SiteTable {
            url,
            scope: "host".to_owned(),
            include: Vec::new(),
            exclude: Vec::new(),
            depth: None,
            weight: 1.0,
            timezone: None,
            renderer: "auto".to_owned(),
            allow_private: false,
            budget: None,
            bytes_per_day: None,
            keep: Keep::All,
        }
    }
}

/// Writes sites into perennial.toml, in place of those of the same address; comments stay.
pub fn follow(path: &Path, tables: &[SiteTable]) -> anyhow::Result<()> {
    edit(path, |document| {
        tables.iter().for_each(|table| put(document, table));
        Ok(())
    })
}

fn put(document: &mut DocumentMut, site: &SiteTable) {
    let item = document.entry("site").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let Some(sites) = item.as_array_of_tables_mut() else { return };
    sites.retain(|table| table.get("url").and_then(Item::as_str) != Some(&site.url));
    sites.push(to_toml(site));
}

/// Only what differs from the defaults is written.
fn to_toml(site: &SiteTable) -> Table {
    let mut table = Table::new();
    table["url"] = value(&site.url);
    table["scope"] = value(&site.scope);
    let list = |rules: &[String]| value(rules.iter().collect::<Array>());
    if !site.include.is_empty() {
        table["include"] = list(&site.include);
    }
    if !site.exclude.is_empty() {
        table["exclude"] = list(&site.exclude);
    }
    if let Some(depth) = site.depth {
        table["depth"] = value(i64::from(depth));
    }
    if site.weight != 1.0 {
        table["weight"] = value(site.weight);
    }
    if let Some(zone) = &site.timezone {
        table["timezone"] = value(zone);
    }
    if site.renderer != "auto" {
        table["renderer"] = value(&site.renderer);
    }
    if site.allow_private {
        table["allow_private"] = value(true);
    }
    if site.keep == Keep::Important {
        table["keep"] = value("important");
    }
    for (key, text) in [("budget", &site.budget), ("bytes_per_day", &site.bytes_per_day)] {
        if let Some(text) = text {
            table[key] = value(text);
        }
    }
    table
}
