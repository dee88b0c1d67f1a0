//! What is replayed, at which instant and where: the input of rewriting.

use perennial_core::memento::{Modifier, TemporalCoherence};
use perennial_core::time::Timestamp;
use perennial_warc::http::HttpHead;

use super::{Origin, Origins};
use perennial_archive::store::Capture;

/// An archived response that is being sent to a client.
#[derive(Clone, Debug)]
pub struct ReplayContext {
    /// The start of this archive's paths on both origins: empty, or a slash and the archive's name.
    pub base: String,
    pub origins: Origins,
    /// The origin that received the request.
    pub origin: Origin,
    /// The instant in the request's path. Paths of subresources and links repeat it, so that all parts of a page are chosen for the
    /// page's own time.
    pub time: Timestamp,
    /// The requested form; never [`Modifier::Identity`] if a body is rewritten.
    pub modifier: Modifier,
    pub capture: Capture,
    /// Status line and fields; for a revisit, those of the record with the body.
    pub head: HttpHead,
    /// The status that the client receives.
    pub status: u16,
    /// What is known about the capture at the instant.
    pub state: TemporalCoherence,
}

impl ReplayContext {
    /// The path of an archived URL at this context's instant, on either origin.
    pub fn replay_url(&self, modifier: Modifier, url: &str) -> String {
        format!("{}/web/{}{}/{url}", self.base, self.time.to_digits14(), modifier.as_str())
    }

    /// The path of this capture.
    pub fn own_url(&self, modifier: Modifier) -> String {
        format!(
            "{}/web/{}{}/{}",
            self.base,
            self.capture.time.to_digits14(),
            modifier.as_str(),
            self.capture.url
        )
    }
}
