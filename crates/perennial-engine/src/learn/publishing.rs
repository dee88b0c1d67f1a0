//! The items of a feed -> when it publishes.

use perennial_core::feed::polling::{MAX_TIMES, Publishing};

use perennial_archive::store::{KnownFeed, Store};

/// What the state knows of when a feed publishes. It is not stored: it follows from the items.
pub fn publishing(store: &Store, feed: &KnownFeed) -> anyhow::Result<Publishing> {
    let mut publishing = Publishing::default();
    let times = store.item_times(feed.page, MAX_TIMES)?;
    let n_new = usize::from(feed.visited.is_none_or(|visited| visited <= feed.last_read));
    publishing.read(times, feed.n_held as usize, n_new, &feed.pace, feed.visited.unwrap_or(feed.last_read));
    Ok(publishing)
}
