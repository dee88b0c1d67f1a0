//! Finds the captured stylesheet or image that a layout needs. Nothing is fetched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use perennial_core::http::response::Identity;
use perennial_core::time::Timestamp;
use perennial_render::CapturedResource;

use super::store_pool::StorePool;
use perennial_archive::Archive;
use perennial_archive::store::Store;

/// Cached subresources: a site has few stylesheets, and every page needs them.
const MAX_KEPT: usize = 512;
/// Larger ones are read from the archive each time.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Captured subresources by identity of their payload, shared by all analysing threads.
#[derive(Default)]
pub struct SubresourceCache {
    kept: Mutex<HashMap<Identity, Arc<CapturedResource>>>,
}

impl SubresourceCache {
    /// The decoded capture of `url` closest to `time`.
    pub fn find(&self, stores: &StorePool, url: &str, time: Timestamp) -> Option<CapturedResource> {
        // Layout continues without an unreadable subresource, as in a browser. `verify` reports the damage.
        stores.with(|archive, store| Ok(self.find_in(archive, store, url, time))).ok().flatten()
    }

    /// The same from an open state.
    pub(super) fn find_in(
        &self,
        archive: &Archive,
        store: &Store,
        url: &str,
        time: Timestamp,
    ) -> Option<CapturedResource> {
        let capture = store.closest_payload(url, time).ok().flatten()?;
        if let Some(kept) = self.lock().get(&capture.identity) {
            return Some(CapturedResource::clone(kept));
        }
        let payload = archive.payload(store, &capture).ok().flatten()?;
        let captured = CapturedResource {
            status: payload.head.status().unwrap_or(0),
            content_type: payload.head.get("Content-Type").unwrap_or_default().into_owned(),
            body: payload.bytes,
            ..CapturedResource::default()
        };
        if captured.body.len() <= MAX_KEPT_BYTES {
            let mut kept = self.lock();
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert(capture.identity, Arc::new(captured.clone()));
        }
        Some(captured)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Identity, Arc<CapturedResource>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
