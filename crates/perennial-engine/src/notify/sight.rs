//! Visits of watched pages -> notices that a watch does not see its page, and that it sees it again.
//!
//! A watch is blind if robots.txt forbids its page, if the host does not respond, if the page is empty, or if its
//! selector matches nothing any more.

use std::collections::HashSet;

use perennial_core::notice::{HealthNotice, PageFilter, after_visit};
use perennial_core::page::segment::Selector;
use perennial_core::text::dom::Dom;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use super::notice::Notice;
use crate::analyse::PageSpec;
use perennial_archive::settings::{NotifyRule, Settings};
use perennial_archive::store::{NewNotice, Outbox, Store, parse_site_name};
use perennial_archive::{Archive, SharedSnapshot};

/// Which rules watch which pages. A rule for a site or for everything watches the start pages.
pub(super) struct WatchedPages {
    rules: Vec<NotifyRule>,
    starts: HashSet<String>,
}

impl WatchedPages {
    pub(super) fn new(settings: &Settings) -> WatchedPages {
        let rules = settings.notify.iter().filter(|rule| rule.failures > 0).cloned().collect();
        let followed = settings.seeds.iter().filter(|seed| !seed.paused);
        WatchedPages { rules, starts: followed.map(|seed| seed.scope.seed.to_string()).collect() }
    }

    fn matching_rules(&self, url: &str) -> Vec<&NotifyRule> {
        let is_start = self.starts.contains(url);
        let watches = |rule: &&NotifyRule| match &rule.condition.place {
            PageFilter::Page(page) => page == url,
            PageFilter::Site(site) => is_start && *site == parse_site_name(url),
            PageFilter::Anywhere => is_start,
        };
        self.rules.iter().filter(watches).collect()
    }

    /// Records a visit that showed no page. Returns the number of notices.
    pub(super) fn note_unseen(
        &self,
        outbox: &mut Outbox,
        url: &str,
        at: Timestamp,
        reason: &str,
    ) -> anyhow::Result<u64> {
        let mut n_notices = 0;
        for rule in self.matching_rules(url) {
            n_notices += note_visit(outbox, rule, url, Err(reason.to_owned()), at)?;
        }
        Ok(n_notices)
    }

    /// Records an observation of a page. Returns the number of notices.
    pub(super) fn note_seen(
        &self,
        outbox: &mut Outbox,
        archive: &Archive,
        store: &Store,
        page: PageId,
        url: &str,
        at: Timestamp,
    ) -> anyhow::Result<u64> {
        let rules = self.matching_rules(url);
        if rules.is_empty() {
            return Ok(0);
        }
        let lines = store.analysis_lines(page, at, at + Span::from_millis(1), 1)?;
        // A page that vanished or redirects is a change, which the rule reports as such.
        if !lines.first().is_some_and(|line| line.status.is_page()) {
            return Ok(0);
        }
        let is_empty = store
            .tree_at(page, at)?
            .is_some_and(|tree| tree.leaves().all(|leaf| leaf.texts.is_empty() && leaf.images.is_empty()));
        let mut n_notices = 0;
        for rule in rules {
            let seen = match &rule.condition.selector {
                _ if is_empty => Err("the page is empty".to_owned()),
                Some(selector) if !has_text(archive, url, at, selector)? => {
                    Err(format!("`{selector}` matches no text of the page"))
                }
                _ => Ok(()),
            };
            // After the observation, because it may have its own notice.
            n_notices += note_visit(outbox, rule, url, seen, at + Span::from_millis(1))?;
        }
        Ok(n_notices)
    }
}

fn note_visit(
    outbox: &mut Outbox,
    rule: &NotifyRule,
    url: &str,
    seen: Result<(), String>,
    at: Timestamp,
) -> anyhow::Result<u64> {
    let before = outbox.blind(&rule.name, url)?;
    if before.is_none() && seen.is_ok() {
        return Ok(0);
    }
    let (watch, news) = after_visit(before, seen, at, rule.failures);
    let notice = |news: &HealthNotice| -> anyhow::Result<NewNotice> {
        let body = serde_json::to_string(&Notice::of_health(rule, url, news, at))?;
        Ok(NewNotice { rule: rule.name.clone(), time: at, body })
    };
    let notice = news.as_ref().map(notice).transpose()?;
    outbox.put_blind(&rule.name, url, watch.as_ref(), notice.as_ref())?;
    Ok(u64::from(notice.is_some()))
}

/// Whether a selector matches text of the page as captured. A capture whose bytes are not stored is not judged.
fn has_text(archive: &Archive, url: &str, at: Timestamp, selector: &Selector) -> anyhow::Result<bool> {
    let snapshot = SharedSnapshot::new(archive.snapshot()?);
    let spec = PageSpec::Archived { url: url.to_owned(), time: Some(at) };
    let Ok(page) = spec.load_named(Some(&snapshot)) else { return Ok(true) };
    let is_judged = page.document.is_none() && page.note.is_none();
    Ok(!is_judged || !selector.text_in(&Dom::parse(&page.html)).is_empty())
}
