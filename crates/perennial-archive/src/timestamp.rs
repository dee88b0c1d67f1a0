//! RFC 3161: the hash of the manifest's last entry -> a token of a timestamp server. The token shows that the manifest,
//! and so every file that it lists, existed at that time, also to those who do not trust the archive.
//!
//! The server's response is stored in `timestamps/`. Its name contains its own digest. The signature of the server is not
//! checked here, because that needs to know whom to trust; `openssl ts -verify` checks it (docs/archive-format.md).

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use data_encoding::HEXLOWER;
use perennial_core::notice::pause_secs;
use perennial_core::text::untrusted::shorten;
use perennial_core::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::manifest::Manifest;
use super::{Archive, make_dir, write_whole};

/// A longer response is refused. Tokens with their certificates have some kilobytes.
pub const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// Files in `timestamps/` that are read; an archive gets one per complete WARC file.
const MAX_TOKENS: usize = 100_000;

const SHA_256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const TIMESTAMP_INFO: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04];

/// Tags of DER.
const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const NULL: u8 = 0x05;
const OID: u8 = 0x06;
const TEXT: u8 = 0x0c;
const TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// `[0]`, around a value.
const EXPLICIT: u8 = 0xa0;

/// A request for the time of one entry of the manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimestampRequest {
    /// Number of the entry.
    pub n: u64,
    /// Hash of the entry.
    hash: Vec<u8>,
    /// Distinguishes the response from an earlier one that somebody sends again.
    nonce: Vec<u8>,
}

/// A server's statement about one entry of the manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ManifestTimestamp {
    /// Number of the entry.
    pub n: u64,
    /// RFC 3339.
    pub time: String,
    /// Name in `timestamps/`.
    pub file: String,
}

/// The content of a token.
struct TokenContent {
    hash: Vec<u8>,
    nonce: Option<Vec<u8>>,
    time: Timestamp,
}

/// Failed requests since the last success. The file `timestamps/failed.json` contains it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimestampFailure {
    /// Time of the first failure, RFC 3339.
    pub since: String,
    pub n_tries: u32,
    pub error: String,
    /// The next request is made at this time or later, RFC 3339.
    pub again: String,
}

impl Archive {
    /// Folder of the responses of the timestamp server.
    pub fn timestamps_dir(&self) -> PathBuf {
        self.root().join("timestamps")
    }
}

impl TimestampRequest {
    /// A request for the last entry; `None` if the manifest is empty or has a timestamp for it.
    pub fn due(archive: &Archive, nonce: u64) -> anyhow::Result<Option<TimestampRequest>> {
        let manifest = Manifest::load(&archive.manifest_path())?;
        let n = manifest.entries.len() as u64;
        let last = token_files(archive)?.into_iter().map(|(n, _)| n).max().unwrap_or_default();
        let hash = HEXLOWER.decode(manifest.head().as_bytes()).unwrap_or_default();
        let is_due = n > last && hash.len() == 32;
        // A positive number in the fewest bytes, as DER demands.
        let nonce = (nonce >> 1 | 1 << 62).to_be_bytes().to_vec();
        Ok(is_due.then_some(TimestampRequest { n, hash, nonce }))
    }

    /// `TimeStampReq`, with a request for the server's certificate.
    pub fn to_der(&self) -> Vec<u8> {
        let algorithm = tagged(SEQUENCE, &[tagged(OID, SHA_256), tagged(NULL, &[])].concat());
        let imprint = tagged(SEQUENCE, &[algorithm, tagged(OCTETS, &self.hash)].concat());
        let version = tagged(INTEGER, &[1]);
        let certificate = tagged(BOOLEAN, &[0xff]);
        tagged(SEQUENCE, &[version, imprint, tagged(INTEGER, &self.nonce), certificate].concat())
    }

    /// Checks status, imprint and nonce of a `TimeStampResp`. Returns its time, or what is wrong.
    pub fn check(&self, response: &[u8]) -> Result<Timestamp, String> {
        let content = read_response(response)?;
        match () {
            () if content.hash != self.hash => Err("the timestamp is for different content".to_owned()),
            () if content.nonce.as_ref() != Some(&self.nonce) => {
                Err("the timestamp is of a different request: its nonce differs".to_owned())
            }
            () => Ok(content.time),
        }
    }

    /// Stores a response that was checked.
    pub fn store(&self, archive: &Archive, response: &[u8]) -> anyhow::Result<()> {
        let dir = archive.timestamps_dir();
        make_dir(&dir)?;
        let path = dir.join(token_name(self.n, response));
        write_whole(&path, response).with_context(|| format!("cannot write {}", path.display()))?;
        match fs::remove_file(failure_path(archive)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for TimestampFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TimestampFailure { since, error, again, .. } = self;
        write!(f, "none since {since}: {error}; the next command that writes after {again} requests one")
    }
}

impl TimestampFailure {
    /// The failures of the server in the settings; `None` if it works, or there is none.
    pub fn of_server(archive: &Archive) -> Option<TimestampFailure> {
        archive.settings().archive.timestamp_server.as_ref()?;
        TimestampFailure::load(archive)
    }

    pub fn load(archive: &Archive) -> Option<TimestampFailure> {
        serde_json::from_slice(&fs::read(failure_path(archive)).ok()?).ok()
    }

    /// Notes a failure, with the time of the next request.
    pub fn note(archive: &Archive, error: &str, now: Timestamp) -> anyhow::Result<()> {
        let before = TimestampFailure::load(archive);
        let n_tries = before.as_ref().map_or(0, |before| before.n_tries).saturating_add(1);
        let failure = TimestampFailure {
            since: before.map_or_else(|| now.to_rfc3339(), |before| before.since),
            n_tries,
            error: shorten(error, 300).into_owned(),
            again: (now + Span::from_secs(pause_secs(n_tries))).to_rfc3339(),
        };
        make_dir(&archive.timestamps_dir())?;
        Ok(write_whole(&failure_path(archive), &serde_json::to_vec(&failure)?)?)
    }

    /// Whether the next request must wait.
    pub fn is_pausing(&self, now: Timestamp) -> bool {
        Timestamp::parse(&self.again).is_ok_and(|again| now < again)
    }
}

fn failure_path(archive: &Archive) -> PathBuf {
    archive.timestamps_dir().join("failed.json")
}

/// Compares the stored timestamps with the manifest. Each one agrees, or is a defect with a description.
pub(crate) fn check_timestamps(
    archive: &Archive,
    manifest: &Manifest,
) -> anyhow::Result<Vec<Result<ManifestTimestamp, UnsoundTimestamp>>> {
    let check = |(n, file): (u64, String)| {
        let checked = check_token(&archive.timestamps_dir().join(&file), n, manifest);
        match checked {
            Ok(time) => Ok(ManifestTimestamp { n, time: time.to_rfc3339(), file }),
            Err(what) => Err(UnsoundTimestamp { file, what }),
        }
    };
    Ok(token_files(archive)?.into_iter().map(check).collect())
}

/// A stored timestamp that contradicts the manifest or itself.
pub(crate) struct UnsoundTimestamp {
    pub(crate) file: String,
    pub(crate) what: String,
}

fn check_token(path: &Path, n: u64, manifest: &Manifest) -> Result<Timestamp, String> {
    let bytes = fs::read(path).map_err(|error| format!("cannot read it: {error}"))?;
    if path.file_name().is_none_or(|name| *name != *token_name(n, &bytes)) {
        return Err("its bytes are not those that were stored: take it from another copy".to_owned());
    }
    let content = read_response(&bytes)?;
    match manifest.entry_hash(n) {
        Some(hash) if hash == HEXLOWER.encode(&content.hash) => Ok(content.time),
        _ => Err(format!(
            "entry {n} of the manifest is not the one that had this timestamp at {}",
            content.time.to_rfc3339()
        )),
    }
}

/// Numbers of entries and names of files in `timestamps/`, in order.
pub(crate) fn token_files(archive: &Archive) -> io::Result<Vec<(u64, String)>> {
    let entries = match fs::read_dir(archive.timestamps_dir()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries.take(MAX_TOKENS) {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let number = name.strip_suffix(".tsr").and_then(|name| name.split('-').next()?.parse().ok());
        files.extend(number.map(|number| (number, name)));
    }
    files.sort_unstable();
    Ok(files)
}

fn token_name(n: u64, bytes: &[u8]) -> String {
    format!("{n:08}-{}.tsr", &HEXLOWER.encode(&Sha256::digest(bytes))[..16])
}

fn read_response(bytes: &[u8]) -> Result<TokenContent, String> {
    let broken = || "the response is not a timestamp".to_owned();
    let mut response = Der(bytes).part(SEQUENCE).ok_or_else(broken)?;
    let mut status = response.part(SEQUENCE).ok_or_else(broken)?;
    // 0 is granted, 1 granted with modifications.
    match status.value(INTEGER).ok_or_else(broken)? {
        [0 | 1] => read_token(response).ok_or_else(broken),
        code => {
            let code = code.last().copied().unwrap_or_default();
            let words = status.part(SEQUENCE).and_then(|mut words| words.value(TEXT));
            let words = words.map(String::from_utf8_lossy).unwrap_or_default();
            Err(format!("the server refused with status {code}: {}", shorten(&words, 200)))
        }
    }
}

/// `ContentInfo`, `SignedData`, `EncapsulatedContentInfo`, `TSTInfo`.
fn read_token(mut response: Der<'_>) -> Option<TokenContent> {
    let mut content = response.part(SEQUENCE)?;
    (content.value(OID)? == SIGNED_DATA).then_some(())?;
    let mut signed = content.part(EXPLICIT)?.part(SEQUENCE)?;
    signed.value(INTEGER)?;
    signed.any()?;
    let mut inner = signed.part(SEQUENCE)?;
    (inner.value(OID)? == TIMESTAMP_INFO).then_some(())?;
    let mut info = Der(inner.part(EXPLICIT)?.value(OCTETS)?).part(SEQUENCE)?;
    info.value(INTEGER)?;
    info.value(OID)?;
    let mut imprint = info.part(SEQUENCE)?;
    (imprint.part(SEQUENCE)?.value(OID)? == SHA_256).then_some(())?;
    let hash = imprint.value(OCTETS)?.to_vec();
    info.value(INTEGER)?;
    let time = read_time(info.value(TIME)?)?;
    // Accuracy and ordering may precede the nonce; the server's name may follow it.
    let mut nonce = None;
    while let Some((tag, value)) = info.any() {
        if tag == INTEGER {
            nonce = Some(value.to_vec());
        }
    }
    Some(TokenContent { hash, nonce, time })
}

/// `20261119080000Z`, perhaps with a fraction.
fn read_time(value: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(value).ok()?.strip_suffix('Z')?;
    let (digits, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.len() != 14 || !is_number(digits) || !is_number(fraction) {
        return None;
    }
    Timestamp::parse(digits).ok()
}

/// The rest of a sequence of DER values.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next value with its tag.
    fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, short], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match short {
            0..=0x7f => (usize::from(short), rest),
            // More than four bytes of length are beyond any response.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(short - 0x80))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    /// The next value, if it has this tag.
    fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut rest = *self;
        let (_, value) = rest.any().filter(|(found, _)| *found == tag)?;
        *self = rest;
        Some(value)
    }

    /// The values inside of the next one, if it has this tag.
    fn part(&mut self, tag: u8) -> Option<Der<'a>> {
        self.value(tag).map(Der)
    }
}

/// A DER value of fewer than 128 bytes.
fn tagged(tag: u8, value: &[u8]) -> Vec<u8> {
    [&[tag, value.len() as u8], value].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> TimestampRequest {
        let nonce = (7u64 | 1 << 62).to_be_bytes().to_vec();
        TimestampRequest { n: 3, hash: Sha256::digest(b"entry").to_vec(), nonce }
    }

    /// A response without a signature.
    fn response(status: u8, hash: &[u8], nonce: &[u8], time: &[u8]) -> Vec<u8> {
        let long = |tag: u8, value: &[u8]| {
            let length = (value.len() as u16).to_be_bytes();
            [&[tag, 0x82, length[0], length[1]], value].concat()
        };
        let algorithm = long(SEQUENCE, &tagged(OID, SHA_256));
        let imprint = long(SEQUENCE, &[algorithm, tagged(OCTETS, hash)].concat());
        let info = [
            tagged(INTEGER, &[1]),
            tagged(OID, &[0x2a]),
            imprint,
            tagged(INTEGER, &[9]),
            tagged(TIME, time),
            tagged(BOOLEAN, &[0xff]),
            tagged(INTEGER, nonce),
        ];
        let inner = long(EXPLICIT, &long(OCTETS, &long(SEQUENCE, &info.concat())));
        let signed = [
            tagged(INTEGER, &[3]),
            tagged(0x31, &[]),
            long(SEQUENCE, &[tagged(OID, TIMESTAMP_INFO), inner].concat()),
        ];
        let signed = long(EXPLICIT, &long(SEQUENCE, &signed.concat()));
        let token = long(SEQUENCE, &[tagged(OID, SIGNED_DATA), signed].concat());
        let words = tagged(SEQUENCE, &tagged(TEXT, b"no such policy"));
        let status = tagged(SEQUENCE, &[tagged(INTEGER, &[status]), words].concat());
        long(SEQUENCE, &[status, token].concat())
    }

    #[test]
    fn a_response_must_be_granted_and_for_this_request() {
        let request = request();
        let checked = |status, hash: &[u8], nonce: &[u8], time: &[u8]| {
            request.check(&response(status, hash, nonce, time))
        };
        let (hash, nonce, time) = (&request.hash[..], &request.nonce[..], &b"20261119080000.25Z"[..]);
        assert_eq!(checked(0, hash, nonce, time).unwrap().to_rfc3339(), "2026-11-19T08:00:00Z");
        let words = |checked: Result<Timestamp, String>| checked.unwrap_err();
        assert!(words(checked(2, hash, nonce, time)).contains("status 2: no such policy"));
        assert!(words(checked(0, &[1; 32], nonce, time)).contains("different content"));
        assert!(words(checked(0, hash, &[9], time)).contains("nonce"));
        assert!(words(checked(0, hash, nonce, b"yesterday")).contains("not a timestamp"));
    }

    #[test]
    fn no_response_is_read_beyond_its_end() {
        let request = request();
        let sound = response(0, &request.hash, &request.nonce, b"20261119080000Z");
        for end in 0..sound.len() {
            assert!(request.check(&sound[..end]).is_err(), "{end} bytes");
        }
        for at in 0..sound.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = sound.clone();
                bytes[at] ^= flip;
                let _ = request.check(&bytes);
            }
        }
        assert!(request.check(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(request.check(&[0x30, 0x80, 0, 0]).is_err());
    }
}
