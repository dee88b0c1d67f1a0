//! OPML -> subscriptions, with their folders as tags.

use super::{MAX_FEED_BYTES, MAX_LABEL_BYTES};
use crate::text::charset::decode_xml;
use crate::text::untrusted::truncate;
use crate::text::xml::{Scanner, Tag, XmlPiece};

/// Subscriptions read per file.
pub const MAX_SUBSCRIPTIONS: usize = 100_000;
/// Nested folders that become tags.
const MAX_FOLDERS: usize = 16;

/// A feed in a subscription list.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct FeedSubscription {
    /// URL of the feed; empty if only the site is given.
    pub feed: String,
    /// URL of its web page; empty if only the feed is given.
    pub page: String,
    pub title: String,
    /// Its folders, the outermost first, and its categories.
    pub tags: Vec<String>,
}

pub fn is_opml(bytes: &[u8]) -> bool {
    let start =
        String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).replace('\0', "").to_ascii_lowercase();
    start.contains("<opml")
}

/// Parses a list. Other elements are skipped, and malformed XML is read as far as possible.
pub fn parse(bytes: &[u8]) -> Vec<FeedSubscription> {
    let text = decode_xml(&bytes[..bytes.len().min(MAX_FEED_BYTES)], None);
    let (mut found, mut folders, mut n_open) = (Vec::new(), Vec::<(usize, String)>::new(), 0usize);
    for piece in Scanner::new(&text) {
        match piece {
            XmlPiece::Start(tag) if tag.local_name().eq_ignore_ascii_case("outline") => {
                n_open += 1;
                let outline = read_outline(&tag, &folders);
                let is_folder = outline.feed.is_empty() && outline.page.is_empty();
                if is_folder && !tag.is_empty && folders.len() < MAX_FOLDERS && !outline.title.is_empty() {
                    folders.push((n_open, outline.title));
                } else if !is_folder && found.len() < MAX_SUBSCRIPTIONS {
                    found.push(outline);
                }
                if tag.is_empty {
                    n_open -= 1;
                }
            }
            XmlPiece::End(name) if name.eq_ignore_ascii_case("outline") => {
                folders.retain(|(level, _)| *level != n_open);
                n_open = n_open.saturating_sub(1);
            }
            _ => {}
        }
    }
    found
}

fn read_outline(tag: &Tag<'_>, folders: &[(usize, String)]) -> FeedSubscription {
    let attribute = |name: &str| {
        let value = tag.attribute(name).unwrap_or_default();
        truncate(value.trim(), MAX_LABEL_BYTES).to_owned()
    };
    let title = match attribute("title") {
        title if title.is_empty() => attribute("text"),
        title => title,
    };
    // Some lists contain the feed's URL in `url`.
    let feed = match attribute("xmlUrl") {
        feed if feed.is_empty() && !attribute("type").is_empty() => attribute("url"),
        feed => feed,
    };
    let mut tags: Vec<String> = folders.iter().map(|(_, folder)| folder.clone()).collect();
    let categories = attribute("category");
    for category in categories.split([',', '/']).map(str::trim).filter(|category| !category.is_empty()) {
        if !tags.iter().any(|tag| tag == category) && tags.len() < 2 * MAX_FOLDERS {
            tags.push(category.to_owned());
        }
    }
    FeedSubscription { feed, page: attribute("htmlUrl"), title, tags }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folders_are_tags() {
        let opml = br#"<?xml version="1.0"?><opml version="1.0"><body>
            <outline text="News"><outline text="Politics">
              <outline type="rss" text="A &amp; B" xmlUrl="http://a.example/f" htmlUrl="http://a.example/"/></outline>
              <outline title="C" text="c" xmlUrl="http://c.example/f" category="/x,News"></outline></outline>
            <outline text="D" xmlUrl="http://d.example/f"/><outline text="empty"/></body></opml>"#;
        let found = parse(opml);
        let tags: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|one| (one.title.as_str(), one.tags.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(tags, [("A & B", vec!["News", "Politics"]), ("C", vec!["News", "x"]), ("D", vec![])]);
        assert_eq!(
            (found[0].feed.as_str(), found[0].page.as_str()),
            ("http://a.example/f", "http://a.example/")
        );
        assert!(is_opml(opml) && !is_opml(b"http://a.example/\n"));
    }

    #[test]
    fn a_list_that_is_cut_short_counts_as_far_as_it_goes() {
        let found = parse(b"<opml><body><outline text='T'><outline xmlUrl='http://a.example/f'><outline xmlUrl='http://b.exa");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].tags, ["T"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }
    }
}
