//! Watches perennial.toml and the audit log, and applies changes to the running crawl.
//!
//! Changed settings end the round: no visit starts, fetches in flight finish, and the crawl restarts in the same
//! process. So every change has the same effect as on a crawl that is started later. Learning from a million
//! observations again takes a second.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use perennial_core::time::{Span, Timestamp};

use super::clock::Clock;
use super::status::{CrawlEnd, CrawlStatus};
use super::{CrawlLoop, CrawlOptions};
use perennial_archive::settings::Settings;
use perennial_archive::store::{PageKind, VisitEnding, parse_site_name};
use perennial_archive::{Archive, SettingsWatch};
use perennial_engine::admin::audit::{AuditEntry, AuditReader};

/// How long a restart waits for fetches in flight. A longer fetch is abandoned and made again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Older retry requests were not meant for this crawl.
const REQUEST_LIFE: Span = Span::from_hours(7 * 24);

/// Watches the settings and the audit log.
pub(super) struct ConfigWatcher {
    archive: Archive,
    /// `None` in a time-lapse.
    settings: Option<SettingsWatch>,
    audit: AuditReader,
    /// When the settings were found changed.
    changed_at: Option<Instant>,
    /// Pages that earlier rounds gave up.
    pub(super) n_given_up: u64,
}

impl ConfigWatcher {
    pub(super) fn new(archive: &Archive, clock: &Clock, earlier: &CrawlStatus) -> ConfigWatcher {
        ConfigWatcher {
            settings: (!clock.is_time_lapse()).then(|| SettingsWatch::new(archive)),
            audit: AuditReader::from_start(archive.root()),
            archive: archive.clone(),
            changed_at: None,
            n_given_up: earlier.n_given_up,
        }
    }

    /// The reason why a round ended. If only the settings changed, the crawl continues.
    pub(super) fn end(&self, end: CrawlEnd, is_stopped: bool) -> CrawlEnd {
        match end {
            CrawlEnd::Interrupted if self.changed_at.is_some() && !is_stopped => CrawlEnd::OtherSettings,
            end => end,
        }
    }

    /// Whether the restart has waited long enough for fetches in flight.
    pub(super) fn is_waited_for(&self) -> bool {
        self.changed_at.is_some_and(|changed| changed.elapsed() > PATIENCE)
    }

    /// Whether the settings changed and are valid. Invalid settings are reported, and the crawl keeps its current
    /// ones.
    fn has_changed(&mut self, warn: &mut impl FnMut(&str)) -> bool {
        let path = self.archive.settings_path();
        let Some(text) = self.settings.as_mut().and_then(SettingsWatch::changed) else { return false };
        let parsed = Settings::parse(&path, text);
        if let Err(mistakes) = &parsed {
            warn(&format!("the crawl keeps its current settings: {mistakes:#}"));
        }
        parsed.is_ok()
    }

    /// The URLs and hosts to retry, with the time of the request. Each request is returned once.
    fn retry_requests(&mut self, now: Timestamp) -> HashMap<String, Timestamp> {
        let mut requests = HashMap::new();
        let read = |line: AuditEntry| {
            let time = Timestamp::parse(&line.time).ok();
            if let Some(time) = time.filter(|time| line.action == "retry" && now - *time < REQUEST_LIFE) {
                // The log has whole seconds, so a visit in the same second may have preceded the request.
                requests.insert(line.url, time + Span::from_secs(1));
            }
        };
        // If the log is unreadable, there are no requests. Whoever writes it gets the error.
        let _ = self.audit.read(read);
        requests
    }
}

impl CrawlLoop {
    /// Applies changes of the settings and the audit log.
    pub(super) fn watch_config(&mut self, warn: &mut impl FnMut(&str)) {
        if self.watcher.changed_at.is_none() && self.watcher.has_changed(warn) {
            self.watcher.changed_at = Some(Instant::now());
            self.policy.stop();
        }
        if let Err(error) = self.queue_retries() {
            warn(&format!("cannot read the retry requests: {error:#}"));
        }
    }

    /// Queues the requested retries that were not made yet.
    pub(super) fn queue_retries(&mut self) -> anyhow::Result<()> {
        if self.watcher.settings.is_none() {
            return Ok(());
        }
        let now = self.now();
        let (pages, hosts): (HashMap<_, _>, HashMap<_, _>) =
            self.watcher.retry_requests(now).into_iter().partition(|(target, _)| target.contains("://"));
        for (url, time) in pages {
            let Some(page) = self.store.page(&url)?.map(|page| page.id) else { continue };
            let Some(target) = self.store.target(page)? else { continue };
            let is_open = target.visited.is_none_or(|visited| visited < time);
            if is_open && self.policy.has_seed(target.seed) {
                self.policy.visit_now(target.site, target.page, now);
            }
        }
        if hosts.is_empty() {
            return Ok(());
        }
        let policy = &mut self.policy;
        self.store.each_frontier_page(|known| {
            let is_failed = known.ending == Some(VisitEnding::Failed) && known.kind == PageKind::Page;
            let is_requested = |visited: Timestamp| {
                hosts.get(&parse_site_name(&known.url)).is_some_and(|time| visited < *time)
            };
            if is_failed && known.visited.is_some_and(is_requested) && policy.has_seed(known.seed) {
                policy.visit_now(known.site, known.page, now);
            }
        })
    }
}

/// What is left of a crawl's limits when a round ends.
pub(super) struct RemainingLimits {
    began: Timestamp,
    n_pages: u64,
    stored_bytes: u64,
}

impl RemainingLimits {
    pub(super) fn of(options: &CrawlOptions, status: &CrawlStatus) -> RemainingLimits {
        let (n_pages, stored_bytes) = (status.n_pages, status.stored_bytes);
        RemainingLimits { began: options.clock.now(), n_pages, stored_bytes }
    }

    pub(super) fn left(&self, options: &mut CrawlOptions, status: &CrawlStatus) {
        let n_pages = status.n_pages.saturating_sub(self.n_pages);
        let bytes = status.stored_bytes.saturating_sub(self.stored_bytes);
        options.limit = options.limit.map(|limit| limit.saturating_sub(n_pages));
        options.size_limit = options.size_limit.map(|limit| limit.saturating_sub(bytes));
        let passed = options.clock.now() - self.began;
        options.time_limit = options
            .time_limit
            .map(|limit| Span::from_millis((limit.as_millis() - passed.as_millis()).max(0)));
    }
}
