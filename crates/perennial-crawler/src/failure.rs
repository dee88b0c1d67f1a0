//! Why a visit brought nothing to archive -> its name in the log, its message, and whether it is tried again.

use std::sync::Arc;

use perennial_core::http::politeness::HostAnswer;
use url::Url;

use perennial_fetch::FetchError;

/// Why there is nothing to archive.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The URL cannot be parsed.
    #[error("the address cannot be read")]
    BadUrl,
    /// robots.txt forbids it.
    #[error("robots.txt forbids it")]
    RobotsDisallowed,
    /// robots.txt cannot be read.
    #[error("{url} answers {status}: nothing is fetched until it can be read")]
    RobotsUnreachable { url: Url, status: u16 },
    /// Under a virtual clock only loopback hosts are visited.
    #[error("time-lapse runs on loopback hosts only: crawl other hosts in real time")]
    TimeLapse,
    /// The page asks not to be archived.
    #[error("the page asks not to be archived")]
    NoArchive,
    /// The exchange failed.
    #[error("{0}")]
    Fetch(Arc<FetchError>),
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Failure {
        Failure::Fetch(Arc::new(error))
    }
}

impl Failure {
    /// Its name in the log.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Failure::BadUrl => "bad-url",
            Failure::RobotsDisallowed => "robots-disallowed",
            Failure::RobotsUnreachable { .. } => "robots-unreachable",
            Failure::TimeLapse => "time-lapse",
            Failure::NoArchive => "noarchive",
            Failure::Fetch(error) => error.kind(),
        }
    }

    /// Whether the crawl's own guard refused the host's address.
    fn is_guarded(&self) -> bool {
        matches!(self, Failure::Fetch(error) if matches!(**error, FetchError::Guarded { .. }))
    }

    /// Whether there is no page to archive. The crawl's own refusals say nothing of the page: with other settings it may be fetched.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Failure::BadUrl | Failure::RobotsDisallowed | Failure::NoArchive)
    }

    /// Whether another try soon would fail too.
    pub(super) fn is_final(&self) -> bool {
        self.is_absence() || self.is_guarded() || matches!(self, Failure::TimeLapse)
    }

    /// What it means for the politeness towards the host; `None`: the host got no request.
    pub(super) fn host_answer(&self) -> Option<HostAnswer> {
        match self {
            Failure::BadUrl | Failure::RobotsDisallowed | Failure::TimeLapse => None,
            Failure::NoArchive => Some(HostAnswer::Served),
            Failure::Fetch(_) if self.is_guarded() => None,
            Failure::RobotsUnreachable { .. } | Failure::Fetch(_) => Some(HostAnswer::Silent),
        }
    }
}
