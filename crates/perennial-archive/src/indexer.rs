//! Commits -> runs of the index, written and merged by a thread of its own while the writer goes on.
//!
//! The thread only writes files; the writer, which alone writes the state, names them there at its next commit. So a
//! commit never waits for the index, and a crash leaves at most a file that nobody names.

use std::path::PathBuf;
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use perennial_core::time::{Span, Timestamp};

use super::{Archive, index};
use crate::store::{CaptureRow, IndexRun, Store};

/// When the tail becomes a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexPace {
    /// When it has so many captures.
    pub max_captures: i64,
    /// When its captures span so much of the crawl's time.
    pub max_age: Span,
}

impl Default for IndexPace {
    fn default() -> IndexPace {
        IndexPace { max_captures: 20_000, max_age: Span::from_hours(1) }
    }
}

/// Keeps the index up with the commits of one writer.
pub(super) struct IndexWriter {
    state_path: PathBuf,
    dir: PathBuf,
    pub(super) pace: IndexPace,
    /// Times of the first and the last capture that came since the last run was begun.
    span: Option<(Timestamp, Timestamp)>,
    work: Option<JoinHandle<anyhow::Result<FinishedRun>>>,
}

/// A file that waits to be named in the state.
struct FinishedRun {
    run: IndexRun,
    merged: Vec<IndexRun>,
}

impl IndexWriter {
    pub(super) fn new(archive: &Archive) -> IndexWriter {
        IndexWriter {
            state_path: archive.state_path(),
            dir: archive.index_dir(),
            pace: IndexPace::default(),
            span: None,
            work: None,
        }
    }

    /// Takes note of captures that are committed now.
    pub(super) fn note(&mut self, rows: &[CaptureRow]) {
        for row in rows {
            let (first, last) = self.span.unwrap_or((row.time, row.time));
            self.span = Some((first.min(row.time), last.max(row.time)));
        }
    }

    /// Names what the thread has written, and starts what is due.
    pub(super) fn update(&mut self, store: &mut Store) -> anyhow::Result<()> {
        if let Some(work) = self.work.take_if(|work| work.is_finished()) {
            self.register_run(store, work)?;
        }
        if self.work.is_some() {
            return Ok(());
        }
        let runs = store.runs()?;
        // Merging comes first, so that there are few runs however fast captures come.
        let alike = index::runs_to_merge(&runs).to_vec();
        if !alike.is_empty() {
            let (dir, path) = (self.dir.clone(), self.state_path.clone());
            return self.start(move || {
                let run = index::merge_or_write(&Store::open_read(&path)?, &dir, &alike)?;
                Ok(FinishedRun { run, merged: alike })
            });
        }
        let (first, last) = (index::tail_start(&runs), store.last_capture_number()?);
        let is_old = self.span.is_some_and(|(first, last)| last - first >= self.pace.max_age);
        if first > last || (last - first + 1 < self.pace.max_captures && !is_old) {
            return Ok(());
        }
        self.span = None;
        let (dir, path) = (self.dir.clone(), self.state_path.clone());
        self.start(move || {
            let run = index::write_run_of_captures(&Store::open_read(&path)?, &dir, first, last)?;
            Ok(FinishedRun { run, merged: Vec::new() })
        })
    }

    /// Brings the index up to date and waits for it.
    pub(super) fn finish(&mut self, store: &mut Store) -> anyhow::Result<()> {
        if let Some(work) = self.work.take() {
            self.register_run(store, work)?;
        }
        self.span = None;
        index::write_tail_run(store, &self.dir)
    }

    fn start(
        &mut self,
        work: impl FnOnce() -> anyhow::Result<FinishedRun> + Send + 'static,
    ) -> anyhow::Result<()> {
        self.work = Some(std::thread::Builder::new().name("indexer".into()).spawn(work)?);
        Ok(())
    }

    fn register_run(
        &self,
        store: &mut Store,
        work: JoinHandle<anyhow::Result<FinishedRun>>,
    ) -> anyhow::Result<()> {
        let done = work.join().map_err(|_| anyhow!("the indexer failed unexpectedly"))?;
        let done = done.context("cannot bring the index up to date")?;
        index::register_run(store, &self.dir, &done.run, &done.merged)
    }
}

impl Drop for IndexWriter {
    /// The next writer sweeps up what nobody named: nobody may be writing then.
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let _ = work.join();
        }
    }
}
