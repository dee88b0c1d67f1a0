//! Analyses committed captures on threads of their own, in parallel with fetching.
//!
//! The loop bounds the queue: it starts no visit while too many pages wait. A crash loses no result, because the next
//! start analyses all captures without an analysis.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use perennial_core::schedule::VisitOutcome;
use perennial_core::url::PageId;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::events::AnalysedChange;
use super::recorder::RecorderMessage;
use perennial_engine::analyse::{PageAnalyses, PageAnalyst, PageHeadline};
use perennial_engine::background;

/// The result of analysing the new captures of a page.
pub(super) struct FinishedAnalysis {
    pub(super) page: PageId,
    /// The outcome for the scheduler; `None` without an observation, or if the analysis failed.
    pub(super) outcome: Option<VisitOutcome>,
    /// Headlines in the page, if it is a listing page.
    pub(super) headlines: Vec<PageHeadline>,
    pub(super) warning: Option<String>,
    /// What people would call a change.
    pub(super) changes: Vec<AnalysedChange>,
}

/// The channels to the analysing threads.
pub(super) struct AnalysisPool {
    jobs: Sender<PageId>,
    /// Large documents are analysed on one thread. They neither delay others nor use memory at the same time.
    large_jobs: Sender<PageId>,
    /// Pages whose analysis is complete.
    pub(super) analysed: UnboundedReceiver<FinishedAnalysis>,
    /// Set at the end of the crawl. The next crawl analyses what is left in the queues.
    is_over: Arc<AtomicBool>,
}

impl Drop for AnalysisPool {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl AnalysisPool {
    /// Starts one thread per core. The recorder stores the analyses.
    pub(super) fn start(
        pages: &Arc<PageAnalyst>,
        analyses: &Sender<RecorderMessage>,
    ) -> std::io::Result<AnalysisPool> {
        let ((jobs, receiver), (large_jobs, large_receiver)) = (channel(), channel());
        let receiver = Arc::new(Mutex::new(receiver));
        let (analysed_sender, analysed) = unbounded_channel();
        let n_threads = std::thread::available_parallelism().map_or(2, usize::from);
        let is_over = Arc::new(AtomicBool::new(false));
        let usual = (0..n_threads).map(|number| (format!("analyst {number}"), Arc::clone(&receiver), false));
        let large = ("large analyst".to_string(), Arc::new(Mutex::new(large_receiver)), true);
        for (name, receiver, gives_way) in usual.chain([large]) {
            let (pages, analyses, analysed) = (Arc::clone(pages), analyses.clone(), analysed_sender.clone());
            let is_over = Arc::clone(&is_over);
            std::thread::Builder::new().name(name).spawn(move || {
                if gives_way {
                    background::lower_priority();
                }
                while let Some(page) = next_job(&receiver).filter(|_| !is_over.load(Ordering::Relaxed)) {
                    work(&pages, page, &analyses, &analysed);
                }
            })?;
        }
        Ok(AnalysisPool { jobs, large_jobs, analysed, is_over })
    }

    pub(super) fn submit(&self, page: PageId, is_large: bool) {
        let jobs = if is_large { &self.large_jobs } else { &self.jobs };
        // Sending fails only if the threads have ended. Then the next crawl analyses the page.
        let _ = jobs.send(page);
    }
}

fn next_job(receiver: &Mutex<Receiver<PageId>>) -> Option<PageId> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn work(
    pages: &PageAnalyst,
    page: PageId,
    analyses: &Sender<RecorderMessage>,
    analysed: &UnboundedSender<FinishedAnalysis>,
) {
    let result = match pages.analyse_new(page) {
        Ok(mut done) => {
            let outcome = last_outcome(&done);
            let headlines = std::mem::take(&mut done.headlines);
            let changes = done.analyses.iter().filter_map(AnalysedChange::new).collect();
            // The analyses go first, because the scheduler may choose the page again as soon as it has the outcome.
            let _ = analyses.send(RecorderMessage::Analyses(done));
            FinishedAnalysis { page, outcome, headlines, warning: None, changes }
        }
        Err(error) => {
            let warning = Some(format!("a capture cannot be analysed: {error:#}"));
            FinishedAnalysis { page, outcome: None, headlines: Vec::new(), warning, changes: Vec::new() }
        }
    };
    let _ = analysed.send(result);
}

/// Usually there is one analysis. After a pause there may be several, and the last one belongs to this visit.
fn last_outcome(done: &PageAnalyses) -> Option<VisitOutcome> {
    done.analyses.last().map(|analysis| VisitOutcome::from(analysis.status))
}
