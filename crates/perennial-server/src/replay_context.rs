//! What is replayed, at which instant, where: all that the rewriting of a body is told.

use perennial_core::memento::{Coherence, Modifier};
use perennial_core::time::Timestamp;
use perennial_warc::http::HttpHead;

use super::{Origin, Origins};
use perennial_archive::store::Capture;

/// One archived answer on its way to a client.
#[derive(Clone, Debug)]
pub struct ReplayContext {
    /// Where addresses of this archive begin on both origins: empty, or a slash and the archive's name.
    pub base: String,
    /// The two origins.
    pub origins: Origins,
    /// Which of them the request came to.
    pub origin: Origin,
    /// The instant in the request's address. Addresses of subresources and links carry it on, so that all parts of a page are
    /// chosen by the page's own time.
    pub time: Timestamp,
    /// In what form it was asked for; never [`Modifier::Identity`] where a body is rewritten.
    pub modifier: Modifier,
    /// The capture that is shown, with its address and time.
    pub capture: Capture,
    /// Status line and fields of what is shown; of a revisit, those of the record with the body.
    pub head: HttpHead,
    /// The status that the client gets.
    pub status: u16,
    /// What is known of the capture at the instant.
    pub state: Coherence,
}

impl ReplayContext {
    /// The path of an archived address at this scene's instant, on either origin.
    pub fn address(&self, modifier: Modifier, url: &str) -> String {
        format!("{}/web/{}{}/{url}", self.base, self.time.to_digits14(), modifier.as_str())
    }

    /// The path of this very capture.
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
