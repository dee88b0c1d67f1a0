//! Renders pages in a browser, which runs their scripts, and records all requests that the scripts make.
//!
//! The browser has no network access. The crawl's own client answers each of its requests, subject to the address
//! guard and robots.txt, and records it byte by byte. If the browser is missing, crashes or hangs, the user gets a
//! warning and the page is captured without it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use perennial_core::time::Timestamp;
use perennial_render::launch::{LaunchOptions, has_namespaces};
use perennial_render::{BrowserOptions, BrowserPage, CapturedResource, Chromium};
use url::Url;

use super::exchange::FetchedExchange;
use super::visit::{VisitContext, decoded};
use perennial_archive::store::PageKind;
use perennial_archive::write_hops;
use perennial_fetch::FetchRequest;

/// Most requests per page. Further requests fail.
const MAX_REQUESTS: usize = 300;
/// Most bytes of bodies per page. Further requests fail.
const MAX_BYTES: u64 = 64 << 20;
/// Larger pages are never treated as shells.
const MAX_SHELL_BYTES: usize = 4 << 20;
/// After this many consecutive failed starts, this crawl does not use the browser again.
const MAX_FAILED_STARTS: u64 = 3;
/// After this many consecutive failures, pages of the host are no longer rendered. Other hosts are not affected.
const MAX_FAILURES_OF_HOST: usize = 3;
/// Most hosts with failure counts, and most warnings.
const MAX_KNOWN: usize = 1000;

/// The browser of a crawl. It starts with the first page that needs it.
pub(super) struct Browser {
    chromium: Mutex<Chromium>,
    /// Consecutive failures by host. A site that hangs the browser must not use up the time limit of every page.
    failures: Mutex<HashMap<String, usize>>,
    warned: Mutex<HashSet<String>>,
    /// The default icons of hosts that were requested. The browser requests them for each page.
    icons: Mutex<HashSet<String>>,
    has_noted: AtomicBool,
}

/// A rendered page.
pub(super) struct RenderedPage {
    /// The document after its scripts ran.
    pub(super) dom: String,
    pub(super) exchanges: Vec<FetchedExchange>,
    pub(super) note: Option<String>,
}

impl Browser {
    /// `time` is the limit per page.
    pub(super) fn new(time: Duration, sandbox: bool) -> Browser {
        let launch = LaunchOptions { sandbox, ..LaunchOptions::default() };
        Browser {
            chromium: Mutex::new(Chromium::new(BrowserOptions { time, launch, ..BrowserOptions::default() })),
            failures: Mutex::default(),
            warned: Mutex::default(),
            icons: Mutex::default(),
            has_noted: AtomicBool::new(false),
        }
    }

    /// Renders a fetched page. Blocks the thread.
    pub(super) fn render(
        &self,
        shared: &Arc<VisitContext>,
        url: &Url,
        html: &str,
        allow_private: bool,
        now: Timestamp,
    ) -> Result<RenderedPage, String> {
        let runtime = tokio::runtime::Handle::current();
        let (exchanges, n_bytes) = (Mutex::new(Vec::new()), AtomicU64::new(0));
        let response = |requested_url: &str, deadline: Instant| -> Option<CapturedResource> {
            let is_room = exchanges.lock().is_ok_and(|exchanges| exchanges.len() < MAX_REQUESTS)
                && n_bytes.load(Ordering::Relaxed) < MAX_BYTES;
            let to = Url::parse(requested_url)
                .ok()
                .filter(|to| is_room && matches!(to.scheme(), "http" | "https"))?;
            if self.is_known_icon(&to) {
                return None;
            }
            let fetched = async {
                let fetching = fetch(shared, url, &to, allow_private, now);
                tokio::time::timeout_at(deadline.into(), fetching).await
            };
            let (captured, exchange) = runtime.block_on(fetched).ok()??;
            n_bytes.fetch_add(exchange.fetched.body.len(), Ordering::Relaxed);
            exchanges.lock().ok()?.push(exchange);
            Some(captured)
        };
        let page = BrowserPage { url: url.as_str(), html, unix_millis: now.as_millis() };
        let dom = {
            let mut chromium =
                self.chromium.lock().map_err(|_| "it failed on an earlier page".to_string())?;
            self.check(&chromium, url)?;
            let rendered = chromium.document(&page, &response).map_err(|error| error.to_string());
            if chromium.n_failed_starts() == 0 {
                self.count(url, rendered.is_ok());
            }
            rendered?.html
        };
        let exchanges = exchanges.into_inner().unwrap_or_default();
        Ok(RenderedPage { dom, exchanges, note: self.note() })
    }

    /// Whether an earlier page had the browser request this icon, which shows in no page.
    fn is_known_icon(&self, url: &Url) -> bool {
        let mut icons = self.icons.lock().unwrap_or_else(PoisonError::into_inner);
        url.path() == "/favicon.ico" && (icons.len() >= MAX_KNOWN || !icons.insert(url.to_string()))
    }

    /// Whether the browser is still used for pages of this host.
    fn check(&self, chromium: &Chromium, url: &Url) -> Result<(), String> {
        if chromium.n_failed_starts() >= MAX_FAILED_STARTS {
            return Err(format!("it could not be started {MAX_FAILED_STARTS} times in a row"));
        }
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let host = url.host_str().unwrap_or_default();
        match failures.get(host).is_some_and(|&n_failures| n_failures >= MAX_FAILURES_OF_HOST) {
            true => Err(format!("it failed {MAX_FAILURES_OF_HOST} times in a row on pages of {host}")),
            false => Ok(()),
        }
    }

    fn count(&self, url: &Url, is_rendered: bool) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let host = url.host_str().unwrap_or_default();
        if is_rendered {
            failures.remove(host);
        } else if failures.len() < MAX_KNOWN || failures.contains_key(host) {
            *failures.entry(host.to_owned()).or_default() += 1;
        }
    }

    /// A note about a working but less isolated browser, on the first call only.
    fn note(&self) -> Option<String> {
        let is_first = !self.has_noted.swap(true, Ordering::Relaxed);
        (is_first && !has_namespaces()).then(|| {
            "the browser has no separate network namespace here: only its settings keep it off the network; \
             see `perennial doctor`"
                .to_owned()
        })
    }

    /// The warning for a page that could not be rendered. Each text is returned once.
    pub(super) fn warning(&self, error: &str) -> Option<String> {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = warned.len() < MAX_KNOWN && warned.insert(error.to_owned());
        is_new.then(|| {
            format!(
                "pages that need scripts are captured without running them: {error}; to skip the browser set \
                 `renderer = \"layout\"` for the site"
            )
        })
    }
}

async fn fetch(
    shared: &Arc<VisitContext>,
    page: &Url,
    to: &Url,
    allow_private: bool,
    now: Timestamp,
) -> Option<(CapturedResource, FetchedExchange)> {
    let allow_private = shared.allow_private || (allow_private && page.origin() == to.origin());
    if shared.table.robots {
        let path = &to[url::Position::BeforePath..url::Position::AfterQuery];
        let origin = shared.robots.get(shared, to, allow_private).await.origin;
        if !origin.rules.as_ref().is_ok_and(|rules| rules.allows(path)) {
            return None;
        }
    }
    let fields: Vec<_> = shared.time_field().into_iter().collect();
    let request = FetchRequest { url: to, fields: &fields, allow_private };
    let mut fetched = shared.client.fetch(&request).await.ok()?;
    let location = fetched.head.get("Location").filter(|_| (300..400).contains(&fetched.status()));
    let captured = CapturedResource {
        status: fetched.status(),
        content_type: fetched.head.get("Content-Type").unwrap_or_default().into_owned(),
        location: location.map(Cow::into_owned),
        body: decoded(&mut fetched)?,
    };
    let hops = write_hops(PageKind::Subresource, 1, 0);
    Some((captured, FetchedExchange::new(to.to_string(), now, hops, fetched)))
}

/// Whether a page is a shell: it has scripts and fewer than 200 visible characters.
pub(super) fn is_shell(html: &str) -> bool {
    if html.len() > MAX_SHELL_BYTES {
        return false;
    }
    let lower = html.to_ascii_lowercase();
    if !lower.contains("<script") {
        return false;
    }
    let body = lower.find("<body").map_or(lower.as_str(), |at| &lower[at..]);
    visible_letters(body) < 200
}

/// Elements with invisible text.
const UNSEEN: [&str; 4] = ["script", "style", "noscript", "template"];

/// Approximate number of letters and digits outside of tags, scripts and styles. The pass is linear: the end of each
/// unclosed element is searched once.
fn visible_letters(html: &str) -> usize {
    let mut n_letters = 0;
    let mut rest = html;
    let mut is_unclosed = [false; UNSEEN.len()];
    while let Some(open) = rest.find('<') {
        n_letters += rest[..open].chars().filter(|c| c.is_alphanumeric()).count();
        rest = &rest[open..];
        let unseen =
            UNSEEN.iter().position(|tag| rest[1..].starts_with(tag)).filter(|&tag| !is_unclosed[tag]);
        let from = match unseen.map(|tag| (tag, rest.find(&format!("</{}", UNSEEN[tag])))) {
            Some((_, Some(end))) => end,
            Some((tag, None)) => {
                is_unclosed[tag] = true;
                0
            }
            None => 0,
        };
        match rest[from..].find('>') {
            Some(close) => rest = &rest[from + close + 1..],
            None => return n_letters,
        }
    }
    n_letters + rest.chars().filter(|c| c.is_alphanumeric()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_distinguished_from_pages() {
        let app = "<html><head><title>App</title></head><body><div id=root></div><script src=/a.js></script></body></html>";
        assert!(is_shell(app));
        assert!(is_shell(
            "<body><noscript>You need JavaScript to run this app, please enable it in your browser settings</noscript><script>x</script>"
        ));
        let page = format!("<body><script>var x = 1;</script><p>{}</p></body>", "real words ".repeat(50));
        assert!(!is_shell(&page));
        assert!(!is_shell("<body><p>short, but all there is</p></body>"));
        // No script is closed. A search for the end of each would take hours.
        assert!(is_shell(&"<script>".repeat(400_000)));
        assert!(!is_shell(&"<script>".repeat(600_000)));
    }
}
