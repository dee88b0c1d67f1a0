//! `perennial render-worker`: pages on standard input -> layouts on standard output, in a confined process.

use std::io::{self, Write as _};

use perennial_render::confine::CPU_SECS_PER_PAGE;
use perennial_render::pool::WORKER_MEMORY_BYTES;
use perennial_render::worker::{self, WorkerLimits};

use super::{Context, Exit};

/// Lay out pages from standard input, for other commands.
#[derive(clap::Args)]
pub(super) struct RenderWorkerArgs {
    /// Limit of this process's address space
    #[arg(long, value_name = "BYTES", default_value_t = WORKER_MEMORY_BYTES)]
    memory: u64,
    /// Processor time for one page
    #[arg(long, value_name = "SECONDS", default_value_t = CPU_SECS_PER_PAGE)]
    cpu_secs: u64,
    /// Print the missing restrictions of the process, and end
    #[arg(long)]
    self_test: bool,
}

impl RenderWorkerArgs {
    pub(super) fn run(self, _context: &Context) -> anyhow::Result<Exit> {
        let limits = WorkerLimits { memory_bytes: self.memory, cpu_secs: self.cpu_secs };
        if !self.self_test {
            worker::serve(limits)?;
            return Ok(Exit::Done);
        }
        for escape in worker::confinement_gaps(limits)? {
            writeln!(io::stdout(), "{escape}")?;
        }
        Ok(Exit::Done)
    }
}
