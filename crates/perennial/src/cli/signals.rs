//! SIGINT and SIGTERM -> a request to stop. The second signal ends the process at once.

use std::process;

use tokio::sync::oneshot;

use super::{Context, Exit};
use perennial_crawler::StopHandle;

/// Handles signals for a crawl until it is dropped.
pub(super) struct SignalListener(Option<oneshot::Sender<()>>);

impl Drop for SignalListener {
    fn drop(&mut self) {
        // The receiver may have ended already.
        self.0.take().map(|end| end.send(()));
    }
}

/// Requests `stop` at the first signal, and ends the process at the second. If the handler cannot be installed, the system
/// ends the process at the first signal. With `with_parent`, the end of the parent process counts as a signal.
pub(super) fn listen(context: &Context, stop: &StopHandle, with_parent: bool) -> SignalListener {
    let (context, stop) = (context.clone(), stop.clone());
    let (end, ended) = oneshot::channel::<()>();
    let listening = SignalListener(Some(end));
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return listening;
    };
    // Installed before the crawl begins: a signal that the system handles would end the process in mid-work.
    let installed = {
        let _inside = runtime.enter();
        Signals::new()
    };
    let Ok(mut signals) = installed else { return listening };
    let wait_for_signals = async move {
        tokio::select! {
            () = signals.next() => {}
            () = parent_ended(), if with_parent => {}
        }
        context
            .note("finishing the fetches in flight, for some seconds at most; a second signal stops at once");
        stop.request();
        signals.next().await;
        process::exit(Exit::Interrupted.number().into());
    };
    let hear = move || {
        runtime.block_on(async {
            tokio::select! {
                () = wait_for_signals => {}
                _ = ended => {}
            }
        });
    };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(hear);
    listening
}

/// How often a crawl checks whether its parent lives.
const CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);

/// Waits until the process that started this one has ended. The system then gives this process another parent.
async fn parent_ended() {
    let parent = rustix::process::getppid();
    let mut checks = tokio::time::interval(CHECK_INTERVAL);
    while rustix::process::getppid() == parent {
        checks.tick().await;
    }
}

/// The two signals that request a stop.
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
