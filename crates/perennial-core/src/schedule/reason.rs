//! The reason of a visit -> a phrase, the same in the log, in plans and on the dashboard.

use super::units::write_span;
use super::{Reason, SkipRule};
use crate::text::untrusted::quoted;
use crate::time::{LocalClock, Timestamp};
use crate::url::canonical::host_with_port;

/// The context of a phrase, in addition to the reason. It omits unknown parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReasonContext<'a> {
    pub url: &'a str,
    /// The clock of its site, in whose hours the habit is; UTC without one.
    pub clock: Option<&'a LocalClock>,
    /// When the page usually changes: [`RankedPage::habit`](super::RankedPage::habit).
    pub habit: Option<&'a str>,
    /// The URL of the page that [`SkipRule::Excluded`] refers to.
    pub excluded_by: Option<&'a str>,
    /// The text that announced the page, such as the title of a feed item.
    pub cause: Option<&'a str>,
}

impl Reason {
    /// Why a page is visited, as a phrase.
    pub fn describe(self, context: &ReasonContext<'_>) -> String {
        let cause = context.cause.map(|cause| format!(": {}", quoted(cause))).unwrap_or_default();
        self.phrase(context) + &cause
    }

    fn phrase(self, context: &ReasonContext<'_>) -> String {
        // Instants are in UTC, like all times on a page or in a list. Only hours of the site's day name a zone.
        let last_seen = |since: Timestamp| format!("last seen {}", local_minute(since, None));
        let zone = context.clock.map(|clock| format!(" in {}", clock.zone())).unwrap_or_default();
        let habit = context.habit.map(|habit| format!(", usually updates {habit}{zone}")).unwrap_or_default();
        match self {
            Reason::FirstCapture => "first capture".to_owned(),
            Reason::Announced => "a feed, a sitemap or a listing page announced a change".to_owned(),
            Reason::Urgent { since, .. } => last_seen(since) + &habit,
            Reason::Oldest { since } => format!("{}, longer ago than most{habit}", last_seen(since)),
            Reason::Every { interval, since } => {
                format!("visited every {}; {}", write_span(interval), last_seen(since))
            }
            Reason::Sweep { n_pages, since } => {
                let pages = if n_pages == 1 { "page" } else { "pages" };
                let host = host_with_port(context.url);
                format!("sweep of {host}, {n_pages} {pages}; {}", last_seen(since))
            }
            Reason::Probe => "there was no page here".to_owned(),
            Reason::DirectoryProbe { rule, since } => {
                let rule = rule.describe(context.excluded_by);
                format!("probe of a skipped directory: {rule}; {}", last_seen(since))
            }
            Reason::Skipped { rule, .. } => {
                format!("skipped by rule: {}", rule.describe(context.excluded_by))
            }
            Reason::Retry { n_failures: 1 } => "retry after 1 failure".to_owned(),
            Reason::Retry { n_failures } => format!("retry after {n_failures} failures"),
        }
    }
}

impl SkipRule {
    fn describe(self, excluded_by: Option<&str>) -> String {
        match self {
            SkipRule::Still { n_observations } => {
                format!("no page of its directory changed in {n_observations} observations")
            }
            SkipRule::Excluded { .. } => {
                let directory_of = |url: &str| url.rfind('/').map_or(url.len(), |slash| slash + 1);
                let directory = excluded_by.map_or("another directory", |url| &url[..directory_of(url)]);
                format!("{directory} changed today, and its directory never changes on such a day")
            }
        }
    }
}

/// An instant on a site's clock, to the minute, with the name of the zone; without a clock in UTC and without a name.
pub fn local_minute(at: Timestamp, clock: Option<&LocalClock>) -> String {
    let utc = LocalClock::utc();
    let local = clock.unwrap_or(&utc).local(at);
    let minutes = local.millis_of_day / 60_000;
    let zone = clock.map(|clock| format!(" {}", clock.zone())).unwrap_or_default();
    format!("{} {:02}:{:02}{zone}", local.day.to_date(), minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::importance::Importance;
    use crate::url::PageId;

    #[test]
    fn every_reason_has_one_phrase() {
        let since = Timestamp::parse("2026-11-16T09:30:00Z").unwrap();
        let tokyo = LocalClock::from_zone("Asia/Tokyo").unwrap();
        let context = ReasonContext {
            url: "https://a.example:8443/news/1",
            clock: Some(&tokyo),
            habit: Some("14-15h on workdays"),
            excluded_by: Some("https://a.example/sport/2"),
            cause: None,
        };
        let seen = "last seen 2026-11-16 09:30";
        let habit = "usually updates 14-15h on workdays in Asia/Tokyo";
        let (still, excluded) = (SkipRule::Still { n_observations: 7 }, SkipRule::Excluded { by: PageId(2) });
        let expected = Importance::FULL;
        for (reason, phrase) in [
            (Reason::FirstCapture, "first capture".to_owned()),
            (Reason::Announced, "a feed, a sitemap or a listing page announced a change".to_owned()),
            (Reason::Urgent { urgency: 0.5, expected, since }, format!("{seen}, {habit}")),
            (Reason::Oldest { since }, format!("{seen}, longer ago than most, {habit}")),
            (Reason::Sweep { n_pages: 41, since }, format!("sweep of a.example:8443, 41 pages; {seen}")),
            (Reason::Sweep { n_pages: 1, since }, format!("sweep of a.example:8443, 1 page; {seen}")),
            (
                Reason::Every { interval: crate::time::Span::from_secs(300), since },
                format!("visited every 5m; {seen}"),
            ),
            (Reason::Probe, "there was no page here".to_owned()),
            (
                Reason::DirectoryProbe { rule: still, since },
                format!("probe of a skipped directory: no page of its directory changed in 7 observations; {seen}"),
            ),
            (
                Reason::Skipped { rule: excluded, since },
                "skipped by rule: https://a.example/sport/ changed today, and its directory never changes on such a day"
                    .to_owned(),
            ),
            (Reason::Retry { n_failures: 1 }, "retry after 1 failure".to_owned()),
            (Reason::Retry { n_failures: 3 }, "retry after 3 failures".to_owned()),
        ] {
            assert_eq!(reason.describe(&context), phrase);
        }
        let caused = ReasonContext { cause: Some("Two ferries"), ..context };
        assert_eq!(Reason::FirstCapture.describe(&caused), "first capture: Two ferries");
        let bare = ReasonContext::default();
        assert_eq!(
            Reason::Oldest { since }.describe(&bare),
            "last seen 2026-11-16 09:30, longer ago than most"
        );
        let skipped = Reason::Skipped { rule: excluded, since };
        assert!(skipped.describe(&bare).starts_with("skipped by rule: another directory changed today"));
    }
}
