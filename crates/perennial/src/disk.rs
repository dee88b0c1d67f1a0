//! Bytes -> a file that is whole on disk, or not there at all.

use std::fs;
use std::io;
use std::path::Path;

/// Replaces a file as a whole or not at all. The new content is synced to disk when this returns.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_added_extension("tmp");
    let mut file = fs::File::create(&beside)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Makes creations and renames in a folder durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    fs::File::open(dir)?.sync_all()
}
