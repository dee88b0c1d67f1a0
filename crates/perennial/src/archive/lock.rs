//! One writer at a time: a lock on a file that the system drops with its process, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

/// Held while this process may write the archive.
#[derive(Debug)]
pub struct WriteLock {
    _file: File,
}

/// The writer wrote its number just after it took the lock; wait this often, 10 ms each, for a number to appear.
const PID_TRIES: usize = 20;

impl WriteLock {
    /// Takes the lock, or names the process that has it.
    pub fn take(root: &Path) -> anyhow::Result<WriteLock> {
        let path = root.join("write.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("cannot open {} to lock the archive for writing", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "process {} is writing {}: wait until it is done, or stop it; reading works meanwhile",
                holder(&path),
                root.display()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "{}", std::process::id())?;
        Ok(WriteLock { _file: file })
    }
}

fn holder(path: &Path) -> String {
    for _ in 0..PID_TRIES {
        let mut text = String::new();
        if let Ok(mut file) = File::open(path)
            && file.read_to_string(&mut text).is_ok()
            && !text.is_empty()
        {
            return text;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    "(unknown)".to_string()
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
}
