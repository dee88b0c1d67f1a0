//! A stored record -> its bytes, checked against the digest that the archive has of them: whole, or as a stream.
//!
//! A stream is pulled: a thread reads the next piece when the client has taken the last, so a client that reads
//! slowly holds a file open and nothing else. What is found to be wrong after the first piece went out breaks the connection
//! off, so that no client takes a part, or other bytes, for the whole.

use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame, SizeHint};
use perennial_warc::DigestChecker;
use perennial_warc::http::HttpHead;
use perennial_warc::payload::{self, Limits, Payload, PayloadReader};
use tokio::task::JoinHandle;

use perennial_archive::OpenRecord;

/// Bodies up to this length are read whole before the first byte goes out.
pub const WHOLE_BYTES: usize = 256 << 10;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A body that is passed on unchanged may be as long as this.
const STREAM_LIMITS: Limits = Limits { max_bytes: 1 << 40, max_ratio: 1100 };

/// The body of a response: bytes at hand, or those that a thread reads.
#[derive(Debug)]
pub enum Body {
    /// Bytes at hand; `None` once they went out.
    Whole(Option<Bytes>),
    /// Pieces that are read while they go out.
    Pulled(Pulled),
}

impl Body {
    /// No bytes.
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
            Body::Pulled(pulled) => pulled.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Body::Pulled(_) => SizeHint::default(),
        }
    }
}

/// How far codings are undone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Transfer codings only: the client understands the content coding.
    AsSent,
    /// All.
    Plain,
}

/// The body of a record, not read yet.
pub struct StoredBody {
    record: Checked,
    head: HttpHead,
    n_stored_bytes: u64,
}

impl StoredBody {
    /// The body of a record whose stored bytes must have this digest.
    pub fn new(record: OpenRecord, digest: &str) -> StoredBody {
        let head = record.head.clone();
        let n_stored_bytes = record.n_body_bytes;
        StoredBody { record: Checked::new(record, digest), head, n_stored_bytes }
    }

    /// Its length, if nothing was coded: otherwise it shows only when it is read.
    pub fn plain_length(&self) -> Option<u64> {
        let (content, transfer) = self.head.codings();
        (content.is_empty() && transfer.is_empty()).then_some(self.n_stored_bytes)
    }

    /// The content codings that the stored bytes have.
    pub fn content_codings(&self) -> Vec<String> {
        self.head.codings().0
    }

    /// All of it with all codings undone, if it is no longer than that; bytes that are not those that were captured are an error.
    /// What the codings themselves have wrong is in [`Payload::cut`], as with a browser that shows what it got.
    pub fn whole(self, limits: Limits) -> io::Result<Payload> {
        let StoredBody { mut record, head, .. } = self;
        let payload = payload::decode(&head, &mut record, limits);
        // A decoder may end before its source does: the rest is read for the digest.
        io::copy(&mut record, &mut io::sink())?;
        Ok(payload)
    }

    /// It as a stream, which fails at its end when the stored bytes are not those that were captured.
    pub fn into_reader(self, coding: Coding) -> Box<dyn Read + Send> {
        let StoredBody { record, head, .. } = self;
        let source = Shared(Arc::new(Mutex::new(record)));
        let decoder = match coding {
            Coding::AsSent => payload::transferred(&head, source.clone(), STREAM_LIMITS),
            Coding::Plain => payload::decoded(&head, source.clone(), STREAM_LIMITS),
        };
        Box::new(ToTheEnd { decoder, source })
    }

    /// It as the body of a response. Short bodies are whole and checked when this returns.
    pub fn into_body(self, coding: Coding) -> io::Result<Body> {
        streamed(self.into_reader(coding))
    }
}

/// What a reader gives, as the body of a response: whole if it is short.
pub fn streamed(mut reader: Box<dyn Read + Send>) -> io::Result<Body> {
    let mut first = Vec::new();
    (&mut reader).take(WHOLE_BYTES as u64).read_to_end(&mut first)?;
    if first.len() < WHOLE_BYTES {
        return Ok(Body::from(first));
    }
    let state = State::Idle(reader);
    Ok(Body::Pulled(Pulled { first: Some(first.into()), state }))
}

/// Reads a record's stored bytes and compares them with a digest at the end.
struct Checked {
    record: OpenRecord,
    checker: Option<DigestChecker>,
    n_left: u64,
    is_wrong: bool,
}

impl Checked {
    fn new(record: OpenRecord, digest: &str) -> Checked {
        let n_left = record.n_body_bytes;
        Checked { record, checker: Some(DigestChecker::new(Some(digest))), n_left, is_wrong: false }
    }
}

impl Read for Checked {
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
            return Err(wrong("the record ends before its body does: see `perennial verify`"));
        }
        if let Some(checker) = self.checker.take() {
            self.is_wrong = checker.verdict().is_mismatch();
        }
        match self.is_wrong {
            true => Err(wrong("the record's bytes are not those that were captured: see `perennial verify`")),
            false => Ok(0),
        }
    }
}

/// A record that a decoder and whoever checks it both read.
#[derive(Clone)]
struct Shared(Arc<Mutex<Checked>>);

impl Read for Shared {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(out)
    }
}

/// A decoder may end before its source does. Then the rest is read for the digest.
struct ToTheEnd {
    decoder: PayloadReader<'static>,
    source: Shared,
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

/// A body that a thread reads piece by piece, each when it is asked for.
pub struct Pulled {
    first: Option<Bytes>,
    state: State,
}

type Piece = (Box<dyn Read + Send>, io::Result<Vec<u8>>);

enum State {
    Idle(Box<dyn Read + Send>),
    Reading(JoinHandle<Piece>),
    AdminResponse,
}

fn read_piece(mut reader: Box<dyn Read + Send>) -> Piece {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let result = (&mut reader).take(PIECE_BYTES as u64).read_to_end(&mut piece);
    (reader, result.map(|_| piece))
}

impl std::fmt::Debug for Pulled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pulled").finish_non_exhaustive()
    }
}

impl Pulled {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self;
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        loop {
            match std::mem::replace(&mut this.state, State::AdminResponse) {
                State::AdminResponse => return Poll::Ready(None),
                State::Idle(reader) => {
                    this.state = State::Reading(tokio::task::spawn_blocking(|| read_piece(reader)));
                }
                State::Reading(mut handle) => {
                    let Poll::Ready(joined) = Pin::new(&mut handle).poll(cx) else {
                        this.state = State::Reading(handle);
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
                    this.state = State::Idle(reader);
                    return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
                }
            }
        }
    }
}
