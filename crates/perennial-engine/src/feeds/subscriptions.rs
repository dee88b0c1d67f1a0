//! Reads sites to follow from a list of URLs or from OPML. Folders of OPML become tags.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use perennial_core::feed::opml::{self, FeedSubscription};
use url::Url;

use perennial_archive::settings::Seed;
use perennial_archive::settings::site::{parse_tag, parse_url};

/// Longest list.
const MAX_LIST_BYTES: u64 = 64 << 20;
/// Depth for a site that is named by its feed alone: the feed's items, without the pages they link to.
const FEED_DEPTH: u32 = 1;

/// The contents of a list.
pub struct SubscriptionList {
    /// Sites to follow, without duplicates.
    pub seeds: Vec<Seed>,
    /// The reason for each rejected entry.
    pub refused: Vec<String>,
}

/// Reads OPML or one URL per line. Skips empty lines and comments (`#`). `like` returns the common settings for a
/// site.
pub fn read_list(path: &Path, like: &dyn Fn(&Url) -> Seed) -> anyhow::Result<SubscriptionList> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.take(MAX_LIST_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > MAX_LIST_BYTES {
        bail!("{} is longer than {} MiB: split it", path.display(), MAX_LIST_BYTES >> 20);
    }
    let mut listed = SubscriptionList { seeds: Vec::new(), refused: Vec::new() };
    let mut places = std::collections::HashMap::new();
    let entries: Vec<FeedSubscription> = match opml::is_opml(&bytes) {
        true => opml::parse(&bytes),
        false => url_lines(&bytes),
    };
    for entry in entries {
        match subscription_seed(&entry, like) {
            Ok(seed) => match places.get(&seed.scope.seed) {
                None => {
                    places.insert(seed.scope.seed.clone(), listed.seeds.len());
                    listed.seeds.push(seed);
                }
                Some(&at) => join(&mut listed.seeds, at, seed),
            },
            Err(reason) => listed.refused.push(reason),
        }
    }
    Ok(listed)
}

fn url_lines(bytes: &[u8]) -> Vec<FeedSubscription> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let urls = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    urls.map(|line| FeedSubscription { page: line.to_owned(), ..FeedSubscription::default() }).collect()
}

/// A site is its channel page with the feed. If the list gives the feed alone, the site starts there.
fn subscription_seed(entry: &FeedSubscription, like: &dyn Fn(&Url) -> Seed) -> Result<Seed, String> {
    let feed = match entry.feed.is_empty() {
        true => None,
        false => Some(parse_url(&entry.feed)?),
    };
    let page = parse_url(&entry.page).ok();
    let Some(url) = page.or_else(|| feed.clone()) else {
        return Err(parse_url(&entry.page).err().unwrap_or_default());
    };
    let mut seed = like(&url);
    let usual = seed.depth;
    if let Some(feed) = feed {
        seed.depth = usual.or(Some(FEED_DEPTH));
        seed.scope.max_depth = seed.depth;
        seed.feeds.push(feed);
    }
    for tag in entry.tags.iter().filter_map(|tag| parse_tag(tag).ok()) {
        if !seed.tags.contains(&tag) {
            seed.tags.push(tag);
        }
    }
    Ok(seed)
}

/// Merges the feeds and tags of duplicate entries.
fn join(seeds: &mut [Seed], at: usize, other: Seed) {
    let Some(seed) = seeds.get_mut(at) else { return };
    let feeds: Vec<Url> = other.feeds.into_iter().filter(|feed| !seed.feeds.contains(feed)).collect();
    let tags: Vec<String> = other.tags.into_iter().filter(|tag| !seed.tags.contains(tag)).collect();
    seed.feeds.extend(feeds);
    seed.tags.extend(tags);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> SubscriptionList {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        std::fs::write(&path, text).unwrap();
        read_list(&path, &|url| Seed::of_host(url.clone())).unwrap()
    }

    #[test]
    fn lines_are_urls() {
        let listed = read("# mine\nhttps://a.example/\n\nb.example\nmailto:x@y\nhttps://a.example/\n");
        let urls: Vec<&str> = listed.seeds.iter().map(|seed| seed.scope.seed.as_str()).collect();
        assert_eq!(urls, ["https://a.example/", "https://b.example/"]);
        assert_eq!(listed.refused.len(), 1);
    }

    #[test]
    fn folders_of_opml_are_tags_and_feeds_of_one_site_are_joined() {
        let listed = read(
            "<opml><body><outline text='News'><outline xmlUrl='http://a.example/f' htmlUrl='http://a.example/'/></outline>
             <outline text='Art'><outline xmlUrl='http://a.example/g' htmlUrl='http://a.example/'/><outline xmlUrl='http://c.example/feed'/>
             </outline></body></opml>",
        );
        let [both, alone] = &listed.seeds[..] else { panic!("{:?}", listed.seeds) };
        assert_eq!(
            both.feeds.iter().map(Url::as_str).collect::<Vec<_>>(),
            ["http://a.example/f", "http://a.example/g"]
        );
        assert_eq!((both.tags.join(" "), both.depth), ("News Art".to_owned(), Some(1)));
        assert_eq!(
            (alone.scope.seed.as_str(), alone.tags.join(" ")),
            ("http://c.example/feed", "Art".to_owned())
        );
    }
}
