//! Bytes -> `sha1:BASE32` and `sha256:BASE32` labels. Labels of other writers (any usual algorithm and alphabet) -> a
//! verdict.
//!
//! Other WARC tools read and write SHA-1. SHA-1 collisions can be bought, so inside an archive a payload is identified
//! by its SHA-256 ([`PayloadDigests::content`]).
//!
//! warcio and cdxj-indexer compute the block digest over the whole block. They compute the payload digest over the
//! bytes after the HTTP head *as stored*, with transfer and content encoding. This module does the same.

use data_encoding::{BASE32, BASE32_NOPAD, BASE64, BASE64URL, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use sha1::{Digest as _, Sha1};
use sha2::{Sha256, Sha512};

/// The SHA-1 of some bytes in the usual form: `sha1:` and 32 base-32 characters.
pub fn sha1_label(bytes: &[u8]) -> String {
    to_sha1_label(Sha1::digest(bytes).as_ref())
}

fn to_sha1_label(hash: &[u8]) -> String {
    format!("sha1:{}", BASE32.encode(hash))
}

/// The label that identifies a payload: `sha256:` and 52 base-32 characters.
fn to_content_label(hash: &[u8]) -> String {
    format!("sha256:{}", BASE32_NOPAD.encode(hash))
}

/// The label of a payload that a record identifies by its SHA-256, in the form of [`PayloadDigests::content`]. `None`
/// if the record uses a different algorithm.
pub fn named_content(claimed: &str) -> Option<String> {
    let (algorithm, value) = claimed.split_once(':')?;
    let is_sha256 = matches!(Hasher::for_algorithm(algorithm), Some(Hasher::Sha256(_)));
    let hash = decode_value(value.trim(), 32).filter(|_| is_sha256)?;
    Some(to_content_label(&hash))
}

/// Whether a label can only belong to a payload that differs from the one with this digest.
pub fn contradicts(claimed: &str, digest: &str) -> bool {
    let parts = |label: &str| {
        let (algorithm, value) = label.split_once(':')?;
        let n_bytes = Hasher::for_algorithm(algorithm)?.finish().len();
        Some((n_bytes, decode_value(value.trim(), n_bytes)?))
    };
    match (parts(claimed), parts(digest)) {
        (Some((n_claimed, claimed)), Some((n_bytes, bytes))) => n_claimed == n_bytes && claimed != bytes,
        _ => false,
    }
}

/// The digests of a payload, as the archive stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadDigests {
    /// For other tools: `sha1:BASE32`.
    pub sha1: String,
    /// Identifies the payload: `sha256:BASE32`.
    pub content: String,
}

impl PayloadDigests {
    /// Computes the digests of bytes in memory.
    pub fn of(payload: &[u8]) -> PayloadDigests {
        let mut hasher = PayloadHasher::default();
        hasher.update(payload);
        hasher.finish()
    }
}

/// Computes both digests of a payload in one pass, and a verdict on the digest that its record claims.
#[derive(Default)]
pub struct PayloadHasher {
    sha1: Sha1,
    sha256: Sha256,
    claimed: Option<String>,
    /// For a claim in a third algorithm.
    other: Option<Hasher>,
}

impl PayloadHasher {
    /// Checks `claimed`, the header's label, if there is one.
    pub fn checking(claimed: Option<&str>) -> PayloadHasher {
        let hasher = claimed.and_then(Hasher::for_label);
        PayloadHasher {
            claimed: claimed.map(str::to_string),
            other: hasher.filter(|hasher| matches!(hasher, Hasher::Sha512(_))),
            ..PayloadHasher::default()
        }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.sha1.update(bytes);
        self.sha256.update(bytes);
        if let Some(other) = &mut self.other {
            other.update(bytes);
        }
    }

    /// Returns the digests of all bytes.
    pub fn finish(self) -> PayloadDigests {
        self.finish_checked().0
    }

    /// Returns the digests of all bytes and the verdict on the claim.
    pub fn finish_checked(self) -> (PayloadDigests, DigestVerdict) {
        let (sha1, sha256) = (self.sha1.finalize(), self.sha256.finalize());
        let digests = PayloadDigests { sha1: to_sha1_label(&sha1), content: to_content_label(&sha256) };
        let Some(claimed) = self.claimed else { return (digests, DigestVerdict::Absent) };
        let hash = match (Hasher::for_label(&claimed), self.other) {
            (Some(Hasher::Sha1(_)), _) => sha1.to_vec(),
            (Some(Hasher::Sha256(_)), _) => sha256.to_vec(),
            (_, Some(other)) => other.finish(),
            _ => return (digests, DigestVerdict::Unknown { claimed }),
        };
        (digests, DigestVerdict::between(claimed, &hash))
    }
}

/// A running SHA-1 for streamed blocks: write with [`std::io::Write`], then call [`Sha1Stream::label`].
#[derive(Clone, Default)]
pub struct Sha1Stream(Sha1);

impl Sha1Stream {
    /// Creates a stream without bytes.
    pub fn new() -> Sha1Stream {
        Sha1Stream::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the label of all bytes so far.
    pub fn label(&self) -> String {
        to_sha1_label(self.0.clone().finalize().as_ref())
    }
}

impl std::io::Write for Sha1Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The verdict on one digest that a record claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DigestVerdict {
    /// The record claims no digest.
    Absent,
    /// The bytes match the claim.
    Match,
    /// The bytes differ from the claim.
    Mismatch {
        /// The digest in the header.
        claimed: String,
        /// The digest of the bytes, in the same algorithm.
        computed: String,
    },
    /// The algorithm or alphabet is unknown.
    Unknown {
        /// The digest in the header.
        claimed: String,
    },
}

impl DigestVerdict {
    /// Compares a claimed label with the hash of the bytes in its algorithm.
    fn between(claimed: String, hash: &[u8]) -> DigestVerdict {
        let (algorithm, value) = claimed.split_once(':').unwrap_or(("", &claimed));
        match decode_value(value.trim(), hash.len()) {
            Some(bytes) if bytes == hash => DigestVerdict::Match,
            Some(_) => {
                let computed = format!("{algorithm}:{}", BASE32.encode(hash));
                DigestVerdict::Mismatch { claimed, computed }
            }
            None => DigestVerdict::Unknown { claimed },
        }
    }

    /// Whether the bytes contradict the header.
    pub fn is_mismatch(&self) -> bool {
        matches!(self, DigestVerdict::Mismatch { .. })
    }
}

/// Compares streamed bytes with a claimed label, in the label's own algorithm and alphabet.
pub struct DigestChecker {
    claimed: Option<String>,
    hasher: Option<Hasher>,
}

enum Hasher {
    Sha1(Sha1),
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    fn for_label(label: &str) -> Option<Hasher> {
        label.split_once(':').and_then(|(name, _)| Hasher::for_algorithm(name))
    }

    fn for_algorithm(name: &str) -> Option<Hasher> {
        match name.to_ascii_lowercase().as_str() {
            "sha1" | "sha-1" => Some(Hasher::Sha1(Sha1::new())),
            "sha256" | "sha-256" => Some(Hasher::Sha256(Sha256::new())),
            "sha512" | "sha-512" => Some(Hasher::Sha512(Sha512::new())),
            _ => None,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha1(h) => h.update(bytes),
            Hasher::Sha256(h) => h.update(bytes),
            Hasher::Sha512(h) => h.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Hasher::Sha1(h) => h.finalize().to_vec(),
            Hasher::Sha256(h) => h.finalize().to_vec(),
            Hasher::Sha512(h) => h.finalize().to_vec(),
        }
    }
}

impl DigestChecker {
    /// Checks `claimed`, the header's label, if there is one.
    pub fn new(claimed: Option<&str>) -> DigestChecker {
        DigestChecker { claimed: claimed.map(str::to_string), hasher: claimed.and_then(Hasher::for_label) }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }

    /// Returns the verdict on the label.
    pub fn verdict(self) -> DigestVerdict {
        let Some(claimed) = self.claimed else { return DigestVerdict::Absent };
        let Some(hasher) = self.hasher else { return DigestVerdict::Unknown { claimed } };
        DigestVerdict::between(claimed, &hasher.finish())
    }
}

/// The length of a value decides its alphabet (base 16, 32 or 64), because headers do not name it.
fn decode_value(value: &str, n_bytes: usize) -> Option<Vec<u8>> {
    let bytes = value.as_bytes();
    let unpadded_len = value.trim_end_matches('=').len();
    if unpadded_len == n_bytes * 2 {
        return HEXLOWER_PERMISSIVE.decode(bytes).ok();
    }
    if unpadded_len == (n_bytes * 8).div_ceil(5) {
        let upper = value.trim_end_matches('=').to_ascii_uppercase();
        return BASE32_NOPAD.decode(upper.as_bytes()).ok();
    }
    BASE64
        .decode(bytes)
        .or_else(|_| BASE64URL.decode(bytes))
        .or_else(|_| BASE64URL_NOPAD.decode(bytes))
        .ok()
        .filter(|decoded| decoded.len() == n_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(claimed: &str, bytes: &[u8]) -> DigestVerdict {
        let mut checker = DigestChecker::new(Some(claimed));
        checker.update(bytes);
        checker.verdict()
    }

    #[test]
    fn all_alphabets_of_one_digest_match() {
        for claimed in [
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            "sha1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
            "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "SHA-1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
            "sha1:2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
            "sha1:2jmj7l5rSw0yVb_vlWAYkK_YBwk",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ] {
            assert_eq!(check(claimed, b""), DigestVerdict::Match, "{claimed}");
            assert!(check(claimed, b"x").is_mismatch(), "{claimed}");
        }
    }

    #[test]
    fn unknown_forms_are_neither_right_nor_wrong() {
        for claimed in ["md5:d41d8cd98f00b204e9800998ecf8427e", "nonsense", "sha1:tooshort"] {
            assert!(matches!(check(claimed, b""), DigestVerdict::Unknown { .. }), "{claimed}");
        }
    }

    #[test]
    fn a_payload_is_hashed_and_judged_in_one_pass() {
        for claimed in [
            None,
            Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
            Some("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            Some("sha512:nonsense"),
            Some("md5:d41d8cd98f00b204e9800998ecf8427e"),
        ] {
            for bytes in [&b""[..], b"x"] {
                let mut hasher = PayloadHasher::checking(claimed);
                hasher.update(bytes);
                let (digests, verdict) = hasher.finish_checked();
                assert_eq!(digests, PayloadDigests::of(bytes));
                let mut alone = DigestChecker::new(claimed);
                alone.update(bytes);
                assert_eq!(verdict, alone.verdict(), "{claimed:?}");
            }
        }
    }

    #[test]
    fn a_content_is_named_in_one_form_only() {
        let content = PayloadDigests::of(b"").content;
        let hex = "SHA-256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(named_content(&content), Some(content.clone()));
        assert_eq!(named_content(hex), Some(content.clone()));
        assert_eq!(named_content(&sha1_label(b"")), None);
        assert!(!contradicts(hex, &content));
        assert!(contradicts(&sha1_label(b"a"), &sha1_label(b"b")));
        assert!(!contradicts(&sha1_label(b"a"), &content), "they cannot be compared");
    }

    #[test]
    fn label_is_the_fields_usual_form() {
        assert_eq!(sha1_label(b""), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        let mut stream = Sha1Stream::new();
        stream.update(b"ab");
        stream.update(b"c");
        assert_eq!(stream.label(), sha1_label(b"abc"));
    }
}
