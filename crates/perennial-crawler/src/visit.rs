//! Makes one visit: robots.txt, the exchange, its document, the browser, the discovered URLs.
//!
//! Each visit is a separate task that writes nothing. The recorder makes its [`VisitRecord`] durable.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use perennial_core::http::politeness::HostState;
use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::http::robots::Robots;
use perennial_core::time::Timestamp;
use perennial_core::url::canonical;
use perennial_warc::Compression;
use perennial_warc::payload::{DecodingLimits, IncompleteCause, Payload, decode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::block_in_place;
use url::Url;

use super::browser::{Browser, is_shell};
use super::clock::Clock;
use super::discover::Discoveries;
use super::exchange::FetchedExchange;
use super::failure::VisitFailure;
use super::record::VisitRecord;
use super::robots::RobotsCache;
use perennial_archive::feeds;
use perennial_archive::links;
use perennial_archive::settings::{CrawlTable, PageRenderer, Seed, Seeds, VersionRetention};
use perennial_archive::store::{FeedRow, PageKind, VisitTarget};
use perennial_archive::{LeftOutVersion, write_hops};
use perennial_engine::analyse::PageAnalyst;
use perennial_engine::background;
use perennial_fetch::{Client, FetchRequest, FetchedBody, FetchedResponse};

/// Most bytes of a decoded body. A gzip bomb is cut here.
const MAX_DECODED_BYTES: u64 = 32 << 20;
/// The request field with the time of a time-lapse.
const VIRTUAL_TIME: &str = "Perennial-Time";
/// A sitemap longer than this after decoding is read separately, like a large document.
const LARGE_SITEMAP_BYTES: u64 = 8 << 20;
/// Bytes of a page that are searched for meta elements.
const MAX_META_BYTES: usize = 64 << 10;

/// Limits how many responses are parsed at a time. Parsing uses the CPU on untrusted bytes, in parallel with the
/// threads that serve connections: at most one response per core. Large documents are parsed one at a time, which
/// bounds their memory.
pub(super) struct ReadPermits {
    any: Semaphore,
    large: Arc<Semaphore>,
}

impl Default for ReadPermits {
    fn default() -> ReadPermits {
        let n_cores = std::thread::available_parallelism().map_or(2, usize::from);
        ReadPermits { any: Semaphore::new(n_cores), large: Arc::new(Semaphore::new(1)) }
    }
}

/// The state that all visits share.
pub(super) struct VisitContext {
    pub(super) readers: ReadPermits,
    pub(super) client: Client,
    pub(super) robots: RobotsCache,
    /// The seeds, with their numbers in the state.
    pub(super) seeds: Seeds,
    pub(super) table: CrawlTable,
    pub(super) clock: Clock,
    pub(super) allow_private: bool,
    /// Origins of requested pages that may be private.
    pub(super) private_origins: Mutex<HashSet<String>>,
    pub(super) compression: Compression,
    /// Renders pages that are empty without scripts.
    pub(super) browser: Browser,
    /// `None` with `--no-analysis`.
    pub(super) analyst: Option<Arc<PageAnalyst>>,
}

impl VisitContext {
    /// Sends the virtual time of a time-lapse to a server on this machine, which then shows its pages as of that
    /// time.
    pub(super) fn time_field(&self) -> Option<(&'static str, String)> {
        self.clock.is_time_lapse().then(|| (VIRTUAL_TIME, self.clock.now().to_rfc3339()))
    }
}

/// Visits a target. A failure is part of the record.
pub(super) async fn visit(
    shared: Arc<VisitContext>,
    target: VisitTarget,
    reason: String,
) -> VisitRecord<FetchedExchange> {
    let started = std::time::Instant::now();
    let mut task = VisitTask {
        shared: &shared,
        target: &target,
        is_conditional: false,
        companions: Vec::new(),
        feed: None,
        discoveries: Discoveries::new(&shared.seeds, &shared.table, shared.clock.now(), &target),
        crawl_delay_secs: None,
        warning: None,
        turn: None,
    };
    let response = task.run().await;
    let took = response.as_ref().map_or(started.elapsed(), |exchange| exchange.fetched.took);
    let VisitTask { is_conditional, companions, feed, discoveries, crawl_delay_secs, warning, .. } = task;
    let discoveries = discoveries.into_found();
    VisitRecord {
        target,
        reason,
        is_conditional,
        response,
        companions,
        feed,
        discoveries,
        ended_at: shared.clock.now(),
        took,
        crawl_delay_secs,
        warning,
        host: HostState::default(),
        new_pages: Vec::new(),
        poll: None,
    }
}

/// A visit in progress.
struct VisitTask<'a> {
    shared: &'a Arc<VisitContext>,
    target: &'a VisitTarget,
    is_conditional: bool,
    companions: Vec<FetchedExchange>,
    feed: Option<Box<FeedRow>>,
    discoveries: Discoveries<'a>,
    crawl_delay_secs: Option<f64>,
    warning: Option<String>,
    /// The permit for a large document, held as long as its text.
    turn: Option<OwnedSemaphorePermit>,
}

impl VisitTask<'_> {
    async fn run(&mut self) -> Result<FetchedExchange, VisitFailure> {
        let url = Url::parse(&self.target.url).map_err(|_| VisitFailure::BadUrl)?;
        self.admit(&url).await?;
        let mut exchange = self.fetch(&url).await?;
        if self.shared.table.noarchive && says_noarchive(&exchange) {
            return Err(VisitFailure::NoArchive);
        }
        self.render(&url, &mut exchange).await;
        exchange.left_out = self.leave_out(&exchange).await;
        // The exchange may wait for the archive, but its text is not needed any more.
        exchange.document = None;
        if exchange.left_out.is_none() {
            self.turn = None;
            let _turn = self.shared.readers.any.acquire().await;
            block_in_place(|| exchange.compress(self.shared.compression));
        }
        Ok(exchange)
    }

    /// Refuses URLs that robots.txt forbids, and under a virtual clock all but loopback hosts.
    async fn admit(&mut self, url: &Url) -> Result<(), VisitFailure> {
        if self.shared.clock.is_time_lapse() && !is_loopback(url) {
            return Err(VisitFailure::TimeLapse);
        }
        if !self.shared.table.robots {
            return Ok(());
        }
        let allow_private = self.allows_private(url);
        let response = self.shared.robots.get(self.shared, url, allow_private).await;
        let rules = &response.origin.rules;
        if let Some(exchange) = response.exchange {
            self.companions.push(exchange);
            self.discoveries.find_sitemaps(url, rules.as_ref().map_or(&[], Robots::sitemaps));
        }
        let rules = rules.as_ref().map_err(Clone::clone)?;
        self.crawl_delay_secs = rules.crawl_delay_secs();
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        if rules.allows(path) { Ok(()) } else { Err(VisitFailure::RobotsDisallowed) }
    }

    async fn fetch(&mut self, url: &Url) -> Result<FetchedExchange, VisitFailure> {
        let mut fields = conditions(self.target);
        self.is_conditional = !fields.is_empty();
        fields.extend(self.shared.time_field());
        let time = self.shared.clock.now();
        let request = FetchRequest { url, fields: &fields, allow_private: self.allows_private(url) };
        let fetched = self.shared.client.fetch(&request).await?;
        Ok(self.read(url, fetched, time).await)
    }

    /// A site's `allow_private` covers its scheme, host and port only. It does not cover hosts that the site
    /// redirects or links to, or other services of its host.
    fn allows_private(&self, url: &Url) -> bool {
        let is_of_seed = |seed: &Seed| seed.allow_private && seed.scope.seed.origin() == url.origin();
        let is_granted = || {
            let granted = self.shared.private_origins.lock();
            granted.is_ok_and(|granted| granted.contains(&canonical::origin(url)))
        };
        self.shared.allow_private || is_granted() || self.seed().is_some_and(is_of_seed)
    }

    /// Renders the page in a browser if the site's settings require it or the page is empty without scripts.
    async fn render(&mut self, url: &Url, exchange: &mut FetchedExchange) {
        let Some(html) = self.html_to_render(exchange) else { return };
        let allow_private = self.allows_private(url);
        let (shared, page, time) = (self.shared.clone(), url.clone(), exchange.time);
        let rendering = tokio::task::spawn_blocking(move || {
            shared.browser.render(&shared, &page, &html, allow_private, time)
        });
        match rendering.await.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(rendered) => {
                let links = links::find_rendered(url, rendered.dom.as_bytes());
                self.discoveries.follow(url, &links);
                exchange.links = links.kept();
                exchange.dom = Some(rendered.dom);
                self.companions.extend(rendered.exchanges);
                self.warning = rendered.note;
            }
            Err(error) => self.warning = self.shared.browser.warning(&error),
        }
    }

    fn html_to_render(&self, exchange: &FetchedExchange) -> Option<String> {
        let html = exchange.html().filter(|_| self.target.kind == PageKind::Page)?;
        let is_wanted = match self.seed()?.renderer {
            PageRenderer::Layout => false,
            PageRenderer::Chromium => true,
            PageRenderer::Auto => is_shell(html),
        };
        is_wanted.then(|| html.to_owned())
    }

    /// Analyses a page before it is stored, if the site keeps important versions only.
    async fn leave_out(&self, exchange: &FetchedExchange) -> Option<LeftOutVersion> {
        let analyst = self.shared.analyst.clone()?;
        let is_wanted = self.target.kind == PageKind::Page
            && exchange.fetched.status() == 200
            && exchange.fetched.truncation.is_none()
            && self.seed()?.keep == VersionRetention::Important;
        let html = exchange.html().filter(|_| is_wanted)?.to_owned();
        let FetchedBody::Memory(payload) = &exchange.fetched.body else { return None };
        let payload = payload.clone();
        let (page, url, time) = (self.target.page, self.target.url.clone(), exchange.time);
        let decide = move || analyst.leave_out(page, &url, time, &payload, &html);
        // A page that cannot be analysed is stored in full.
        tokio::task::spawn_blocking(decide).await.ok()?.ok()?
    }

    async fn read(&mut self, url: &Url, fetched: FetchedResponse, time: Timestamp) -> FetchedExchange {
        let target = self.target;
        let hops = write_hops(target.kind, target.depth, target.n_redirects);
        let mut exchange = FetchedExchange::new(target.url.clone(), time, hops, fetched);
        let is_read = {
            let _turn = self.shared.readers.any.acquire().await;
            block_in_place(|| self.try_read(url, &mut exchange))
        };
        if !is_read {
            exchange.is_large = true;
            self.turn = self.shared.readers.large.clone().acquire_owned().await.ok();
            let read = block_in_place(|| background::run(|| self.try_read(url, &mut exchange)));
            if read.is_err() {
                exchange.unread = Some("reading it failed unexpectedly".into());
            }
        }
        exchange
    }

    /// Reads a response. Returns false and records nothing if it is unexpectedly large.
    fn try_read(&mut self, url: &Url, exchange: &mut FetchedExchange) -> bool {
        let kind = self.target.kind;
        if !exchange.read_document() {
            return false;
        }
        if kind == PageKind::Sitemap {
            // A news sitemap has headlines and times, so it is a feed.
            self.read_feed(url, exchange);
            if self.feed.is_none() && !self.read_sitemap(url, exchange) {
                return false;
            }
        }
        let links = links::find(url, &exchange.fetched.head, exchange.document.as_ref(), None);
        if let Some(links) = &links {
            self.discoveries.follow(url, links);
        }
        exchange.links = links.and_then(|links| links.kept());
        if matches!(kind, PageKind::Page | PageKind::Feed) {
            self.read_feed(url, exchange);
        }
        true
    }

    /// Reads a response as a feed, even if none was expected.
    fn read_feed(&mut self, url: &Url, exchange: &mut FetchedExchange) {
        let FetchedResponse { head, body, .. } = &mut exchange.fetched;
        if !self.shared.table.feeds || !feeds::may_be_feed(head) {
            return;
        }
        let Ok(body) = body.prefix(links::MAX_STORED_BYTES as usize) else { return };
        self.feed = feeds::read_feed(url.as_str(), head, &body);
        if let Some(feed) = &self.feed {
            self.discoveries.read_feed(url, feed);
        }
    }

    fn read_sitemap(&mut self, url: &Url, exchange: &mut FetchedExchange) -> bool {
        if ResponseKind::from_status(exchange.fetched.status()) != ResponseKind::Content {
            return true;
        }
        let max_bytes = if exchange.is_large { MAX_DECODED_BYTES } else { LARGE_SITEMAP_BYTES };
        let Some(body) = decoded_up_to(&mut exchange.fetched, max_bytes) else { return true };
        if !exchange.is_large && body.cut.as_ref().is_some_and(|cut| cut.cause == IncompleteCause::TooLarge) {
            return false;
        }
        exchange.unread = body.cut.as_ref().map(|cut| cut.to_string());
        self.discoveries.read_sitemap(url, &body.bytes);
        true
    }

    fn seed(&self) -> Option<&Seed> {
        self.shared.seeds.with_number(self.target.seed)
    }
}

fn conditions(target: &VisitTarget) -> Vec<(&'static str, String)> {
    // Scripts may change a rendered page while its HTML remains the same. A 304 would hide that.
    let is_rendered = target.identity.as_ref().is_some_and(Identity::is_rendered);
    if is_rendered || target.digest.is_none() || !target.trust.sends_condition() {
        return Vec::new();
    }
    let etag = target.validators.etag.iter().map(|etag| ("If-None-Match", etag.clone()));
    let date = target.validators.last_modified.iter().map(|date| ("If-Modified-Since", date.clone()));
    etag.chain(date).collect()
}

/// Whether a URL refers to this machine. Names are not resolved, so only `localhost` names count.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// The decoded body, bounded; `None` if the spooled body is unreadable.
pub(super) fn decoded(fetched: &mut FetchedResponse) -> Option<Vec<u8>> {
    Some(decoded_up_to(fetched, MAX_DECODED_BYTES)?.bytes)
}

fn decoded_up_to(fetched: &mut FetchedResponse, max_bytes: u64) -> Option<Payload> {
    let bytes = fetched.body.prefix(MAX_DECODED_BYTES as usize).ok()?;
    Some(decode(&fetched.head, &*bytes, DecodingLimits { max_bytes, ..DecodingLimits::default() }))
}

/// `X-Robots-Tag: noarchive`, or the same in a meta element near the top.
fn says_noarchive(exchange: &FetchedExchange) -> bool {
    let mut fields = exchange.fetched.head.get_all("X-Robots-Tag");
    if fields.any(|value| value.to_ascii_lowercase().contains("noarchive")) {
        return true;
    }
    let Some(html) = exchange.html() else { return false };
    let end = html.floor_char_boundary(MAX_META_BYTES);
    html[..end].to_ascii_lowercase().split("<meta").skip(1).any(|tag| {
        let tag = tag.split('>').next().unwrap_or_default();
        tag.contains("robots") && tag.contains("noarchive")
    })
}
