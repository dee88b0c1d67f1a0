//! The worker's end of the pipe: reads pages from standard input and writes layouts to standard output.
//!
//! The same executable runs as its own worker (`perennial render-worker`). So a page that makes the engine overflow
//! its stack, exhaust memory or run forever harms no other page. The worker confines itself before it reads a page
//! ([`crate::confine`]). The other end ([`crate::pool`]) limits its time.

use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use perennial_core::page::layout::Boxes;
use url::Url;

use crate::confine::{self, CPU_SECS_PER_PAGE, Confinement};
use crate::engine::LayoutEngine;
use crate::pool::WORKER_MEMORY_BYTES;
use crate::resource::{CapturedResource, Subresource, subresource};
use crate::wire::WorkerMessage;

/// Enough for [`crate::dom::MAX_DEPTH`] nested elements with any display.
const STACK_BYTES: usize = 64 << 20;

/// Limits that a worker sets itself.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLimits {
    pub memory_bytes: u64,
    /// CPU time per page.
    pub cpu_secs: u64,
}

impl Default for WorkerLimits {
    fn default() -> WorkerLimits {
        WorkerLimits { memory_bytes: WORKER_MEMORY_BYTES, cpu_secs: CPU_SECS_PER_PAGE }
    }
}

/// Serves pages until the other end closes.
pub fn serve(limits: WorkerLimits) -> io::Result<()> {
    confined(limits, move |_| converse(BufReader::new(io::stdin()), io::stdout(), limits.cpu_secs))?
}

/// What a worker of this machine could do but should not, and which steps of its confinement failed. Empty if it is
/// fully confined.
pub fn confinement_gaps(limits: WorkerLimits) -> io::Result<Vec<String>> {
    let program = std::env::current_exe()?;
    confined(limits, move |isolation| {
        let missing = [
            ("limits of the system", isolation.limits),
            ("no_new_privs", isolation.privileges),
            ("Landlock", isolation.landlock),
            ("the seccomp filter", isolation.seccomp),
        ];
        let missing =
            missing.into_iter().filter_map(|(name, why)| Some(format!("{name} is missing: {}", why?)));
        let possible = possible_actions(&program).into_iter().map(|action| format!("it can {action}"));
        possible.chain(missing).collect()
    })
}

/// Tries actions that no worker needs. Returns those that succeeded.
fn possible_actions(readable: &Path) -> Vec<&'static str> {
    let tries = [
        ("read files", std::fs::File::open(readable).is_ok()),
        ("list folders", std::fs::read_dir("/").is_ok()),
        ("listen for connections", TcpListener::bind("127.0.0.1:0").is_ok()),
        ("send packets", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("start processes", Command::new(readable).arg("--version").output().is_ok()),
        ("start threads", std::thread::Builder::new().spawn(|| ()).is_ok()),
    ];
    tries.into_iter().filter(|(_, is_possible)| *is_possible).map(|(action, _)| action).collect()
}

/// Runs work on a thread with a large stack, confined as far as this machine allows.
fn confined<T: Send + 'static>(
    limits: WorkerLimits,
    work: impl FnOnce(Confinement) -> T + Send + 'static,
) -> io::Result<T> {
    let mut isolation = confine::close_in(limits.memory_bytes)?;
    // The message goes to the other end. A backtrace on standard error would be useless.
    std::panic::set_hook(Box::new(|_| {}));
    confine::end_with_reader()?;
    let sealed = move || {
        confine::seal(&mut isolation);
        work(isolation)
    };
    let working = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(sealed)?;
    working.join().map_err(|_| io::Error::other("the render worker's own code panicked"))
}

fn converse(from: impl Read + Send, to: impl Write + Send, cpu_secs: u64) -> io::Result<()> {
    let engine = LayoutEngine::new();
    let streams = Mutex::new((from, to));
    loop {
        let message = WorkerMessage::read(&mut lock(&streams).0)?;
        let page = match message {
            None => return Ok(()),
            Some(WorkerMessage::Page(page)) => page,
            Some(_) => return Err(io::Error::other("a render worker received an unexpected message")),
        };
        confine::allow_cpu(cpu_secs)?;
        let base = Url::parse(&page.base).map_err(io::Error::other)?;
        let request = |wanted: &[String]| request(&streams, wanted);
        let done = catch_unwind(AssertUnwindSafe(|| engine.boxes_with_lookup(&page.dom, &base, &request)));
        let answer = match done {
            Ok(boxes) => WorkerMessage::Done(Box::new(numbered(boxes, &page.sources))),
            Err(words) => WorkerMessage::Panicked(panic_message(&*words)),
        };
        answer.write(&mut lock(&streams).1)?;
    }
}

/// Gives the boxes the node numbers of the other end.
fn numbered(mut boxes: Boxes, sources: &[u32]) -> Boxes {
    boxes.nodes.iter_mut().for_each(|node| node.source = sources[node.source as usize]);
    boxes
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Requests subresources from the other end, all at once. `data:` URLs are answered here.
fn request(streams: &Mutex<(impl Read, impl Write)>, wanted: &[String]) -> Vec<Subresource> {
    let is_own = |url: &&String| url.starts_with("data:");
    let requested: Vec<String> = wanted.iter().filter(|url| !is_own(url)).cloned().collect();
    let mut found =
        if requested.is_empty() { Vec::new() } else { request_from_parent(streams, requested) }.into_iter();
    let answer = |url: &String| match is_own(&url) {
        true => subresource(url, |_| None::<CapturedResource>),
        false => found.next().unwrap_or(Subresource::Absent),
    };
    wanted.iter().map(answer).collect()
}

fn request_from_parent(streams: &Mutex<(impl Read, impl Write)>, wanted: Vec<String>) -> Vec<Subresource> {
    let (from, to) = &mut *lock(streams);
    match WorkerMessage::Need(wanted).write(to).and_then(|()| WorkerMessage::read(from)) {
        Ok(Some(WorkerMessage::Answer(found))) => found,
        // The other end is gone, so the next read will end the worker.
        _ => Vec::new(),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    words.unwrap_or("no words").to_string()
}
