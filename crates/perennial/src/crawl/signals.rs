//! Ctrl-C and the system's polite request to end -> something the loop can wait for.

/// Ctrl-C and the system's polite request to end.
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
