//! A page -> its list items. All passes visit each node once, in document order or in reverse.
//!
//! 1. A link is strong if it is an entry by itself: it has enough words or a heading, and is neither in prose nor in
//!    the page frame.
//! 2. A record is the largest part of the page whose strong links all have the same URL: image, headline and teaser.
//! 3. Records with the same markup around them form a list. A list counts if enough of its items have headlines.

use std::collections::{BTreeMap, HashMap, HashSet};

use url::Url;

use super::facts::{NONE, PageFacts, is_heading};
use super::item::{
    ItemList, ItemPlace, ListItem, MAX_ITEMS, MAX_PLACES, MAX_TEASER_BYTES, MAX_TITLE_BYTES, item_key,
    names_article,
};
use super::purpose::Purpose;
use super::teasers::Teasers;
use crate::page::layout::LayoutNode;
use crate::text::markup::xml_safe;
use crate::url::canonical::host_with_port;

/// Words before a link in the same paragraph, outside links, that make the link part of prose. A date, an author or
/// "Read more:" have fewer.
const MIN_INLINE_WORDS: u32 = 4;
/// Words that make a link without a heading a headline. The names of sections and buttons have one to three.
const MIN_TITLE_WORDS: u32 = 4;
/// Maximum number of levels above a heading at which its link is searched. Cards are rarely nested deeper, and further
/// up the only link may belong to something else.
const MAX_CLIMB: usize = 6;
/// Maximum headings outside links within one record: a kicker and a headline. More are several records.
const MAX_RECORD_HEADINGS: u16 = 2;
/// Maximum words outside links of a record, about the length of a long teaser. An article that links to one other page is not a list entry.
const MAX_RECORD_WORDS: f32 = 120.0;
/// Minimum words outside links of a prose paragraph: a full sentence. Labels, dates and captions have fewer.
const MIN_PROSE_WORDS: u32 = 15;
/// Maximum words of a record whose heading has no link. Without a link nothing else tells an entry of a live blog from a
/// section of an article.
const MAX_PLAIN_RECORD_WORDS: u32 = 60;
/// Weight of an item in a side column or with a link to a different host. People read the main column, and see the side
/// columns.
const LESSER_WEIGHT: f32 = 0.2;
/// Maximum share of the page's words in a frame, side box or advertisement. The name of a larger part is misleading.
const MAX_NAMED_SHARE: f32 = 0.25;

/// Finds the items of a page, and counts the words of items before each node.
pub(super) fn find_items(page: &PageFacts, base_url: &str) -> (ItemList, Teasers) {
    if page.facts.is_empty() {
        return (ItemList::default(), Teasers::default());
    }
    let zones = PageZones::new(page);
    let mut links = CandidateLinks::new(page, &zones, base_url);
    links.mark_strong(page, &zones);
    let records = find_records(page, &links);
    let mut places: Vec<ItemCandidate> = records
        .iter()
        .map(|&(root, key)| ItemCandidate::new(page, &zones, root, Some(key), &links))
        .collect();
    let mut is_covered = vec![false; page.facts.len()];
    mark_covered(page, &places, &mut is_covered);
    places.extend(plain_records(page, &zones, &links, &is_covered));
    places.sort_by_key(|place| place.root);
    let accepted = list_templates(&places, &links);
    places.retain(|place| accepted.contains(&place.template) && !place.title.is_empty());
    links.drop_sections(&mut places);
    let mut is_covered = vec![false; page.facts.len()];
    mark_covered(page, &places, &mut is_covered);
    let (n_prose_words, n_body_words) = count_prose_words(page, &zones, &is_covered);
    let n_item_words = places.iter().map(|place| page.facts(place.root).n_words).sum();
    let teasers = Teasers::new(page, &is_covered);
    (ItemList { items: join_places(places, &links), n_item_words, n_prose_words, n_body_words }, teasers)
}

fn mark_covered(page: &PageFacts, places: &[ItemCandidate], is_covered: &mut [bool]) {
    for place in places {
        let end = page.facts(place.root).end as usize;
        is_covered[place.root as usize..end].fill(true);
    }
}

/// The zone of each node.
struct PageZones {
    /// Navigation, header and footer of the page, and cookie dialogs.
    is_frame: Vec<bool>,
    /// Side columns and boxes of related links.
    is_in_sidebar: Vec<bool>,
    is_advertisement: Vec<bool>,
    /// The heading at or above each node.
    headings: Vec<u32>,
}

impl PageZones {
    fn new(page: &PageFacts) -> PageZones {
        let n_nodes = page.facts.len();
        let n_words = page.facts.first().map_or(0, |root| root.n_words) as f32;
        let mut is_entry = vec![false; n_nodes];
        let mut zones = PageZones {
            is_frame: vec![false; n_nodes],
            is_in_sidebar: vec![false; n_nodes],
            is_advertisement: vec![false; n_nodes],
            headings: vec![NONE; n_nodes],
        };
        for index in 0..n_nodes {
            let (node, parent) = (page.node(index as u32), page.parents[index] as usize);
            let facts = &page.facts[index];
            let above = |zone: &[bool]| zone.get(parent).copied().unwrap_or(false);
            // The header of an article or section does not belong to the page frame.
            is_entry[index] = above(&is_entry) || matches!(&*node.tag, "article" | "main" | "section" | "li");
            let is_small = facts.n_words as f32 <= MAX_NAMED_SHARE * n_words;
            zones.is_frame[index] = above(&zones.is_frame) || is_frame(node, above(&is_entry)) && is_small;
            zones.is_in_sidebar[index] =
                above(&zones.is_in_sidebar) || node.tag == "aside" || is_side_box(facts.purpose) && is_small;
            let is_advertisement = facts.purpose == Purpose::Advertisement && is_small;
            zones.is_advertisement[index] = above(&zones.is_advertisement) || is_advertisement;
            zones.headings[index] = match is_heading(node) || has_heading_role(node) {
                true => index as u32,
                false => zones.headings.get(parent).copied().unwrap_or(NONE),
            };
        }
        zones
    }
}

fn has_heading_role(node: &LayoutNode) -> bool {
    !node.is_text() && node.attribute("role") == Some("heading")
}

fn is_frame(node: &LayoutNode, is_in_entry: bool) -> bool {
    let by_tag = match &*node.tag {
        "nav" | "dialog" => true,
        "footer" | "header" => !is_in_entry,
        _ => false,
    };
    let by_role = || {
        matches!(
            node.attribute("role"),
            Some("navigation" | "banner" | "contentinfo" | "dialog" | "alertdialog" | "search")
        )
    };
    let names_consent = || {
        let names = ["id", "class"].into_iter().filter_map(|name| node.attribute(name));
        names.flat_map(|names| names.split(|c: char| !c.is_ascii_alphabetic())).any(|word| {
            ["cookie", "cookies", "consent", "gdpr", "cmp"]
                .iter()
                .any(|known| known.eq_ignore_ascii_case(word))
        })
    };
    by_tag || !node.is_text() && (by_role() || names_consent())
}

fn is_side_box(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Related | Purpose::Sidebar)
}

/// The keys of the links in a part of the page: none, one or several.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum KeySet {
    #[default]
    None,
    One(u32),
    Many,
}

impl KeySet {
    fn join(self, other: KeySet) -> KeySet {
        match (self, other) {
            (KeySet::None, keys) | (keys, KeySet::None) => keys,
            (KeySet::One(one), KeySet::One(other)) if one == other => self,
            _ => KeySet::Many,
        }
    }
}

/// The links of a page by the keys of their URLs.
struct CandidateLinks {
    /// The key of each link outside the page frame.
    keys: Vec<u32>,
    names: Vec<String>,
    resolver: Vec<String>,
    is_strong: Vec<bool>,
    /// Words of links and headings that occur in several places, such as "Read more" and the names of sections.
    repeated: HashSet<u64>,
}

impl CandidateLinks {
    fn new(page: &PageFacts, zones: &PageZones, base_url: &str) -> CandidateLinks {
        let base = Url::parse(base_url).ok();
        let mut links = CandidateLinks {
            keys: vec![NONE; page.facts.len()],
            names: Vec::new(),
            resolver: Vec::new(),
            is_strong: Vec::new(),
            repeated: HashSet::new(),
        };
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let own = base.as_ref().map(item_key).unwrap_or_default();
        for index in 0..page.facts.len() {
            if page.anchors[index] != index as u32 || zones.is_frame[index] || !page.is_seen[index] {
                continue;
            }
            let href = page.node(index as u32).attribute("href").unwrap_or("").trim();
            let Some(url) = resolve(base.as_ref(), href) else { continue };
            let key = item_key(&url);
            if key == own {
                continue;
            }
            let next = links.names.len() as u32;
            let number = *numbers.entry(key.clone()).or_insert(next);
            if number == next {
                links.names.push(key);
                links.resolver.push(url.into());
            }
            links.keys[index] = number;
        }
        links.is_strong = vec![false; links.names.len()];
        links
    }

    /// The host of at least half of the items. `None` for a page of links to many hosts. Its items do not get a lower
    /// weight because of their host.
    fn main_host(&self, places: &[ItemCandidate]) -> Option<&str> {
        let mut keys: Vec<u32> = places.iter().filter_map(|place| place.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for &key in &keys {
            *counts.entry(host_with_port(&self.names[key as usize])).or_default() += 1;
        }
        // Ties are broken by name, independent of the map's order.
        let most = counts.into_iter().max_by_key(|&(host, n)| (n, std::cmp::Reverse(host)));
        most.filter(|(_, n)| 2 * n >= keys.len()).map(|(host, _)| host)
    }

    /// Marks the keys of strong links.
    fn mark_strong(&mut self, page: &PageFacts, zones: &PageZones) {
        let mut n_plain: Vec<u32> = vec![0; page.facts.len()];
        let mut entries: Vec<u32> = Vec::new();
        for index in 0..page.facts.len() {
            let node = page.node(index as u32);
            if node.is_text() && page.is_seen[index] && page.anchors[index] == NONE {
                let paragraph = page.paragraphs[index];
                if paragraph != NONE {
                    n_plain[paragraph as usize] += page.facts[index].n_words;
                }
            }
            let key = self.keys[index];
            if key == NONE {
                continue;
            }
            let facts = &page.facts[index];
            let has_heading = zones.headings[index] != NONE || facts.has_heading;
            let paragraph = page.paragraphs[index];
            let is_inline = paragraph != NONE && n_plain[paragraph as usize] >= MIN_INLINE_WORDS;
            if has_heading && facts.n_words > 0 || facts.n_words >= MIN_TITLE_WORDS && !is_inline {
                self.is_strong[key as usize] = true;
            }
            if facts.n_words > 0 && !is_inline {
                entries.push(index as u32);
            }
        }
        self.mark_headed(page, zones);
        self.mark_alike(page, &entries);
        self.find_repeated(page, zones, &entries);
    }

    /// A link with a short name is an entry if most links with the same markup are, or if they lead to articles.
    fn mark_alike(&mut self, page: &PageFacts, entries: &[u32]) {
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &index in entries {
            groups.entry(markup_template(page, index)).or_default().push(self.keys[index as usize]);
        }
        // Marked at the end, so that the order of the groups does not matter.
        let mut found: Vec<u32> = Vec::new();
        for mut keys in groups.into_values() {
            keys.sort_unstable();
            keys.dedup();
            let n_strong = keys.iter().filter(|key| self.is_strong[**key as usize]).count();
            let n_articles = keys.iter().filter(|key| names_article(&self.names[**key as usize])).count();
            if n_strong >= 3 && 2 * n_strong >= keys.len() || are_articles(n_articles, keys.len()) {
                found.extend(keys);
            }
        }
        found.into_iter().for_each(|key| self.is_strong[key as usize] = true);
    }

    /// Collects names of links with several targets, and headings that occur twice.
    fn find_repeated(&mut self, page: &PageFacts, zones: &PageZones, entries: &[u32]) {
        let mut first_key: HashMap<u64, u32> = HashMap::new();
        for &index in entries {
            let (words, key) = (words_hash(page, index), self.keys[index as usize]);
            if *first_key.entry(words).or_insert(key) != key {
                self.repeated.insert(words);
            }
        }
        let mut seen: HashSet<u64> = HashSet::new();
        for index in (0..page.facts.len() as u32).filter(|&index| zones.headings[index as usize] == index) {
            // A headline may occur twice with its link.
            let facts = page.facts(index);
            let words = words_hash(page, index);
            if facts.n_links == 0 && page.anchors[index as usize] == NONE && !seen.insert(words) {
                self.repeated.insert(words);
            }
        }
    }

    fn is_repeated(&self, page: &PageFacts, node: u32) -> bool {
        self.repeated.contains(&words_hash(page, node))
    }

    /// A heading without a link makes the only URL near it strong, as in cards that are covered by one link.
    fn mark_headed(&mut self, page: &PageFacts, zones: &PageZones) {
        let keys = self.keys_below(page, |_| true);
        for index in 0..page.facts.len() {
            let is_own = zones.headings[index] == index as u32 && !zones.is_frame[index];
            if !is_own
                || page.facts[index].n_words == 0
                || page.anchors[index] != NONE
                || keys[index] != KeySet::None
            {
                continue;
            }
            let above = std::iter::successors(Some(page.parents[index]), |at| {
                page.parents.get(*at as usize).copied().filter(|parent| *parent != NONE)
            });
            let found =
                above.take(MAX_CLIMB).filter(|at| *at != NONE).find(|at| keys[*at as usize] != KeySet::None);
            if let Some(KeySet::One(key)) = found.map(|at| keys[at as usize]) {
                self.is_strong[key as usize] = true;
            }
        }
    }

    /// The keys at or below each node.
    fn keys_below(&self, page: &PageFacts, counts: impl Fn(u32) -> bool) -> Vec<KeySet> {
        let mut below = vec![KeySet::None; page.facts.len()];
        for index in (0..page.facts.len()).rev() {
            let key = self.keys[index];
            if key != NONE && counts(key) {
                below[index] = below[index].join(KeySet::One(key));
            }
            let parent = page.parents[index];
            if parent != NONE {
                below[parent as usize] = below[parent as usize].join(below[index]);
            }
        }
        below
    }

    /// Drops candidates that link to a section of the site: a URL that is a prefix of two other items.
    fn drop_sections(&self, places: &mut Vec<ItemCandidate>) {
        let mut names: Vec<&str> =
            places.iter().filter_map(|place| Some(self.names[place.key? as usize].as_str())).collect();
        names.sort_unstable();
        names.dedup();
        let is_section = |name: &str| {
            let under = format!("{name}/");
            let first = names.partition_point(|other| *other < under.as_str());
            names.get(first + 1).is_some_and(|second| second.starts_with(&under))
        };
        let is_dropped: Vec<bool> = places
            .iter()
            .map(|place| place.key.is_some_and(|key| is_section(&self.names[key as usize])))
            .collect();
        let mut dropped = is_dropped.iter();
        places.retain(|_| !dropped.next().copied().unwrap_or(false));
    }
}

fn resolve(base: Option<&Url>, href: &str) -> Option<Url> {
    if href.is_empty() || href.starts_with('#') {
        return None;
    }
    let url = match base {
        Some(base) => base.join(href).ok()?,
        None => Url::parse(href).ok()?,
    };
    matches!(url.scheme(), "http" | "https" | "file").then_some(url)
}

/// The roots of all records with their keys.
fn find_records(page: &PageFacts, links: &CandidateLinks) -> Vec<(u32, u32)> {
    let keys = links.keys_below(page, |key| links.is_strong[key as usize]);
    let n_headings = headings_below(page);
    let is_short = |index: usize| {
        let facts = &page.facts[index];
        facts.n_words as f32 * (1.0 - facts.link_share()) <= MAX_RECORD_WORDS
    };
    let is_record = |index: usize| match keys[index] {
        KeySet::One(key) if n_headings[index] <= MAX_RECORD_HEADINGS && is_short(index) => Some(key),
        _ => None,
    };
    let mut records = Vec::new();
    let mut index = 0;
    while index < page.facts.len() {
        match is_record(index) {
            Some(key) => {
                records.push((index as u32, key));
                index = page.facts[index].end.max(index as u32 + 1) as usize;
            }
            None => index += 1,
        }
    }
    records
}

/// Headings with words at or below each node, except those inside or around links.
fn headings_below(page: &PageFacts) -> Vec<u16> {
    let mut below = vec![0u16; page.facts.len()];
    for index in (0..page.facts.len()).rev() {
        let facts = &page.facts[index];
        let is_own = is_heading(page.node(index as u32)) && page.anchors[index] == NONE && facts.n_links == 0;
        if is_own && facts.n_words > 0 {
            below[index] = below[index].saturating_add(1);
        }
        let parent = page.parents[index];
        if parent != NONE {
            below[parent as usize] = below[parent as usize].saturating_add(below[index]);
        }
    }
    below
}

/// A place that may hold an item.
struct ItemCandidate {
    root: u32,
    /// The number of its key. `None` for a heading without a link.
    key: Option<u32>,
    template: u32,
    title: String,
    teaser: String,
    n_title_words: u32,
    is_headed: bool,
    is_in_sidebar: bool,
    is_advertisement: bool,
}

impl ItemCandidate {
    fn new(
        page: &PageFacts,
        zones: &PageZones,
        root: u32,
        key: Option<u32>,
        links: &CandidateLinks,
    ) -> ItemCandidate {
        let (title_node, is_headed) = title_node(page, zones, root, key, links);
        let title =
            title_node.map_or_else(String::new, |node| visible_text(page, node, None, MAX_TITLE_BYTES));
        ItemCandidate {
            root,
            key,
            template: markup_template(page, root),
            n_title_words: title_node.map_or(0, |node| page.facts(node).n_words),
            teaser: visible_text(page, root, title_node, MAX_TEASER_BYTES),
            title,
            is_headed,
            is_in_sidebar: zones.is_in_sidebar[root as usize],
            is_advertisement: zones.is_advertisement[root as usize],
        }
    }
}

/// Minimum number of links to articles, and their share in quarters, that make links with short names a list.
const MIN_ARTICLES: usize = 5;

fn are_articles(n_articles: usize, n_links: usize) -> bool {
    n_articles >= MIN_ARTICLES && 4 * n_articles >= 3 * n_links
}

/// A hash of the visible words below a node.
fn words_hash(page: &PageFacts, node: u32) -> u64 {
    let texts = (node..page.facts(node).end).filter(|&index| page.is_seen[index as usize]);
    let words = texts.flat_map(|index| page.node(index).text.split_whitespace());
    let bytes = words.flat_map(|word| word.bytes().chain([b' ']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A heading with fewer words may be a kicker, the name of a section above the headline.
const MIN_HEADING_WORDS: u32 = 3;

/// The node of the headline: the first heading with words, or else the link with the most words. After a kicker it is
/// the heading or link that carries the words.
fn title_node(
    page: &PageFacts,
    zones: &PageZones,
    root: u32,
    key: Option<u32>,
    links: &CandidateLinks,
) -> (Option<u32>, bool) {
    // If the record is inside a heading, the whole record is the headline.
    let around = zones.headings[root as usize];
    if around != NONE && page.facts(around).n_links <= 1 {
        return (Some(root), true);
    }
    let nodes = || root..page.facts(root).end;
    let most_words = |index: &u32| (page.facts(*index).n_words, std::cmp::Reverse(*index));
    let headings =
        || nodes().filter(|&index| zones.headings[index as usize] == index && page.facts(index).n_words > 0);
    let own = || nodes().filter(|&index| key.is_some_and(|key| links.keys[index as usize] == key));
    if let Some(first) = headings().next() {
        let is_kicker = page.facts(first).n_words < MIN_HEADING_WORDS || links.is_repeated(page, first);
        if !is_kicker {
            return (Some(first), true);
        }
        let longest = headings().max_by_key(most_words).unwrap_or(first);
        // A heading inside a link, or with one, is the headline however short it is.
        let is_linked = page.facts(first).n_links > 0 || page.anchors[first as usize] != NONE;
        if page.facts(longest).n_words > page.facts(first).n_words || is_linked {
            return (Some(longest), true);
        }
        let carries_words =
            |index: &u32| page.facts(*index).n_words >= MIN_TITLE_WORDS && !links.is_repeated(page, *index);
        return (own().filter(carries_words).max_by_key(most_words).or(Some(first)), true);
    }
    let longest = own().max_by_key(most_words);
    (longest.filter(|&index| page.facts(index).n_words > 0), around != NONE)
}

/// The visible words in a part of the page, except those of node `without`.
fn visible_text(page: &PageFacts, root: u32, without: Option<u32>, max_bytes: usize) -> String {
    let mut text = String::new();
    let mut index = root;
    let end = page.facts(root).end;
    while index < end && text.len() < max_bytes {
        if without == Some(index) {
            index = page.facts(index).end.max(index + 1);
            continue;
        }
        let node = page.node(index);
        if node.is_text() && page.is_seen[index as usize] {
            for word in node.text.split_whitespace() {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(word);
            }
        }
        index += 1;
    }
    text.truncate(text.floor_char_boundary(max_bytes));
    xml_safe(text)
}

/// Hash of tag and first two classes (without digits) of a node and of the two nodes above it.
fn markup_template(page: &PageFacts, root: u32) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut at = root;
    for _ in 0..3 {
        if at == NONE {
            break;
        }
        let node = page.node(at);
        node.tag.bytes().for_each(&mut add);
        let classes = node.attribute("class").unwrap_or("").split_ascii_whitespace().take(2);
        for class in classes {
            add(b'.');
            class.bytes().filter(|byte| !byte.is_ascii_digit()).for_each(&mut add);
        }
        add(b'/');
        at = page.parents[at as usize];
    }
    (hash >> 32) as u32 ^ hash as u32
}

/// Headings without links, as in a live blog, each with the small part of the page that belongs to it.
fn plain_records(
    page: &PageFacts,
    zones: &PageZones,
    links: &CandidateLinks,
    is_covered: &[bool],
) -> Vec<ItemCandidate> {
    let n_headings = headings_below(page);
    let mut found: Vec<ItemCandidate> = Vec::new();
    for index in 0..page.facts.len() {
        let facts = &page.facts[index];
        let is_heading =
            zones.headings[index] == index as u32 && facts.n_links == 0 && page.anchors[index] == NONE;
        if !is_heading || facts.n_words < 3 || zones.is_frame[index] || is_covered[index] {
            continue;
        }
        let mut root = index as u32;
        let mut parent = page.parents[index];
        let fits = |at: u32| {
            let facts = page.facts(at);
            n_headings[at as usize] <= 1
                && facts.n_words <= MAX_PLAIN_RECORD_WORDS
                && !is_covered[at as usize]
                && facts.n_links <= 2
        };
        while parent != NONE && fits(parent) {
            root = parent;
            parent = page.parents[root as usize];
        }
        if root != index as u32 && found.last().is_none_or(|last| page.facts(last.root).end <= root) {
            found.push(ItemCandidate::new(page, zones, root, None, links));
        }
    }
    found
}

/// The templates whose candidates form lists.
fn list_templates(places: &[ItemCandidate], links: &CandidateLinks) -> HashSet<u32> {
    let mut groups: HashMap<u32, Vec<&ItemCandidate>> = HashMap::new();
    for place in places {
        groups.entry(place.template).or_default().push(place);
    }
    groups.into_iter().filter(|(_, group)| is_list(group, links)).map(|(template, _)| template).collect()
}

fn is_list(group: &[&ItemCandidate], links: &CandidateLinks) -> bool {
    let n_advertisements = group.iter().filter(|place| place.is_advertisement).count();
    if 2 * n_advertisements > group.len() {
        return false;
    }
    let mut keys: Vec<Option<&str>> =
        group.iter().map(|place| place.key.map(|key| links.names[key as usize].as_str())).collect();
    let n_plain = keys.iter().filter(|key| key.is_none()).count();
    keys.sort_unstable();
    keys.dedup();
    let n_keys = keys.iter().flatten().count();
    let mut n_words: Vec<u32> = group.iter().map(|place| place.n_title_words).collect();
    n_words.sort_unstable();
    let median = n_words[n_words.len() / 2];
    let n_headed = group.iter().filter(|place| place.is_headed).count();
    if n_plain > 0 && n_keys == 0 {
        return n_plain >= 3;
    }
    let n_articles = keys.iter().flatten().filter(|key| names_article(key)).count();
    if are_articles(n_articles, n_keys) && median >= 2 {
        return true;
    }
    match n_keys {
        3.. => median >= MIN_TITLE_WORDS || median >= 2 && 2 * n_headed > group.len(),
        _ => median >= 3 && n_headed == group.len() || median >= 5,
    }
}

/// Words of prose outside the items, and the largest number of them in one container.
fn count_prose_words(page: &PageFacts, zones: &PageZones, is_covered: &[bool]) -> (u32, u32) {
    let mut n_plain: HashMap<u32, u32> = HashMap::new();
    for (index, is_covered) in is_covered.iter().enumerate() {
        let is_prose = page.node(index as u32).is_text()
            && page.is_seen[index]
            && page.anchors[index] == NONE
            && !is_covered
            && !zones.is_frame[index];
        if is_prose && page.paragraphs[index] != NONE {
            *n_plain.entry(page.paragraphs[index]).or_default() += page.facts[index].n_words;
        }
    }
    let (mut n_words, mut together) = (0, HashMap::<u32, u32>::new());
    // The loop computes sums, so the order of the map does not matter.
    for (paragraph, n) in n_plain.into_iter().filter(|(_, n)| *n >= MIN_PROSE_WORDS) {
        n_words += n;
        let parent = page.parents[paragraph as usize];
        let above = page.parents.get(parent as usize).copied().unwrap_or(NONE);
        for around in [parent, above] {
            if around != NONE {
                *together.entry(around).or_default() += n;
            }
        }
    }
    #[expect(clippy::disallowed_methods, reason = "the largest, whatever the order")]
    let most = together.into_values().max().unwrap_or(0);
    (n_words, most)
}

/// Joins candidates with the same key into one item, at the first place.
fn join_places(places: Vec<ItemCandidate>, links: &CandidateLinks) -> Vec<ListItem> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut items: Vec<ListItem> = Vec::new();
    let main_host = links.main_host(&places);
    for place in places {
        let name = match place.key {
            Some(key) => links.names[key as usize].clone(),
            None => format!("#{}", place.title),
        };
        let at = *numbers.entry(name.clone()).or_insert(items.len());
        let stands = ItemPlace { template: place.template, title: place.title.clone() };
        if let Some(item) = items.get_mut(at) {
            if item.places.len() < MAX_PLACES {
                item.places.push(stands);
            }
            continue;
        }
        if items.len() >= MAX_ITEMS {
            break;
        }
        let is_elsewhere = place.key.is_some() && main_host.is_some_and(|main| host_with_port(&name) != main);
        let lesser = |is_lesser: bool| if is_lesser { LESSER_WEIGHT } else { 1.0 };
        items.push(ListItem {
            url: place.key.map_or_else(String::new, |key| links.resolver[key as usize].clone()),
            title: place.title,
            teaser: place.teaser,
            weight: lesser(place.is_in_sidebar) * lesser(is_elsewhere),
            places: vec![stands],
        });
    }
    items
}
