//! An archive of the living web -> the caught changes, read from its WARC files and compared with the truth.

use perennial_core::time::{Span, Timestamp};
use perennial_lab::drive::SimulatedCrawl;

use super::run::FeedsResult;
use super::template::{VERSION_META, announced};
use super::truth::Truth;
use super::web::{LivingPage, LivingWeb};
use perennial_archive::Archive;
use perennial_archive::store::CaptureKind;

/// Importance from which a change counts as important.
const IMPORTANT: f64 = 0.1;
/// Visits to noise-only pages count only after this time. The crawler needs it to learn which pages these are.
const LEARNING: Span = Span::from_hours(7 * 24);

/// Compares the results of the feeds with the published items.
pub(super) fn compare_feeds(
    archive: &Archive,
    web: &LivingWeb,
    seeds: &[String],
) -> anyhow::Result<FeedsResult> {
    let store = archive.store()?;
    let known = store.feeds()?;
    let mut result = FeedsResult::default();
    for (site, seed) in seeds.iter().enumerate() {
        let Some(feed) = known.iter().find(|feed| feed.url == format!("{seed}feed.xml")) else { continue };
        let captures = store.page_captures(feed.page)?;
        let polls = captures.iter().filter(|capture| matches!(capture.status, Some(200 | 304)));
        result.polls += polls.clone().count() as u64;
        result.polls_with_news += feed.n_reads;
        let Some(last) = polls.map(|capture| capture.time).max() else { continue };
        let n_published = announced(web, site, last).len() as u64;
        result.items_published += n_published;
        result.items_lost += n_published.saturating_sub(feed.n_items);
    }
    Ok(result)
}

/// When each page of the web was captured. Each instant is moved into the period of the version in the payload.
/// Otherwise, rounding the time to seconds could move a capture across a change.
pub(super) fn page_captures(
    archive: &Archive,
    web: &LivingWeb,
    urls: &[String],
) -> anyhow::Result<SimulatedCrawl> {
    let store = archive.store()?;
    let mut captures = Vec::with_capacity(urls.len());
    for (page, url) in web.pages.iter().zip(urls) {
        let mut times = Vec::new();
        if let Some(row) = store.page(url)? {
            for capture in store.page_captures(row.id)? {
                if capture.kind > CaptureKind::Revisit || capture.status != Some(200) {
                    continue;
                }
                if let Some(payload) = archive.document(&store, &capture)?
                    && let Some(version) = version_in_head(&payload.bytes)
                {
                    times.push(capture_instant(page, version, capture.time));
                }
            }
        }
        times.sort_unstable();
        captures.push(times);
    }
    Ok(SimulatedCrawl { captures })
}

/// The version number in a page's head.
fn version_in_head(html: &[u8]) -> Option<usize> {
    let head = String::from_utf8_lossy(&html[..html.len().min(2048)]).into_owned();
    let after = head.split(&format!("<meta name=\"{VERSION_META}\" content=\"")).nth(1)?;
    after.split('"').next()?.parse().ok()
}

fn capture_instant(page: &LivingPage, version: usize, time: Timestamp) -> Timestamp {
    let since = version.checked_sub(1).and_then(|last| page.changes.get(last)).map(|change| change.at);
    let until = page.changes.get(version).map(|change| change.at - Span::from_millis(1));
    let time = since.map_or(time, |since| time.max(since));
    until.map_or(time, |until| time.min(until))
}

/// Number of important changes whose version is in the archive, and of all important changes.
pub(super) fn count_important(web: &LivingWeb, truth: &Truth, crawl: &SimulatedCrawl) -> (u64, u64) {
    let (mut n_caught, mut n_all) = (0, 0);
    for ((page, importance), captures) in web.pages.iter().zip(&truth.importance).zip(&crawl.captures) {
        for (number, importance) in importance.iter().enumerate() {
            if importance.get() >= IMPORTANT {
                n_all += 1;
                n_caught += u64::from(is_caught(page, captures, number));
            }
        }
    }
    (n_caught, n_all)
}

/// Whether a capture contains the version that the change with this number produced.
pub(super) fn is_caught(page: &LivingPage, captures: &[Timestamp], number: usize) -> bool {
    let since = page.changes[number].at;
    let next = captures.partition_point(|&at| at < since);
    let until = page.changes.get(number + 1).map(|change| change.at);
    captures.get(next).is_some_and(|&at| until.is_none_or(|until| at < until))
}

/// Share of the visits after the first week that were to noise-only pages.
pub(super) fn noise_share(web: &LivingWeb, crawl: &SimulatedCrawl) -> f64 {
    let from = web.start + LEARNING;
    let (mut n_noise, mut n_all) = (0u64, 0u64);
    for (page, captures) in crawl.captures.iter().enumerate() {
        let n_visits = captures.iter().filter(|&&at| at >= from).count() as u64;
        n_all += n_visits;
        n_noise += if web.is_noise_only(page) { n_visits } else { 0 };
    }
    if n_all == 0 { 0.0 } else { n_noise as f64 / n_all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_counts_for_the_version_it_shows() {
        let web = LivingWeb::new(1, Timestamp::parse("2026-03-02").unwrap(), 14);
        let page = &web.pages[0];
        let (first, second) = (page.changes[0].at, page.changes[1].at);
        // WARC times have whole seconds, so the capture appears to precede the change that it contains.
        let time = Timestamp::from_secs(first.as_secs());
        assert_eq!(capture_instant(page, 1, time), first);
        assert!(is_caught(page, &[capture_instant(page, 1, time)], 0));
        assert!(!is_caught(page, &[second], 0));
        assert!(!is_caught(page, &[], 0));
        assert_eq!(capture_instant(page, 0, first), first - Span::from_millis(1));
    }

    #[test]
    fn the_version_is_read_from_the_head() {
        assert_eq!(version_in_head(b"<head><meta name=\"living-version\" content=\"17\"></head>"), Some(17));
        assert_eq!(version_in_head(b"<head></head>"), None);
    }
}
