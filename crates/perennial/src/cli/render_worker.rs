//! `perennial render-worker`: this program as the process in which its layout engine runs.

use perennial_render::pool::WORKER_MEMORY_BYTES;
use perennial_render::worker;

use super::{Context, Exit};

/// Lays pages out that come on standard input. Started by other commands, of no use by hand.
#[derive(clap::Args)]
pub(super) struct RenderWorker {
    /// Address space of this process
    #[arg(long, value_name = "BYTES", default_value_t = WORKER_MEMORY_BYTES)]
    memory: u64,
}

impl RenderWorker {
    pub(super) fn run(self, _context: &Context) -> anyhow::Result<Exit> {
        worker::serve(self.memory)?;
        Ok(Exit::Done)
    }
}
