//! Runs the executable on a temporary archive.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// An archive in a temporary folder.
pub(crate) struct Archive {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl Archive {
    pub(crate) fn new() -> Archive {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("archive");
        let archive = Archive { _dir: dir, root };
        let output =
            Command::new(env!("CARGO_BIN_EXE_perennial")).arg("init").arg(&archive.root).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        archive
    }

    /// Adds settings to perennial.toml: those below `[crawl]` to that table, others to the end.
    pub(crate) fn append_settings(&self, text: &str) {
        let path = self.root.join("perennial.toml");
        let before = std::fs::read_to_string(&path).unwrap();
        let after = match text.trim_start().strip_prefix("[crawl]\n") {
            Some(keys) => before.replacen("\n[crawl]\n", &format!("\n[crawl]\n{keys}"), 1),
            None => before + text,
        };
        std::fs::write(path, after).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perennial"));
        command.arg("--archive").arg(&self.root).args(args);
        command
    }

    /// Runs a command, which may fail.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Starts a command without waiting for it.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The same with its standard error piped.
    pub(crate) fn spawn_with_stderr(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a command that must succeed. Returns its output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Crawls on a virtual clock from 2026-01-01, or from the end of the last crawl. Visits each page once per
    /// `interval`, for `time`.
    pub(crate) fn lapse(&self, interval: &str, time: &str) {
        let clock = ["run", "--no-serve", "--time-lapse", "max", "--start", "2026-01-01", "--delay", "0"];
        let policy = ["--strategy", "fixed-interval", "--interval", interval, "--time-limit", time];
        self.ended(&[&clock[..], &policy[..]].concat(), 15);
    }

    /// Runs a command that must exit with this code.
    pub(crate) fn ended(&self, args: &[&str], code: i32) {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    }

    /// Runs a command that must succeed. Returns its output as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?}: {e}: {text}"))
    }

    /// All lines of crawl.log, except an unfinished last one.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.root.join("crawl.log")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().filter(|line| line.ends_with('}'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The status codes in the analyses of a page, in chronological order.
    pub(crate) fn seen(&self, url: &str) -> Vec<i64> {
        let state = Connection::open_with_flags(self.root.join("state.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)
            .unwrap();
        let sql = "SELECT seen FROM lessons JOIN pages ON id = page WHERE url = ?1 ORDER BY time";
        let mut statement = state.prepare(sql).unwrap();
        statement.query_map([url], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    pub(crate) fn verify(&self) {
        let output = self.run(&["verify"]);
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    #[allow(dead_code)]
    pub(crate) fn path(&self) -> &Path {
        &self.root
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
