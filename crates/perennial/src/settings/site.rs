//! `[[site]]` of perennial.toml -> seeds: what the user follows, found by address.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, bail};
use perennial_core::scope::{Scope, ScopeKind, bare_host};
use regex::Regex;
use serde::{Deserialize, Serialize};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};
use url::Url;

use super::crawl::{Allowance, CrawlTable, allowance};
use super::{edit, load_tables};

/// The tables that the crawl reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CrawlSettings {
    /// `[crawl]`
    pub crawl: CrawlTable,
    /// `[[site]]`, in the order of the file.
    pub site: Vec<SiteTable>,
}

impl CrawlSettings {
    /// Reads them.
    pub fn load(path: &Path) -> anyhow::Result<CrawlSettings> {
        load_tables(path)
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

/// All seeds of an archive in the order of the file, found by address and by number.
///
/// A crawl asks for the owner of every link that it finds, so nothing here walks over all seeds: an address leads to the
/// seeds of its host, and of each domain that its host is in.
#[derive(Debug, Clone, Default)]
pub struct Seeds {
    all: Vec<Seed>,
    /// The first seed with exactly this address.
    by_url: HashMap<Url, usize>,
    /// Seeds that reach further than themselves, by host without `www.`; ascending.
    by_host: HashMap<String, Vec<usize>>,
    /// Seeds that reach into hosts below theirs; ascending.
    by_domain: HashMap<String, Vec<usize>>,
    numbers: Vec<i64>,
    by_number: HashMap<i64, usize>,
}

impl Seeds {
    /// Checks and compiles what the user wrote.
    pub fn compile(tables: &[SiteTable], default_depth: u32) -> anyhow::Result<Seeds> {
        let seeds = tables.iter().map(|table| {
            compile(table, default_depth).with_context(|| format!("site {} in perennial.toml", table.url))
        });
        Ok(Seeds::new(seeds.collect::<anyhow::Result<_>>()?))
    }

    /// These seeds, without numbers.
    pub fn new(all: Vec<Seed>) -> Seeds {
        let mut seeds = Seeds { all, ..Seeds::default() };
        for (at, Seed { scope, .. }) in seeds.all.iter().enumerate() {
            seeds.by_url.entry(scope.seed.clone()).or_insert(at);
            let by_host = match scope.kind {
                ScopeKind::Page => continue,
                ScopeKind::Prefix | ScopeKind::Host => &mut seeds.by_host,
                ScopeKind::Domain => &mut seeds.by_domain,
            };
            by_host.entry(bare_host(&scope.seed).to_owned()).or_default().push(at);
        }
        seeds
    }

    /// The same seeds with the numbers by which the state knows them, in their order.
    pub fn numbered(self, numbers: Vec<i64>) -> Seeds {
        let mut by_number = HashMap::with_capacity(numbers.len());
        for (at, &number) in numbers.iter().enumerate() {
            by_number.entry(number).or_insert(at);
        }
        Seeds { numbers, by_number, ..self }
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Seed> {
        self.all.iter()
    }

    /// The seeds that have numbers, with these.
    pub fn iter_numbered(&self) -> impl Iterator<Item = (i64, &Seed)> {
        self.numbers.iter().copied().zip(&self.all)
    }

    /// The seed of this number.
    pub fn with_number(&self, number: i64) -> Option<&Seed> {
        self.all.get(*self.by_number.get(&number)?)
    }

    /// The number of the seed that an address belongs to: that of its finder, else the first in the file.
    pub fn owner(&self, url: &Url, depth: u32, finder: i64) -> Option<i64> {
        if self.with_number(finder).is_some_and(|seed| seed.scope.contains(url, depth)) {
            return Some(finder);
        }
        self.numbers.get(self.first_with(url, depth)?).copied()
    }

    /// The place of the first seed that an address belongs to.
    fn first_with(&self, url: &Url, depth: u32) -> Option<usize> {
        let first = |places: &[usize]| places.iter().copied().find(|at| self.contains(*at, url, depth));
        let found = self.near(url).filter_map(first);
        found.chain(self.by_url.get(url).copied()).min()
    }

    fn contains(&self, at: usize, url: &Url, depth: u32) -> bool {
        self.all.get(at).is_some_and(|seed| seed.scope.contains(url, depth))
    }

    /// The seeds that an address may belong to: those of its host, of its domain, of the domain above...
    fn near(&self, url: &Url) -> impl Iterator<Item = &[usize]> {
        let host = bare_host(url);
        let above = host.match_indices('.').map(move |(dot, _)| &host[dot + 1..]);
        let of_domains = std::iter::once(host).chain(above).filter_map(|domain| self.by_domain.get(domain));
        self.by_host.get(host).into_iter().chain(of_domains).map(Vec::as_slice)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address() -> impl Strategy<Value = String> {
        let host = prop::sample::select(vec![
            "a.org",
            "www.a.org",
            "b.a.org",
            "c.b.a.org",
            "www.b.a.org",
            "xa.org",
            "org",
            "10.0.0.1",
        ]);
        let port = prop::sample::select(vec!["", ":8080"]);
        let path = prop::sample::select(vec!["/", "/x/", "/x/y", "/x/y/z?q", "/xy"]);
        (host, port, path).prop_map(|(host, port, path)| format!("http://{host}{port}{path}"))
    }

    fn seeds() -> impl Strategy<Value = Vec<SiteTable>> {
        let kind = prop::sample::select(ScopeKind::ALL.to_vec());
        let site =
            (address(), kind, 0..3u32, any::<bool>()).prop_map(|(url, kind, depth, is_narrow)| SiteTable {
                scope: kind.name().to_owned(),
                depth: Some(depth),
                exclude: if is_narrow { vec!["/y".to_owned()] } else { Vec::new() },
                ..SiteTable::of_host(url)
            });
        prop::collection::vec(site, 0..12)
    }

    /// What `Seeds` answers, by asking one seed after the other.
    fn owner_by_scan(seeds: &Seeds, url: &Url, depth: u32, finder: i64) -> Option<i64> {
        let mut all: Vec<(i64, &Seed)> = seeds.iter_numbered().collect();
        all.sort_by_key(|(number, _)| *number != finder);
        all.into_iter().find(|(_, seed)| seed.scope.contains(url, depth)).map(|(number, _)| number)
    }

    proptest! {
        #[test]
        fn the_owner_is_the_one_that_a_scan_finds(
            tables in seeds(), urls in prop::collection::vec(address(), 1..8), depth in 0..4u32, finder in 0..14i64,
        ) {
            let numbers: Vec<i64> = (1..=tables.len() as i64).rev().collect();
            let seeds = Seeds::compile(&tables, 9).unwrap().numbered(numbers);
            for url in urls {
                let url = Url::parse(&url).unwrap();
                prop_assert_eq!(
                    seeds.owner(&url, depth, finder), owner_by_scan(&seeds, &url, depth, finder), "{}", url
                );
            }
        }
    }

    #[test]
    fn a_seed_is_found_by_its_number() {
        let tables = ["http://a.org/", "http://b.org/"].map(|url| SiteTable::of_host(url.to_owned()));
        let seeds = Seeds::compile(&tables, 9).unwrap();
        assert!(seeds.with_number(0).is_none(), "numbers come with the state");
        let seeds = seeds.numbered(vec![7, 3]);
        assert_eq!(seeds.with_number(3).unwrap().scope.seed.as_str(), "http://b.org/");
        assert!(seeds.with_number(1).is_none());
    }
}
