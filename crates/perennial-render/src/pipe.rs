//! Reads and writes the pipes of a child process, each step within a deadline.
//!
//! Layout workers and browsers may stop reading, or write without end. The pipes are non-blocking, so a child cannot
//! hold this process beyond its deadline.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Why the transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PipeEnd {
    /// The deadline passed.
    TimedOut,
    /// The other end closed.
    Closed,
}

/// Makes a pipe non-blocking.
pub(crate) fn prepare(pipe: impl AsFd) -> std::io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(pipe, true)?)
}

pub(crate) fn write_all(pipe: impl AsFd, bytes: &[u8], deadline: Instant) -> Result<(), PipeEnd> {
    let mut rest = bytes;
    while !rest.is_empty() {
        wait(pipe.as_fd(), PollFlags::OUT, deadline)?;
        match rustix::io::write(&pipe, rest) {
            Ok(n) => rest = &rest[n..],
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Err(PipeEnd::Closed),
        }
    }
    Ok(())
}

/// Reads at least one byte. Returns the number of bytes.
pub(crate) fn read_some(pipe: impl AsFd, buffer: &mut [u8], deadline: Instant) -> Result<usize, PipeEnd> {
    loop {
        wait(pipe.as_fd(), PollFlags::IN, deadline)?;
        match rustix::io::read(&pipe, &mut *buffer) {
            Ok(0) => return Err(PipeEnd::Closed),
            Ok(n) => return Ok(n),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Err(PipeEnd::Closed),
        }
    }
}

/// Waits until a pipe is ready or the time is over. A pipe that is always ready does not extend the time.
fn wait(pipe: BorrowedFd<'_>, flags: PollFlags, deadline: Instant) -> Result<(), PipeEnd> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(PipeEnd::TimedOut);
        }
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::from_borrowed_fd(pipe, flags)], Some(&timeout)) {
            Ok(0) => return Err(PipeEnd::TimedOut),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(_) => return Err(PipeEnd::Closed),
        }
    }
}
