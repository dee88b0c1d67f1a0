//! `perennial.toml` of an open archive -> whether its text has changed.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use super::Archive;

/// Detects a changed file without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FileStamp {
    modified: Option<SystemTime>,
    length: u64,
    /// The inode, because an edit replaces the file.
    number: u64,
}

/// Checks the settings on request. A check only queries the file's metadata unless the file has changed.
#[derive(Debug)]
pub struct SettingsWatch {
    path: PathBuf,
    text: String,
    seen: Option<FileStamp>,
}

impl SettingsWatch {
    /// Starts from the settings that the archive was opened with.
    pub fn new(archive: &Archive) -> SettingsWatch {
        SettingsWatch { path: archive.settings_path(), text: archive.settings_text().to_owned(), seen: None }
    }

    /// Returns the text of the file if it has changed since the last call. An unreadable file counts as unchanged.
    pub fn changed(&mut self) -> Option<&str> {
        let metadata = fs::metadata(&self.path).ok()?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let number = 0;
        let stamp = FileStamp { modified: metadata.modified().ok(), length: metadata.len(), number };
        if self.seen == Some(stamp) {
            return None;
        }
        let text = fs::read_to_string(&self.path).ok()?;
        self.seen = Some(stamp);
        if text == self.text {
            return None;
        }
        self.text = text;
        Some(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_text_is_seen_once_and_the_same_text_never() {
        let dir = tempfile::tempdir().unwrap();
        let archive = Archive::create(&dir.path().join("a")).unwrap();
        let mut watch = SettingsWatch::new(&archive);
        assert_eq!(watch.changed(), None);
        let before = archive.settings_text().to_owned();
        let after = format!("{before}\n[[site]]\nurl = \"a.org\"\n");
        crate::disk::write_whole(&archive.settings_path(), after.as_bytes()).unwrap();
        assert_eq!(watch.changed(), Some(after.as_str()));
        assert_eq!(watch.changed(), None);
        crate::disk::write_whole(&archive.settings_path(), after.as_bytes()).unwrap();
        assert_eq!(watch.changed(), None);
        fs::remove_file(archive.settings_path()).unwrap();
        assert_eq!(watch.changed(), None);
    }
}
