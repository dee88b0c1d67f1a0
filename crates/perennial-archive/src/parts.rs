//! A page -> the URLs of the subresources that its versions need: style sheets, images, scripts, frames, and their
//! subresources.

use std::collections::BTreeSet;

use anyhow::Context;
use perennial_warc::payload::DecodingLimits;
use url::Url;

use super::Snapshot;
use super::links::{self, DocumentLinks, RENDERED_PREFIX};
use crate::store::{Capture, CaptureFilter, PageRow, VersionRow};

/// At most this many versions of one document are read, spread over its history. Further versions rarely name new
/// subresources.
const MAX_VERSIONS: usize = 32;

/// Maximum number of subresources of one page.
const MAX_PARTS: usize = 1_000;

/// Deep enough for a page with a frame, its style sheet, an imported style sheet and its image.
const MAX_DEPTH: usize = 4;

/// Adds the page's subresources to the filter. An export of the page alone would show text without styles or images.
pub fn with_subresources(snapshot: &Snapshot, filter: &CaptureFilter) -> anyhow::Result<CaptureFilter> {
    let parts = match &filter.page {
        Some(page) => subresource_urls(snapshot, page)?.into_iter().collect(),
        None => Vec::new(),
    };
    Ok(CaptureFilter { parts, ..filter.clone() })
}

/// Finds the subresources that captures of the page name, without the page itself. An unreadable version names none.
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

/// The captures with the versions of a URL, if they may be documents that name subresources.
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
    // Scripts may have added links to the document.
    let rendered = snapshot.store().capture_at(&format!("{RENDERED_PREFIX}{}", capture.url), capture.time)?;
    let rendered = rendered
        .map(|rendered| snapshot.archive().stored(&rendered, DecodingLimits::default()))
        .transpose()?;
    let rendered = rendered.map(|rendered| links::find_rendered(&url, &rendered.payload.bytes));
    let all = [Some(&sent), rendered.as_ref()].into_iter().flatten().flat_map(DocumentLinks::document_links);
    Ok(all.filter(|link| link.kind.is_subresource()).map(|link| link.url.to_string()).collect())
}
