//! Why a visit returned nothing to archive.

use std::sync::Arc;

use perennial_core::http::politeness::HostResponse;
use url::Url;

use perennial_fetch::FetchError;

/// Why there is nothing to archive.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum VisitFailure {
    /// The URL is malformed.
    #[error("the URL is malformed")]
    BadUrl,
    #[error("robots.txt forbids it")]
    RobotsDisallowed,
    #[error("{url} has status {status}: nothing is fetched until it is readable")]
    RobotsUnreachable { url: Url, status: u16 },
    /// Under a virtual clock only loopback hosts are visited.
    #[error("time-lapse runs on loopback hosts only: crawl other hosts in real time")]
    TimeLapse,
    #[error("the page forbids archiving (`noarchive`)")]
    NoArchive,
    #[error("the login failed: {0}; try its steps in a browser and record them again")]
    Login(String),
    #[error("{0}")]
    Fetch(Arc<FetchError>),
}

impl From<FetchError> for VisitFailure {
    fn from(error: FetchError) -> VisitFailure {
        VisitFailure::Fetch(Arc::new(error))
    }
}

impl VisitFailure {
    /// The name in the log.
    pub(super) fn name(&self) -> &'static str {
        match self {
            VisitFailure::BadUrl => "bad-url",
            VisitFailure::RobotsDisallowed => "robots-disallowed",
            VisitFailure::RobotsUnreachable { .. } => "robots-unreachable",
            VisitFailure::TimeLapse => "time-lapse",
            VisitFailure::NoArchive => "noarchive",
            VisitFailure::Login(_) => "login",
            VisitFailure::Fetch(error) => error.kind(),
        }
    }

    /// Whether the address guard refused the host.
    fn is_guarded(&self) -> bool {
        matches!(self, VisitFailure::Fetch(error) if matches!(**error, FetchError::Guarded { .. }))
    }

    /// Whether there is no page to archive. The crawl's own refusals do not mean that, because different settings may
    /// allow the fetch.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, VisitFailure::BadUrl | VisitFailure::RobotsDisallowed | VisitFailure::NoArchive)
    }

    /// Whether an immediate retry would fail too.
    pub(super) fn is_final(&self) -> bool {
        self.is_absence()
            || self.is_guarded()
            || matches!(self, VisitFailure::TimeLapse | VisitFailure::Login(_))
    }

    /// The effect on politeness; `None` if the host received no request.
    pub(super) fn host_response(&self) -> Option<HostResponse> {
        match self {
            VisitFailure::BadUrl | VisitFailure::RobotsDisallowed | VisitFailure::TimeLapse => None,
            VisitFailure::NoArchive => Some(HostResponse::Served),
            VisitFailure::Login(_) => None,
            VisitFailure::Fetch(_) if self.is_guarded() => None,
            VisitFailure::RobotsUnreachable { .. } | VisitFailure::Fetch(_) => Some(HostResponse::Silent),
        }
    }
}
