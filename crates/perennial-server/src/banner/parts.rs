//! The parts of a replayed page, each with its coherence at the page's time, and the coherence of the whole.

use perennial_core::memento::{CompositeCoherence, PartCoherence, TemporalCoherence};
use perennial_core::text::charset::decode_with_charset;
use perennial_core::text::links::find_links;
use perennial_core::time::Timestamp;
use perennial_warc::payload::DecodingLimits;
use url::Url;

use crate::body::StoredBody;
use crate::find::find;
use crate::replay_context::ReplayContext;
use perennial_archive::Snapshot;

/// Parts of a page that are looked up.
pub const MAX_PARTS: usize = 200;

/// A longer page is not searched for parts.
const LIMITS: DecodingLimits = DecodingLimits { max_bytes: 4 << 20, max_ratio: 1100 };

/// A part of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownPart {
    pub url: String,
    /// Its time and coherence; `None` if it is not in the archive.
    pub found: Option<(Timestamp, TemporalCoherence)>,
}

/// A page with its parts.
#[derive(Clone, Debug)]
pub struct CompositePage {
    pub composite: CompositeCoherence,
    /// Worst first, missing ones last.
    pub parts: Vec<ShownPart>,
    /// Parts that were not looked up.
    pub n_more: usize,
}

impl CompositePage {
    /// Looks up the parts that a page names and those that its scripts loaded.
    pub fn of(
        snapshot: &Snapshot,
        context: &ReplayContext,
        body: StoredBody,
        loaded: &[&str],
        closest: bool,
    ) -> CompositePage {
        let mut urls = named_parts(context, body);
        urls.extend(loaded.iter().filter_map(|url| Url::parse(url).ok()).map(String::from));
        let mut seen = std::collections::HashSet::new();
        urls.retain(|url| *url != context.capture.url && seen.insert(url.clone()));
        let n_more = urls.len().saturating_sub(MAX_PARTS);
        urls.truncate(MAX_PARTS);
        let mut composite = CompositeCoherence::new(context.capture.time);
        // The page itself may be from a different instant than its own.
        composite.state = context.state;
        let mut parts = Vec::new();
        for url in urls {
            let found = find(snapshot, &url, context.time, closest).ok();
            let found = found.map(|found| (found.capture.time, found.state));
            composite.add(found.map(|(time, state)| PartCoherence { time, state }));
            parts.push(ShownPart { url, found });
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.found.map(|(_, state)| state)));
        CompositePage { composite, parts, n_more }
    }

    /// URLs of parts that are not in the archive.
    pub fn missing(&self) -> Vec<&str> {
        self.parts.iter().filter(|part| part.found.is_none()).map(|part| part.url.as_str()).collect()
    }
}

/// The subresources that an HTML page names.
fn named_parts(context: &ReplayContext, body: StoredBody) -> Vec<String> {
    let is_page =
        context.head.media_type().is_none_or(|media| media == "text/html" || media.contains("xhtml"));
    let Some(base) = Url::parse(&context.capture.url).ok().filter(|_| is_page) else { return Vec::new() };
    // An unreadable body is reported in the frame; here it has no parts.
    let Ok(payload) = body.whole(LIMITS) else { return Vec::new() };
    let content_type = context.head.get("Content-Type");
    let (html, charset) = decode_with_charset(&payload.bytes, content_type.as_deref());
    let links = find_links(&html, &base, charset);
    links.into_iter().filter(|link| link.kind.is_subresource()).map(|link| link.url.into()).collect()
}
