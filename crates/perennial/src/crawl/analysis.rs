//! Pages whose capture is safe -> lessons, on threads of their own, without holding up the fetching.
//!
//! The queue is bounded by the loop, which starts no visit while too many wait. What is lost in a crash is
//! only work: the next start finds the captures that no lesson was drawn from.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use perennial_core::page::PageId;
use perennial_core::schedule::VisitOutcome;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::recorder::Message;
use crate::analyse::{PageAnalyst, PageLessons};

/// What the captures of a page since its last analysis taught.
pub struct Learned {
    /// Which page.
    pub page: PageId,
    /// What the scheduler is told; `None` when there was nothing to look at, such as a picture.
    pub outcome: Option<VisitOutcome>,
    /// Something the user should know.
    pub warning: Option<String>,
}

/// The threads and the ways to them.
pub struct Analysis {
    jobs: Sender<PageId>,
    learned: UnboundedReceiver<Learned>,
    n_waiting: usize,
}

impl Analysis {
    /// Starts a thread for every core. Lessons go to the recorder, which owns the archive.
    pub fn start(pages: &Arc<PageAnalyst>, lessons: &Sender<Message>) -> std::io::Result<Analysis> {
        let (jobs, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let (learned_sender, learned) = unbounded_channel();
        let n_threads = std::thread::available_parallelism().map_or(2, usize::from);
        for number in 0..n_threads {
            let (pages, receiver) = (Arc::clone(pages), Arc::clone(&receiver));
            let (lessons, learned) = (lessons.clone(), learned_sender.clone());
            std::thread::Builder::new().name(format!("analyst {number}")).spawn(move || {
                while let Some(page) = next_job(&receiver) {
                    work(&pages, page, &lessons, &learned);
                }
            })?;
        }
        Ok(Analysis { jobs, learned, n_waiting: 0 })
    }

    /// Puts a page in the queue.
    pub fn submit(&mut self, page: PageId) {
        if self.jobs.send(page).is_ok() {
            self.n_waiting += 1;
        }
    }

    /// Pages in the queue and under analysis.
    pub fn n_waiting(&self) -> usize {
        self.n_waiting
    }

    /// The next page that is done; waits for ever when there is none.
    pub async fn next(&mut self) -> Learned {
        match self.learned.recv().await {
            Some(learned) => {
                self.n_waiting = self.n_waiting.saturating_sub(1);
                learned
            }
            None => std::future::pending().await,
        }
    }
}

fn next_job(receiver: &Mutex<Receiver<PageId>>) -> Option<PageId> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn work(pages: &PageAnalyst, page: PageId, lessons: &Sender<Message>, learned: &UnboundedSender<Learned>) {
    let word = match pages.go_on(page) {
        Ok(done) => {
            let outcome = outcome_of(&done);
            // Before the word: the scheduler may ask for the page again at once.
            let _ = lessons.send(Message::Lessons(done));
            Learned { page, outcome, warning: None }
        }
        Err(error) => {
            Learned { page, outcome: None, warning: Some(format!("a capture cannot be analysed: {error:#}")) }
        }
    };
    let _ = learned.send(word);
}

/// Usually there is one lesson; after a pause there may be several, and the last is this visit's.
fn outcome_of(done: &PageLessons) -> Option<VisitOutcome> {
    done.lessons.last().map(|lesson| VisitOutcome::from(lesson.seen()))
}
