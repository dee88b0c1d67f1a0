//! Infers a channel page at an instant from the items known then (P-FEED 6).
//!
//! Between two captures of a channel page its feed still shows what was published. The list of headlines can therefore
//! be written for any instant, in the template of the nearest capture. The result is never stored as a capture. Each
//! item says whether it was observed by then, or only published by then.

use std::collections::HashSet;
use std::fmt::Write as _;

use perennial_core::text::charset::decode_text;
use perennial_core::text::dom::Dom;
use perennial_core::text::markup::escaped;
use perennial_core::time::Timestamp;
use serde::Serialize;
use url::Url;

use crate::chart::REPORT_STYLE;

use super::channel::{ChannelItem, ChannelPage};
use perennial_archive::SharedSnapshot;
use perennial_archive::store::{PageRow, Store, StoredItem};
use perennial_engine::analyse::PageSpec;
use perennial_engine::html;

/// Most items of the page.
const MAX_ITEMS: usize = 100;

/// A channel page inferred from its feeds.
#[derive(Clone, Debug, Serialize)]
pub struct InferredChannel {
    pub url: String,
    pub at: String,
    /// The nearest capture, which is the template; `None` if the page was never captured.
    pub nearest_capture: Option<String>,
    /// The feeds of its items.
    pub feeds: Vec<String>,
    pub items: Vec<InferredItem>,
}

#[derive(Clone, Debug, Serialize)]
pub struct InferredItem {
    /// The item in the feed.
    #[serde(flatten)]
    pub item: StoredItem,
    /// Whether a capture of the feed had the item by then. Otherwise it was observed later with an earlier date.
    pub was_seen: bool,
    /// Whether only its headline is known.
    pub is_stub: bool,
    /// Whether its page was captured.
    pub is_captured: bool,
}

/// Infers a channel page at an instant; `None` if none of its feeds had an item by then.
pub fn infer_channel(
    store: &Store,
    page: &PageRow,
    at: Timestamp,
) -> anyhow::Result<Option<InferredChannel>> {
    let feeds: Vec<_> = store
        .feeds_to_poll()?
        .into_iter()
        .filter(|feed| feed.channel.as_deref() == Some(page.url.as_str()))
        .collect();
    let n_held = feeds.iter().map(|feed| feed.n_held as usize).max().unwrap_or(0).min(MAX_ITEMS);
    let mut items = Vec::new();
    for feed in &feeds {
        for item in store.items_at(feed.page, at, n_held)? {
            let was_seen = Timestamp::parse(&item.first_seen).is_ok_and(|seen| seen <= at);
            let is_captured = match &item.link {
                Some(link) => store.page(link)?.is_some_and(|page| page.n_captures > 0),
                None => false,
            };
            items.push(InferredItem { was_seen, is_stub: item.summary.is_empty(), is_captured, item });
        }
    }
    if items.is_empty() {
        return Ok(None);
    }
    let time_of =
        |item: &InferredItem| item.item.published.clone().unwrap_or_else(|| item.item.first_seen.clone());
    items.sort_by_key(|item| std::cmp::Reverse(time_of(item)));
    // Several feeds may have the same article.
    let mut known = std::collections::HashSet::new();
    items.retain(|item| item.item.link.as_ref().is_none_or(|link| known.insert(link.clone())));
    items.truncate(n_held.max(1));
    let nearest = store.closest_payload(&page.url, at)?.map(|capture| capture.time.to_rfc3339());
    Ok(Some(InferredChannel {
        url: page.url.clone(),
        at: at.to_rfc3339(),
        nearest_capture: nearest,
        feeds: feeds.into_iter().map(|feed| feed.url).collect(),
        items,
    }))
}

/// Most items of a feed by which the list of its channel page is found.
const MAX_KNOWN_ITEMS: usize = 2_000;

/// The page in the template of its nearest capture; `None` if there is no readable capture or no list in it. Use
/// [`InferredChannel::to_html`] then.
pub fn fill_template(shared: &SharedSnapshot, inferred: &InferredChannel) -> anyhow::Result<Option<String>> {
    let Some(nearest) = inferred.nearest_capture.as_deref().and_then(|time| Timestamp::parse(time).ok())
    else {
        return Ok(None);
    };
    let spec = PageSpec::Archived { url: inferred.url.clone(), time: Some(nearest) };
    let (Ok(page), Ok(url)) = (spec.load(Some(shared), false), Url::parse(&inferred.url)) else {
        return Ok(None);
    };
    let mut known: HashSet<String> = HashSet::new();
    {
        let snapshot = shared.lock();
        let feeds = snapshot.store().feeds_to_poll()?;
        for feed in feeds.iter().filter(|feed| inferred.feeds.contains(&feed.url)) {
            let items =
                snapshot.store().items_at(feed.page, Timestamp::from_millis(i64::MAX), MAX_KNOWN_ITEMS)?;
            known.extend(items.into_iter().filter_map(|item| item.link));
        }
    }
    let notice = format!(
        "Inferred, not captured: what {} must have listed at {}, by its feed, in the template of its capture of {}.",
        inferred.url,
        inferred.at,
        nearest.to_rfc3339()
    );
    let items: Vec<ChannelItem> = inferred.items.iter().map(InferredItem::to_channel_item).collect();
    let style = |url: &str| {
        let captured = page.subresource(url)?;
        Some(decode_text(&captured.body, Some(&captured.content_type)).into_owned())
    };
    let dom = Dom::parse(&page.html);
    let filled =
        ChannelPage { dom: &dom, url: &url, known: &known, items: &items, notice: &notice, style: &style };
    Ok(filled.to_html())
}

impl InferredItem {
    fn to_channel_item(&self) -> ChannelItem {
        ChannelItem {
            title: self.item.title.clone(),
            url: self.item.link.clone(),
            summary: self.item.summary.clone(),
            note: self.note(),
        }
    }

    /// How the item is known, and whether it is a stub.
    fn note(&self) -> String {
        let known = match self.was_seen {
            true => format!("in the feed by {}", self.item.first_seen),
            false => format!("published by then, seen at {}", self.item.first_seen),
        };
        let stub = if self.is_stub { " (stub: only the headline is known)" } else { "" };
        format!("{known}{stub}")
    }
}

impl InferredChannel {
    /// The page as plain HTML. It has texts only, so nothing in it can run or be fetched.
    pub fn to_html(&self, title: &str) -> String {
        let mut body = format!(
            "<p><strong>Inferred, not captured.</strong> This is what <a href=\"{0}\">{0}</a> must have listed at {1}, by its feed. The \
             nearest capture is {2}.</p><h1>{3}</h1><ol>",
            escaped(&self.url),
            escaped(&self.at),
            escaped(self.nearest_capture.as_deref().unwrap_or("none")),
            escaped(title)
        );
        for known in &self.items {
            let item = &known.item;
            let _ = write!(
                body,
                "<li><h2><a href=\"{}\">{}</a></h2><p>{}</p><small>{}</small></li>",
                escaped(item.link.as_deref().unwrap_or_default()),
                escaped(&item.title),
                escaped(&item.summary),
                escaped(&known.note())
            );
        }
        body.push_str("</ol>");
        html::page(&format!("Inferred: {title}"), REPORT_STYLE, &body)
    }
}
