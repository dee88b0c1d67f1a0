//! Content -> [`NodeId`]: the hash by which a diff skips equal content (P-VISUAL 4; docs/papers.md, Blocks and
//! Vi-XML). Ignored URL parameters are left out.
//!
//! IDs are stored in Vi-XML and compared across years, so the hash must be the same on every machine and in every
//! release. It is FNV-1a over tagged, length-separated parts. FNV alone hardly changes the high bits for short inputs,
//! so each part ends with a mixing step.

use std::borrow::Cow;

use super::NodeId;
use crate::rng::mix;

/// The constants of FNV-1a with 64 bits. IDs are stored, so the hash must not depend on a library's version.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// An unfinished hash. It starts with the kind of node, which distinguishes a link from an image with the same words.
pub(super) struct IdHasher(u64);

impl IdHasher {
    pub(super) fn new(kind: u8) -> IdHasher {
        IdHasher((OFFSET ^ u64::from(kind)).wrapping_mul(PRIME))
    }

    pub(super) fn part(mut self, text: &str) -> IdHasher {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
        // Without the length "ab", "c" and "a", "bc" would have the same hash.
        self.number(text.len() as u64)
    }

    pub(super) fn number(mut self, number: u64) -> IdHasher {
        self.0 = mix(self.0 ^ number).wrapping_mul(PRIME);
        self
    }

    pub(super) fn ids(self, ids: impl Iterator<Item = NodeId>) -> IdHasher {
        ids.fold(self, |hasher, id| hasher.number(id.0))
    }

    pub(super) fn finish(self) -> NodeId {
        NodeId(mix(self.0))
    }
}

/// Query and path parameters that do not affect the content: session IDs, cache busters, campaign tags. URLs are
/// stored unchanged; only IDs leave the parameters out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IgnoredParameters {
    /// Names in lower case. A name with a trailing `*` is a prefix.
    pub parameters: Vec<String>,
}

/// Common names of session and cache parameters. `v` and `id` are not included, because they often identify content.
const USUAL: &str = "\
    jsessionid phpsessid aspsessionid* sessionid session_id sid cfid cftoken zenid utm_* fbclid gclid \
    cachebuster cachebust nocache _";

impl Default for IgnoredParameters {
    fn default() -> IgnoredParameters {
        IgnoredParameters { parameters: USUAL.split(' ').map(str::to_owned).collect() }
    }
}

impl IgnoredParameters {
    /// Ignores nothing.
    pub fn none() -> IgnoredParameters {
        IgnoredParameters { parameters: Vec::new() }
    }

    pub fn ignores(&self, name: &str) -> bool {
        self.parameters.iter().any(|ignored| match ignored.strip_suffix('*') {
            Some(stem) => name.get(..stem.len()).is_some_and(|head| head.eq_ignore_ascii_case(stem)),
            None => ignored.eq_ignore_ascii_case(name),
        })
    }

    /// The URL without ignored parameters in its query (`?a&b`) and path (`;a`).
    pub fn strip<'a>(&self, url: &'a str) -> Cow<'a, str> {
        let (body, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
        let (path, query) = body.split_at(body.find('?').unwrap_or(body.len()));
        let is_ignored = |piece: &&str| self.ignores(piece.split('=').next().unwrap_or(piece));
        let query_pieces = || query.strip_prefix('?').into_iter().flat_map(|query| query.split('&'));
        if !path.split(';').skip(1).any(|piece| is_ignored(&piece))
            && !query_pieces().any(|piece| is_ignored(&piece))
        {
            return Cow::Borrowed(url);
        }
        let mut kept = String::with_capacity(url.len());
        for (index, piece) in
            path.split(';').enumerate().filter(|(index, piece)| *index == 0 || !is_ignored(piece))
        {
            kept.push_str(if index == 0 { "" } else { ";" });
            kept.push_str(piece);
        }
        for (index, piece) in query_pieces().filter(|piece| !is_ignored(piece)).enumerate() {
            kept.push(if index == 0 { '?' } else { '&' });
            kept.push_str(piece);
        }
        kept.push_str(fragment);
        Cow::Owned(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_session_ids_and_cache_busters_are_ignored() {
        let usual = IgnoredParameters::default();
        for (url, stripped) in [
            ("http://a.org/x?PHPSESSID=1&a=2&utm_source=b#top", "http://a.org/x?a=2#top"),
            ("http://a.org/x;jsessionid=12?a=2", "http://a.org/x?a=2"),
            ("http://a.org/x;jsessionid=12;b=1", "http://a.org/x;b=1"),
            ("http://a.org/x?sid=1", "http://a.org/x"),
            ("http://a.org/x?q=sid&&id=3;x?#sid=1", "http://a.org/x?q=sid&&id=3;x?#sid=1"),
            ("", ""),
        ] {
            assert_eq!(usual.strip(url), stripped);
            assert_eq!(IgnoredParameters::none().strip(url), url);
        }
    }
}
