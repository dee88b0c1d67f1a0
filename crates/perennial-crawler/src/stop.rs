//! A stop request from a signal or a different thread, which the loop can wait for.

use std::sync::Arc;

use tokio::sync::watch;

/// Stops a crawl after the fetches in flight. Clones refer to the same crawl.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<watch::Sender<bool>>);

impl Default for StopHandle {
    fn default() -> StopHandle {
        StopHandle(Arc::new(watch::Sender::new(false)))
    }
}

impl StopHandle {
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn requested(&self) {
        // `self` contains the sender, so waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|is_requested| *is_requested).await;
    }
}
