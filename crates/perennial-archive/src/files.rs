//! Names of WARC files, and their paths on disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use perennial_core::time::Timestamp;

use crate::settings::WarcTable;

/// Suffix of a file that is being written, as other tools expect.
pub(crate) const OPEN_SUFFIX: &str = ".open";

/// Suffix of a file that is being copied; worthless after a crash.
pub(crate) const COPYING_SUFFIX: &str = ".copying";

const EXTENSIONS: [&str; 5] = [".warc.gz", ".warc.zst", ".warc", ".arc.gz", ".arc"];

/// A name `Prefix-Timestamp-Serial-Host.warc.gz` that no file has yet.
pub(crate) fn new_name(dir: &Path, warc: &WarcTable, now: Timestamp, host: &str) -> String {
    let (prefix, extension) = (&warc.prefix, warc.compression().extension());
    (0u32..)
        .map(|serial| format!("{prefix}-{}-{serial:05}-{host}.{extension}", now.to_digits14()))
        .find(|name| !is_taken(dir, name))
        .unwrap_or_default()
}

/// The name itself if it is free, else with a number before its extensions.
pub(crate) fn free_name(dir: &Path, name: &str) -> String {
    let stem = stem(name);
    let extension = &name[stem.len()..];
    let numbered = (2u32..).map(|number| format!("{stem}-{number}{extension}"));
    std::iter::once(name.to_string())
        .chain(numbered)
        .find(|candidate| !is_taken(dir, candidate))
        .unwrap_or_default()
}

/// The name without the extension of WARC and ARC files.
pub(crate) fn stem(name: &str) -> &str {
    EXTENSIONS.iter().find_map(|extension| name.strip_suffix(extension)).unwrap_or(name)
}

fn is_taken(dir: &Path, name: &str) -> bool {
    dir.join(name).exists() || dir.join(format!("{name}{OPEN_SUFFIX}")).exists()
}

/// The path of a file: its name, or the name with `.open` while the file is being written.
pub(crate) fn locate(dir: &Path, name: &str) -> PathBuf {
    let closed = dir.join(name);
    let open = dir.join(format!("{name}{OPEN_SUFFIX}"));
    if !closed.exists() && open.exists() { open } else { closed }
}

/// Opens a file by name. A second attempt succeeds if a writer renamed the file in between.
pub(crate) fn open(dir: &Path, name: &str) -> io::Result<fs::File> {
    fs::File::open(locate(dir, name)).or_else(|_| fs::File::open(locate(dir, name)))
}

/// One file in `warc/`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileOnDisk {
    /// Without `.open`.
    pub name: String,
    pub is_open: bool,
    pub bytes: u64,
}

/// The WARC files in a folder, sorted by name, without side files and unfinished copies.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<FileOnDisk>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(full_name) = entry.file_name().into_string() else { continue };
        let name = full_name.strip_suffix(OPEN_SUFFIX).unwrap_or(&full_name).to_string();
        if is_warc_name(&name) && entry.metadata()?.is_file() {
            let is_open = name != full_name;
            files.push(FileOnDisk { name, is_open, bytes: entry.metadata()?.len() });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Whether a name has the extension of a WARC or ARC file, compressed or not.
pub(crate) fn is_warc_name(name: &str) -> bool {
    EXTENSIONS.iter().any(|extension| name.ends_with(extension))
}

/// The machine's name, restricted to characters that file names allow.
pub(crate) fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| fs::read_to_string("/etc/hostname"))
        .unwrap_or_default();
    let name: String =
        name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.' || *c == '_').collect();
    if name.is_empty() { "localhost".to_string() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_never_given_twice() {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::parse("20261116020304").unwrap();
        let warc = WarcTable { prefix: "p".into(), ..WarcTable::default() };
        let first = new_name(dir.path(), &warc, now, "h");
        assert_eq!(first, "p-20261116020304-00000-h.warc.gz");
        fs::write(dir.path().join(format!("{first}.open")), "").unwrap();
        assert_eq!(new_name(dir.path(), &warc, now, "h"), "p-20261116020304-00001-h.warc.gz");
        assert_eq!(free_name(dir.path(), &first), "p-20261116020304-00000-h-2.warc.gz");
        assert_eq!(locate(dir.path(), &first), dir.path().join(format!("{first}.open")));
        fs::write(dir.path().join("x.warc.gz-5.torn"), "").unwrap();
        assert_eq!(list(dir.path()).unwrap(), [FileOnDisk { name: first, is_open: true, bytes: 0 }]);
    }
}
