//! Pages from standard input -> layouts on standard output, one after the other: the worker's end of the pipe.
//!
//! The same executable runs as its own worker (`perennial render-worker`). A page that makes the engine overflow its stack,
//! use up memory or run for ever then harms no other page. The worker limits its own memory; the other end
//! ([`crate::pool`]) limits its time.

use std::io::{self, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use perennial_core::layout::Boxes;
use url::Url;

use crate::engine::Engine;
use crate::resource::{Captured, Requisite, requisite_with};
use crate::wire::Message;

/// Enough for [`crate::dom::MAX_DEPTH`] nested elements in any display.
const STACK_BYTES: usize = 64 << 20;

/// Serves pages until the other end closes. `memory_bytes` bounds the address space of this process.
pub fn serve(memory_bytes: u64) -> io::Result<()> {
    limit_memory(memory_bytes)?;
    // The message goes to the other end. A backtrace on standard error would be of no use.
    std::panic::set_hook(Box::new(|_| {}));
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let serving = thread.spawn(|| converse(BufReader::new(io::stdin()), io::stdout()))?;
    serving.join().unwrap_or_else(|_| Err(io::Error::other("the render worker's own code panicked")))
}

#[cfg(unix)]
fn limit_memory(bytes: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    Ok(setrlimit(Resource::As, limit)?)
}

#[cfg(not(unix))]
fn limit_memory(_bytes: u64) -> io::Result<()> {
    Ok(())
}

fn converse(from: impl Read + Send, to: impl Write + Send) -> io::Result<()> {
    let engine = Engine::new();
    let streams = Mutex::new((from, to));
    loop {
        let message = Message::read(&mut lock(&streams).0)?;
        let page = match message {
            None => return Ok(()),
            Some(Message::Page(page)) => page,
            Some(_) => return Err(io::Error::other("a render worker was sent an answer to no question")),
        };
        let base = Url::parse(&page.base).map_err(io::Error::other)?;
        let ask = |wanted: &[String]| ask(&streams, wanted);
        let done = catch_unwind(AssertUnwindSafe(|| engine.boxes_asking(&page.dom, &base, &ask)));
        let answer = match done {
            Ok(boxes) => Message::Done(Box::new(numbered(boxes, &page.sources))),
            Err(words) => Message::Panicked(words_of(&*words)),
        };
        answer.write(&mut lock(&streams).1)?;
    }
}

/// The boxes with the numbers that their nodes have at the other end.
fn numbered(mut boxes: Boxes, sources: &[u32]) -> Boxes {
    boxes.nodes.iter_mut().for_each(|node| node.source = sources[node.source as usize]);
    boxes
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Asks the other end for requisites, all at once. Addresses that carry their data are answered here.
fn ask(streams: &Mutex<(impl Read, impl Write)>, wanted: &[String]) -> Vec<Requisite> {
    let is_own = |url: &&String| url.starts_with("data:");
    let asked: Vec<String> = wanted.iter().filter(|url| !is_own(url)).cloned().collect();
    let mut found = if asked.is_empty() { Vec::new() } else { ask_other_end(streams, asked) }.into_iter();
    let answer = |url: &String| match is_own(&url) {
        true => requisite_with(url, |_| None::<Captured>),
        false => found.next().unwrap_or(Requisite::Absent),
    };
    wanted.iter().map(answer).collect()
}

fn ask_other_end(streams: &Mutex<(impl Read, impl Write)>, wanted: Vec<String>) -> Vec<Requisite> {
    let (from, to) = &mut *lock(streams);
    match Message::Need(wanted).write(to).and_then(|()| Message::read(from)) {
        Ok(Some(Message::Answer(found))) => found,
        // The other end is gone, and the next read will end the worker.
        _ => Vec::new(),
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    words.unwrap_or("no words").to_string()
}
