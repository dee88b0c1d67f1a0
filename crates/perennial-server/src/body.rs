//! The body of a stored record: whole or as a stream, checked against the digest that the archive has.
//!
//! A stream is pulled: a thread reads the next chunk when the client has taken the last one, so a slow client holds only an open
//! file. An error found after the first chunk was sent closes the connection, so no client takes incomplete or wrong bytes
//! for the whole body.

use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame, SizeHint};
use perennial_warc::DigestChecker;
use perennial_warc::http::HttpHead;
use perennial_warc::payload::{self, DecodingLimits, Payload, PayloadReader};
use tokio::task::JoinHandle;

use perennial_archive::OpenRecord;

/// Bodies up to this length are read whole before the first byte is sent.
pub const WHOLE_BYTES: usize = 256 << 10;

/// Bytes per read.
const PIECE_BYTES: usize = 64 << 10;

/// The limits for a body that is streamed unchanged.
const STREAM_LIMITS: DecodingLimits = DecodingLimits { max_bytes: 1 << 40, max_ratio: 1100 };

/// The body of a response.
#[derive(Debug)]
pub enum Body {
    /// Bytes in memory; `None` once they were sent.
    Whole(Option<Bytes>),
    /// Chunks that a thread reads while they are sent.
    PulledBody(PulledBody),
}

impl Body {
    pub fn empty() -> Body {
        Body::Whole(None)
    }
}

impl<B: Into<Bytes>> From<B> for Body {
    fn from(bytes: B) -> Body {
        Body::Whole(Some(bytes.into()).filter(|bytes| !bytes.is_empty()))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::PulledBody(pulled) => pulled.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Body::PulledBody(_) => SizeHint::default(),
        }
    }
}

/// Which codings are decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Transfer codings only, because the client understands the content coding.
    AsSent,
    /// All codings.
    Plain,
}

/// The unread body of a record.
pub struct StoredBody {
    record: CheckedRecord,
    head: HttpHead,
    n_stored_bytes: u64,
}

impl StoredBody {
    /// Expects the stored bytes to have this digest.
    pub fn new(record: OpenRecord, digest: &str) -> StoredBody {
        let head = record.head.clone();
        let n_stored_bytes = record.n_body_bytes;
        StoredBody { record: CheckedRecord::new(record, digest), head, n_stored_bytes }
    }

    /// The length, if the body has no codings; otherwise only reading reveals it.
    pub fn plain_length(&self) -> Option<u64> {
        let (content, transfer) = self.head.codings();
        (content.is_empty() && transfer.is_empty()).then_some(self.n_stored_bytes)
    }

    /// The content codings of the stored bytes.
    pub fn content_codings(&self) -> Vec<String> {
        self.head.codings().0
    }

    /// Reads and decodes the whole body within limits; fails if the digest does not match. Errors in the codings are reported in
    /// [`Payload::cut`], because a browser also shows what it could decode.
    pub fn whole(self, limits: DecodingLimits) -> io::Result<Payload> {
        let StoredBody { mut record, head, .. } = self;
        let payload = payload::decode(&head, &mut record, limits);
        // A decoder may stop before the end of its source, but the digest needs all of it.
        io::copy(&mut record, &mut io::sink())?;
        Ok(payload)
    }

    /// A stream that fails at its end if the digest does not match.
    pub fn into_reader(self, coding: Coding) -> Box<dyn Read + Send> {
        let StoredBody { record, head, .. } = self;
        let source = SharedRecord(Arc::new(Mutex::new(record)));
        let decoder = match coding {
            Coding::AsSent => payload::transferred(&head, source.clone(), STREAM_LIMITS),
            Coding::Plain => payload::decoded(&head, source.clone(), STREAM_LIMITS),
        };
        Box::new(ToTheEnd { decoder, source })
    }

    /// The body of a response. Short bodies are read and checked before this returns.
    pub fn into_body(self, coding: Coding) -> io::Result<Body> {
        streamed(self.into_reader(coding))
    }
}

/// Streams a reader as the body of a response, or reads it whole if it is short.
pub fn streamed(mut reader: Box<dyn Read + Send>) -> io::Result<Body> {
    let mut first = Vec::new();
    (&mut reader).take(WHOLE_BYTES as u64).read_to_end(&mut first)?;
    if first.len() < WHOLE_BYTES {
        return Ok(Body::from(first));
    }
    let state = PulledState::Idle(reader);
    Ok(Body::PulledBody(PulledBody { first: Some(first.into()), state }))
}

/// Reads a record's stored bytes and compares their digest at the end.
struct CheckedRecord {
    record: OpenRecord,
    checker: Option<DigestChecker>,
    n_left: u64,
    is_wrong: bool,
}

impl CheckedRecord {
    fn new(record: OpenRecord, digest: &str) -> CheckedRecord {
        let n_left = record.n_body_bytes;
        CheckedRecord { record, checker: Some(DigestChecker::new(Some(digest))), n_left, is_wrong: false }
    }
}

impl Read for CheckedRecord {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.record.read(out)?;
        if n > 0 {
            self.n_left = self.n_left.saturating_sub(n as u64);
            if let Some(checker) = &mut self.checker {
                checker.update(&out[..n]);
            }
            return Ok(n);
        }
        if out.is_empty() {
            return Ok(0);
        }
        if self.n_left > 0 {
            return Err(wrong("the record ends before its body; run `perennial verify`"));
        }
        if let Some(checker) = self.checker.take() {
            self.is_wrong = checker.verdict().is_mismatch();
        }
        match self.is_wrong {
            true => Err(wrong("the record's bytes do not match their digest; run `perennial verify`")),
            false => Ok(0),
        }
    }
}

/// A record shared by a decoder and the check of its digest.
#[derive(Clone)]
struct SharedRecord(Arc<Mutex<CheckedRecord>>);

impl Read for SharedRecord {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(out)
    }
}

/// A decoder may stop before the end of its source; this reads the rest for the digest.
struct ToTheEnd {
    decoder: PayloadReader<'static>,
    source: SharedRecord,
}

impl Read for ToTheEnd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.decoder.read(out)?;
        if n == 0 && !out.is_empty() {
            io::copy(&mut self.source, &mut io::sink())?;
        }
        Ok(n)
    }
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// A body that a thread reads chunk by chunk, on demand.
pub struct PulledBody {
    first: Option<Bytes>,
    state: PulledState,
}

type BodyPiece = (Box<dyn Read + Send>, io::Result<Vec<u8>>);

enum PulledState {
    Idle(Box<dyn Read + Send>),
    Reading(JoinHandle<BodyPiece>),
    Ended,
}

fn read_piece(mut reader: Box<dyn Read + Send>) -> BodyPiece {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let result = (&mut reader).take(PIECE_BYTES as u64).read_to_end(&mut piece);
    (reader, result.map(|_| piece))
}

impl std::fmt::Debug for PulledBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pulled").finish_non_exhaustive()
    }
}

impl PulledBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self;
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        loop {
            match std::mem::replace(&mut this.state, PulledState::Ended) {
                PulledState::Ended => return Poll::Ready(None),
                PulledState::Idle(reader) => {
                    this.state = PulledState::Reading(tokio::task::spawn_blocking(|| read_piece(reader)));
                }
                PulledState::Reading(mut handle) => {
                    let Poll::Ready(joined) = Pin::new(&mut handle).poll(cx) else {
                        this.state = PulledState::Reading(handle);
                        return Poll::Pending;
                    };
                    let (reader, result) = joined.map_err(io::Error::other)?;
                    let piece = match result {
                        Ok(piece) => piece,
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    };
                    if piece.is_empty() {
                        return Poll::Ready(None);
                    }
                    this.state = PulledState::Idle(reader);
                    return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
                }
            }
        }
    }
}
