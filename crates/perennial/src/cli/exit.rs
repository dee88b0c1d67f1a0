//! The end of a command -> the exit code of the process. The numbers are those of Browsertrix Crawler.

use std::io;
use std::process::ExitCode;

use super::context::note;

/// The end of a command that did not fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Success: 0.
    Done,
    /// `verify` or `import` found defects, or `doctor` faults: 4.
    Defects,
    /// A page without words and pictures: 5.
    NothingToRead,
    /// `visit` found no page, or `run --once` none at all: 6.
    NotFetched,
    /// Stopped by a signal; the state is safe: 11.
    Interrupted,
    /// The size limit was reached: 14.
    SizeLimit,
    /// The time limit was reached: 15.
    TimeLimit,
}

impl Exit {
    /// The process's exit code.
    pub fn number(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Defects => 4,
            Exit::NothingToRead => 5,
            Exit::NotFetched => 6,
            Exit::Interrupted => 11,
            Exit::SizeLimit => 14,
            Exit::TimeLimit => 15,
        }
    }
}

/// Prints an error with its causes and chooses the code. A closed pipe (`| head`) is not an error.
pub(super) fn exit_code(result: anyhow::Result<Exit>) -> ExitCode {
    let error = match result {
        Ok(exit) => return exit.number().into(),
        Err(error) => error,
    };
    if has_io_kind(&error, io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    let is_full = is_disk_full(&error);
    note(format!("{error:#}"));
    if is_full {
        note("disk full: free space and run again; committed captures are safe");
    }
    ExitCode::from(if is_full { 3 } else { 1 })
}

fn has_io_kind(error: &anyhow::Error, kind: io::ErrorKind) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<io::Error>() {
        Some(cause) => cause.kind() == kind,
        None => cause
            .downcast_ref::<serde_json::Error>()
            .and_then(serde_json::Error::io_error_kind)
            .is_some_and(|k| k == kind),
    })
}

fn is_disk_full(error: &anyhow::Error) -> bool {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge];
    perennial_archive::store::is_disk_full(error) || kinds.into_iter().any(|kind| has_io_kind(error, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn a_full_disk_is_seen_through_layers_of_context() {
        let error = anyhow::Error::from(io::Error::from(io::ErrorKind::StorageFull));
        let error = Err::<(), _>(error).context("appending").context("crawling").unwrap_err();
        assert!(is_disk_full(&error));
        assert!(!has_io_kind(&error, io::ErrorKind::BrokenPipe));
    }
}
