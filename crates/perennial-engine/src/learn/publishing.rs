//! Learns from its items when a feed publishes.

use perennial_core::feed::polling::{MAX_TIMES, PublishingHistory};

use perennial_archive::store::{Store, StoredFeed};

/// When a feed publishes. The result is not stored, because it follows from the items.
pub fn publishing(store: &Store, feed: &StoredFeed) -> anyhow::Result<PublishingHistory> {
    let mut publishing = PublishingHistory::default();
    let times = store.item_times(feed.page, MAX_TIMES)?;
    let n_new = usize::from(feed.visited.is_none_or(|visited| visited <= feed.last_read));
    publishing.read(times, feed.n_held as usize, n_new, &feed.pace, feed.visited.unwrap_or(feed.last_read));
    Ok(publishing)
}
