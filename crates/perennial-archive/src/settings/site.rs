//! `[[site]]` of perennial.toml -> seeds, found by URL and by number. `write` converts them back.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use perennial_core::page::segment::{SegmentConfig, Selector};
use perennial_core::schedule::Goal;
use perennial_core::schedule::units::{write_budget, write_bytes, write_span};
use perennial_core::time::LocalClock;
use perennial_core::url::canonical;
use perennial_core::url::scope::{Scope, ScopeError, ScopeKind, bare_host};
use regex::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use url::Url;

use super::crawl::{BudgetTable, parse_goal};
use super::holidays::Holiday;
use super::parse_choice;
use super::parts::{PageParts, parse_pin};
use super::reader::TableReader;
use super::times::VisitTimes;

/// Bounds of a weight.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;
const MAX_DEPTH: i64 = u32::MAX as i64;

/// `[[site]]`: where to start, which pages belong to the site, and how the crawl treats them.
#[derive(Debug, Clone)]
pub struct Seed {
    /// The URLs that belong to the site.
    pub scope: Scope,
    /// `depth` of the site; `None`: `max_depth` of `[crawl]`.
    pub depth: Option<u32>,
    /// Importance relative to other sites.
    pub weight: f64,
    /// The clock of the site's time zone.
    pub clock: Option<Arc<LocalClock>>,
    /// Holidays of the site, on which it behaves as on weekends.
    pub holidays: Vec<Holiday>,
    /// The goal of the crawl on this site; `None`: the global goal.
    pub goal: Option<Goal>,
    pub renderer: PageRenderer,
    /// Whether the host may have a private or loopback address.
    pub allow_private: bool,
    /// Whether visits to its pages are paused.
    pub paused: bool,
    pub allowance: BudgetTable,
    /// How often its pages are visited, and at which hours.
    pub times: VisitTimes,
    pub keep: VersionRetention,
    pub parts: PageParts,
    /// Feeds of the site, in addition to those that its pages name.
    pub feeds: Vec<Url>,
    /// The user's labels for grouping sites.
    pub tags: Vec<String>,
}

/// The engine that renders the pages of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageRenderer {
    /// A browser if a page is empty without its scripts, else the embedded engine.
    #[default]
    Auto,
    /// The embedded engine, which runs no scripts.
    Layout,
    /// A browser.
    Chromium,
}

impl PageRenderer {
    const NAMES: [(&'static str, PageRenderer); 3] = [
        ("auto", PageRenderer::Auto),
        ("layout", PageRenderer::Layout),
        ("chromium", PageRenderer::Chromium),
    ];
}

/// Which versions of a page are stored in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VersionRetention {
    #[default]
    All,
    /// Versions worth indexing. The archive stores only the delta of other versions.
    Important,
}

impl VersionRetention {
    const NAMES: [(&'static str, VersionRetention); 2] =
        [("all", VersionRetention::All), ("important", VersionRetention::Important)];
}

impl FromStr for PageRenderer {
    type Err = String;

    fn from_str(text: &str) -> Result<PageRenderer, String> {
        parse_choice(text, &PageRenderer::NAMES)
    }
}

impl FromStr for VersionRetention {
    type Err = String;

    fn from_str(text: &str) -> Result<VersionRetention, String> {
        parse_choice(text, &VersionRetention::NAMES)
    }
}

impl fmt::Display for PageRenderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(choice_name(*self, &PageRenderer::NAMES))
    }
}

impl fmt::Display for VersionRetention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(choice_name(*self, &VersionRetention::NAMES))
    }
}

fn choice_name<T: PartialEq>(choice: T, names: &[(&'static str, T)]) -> &'static str {
    names.iter().find(|(_, named)| *named == choice).map_or("", |(name, _)| name)
}

/// Clocks by zone. Sites share few clocks, and each takes a while to make.
#[derive(Default)]
struct ClockCache(HashMap<String, Arc<LocalClock>>);

impl ClockCache {
    fn clock(&mut self, zone: &str) -> Result<Arc<LocalClock>, String> {
        if let Some(clock) = self.0.get(zone) {
            return Ok(clock.clone());
        }
        let clock = parse_zone(zone)?;
        self.0.insert(zone.to_owned(), clock.clone());
        Ok(clock)
    }
}

/// Parses the URL of a seed to its canonical form. The default scheme is https.
pub fn parse_url(text: &str) -> Result<Url, String> {
    let hint = || format!("`{text}` is not an http or https address: write it like https://example.org/");
    // Otherwise `mailto:x@y` would be read as the user `mailto:x` of host y.
    let is_other = match text.trim().split_once(':') {
        Some((scheme, rest)) => {
            let is_name = !scheme.contains(['.', '/', '[', '@']) && scheme.starts_with(char::is_alphabetic);
            let is_port = rest.starts_with(|c: char| c.is_ascii_digit());
            is_name && !is_port && !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https")
        }
        None => false,
    };
    canonical::parse(text).filter(|_| !is_other).ok_or_else(hint)
}

/// Parses a regular expression. The error is a single line.
pub fn parse_pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        last.trim_start_matches("error: ").to_owned() + "; write a regular expression such as '\\.pdf$'"
    })
}

pub fn parse_selector(text: &str) -> Result<Selector, String> {
    Selector::parse(text).map_err(|error| error.reason.to_owned())
}

/// Parses a tag of one or a few words.
pub fn parse_tag(text: &str) -> Result<String, String> {
    let tag = text.trim();
    let is_tag = !tag.is_empty() && tag.chars().count() <= 100 && !tag.contains(char::is_control);
    is_tag.then(|| tag.to_owned()).ok_or_else(|| "write a word or a few, such as \"news\"".to_owned())
}

/// The clock of a time zone, by its IANA name.
pub fn parse_zone(text: &str) -> Result<Arc<LocalClock>, String> {
    LocalClock::from_zone(text).map(Arc::new).map_err(|error| error.to_string())
}

pub fn parse_holiday(text: &str) -> Result<Holiday, String> {
    text.parse()
}

pub fn parse_weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|weight| WEIGHTS.contains(weight));
    weight.ok_or_else(|| format!("write a number from {} to {}", WEIGHTS.start(), WEIGHTS.end()))
}

impl Seed {
    /// A seed with the scope of a whole host and default settings.
    pub fn of_host(url: Url) -> Seed {
        let (include, exclude) = (Vec::new(), Vec::new());
        Seed {
            scope: Scope { kind: ScopeKind::Host, seed: url, include, exclude, max_depth: None },
            depth: None,
            weight: 1.0,
            clock: None,
            holidays: Vec::new(),
            goal: None,
            renderer: PageRenderer::default(),
            allow_private: false,
            paused: false,
            allowance: BudgetTable::default(),
            times: VisitTimes::default(),
            keep: VersionRetention::default(),
            parts: PageParts::default(),
            feeds: Vec::new(),
            tags: Vec::new(),
        }
    }

    /// The clock of the time zone with the site's holidays; `None`: UTC without holidays.
    pub fn calendar(&self) -> Option<LocalClock> {
        let zone = self.clock.as_deref().cloned();
        match self.holidays.is_empty() {
            true => zone,
            false => {
                let days = self.holidays.iter().flat_map(|holiday| holiday.days());
                Some(zone.unwrap_or_default().with_holidays(days))
            }
        }
    }

    /// `None` if the URL is missing or wrong, which is noted as a mistake.
    fn read(reader: &mut TableReader<'_, '_>, max_depth: u32, zones: &mut ClockCache) -> Option<Seed> {
        if !reader.has("url") {
            reader.lacks("[[site]] needs a url, such as url = \"https://example.org/\"");
        }
        let url = reader.parsed("url", parse_url);
        let kind = reader.parsed("scope", |text| text.parse().map_err(|error: ScopeError| error.to_string()));
        let include = reader.list("include", parse_pattern);
        let exclude = reader.list("exclude", parse_pattern);
        let depth = reader.whole("depth", 0..=MAX_DEPTH);
        let seed = Seed {
            weight: reader.number("weight", WEIGHTS).unwrap_or(1.0),
            clock: reader.parsed("timezone", |zone| zones.clock(zone)),
            holidays: reader.texts("holidays", parse_holiday),
            goal: reader.parsed("goal", parse_goal),
            renderer: reader.parsed("renderer", str::parse).unwrap_or_default(),
            allow_private: reader.bool("allow_private", false),
            paused: reader.bool("paused", false),
            allowance: BudgetTable::read(reader),
            times: VisitTimes::read(reader),
            keep: reader.parsed("keep", str::parse).unwrap_or_default(),
            parts: PageParts::new(reader.values("pin", parse_pin), reader.list("ignore", parse_selector)),
            feeds: reader.list("feeds", parse_url),
            tags: reader.list("tags", parse_tag),
            depth,
            // Last, because a wrong URL must not hide other mistakes of the table.
            ..Seed::of_host(url?)
        };
        let scope = Scope {
            kind: kind.unwrap_or_default(),
            include,
            exclude,
            max_depth: Some(depth.unwrap_or(max_depth)),
            ..seed.scope
        };
        if seed.times.hours.is_some() && seed.times.every.is_none() && scope.kind != ScopeKind::Page {
            reader.refuse("hours", "it needs `every` too, such as every = \"15m\"");
        }
        Some(Seed { scope, ..seed })
    }
}

/// A seed as data, with the keys of perennial.toml.
#[derive(Serialize, JsonSchema)]
struct SeedRow<'a> {
    url: &'a str,
    scope: &'static str,
    include: Vec<&'a str>,
    exclude: Vec<&'a str>,
    depth: Option<u32>,
    weight: f64,
    timezone: Option<&'a str>,
    holidays: Vec<String>,
    goal: Option<&'static str>,
    renderer: String,
    allow_private: bool,
    paused: bool,
    budget: Option<String>,
    bytes_per_day: Option<String>,
    every: Option<String>,
    hours: Option<String>,
    keep: String,
    pin: Vec<String>,
    ignore: Vec<String>,
    feeds: Vec<&'a str>,
    tags: &'a [String],
}

impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SeedRow {
            url: self.scope.seed.as_str(),
            scope: self.scope.kind.name(),
            include: self.scope.include.iter().map(Regex::as_str).collect(),
            exclude: self.scope.exclude.iter().map(Regex::as_str).collect(),
            depth: self.depth,
            weight: self.weight,
            timezone: self.clock.as_ref().map(|clock| clock.zone()),
            holidays: self.holidays.iter().map(Holiday::to_string).collect(),
            goal: self.goal.map(Goal::name),
            renderer: self.renderer.to_string(),
            allow_private: self.allow_private,
            paused: self.paused,
            budget: self.allowance.visits.map(write_budget),
            bytes_per_day: self.allowance.bytes_per_day.map(write_bytes),
            every: self.times.every.map(write_span),
            hours: self.times.hours.as_ref().map(ToString::to_string),
            keep: self.keep.to_string(),
            pin: self.parts.pinned().iter().map(|part| part.selector.to_string()).collect(),
            ignore: self.parts.ignored().iter().map(Selector::to_string).collect(),
            feeds: self.feeds.iter().map(Url::as_str).collect(),
            tags: &self.tags,
        }
        .serialize(serializer)
    }
}

impl JsonSchema for Seed {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Followed".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SeedRow::json_schema(generator)
    }
}

/// All seeds of an archive in file order, found by URL and by number.
///
/// A crawl queries the owner of each link that it finds, so no query may iterate over all seeds. A URL selects only the
/// seeds of its host and of the domains above.
#[derive(Debug, Clone, Default)]
pub struct Seeds {
    all: Vec<Seed>,
    /// The first seed with exactly this URL.
    by_url: HashMap<Url, usize>,
    /// Seeds with scope prefix or host, by host without `www.`, ascending.
    by_host: HashMap<String, Vec<usize>>,
    /// Seeds with scope domain, by host without `www.`, ascending.
    by_domain: HashMap<String, Vec<usize>>,
    numbers: Vec<i64>,
    by_number: HashMap<i64, usize>,
    /// Whether any seed names parts of its pages.
    has_parts: bool,
}

impl Seeds {
    /// Reads each `[[site]]` of the file.
    pub(super) fn read(reader: &mut TableReader<'_, '_>, max_depth: u32) -> Seeds {
        let (mut zones, mut known) = (ClockCache::default(), HashSet::new());
        let all = reader.tables("site", "[[site]]", |reader| {
            let seed = Seed::read(reader, max_depth, &mut zones)?;
            if !known.insert(seed.scope.seed.clone()) {
                reader.refuse("url", "another [[site]] has it: leave one of the two out");
            }
            Some(seed)
        });
        Seeds::new(all)
    }

    /// Indexes these seeds, without numbers.
    pub fn new(all: Vec<Seed>) -> Seeds {
        let has_parts = all.iter().any(|seed| seed.parts.config().is_some());
        let mut seeds = Seeds { all, has_parts, ..Seeds::default() };
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

    /// Adds the numbers of the seeds in the state, in the same order. The number of a new seed is 0.
    pub fn numbered(self, numbers: Vec<i64>) -> Seeds {
        let known = numbers.iter().enumerate().filter(|(_, number)| **number != 0);
        let by_number = known.map(|(at, &number)| (number, at)).collect();
        Seeds { numbers, by_number, ..self }
    }

    /// Removes the goals of single sites.
    pub fn forget_goals(&mut self) {
        self.all.iter_mut().for_each(|seed| seed.goal = None);
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Seed> {
        self.all.iter()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The seed with exactly this URL.
    pub fn with_url(&self, url: &Url) -> Option<&Seed> {
        self.all.get(*self.by_url.get(url)?)
    }

    /// The seed that a user names, by its URL in any spelling or by its host.
    pub fn named(&self, name: &str) -> anyhow::Result<&Seed> {
        let exact = parse_url(name).ok().and_then(|url| self.with_url(&url));
        if let Some(seed) = exact {
            return Ok(seed);
        }
        let host = name.trim_end_matches('/');
        let mut found =
            self.all.iter().filter(|seed| canonical::site_name(&seed.scope.seed).as_deref() == Some(host));
        match (found.next(), found.next()) {
            (Some(seed), None) => Ok(seed),
            (None, _) => anyhow::bail!("{name} is not followed: `perennial list` shows the sites that are"),
            (Some(first), Some(second)) => {
                let urls: Vec<&str> =
                    [first, second].into_iter().chain(found).map(|seed| seed.scope.seed.as_str()).collect();
                anyhow::bail!("{name} names several sites: write one of {}", urls.join(", "))
            }
        }
    }

    /// Whether any site starts on this host.
    pub fn has_host(&self, host: &str) -> bool {
        let host = host.trim_end_matches('/');
        self.all.iter().any(|seed| canonical::site_name(&seed.scope.seed).as_deref() == Some(host))
    }

    /// The numbered seeds with their numbers.
    pub fn iter_numbered(&self) -> impl Iterator<Item = (i64, &Seed)> {
        self.numbers.iter().copied().zip(&self.all)
    }

    pub fn with_number(&self, number: i64) -> Option<&Seed> {
        self.all.get(*self.by_number.get(&number)?)
    }

    /// The number of the seed that owns a URL: the finder's if the URL is in its scope, else the first in the file.
    pub fn owner(&self, url: &Url, depth: u32, finder: i64) -> Option<i64> {
        if self.with_number(finder).is_some_and(|seed| seed.scope.contains(url, depth)) {
            return Some(finder);
        }
        self.numbers.get(self.first_with(url, depth)?).copied()
    }

    /// The seed whose settings apply to a page, no matter how the page was found. Among the seeds with the page in
    /// their scope, its URL has the longest common prefix with the page's.
    pub fn of_page(&self, url: &Url) -> Option<&Seed> {
        if let Some(seed) = self.with_url(url) {
            return Some(seed);
        }
        let n_alike = |at: &usize| {
            let seed = self.all.get(*at).map_or("", |seed| seed.scope.seed.as_str());
            let n_letters = seed.bytes().zip(url.as_str().bytes()).take_while(|(a, b)| a == b).count();
            (n_letters, std::cmp::Reverse(*at))
        };
        let owners = self.near(url).flatten().copied().filter(|at| self.contains(*at, url, 0));
        self.all.get(owners.max_by_key(n_alike)?)
    }

    /// How a page is segmented by `pin` and `ignore` of its site; `None`: by the default configuration.
    pub fn segment_config(&self, url: &str) -> Option<&SegmentConfig> {
        let url = Url::parse(url).ok().filter(|_| self.has_parts)?;
        self.of_page(&url)?.parts.config()
    }

    /// The index of the first seed whose scope contains a URL.
    fn first_with(&self, url: &Url, depth: u32) -> Option<usize> {
        let first = |places: &[usize]| places.iter().copied().find(|at| self.contains(*at, url, depth));
        let found = self.near(url).filter_map(first);
        found.chain(self.by_url.get(url).copied()).min()
    }

    fn contains(&self, at: usize, url: &Url, depth: u32) -> bool {
        self.all.get(at).is_some_and(|seed| seed.scope.contains(url, depth))
    }

    /// The seeds that may own a URL: those of its host, its domain, and all domains above.
    fn near(&self, url: &Url) -> impl Iterator<Item = &[usize]> {
        let host = bare_host(url);
        let above = host.match_indices('.').map(move |(dot, _)| &host[dot + 1..]);
        let of_domains = std::iter::once(host).chain(above).filter_map(|domain| self.by_domain.get(domain));
        self.by_host.get(host).into_iter().chain(of_domains).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_url() -> impl Strategy<Value = String> {
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

    fn seeds() -> impl Strategy<Value = Vec<Seed>> {
        let kind = prop::sample::select(ScopeKind::ALL.to_vec());
        let seed = (any_url(), kind, 0..3u32, any::<bool>()).prop_map(|(url, kind, depth, is_narrow)| {
            let seed = Seed::of_host(Url::parse(&url).unwrap());
            let exclude = if is_narrow { vec![Regex::new("/y").unwrap()] } else { Vec::new() };
            Seed { scope: Scope { kind, exclude, max_depth: Some(depth), ..seed.scope }, ..seed }
        });
        prop::collection::vec(seed, 0..12)
    }

    /// The result of `Seeds::owner`, computed by a linear search.
    fn owner_by_scan(seeds: &Seeds, url: &Url, depth: u32, finder: i64) -> Option<i64> {
        let mut all: Vec<(i64, &Seed)> = seeds.iter_numbered().collect();
        all.sort_by_key(|(number, _)| *number != finder);
        all.into_iter().find(|(_, seed)| seed.scope.contains(url, depth)).map(|(number, _)| number)
    }

    proptest! {
        #[test]
        fn the_owner_is_the_one_that_a_scan_finds(
            all in seeds(), urls in prop::collection::vec(any_url(), 1..8), depth in 0..4u32, finder in 0..14i64,
        ) {
            let numbers: Vec<i64> = (1..=all.len() as i64).rev().collect();
            let seeds = Seeds::new(all).numbered(numbers);
            for url in urls {
                let url = Url::parse(&url).unwrap();
                prop_assert_eq!(
                    seeds.owner(&url, depth, finder), owner_by_scan(&seeds, &url, depth, finder), "{}", url
                );
            }
        }
    }

    #[test]
    fn the_rules_of_the_nearest_seed_hold_for_a_page() {
        let seed = |url: &str, kind| {
            let seed = Seed::of_host(Url::parse(url).unwrap());
            Seed { scope: Scope { kind, ..seed.scope }, ..seed }
        };
        let seeds = Seeds::new(vec![
            seed("http://a.org/", ScopeKind::Domain),
            seed("http://a.org/news/", ScopeKind::Prefix),
            seed("http://a.org/news/today", ScopeKind::Page),
        ]);
        for (url, place) in [
            ("http://a.org/x", Some(0)),
            ("http://b.a.org/news/1", Some(0)),
            ("http://a.org/news/1", Some(1)),
            ("http://a.org/news/today", Some(2)),
            ("http://b.org/", None),
        ] {
            let found = seeds.of_page(&Url::parse(url).unwrap()).map(|seed| &seed.scope.seed);
            assert_eq!(found, place.map(|place: usize| &seeds.all[place].scope.seed), "{url}");
        }
    }

    #[test]
    fn a_seed_is_found_by_its_number() {
        let all = ["http://a.org/", "http://b.org/"].map(|url| Seed::of_host(Url::parse(url).unwrap()));
        let seeds = Seeds::new(all.to_vec());
        assert!(seeds.with_number(0).is_none(), "numbers come with the state");
        let seeds = seeds.numbered(vec![7, 3]);
        assert_eq!(seeds.with_number(3).unwrap().scope.seed.as_str(), "http://b.org/");
        assert!(seeds.with_number(1).is_none());
    }
}
