//! A stored HTTP body -> its decoded bytes: chunks are joined and content codings decoded, on demand.
//!
//! The decoder is as lenient as browsers. It returns a body unchanged if the body only claims to be chunked, gzip,
//! brotli and so on. It resists bombs: size and growth are limited, and memory is constant when streaming. After an
//! error it returns the bytes decoded so far, and an [`IncompleteBody`] with the reason.
//!
//! A bomb need not produce large output: six gzip codings over empty members unpack forever and produce no byte.
//! Therefore all codings of a body share one budget of bytes and members.

mod chunked;

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, Operation};

use crate::http::HttpHead;
use chunked::ChunkedReader;

const BUFFER: usize = 32 * 1024;
/// The buffer of a body longer than this grows in small steps.
const LARGE_BYTES: usize = 4 << 20;
/// Limit on stacked codings. No server uses as many, so more are an attack.
const MAX_CODINGS: usize = 6;
/// The largest window of a zstd frame: 32 MiB. Browsers allow 8.
const MAX_WINDOW_LOG: u32 = 25;
/// Limit on the gzip members or zstd frames of one body, over all codings. A file of independent blocks has one per 64
/// KiB, so this many contain a gibibyte.
const MAX_MEMBERS: u64 = 16_384;
/// Bytes that codings may unpack in total beyond twice the largest body, for small limits.
const BETWEEN_FREE: u64 = 1 << 20;
/// The growth limit applies only after this many decoded bytes, because a small text of one repeated character is not
/// a bomb.
const RATIO_FREE: u64 = 1 << 20;

/// Limits on decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodingLimits {
    /// Limit on the bytes of the decoded body.
    pub max_bytes: u64,
    /// Limit on decoded bytes per stored byte. It applies once a mebibyte is decoded.
    pub max_ratio: u64,
}

impl Default for DecodingLimits {
    fn default() -> DecodingLimits {
        DecodingLimits { max_bytes: 64 << 20, max_ratio: 1100 }
    }
}

/// Why a decoded body is incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompleteBody {
    /// The coding that was being decoded, such as `gzip` or `chunked`; empty for the body itself.
    pub coding: String,
    /// The reason.
    pub cause: IncompleteCause,
}

/// Why decoding ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncompleteCause {
    /// The body is longer than [`DecodingLimits::max_bytes`].
    TooLarge,
    /// The body grew by more than [`DecodingLimits::max_ratio`].
    Bomb,
    /// Decoding took more work than any honest body of its size needs: its codings contain bombs for each other.
    TooMuchWork,
    /// The stored bytes end too early.
    Ended,
    /// The stored bytes are invalid.
    Corrupt,
    /// The coding is unknown, so the bytes are returned as stored.
    UnknownCoding,
    /// Too many codings are stacked.
    TooManyCodings,
    /// The source failed.
    Source,
}

impl fmt::Display for IncompleteBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let coding = if self.coding.is_empty() { "body" } else { &self.coding };
        match self.cause {
            IncompleteCause::TooLarge => {
                write!(f, "{coding}: cut at the size limit; raise max_bytes to see more")
            }
            IncompleteCause::Bomb => write!(f, "{coding}: cut, it grows beyond max_ratio like a bomb"),
            IncompleteCause::TooMuchWork => {
                write!(f, "{coding}: cut, its codings unpack too much for each other")
            }
            IncompleteCause::Ended => {
                write!(f, "{coding}: the stored bytes end too early; capture the page again")
            }
            IncompleteCause::Corrupt => {
                write!(f, "{coding}: the stored bytes are corrupt; capture the page again")
            }
            IncompleteCause::UnknownCoding => write!(f, "{coding}: unknown coding, bytes left as stored"),
            IncompleteCause::TooManyCodings => {
                write!(f, "{coding}: more than {MAX_CODINGS} codings, not undone")
            }
            IncompleteCause::Source => write!(f, "{coding}: the archive could not be read on"),
        }
    }
}

impl std::error::Error for IncompleteBody {}

/// A decoded body, or the part of it that could be decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// The decoded bytes.
    pub bytes: Vec<u8>,
    /// Why the body is incomplete, if it is.
    pub cut: Option<IncompleteBody>,
}

/// Decodes a body according to its head.
pub fn decode<'a>(head: &HttpHead, body: impl Read + Send + 'a, limits: DecodingLimits) -> Payload {
    collect(PayloadReader::new(head, body, limits))
}

/// Decodes a body as a stream in constant memory. A read that fails with an [`IncompleteBody`] inside ends the body.
pub fn decoded<'a>(
    head: &HttpHead,
    body: impl Read + Send + 'a,
    limits: DecodingLimits,
) -> PayloadReader<'a> {
    PayloadReader::new(head, body, limits)
}

/// Decodes only the transfer codings. The body keeps its content codings.
pub fn transferred<'a>(
    head: &HttpHead,
    body: impl Read + Send + 'a,
    limits: DecodingLimits,
) -> PayloadReader<'a> {
    let (_, transfer) = head.codings();
    PayloadReader::with_codings(transfer.into_iter().rev().collect(), body, limits)
}

/// Unpacks a gzip file, such as a sitemap that is compressed itself.
pub fn gunzip(file: &[u8], limits: DecodingLimits) -> Payload {
    collect(PayloadReader::with_codings(vec!["gzip".to_string()], file, limits))
}

fn collect(mut reader: PayloadReader<'_>) -> Payload {
    let mut payload = Payload::default();
    let mut buffer = vec![0; BUFFER];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                make_room(&mut payload.bytes, n);
                payload.bytes.extend_from_slice(&buffer[..n]);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => {
                payload.cut = Some(incomplete_body(&e));
                break;
            }
        }
    }
    payload.cut = payload.cut.or(reader.undone);
    payload
}

/// Lets large bodies grow by a quarter. Doubling could leave half of the memory unused.
fn make_room(bytes: &mut Vec<u8>, n_more: usize) {
    if bytes.len() >= LARGE_BYTES && bytes.capacity() - bytes.len() < n_more {
        bytes.reserve_exact((bytes.len() / 4).max(n_more));
    }
}

/// Extracts the [`IncompleteBody`] from the error of a [`PayloadReader`].
fn incomplete_body(e: &io::Error) -> IncompleteBody {
    let known = e.get_ref().and_then(|inner| inner.downcast_ref::<IncompleteBody>()).cloned();
    known.unwrap_or(IncompleteBody { coding: String::new(), cause: IncompleteCause::Source })
}

/// Decodes a body as a stream. A read that fails with an [`IncompleteBody`] inside ends the body.
pub struct PayloadReader<'a> {
    source: Box<dyn Read + Send + 'a>,
    n_out: u64,
    max_bytes: u64,
    undone: Option<IncompleteBody>,
}

impl<'a> PayloadReader<'a> {
    /// Decodes the transfer codings, then the content codings, each list from its end.
    fn new(head: &HttpHead, body: impl Read + Send + 'a, limits: DecodingLimits) -> PayloadReader<'a> {
        let (content, transfer) = head.codings();
        let codings = transfer.into_iter().rev().chain(content.into_iter().rev()).collect();
        PayloadReader::with_codings(codings, body, limits)
    }

    /// Decodes these codings, the first one first.
    fn with_codings(
        codings: Vec<String>,
        body: impl Read + Send + 'a,
        limits: DecodingLimits,
    ) -> PayloadReader<'a> {
        let mut source: Box<dyn Read + Send + 'a> = Box::new(body);
        let mut undone = None;
        if codings.len() > MAX_CODINGS {
            let cut = IncompleteBody { coding: codings[0].clone(), cause: IncompleteCause::TooManyCodings };
            return PayloadReader { source, n_out: 0, max_bytes: limits.max_bytes, undone: Some(cut) };
        }
        let budget = DecodingBudget::new(limits);
        for coding in codings {
            source = match coding.as_str() {
                "chunked" => Box::new(ChunkedReader::new(source)),
                name => match DecodingEngine::new(name) {
                    Some(engine) => {
                        Box::new(DecodingStage::new(source, coding, engine, limits.max_ratio, budget.clone()))
                    }
                    None => {
                        undone = Some(IncompleteBody { coding, cause: IncompleteCause::UnknownCoding });
                        break;
                    }
                },
            };
        }
        PayloadReader { source, n_out: 0, max_bytes: limits.max_bytes, undone }
    }
}

impl Read for PayloadReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.max_bytes - self.n_out;
        if left == 0 && !out.is_empty() {
            // At the limit, the body is incomplete only if there is more.
            return match self.source.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(cut("", IncompleteCause::TooLarge)),
            };
        }
        let n = (out.len() as u64).min(left) as usize;
        let n = self.source.read(&mut out[..n])?;
        self.n_out += n as u64;
        Ok(n)
    }
}

fn cut(coding: &str, cause: IncompleteCause) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, IncompleteBody { coding: coding.to_string(), cause })
}

/// The work that all codings of one body may still do in total.
#[derive(Clone)]
struct DecodingBudget(Arc<BudgetLeft>);

/// Atomic only because a different thread may continue reading a body.
struct BudgetLeft {
    bytes: AtomicU64,
    members: AtomicU64,
}

impl DecodingBudget {
    /// The last coding unpacks at most `max_bytes`. In every honest body the codings before it unpack fewer bytes.
    fn new(limits: DecodingLimits) -> DecodingBudget {
        let bytes = limits.max_bytes.saturating_mul(2).saturating_add(BETWEEN_FREE);
        DecodingBudget(Arc::new(BudgetLeft {
            bytes: AtomicU64::new(bytes),
            members: AtomicU64::new(MAX_MEMBERS),
        }))
    }

    /// Spends from the budget; returns whether there was enough left.
    fn spend(&self, bytes: usize, members: u64) -> bool {
        let bytes = self.0.bytes.load(Relaxed).checked_sub(bytes as u64);
        let members = self.0.members.load(Relaxed).checked_sub(members);
        self.0.bytes.store(bytes.unwrap_or(0), Relaxed);
        self.0.members.store(members.unwrap_or(0), Relaxed);
        bytes.is_some() && members.is_some()
    }
}

/// Decodes one compression.
struct DecodingStage<R> {
    source: R,
    coding: String,
    engine: DecodingEngine,
    max_ratio: u64,
    budget: DecodingBudget,
    buffer: Vec<u8>,
    pos: usize,
    end: usize,
    n_in: u64,
    n_out: u64,
    state: StageState,
}

#[derive(PartialEq)]
enum StageState {
    Running,
    /// One gzip member or zstd frame has ended; another may follow.
    Between,
    Done,
    /// The body was never compressed.
    Verbatim,
}

impl<R: Read> DecodingStage<R> {
    fn new(
        source: R,
        coding: String,
        engine: DecodingEngine,
        max_ratio: u64,
        budget: DecodingBudget,
    ) -> DecodingStage<R> {
        DecodingStage {
            source,
            coding,
            engine,
            max_ratio,
            budget,
            buffer: vec![0; BUFFER],
            pos: 0,
            end: 0,
            n_in: 0,
            n_out: 0,
            state: StageState::Running,
        }
    }

    fn refill(&mut self) -> io::Result<usize> {
        (self.pos, self.end) = (0, 0);
        self.end = read_some(&mut self.source, &mut self.buffer)?;
        self.n_in += self.end as u64;
        Ok(self.end)
    }

    /// Handles invalid first bytes: tries a different dialect of the coding, or treats the body as uncompressed. This
    /// works only while the buffer still contains all bytes that were read.
    fn start_over(&mut self) -> bool {
        if self.n_out > 0 || self.n_in != self.end as u64 {
            return false;
        }
        self.pos = 0;
        match self.engine.other_dialect() {
            Some(engine) => self.engine = engine,
            None => self.state = StageState::Verbatim,
        }
        true
    }

    /// Starts the next member. If padding follows instead, it is ignored and the body ends.
    fn next_member(&mut self) -> io::Result<()> {
        if self.pos == self.end && self.refill()? == 0 {
            self.state = StageState::Done;
            return Ok(());
        }
        let more = self.engine.restart(&self.buffer[self.pos..self.end]);
        if more && !self.budget.spend(0, 1) {
            return Err(cut(&self.coding, IncompleteCause::TooMuchWork));
        }
        self.state = if more { StageState::Running } else { StageState::Done };
        Ok(())
    }

    fn run(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        let at_end = self.pos == self.end && self.refill()? == 0;
        if at_end && self.n_in == 0 {
            self.state = StageState::Done;
            return Ok(None);
        }
        let Ok(step) = self.engine.step(&self.buffer[self.pos..self.end], out) else {
            if self.start_over() {
                return Ok(None);
            }
            return Err(cut(&self.coding, IncompleteCause::Corrupt));
        };
        self.pos += step.n_in;
        self.n_out += step.n_out as u64;
        if self.n_out > RATIO_FREE && self.n_out / self.n_in.max(1) > self.max_ratio {
            return Err(cut(&self.coding, IncompleteCause::Bomb));
        }
        if !self.budget.spend(step.n_out, 0) {
            return Err(cut(&self.coding, IncompleteCause::TooMuchWork));
        }
        if step.done {
            self.state = StageState::Between;
        } else if step.n_out == 0 && (at_end || step.n_in == 0 && self.pos < self.end) {
            let cause = if at_end { IncompleteCause::Ended } else { IncompleteCause::Corrupt };
            return Err(cut(&self.coding, cause));
        }
        Ok((step.n_out > 0).then_some(step.n_out))
    }
}

impl<R: Read> Read for DecodingStage<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state {
                StageState::Done => return Ok(0),
                StageState::Between => self.next_member()?,
                StageState::Verbatim if self.pos == self.end => return read_some(&mut self.source, out),
                StageState::Verbatim => {
                    let n = out.len().min(self.end - self.pos);
                    out[..n].copy_from_slice(&self.buffer[self.pos..self.pos + n]);
                    self.pos += n;
                    return Ok(n);
                }
                StageState::Running => {
                    if let Some(n) = self.run(out)? {
                        return Ok(n);
                    }
                }
            }
        }
    }
}

fn read_some(source: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(out) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

enum DecodingEngine {
    Gzip(Decompress),
    Zlib(Decompress),
    /// Raw deflate without the zlib header. Some servers call it `deflate`.
    RawDeflate(Decompress),
    Brotli(Box<Brotli>),
    Zstd(Box<ZstdDecoder<'static>>),
}

struct DecodingStep {
    n_in: usize,
    n_out: usize,
    done: bool,
}

impl DecodingEngine {
    fn new(coding: &str) -> Option<DecodingEngine> {
        match coding {
            "gzip" | "x-gzip" => Some(DecodingEngine::Gzip(Decompress::new_gzip(15))),
            "deflate" | "x-deflate" => Some(DecodingEngine::Zlib(Decompress::new(true))),
            "br" => {
                let [a, b, c] = [(); 3].map(|()| StandardAlloc::default());
                // Windows have up to 16 MiB. The large-window extension, with windows of a gigabyte, is not allowed.
                Some(DecodingEngine::Brotli(Box::new(BrotliState::new_strict(a, b, c))))
            }
            "zstd" => {
                let mut decoder = ZstdDecoder::new().ok()?;
                decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).ok()?;
                Some(DecodingEngine::Zstd(Box::new(decoder)))
            }
            _ => None,
        }
    }

    fn other_dialect(&self) -> Option<DecodingEngine> {
        matches!(self, DecodingEngine::Zlib(_)).then(|| DecodingEngine::RawDeflate(Decompress::new(false)))
    }

    /// Prepares for the next member if one begins here.
    fn restart(&mut self, bytes: &[u8]) -> bool {
        match self {
            DecodingEngine::Gzip(inflate) if bytes.starts_with(&[0x1f]) => {
                *inflate = Decompress::new_gzip(15);
                true
            }
            DecodingEngine::Zstd(decoder) if bytes.starts_with(&[0x28]) => decoder.reinit().is_ok(),
            _ => false,
        }
    }

    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<DecodingStep, ()> {
        match self {
            DecodingEngine::Gzip(inflate)
            | DecodingEngine::Zlib(inflate)
            | DecodingEngine::RawDeflate(inflate) => {
                let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
                let status = inflate.decompress(input, out, FlushDecompress::None);
                let n_in = (inflate.total_in() - before_in) as usize;
                let n_out = (inflate.total_out() - before_out) as usize;
                match status {
                    Ok(status) => Ok(DecodingStep { n_in, n_out, done: status == Status::StreamEnd }),
                    // The bytes before the error are good. The next call returns the error again.
                    Err(_) if n_out > 0 => Ok(DecodingStep { n_in, n_out, done: false }),
                    Err(_) => Err(()),
                }
            }
            DecodingEngine::Brotli(state) => step_brotli(state, input, out),
            DecodingEngine::Zstd(decoder) => {
                let status = decoder.run_on_buffers(input, out).map_err(|_| ())?;
                let done = status.remaining == 0;
                Ok(DecodingStep { n_in: status.bytes_read, n_out: status.bytes_written, done })
            }
        }
    }
}

fn step_brotli(state: &mut Brotli, input: &[u8], out: &mut [u8]) -> Result<DecodingStep, ()> {
    let (mut available_in, mut n_in) = (input.len(), 0);
    let (mut available_out, mut n_out, mut total) = (out.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut available_in,
        &mut n_in,
        input,
        &mut available_out,
        &mut n_out,
        out,
        &mut total,
        state,
    );
    match result {
        BrotliResult::ResultSuccess => Ok(DecodingStep { n_in, n_out, done: true }),
        BrotliResult::ResultFailure if n_out == 0 => Err(()),
        _ => Ok(DecodingStep { n_in, n_out, done: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn head(content: &str, transfer: &str) -> HttpHead {
        let text = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {content}\r\nTransfer-Encoding: {transfer}\r\n\r\n"
        );
        HttpHead::parse(text.as_bytes())
    }

    fn encode(coding: &str, bytes: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::fast();
        match coding {
            "gzip" | "x-gzip" => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            "deflate" => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            "raw" => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            "br" => {
                let mut out = Vec::new();
                brotli::CompressorWriter::new(&mut out, 4096, 3, 20).write_all(bytes).unwrap();
                out
            }
            "zstd" => zstd::bulk::compress(bytes, 1).unwrap(),
            "chunked" => {
                let mut out = Vec::new();
                for chunk in bytes.chunks(700) {
                    write!(out, "{:X};x=y\r\n", chunk.len()).unwrap();
                    out.extend_from_slice(chunk);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
                out
            }
            _ => bytes.to_vec(),
        }
    }

    fn check(content: &str, transfer: &str, stored: &[u8]) -> Payload {
        decode(&head(content, transfer), stored, DecodingLimits::default())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_coding_is_undone(bytes in proptest::collection::vec(0..9u8, 0..20_000)) {
            for coding in ["identity", "gzip", "x-gzip", "deflate", "br", "zstd"] {
                let stored = encode("chunked", &encode(coding, &bytes));
                let payload = check(coding, "chunked", &stored);
                prop_assert_eq!(&payload.cut, &None);
                prop_assert!(payload.bytes == bytes, "{}", coding);
            }
            let stacked = encode("br", &encode("gzip", &bytes));
            prop_assert!(check("gzip, br", "", &stacked).bytes == bytes);
            prop_assert!(check("deflate", "", &encode("raw", &bytes)).bytes == bytes);
        }

        #[test]
        fn any_bytes_give_something(bytes in proptest::collection::vec(any::<u8>(), 0..300), pick in 0..6usize) {
            let coding = ["gzip", "deflate", "br", "zstd", "chunked", "gzip, br, zstd"][pick];
            let payload = check(coding, "chunked", &bytes);
            prop_assert!(payload.bytes.len() <= 64 << 20);
        }

        #[test]
        fn a_torn_body_gives_its_beginning(bytes in proptest::collection::vec(0..5u8, 3000..9000), keep in 0.3..0.95f64, pick in 0..5usize) {
            let coding = ["gzip", "deflate", "br", "zstd", "chunked"][pick];
            let stored = encode(coding, &bytes);
            let torn = &stored[..(stored.len() as f64 * keep) as usize];
            let payload = if coding == "chunked" { check("", coding, torn) } else { check(coding, "", torn) };
            prop_assert!(bytes.starts_with(&payload.bytes), "{}", coding);
            prop_assert_eq!(payload.cut, Some(IncompleteBody { coding: coding.into(), cause: IncompleteCause::Ended }));
        }
    }

    #[test]
    fn what_is_not_encoded_is_left_alone() {
        for coding in ["gzip", "deflate", "br", "zstd"] {
            let payload = check(coding, "chunked", b"<!DOCTYPE html><p>plain</p>");
            assert_eq!(
                payload,
                Payload { bytes: b"<!DOCTYPE html><p>plain</p>".to_vec(), cut: None },
                "{coding}"
            );
            assert_eq!(check(coding, "", b""), Payload::default());
        }
    }

    #[test]
    fn members_after_another_are_joined_and_padding_is_ignored() {
        let mut stored = encode("gzip", b"one ");
        stored.extend(encode("gzip", b"two"));
        stored.extend([0; 20]);
        assert_eq!(check("gzip", "", &stored).bytes, b"one two");
    }

    #[test]
    fn bombs_are_cut() {
        let zeros = vec![0; 80 << 20];
        let payload = decode(&head("gzip", ""), &encode("gzip", &zeros)[..], DecodingLimits::default());
        assert_eq!(payload.cut.unwrap().cause, IncompleteCause::TooLarge);
        assert_eq!(payload.bytes.len(), 64 << 20);
        let limits = DecodingLimits { max_bytes: u64::MAX, max_ratio: 100 };
        let payload = decode(&head("br", ""), &encode("br", &zeros)[..], limits);
        assert_eq!(payload.cut, Some(IncompleteBody { coding: "br".into(), cause: IncompleteCause::Bomb }));
        assert!(payload.bytes.len() < 2 << 20);
    }

    /// A gzip file of `length` bytes that consists of empty members.
    fn empty_members(length: usize) -> Vec<u8> {
        encode("gzip", b"").into_iter().cycle().take(length).collect()
    }

    /// A reader that counts the bytes read from it, which measures the work that a body costs.
    struct CountingReader<'a> {
        bytes: &'a [u8],
        n_read: Arc<AtomicU64>,
    }

    impl Read for CountingReader<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = self.bytes.read(out)?;
            self.n_read.fetch_add(n as u64, Relaxed);
            Ok(n)
        }
    }

    #[test]
    fn members_that_hold_nothing_end_after_a_bounded_number() {
        let stored = empty_members(4 << 20);
        let n_read = Arc::new(AtomicU64::new(0));
        let body = CountingReader { bytes: &stored, n_read: n_read.clone() };
        let payload = decode(&head("gzip", ""), body, DecodingLimits::default());
        assert_eq!(
            payload.cut,
            Some(IncompleteBody { coding: "gzip".into(), cause: IncompleteCause::TooMuchWork })
        );
        assert!(payload.bytes.is_empty());
        let n_read = n_read.load(Relaxed);
        assert!(n_read <= MAX_MEMBERS * 20 + BUFFER as u64, "{n_read} bytes were read");
    }

    #[test]
    fn codings_over_codings_over_nothing_end_promptly() {
        // Each member contains hundreds of members of the coding below it: six codings would unpack trillions of them.
        let pack = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let mut stored = empty_members(20 * 300);
        for n_codings in 2..=6 {
            stored = pack(&stored).repeat(300);
            let content = vec!["gzip"; n_codings].join(", ");
            let payload = decode(&head(&content, ""), &stored[..], DecodingLimits::default());
            assert_eq!(payload.cut.map(|cut| cut.cause), Some(IncompleteCause::TooMuchWork), "{n_codings}");
            assert!(payload.bytes.is_empty());
        }
    }

    #[test]
    fn bytes_between_codings_are_bounded_though_none_come_out() {
        // Empty blocks of deflate unpack to nothing and compress to a thousandth.
        let blocks: Vec<u8> = [0, 0, 0, 0xff, 0xff].into_iter().cycle().take(8 << 20).collect();
        let stored = encode("gzip", &blocks);
        let limits = DecodingLimits { max_bytes: 1 << 20, max_ratio: u64::MAX };
        let payload = decode(&head("deflate, gzip", ""), &stored[..], limits);
        assert_eq!(
            payload.cut,
            Some(IncompleteBody { coding: "gzip".into(), cause: IncompleteCause::TooMuchWork })
        );
        assert!(payload.bytes.is_empty());
    }

    #[test]
    fn a_gzip_file_is_unpacked_within_the_same_budget() {
        assert_eq!(gunzip(&encode("gzip", b"<urlset/>"), DecodingLimits::default()).bytes, b"<urlset/>");
        let nothing = gunzip(&empty_members(4 << 20), DecodingLimits::default());
        assert_eq!(nothing.cut.unwrap().cause, IncompleteCause::TooMuchWork);
    }

    #[test]
    fn a_file_of_many_blocks_is_whole() {
        let block = vec![b'x'; 1 << 10];
        let stored: Vec<u8> = (0..5000).flat_map(|_| encode("gzip", &block)).collect();
        let payload = check("gzip", "", &stored);
        assert_eq!((payload.bytes.len(), payload.cut), (5000 << 10, None));
    }

    #[test]
    fn a_body_of_exactly_the_limit_is_whole() {
        let limits = DecodingLimits { max_bytes: 5, max_ratio: 10 };
        assert_eq!(decode(&head("", ""), &b"12345"[..], limits).cut, None);
        let longer = decode(&head("", ""), &b"123456"[..], limits);
        assert_eq!((longer.bytes.len(), longer.cut.unwrap().cause), (5, IncompleteCause::TooLarge));
    }

    #[test]
    fn unknown_and_endless_codings_are_named() {
        assert_eq!(check("compress", "", b"x").cut.unwrap().cause, IncompleteCause::UnknownCoding);
        let many = check("gzip,gzip,gzip,gzip,gzip,gzip,gzip", "", b"x").cut.unwrap();
        assert_eq!(many.cause, IncompleteCause::TooManyCodings);
        assert!(many.to_string().contains("gzip"));
    }
}
