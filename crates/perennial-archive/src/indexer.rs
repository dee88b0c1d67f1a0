//! Commits -> runs of the index. A background thread writes and merges them while the writer continues.
//!
//! The thread only writes files. The writer, the only one to change the state, registers the files at its next commit.
//! A commit therefore never waits for the index, and a crash leaves at most one unregistered file.

use std::path::PathBuf;
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use perennial_core::time::{Span, Timestamp};

use super::{Archive, index};
use crate::store::{CaptureRow, IndexRun, Store};

/// When the tail becomes a run: the first limit reached decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexPace {
    /// Maximum number of captures in the tail.
    pub max_captures: i64,
    /// Maximum span of crawl time in the tail.
    pub max_age: Span,
}

impl Default for IndexPace {
    fn default() -> IndexPace {
        IndexPace { max_captures: 20_000, max_age: Span::from_hours(1) }
    }
}

/// Keeps the index current with the commits of one writer.
pub(super) struct IndexWriter {
    state_path: PathBuf,
    dir: PathBuf,
    pub(super) pace: IndexPace,
    /// Times of the first and last capture since the last run was begun.
    span: Option<(Timestamp, Timestamp)>,
    work: Option<JoinHandle<anyhow::Result<FinishedRun>>>,
}

/// A finished file that the state does not name yet.
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

    /// Records the times of captures in the present commit.
    pub(super) fn note(&mut self, rows: &[CaptureRow]) {
        for row in rows {
            let (first, last) = self.span.unwrap_or((row.time, row.time));
            self.span = Some((first.min(row.time), last.max(row.time)));
        }
    }

    /// Registers the thread's finished run and starts due work.
    pub(super) fn update(&mut self, store: &mut Store) -> anyhow::Result<()> {
        if let Some(work) = self.work.take_if(|work| work.is_finished()) {
            self.register_run(store, work)?;
        }
        if self.work.is_some() {
            return Ok(());
        }
        let runs = store.runs()?;
        // Merging comes first, which keeps the number of runs low even when captures arrive fast.
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

    /// Brings the index up to date before it returns.
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
    /// Waits for the thread. The next writer removes unregistered files, and no thread may be writing then.
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let _ = work.join();
        }
    }
}
