//! The record of one visit. Log lines, the frontier's row, the message to the loop and the input of politeness are
//! views of it.

use std::time::Duration;

use perennial_core::http::politeness::{HostResponse, HostState};
use perennial_core::http::response::{
    Identity, ResponseKind, Validators, error_name, error_words, host_response, is_refusal, trust_after,
};
use perennial_core::http::validator::ValidatorTrust;
use perennial_core::page::change_status::{ChangeStatus, PreviousResponse};
use perennial_core::schedule::VisitOutcome;
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};
use perennial_warc::Truncation;
use url::Url;

use super::exchange::FetchedExchange;
use super::failure::VisitFailure;
use super::log::LogLine;
use super::polls::FeedPoll;
use perennial_archive::AppendOutcome;
use perennial_archive::store::{
    CaptureKind, Discovery, FeedRow, PageKind, VisitEnding, VisitRow, VisitTarget,
};

/// The facts of one visit. The visiting task creates the record with the fetched bytes ([`FetchedExchange`]). The
/// recorder archives these, adds the results of the commit, and passes the record to the loop.
#[derive(Debug)]
pub(super) struct VisitRecord<E = StoredExchange> {
    /// The page as it was in the frontier before the visit.
    pub(super) target: VisitTarget,
    /// Why it was visited, for the log.
    pub(super) reason: String,
    pub(super) is_conditional: bool,
    /// The response, or why there is none.
    pub(super) response: Result<E, VisitFailure>,
    /// Other exchanges of the visit: robots.txt, and requests of the browser.
    pub(super) companions: Vec<E>,
    /// The response as a feed, if it is one.
    pub(super) feed: Option<Box<FeedRow>>,
    /// URLs in the response. After archiving, only those worth a row of the frontier.
    pub(super) discoveries: Vec<Discovery>,
    pub(super) ended_at: Timestamp,
    /// Duration of the exchange.
    pub(super) took: Duration,
    /// Crawl-delay of its robots.txt.
    pub(super) crawl_delay_secs: Option<f64>,
    pub(super) warning: Option<String>,
    /// The host's state after the visit. The recorder sets it.
    pub(super) host: HostState,
    /// The discoveries that the loop needs. The commit sets them.
    pub(super) new_pages: Vec<NewPage>,
    /// The visit as the poll of a feed. The commit sets it.
    pub(super) poll: Option<FeedPoll>,
}

/// An archived exchange, without its bytes.
#[derive(Debug)]
pub(super) struct StoredExchange {
    pub(super) url: String,
    /// The capture time, in whole seconds as in the archive.
    pub(super) time: Timestamp,
    pub(super) status: u16,
    pub(super) body_bytes: u64,
    /// Why the body is incomplete, if so.
    pub(super) truncation: Option<Truncation>,
    /// Why the document was only partly read, if so.
    pub(super) unread: Option<String>,
    /// Whether the document is large enough to be analysed separately.
    pub(super) is_large: bool,
    pub(super) validators: Validators,
    pub(super) retry_after: Option<String>,
    /// How it was stored.
    pub(super) appended: AppendOutcome,
}

/// A URL in the response of a visit.
#[derive(Clone, Debug)]
pub(super) struct NewPage {
    pub(super) page: PageId,
    pub(super) site: SiteId,
    pub(super) kind: PageKind,
    pub(super) seed: i64,
    pub(super) url: String,
    /// When it changed according to a sitemap or a feed. Such a page may be known already.
    pub(super) changed: Option<Timestamp>,
    /// The title of the feed item that linked to it.
    pub(super) item: Option<String>,
    /// Whether it must be queued.
    pub(super) is_new: bool,
}

impl VisitRecord<FetchedExchange> {
    /// Archives the exchanges with `append` and returns the completed record.
    pub(super) fn store(
        self,
        mut append: impl FnMut(FetchedExchange) -> anyhow::Result<StoredExchange>,
    ) -> anyhow::Result<VisitRecord> {
        let companions = self.companions.into_iter().map(&mut append).collect::<anyhow::Result<_>>()?;
        let response = match self.response {
            Ok(exchange) => Ok(append(exchange)?),
            Err(failure) => Err(failure),
        };
        Ok(VisitRecord {
            target: self.target,
            reason: self.reason,
            is_conditional: self.is_conditional,
            response,
            companions,
            feed: self.feed,
            discoveries: self.discoveries,
            ended_at: self.ended_at,
            took: self.took,
            crawl_delay_secs: self.crawl_delay_secs,
            warning: self.warning,
            host: self.host,
            new_pages: self.new_pages,
            poll: self.poll,
        })
    }
}

impl StoredExchange {
    fn is_broken_off(&self) -> bool {
        self.truncation == Some(Truncation::Disconnect)
    }

    fn response_kind(&self) -> ResponseKind {
        ResponseKind::from_response(self.status, self.is_broken_off())
    }
}

/// Views for the loop and for politeness.
impl VisitRecord {
    fn exchange(&self) -> Option<&StoredExchange> {
        self.response.as_ref().ok()
    }

    fn exchanges(&self) -> impl Iterator<Item = &StoredExchange> {
        self.companions.iter().chain(self.exchange())
    }

    fn response_kind(&self) -> Option<ResponseKind> {
        self.exchange().map(StoredExchange::response_kind)
    }

    /// The response, if it shows what a reader of the page would have seen.
    fn observation(&self) -> Option<&StoredExchange> {
        self.exchange().filter(|exchange| exchange.response_kind().is_observation())
    }

    pub(super) fn is_observation(&self) -> bool {
        self.observation().is_some()
    }

    /// The outcome for the scheduler, judged by the response alone. If the page can be laid out, the analysis decides
    /// later.
    pub(super) fn outcome(&self) -> VisitOutcome {
        let failed = VisitOutcome::Failed { retry_at: Some(self.host.ready_at) };
        match &self.response {
            Ok(exchange) => self.change_status(exchange).map_or(failed, VisitOutcome::from),
            Err(failure) if failure.is_absence() => VisitOutcome::Absent,
            Err(_) => failed,
        }
    }

    fn change_status(&self, exchange: &StoredExchange) -> Option<ChangeStatus> {
        let digest = self.target.digest.clone().map(Identity::Payload);
        let was_page = digest.is_some();
        let before = self.target.identity.as_ref().or(digest.as_ref());
        let before = before.map(|identity| PreviousResponse { identity, was_page });
        ChangeStatus::between(before, exchange.response_kind(), &exchange.appended.identity)
    }

    /// How the visit ended, as stored and logged.
    pub(super) fn ending(&self) -> VisitEnding {
        let exchange = match &self.response {
            Ok(exchange) => exchange,
            Err(failure) if failure.is_absence() => return VisitEnding::Refused,
            Err(_) => return VisitEnding::Failed,
        };
        let Some(status) = self.change_status(exchange) else { return VisitEnding::Failed };
        match status {
            ChangeStatus::New => VisitEnding::New,
            ChangeStatus::Unchanged | ChangeStatus::NoiseOnly => VisitEnding::Unchanged,
            ChangeStatus::Changed(_) | ChangeStatus::Unknown(_) | ChangeStatus::Returned => {
                VisitEnding::Changed
            }
            _ if exchange.response_kind() == ResponseKind::Redirect => VisitEnding::Redirected,
            _ if is_refusal(exchange.status) => VisitEnding::Refused,
            _ if self.target.digest.is_some() => VisitEnding::Gone,
            _ => VisitEnding::Missing,
        }
    }

    /// Consecutive failures, including this one.
    pub(super) fn n_failures(&self) -> u16 {
        if self.ending() == VisitEnding::Failed { self.target.n_failures.saturating_add(1) } else { 0 }
    }

    /// Whether an immediate retry would end the same way.
    pub(super) fn is_final(&self) -> bool {
        match &self.response {
            Ok(_) => self.is_observation(),
            Err(failure) => failure.is_final(),
        }
    }

    /// The name of the error, if any.
    pub(super) fn error(&self) -> Option<&'static str> {
        match &self.response {
            Ok(exchange) => error_name(exchange.status, exchange.is_broken_off()),
            Err(failure) => Some(failure.name()),
        }
    }

    /// Why the visit captured no page, in words; `None` if it did.
    pub(super) fn failure_words(&self) -> Option<String> {
        match &self.response {
            Ok(exchange) => error_words(exchange.status, exchange.is_broken_off()),
            Err(failure) => Some(failure.to_string()),
        }
    }

    /// Why a watch of the page sees nothing, in words. A page that is gone or redirects is a change, not a blind watch.
    pub(super) fn unseen_reason(&self) -> Option<String> {
        let is_unseen =
            matches!(self.ending(), VisitEnding::Failed | VisitEnding::Missing | VisitEnding::Refused);
        if is_unseen { self.failure_words() } else { None }
    }

    /// The target of a redirect.
    pub(super) fn redirect_target(&self) -> Option<Url> {
        let target = self.exchange()?.appended.identity.redirect_target()?;
        Url::parse(&self.target.url).ok()?.join(target).ok()
    }

    /// The response of the host for politeness; `None` if the host received no request.
    pub(super) fn host_response(&self) -> Option<HostResponse> {
        match &self.response {
            Ok(exchange) => {
                let retry_after = exchange.retry_after.as_deref();
                Some(host_response(exchange.status, exchange.is_broken_off(), retry_after, self.ended_at))
            }
            Err(failure) => failure.host_response(),
        }
    }

    /// The capture time; without a capture the end of the visit.
    pub(super) fn captured_at(&self) -> Timestamp {
        self.exchange().map_or(self.ended_at, |exchange| exchange.time)
    }

    /// Bytes of all fetched bodies.
    pub(super) fn body_bytes(&self) -> u64 {
        self.exchanges().map(|exchange| exchange.body_bytes).sum()
    }

    /// Growth of the WARC files in bytes.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.exchanges().map(|exchange| exchange.appended.stored_bytes).sum()
    }

    pub(super) fn is_large(&self) -> bool {
        self.exchange().is_some_and(|exchange| exchange.is_large)
    }

    /// Whether the document was only partly read.
    pub(super) fn is_unread(&self) -> bool {
        self.exchange().is_some_and(|exchange| exchange.unread.is_some())
    }
}

/// Views for the frontier.
impl VisitRecord {
    pub(super) fn frontier_row(&self) -> VisitRow<'_> {
        VisitRow {
            page: self.target.page,
            at: self.ended_at,
            ending: self.ending(),
            n_failures: self.n_failures(),
            payload: self.payload(),
            identity: self.observation().map(|exchange| &exchange.appended.identity),
            trust: self.trust(),
        }
    }

    /// Digest and validators for the next conditional request; `None` keeps the previous ones.
    fn payload(&self) -> Option<(&str, &Validators)> {
        static NONE: Validators = Validators { etag: None, last_modified: None };
        let exchange = self.exchange()?;
        let validators = match exchange.response_kind() {
            ResponseKind::Content => &exchange.validators,
            // A left-out version that persists is worth its bytes. Without validators the next response contains
            // them.
            ResponseKind::NotModified if exchange.appended.is_left_out => &NONE,
            _ => return None,
        };
        Some((&exchange.appended.content, validators))
    }

    fn trust(&self) -> ValidatorTrust {
        let target = &self.target;
        match self.exchange() {
            Some(StoredExchange { status, validators, appended, .. })
                if matches!(
                    self.response_kind(),
                    Some(ResponseKind::Content | ResponseKind::NotModified)
                ) =>
            {
                let before = target.digest.as_deref().zip(Some(&target.validators));
                trust_after(target.trust, before, *status, self.is_conditional, &appended.content, validators)
            }
            _ => target.trust,
        }
    }
}

/// Views for `crawl.log`.
impl VisitRecord {
    /// One line per archived exchange. The visit's own line is last.
    pub(super) fn log_lines(&self) -> impl Iterator<Item = LogLine> {
        let companions = self.companions.iter().map(|exchange| self.companion_line(exchange));
        companions.chain(std::iter::once_with(|| self.visit_line()))
    }

    fn visit_line(&self) -> LogLine {
        let exchange = self.exchange();
        LogLine {
            url: self.target.url.clone(),
            kind: self.target.kind.name().into(),
            reason: self.reason.clone(),
            outcome: self.ending().name().into(),
            error: self.error().map(Into::into),
            detail: self.response.as_ref().err().map(ToString::to_string),
            truncated: exchange.and_then(|exchange| exchange.truncation).map(|why| why.as_str().into()),
            unread: exchange.and_then(|exchange| exchange.unread.clone()),
            millis: self.took.as_millis() as u64,
            conditional: self.is_conditional,
            n_found: self.new_pages.iter().filter(|new| new.is_new).count() as u64,
            ..exchange.map_or_else(|| self.line(), |exchange| self.exchange_line(exchange))
        }
    }

    fn companion_line(&self, exchange: &StoredExchange) -> LogLine {
        let is_robots = exchange.url.ends_with("/robots.txt");
        let is_new = exchange.appended.is_new_version;
        LogLine {
            kind: if is_robots { "robots" } else { PageKind::Subresource.name() }.into(),
            reason: if is_robots { "before the host's first page" } else { "fetched by the browser" }.into(),
            outcome: if is_new { VisitEnding::New } else { VisitEnding::Unchanged }.name().into(),
            ..self.exchange_line(exchange)
        }
    }

    fn exchange_line(&self, exchange: &StoredExchange) -> LogLine {
        LogLine {
            url: exchange.url.clone(),
            status: Some(exchange.status),
            stored: Some(stored_word(exchange.appended.kind).into()),
            digest: Some(exchange.appended.digest.clone()),
            body_bytes: exchange.body_bytes,
            stored_bytes: exchange.appended.stored_bytes,
            ..self.line()
        }
    }

    fn line(&self) -> LogLine {
        LogLine { time: self.ended_at.to_rfc3339(), ..LogLine::default() }
    }
}

fn stored_word(kind: CaptureKind) -> &'static str {
    match kind {
        CaptureKind::Response => "response",
        CaptureKind::Revisit => "revisit",
        CaptureKind::Resource => "resource",
        CaptureKind::Metadata => "delta",
    }
}

/// Sample records for tests.
#[cfg(test)]
pub(super) mod samples {
    use perennial_core::time::Span;

    use super::*;
    use perennial_fetch::FetchError;

    pub(crate) const SITE: SiteId = SiteId(1);
    pub(crate) const SEED: i64 = 1;

    pub(crate) fn target(page: PageId, kind: PageKind) -> VisitTarget {
        VisitTarget::unvisited(page, SITE, format!("http://a.example/{}", page.0), kind, SEED)
    }

    /// A first visit that found the page.
    pub(crate) fn found(page: PageId, kind: PageKind, at: Timestamp) -> VisitRecord {
        responded(page, kind, 200, at)
    }

    /// A first visit with a response.
    pub(crate) fn responded(page: PageId, kind: PageKind, status: u16, at: Timestamp) -> VisitRecord {
        VisitRecord {
            target: target(page, kind),
            reason: String::new(),
            is_conditional: false,
            response: Ok(exchange(&format!("http://a.example/{}", page.0), status, at)),
            companions: Vec::new(),
            feed: None,
            discoveries: Vec::new(),
            ended_at: at,
            took: Duration::ZERO,
            crawl_delay_secs: None,
            warning: None,
            host: HostState { ready_at: at, n_troubles: 0 },
            new_pages: Vec::new(),
            poll: None,
        }
    }

    /// The `n_failures`th consecutive visit whose host did not respond.
    pub(crate) fn failed(page: PageId, n_failures: u16, at: Timestamp) -> VisitRecord {
        VisitRecord {
            target: VisitTarget { n_failures: n_failures - 1, ..target(page, PageKind::Page) },
            response: Err(FetchError::Timeout(Duration::from_secs(60)).into()),
            host: HostState { ready_at: at + Span::from_secs(60), n_troubles: n_failures },
            ..found(page, PageKind::Page, at)
        }
    }

    pub(crate) fn exchange(url: &str, status: u16, time: Timestamp) -> StoredExchange {
        StoredExchange {
            url: url.into(),
            time,
            status,
            body_bytes: 1000,
            truncation: None,
            unread: None,
            is_large: false,
            validators: Validators::default(),
            retry_after: None,
            appended: AppendOutcome {
                kind: CaptureKind::Response,
                digest: "sha1:A".into(),
                content: "sha256:a".into(),
                identity: Identity::parse(&if status < 300 { "sha256:a".into() } else { status.to_string() }),
                is_new_version: true,
                is_left_out: false,
                stored_bytes: 500,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::*;
    use super::*;
    use perennial_fetch::FetchError;

    fn at() -> Timestamp {
        Timestamp::from_secs(1_000_000)
    }

    fn page(response: Result<StoredExchange, VisitFailure>) -> VisitRecord {
        VisitRecord { response, ..found(PageId(1), PageKind::Page, at()) }
    }

    fn status(status: u16) -> Result<StoredExchange, VisitFailure> {
        Ok(exchange("http://a.example/1", status, at()))
    }

    #[test]
    fn a_response_or_a_failure_has_one_ending_and_one_error() {
        let broken_off = status(200)
            .map(|exchange| StoredExchange { truncation: Some(Truncation::Disconnect), ..exchange });
        let guarded = FetchError::Guarded {
            host: "a.example".into(),
            address: [127, 0, 0, 1].into(),
            kind: perennial_core::http::address::AddressKind::Loopback,
        };
        for (response, ending, error, is_final) in [
            (status(200), VisitEnding::New, None, true),
            (status(301), VisitEnding::Redirected, None, true),
            (status(404), VisitEnding::Missing, Some("not-found"), true),
            (status(403), VisitEnding::Refused, Some("forbidden"), true),
            (status(503), VisitEnding::Failed, Some("server-error"), false),
            (broken_off, VisitEnding::Failed, Some("disconnected"), false),
            (Err(VisitFailure::RobotsDisallowed), VisitEnding::Refused, Some("robots-disallowed"), true),
            (Err(VisitFailure::TimeLapse), VisitEnding::Failed, Some("time-lapse"), true),
            (Err(guarded.into()), VisitEnding::Failed, Some("guarded"), true),
            (Err(FetchError::Timeout(Duration::ZERO).into()), VisitEnding::Failed, Some("timeout"), false),
        ] {
            let record = page(response);
            assert_eq!((record.ending(), record.error(), record.is_final()), (ending, error, is_final));
            assert_eq!(record.n_failures(), u16::from(ending == VisitEnding::Failed));
            let line = record.log_lines().last().unwrap();
            assert_eq!((line.outcome.as_str(), line.error.as_deref()), (ending.name(), error));
        }
    }

    #[test]
    fn what_was_known_before_decides_what_a_visit_means() {
        let known = VisitTarget { digest: Some("sha256:a".into()), ..target(PageId(1), PageKind::Page) };
        let again = |response| VisitRecord { target: known.clone(), ..page(response) };
        assert_eq!(again(status(200)).ending(), VisitEnding::Unchanged);
        assert_eq!(again(status(304)).ending(), VisitEnding::Unchanged);
        assert_eq!(
            (again(status(404)).ending(), again(status(403)).ending()),
            (VisitEnding::Gone, VisitEnding::Refused)
        );
        assert!(again(status(403)).unseen_reason().is_some() && again(status(404)).unseen_reason().is_none());
        assert_eq!(
            again(status(404)).outcome(),
            VisitOutcome::Vanished(perennial_core::page::importance::Importance::FULL)
        );
    }

    #[test]
    fn the_frontier_keeps_the_last_full_response() {
        let row = |record: &VisitRecord| {
            let VisitRow { payload, identity, .. } = record.frontier_row();
            (payload.map(|(digest, _)| digest.to_owned()), identity.map(Identity::to_string))
        };
        assert_eq!(row(&page(status(200))), (Some("sha256:a".into()), Some("sha256:a".into())));
        assert_eq!(row(&page(status(404))), (None, Some("404".into())));
        assert_eq!(row(&page(status(503))), (None, None));
        assert_eq!(row(&page(Err(VisitFailure::NoArchive))), (None, None));
        let mut left_out = page(status(304));
        left_out.response.as_mut().unwrap().appended.is_left_out = true;
        let validators = left_out.frontier_row().payload.map(|(_, validators)| validators.is_some());
        assert_eq!(validators, Some(false), "the next visit sends no condition");
    }

    #[test]
    fn companions_have_lines_before_the_visit_and_count_with_it() {
        let companions = ["http://a.example/robots.txt", "http://a.example/a.js"];
        let companions = companions.map(|url| exchange(url, 200, at())).into();
        let record = VisitRecord { companions, ..page(status(200)) };
        let lines: Vec<LogLine> = record.log_lines().collect();
        let kinds: Vec<&str> = lines.iter().map(|line| line.kind.as_str()).collect();
        assert_eq!(kinds, ["robots", "requisite", "page"]);
        assert_eq!((record.body_bytes(), record.stored_bytes()), (3000, 1500));
    }
}
