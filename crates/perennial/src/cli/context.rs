//! Global options -> the archive, printing and progress bars of every command.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perennial_core::text::untrusted::{EscapeForm, TerminalWriter, terminal_safe};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer as _};

use perennial_archive::store::Store;
use perennial_archive::{Archive, ArchiveWriter, Snapshot};
use perennial_engine::admin::{self, AdminAction, AdminOutcome};
use perennial_engine::search;

/// The global options, resolved.
#[derive(Clone)]
pub struct Context {
    archives: Vec<PathBuf>,
    /// `--json` was given.
    pub json: bool,
}

impl Context {
    pub(super) fn new(archives: Vec<PathBuf>, json: bool) -> Context {
        Context { archives, json }
    }

    /// The archive's folder: `--archive`, else the current folder if it is an archive, else `./archive`.
    pub fn archive_dir(&self) -> PathBuf {
        match self.archives.last() {
            Some(dir) => dir.clone(),
            None if perennial_archive::is_archive(Path::new(".")) => PathBuf::from("."),
            None => PathBuf::from("archive"),
        }
    }

    /// `--archive` or the environment, if either was given.
    pub fn archive_option(&self) -> Option<&Path> {
        self.archives.last().map(PathBuf::as_path)
    }

    /// Opens the archive. The error explains how to create one.
    pub fn open(&self) -> anyhow::Result<Archive> {
        if self.archives.len() > 1 {
            anyhow::bail!("this command takes one --archive: only `perennial serve` takes several");
        }
        Archive::open(&self.archive_dir())
    }

    /// Opens all archives given with --archive, or the default one.
    pub fn open_all(&self) -> anyhow::Result<Vec<Archive>> {
        match self.archives.len() {
            0 | 1 => Ok(vec![self.open()?]),
            _ => self.archives.iter().map(|dir| Archive::open(dir)).collect(),
        }
    }

    /// A consistent view of the archive, for reading.
    pub fn snapshot(&self) -> anyhow::Result<Snapshot> {
        self.open()?.snapshot()
    }

    /// Opens the archive, created if missing.
    pub fn open_or_create(&self) -> anyhow::Result<Archive> {
        let dir = self.archive_dir();
        if perennial_archive::is_archive(&dir) { Archive::open(&dir) } else { Archive::create(&dir) }
    }

    /// Opens the archive for writing and reports repairs. A crawl opens its own writer (`perennial-crawler/src/start.rs`).
    pub fn open_writer(&self, archive: &Archive) -> anyhow::Result<ArchiveWriter> {
        if archive.is_unchecked() {
            self.note(perennial_archive::CHECKING);
        }
        let writer = ArchiveWriter::open(archive)?;
        writer.repairs().iter().for_each(|repair| self.note(repair));
        Ok(writer)
    }

    /// Performs an admin action as the user of this process, and logs it in the audit log.
    pub fn perform(&self, archive: &Archive, action: &AdminAction) -> anyhow::Result<AdminOutcome> {
        let user = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        let who = user.map_or("command line".to_owned(), |user| format!("command line, {user}"));
        admin::perform(archive, action, &who, perennial_archive::now())
    }

    /// Prints `data` as JSON with `--json`, else as `human` writes it. A broken pipe is returned as an error, which ends the program
    /// without a message.
    pub fn print<T: Serialize + ?Sized>(
        &self,
        data: &T,
        human: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut out = if self.json { json_on_stdout() } else { text_on_stdout() };
        if self.json {
            serde_json::to_writer_pretty(&mut out, data)?;
            writeln!(out)?;
        } else {
            human(&mut out)?;
        }
        Ok(out.flush()?)
    }

    /// Prints values as `find` yields them, without collecting them: one array with `--json`, else each as `human` writes it.
    pub fn print_each<T: Serialize>(
        &self,
        find: impl FnOnce(&mut dyn FnMut(&T) -> anyhow::Result<()>) -> anyhow::Result<()>,
        human: impl Fn(&T, &mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        if !self.json {
            let mut out = text_on_stdout();
            find(&mut |value| Ok(human(value, &mut out)?))?;
            return Ok(out.flush()?);
        }
        let mut out = json_on_stdout();
        let mut array = serde_json::Serializer::pretty(&mut out);
        let mut values = array.serialize_seq(None)?;
        find(&mut |value| Ok(values.serialize_element(value)?))?;
        values.end()?;
        writeln!(out)?;
        Ok(out.flush()?)
    }

    /// Prints a text unless `--json` is given, which has printed an empty array.
    pub fn print_none(&self, text: &str) -> anyhow::Result<()> {
        if !self.json {
            let mut out = text_on_stdout();
            writeln!(out, "{text}")?;
            out.flush()?;
        }
        Ok(())
    }

    /// Prints a line on standard error, such as a repair or a warning.
    pub fn note(&self, text: impl std::fmt::Display) {
        note(text);
    }

    /// A progress bar in bytes, shown if standard error is a terminal.
    pub fn progress_bytes(&self, total_bytes: u64, what: &'static str) -> ProgressBar {
        self.bar(total_bytes, what, "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    }

    /// A progress bar of a count, shown if standard error is a terminal.
    pub fn progress_count(&self, total: u64, what: &'static str) -> ProgressBar {
        self.bar(total, what, "{msg} {bar:30} {pos}/{len} {per_sec} {eta}")
    }

    /// Adds new analyses to the text index. The caller holds the archive's write lock.
    pub fn index_texts(&self, archive: &Archive) -> anyhow::Result<()> {
        let bar = self.progress_count(0, "indexing the text of pages");
        let indexed = search::catch_up(archive, |n_done, n_all| {
            bar.set_length(n_all);
            bar.set_position(n_done);
        });
        bar.finish_and_clear();
        indexed
    }

    fn bar(&self, total: u64, what: &'static str, template: &str) -> ProgressBar {
        if !io::stderr().is_terminal() {
            return ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::new(total).with_style(style).with_message(what)
    }
}

/// Standard output for people. Untrusted control characters are escaped, so a terminal does not execute them.
pub(super) fn text_on_stdout() -> Box<dyn Write> {
    on_stdout(EscapeForm::Text)
}

/// Standard output for JSON. Escaping keeps its values.
pub(super) fn json_on_stdout() -> Box<dyn Write> {
    on_stdout(EscapeForm::Json)
}

fn on_stdout(form: EscapeForm) -> Box<dyn Write> {
    // Buffered, because text arrives in small pieces and each write is scanned.
    Box::new(io::BufWriter::new(TerminalWriter::new(io::stdout().lock(), form)))
}

/// Standard output for documents such as SVG or Vi-XML: unchanged for a file or a program, escaped for a terminal.
pub(super) fn document_on_stdout() -> Box<dyn Write> {
    match io::stdout().is_terminal() {
        true => text_on_stdout(),
        false => Box::new(io::BufWriter::new(io::stdout().lock())),
    }
}

/// Prints a line on standard error, and ignores a closed one.
pub(super) fn note(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "perennial: {}", terminal_safe(&text.to_string()));
}

/// An error for an unknown page or site, which lists known sites.
pub(super) fn not_found(store: &Store, name: &str) -> anyhow::Error {
    const MOST: usize = 5;
    let hosts: Vec<String> = store.sites().unwrap_or_default().into_iter().map(|site| site.host).collect();
    let more = match hosts.len().saturating_sub(MOST) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let there = match hosts.is_empty() {
        true => "it is empty; use `perennial run` or `perennial import`".to_owned(),
        false => format!("it contains {}{more}", hosts.into_iter().take(MOST).collect::<Vec<_>>().join(", ")),
    };
    anyhow::anyhow!("no captured page or site `{name}` in this archive: {there}")
}

/// `1234567` -> `1.2 MB`
pub(crate) fn human_bytes(bytes: u64) -> String {
    indicatif::DecimalBytes(bytes).to_string()
}
