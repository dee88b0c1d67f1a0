//! Finds pages that contained the words, with an excerpt and the times.

use std::collections::HashMap;
use std::ops::Range;

use perennial_core::page::segment::BlockRole;
use perennial_core::search::{PassagePresence, TextQuery, join};
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;

use perennial_archive::store::{PresenceFilter, PresenceHit, Store, Texts};

/// Most presence intervals per query. A query with more returns the latest ones.
const MAX_PRESENCES: usize = 20_000;
/// Characters of context around the matching words.
const CONTEXT_CHARS: usize = 120;

/// The conditions of a search, apart from its words.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery<'a> {
    /// Only pages of this host, with its port if that is unusual.
    pub host: Option<&'a str>,
    pub url: Option<&'a str>,
    /// Only text that was present at this time or later.
    pub since: Option<Timestamp>,
    /// Only text that was present before this time.
    pub until: Option<Timestamp>,
    /// Only text that is no longer present.
    pub is_vanished: bool,
    /// Only text of versions worth indexing.
    pub is_important: bool,
    /// Most pages.
    pub limit: usize,
}

impl SearchQuery<'_> {
    /// Whether a page with these presence intervals matches. An edit that keeps the words does not end their
    /// presence, so intervals are joined first.
    fn holds(&self, presences: &[PassagePresence]) -> bool {
        let is_in_time = |presence: &PassagePresence| {
            self.since.is_none_or(|since| presence.last >= since)
                && self.until.is_none_or(|until| presence.first < until)
        };
        let is_gone = presences.last().is_some_and(|presence| presence.gone.is_some());
        presences.iter().any(is_in_time) && (!self.is_vanished || is_gone)
    }
}

/// A page that contained the words.
#[derive(Clone, Debug)]
pub struct SearchHit {
    pub page: PageId,
    pub url: String,
    /// Its latest title.
    pub title: Option<String>,
    /// When the words were present, in chronological order.
    pub presences: Vec<PassagePresence>,
    /// The latest passage with the words.
    pub excerpt: Excerpt,
}

/// A part of a passage with the matching words.
#[derive(Clone, Debug)]
pub struct Excerpt {
    pub text: String,
    /// Byte ranges of the matching words.
    pub found: Vec<Range<usize>>,
    pub role: BlockRole,
    /// Whether text before or after it is left out.
    pub is_cut: (bool, bool),
}

/// The result of a search. Pages where the words appeared last come first.
#[derive(Clone, Debug, Default)]
pub struct SearchHits {
    pub hits: Vec<SearchHit>,
    /// Number of matching pages; more than `hits` if the limit was reached.
    pub n_pages: usize,
    /// Whether there were so many matches that only the latest were examined.
    pub is_partial: bool,
}

/// Searches the index.
pub fn find_pages(
    store: &Store,
    texts: &Texts,
    query: &TextQuery,
    search: &SearchQuery<'_>,
) -> anyhow::Result<SearchHits> {
    let pages = match (search.url, search.host) {
        (Some(url), _) => Some(store.page(url)?.map(|page| page.id).into_iter().collect::<Vec<_>>()),
        (None, Some(host)) => Some(store.host_pages(host)?),
        (None, None) => None,
    };
    let filter = PresenceFilter { pages: pages.as_deref(), is_important: search.is_important };
    let (found, is_partial) = texts.find(query, &filter, MAX_PRESENCES)?;
    let mut by_page: HashMap<PageId, Vec<PresenceHit>> = HashMap::new();
    for presence in found {
        by_page.entry(presence.page).or_default().push(presence);
    }
    let mut matches: Vec<(PageId, Vec<PassagePresence>, PresenceHit)> = by_page
        .into_iter()
        .filter_map(|(page, found)| {
            let presences = join(found.iter().map(|found| found.presence).collect());
            let latest = found.into_iter().max_by_key(|found| (found.presence.first, found.presence.last))?;
            Some((page, presences, latest))
        })
        .filter(|(_, presences, _)| search.holds(presences))
        .collect();
    matches.sort_by_key(|(page, presences, _)| {
        (std::cmp::Reverse(presences.last().map(|presence| presence.first)), *page)
    });
    let n_pages = matches.len();
    matches.truncate(search.limit);
    let mut hits = Vec::with_capacity(matches.len());
    for (page, presences, latest) in matches {
        let excerpt = excerpt(query, &latest);
        hits.push(SearchHit {
            page,
            url: store.page_url(page)?,
            title: store.page_title(page)?,
            presences,
            excerpt,
        });
    }
    Ok(SearchHits { hits, n_pages, is_partial })
}

/// Start of the first whole word at or after a position; the position itself in a script without spaces.
fn word_start(text: &str, at: usize, most: usize) -> usize {
    let is_inside = at > 0 && !text[..at].ends_with(char::is_whitespace);
    let blank = text[at..most].find(char::is_whitespace).filter(|_| is_inside);
    blank.map_or(at, |blank| at + blank + text[at + blank..].chars().next().map_or(0, char::len_utf8))
}

/// End of the last whole word before a position.
fn word_end(text: &str, least: usize, at: usize) -> usize {
    let is_inside = at < text.len() && !text[at..].starts_with(char::is_whitespace);
    text[least..at].rfind(char::is_whitespace).filter(|_| is_inside).map_or(at, |blank| least + blank)
}

/// The part of a passage around the first matching words.
fn excerpt(query: &TextQuery, found: &PresenceHit) -> Excerpt {
    let text = &found.text;
    let places = query.find(text);
    let first = places.first().cloned().unwrap_or(0..0);
    let start = text[..first.start].char_indices().rev().nth(CONTEXT_CHARS - 1).map_or(0, |(at, _)| at);
    let start = word_start(text, start, first.start);
    let end =
        text[first.end..].char_indices().nth(CONTEXT_CHARS).map_or(text.len(), |(at, _)| first.end + at);
    let end = word_end(text, first.end, end);
    let inside = places.iter().filter(|place| place.start >= start && place.end <= end);
    Excerpt {
        text: text[start..end].to_owned(),
        found: inside.map(|place| place.start - start..place.end - start).collect(),
        role: found.role,
        is_cut: (start > 0, end < text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_begins_and_ends_with_whole_words() {
        let text = "zwölf Boxkämpfer jagen Eva quer";
        assert_eq!(&text[word_start(text, 4, text.len())..], "Boxkämpfer jagen Eva quer");
        assert_eq!(&text[word_start(text, 7, text.len())..], "Boxkämpfer jagen Eva quer");
        assert_eq!(word_start(text, 0, 4), 0);
        assert_eq!(&text[..word_end(text, 0, text.len() - 2)], "zwölf Boxkämpfer jagen Eva");
        assert_eq!(word_end(text, 0, text.len()), text.len());
        assert_eq!(word_start("東京都知事選", 3, 9), 3, "a script without blanks");
        assert_eq!(word_end("東京都知事選", 3, 9), 9);
    }
}
