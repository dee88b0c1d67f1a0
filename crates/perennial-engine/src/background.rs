//! Threads during the crawl: large documents at a lower priority, and a follower of analysed pages.
//!
//! A host can send documents of 32 MB as a few compressed kilobytes. Reading and analysing one takes seconds of a core. Visits of
//! other hosts must not wait for that.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use perennial_core::url::PageId;

/// Lowers the priority of the calling thread, and of the processes that it starts.
pub fn lower_priority() {
    // On Linux the priority belongs to the thread. If the system refuses, the work runs at normal priority.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 5);
}

/// Runs work on a thread with a lower priority, and waits for it.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> std::thread::Result<T> {
    std::thread::scope(|scope| {
        let background = scope.spawn(|| {
            lower_priority();
            work()
        });
        background.join()
    })
}

/// A thread that follows a crawl: the text index and the notices each have one. If the program is killed, the next
/// start catches up with the pages that were not processed.
pub struct PageFollower<M = PageId> {
    messages: Sender<M>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl<M: Send + 'static> PageFollower<M> {
    /// Starts the thread. `work` receives messages until the crawl is over.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(&Receiver<M>) -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<PageFollower<M>> {
        let (messages, receiver) = channel();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || work(&receiver))?;
        Ok(PageFollower { messages, thread })
    }

    /// Passes on what was committed: usually a page with new analyses.
    pub fn follow(&self, message: M) {
        // Sending fails only if the thread ended with an error, which `finish` returns.
        let _ = self.messages.send(message);
    }

    /// Waits until all pages are processed. Notices may remain unsent.
    pub fn finish(self) -> anyhow::Result<()> {
        drop(self.messages);
        join(self.thread)
    }
}

/// Waits for a thread and returns its error.
pub(crate) fn join(thread: JoinHandle<anyhow::Result<()>>) -> anyhow::Result<()> {
    thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("it failed unexpectedly")))
}

/// The next pages, each once and at most `limit`; waits for the first. `None` when the crawl is over.
pub(crate) fn next_pages(pages: &Receiver<PageId>, limit: usize) -> Option<Vec<PageId>> {
    let mut next = vec![pages.recv().ok()?];
    next.extend(pages.try_iter().take(limit - 1));
    next.sort_unstable();
    next.dedup();
    Some(next)
}
