//! SIGINT and SIGTERM -> a request to stop; the second one ends the process at once.

use std::process;

use super::{Context, Exit};
use crate::crawl::Stop;

/// Requests `stop` at the first signal, and ends the process at the second. If the handler cannot be installed, the system
/// ends the process at the first signal.
pub(super) fn listen(context: &Context, stop: &Stop) {
    let (context, stop) = (context.clone(), stop.clone());
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let hear = move || {
        runtime.block_on(async {
            let Ok(mut signals) = Signals::new() else { return };
            signals.next().await;
            context.note("finishing the fetches in flight; a second signal stops at once");
            stop.request();
            signals.next().await;
            process::exit(Exit::Interrupted.number().into());
        });
    };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(hear);
}

/// The two signals that ask to stop.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
