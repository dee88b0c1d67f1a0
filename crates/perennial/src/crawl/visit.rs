//! One address -> what came back and what it leads to: robots.txt, the exchange, links, requisites, sitemaps.
//!
//! Runs as a task of its own and changes nothing: all it learned goes into a [`Report`], which the recorder makes
//! durable.

use std::sync::Arc;
use std::time::Duration;

use perennial_core::canonical;
use perennial_core::charset::{Charset, decode_text, decode_with_charset};
use perennial_core::http::HttpHead;
use perennial_core::links::{LinkKind, find_css_links, find_links};
use perennial_core::payload::{Limits, decode};
use perennial_core::robots::RobotsStatus;
use perennial_core::sitemap;
use perennial_core::surt::surt;
use perennial_core::time::Timestamp;
use perennial_core::trap::find_trap;
use perennial_core::warc::{Compression, Truncation};
use url::Url;

use super::browser::{Browser, is_shell};
use super::clock::Clock;
use super::robots::RobotsCache;
use super::settings::{CrawlTable, Keep, Seeds};
use crate::analyse::PageAnalyst;
use crate::archive::{Body as ArchiveBody, Derived, Exchange, LeftOut, Prepared};
use crate::fetch::{Body, Client, FetchError, Fetched, Request};
use crate::store::{Discovery, LinkTarget, PageKind, Target};

/// Bytes of a decoded body that are read for links: a gzip bomb ends here.
const MAX_DECODED_BYTES: u64 = 32 << 20;
/// Requisites taken from one page.
const MAX_REQUISITES: usize = 500;
/// Style sheets import style sheets: so deep.
const MAX_REQUISITE_DEPTH: u32 = 4;

/// What all visits share.
pub struct Shared {
    /// Fetches.
    pub client: Client,
    /// robots.txt by origin.
    pub robots: RobotsCache,
    /// What belongs to the archive.
    pub seeds: Seeds,
    /// Numbers of the seeds, in their order.
    pub seed_numbers: Vec<i64>,
    /// Manners and limits.
    pub table: CrawlTable,
    /// The crawl's time.
    pub clock: Clock,
    /// `--allow-private`.
    pub allow_private: bool,
    /// How the archive compresses.
    pub compression: Compression,
    /// Runs scripts where they draw the page.
    pub browser: Browser,
    /// Looks at pages, unless the user wants none of it.
    pub analyst: Option<Arc<PageAnalyst>>,
}

/// An exchange on its way into the archive.
pub struct Exchanged {
    /// What was asked for.
    pub url: String,
    /// When.
    pub time: Timestamp,
    /// What came.
    pub fetched: Fetched,
    /// Where it leads, with keys of the index; None: the archive looks itself.
    pub links: Option<Vec<LinkTarget>>,
    /// Content of the page after its scripts ran, where a browser drew it.
    pub dom: Option<String>,
    /// Digests and compressed records, made where there are many threads.
    pub prepared: Option<Prepared>,
    /// What is stored in place of the payload, when that is not worth its bytes.
    pub left_out: Option<LeftOut>,
}

impl Exchanged {
    /// Does the costly part of archiving; whether it succeeds or not, the archive can do without.
    pub fn prepare(&mut self, compression: Compression) {
        self.prepared =
            self.with_exchange(None, |exchange| Prepared::of(&exchange, compression).ok().flatten());
    }

    /// Calls `with` on the exchange as the archive takes it.
    pub fn with_exchange<R>(
        &mut self,
        links: Option<Vec<LinkTarget>>,
        with: impl FnOnce(Exchange<'_>) -> R,
    ) -> R {
        let millis = self.fetched.took.as_millis().to_string();
        let dom_uri = format!("urn:dom:{}", self.url);
        let content_type = "text/html; charset=utf-8";
        let derived: Vec<Derived<'_>> = self
            .dom
            .iter()
            .map(|dom| Derived { uri: &dom_uri, content_type, bytes: dom.as_bytes() })
            .collect();
        with(Exchange {
            url: &self.url,
            time: self.time,
            ip: self.fetched.address.map(|address| address.ip()),
            request_head: &self.fetched.request_head,
            response_head: self.fetched.head.as_bytes(),
            body: match &mut self.fetched.body {
                Body::Memory(bytes) => ArchiveBody::Bytes(bytes),
                Body::Spooled(file, _) => ArchiveBody::Spooled(file),
            },
            truncated: self.fetched.cut.map(|cut| Truncation::parse(cut.name())),
            metadata: &[("fetchTimeMs", &millis)],
            derived: &derived,
            links,
        })
    }
}

/// Why there is nothing to archive.
#[derive(Clone, Debug)]
pub struct Failure {
    /// One word for counting.
    pub kind: &'static str,
    /// In words, with the cure.
    pub detail: String,
    /// Whether trying again soon makes no sense.
    pub is_final: bool,
}

/// What a visit brought.
pub struct Report {
    /// What was visited.
    pub target: Target,
    /// Why.
    pub reason: String,
    /// robots.txt, if it had to be fetched first.
    pub robots: Option<Exchanged>,
    /// The exchange itself.
    pub result: Result<Exchanged, Failure>,
    /// Further exchanges: what a browser fetched to draw the page.
    pub beside: Vec<Exchanged>,
    /// Whether validators were sent.
    pub conditional: bool,
    /// Where it leads.
    pub found: Vec<Discovery>,
    /// When the exchange ended.
    pub done_at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// Crawl-delay of its robots.txt.
    pub crawl_delay_secs: Option<f64>,
    /// Something the user should know, once.
    pub warning: Option<String>,
}

/// Visits a target; whatever happens becomes a report.
pub async fn visit(shared: Arc<Shared>, target: Target, reason: String) -> Report {
    let started = std::time::Instant::now();
    let mut visit = Visit { shared: &shared, found: Vec::new(), robots: None, crawl_delay_secs: None };
    let (mut result, conditional) = visit.run(&target).await;
    let (mut beside, mut warning) = (Vec::new(), None);
    if let Ok(exchanged) = &mut result {
        (beside, warning) = visit.draw(&shared, &target, exchanged).await;
        exchanged.left_out = visit.leave_out(&target, exchanged).await;
        if exchanged.left_out.is_none() {
            exchanged.prepare(shared.compression);
        }
    }
    let took = result.as_ref().map_or(started.elapsed(), |exchanged| exchanged.fetched.took);
    let Visit { found, robots, crawl_delay_secs, .. } = visit;
    Report {
        target,
        reason,
        robots,
        result,
        beside,
        conditional,
        found,
        done_at: shared.clock.now(),
        took,
        crawl_delay_secs,
        warning,
    }
}

struct Visit<'a> {
    shared: &'a Shared,
    found: Vec<Discovery>,
    robots: Option<Exchanged>,
    crawl_delay_secs: Option<f64>,
}

impl Visit<'_> {
    async fn run(&mut self, target: &Target) -> (Result<Exchanged, Failure>, bool) {
        let Ok(url) = Url::parse(&target.url) else {
            return (Err(failure("bad-url", "the address cannot be read", true)), false);
        };
        if let Err(refused) = self.admit(target, &url).await {
            return (Err(refused), false);
        }
        let conditions = conditions(target);
        let time = self.shared.clock.now();
        let allow_private = self.allows_private(target, &url);
        let request = Request { url: &url, fields: &conditions, allow_private };
        let exchanged = match self.shared.client.fetch(&request).await {
            Ok(fetched) => Ok(self.read(target, &url, fetched, time)),
            Err(error) => Err(from_fetch(&error)),
        };
        (exchanged.and_then(|exchanged| self.respect_noarchive(exchanged)), !conditions.is_empty())
    }

    /// robots.txt, and the rule that virtual time is for one's own machine only.
    async fn admit(&mut self, target: &Target, url: &Url) -> Result<(), Failure> {
        if self.shared.clock.is_time_lapse() && !is_loopback(url) {
            let detail = "time-lapse runs on loopback hosts only: crawl other hosts in real time";
            return Err(failure("time-lapse", detail, true));
        }
        if !self.shared.table.robots {
            return Ok(());
        }
        let allow_private = self.allows_private(target, url);
        let answer = self.shared.robots.get(self.shared, url, allow_private).await;
        if let Some(exchanged) = answer.exchanged {
            self.robots = Some(exchanged);
            self.find_sitemaps(target, url, answer.rules.robots.sitemaps());
        }
        if answer.rules.status == RobotsStatus::Unreachable {
            let why = answer.rules.failure.clone();
            return Err(why.unwrap_or_else(|| {
                failure(
                    "robots-unreachable",
                    "robots.txt cannot be read: nothing is fetched until it can",
                    false,
                )
            }));
        }
        self.crawl_delay_secs = answer.rules.robots.crawl_delay_secs();
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        match answer.rules.robots.allows(path) {
            true => Ok(()),
            false => Err(failure("robots-disallowed", "robots.txt forbids it", true)),
        }
    }

    /// The user's exception is for the host that it was made for, not for where that host points.
    fn allows_private(&self, target: &Target, url: &Url) -> bool {
        let at = self.shared.seed_numbers.iter().position(|&number| number == target.seed);
        let seed = at.and_then(|at| self.shared.seeds.0.get(at));
        self.shared.allow_private
            || seed
                .is_some_and(|seed| seed.table.allow_private && seed.scope.seed.host_str() == url.host_str())
    }

    /// Lets a browser run the page's scripts where the site wants it or the page is empty without them.
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
                exchanged.links = self.read_html(target, &url, &drawn.dom, Charset::default());
                exchanged.dom = Some(drawn.dom);
                (drawn.exchanged, None)
            }
            Err(error) => (Vec::new(), shared.browser.warning(&error)),
        }
    }

    /// Looks at a page of a site that keeps important versions only, before it is stored.
    async fn leave_out(&self, target: &Target, exchanged: &mut Exchanged) -> Option<LeftOut> {
        let analyst = self.shared.analyst.clone()?;
        let is_wanted = target.kind == PageKind::Page
            && exchanged.fetched.status() == 200
            && exchanged.fetched.cut.is_none()
            && self.seed_of_target(target)?.table.keep == Keep::Important;
        let mime = exchanged.fetched.head.media_type().unwrap_or_default();
        if !is_wanted || !matches!(mime.as_str(), "text/html" | "application/xhtml+xml") {
            return None;
        }
        let Body::Memory(payload) = &exchanged.fetched.body else { return None };
        let payload = payload.clone();
        let html = decoded(&mut exchanged.fetched)?;
        let html = decode_text(&html, exchanged.fetched.head.get("Content-Type").as_deref()).into_owned();
        let (page, url, time) = (target.page, target.url.clone(), exchanged.time);
        let look = move || analyst.leave_out(page, &url, time, &payload, &html);
        // A page that cannot be looked at is stored whole.
        tokio::task::spawn_blocking(look).await.ok()?.ok()?
    }

    fn drawable(&self, target: &Target, exchanged: &mut Exchanged) -> Option<(Url, String)> {
        let renderer = self.seed_of_target(target)?.table.renderer.as_str();
        let mime = exchanged.fetched.head.media_type().unwrap_or_default();
        let is_page = target.kind == PageKind::Page && (200..300).contains(&exchanged.fetched.status());
        if renderer == "layout" || !is_page || !matches!(mime.as_str(), "text/html" | "application/xhtml+xml")
        {
            return None;
        }
        let body = decoded(&mut exchanged.fetched)?;
        let html = decode_text(&body, exchanged.fetched.head.get("Content-Type").as_deref());
        let wanted = renderer == "chromium" || is_shell(&html);
        wanted.then(|| Some((Url::parse(&target.url).ok()?, html.into_owned()))).flatten()
    }

    fn respect_noarchive(&self, mut exchanged: Exchanged) -> Result<Exchanged, Failure> {
        if self.shared.table.noarchive && says_noarchive(&mut exchanged.fetched) {
            return Err(failure("noarchive", "the page asks not to be archived", true));
        }
        Ok(exchanged)
    }

    fn read(&mut self, target: &Target, url: &Url, mut fetched: Fetched, time: Timestamp) -> Exchanged {
        let status = fetched.status();
        let mut links = None;
        if (300..400).contains(&status) && status != 304 {
            links = self.read_redirect(target, url, &fetched.head);
        } else if (200..300).contains(&status) {
            links = self.read_content(target, url, &mut fetched);
        }
        Exchanged { url: target.url.clone(), time, fetched, links, dom: None, prepared: None, left_out: None }
    }

    fn read_redirect(&mut self, target: &Target, url: &Url, head: &HttpHead) -> Option<Vec<LinkTarget>> {
        let to = canonical::resolve(url, &head.get("Location")?)?;
        let n_redirects = target.n_redirects + 1;
        if n_redirects <= self.shared.table.max_redirects && to != *url {
            let seed = self.seed_of(&to, target.depth, target).unwrap_or(target.seed);
            let found = Discovery { n_redirects, ..found(&to, target.kind, seed, target.depth) };
            self.found.push(found);
        }
        Some(vec![link_target(&to)])
    }

    fn read_content(&mut self, target: &Target, url: &Url, fetched: &mut Fetched) -> Option<Vec<LinkTarget>> {
        let mime = fetched.head.media_type().unwrap_or_default();
        let is_html = matches!(mime.as_str(), "text/html" | "application/xhtml+xml");
        let is_css = mime == "text/css";
        let wanted = match target.kind {
            PageKind::Page => is_html,
            PageKind::Requisite => is_css || is_html,
            PageKind::Sitemap => true,
        };
        if !wanted {
            return None;
        }
        let body = decoded(fetched)?;
        if target.kind == PageKind::Sitemap {
            self.read_sitemap(target, url, &body);
            return is_html.then(|| page_links(&fetched.head, &body, url));
        }
        let (text, charset) = decode_with_charset(&body, fetched.head.get("Content-Type").as_deref());
        if is_css {
            for link in find_css_links(&text, url) {
                self.find_requisite(target, &link.url);
            }
            return None;
        }
        self.read_html(target, url, &text, charset)
    }

    fn read_html(
        &mut self,
        target: &Target,
        url: &Url,
        text: &str,
        charset: Charset,
    ) -> Option<Vec<LinkTarget>> {
        let mut targets = Vec::new();
        for link in find_links(text, url, charset) {
            let Some(to) = Url::parse(&link.url).ok().and_then(canonical::canonicalise) else { continue };
            let in_scope = link.kind.is_page() && self.find_page(target, &to);
            if link.kind.is_page() {
                targets.push(link_target(&to));
            }
            let is_frame = link.kind == LinkKind::Frame;
            if link.kind.is_requisite() && !(is_frame && in_scope) {
                self.find_requisite(target, &link.url);
            }
        }
        targets.sort_unstable_by(|a, b| a.url.cmp(&b.url));
        targets.dedup();
        Some(targets)
    }

    /// Whether the address is in scope; if so it is noted.
    fn find_page(&mut self, target: &Target, to: &Url) -> bool {
        if target.kind != PageKind::Page {
            return false;
        }
        let depth = target.depth + 1;
        let Some(seed) = self.seed_of(to, depth, target) else { return false };
        if find_trap(to, self.shared.clock.now()).is_none() {
            self.found.push(found(to, PageKind::Page, seed, depth));
        }
        true
    }

    fn find_requisite(&mut self, target: &Target, link: &str) {
        if !self.shared.table.requisites || self.found.len() > 4 * MAX_REQUISITES {
            return;
        }
        let depth = if target.kind == PageKind::Page { 1 } else { target.depth + 1 };
        let n_requisites =
            self.found.iter().rev().take_while(|found| found.kind == PageKind::Requisite).count();
        if depth > MAX_REQUISITE_DEPTH || n_requisites >= MAX_REQUISITES {
            return;
        }
        if let Some(to) = Url::parse(link).ok().and_then(canonical::canonicalise) {
            self.found.push(found(&to, PageKind::Requisite, target.seed, depth));
        }
    }

    fn seed_of(&self, url: &Url, depth: u32, finder: &Target) -> Option<i64> {
        let finder = self.shared.seed_numbers.iter().position(|&number| number == finder.seed);
        let at = self.shared.seeds.owner(url, depth, finder.unwrap_or(usize::MAX))?;
        self.shared.seed_numbers.get(at).copied()
    }

    /// Sitemaps that robots.txt names, or the usual place; only for seeds that want more than a page.
    fn find_sitemaps(&mut self, target: &Target, url: &Url, named: &[String]) {
        let wants_more = self.seed_of_target(target).is_some_and(|seed| {
            seed.scope.kind != perennial_core::scope::ScopeKind::Page && seed.scope.max_depth != Some(0)
        });
        if !self.shared.table.sitemaps || !wants_more || target.kind != PageKind::Page {
            return;
        }
        let usual = ["/sitemap.xml".to_string()];
        for link in if named.is_empty() { &usual } else { named }.iter().take(50) {
            if let Some(to) = canonical::resolve(url, link) {
                self.found.push(found(&to, PageKind::Sitemap, target.seed, 1));
            }
        }
    }

    fn seed_of_target(&self, target: &Target) -> Option<&super::settings::Seed> {
        let at = self.shared.seed_numbers.iter().position(|&number| number == target.seed)?;
        self.shared.seeds.0.get(at)
    }

    fn read_sitemap(&mut self, target: &Target, url: &Url, body: &[u8]) {
        let body = gunzip(body);
        let sitemap = sitemap::parse(&body);
        for entry in sitemap.sitemaps.iter().take(500) {
            if target.depth < 3
                && let Some(to) = canonical::resolve(url, &entry.loc)
            {
                self.found.push(found(&to, PageKind::Sitemap, target.seed, target.depth + 1));
            }
        }
        for entry in &sitemap.pages {
            let Some(to) = canonical::resolve(url, &entry.loc) else { continue };
            if find_trap(&to, self.shared.clock.now()).is_none()
                && let Some(seed) = self.seed_of(&to, 1, target)
            {
                self.found.push(Discovery { changed: entry.changed, ..found(&to, PageKind::Page, seed, 1) });
            }
        }
    }
}

fn found(url: &Url, kind: PageKind, seed: i64, depth: u32) -> Discovery {
    Discovery { url: url.to_string(), kind, seed, depth, n_redirects: 0, changed: None }
}

fn link_target(url: &Url) -> LinkTarget {
    LinkTarget { surt: surt(url.as_str()), url: url.to_string() }
}

fn page_links(head: &HttpHead, body: &[u8], url: &Url) -> Vec<LinkTarget> {
    let (text, charset) = decode_with_charset(body, head.get("Content-Type").as_deref());
    let links = find_links(&text, url, charset).into_iter().filter(|link| link.kind.is_page());
    links
        .filter_map(|link| canonical::canonicalise(Url::parse(&link.url).ok()?))
        .map(|to| link_target(&to))
        .collect()
}

pub(super) fn failure(kind: &'static str, detail: impl Into<String>, is_final: bool) -> Failure {
    Failure { kind, detail: detail.into(), is_final }
}

pub(super) fn from_fetch(error: &FetchError) -> Failure {
    failure(error.kind(), error.to_string(), matches!(error, FetchError::Guarded { .. }))
}

fn conditions(target: &Target) -> Vec<(&'static str, String)> {
    if target.digest.is_none() || !target.trust.sends_condition() {
        return Vec::new();
    }
    let etag = target.validators.etag.iter().map(|etag| ("If-None-Match", etag.clone()));
    let date = target.validators.last_modified.iter().map(|date| ("If-Modified-Since", date.clone()));
    etag.chain(date).collect()
}

/// Whether a URL names this machine; names other than localhost are not believed before they are resolved.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// The content behind transfer and content coding, bounded; None when it cannot be read at all.
pub(super) fn decoded(fetched: &mut Fetched) -> Option<Vec<u8>> {
    let bytes = fetched.body.prefix(MAX_DECODED_BYTES as usize).ok()?;
    let limits = Limits { max_bytes: MAX_DECODED_BYTES, ..Limits::default() };
    Some(decode(&fetched.head, &*bytes, limits).bytes)
}

/// A sitemap may be a gzip file in itself.
fn gunzip(body: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    use std::io::Read;
    if !body.starts_with(&[0x1f, 0x8b]) {
        return body.into();
    }
    let mut out = Vec::new();
    // What was read before an error counts.
    let _ = flate2::read::MultiGzDecoder::new(body).take(MAX_DECODED_BYTES).read_to_end(&mut out);
    out.into()
}

/// `X-Robots-Tag: noarchive`, or the same in a meta element near the top.
fn says_noarchive(fetched: &mut Fetched) -> bool {
    if fetched.head.get_all("X-Robots-Tag").any(|value| value.to_ascii_lowercase().contains("noarchive")) {
        return true;
    }
    if matches!(fetched.body, Body::Spooled(..)) {
        return false;
    }
    let Some(body) = decoded(fetched) else { return false };
    let top = String::from_utf8_lossy(&body[..body.len().min(64 << 10)]).to_ascii_lowercase();
    top.split("<meta").skip(1).any(|tag| {
        let tag = tag.split('>').next().unwrap_or_default();
        tag.contains("robots") && tag.contains("noarchive")
    })
}
