//! Lays out pages in warm worker processes, each page bounded in time and memory.
//!
//! If the engine panics, crashes or takes too long, the page gets the structural layout and is counted.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use perennial_core::page::layout::{Boxes, Layout};
use url::Url;

use crate::dom::Dom;
use crate::engine::base_url;
use crate::parsed::parsed_nodes;
use crate::pipe::{self, PipeEnd};
use crate::resource::{SubresourceLookup, all_subresources};
use crate::structural;
use crate::wire::{WorkerMessage, body_length, page_frame};

/// The command that starts a worker: this program with its hidden subcommand.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

impl WorkerCommand {
    /// What the workers of this machine could do but should not, one line each. Empty if they are fully confined.
    pub fn confinement_gaps(&self) -> io::Result<Vec<String>> {
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .arg("--self-test")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!(
                "the test of a render worker ended with {}",
                output.status
            )));
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    }
}

/// Limits per page and per worker.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Time limit per page.
    pub time: Duration,
    /// Pages after which a worker is replaced, which bounds memory leaks.
    pub pages_per_worker: u32,
}

impl Default for PageLimits {
    fn default() -> PageLimits {
        PageLimits { time: Duration::from_secs(10), pages_per_worker: 2000 }
    }
}

/// Default address space of a worker. The engine needs about 20 MB for a usual page.
pub const WORKER_MEMORY_BYTES: u64 = 2 << 30;

/// A response is read in steps of this size.
const READ_STEP: usize = 4 << 20;

/// Why the engine has no layout of a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fallback {
    #[error("the layout engine panicked: {0}")]
    Panicked(String),
    /// The worker process ended: stack overflow or out of memory.
    #[error("the layout engine crashed")]
    Crashed,
    /// It ran longer than [`PageLimits::time`].
    #[error("the layout engine ran too long")]
    TimedOut,
    #[error("no render worker could be started: {0}")]
    NotStarted(String),
}

impl From<PipeEnd> for Fallback {
    fn from(end: PipeEnd) -> Fallback {
        match end {
            PipeEnd::TimedOut => Fallback::TimedOut,
            PipeEnd::Closed => Fallback::Crashed,
        }
    }
}

/// A layout, and the reason if it is only structural.
#[derive(Clone, Debug)]
pub struct RenderedLayout {
    pub layout: Layout<'static>,
    /// Why the engine failed; `None` if it did not.
    pub fallback: Option<Fallback>,
}

/// Worker processes, shared by all threads. Each call uses one worker.
pub struct WorkerPool {
    command: WorkerCommand,
    limits: PageLimits,
    idle: Mutex<Vec<Worker>>,
    n_pages: AtomicU64,
    n_fallbacks: AtomicU64,
}

impl WorkerPool {
    /// Workers are started on demand.
    pub fn new(command: WorkerCommand, limits: PageLimits) -> WorkerPool {
        WorkerPool {
            command,
            limits,
            idle: Mutex::default(),
            n_pages: AtomicU64::new(0),
            n_fallbacks: AtomicU64::new(0),
        }
    }

    /// Lays a page out. This cannot fail.
    pub fn layout(&self, html: &str, url: &str, lookup: &SubresourceLookup) -> RenderedLayout {
        let dom = Dom::parse(html);
        let base = base_url(&dom, url);
        let (layout, fallback) = match self.boxes(&dom, &base, lookup) {
            Ok(boxes) => (boxes.fill(&parsed_nodes(&dom), base.as_str()).unwrap_or_default(), None),
            Err(fallback) => (structural::layout(&dom, url), Some(fallback)),
        };
        RenderedLayout { layout: layout.into_owned(), fallback }
    }

    /// Lays out a parsed page, or returns why only [`structural::layout`] can. Its links resolve against `base`.
    pub fn boxes(&self, dom: &Dom, base: &Url, lookup: &SubresourceLookup) -> Result<Boxes, Fallback> {
        self.n_pages.fetch_add(1, Ordering::Relaxed);
        let boxes = self.try_boxes(dom, base, lookup);
        self.n_fallbacks.fetch_add(u64::from(boxes.is_err()), Ordering::Relaxed);
        boxes
    }

    pub fn command(&self) -> &WorkerCommand {
        &self.command
    }

    /// Pages laid out so far.
    pub fn n_pages(&self) -> u64 {
        self.n_pages.load(Ordering::Relaxed)
    }

    /// Pages that got the structural layout only.
    pub fn n_fallbacks(&self) -> u64 {
        self.n_fallbacks.load(Ordering::Relaxed)
    }

    fn try_boxes(&self, dom: &Dom, base: &Url, lookup: &SubresourceLookup) -> Result<Boxes, Fallback> {
        let idle = self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        let mut worker = match idle {
            Some(worker) => worker,
            None => Worker::start(&self.command).map_err(|error| Fallback::NotStarted(error.to_string()))?,
        };
        let deadline = Instant::now() + self.limits.time;
        let outcome = worker.boxes(dom, base, lookup, deadline);
        worker.n_pages += 1;
        // After a panic the thread-local state of the engine may be corrupt.
        if outcome.is_ok() && worker.n_pages < self.limits.pages_per_worker {
            self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(worker);
        }
        outcome
    }
}

/// One worker process. Dropping it ends the process.
struct Worker {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    n_pages: u32,
}

impl Worker {
    fn start(command: &WorkerCommand) -> io::Result<Worker> {
        let mut child = Command::new(&command.program)
            .args(&command.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("a render worker has no pipes"));
        };
        pipe::prepare(&input)?;
        pipe::prepare(&output)?;
        Ok(Worker { child, input, output, n_pages: 0 })
    }

    fn boxes(
        &mut self,
        dom: &Dom,
        base: &Url,
        lookup: &SubresourceLookup,
        deadline: Instant,
    ) -> Result<Boxes, Fallback> {
        self.write(&page_frame(base.as_str(), dom), deadline)?;
        loop {
            match self.read(deadline)? {
                WorkerMessage::Need(wanted) => {
                    let found = WorkerMessage::Answer(all_subresources(&wanted, lookup));
                    self.write(&found.to_frame(), deadline)?;
                }
                WorkerMessage::Done(boxes) => return Ok(*boxes),
                WorkerMessage::Panicked(words) => return Err(Fallback::Panicked(words)),
                WorkerMessage::Page(_) | WorkerMessage::Answer(_) => return Err(Fallback::Crashed),
            }
        }
    }

    fn write(&mut self, frame: &[u8], deadline: Instant) -> Result<(), Fallback> {
        Ok(pipe::write_all(&self.input, frame, deadline)?)
    }

    fn read(&mut self, deadline: Instant) -> Result<WorkerMessage, Fallback> {
        let mut length = [0; 4];
        self.read_exact(&mut length, deadline)?;
        let length = body_length(length).map_err(|_| Fallback::Crashed)?;
        // The worker parsed an untrusted page, so its length is not trusted. Memory is allocated as bytes arrive.
        let mut body = Vec::new();
        while body.len() < length {
            let n_read = body.len();
            body.resize(length.min(n_read + READ_STEP), 0);
            self.read_exact(&mut body[n_read..], deadline)?;
        }
        WorkerMessage::from_body(&body).map_err(|_| Fallback::Crashed)
    }

    fn read_exact(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<(), Fallback> {
        let mut n_read = 0;
        while n_read < buffer.len() {
            n_read += pipe::read_some(&self.output, &mut buffer[n_read..], deadline)?;
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both calls may fail because the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
