//! `Range: bytes=...` for audio, video and files that clients read in parts (RFC 9110, section 14).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use hyper::http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::body::streamed;
use crate::body::Body;

/// The requested part of a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestedRange {
    /// Everything: there is no range, several ranges, or an invalid one.
    All,
    Part(Range<u64>),
    /// A part outside the body.
    Nothing,
}

/// Parses the field.
pub fn wanted(field: Option<&str>, length: u64) -> RequestedRange {
    let Some(range) = field.and_then(|field| field.trim().strip_prefix("bytes=")) else {
        return RequestedRange::All;
    };
    let Some((first, last)) = range.split_once('-').filter(|_| !range.contains(',')) else {
        return RequestedRange::All;
    };
    let part = match (first.trim(), last.trim()) {
        ("", last) => last.parse().ok().map(|n: u64| length.saturating_sub(n)..length),
        (first, "") => first.parse().ok().map(|first| first..length),
        (first, last) => match (first.parse::<u64>(), last.parse::<u64>()) {
            (Ok(first), Ok(last)) if first <= last => Some(first..last.saturating_add(1).min(length)),
            _ => None,
        },
    };
    match part {
        None => RequestedRange::All,
        Some(part) if part.start >= part.end => RequestedRange::Nothing,
        Some(part) => RequestedRange::Part(part),
    }
}

/// Responds with a body of known length, or with the requested part. `open` returns a reader from an offset on.
pub fn respond(
    field: Option<&str>,
    length: u64,
    mut headers: HeaderMap,
    open: impl FnOnce(u64) -> io::Result<Box<dyn Read + Send>>,
) -> io::Result<Response<Body>> {
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let (status, part) = match wanted(field, length) {
        RequestedRange::All => (StatusCode::OK, 0..length),
        RequestedRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        RequestedRange::Nothing => (StatusCode::RANGE_NOT_SATISFIABLE, 0..0),
    };
    let n_bytes = part.end - part.start;
    let said = match status {
        StatusCode::PARTIAL_CONTENT => Some(format!("bytes {}-{}/{length}", part.start, part.end - 1)),
        StatusCode::RANGE_NOT_SATISFIABLE => Some(format!("bytes */{length}")),
        _ => None,
    };
    if let Some(said) = said.and_then(|said| HeaderValue::from_str(&said).ok()) {
        headers.insert(header::CONTENT_RANGE, said);
    }
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(n_bytes));
    let body = match n_bytes {
        0 => Body::empty(),
        // A full body is read to its end, where its digest is checked; a part cannot be checked.
        _ if status == StatusCode::OK => streamed(open(0)?)?,
        _ => streamed(Box::new(open(part.start)?.take(n_bytes)))?,
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Skips the first bytes of a reader.
pub fn skipped(mut reader: Box<dyn Read + Send>, n: u64) -> io::Result<Box<dyn Read + Send>> {
    let passed = io::copy(&mut (&mut reader).take(n), &mut io::sink())?;
    match passed == n {
        true => Ok(reader),
        false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the body is shorter than it was")),
    }
}

/// A reader of a shared file with its own position.
pub struct At {
    file: Arc<File>,
    offset: u64,
}

impl At {
    pub fn new(file: Arc<File>, offset: u64) -> At {
        At { file, offset }
    }
}

impl Read for At {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let n = std::os::unix::fs::FileExt::read_at(&*self.file, out, self.offset)?;
        #[cfg(not(unix))]
        let n = {
            let mut file = self.file.try_clone()?;
            file.seek(SeekFrom::Start(self.offset))?;
            file.read(out)?
        };
        self.offset += n as u64;
        Ok(n)
    }
}

/// Reads a part of a file that is not shared.
pub fn stretch(mut file: File, part: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
    file.seek(SeekFrom::Start(part.start))?;
    Ok(Box::new(file.take(part.end - part.start)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_as_clients_send_them() {
        for (field, expected) in [
            ("bytes=0-0", RequestedRange::Part(0..1)),
            ("bytes=0-", RequestedRange::Part(0..100)),
            ("bytes=90-200", RequestedRange::Part(90..100)),
            ("bytes=-10", RequestedRange::Part(90..100)),
            ("bytes=-1000", RequestedRange::Part(0..100)),
            ("bytes=100-", RequestedRange::Nothing),
            ("bytes=-0", RequestedRange::Nothing),
            ("bytes=5-3", RequestedRange::All),
            ("bytes=0-1,5-6", RequestedRange::All),
            ("bytes=x-", RequestedRange::All),
            ("items=0-1", RequestedRange::All),
            ("bytes=0-18446744073709551615", RequestedRange::Part(0..100)),
        ] {
            assert_eq!(wanted(Some(field), 100), expected, "{field}");
        }
        assert_eq!(wanted(None, 100), RequestedRange::All);
        assert_eq!(wanted(Some("bytes=0-"), 0), RequestedRange::Nothing);
    }

    proptest! {
        #[test]
        fn a_part_is_never_outside(field in "(bytes=)?[0-9,-]{0,24}", length in 0u64..1000) {
            if let RequestedRange::Part(part) = wanted(Some(&field), length) {
                prop_assert!(part.start < part.end && part.end <= length);
            }
        }
    }
}
