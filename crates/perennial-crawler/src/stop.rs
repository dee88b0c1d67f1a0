//! A request to stop, from a signal or another thread -> something the loop can wait for.

use std::sync::Arc;

use tokio::sync::watch;

/// Asks a crawl to finish the fetches in flight and end. Clones belong to the same crawl.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<watch::Sender<bool>>);

impl Default for StopHandle {
    fn default() -> StopHandle {
        StopHandle(Arc::new(watch::Sender::new(false)))
    }
}

impl StopHandle {
    /// Asks the crawl to stop.
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until a stop is requested.
    pub async fn requested(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|is_requested| *is_requested).await;
    }
}
