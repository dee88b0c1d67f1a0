//! One address -> a report: robots.txt, the exchange, its document, the browser, the addresses that were found.
//!
//! Each visit is a task of its own and writes nothing: its result is a [`VisitReport`], which the recorder makes durable.

use std::sync::Arc;
use std::time::Duration;

use perennial_core::http::robots::RobotsStatus;
use perennial_core::http::verdict::{AnswerKind, Identity};
use perennial_core::time::Timestamp;
use perennial_warc::Compression;
use perennial_warc::payload::{CutCause, Limits, Payload, decode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::block_in_place;
use url::Url;

use super::browser::{Browser, is_shell};
use super::clock::Clock;
use super::discover::Discoveries;
use super::exchange::Exchanged;
use super::failure::{Failure, FailureKind};
use super::robots::RobotsCache;
use perennial_archive::feeds;
use perennial_archive::links;
use perennial_archive::settings::{CrawlTable, Keep, Renderer, Seed, Seeds};
use perennial_archive::store::{Discovery, FeedRow, PageKind, Target};
use perennial_archive::{LeftOut, hops_of};
use perennial_engine::analyse::PageAnalyst;
use perennial_engine::background;
use perennial_fetch::{Client, Fetched, FetchedBody, Request};

/// Bytes of a decoded body that are read: a gzip bomb ends here.
const MAX_DECODED_BYTES: u64 = 32 << 20;
/// The field of a request that tells the time of a time-lapse.
const VIRTUAL_TIME: &str = "Perennial-Time";
/// A sitemap longer than this after its codings are undone is read on its own, like a large document.
const LARGE_SITEMAP_BYTES: u64 = 8 << 20;
/// Bytes of a page in which meta elements are searched.
const MAX_META_BYTES: usize = 64 << 10;

/// How many answers are read at a time. Reading is work of the processor on bytes that strangers wrote: it runs beside the
/// threads that keep all connections going, no more of it than there are cores, and of large documents one at a time, which
/// bounds their memory.
pub struct Readers {
    any: Semaphore,
    large: Arc<Semaphore>,
}

impl Default for Readers {
    fn default() -> Readers {
        let n_cores = std::thread::available_parallelism().map_or(2, usize::from);
        Readers { any: Semaphore::new(n_cores), large: Arc::new(Semaphore::new(1)) }
    }
}

/// What all visits share.
pub struct Shared {
    /// Turns at reading what came.
    pub readers: Readers,
    /// The HTTP client.
    pub client: Client,
    /// robots.txt by origin.
    pub robots: RobotsCache,
    /// The seeds, with their numbers in the state.
    pub seeds: Seeds,
    /// Politeness and limits.
    pub table: CrawlTable,
    /// The clock of the crawl, real or virtual.
    pub clock: Clock,
    /// `--allow-private`.
    pub allow_private: bool,
    /// Compression of WARC records.
    pub compression: Compression,
    /// Renders pages that are empty without scripts.
    pub browser: Browser,
    /// Analyses pages; `None` with `--no-analysis`.
    pub analyst: Option<Arc<PageAnalyst>>,
}

impl Shared {
    /// Tells a server on this machine which time it is in a time-lapse, so that it can show its pages as they were then.
    pub(super) fn time_field(&self) -> Option<(&'static str, String)> {
        self.clock.is_time_lapse().then(|| (VIRTUAL_TIME, self.clock.now().to_rfc3339()))
    }
}

/// The result of a visit.
pub struct VisitReport {
    /// The address that was visited.
    pub target: Target,
    /// Why it was visited, for the log.
    pub reason: String,
    /// robots.txt, if it had to be fetched first.
    pub robots: Option<Exchanged>,
    /// The exchange itself.
    pub result: Result<Exchanged, Failure>,
    /// Further exchanges: what a browser fetched to render the page.
    pub beside: Vec<Exchanged>,
    /// Whether validators were sent.
    pub conditional: bool,
    /// Addresses that it names.
    pub found: Vec<Discovery>,
    /// What it says as a feed, if it is one.
    pub feed: Option<Box<FeedRow>>,
    /// When the exchange ended.
    pub done_at: Timestamp,
    /// How long the exchange took.
    pub took: Duration,
    /// Crawl-delay of its robots.txt.
    pub crawl_delay_secs: Option<f64>,
    /// A message for the user.
    pub warning: Option<String>,
}

/// Visits a target; errors become part of the report.
pub async fn visit(shared: Arc<Shared>, target: Target, reason: String) -> VisitReport {
    let started = std::time::Instant::now();
    let found = Discoveries::new(&shared.seeds, &shared.table, shared.clock.now(), &target);
    let mut visit =
        VisitTask { shared: &shared, found, robots: None, crawl_delay_secs: None, feed: None, turn: None };
    let (mut result, conditional) = visit.run(&target).await;
    let (mut beside, mut warning) = (Vec::new(), None);
    if let Ok(exchanged) = &mut result {
        (beside, warning) = visit.draw(&shared, &target, exchanged).await;
        exchanged.left_out = visit.leave_out(&target, exchanged).await;
        // A report may wait, and what was read of it need not.
        exchanged.document = None;
        if exchanged.left_out.is_none() {
            visit.turn = None;
            let _turn = shared.readers.any.acquire().await;
            block_in_place(|| exchanged.prepare(shared.compression));
        }
    }
    let took = result.as_ref().map_or(started.elapsed(), |exchanged| exchanged.fetched.took);
    let VisitTask { found, robots, crawl_delay_secs, feed, .. } = visit;
    let found = found.into_found();
    VisitReport {
        target,
        reason,
        robots,
        result,
        beside,
        conditional,
        found,
        feed,
        done_at: shared.clock.now(),
        took,
        crawl_delay_secs,
        warning,
    }
}

/// A visit while it runs.
struct VisitTask<'a> {
    shared: &'a Shared,
    found: Discoveries<'a>,
    robots: Option<Exchanged>,
    crawl_delay_secs: Option<f64>,
    feed: Option<Box<FeedRow>>,
    /// The turn at a large document, which is held for as long as its text is.
    turn: Option<OwnedSemaphorePermit>,
}

impl VisitTask<'_> {
    async fn run(&mut self, target: &Target) -> (Result<Exchanged, Failure>, bool) {
        let Ok(url) = Url::parse(&target.url) else {
            return (Err(Failure::new(FailureKind::BadUrl, "the address cannot be read")), false);
        };
        if let Err(refused) = self.admit(target, &url).await {
            return (Err(refused), false);
        }
        let conditions = conditions(target);
        let fields: Vec<_> = conditions.iter().cloned().chain(self.shared.time_field()).collect();
        let time = self.shared.clock.now();
        let allow_private = self.allows_private(target, &url);
        let request = Request { url: &url, fields: &fields, allow_private };
        let exchanged = match self.shared.client.fetch(&request).await {
            Ok(fetched) => Ok(self.read(target, &url, fetched, time).await),
            Err(error) => Err(Failure::of_fetch(&error)),
        };
        (exchanged.and_then(|exchanged| self.respect_noarchive(exchanged)), !conditions.is_empty())
    }

    /// Refuses what robots.txt forbids, and under a virtual clock all hosts but loopback ones.
    async fn admit(&mut self, target: &Target, url: &Url) -> Result<(), Failure> {
        if self.shared.clock.is_time_lapse() && !is_loopback(url) {
            let detail = "time-lapse runs on loopback hosts only: crawl other hosts in real time";
            return Err(Failure::new(FailureKind::TimeLapse, detail));
        }
        if !self.shared.table.robots {
            return Ok(());
        }
        let allow_private = self.allows_private(target, url);
        let answer = self.shared.robots.get(self.shared, url, allow_private).await;
        if let Some(exchanged) = answer.exchanged {
            self.robots = Some(exchanged);
            self.found.find_sitemaps(url, answer.origin.robots.sitemaps());
        }
        if answer.origin.status == RobotsStatus::Unreachable {
            let why = answer.origin.failure.clone();
            let detail = "robots.txt cannot be read: nothing is fetched until it can";
            return Err(why.unwrap_or_else(|| Failure::new(FailureKind::RobotsUnreachable, detail)));
        }
        self.crawl_delay_secs = answer.origin.robots.crawl_delay_secs();
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        match answer.origin.robots.allows(path) {
            true => Ok(()),
            false => Err(Failure::new(FailureKind::RobotsDisallowed, "robots.txt forbids it")),
        }
    }

    /// `allow_private` of a site holds for its scheme, host and port only: not for hosts that it redirects or links to, and not
    /// for other services of its host.
    fn allows_private(&self, target: &Target, url: &Url) -> bool {
        self.shared.allow_private
            || self
                .seed_of_target(target)
                .is_some_and(|seed| seed.allow_private && seed.scope.seed.origin() == url.origin())
    }

    /// Renders the page in a browser where the site's settings say so or the page is empty without scripts.
    async fn draw(
        &mut self,
        shared: &Arc<Shared>,
        target: &Target,
        exchanged: &mut Exchanged,
    ) -> (Vec<Exchanged>, Option<String>) {
        let Some((url, html)) = self.drawable(target, exchanged) else { return (Vec::new(), None) };
        let allow_private = self.allows_private(target, &url);
        let (task_shared, task_url, time) = (shared.clone(), url.clone(), exchanged.time);
        let drawing = tokio::task::spawn_blocking(move || {
            task_shared.browser.draw(&task_shared, &task_url, &html, allow_private, time)
        });
        match drawing.await.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(drawn) => {
                let links = links::find_drawn(&url, drawn.dom.as_bytes());
                self.found.follow(&url, &links);
                exchanged.links = links.kept();
                exchanged.dom = Some(drawn.dom);
                (drawn.exchanged, drawn.note)
            }
            Err(error) => (Vec::new(), shared.browser.warning(&error)),
        }
    }

    /// Analyses a page before it is stored, where the site keeps important versions only.
    async fn leave_out(&self, target: &Target, exchanged: &mut Exchanged) -> Option<LeftOut> {
        let analyst = self.shared.analyst.clone()?;
        let is_wanted = target.kind == PageKind::Page
            && exchanged.fetched.status() == 200
            && exchanged.fetched.cut.is_none()
            && self.seed_of_target(target)?.keep == Keep::Important;
        let html = exchanged.html().filter(|_| is_wanted)?.to_owned();
        let FetchedBody::Memory(payload) = &exchanged.fetched.body else { return None };
        let payload = payload.clone();
        let (page, url, time) = (target.page, target.url.clone(), exchanged.time);
        let look = move || analyst.leave_out(page, &url, time, &payload, &html);
        // A page that cannot be analysed is stored in full.
        tokio::task::spawn_blocking(look).await.ok()?.ok()?
    }

    fn drawable(&self, target: &Target, exchanged: &Exchanged) -> Option<(Url, String)> {
        let html = exchanged.html().filter(|_| target.kind == PageKind::Page)?;
        let is_wanted = match self.seed_of_target(target)?.renderer {
            Renderer::Layout => false,
            Renderer::Chromium => true,
            Renderer::Auto => is_shell(html),
        };
        is_wanted.then(|| Some((Url::parse(&target.url).ok()?, html.to_owned())))?
    }

    fn respect_noarchive(&self, exchanged: Exchanged) -> Result<Exchanged, Failure> {
        if self.shared.table.noarchive && says_noarchive(&exchanged) {
            return Err(Failure::new(FailureKind::NoArchive, "the page asks not to be archived"));
        }
        Ok(exchanged)
    }

    async fn read(&mut self, target: &Target, url: &Url, fetched: Fetched, time: Timestamp) -> Exchanged {
        let hops = hops_of(target.kind, target.depth, target.n_redirects);
        let mut exchanged = Exchanged::new(target.url.clone(), time, hops, fetched);
        let is_read = {
            let _turn = self.shared.readers.any.acquire().await;
            block_in_place(|| self.try_read(target, url, &mut exchanged))
        };
        if !is_read {
            exchanged.is_large = true;
            self.turn = self.shared.readers.large.clone().acquire_owned().await.ok();
            let read = block_in_place(|| background::run(|| self.try_read(target, url, &mut exchanged)));
            if read.is_err() {
                exchanged.unread = Some("reading it failed unexpectedly".into());
            }
        }
        exchanged
    }

    /// Reads what an answer says; false, and nothing noted, if it is a large one and was not expected to be.
    fn try_read(&mut self, target: &Target, url: &Url, exchanged: &mut Exchanged) -> bool {
        if !exchanged.read_document() {
            return false;
        }
        if target.kind == PageKind::Sitemap {
            // A sitemap of news has headlines and times: it is a feed.
            if self.shared.table.feeds {
                self.read_feed(url, exchanged);
            }
            if self.feed.is_none() && !self.read_sitemap(url, exchanged) {
                return false;
            }
        }
        let links = links::find(url, &exchanged.fetched.head, exchanged.document.as_ref(), None);
        if let Some(links) = &links {
            self.found.follow(url, links);
        }
        exchanged.links = links.and_then(|links| links.kept());
        if matches!(target.kind, PageKind::Page | PageKind::Feed) && self.shared.table.feeds {
            self.read_feed(url, exchanged);
        }
        true
    }

    /// Notes what an answer says as a feed, also where nobody expected one.
    fn read_feed(&mut self, url: &Url, exchanged: &mut Exchanged) {
        let Fetched { head, body, .. } = &mut exchanged.fetched;
        if !feeds::may_be_feed(head) {
            return;
        }
        let Ok(body) = body.prefix(links::MAX_STORED_BYTES as usize) else { return };
        self.feed = feeds::read_feed(url.as_str(), head, &body);
        if let Some(feed) = &self.feed {
            self.found.read_feed(url, feed);
        }
    }

    fn read_sitemap(&mut self, url: &Url, exchanged: &mut Exchanged) -> bool {
        if AnswerKind::of_status(exchanged.fetched.status()) != AnswerKind::Content {
            return true;
        }
        let max_bytes = if exchanged.is_large { MAX_DECODED_BYTES } else { LARGE_SITEMAP_BYTES };
        let Some(body) = decoded_up_to(&mut exchanged.fetched, max_bytes) else { return true };
        if !exchanged.is_large && body.cut.as_ref().is_some_and(|cut| cut.cause == CutCause::TooLarge) {
            return false;
        }
        exchanged.unread = body.cut.as_ref().map(|cut| cut.to_string());
        self.found.read_sitemap(url, &body.bytes);
        true
    }

    fn seed_of_target(&self, target: &Target) -> Option<&Seed> {
        self.shared.seeds.with_number(target.seed)
    }
}

fn conditions(target: &Target) -> Vec<(&'static str, String)> {
    // A page that a browser draws changes with what its scripts fetch: 304 for its shell would say nothing.
    let is_rendered = target.identity.as_ref().is_some_and(Identity::is_rendered);
    if is_rendered || target.digest.is_none() || !target.trust.sends_condition() {
        return Vec::new();
    }
    let etag = target.validators.etag.iter().map(|etag| ("If-None-Match", etag.clone()));
    let date = target.validators.last_modified.iter().map(|date| ("If-Modified-Since", date.clone()));
    etag.chain(date).collect()
}

/// Whether a URL names this machine. Of names only those of localhost count, because others are not resolved here.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// The body without transfer and content coding, bounded; `None` when the spooled body cannot be read.
pub(super) fn decoded(fetched: &mut Fetched) -> Option<Vec<u8>> {
    Some(decoded_up_to(fetched, MAX_DECODED_BYTES)?.bytes)
}

fn decoded_up_to(fetched: &mut Fetched, max_bytes: u64) -> Option<Payload> {
    let bytes = fetched.body.prefix(MAX_DECODED_BYTES as usize).ok()?;
    Some(decode(&fetched.head, &*bytes, Limits { max_bytes, ..Limits::default() }))
}

/// `X-Robots-Tag: noarchive`, or the same in a meta element near the top.
fn says_noarchive(exchanged: &Exchanged) -> bool {
    let mut fields = exchanged.fetched.head.get_all("X-Robots-Tag");
    if fields.any(|value| value.to_ascii_lowercase().contains("noarchive")) {
        return true;
    }
    let Some(html) = exchanged.html() else { return false };
    let end = html.floor_char_boundary(MAX_META_BYTES);
    html[..end].to_ascii_lowercase().split("<meta").skip(1).any(|tag| {
        let tag = tag.split('>').next().unwrap_or_default();
        tag.contains("robots") && tag.contains("noarchive")
    })
}
