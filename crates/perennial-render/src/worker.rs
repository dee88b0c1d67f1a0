//! Pages from standard input -> layouts on standard output, one after the other: the worker's end of the pipe.
//!
//! The same executable runs as its own worker (`perennial render-worker`). A page that makes the engine overflow its stack,
//! use up memory or run for ever then harms no other page. The worker limits its own memory; the other end
//! ([`crate::pool`]) limits its time.

use std::io::{self, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

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
        let (url, html) = match message {
            None => return Ok(()),
            Some(Message::Page { url, html }) => (url, html),
            Some(_) => return Err(io::Error::other("a render worker was sent an answer to no question")),
        };
        let ask = |wanted: &str| ask(&streams, wanted);
        let done = catch_unwind(AssertUnwindSafe(|| engine.layout_asking(&html, &url, &ask)));
        let answer = match done {
            Ok(layout) => Message::Done(Box::new(layout)),
            Err(words) => Message::Panicked(words_of(&*words)),
        };
        answer.write(&mut lock(&streams).1)?;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Asks the other end for a requisite. Addresses that carry their data are answered here.
fn ask(streams: &Mutex<(impl Read, impl Write)>, wanted: &str) -> Requisite {
    if wanted.starts_with("data:") {
        return requisite_with(wanted, |_| None::<Captured>);
    }
    let (from, to) = &mut *lock(streams);
    match Message::Need(wanted.to_string()).write(to).and_then(|()| Message::read(from)) {
        Ok(Some(Message::Answer(requisite))) => requisite,
        // The other end is gone, and the next read will end the worker.
        _ => Requisite::Absent,
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    words.unwrap_or("no words").to_string()
}
