//! URLs that somebody wants to follow -> the obstacles, before a crawl meets them.

use std::sync::Arc;
use std::time::Duration;

use perennial_core::http::robots::{Robots, RobotsStatus};
use perennial_core::time::Span;
use perennial_core::url::canonical;
use perennial_fetch::{Client, FetchError, FetchRequest};
use perennial_warc::payload::{DecodingLimits, decode};
use url::Url;

use perennial_archive::Archive;

/// For all URLs together: nobody waits longer for a command that only edits settings.
const MAX_TIME: Duration = Duration::from_secs(3);
/// Most URLs that are checked at once.
const MAX_URLS: usize = 20;
/// Bytes of a robots.txt that are read. A longer one is read by the crawl.
const MAX_BYTES: u64 = 64 << 10;

/// A URL to check.
#[derive(Clone, Debug)]
pub struct ReachTarget {
    pub url: Url,
    pub allow_private: bool,
    /// The interval that the user wants, if any.
    pub every: Option<Span>,
}

/// Resolves the hosts of URLs. Returns a message with a hint for each host that has no permitted address.
pub fn check_names(archive: &Archive, targets: &[ReachTarget]) -> Vec<String> {
    check(archive, targets, |client, target| async move {
        client.resolve(&target.url, target.allow_private).await.err().map(|error| error.to_string())
    })
}

/// Requests the robots.txt of URLs. Returns a message with a hint for each URL that a crawl cannot visit, or not as
/// often as wanted.
pub fn check_robots(archive: &Archive, targets: &[ReachTarget]) -> Vec<String> {
    let table = &archive.settings().crawl;
    check(archive, targets, |client, target| {
        let (agent, is_obeyed, delay) = (table.user_agent(), table.robots, table.politeness.min_delay);
        async move {
            match fetch_robots(&client, &target).await {
                Err(error) => Some(error.to_string()),
                Ok(_) if !is_obeyed => None,
                Ok(robots) => obstacle(&robots, &agent, &target, delay),
            }
        }
    })
}

/// Status and text.
type RobotsResponse = (u16, Vec<u8>);

async fn fetch_robots(client: &Client, target: &ReachTarget) -> Result<RobotsResponse, FetchError> {
    let Some(url) = canonical::resolve(&target.url, "/robots.txt") else { return Ok((404, Vec::new())) };
    let request = FetchRequest { url: &url, fields: &[], allow_private: target.allow_private };
    let mut fetched = client.fetch_up_to(&request, MAX_BYTES).await?;
    let bytes = fetched.body.prefix(MAX_BYTES as usize).map(|bytes| bytes.into_owned()).unwrap_or_default();
    let limits = DecodingLimits { max_bytes: MAX_BYTES, ..DecodingLimits::default() };
    Ok((fetched.status(), decode(&fetched.head, &*bytes, limits).bytes))
}

/// Why robots.txt keeps a crawl from visiting a URL as wanted.
fn obstacle(
    (status, text): &RobotsResponse,
    agent: &str,
    target: &ReachTarget,
    delay: Span,
) -> Option<String> {
    match RobotsStatus::from_http(Some(*status)) {
        RobotsStatus::Unavailable => None,
        RobotsStatus::Unreachable => {
            Some(format!("its robots.txt has status {status}, and nothing is fetched until it is readable"))
        }
        RobotsStatus::Text => {
            let robots = Robots::parse(text, agent);
            let path = &target.url[url::Position::BeforePath..url::Position::AfterQuery];
            if !robots.allows(path) {
                return Some("its robots.txt forbids it, so nothing will be captured".to_owned());
            }
            let pause = Span::from_millis((robots.crawl_delay_secs()? * 1000.0) as i64);
            let is_too_slow = target.every.is_some_and(|every| pause > every);
            (is_too_slow && pause > delay).then(|| {
                let pause = perennial_core::schedule::units::write_span(pause);
                format!("its robots.txt requests a pause of {pause} between two fetches: it will be visited every {pause} at best")
            })
        }
    }
}

/// Checks all URLs at the same time. A time-out is reported as such.
fn check<F>(
    archive: &Archive,
    targets: &[ReachTarget],
    one: impl Fn(Arc<Client>, ReachTarget) -> F,
) -> Vec<String>
where
    F: Future<Output = Option<String>> + Send + 'static,
{
    let table = &archive.settings().crawl;
    let mut client = Client::new(table.user_agent(), table.limits.clone(), table.proxy.clone());
    if let Some(file) = &table.tls_roots
        && let Ok(trusting) = Client::new(table.user_agent(), table.limits.clone(), table.proxy.clone())
            .trusting(&archive.root().join(file))
    {
        // An unreadable file is reported by the crawl.
        client = trusting;
    }
    let client = Arc::new(client);
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let checked = runtime.block_on(async {
        let mut checks = Vec::new();
        for target in targets.iter().take(MAX_URLS) {
            let (url, found) = (target.url.clone(), one(client.clone(), target.clone()));
            checks.push(tokio::spawn(async move {
                let found = tokio::time::timeout(MAX_TIME, found).await;
                let late = || Some(format!("no answer within {MAX_TIME:?}; check this machine's network"));
                found.unwrap_or_else(|_| late()).map(|problem| format!("{url}: {problem}"))
            }));
        }
        let mut checked = Vec::new();
        for check in checks {
            // A check that failed unexpectedly finds nothing, and the crawl reports what there is to report.
            checked.extend(check.await.ok().flatten());
        }
        checked
    });
    // A lookup that hangs must not keep the command waiting.
    runtime.shutdown_background();
    checked
}
