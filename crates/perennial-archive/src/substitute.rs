//! A capture without a displayable record -> the record of the same page that was valid at that time.
//!
//! A 304 has no body, and only the delta of a left-out version is stored. Other tools would show an empty page, or XML.
//! The index lines of such captures therefore name a substitute record
//! (docs/decisions/0027-index-and-replay-in-other-tools.md). The substitute of a 304 is the record with the payload
//! that it confirms. The substitute of a left-out version is the last whole version before it, which differs only in
//! unimportant parts.

use std::collections::HashMap;

use perennial_core::url::PageId;
use perennial_warc::sha1_label;

use crate::store::{Capture, CaptureKind, Store};

/// Finds substitutes. Captures in index order are fast, because the last whole capture of a page is then cached.
pub(super) struct Substitutes<'s> {
    store: &'s Store,
    /// The digest of a 304 that names no payload.
    digest_of_nothing: String,
    /// The key of the cached captures.
    key: String,
    /// The last whole capture of each page with that key.
    whole: HashMap<PageId, Capture>,
    /// The substitute for each payload that a 304 confirmed, by its digests.
    confirmed: HashMap<(PageId, String, Option<String>), Option<Capture>>,
}

impl<'s> Substitutes<'s> {
    pub(super) fn new(store: &'s Store) -> Substitutes<'s> {
        Substitutes {
            store,
            digest_of_nothing: sha1_label(b""),
            key: String::new(),
            whole: HashMap::new(),
            confirmed: HashMap::new(),
        }
    }

    /// The capture whose record is shown instead. `None` if the capture's own record is displayable, or there is no
    /// substitute.
    pub(super) fn find(&mut self, capture: &Capture) -> anyhow::Result<Option<Capture>> {
        if capture.surt != self.key {
            self.key.clone_from(&capture.surt);
            self.whole.clear();
            self.confirmed.clear();
        }
        if !capture.shows_nothing() {
            if capture.is_whole() {
                self.whole.insert(capture.page, capture.clone());
            }
            return Ok(None);
        }
        if capture.kind == CaptureKind::Revisit && capture.digest != self.digest_of_nothing {
            return self.find_payload(capture);
        }
        match self.whole.get(&capture.page).filter(|last| last.time <= capture.time) {
            Some(last) => Ok(Some(last.clone())),
            None => self.store.whole_capture_before(capture.page, capture.time),
        }
    }

    /// The first capture of the page with the payload that a 304 confirms. It queries the state once per payload.
    fn find_payload(&mut self, capture: &Capture) -> anyhow::Result<Option<Capture>> {
        let payload = (capture.page, capture.digest.clone(), capture.content.clone());
        if let Some(found) = self.confirmed.get(&payload) {
            return Ok(found.clone());
        }
        let found = self.store.whole_capture_for(capture)?;
        self.confirmed.insert(payload, found.clone());
        Ok(found)
    }
}
