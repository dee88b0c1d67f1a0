//! `[crawl]` of perennial.toml -> politeness and limits.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use perennial_core::http::politeness::PolitenessConfig;
use perennial_core::schedule::units::parse_budget;
use perennial_core::schedule::{Budget, Goal, GoalError};
use perennial_core::time::Span;
use url::Url;

use super::reader::TableReader;
use perennial_core::http::limits::{FetchLimits, Proxy};

/// The default period of a budget.
const HOUR: Span = Span::from_hours(1);
const MOST: i64 = u32::MAX as i64;

/// `[crawl]`: politeness and limits.
#[derive(Debug, Clone)]
pub struct CrawlTable {
    /// An e-mail address or web page through which site owners can reach the operator.
    pub contact: String,
    /// Replaces the whole User-Agent. Its first word selects the rules in robots.txt.
    pub user_agent: Option<String>,
    /// Whether robots.txt is obeyed.
    pub robots: bool,
    /// Whether the crawl respects a page's `noarchive`.
    pub noarchive: bool,
    pub sitemaps: bool,
    pub feeds: bool,
    /// Polls of all feeds per period; `None`: each feed's limit applies alone.
    pub feed_polls: Option<Budget>,
    /// The URL at which hubs of feeds can reach this crawl; `None`: it does not subscribe to hubs.
    pub websub_callback: Option<Url>,
    /// The socket address on which this crawl listens for hubs.
    pub websub_listen: SocketAddr,
    /// Whether pages are captured with their style sheets, images, fonts and scripts.
    pub subresources: bool,
    /// A subresource captured less than this ago is not fetched again.
    pub subresource_span: Span,
    /// The HTTP proxy for all requests.
    pub proxy: Option<Proxy>,
    /// A PEM file with further trusted certificates, relative to the archive's folder.
    pub tls_roots: Option<PathBuf>,
    /// The browser's time limit for one page.
    pub browser_timeout: Duration,
    /// Whether the browser runs in its sandbox.
    pub browser_sandbox: bool,
    /// Maximum number of concurrent fetches over all hosts.
    pub max_workers: usize,
    /// Limits of one exchange.
    pub limits: FetchLimits,
    /// Pauses between two fetches from a host.
    pub politeness: PolitenessConfig,
    /// Attempts at one page before `--once` gives up.
    pub max_tries: u16,
    /// The longest time that `--once` waits for a host.
    pub max_wait: Span,
    /// Maximum number of consecutive redirects.
    pub max_redirects: u32,
    /// Links followed from a seed without its own `depth`.
    pub max_depth: u32,
    /// Maximum number of pages of one host whose URLs differ only in numbers and values.
    pub max_pages_per_shape: u32,
    /// The budget of all sites together.
    pub allowance: BudgetTable,
    /// The goal of the crawl on sites without their own.
    pub goal: Goal,
    /// Whether quiet hours save visits for busy ones. With `None`, they do if the goal uses sweeps and the budget
    /// covers a day or longer.
    pub varying_budget: Option<bool>,
    /// The share of the budget reserved for pages that were not visited for a long time; `None`: the strategy's
    /// default.
    pub floor: Option<f32>,
}

/// A budget of visits and bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct BudgetTable {
    /// Page visits per period.
    pub visits: Option<Budget>,
    /// Bytes of bodies per day, including subresources.
    pub bytes_per_day: Option<u64>,
}

impl Default for CrawlTable {
    fn default() -> CrawlTable {
        CrawlTable {
            contact: String::new(),
            user_agent: None,
            robots: true,
            noarchive: false,
            sitemaps: true,
            feeds: true,
            feed_polls: None,
            websub_callback: None,
            websub_listen: SocketAddr::from(([127, 0, 0, 1], 8474)),
            subresources: true,
            subresource_span: Span::from_hours(24),
            proxy: None,
            tls_roots: None,
            browser_timeout: Duration::from_secs(30),
            browser_sandbox: true,
            max_workers: 64,
            limits: FetchLimits::default(),
            politeness: PolitenessConfig::default(),
            max_tries: 3,
            max_wait: Span::from_secs(600),
            max_redirects: 10,
            max_depth: 100,
            max_pages_per_shape: 100_000,
            allowance: BudgetTable::default(),
            goal: Goal::default(),
            varying_budget: None,
            floor: None,
        }
    }
}

pub fn parse_goal(text: &str) -> Result<Goal, String> {
    text.parse().map_err(|error: GoalError| error.to_string())
}

impl CrawlTable {
    pub fn user_agent(&self) -> String {
        match &self.user_agent {
            Some(own) => own.clone(),
            None if self.contact.is_empty() => concat!("perennial/", env!("CARGO_PKG_VERSION")).to_string(),
            None => format!("perennial/{} (+{})", env!("CARGO_PKG_VERSION"), self.contact),
        }
    }

    /// Whether the User-Agent names a contact: in `contact`, or in the user's own text.
    pub fn names_a_contact(&self) -> bool {
        !self.contact.trim().is_empty() || self.user_agent.is_some()
    }

    pub(super) fn read(reader: &mut TableReader<'_, '_>) -> CrawlTable {
        let usual = CrawlTable::default();
        CrawlTable {
            contact: reader.text("contact").unwrap_or(usual.contact),
            user_agent: reader.parsed("user_agent", agent),
            robots: reader.bool("robots", usual.robots),
            noarchive: reader.bool("noarchive", usual.noarchive),
            sitemaps: reader.bool("sitemaps", usual.sitemaps),
            feeds: reader.bool("feeds", usual.feeds),
            feed_polls: reader.parsed("feed_polls", budget),
            websub_callback: reader.parsed("websub_callback", callback),
            websub_listen: reader.parsed("websub_listen", listen).unwrap_or(usual.websub_listen),
            subresources: reader.bool("subresources", usual.subresources),
            subresource_span: reader.span("subresource_hours", 3600.0, usual.subresource_span),
            proxy: reader.parsed("proxy", proxy),
            tls_roots: reader.text("tls_roots").map(PathBuf::from),
            browser_timeout: reader.timeout("browser_timeout_secs", usual.browser_timeout),
            browser_sandbox: reader.bool("browser_sandbox", usual.browser_sandbox),
            max_workers: reader.whole("max_workers", 1..=100_000).unwrap_or(usual.max_workers),
            limits: read_limits(reader),
            politeness: read_politeness(reader),
            max_tries: reader.whole("max_tries", 1..=1000).unwrap_or(usual.max_tries),
            max_wait: reader.span("max_wait_secs", 1.0, usual.max_wait),
            max_redirects: reader.whole("max_redirects", 0..=MOST).unwrap_or(usual.max_redirects),
            max_depth: reader.whole("max_depth", 0..=MOST).unwrap_or(usual.max_depth),
            max_pages_per_shape: reader
                .whole("max_pages_per_shape", 1..=MOST)
                .unwrap_or(usual.max_pages_per_shape),
            allowance: BudgetTable::read(reader),
            goal: reader.parsed("goal", parse_goal).unwrap_or(usual.goal),
            varying_budget: reader.maybe("varying_budget"),
            floor: reader.number("floor", 0.0..=1.0).map(|share| share as f32),
        }
    }
}

impl BudgetTable {
    /// Reads the keys that `[crawl]` and `[[site]]` share.
    pub(super) fn read(reader: &mut TableReader<'_, '_>) -> BudgetTable {
        BudgetTable { visits: reader.parsed("budget", budget), bytes_per_day: reader.bytes("bytes_per_day") }
    }
}

fn read_limits(reader: &mut TableReader<'_, '_>) -> FetchLimits {
    let usual = FetchLimits::default();
    let max_head = reader.bytes("max_head_bytes").and_then(|bytes| usize::try_from(bytes).ok());
    FetchLimits {
        max_body_bytes: reader.bytes("max_body_bytes").unwrap_or(usual.max_body_bytes),
        max_head_bytes: max_head.unwrap_or(usual.max_head_bytes),
        connect_timeout: reader.timeout("connect_timeout_secs", usual.connect_timeout),
        head_timeout: reader.timeout("head_timeout_secs", usual.head_timeout),
        total_timeout: reader.timeout("total_timeout_secs", usual.total_timeout),
        drip_window: reader.timeout("drip_window_secs", usual.drip_window),
        min_bytes_per_window: reader
            .whole("min_bytes_per_window", 0..=MOST)
            .unwrap_or(usual.min_bytes_per_window),
        ..usual
    }
}

fn read_politeness(reader: &mut TableReader<'_, '_>) -> PolitenessConfig {
    let usual = PolitenessConfig::default();
    let read = PolitenessConfig {
        factor: reader.number("delay_factor", 0.0..=1e6).unwrap_or(usual.factor),
        min_delay: reader.span("min_delay_secs", 1.0, usual.min_delay),
        max_delay: reader.span("max_delay_secs", 1.0, usual.max_delay),
        first_backoff: reader.span("first_backoff_secs", 1.0, usual.first_backoff),
        max_backoff: reader.span("max_backoff_secs", 1.0, usual.max_backoff),
        ..usual
    };
    in_order(reader, ("min_delay_secs", read.min_delay), ("max_delay_secs", read.max_delay));
    in_order(reader, ("first_backoff_secs", read.first_backoff), ("max_backoff_secs", read.max_backoff));
    read
}

/// The second value must not be below the first. The mistake names the key that the file contains; if it contains both,
/// the second.
fn in_order(reader: &mut TableReader<'_, '_>, least: (&'static str, Span), most: (&'static str, Span)) {
    if least.1 <= most.1 {
        return;
    }
    match reader.has(most.0) {
        true => {
            reader.refuse(most.0, &format!("it must not be below {} ({})", least.0, least.1.as_secs_f64()))
        }
        false => {
            reader.refuse(least.0, &format!("it must not be above {} ({})", most.0, most.1.as_secs_f64()))
        }
    }
}

fn budget(text: &str) -> Result<Budget, String> {
    parse_budget(text, HOUR).map_err(|error| error.to_string())
}

fn callback(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| {
        "write the address at which hubs reach this machine, like https://archive.example/hubs/".to_owned()
    })
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write address and port, like 127.0.0.1:8474".to_owned())
}

fn proxy(text: &str) -> Result<Proxy, String> {
    Proxy::parse(text).ok_or_else(|| "write it like http://proxy.example:3128".to_owned())
}

fn agent(text: &str) -> Result<String, String> {
    let is_agent = !text.trim().is_empty() && !text.contains(char::is_control);
    is_agent.then(|| text.to_owned()).ok_or_else(|| "write one line, such as \"my-crawler/1.0\"".to_owned())
}
