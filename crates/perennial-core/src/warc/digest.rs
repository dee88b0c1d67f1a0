//! Bytes -> `sha1:BASE32` labels, and labels of other writers (any usual algorithm and alphabet) -> a verdict.
//!
//! warcio and cdxj-indexer take the block digest over the whole block and the payload digest over what
//! follows the HTTP head *as stored*, with transfer and content encoding. This module does the same.

use data_encoding::{BASE32, BASE64, BASE64URL, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use sha1::{Digest as _, Sha1};
use sha2::{Sha256, Sha512};

/// The SHA-1 of some bytes in the field's usual form: `sha1:` and 32 letters of base 32.
pub fn sha1_label(bytes: &[u8]) -> String {
    label_of(Sha1::digest(bytes).as_ref())
}

fn label_of(hash: &[u8]) -> String {
    format!("sha1:{}", BASE32.encode(hash))
}

/// A running SHA-1 for blocks that are streamed: feed with [`std::io::Write`], then [`Sha1Stream::label`].
#[derive(Clone, Default)]
pub struct Sha1Stream(Sha1);

impl Sha1Stream {
    /// A stream without bytes.
    pub fn new() -> Sha1Stream {
        Sha1Stream::default()
    }

    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The label of all bytes so far.
    pub fn label(&self) -> String {
        label_of(self.0.clone().finalize().as_ref())
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
    /// The record claims none.
    Absent,
    /// The bytes agree.
    Match,
    /// The bytes differ.
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
    /// Whether the bytes contradict the header.
    pub fn is_mismatch(&self) -> bool {
        matches!(self, DigestVerdict::Mismatch { .. })
    }
}

/// Compares streamed bytes with a claimed label, in whichever algorithm and alphabet the label uses.
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
    /// `claimed` is the header's label, if it has one.
    pub fn new(claimed: Option<&str>) -> DigestChecker {
        let hasher =
            claimed.and_then(|c| c.split_once(':')).and_then(|(name, _)| Hasher::for_algorithm(name));
        DigestChecker { claimed: claimed.map(str::to_string), hasher }
    }

    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }

    /// The verdict on the label.
    pub fn verdict(self) -> DigestVerdict {
        let Some(claimed) = self.claimed else { return DigestVerdict::Absent };
        let Some(hasher) = self.hasher else { return DigestVerdict::Unknown { claimed } };
        let (algorithm, value) = claimed.split_once(':').unwrap_or(("", &claimed));
        let hash = hasher.finish();
        match decode_value(value.trim(), hash.len()) {
            Some(bytes) if bytes == hash => DigestVerdict::Match,
            Some(_) => {
                let computed = format!("{algorithm}:{}", BASE32.encode(&hash));
                DigestVerdict::Mismatch { claimed, computed }
            }
            None => DigestVerdict::Unknown { claimed },
        }
    }
}

/// The alphabet of a value, base 16, 32 or 64, follows from its length, because no header names it.
fn decode_value(value: &str, n_bytes: usize) -> Option<Vec<u8>> {
    let bytes = value.as_bytes();
    let unpadded_len = value.trim_end_matches('=').len();
    if unpadded_len == n_bytes * 2 {
        return HEXLOWER_PERMISSIVE.decode(bytes).ok();
    }
    if unpadded_len == (n_bytes * 8).div_ceil(5) {
        let upper = value.trim_end_matches('=').to_ascii_uppercase();
        return data_encoding::BASE32_NOPAD.decode(upper.as_bytes()).ok();
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
    fn label_is_the_fields_usual_form() {
        assert_eq!(sha1_label(b""), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        let mut stream = Sha1Stream::new();
        stream.update(b"ab");
        stream.update(b"c");
        assert_eq!(stream.label(), sha1_label(b"abc"));
    }
}
