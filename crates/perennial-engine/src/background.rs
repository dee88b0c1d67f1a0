//! Work on large documents -> work for cores that are free.
//!
//! A few hosts can send documents of 32 MB from some kilobytes. Reading and analysing them takes seconds of a core each, which the
//! visits of all other hosts must not wait for.

/// The thread that calls this, and the processes that it starts, give way to others from now on.
pub fn give_way() {
    // On Linux this is a property of the thread. A system that refuses it runs the work all the same.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 5);
}

/// Runs work on a thread of its own that gives way, and waits for it.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> std::thread::Result<T> {
    std::thread::scope(|scope| {
        let background = scope.spawn(|| {
            give_way();
            work()
        });
        background.join()
    })
}
