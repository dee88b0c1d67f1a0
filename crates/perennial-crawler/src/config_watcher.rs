//! perennial.toml and acts.log as they change -> a crawl that goes by them.
//!
//! Other settings end the round: no visit starts, those in flight end, and the crawl starts again in the same process with all that it is
//! told now. So a change means the same as it does to a crawl that is started after it, whatever was changed. Learning again from a
//! million looks takes a second.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use perennial_core::time::{Span, Timestamp};

use super::clock::Clock;
use super::status::{End, Status};
use super::{Crawl, CrawlOptions};
use perennial_archive::settings::Settings;
use perennial_archive::store::{Ending, PageKind, site_of};
use perennial_archive::{Archive, SettingsWatch};
use perennial_engine::operate::log::{ActLine, Acts};

/// How long other settings wait for fetches in flight. One that takes longer is given up, and made again.
const PATIENCE: Duration = Duration::from_secs(20);
/// A wish that is older was not meant for this crawl.
const WISH_LIFE: Span = Span::from_hours(7 * 24);

/// What the user changes while the crawl runs.
pub(super) struct Heed {
    archive: Archive,
    /// `None` in a time-lapse, which nobody watches.
    settings: Option<SettingsWatch>,
    acts: Acts,
    /// When other settings were found.
    found: Option<Instant>,
    /// Pages that earlier rounds gave up.
    pub(super) n_given_up: u64,
}

impl Heed {
    pub(super) fn new(archive: &Archive, clock: &Clock, earlier: &Status) -> Heed {
        Heed {
            settings: (!clock.is_time_lapse()).then(|| SettingsWatch::new(archive)),
            acts: Acts::from_start(archive.root()),
            archive: archive.clone(),
            found: None,
            n_given_up: earlier.n_given_up,
        }
    }

    /// The end of a round: it is not the end of the crawl if only the settings are others.
    pub(super) fn end(&self, end: End, is_stopped: bool) -> End {
        match end {
            End::Interrupted if self.found.is_some() && !is_stopped => End::OtherSettings,
            end => end,
        }
    }

    /// Whether other settings have waited long enough for fetches in flight.
    pub(super) fn is_waited_for(&self) -> bool {
        self.found.is_some_and(|found| found.elapsed() > PATIENCE)
    }

    /// Whether the settings are others now, and hold. Those with a mistake are told, and the crawl goes on with what it has.
    fn has_other_settings(&mut self, warn: &mut impl FnMut(&str)) -> bool {
        let path = self.archive.settings_path();
        let Some(text) = self.settings.as_mut().and_then(SettingsWatch::changed) else { return false };
        match Settings::parse(&path, text) {
            Ok(_) => true,
            Err(mistakes) => {
                warn(&format!("the crawl goes on with the settings that it has: {mistakes:#}"));
                false
            }
        }
    }

    /// The pages and hosts that somebody wants visited again since the last look, with the time of the wish.
    fn wishes(&mut self, now: Timestamp) -> HashMap<String, Timestamp> {
        let mut wishes = HashMap::new();
        let wished = |line: ActLine| {
            let time = Timestamp::parse(&line.time).ok();
            if let Some(time) = time.filter(|time| line.act == "retry" && now - *time < WISH_LIFE) {
                // The log has seconds: a visit within the second of the wish may have been before it.
                wishes.insert(line.url, time + Span::from_secs(1));
            }
        };
        // A log that cannot be read has no wishes; whoever writes it is told.
        let _ = self.acts.read(wished);
        wishes
    }
}

impl Crawl {
    /// Looks whether the user changed something.
    pub(super) fn heed(&mut self, warn: &mut impl FnMut(&str)) {
        if self.heed.found.is_none() && self.heed.has_other_settings(warn) {
            self.heed.found = Some(Instant::now());
            self.policy.stop();
        }
        if let Err(error) = self.heed_wishes() {
            warn(&format!("what was to be visited again cannot be read: {error:#}"));
        }
    }

    /// Queues what somebody wants visited again and nobody has visited since.
    pub(super) fn heed_wishes(&mut self) -> anyhow::Result<()> {
        if self.heed.settings.is_none() {
            return Ok(());
        }
        let now = self.now();
        let mut wishes = self.heed.wishes(now);
        let is_host = |target: &String| !target.contains("://");
        for (url, time) in wishes.extract_if(|target, _| !is_host(target)).collect::<Vec<_>>() {
            let Some(page) = self.store.page(&url)?.map(|page| page.id) else { continue };
            let Some(target) = self.store.target(page)? else { continue };
            let is_open = target.visited.is_none_or(|visited| visited < time);
            if is_open && self.policy.has_seed(target.seed) {
                self.policy.asked_for(target.site, target.page, now);
            }
        }
        if wishes.is_empty() {
            return Ok(());
        }
        let policy = &mut self.policy;
        self.store.each_frontier_page(|known| {
            let is_failed = known.ending == Some(Ending::Failed) && known.kind == PageKind::Page;
            let is_wished =
                |visited: Timestamp| wishes.get(&site_of(&known.url)).is_some_and(|time| visited < *time);
            if is_failed && known.visited.is_some_and(is_wished) && policy.has_seed(known.seed) {
                policy.asked_for(known.site, known.page, now);
            }
        })
    }
}

/// What is left of the limits of a crawl when a round of it ends.
pub(super) struct Limits {
    began: Timestamp,
    n_pages: u64,
    stored_bytes: u64,
}

impl Limits {
    pub(super) fn of(options: &CrawlOptions, status: &Status) -> Limits {
        let (n_pages, stored_bytes) = (status.n_pages, status.stored_bytes);
        Limits { began: options.clock.now(), n_pages, stored_bytes }
    }

    pub(super) fn left(&self, options: &mut CrawlOptions, status: &Status) {
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
