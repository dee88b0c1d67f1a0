//! One writer at a time: a file lock that the system releases when the process ends for any reason.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Held while this process may write the archive.
#[derive(Debug)]
pub struct WriteLock {
    file: File,
}

impl Drop for WriteLock {
    /// Removes the process number first. A child process that is just starting may hold the lock for a moment longer. A
    /// new writer should wait for it, and not report that this process is still writing.
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
    }
}

/// How long to wait for a lock that no living process is known to hold. A writer stores its number just after it takes
/// the lock. If a writer is killed while it starts a child process, the child holds the lock until it has started. That
/// takes a while on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

impl WriteLock {
    /// Takes the lock; the error names the process that has it.
    pub fn take(root: &Path) -> anyhow::Result<WriteLock> {
        WriteLock::take_pausing(root, || std::thread::sleep(Duration::from_millis(10)))
    }

    fn take_pausing(root: &Path, mut pause: impl FnMut()) -> anyhow::Result<WriteLock> {
        let path = root.join("write.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("cannot open {} to lock the archive for writing", path.display()))?;
        let started = Instant::now();
        while let Err(error) = file.try_lock() {
            if let TryLockError::Error(error) = error {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
            let holder = holder(&path);
            if holder.is_some_and(lives) || started.elapsed() > PATIENCE {
                let process = holder.map_or("another process".to_string(), |pid| format!("process {pid}"));
                bail!(
                    "{process} is writing {}: wait until it is done, or stop it; reading works meanwhile",
                    root.display()
                );
            }
            pause();
        }
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "{}", std::process::id())?;
        Ok(WriteLock { file })
    }
}

/// Whether a living process may be writing the archive.
pub fn is_being_written(root: &Path) -> bool {
    holder(&root.join("write.lock")).is_some_and(lives)
}

/// Whether this living process is writing the archive.
pub fn is_written_by(root: &Path, process: u32) -> bool {
    holder(&root.join("write.lock")) == Some(process) && lives(process)
}

/// The process that took the lock last, if the file contains its number.
fn holder(path: &Path) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.parse().ok()
}

fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_writer_learns_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let first = WriteLock::take(dir.path()).unwrap();
        let message = WriteLock::take(dir.path()).unwrap_err().to_string();
        assert!(message.contains(&format!("process {} is writing", std::process::id())), "{message}");
        drop(first);
        WriteLock::take(dir.path()).unwrap();
    }

    #[test]
    fn what_a_dead_writer_left_held_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let mut held = File::create(dir.path().join("write.lock")).unwrap();
        held.lock().unwrap();
        write!(held, "{}", dead.id()).unwrap();
        let mut held = Some(held);
        WriteLock::take_pausing(dir.path(), || drop(held.take())).unwrap();
        assert!(held.is_none(), "it was not waited for");
    }
}
