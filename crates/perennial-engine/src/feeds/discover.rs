//! An address -> the feeds that it names, and those that lie where feeds usually do.

use perennial_core::text::links::LinkKind;
use perennial_core::url::canonical;
use serde::Serialize;
use url::Url;

use perennial_archive::feeds::read_feed;
use perennial_archive::links::{self, MAX_STORED_BYTES};
use perennial_fetch::{Client, FetchRequest, FetchedResponse};

/// Where feeds lie that nobody names.
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
/// Feeds of one page that are looked at.
const MAX_NAMED: usize = 20;

/// A feed that was found and read.
#[derive(Clone, Debug, Serialize)]
pub struct DiscoveredFeed {
    /// Its address.
    pub url: String,
    /// Its format, as users read it.
    pub format: &'static str,
    /// Its name.
    pub title: String,
    /// How many items it holds.
    pub n_items: usize,
    /// When the latest was published, as far as it says.
    pub newest: Option<String>,
    /// How it was found: it is the address itself, the page names it, or it lies where feeds usually do.
    pub found: &'static str,
}

/// Looks for feeds. `pause` is called between two requests to the host; `tell` with what is asked for.
pub async fn discover(
    client: &Client,
    url: &Url,
    allow_private: bool,
    pause: std::time::Duration,
    mut tell: impl FnMut(&Url),
) -> anyhow::Result<Vec<DiscoveredFeed>> {
    tell(url);
    let request = FetchRequest { url, fields: &[], allow_private };
    let mut fetched = client.fetch(&request).await?;
    if let Some(found) = found_feed(url, &mut fetched, "given") {
        return Ok(vec![found]);
    }
    let mut places: Vec<(Url, &'static str)> = named_by(url, &mut fetched)
        .into_iter()
        .take(MAX_NAMED)
        .map(|url| (url, "named by the page"))
        .collect();
    if places.is_empty() {
        let usual = USUAL_PLACES.iter().filter_map(|place| canonical::resolve(url, place));
        places.extend(usual.map(|url| (url, "in a usual place")));
    }
    let mut found: Vec<DiscoveredFeed> = Vec::new();
    for (place, how) in places {
        tokio::time::sleep(pause).await;
        tell(&place);
        let request = FetchRequest { url: &place, fields: &[], allow_private };
        // A place without a feed is no failure of the search.
        let Ok(mut fetched) = client.fetch(&request).await else { continue };
        found.extend(found_feed(&place, &mut fetched, how));
        if how == "in a usual place" && !found.is_empty() {
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

/// The feeds that a page names.
fn named_by(url: &Url, fetched: &mut FetchedResponse) -> Vec<Url> {
    let FetchedResponse { head, body, .. } = fetched;
    let Ok(body) = body.prefix(MAX_STORED_BYTES as usize) else { return Vec::new() };
    let document = links::has_links(head).then(|| links::read_text(head, &*body));
    let found = links::find(url, head, document.as_ref(), None);
    let links = found.iter().flat_map(|found| found.of_document());
    links.filter(|link| link.kind == LinkKind::Feed).map(|link| link.url.clone()).collect()
}
