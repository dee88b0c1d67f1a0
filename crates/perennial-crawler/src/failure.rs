//! Why a visit brought nothing to archive -> its name in the log, its message, and whether it is tried again.

use perennial_core::http::politeness::HostAnswer;

use perennial_fetch::FetchError;

/// Why there is nothing to archive.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// In words, with the cure.
    pub detail: String,
}

/// The kinds of failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The address cannot be read.
    BadUrl,
    /// The address guard refuses the host's address.
    Guarded,
    /// robots.txt forbids it.
    RobotsDisallowed,
    /// robots.txt cannot be read.
    RobotsUnreachable,
    /// Under a virtual clock only loopback hosts are visited.
    TimeLapse,
    /// The page asks not to be archived.
    NoArchive,
    /// The exchange failed; the name says how.
    Exchange(&'static str),
}

impl FailureKind {
    /// Its name in the log.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::BadUrl => "bad-url",
            FailureKind::Guarded => "guarded",
            FailureKind::RobotsDisallowed => "robots-disallowed",
            FailureKind::RobotsUnreachable => "robots-unreachable",
            FailureKind::TimeLapse => "time-lapse",
            FailureKind::NoArchive => "noarchive",
            FailureKind::Exchange(name) => name,
        }
    }

    /// Whether another try soon would fail too.
    pub fn is_final(self) -> bool {
        !matches!(self, FailureKind::RobotsUnreachable | FailureKind::Exchange(_))
    }

    /// Whether it is the crawl's own doing and says nothing of the page: with other settings it may be fetched.
    pub fn is_refusal(self) -> bool {
        matches!(self, FailureKind::Guarded | FailureKind::TimeLapse)
    }

    /// What it means for the politeness towards the host; `None`: the host got no request.
    pub fn host_answer(self) -> Option<HostAnswer> {
        match self {
            FailureKind::BadUrl
            | FailureKind::Guarded
            | FailureKind::RobotsDisallowed
            | FailureKind::TimeLapse => None,
            FailureKind::NoArchive => Some(HostAnswer::Served),
            FailureKind::RobotsUnreachable | FailureKind::Exchange(_) => Some(HostAnswer::Silent),
        }
    }
}

impl Failure {
    /// A failure in words.
    pub fn new(kind: FailureKind, detail: impl Into<String>) -> Failure {
        Failure { kind, detail: detail.into() }
    }

    /// A failure to fetch.
    pub fn of_fetch(error: &FetchError) -> Failure {
        let kind = match error {
            FetchError::Guarded { .. } => FailureKind::Guarded,
            other => FailureKind::Exchange(other.kind()),
        };
        Failure::new(kind, error.to_string())
    }
}
