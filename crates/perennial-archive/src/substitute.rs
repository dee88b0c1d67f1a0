//! A capture whose own record shows nothing -> the record of the same page that shows what was valid then.
//!
//! A 304 has no body, and of a version that was left out only the delta is stored. Other tools show whatever a line of the
//! index names: an empty page, or XML. So the lines of such captures name the record that a reader should see
//! (docs/decisions/0027-index-and-replay-in-other-tools.md). A 304 has the record with the very payload that it confirms. A
//! left-out version has the last whole one before it, of which it differs in what hardly matters.

use std::collections::HashMap;

use perennial_core::url::PageId;
use perennial_warc::sha1_label;

use crate::store::{Capture, CaptureKind, Store};

/// Finds stand-ins. It is fast when captures come in the order of the index: then a page's last whole capture is at hand.
pub(super) struct Substitutes<'s> {
    store: &'s Store,
    /// What a 304 has that names no payload.
    digest_of_nothing: String,
    /// The key at hand.
    key: String,
    /// The last whole capture of each page with that key.
    whole: HashMap<PageId, Capture>,
    /// What was found for each payload that a 304 confirmed, by its digests.
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

    /// The capture whose record is shown for this one; `None` when its own record is, or none could be.
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

    /// The first capture of the page that showed the payload which a 304 confirms. The state is asked once for each payload.
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
