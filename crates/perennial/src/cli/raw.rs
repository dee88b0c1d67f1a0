//! `perennial view --raw`: an archived body -> standard output.

use std::io::{self, Write as _};

use anyhow::bail;
use perennial_core::time::Timestamp;
use serde_json::json;

use super::{Context, Exit, context::document_on_stdout, parse_time};
use perennial_server::body::{Coding, StoredBody};
use perennial_server::find::{CaptureMatch, NoCapture, find};

/// A URL, and a time if one is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct UrlAt {
    pub(super) url: String,
    pub(super) time: Option<Timestamp>,
}

impl UrlAt {
    /// Parses `URL@TIME`. If the text after the last `@` is not a time, it is part of the URL.
    pub(super) fn parse(text: &str) -> Result<UrlAt, String> {
        let (url, time) = match text.rsplit_once('@') {
            Some((url, "")) => (url, None),
            Some((url, behind)) => match parse_time(behind) {
                Ok(time) => (url, Some(time)),
                Err(_) => (text, None),
            },
            None => (text, None),
        };
        if url.is_empty() {
            return Err(
                "the URL is missing: write https://example.org/ or https://example.org/@2026-11-16".into()
            );
        }
        Ok(UrlAt { url: url.to_string(), time })
    }
}

/// Prints the body of the capture closest to a time, or its metadata with --json. `with_head` prints the stored response: status
/// line, fields, and the body with its codings.
pub(super) fn print(context: &Context, page: &UrlAt, with_head: bool) -> anyhow::Result<Exit> {
    let snapshot = context.snapshot()?;
    let at = page.time.unwrap_or_else(perennial_archive::now);
    let url = &page.url;
    let found = match find(&snapshot, url, at, true) {
        Ok(found) => found,
        Err(NoCapture::NotArchived) => {
            bail!("{url} is not archived: see `perennial status`")
        }
        Err(NoCapture::NotHeld(time)) => {
            bail!("{url} was visited at {time}, but no record of this archive contains its payload")
        }
        Err(NoCapture::Damaged(error) | NoCapture::Failed(error)) => return Err(error),
    };
    match context.json {
        true => print_facts(context, &found)?,
        false => write(found, with_head)?,
    }
    Ok(Exit::Done)
}

fn write(found: CaptureMatch, with_head: bool) -> anyhow::Result<()> {
    let mut out = document_on_stdout();
    let CaptureMatch { mut record, head, payload_capture, .. } = found;
    if with_head {
        out.write_all(head.as_bytes())?;
        io::copy(&mut record, &mut out)?;
    } else {
        io::copy(&mut StoredBody::new(record, &payload_capture.digest).into_reader(Coding::Plain), &mut out)?;
    }
    Ok(out.flush()?)
}

fn print_facts(context: &Context, found: &CaptureMatch) -> anyhow::Result<()> {
    let CaptureMatch { capture, payload_capture, .. } = found;
    let facts = json!({
        "url": capture.url,
        "time": capture.time.to_rfc3339(),
        "status": found.head.status().or(payload_capture.status),
        "mime": payload_capture.mime,
        "digest": payload_capture.digest,
        "file": payload_capture.file,
        "offset": payload_capture.offset,
        "is_revisit": payload_capture.id != capture.id,
        "previous": found.previous.map(Timestamp::to_rfc3339),
        "next": found.next.map(Timestamp::to_rfc3339),
    });
    context.print(&facts, |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_at_sign_may_belong_to_the_url() {
        let time = |text: &str| Timestamp::parse(text).ok();
        for (text, url, expected) in [
            ("http://a.example/", "http://a.example/", None),
            ("http://a.example/@2026-11-16", "http://a.example/", time("2026-11-16")),
            ("http://a.example/@20261116", "http://a.example/", time("2026-11-16")),
            ("http://a.example/@", "http://a.example/", None),
            ("http://a.example/@someone", "http://a.example/@someone", None),
            ("http://me@a.example/@2026", "http://me@a.example/", time("2026")),
        ] {
            assert_eq!(UrlAt::parse(text), Ok(UrlAt { url: url.into(), time: expected }), "{text}");
        }
        assert!(UrlAt::parse("@2026").is_err());
    }
}
