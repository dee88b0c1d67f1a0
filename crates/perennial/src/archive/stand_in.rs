//! A capture whose own record shows nothing -> the record of the same page that shows what was valid then.
//!
//! A 304 has no body, and of a version that was left out only the delta is stored. Other tools show whatever a line of the
//! index names: an empty page, or XML. So the lines of such captures name the record that a reader should see
//! (docs/decisions/0027-replay-in-other-tools.md). A 304 has the record with the very payload that it confirms. A
//! left-out version has the last whole one before it, of which it differs in what hardly matters.

use std::collections::HashMap;

use perennial_core::page::PageId;
use perennial_core::warc::sha1_label;

use crate::store::{Capture, Kind, Store};

/// Finds stand-ins. It is fast when captures come in the order of the index: then a page's last whole capture is at hand.
pub(super) struct StandIns<'s> {
    store: &'s Store,
    /// The key at hand, and the last whole capture of each page with that key.
    key: String,
    whole: HashMap<PageId, Capture>,
}

impl<'s> StandIns<'s> {
    pub(super) fn new(store: &'s Store) -> StandIns<'s> {
        StandIns { store, key: String::new(), whole: HashMap::new() }
    }

    /// The capture whose record is shown for this one; `None` when its own record is, or none could be.
    pub(super) fn find(&mut self, capture: &Capture) -> anyhow::Result<Option<Capture>> {
        if capture.surt != self.key {
            self.key.clone_from(&capture.surt);
            self.whole.clear();
        }
        if !capture.shows_nothing() {
            if capture.is_whole() {
                self.whole.insert(capture.page, capture.clone());
            }
            return Ok(None);
        }
        let last = self.whole.get(&capture.page).filter(|last| last.time <= capture.time);
        let names_payload = capture.kind == Kind::Revisit && capture.digest != sha1_label(b"");
        match last {
            Some(last) if !names_payload || is_same_payload(last, capture) => Ok(Some(last.clone())),
            _ if names_payload => self.store.whole_capture_of(capture),
            _ => self.store.whole_capture_before(capture.page, capture.time),
        }
    }
}

fn is_same_payload(whole: &Capture, capture: &Capture) -> bool {
    whole.digest == capture.digest && (capture.content.is_none() || whole.content == capture.content)
}
