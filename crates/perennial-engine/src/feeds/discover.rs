//! Finds the feeds of a site: those that a page links to, or those at common paths.

use perennial_core::text::links::LinkKind;
use perennial_core::url::canonical;
use serde::Serialize;
use url::Url;

use perennial_archive::feeds::read_feed;
use perennial_archive::links::{self, MAX_STORED_BYTES};
use perennial_fetch::{Client, FetchRequest, FetchedResponse};

/// Common paths of feeds that no page links to.
const USUAL_PLACES: [&str; 8] = [
    "/feed",
    "/feed.xml",
    "/rss.xml",
    "/rss",
    "/atom.xml",
    "/index.xml",
    "/feed.json",
    "/feeds/posts/default",
];
/// Most feeds per page.
const MAX_NAMED: usize = 20;

/// A feed that was found.
#[derive(Clone, Debug, Serialize)]
pub struct DiscoveredFeed {
    pub url: String,
    pub format: &'static str,
    pub title: String,
    /// Number of items.
    pub n_items: usize,
    /// Publication time of the newest item, if dated.
    pub newest: Option<String>,
    /// How it was found: it is the URL itself, the page links to it, or it is at a common path.
    pub found: &'static str,
}

/// Finds feeds. Waits for `pause` between two requests to the host, and calls `tell` with each requested URL.
pub async fn discover(
    client: &Client,
    url: &Url,
    allow_private: bool,
    pause: std::time::Duration,
    mut tell: impl FnMut(&Url),
) -> anyhow::Result<Vec<DiscoveredFeed>> {
    tell(url);
    let request = FetchRequest::get(url, &[], allow_private);
    let mut fetched = client.fetch(&request).await?;
    if let Some(found) = found_feed(url, &mut fetched, "given") {
        return Ok(vec![found]);
    }
    let mut places: Vec<(Url, &'static str)> = named_by(url, &mut fetched)
        .into_iter()
        .take(MAX_NAMED)
        .map(|url| (url, "linked from the page"))
        .collect();
    if places.is_empty() {
        let usual = USUAL_PLACES.iter().filter_map(|place| canonical::resolve(url, place));
        places.extend(usual.map(|url| (url, "at a common path")));
    }
    let mut found: Vec<DiscoveredFeed> = Vec::new();
    for (place, how) in places {
        tokio::time::sleep(pause).await;
        tell(&place);
        let request = FetchRequest::get(&place, &[], allow_private);
        // A path without a feed is not an error.
        let Ok(mut fetched) = client.fetch(&request).await else { continue };
        found.extend(found_feed(&place, &mut fetched, how));
        if how == "at a common path" && !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

fn found_feed(url: &Url, fetched: &mut FetchedResponse, found: &'static str) -> Option<DiscoveredFeed> {
    let FetchedResponse { head, body, .. } = fetched;
    let body = body.prefix(MAX_STORED_BYTES as usize).ok()?;
    let feed = read_feed(url.as_str(), head, &body)?;
    let newest = feed.items.iter().filter_map(|item| item.changed()).max();
    Some(DiscoveredFeed {
        url: url.to_string(),
        format: feed.format.name(),
        title: feed.title.clone(),
        n_items: feed.items.len(),
        newest: newest.map(|time| time.to_rfc3339()),
        found,
    })
}

/// The feeds that a page links to.
fn named_by(url: &Url, fetched: &mut FetchedResponse) -> Vec<Url> {
    let FetchedResponse { head, body, .. } = fetched;
    let Ok(body) = body.prefix(MAX_STORED_BYTES as usize) else { return Vec::new() };
    let document = links::has_links(head).then(|| links::read_text(head, &*body));
    let found = links::find(url, head, document.as_ref(), None);
    let links = found.iter().flat_map(|found| found.document_links());
    links.filter(|link| link.kind == LinkKind::Feed).map(|link| link.url.clone()).collect()
}
