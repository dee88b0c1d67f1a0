//! Bytes and folders -> files that are either complete or absent, even after a power failure.

use std::fs;
use std::io;
use std::path::Path;

/// Replaces a file atomically. The new content is synced to disk before this returns.
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

/// Makes a folder and its missing parents, and makes their names durable.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !is_dir(dir)).collect();
    fs::create_dir_all(dir)?;
    for made in missing {
        sync_dir(made.parent().unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

fn is_dir(dir: &Path) -> bool {
    dir.as_os_str().is_empty() || dir.is_dir()
}
