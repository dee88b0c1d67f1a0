//! `perennial render-worker`: pages on standard input -> layouts on standard output, in a process of its own.

use perennial_render::pool::WORKER_MEMORY_BYTES;
use perennial_render::worker;

use super::{Context, Exit};

/// Lays out pages from standard input. Other commands start it; it is of no use by hand.
#[derive(clap::Args)]
pub(super) struct RenderWorker {
    /// Limit of this process's address space
    #[arg(long, value_name = "BYTES", default_value_t = WORKER_MEMORY_BYTES)]
    memory: u64,
}

impl RenderWorker {
    pub(super) fn run(self, _context: &Context) -> anyhow::Result<Exit> {
        worker::serve(self.memory)?;
        Ok(Exit::Done)
    }
}
