//! A page -> the addresses that its versions need to be shown: style sheets, pictures, scripts, frames, and what those name in turn.

use std::collections::BTreeSet;

use anyhow::Context;
use perennial_warc::payload::DecodingLimits;
use url::Url;

use super::Snapshot;
use super::links::{self, DocumentLinks, RENDERED_PREFIX};
use crate::store::{Capture, CaptureFilter, PageRow, VersionRow};

/// Versions of one document that are read, spread over its history: more of them differ in words and hardly in parts.
const MAX_VERSIONS: usize = 32;

/// Addresses that one page may need.
const MAX_PARTS: usize = 1_000;

/// A page names a frame, the frame a style sheet, the style sheet another one, that one a picture.
const MAX_DEPTH: usize = 4;

/// The filter of a page with what the page needs: a file of one page alone would show words without a style or a picture.
pub fn with_subresources(snapshot: &Snapshot, filter: &CaptureFilter) -> anyhow::Result<CaptureFilter> {
    let parts = match &filter.page {
        Some(page) => subresource_urls(snapshot, page)?.into_iter().collect(),
        None => Vec::new(),
    };
    Ok(CaptureFilter { parts, ..filter.clone() })
}

/// Finds them among the captures of the archive, without the page itself. A version that cannot be read names nothing.
pub fn subresource_urls(snapshot: &Snapshot, url: &str) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::from([url.to_string()]);
    let mut documents = vec![url.to_string()];
    for _ in 0..MAX_DEPTH {
        let mut named = BTreeSet::new();
        for document in &documents {
            for version in version_captures(snapshot, document)? {
                named.extend(named_subresources(snapshot, &version).unwrap_or_default());
            }
        }
        documents.clear();
        for part in named {
            if found.len() <= MAX_PARTS && found.insert(part.clone()) {
                documents.push(part);
            }
        }
    }
    found.remove(url);
    Ok(found)
}

/// Captures that hold the versions of an address, where they may be documents that name parts.
fn version_captures(snapshot: &Snapshot, url: &str) -> anyhow::Result<Vec<Capture>> {
    let store = snapshot.store();
    let Some(page) = store.page(url)?.filter(may_name_parts) else { return Ok(Vec::new()) };
    let versions = store.page_versions(page.id)?;
    let step = versions.len().div_ceil(MAX_VERSIONS).max(1);
    let origins = versions.iter().step_by(step).filter_map(|version: &VersionRow| version.origin);
    let captures = origins.map(|origin| store.capture(origin));
    captures.filter_map(Result::transpose).collect()
}

fn may_name_parts(page: &PageRow) -> bool {
    page.mime
        .as_deref()
        .is_none_or(|mime| mime.contains("html") || mime.contains("css") || mime == "warc/revisit")
}

fn named_subresources(snapshot: &Snapshot, capture: &Capture) -> anyhow::Result<Vec<String>> {
    let url = Url::parse(&capture.url)?;
    let record = snapshot.archive().open_record(capture)?;
    let head = record.head.clone();
    let document = links::has_links(&head).then(|| links::read_text(&head, record));
    let sent = links::find(&url, &head, document.as_ref(), None).context("it names nothing")?;
    // Scripts may have added to it.
    let rendered = snapshot.store().capture_at(&format!("{RENDERED_PREFIX}{}", capture.url), capture.time)?;
    let rendered = rendered
        .map(|rendered| snapshot.archive().stored(&rendered, DecodingLimits::default()))
        .transpose()?;
    let rendered = rendered.map(|rendered| links::find_rendered(&url, &rendered.payload.bytes));
    let all = [Some(&sent), rendered.as_ref()].into_iter().flatten().flat_map(DocumentLinks::document_links);
    Ok(all.filter(|link| link.kind.is_subresource()).map(|link| link.url.to_string()).collect())
}
