//! Rewrites the list of a captured channel page with the items that it must have had at a different time, marked as
//! inferred (P-FEED 6).
//!
//! The list is found by the URLs of known items: similar siblings, most of which link to different items. An item in
//! the capture keeps its entry. Any other item gets a copy of an entry with its own headline, URL and summary, and
//! without all other content. The result neither runs scripts nor fetches anything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use perennial_core::text::dom::{Dom, DomKind, DomNode};
use perennial_core::text::markup::escaped;
use perennial_core::url::canonical;
use url::Url;

/// An item of the list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChannelItem {
    pub title: String,
    /// The canonical URL of its page.
    pub url: Option<String>,
    /// The summary in the feed; empty if only the headline is known.
    pub summary: String,
    /// A note on how it is known.
    pub note: String,
}

/// Fewest entries of a list.
const MIN_ENTRIES: usize = 2;
/// A longer text of an entry is its summary.
const MIN_SUMMARY_LENGTH: usize = 40;
/// Longest stylesheet that is copied.
const MAX_STYLE_BYTES: usize = 1 << 20;

/// The common properties of the entries of a list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EntryShape<'a> {
    parent: u32,
    tag: &'a str,
    class: Option<&'a str>,
}

/// A channel page whose list is replaced.
pub struct ChannelPage<'a> {
    pub dom: &'a Dom,
    pub url: &'a Url,
    /// URLs of all items that its feeds ever had. They identify the list.
    pub known: &'a HashSet<String>,
    /// The items to list, in order.
    pub items: &'a [ChannelItem],
    /// A note to the reader at the top of the page.
    pub notice: &'a str,
    /// Returns the text of a captured stylesheet.
    pub style: &'a dyn Fn(&str) -> Option<String>,
}

impl ChannelPage<'_> {
    /// The page as HTML; `None` if it has no list of known items.
    pub fn to_html(&self) -> Option<String> {
        let list = self.list()?;
        let mut out = String::from("<!doctype html>");
        self.write(0, &list, &mut out);
        Some(out)
    }

    /// The entries of the list, each with the known URL to which it links.
    fn list(&self) -> Option<EntryList> {
        let links = self.known_links();
        let mut groups: BTreeMap<EntryShape<'_>, Vec<(u32, String)>> = BTreeMap::new();
        for (link, url) in &links {
            // Each element around a link may be the entry. The tree is bounded in depth.
            let around = std::iter::successors(Some(*link), |&node| self.dom.nodes[node as usize].parent);
            for node in around {
                let source = &self.dom.nodes[node as usize];
                let Some(parent) = source.parent else { break };
                let shape = EntryShape { parent, tag: source.tag(), class: source.first_class() };
                let group = groups.entry(shape).or_default();
                // An entry often links to its page several times.
                if group.last().is_none_or(|(last, _)| *last != node) {
                    group.push((node, url.clone()));
                }
            }
        }
        let n_distinct =
            |group: &[(u32, String)]| group.iter().map(|(_, url)| url).collect::<HashSet<_>>().len();
        let most = groups.values().map(|group| n_distinct(group)).max()?;
        // If several lists have equally many entries, the outermost has complete ones.
        let (best, _) = groups.iter().find(|(_, group)| n_distinct(group) == most)?;
        // Columns and rows may split a list into several of the same shape.
        let shape = |parent: u32| {
            let source = &self.dom.nodes[parent as usize];
            (self.depth(parent), source.tag(), source.first_class())
        };
        let is_alike = |other: &EntryShape<'_>| {
            (other.tag, other.class) == (best.tag, best.class) && shape(other.parent) == shape(best.parent)
        };
        let alike = groups.iter().filter(|(other, _)| is_alike(other));
        let own: Vec<(u32, String)> = alike.flat_map(|(_, group)| group.iter().cloned()).collect();
        (most >= MIN_ENTRIES).then(|| EntryList::new(self.dom, best.parent, own))
    }

    fn depth(&self, node: u32) -> usize {
        std::iter::successors(self.dom.nodes[node as usize].parent, |&node| {
            self.dom.nodes[node as usize].parent
        })
        .count()
    }

    fn known_links(&self) -> Vec<(u32, String)> {
        let base = self.dom.base_href().and_then(|href| self.url.join(href).ok());
        let base = base.as_ref().unwrap_or(self.url);
        let anchors = self.dom.nodes.iter().enumerate().filter(|(_, node)| node.tag() == "a");
        let resolved = anchors.filter_map(|(index, node)| {
            let url = canonical::resolve(base, node.attribute("href")?)?;
            Some((index as u32, String::from(url)))
        });
        resolved.filter(|(_, url)| self.known.contains(url)).collect()
    }

    /// Writes a node and its descendants. The recursion is as deep as the tree, which is bounded.
    fn write(&self, node: u32, list: &EntryList, out: &mut String) {
        if list.first() == node {
            self.write_items(list, out);
            return;
        }
        if list.entries.contains(&node) {
            return;
        }
        let source = &self.dom.nodes[node as usize];
        match &source.kind {
            DomKind::Text(text) => write_text(out, text),
            DomKind::Element { .. } if self.write_style(source, out) || !is_harmless(source) => {}
            DomKind::Element { .. } => {
                write_start(source, None, out);
                match source.tag() {
                    "head" => self.write_head(out),
                    "body" => {
                        let _ = write!(out, "<p role=note>{}</p>", escaped(self.notice));
                    }
                    _ => {}
                }
                self.dom.children(node).for_each(|child| self.write(child, list, out));
                write_end(source, out);
            }
        }
    }

    fn write_head(&self, out: &mut String) {
        let _ = write!(
            out,
            "<meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
             'unsafe-inline'; img-src data:\"><base href=\"{}\">",
            escaped(self.url.as_str())
        );
    }

    /// Writes a captured stylesheet in place of its link. Returns whether the element was such a link.
    fn write_style(&self, source: &DomNode, out: &mut String) -> bool {
        let is_sheet = source.tag() == "link"
            && source.attribute("rel").is_some_and(|rel| {
                rel.split_whitespace().any(|word| word.eq_ignore_ascii_case("stylesheet"))
            });
        if !is_sheet {
            return false;
        }
        let url = source.attribute("href").and_then(|href| canonical::resolve(self.url, href));
        if let Some(style) = url.and_then(|url| (self.style)(url.as_str())) {
            let style = &style[..style.floor_char_boundary(MAX_STYLE_BYTES)];
            // The stylesheet must not end the element.
            let _ = write!(out, "<style>{}</style>", style.replace("</", "<\\/"));
        }
        true
    }

    fn write_items(&self, list: &EntryList, out: &mut String) {
        for item in self.items {
            let own = item.url.as_ref().and_then(|url| list.by_url.get(url));
            match own {
                Some(&entry) => self.write(entry, &EntryList::none(), out),
                None => self.write_filled(list.first(), item, out),
            }
            let _ = write!(out, "<p role=note><small>{}</small></p>", escaped(&item.note));
        }
    }

    /// Writes a copy of an entry with the texts of a different item. The rest of the entry is unknown for that item.
    fn write_filled(&self, entry: u32, item: &ChannelItem, out: &mut String) {
        let places = EntryTexts::new(self.dom, entry);
        self.write_copy(entry, item, &places, out);
        if places.summary.is_none() && !item.summary.is_empty() {
            let _ = write!(out, "<p>{}</p>", escaped(&item.summary));
        }
    }

    fn write_copy(&self, node: u32, item: &ChannelItem, places: &EntryTexts, out: &mut String) {
        let source = &self.dom.nodes[node as usize];
        match &source.kind {
            DomKind::Text(_) if places.title == Some(node) => write_text(out, &item.title),
            DomKind::Text(_) if places.summary == Some(node) => write_text(out, &item.summary),
            DomKind::Text(_) => {}
            DomKind::Element { .. } if !is_harmless(source) || is_picture(source.tag()) => {}
            DomKind::Element { .. } => {
                write_start(source, Some(item.url.as_deref().unwrap_or_default()), out);
                self.dom.children(node).for_each(|child| self.write_copy(child, item, places, out));
                write_end(source, out);
            }
        }
    }
}

/// The entries that are replaced.
struct EntryList {
    entries: HashSet<u32>,
    /// The entry in whose place the new list is written.
    first: u32,
    by_url: HashMap<String, u32>,
}

impl EntryList {
    /// All siblings similar to the entries belong to the list, also those without a known link.
    fn new(dom: &Dom, parent: u32, found: Vec<(u32, String)>) -> EntryList {
        let is_own = |node: u32| dom.nodes[node as usize].parent == Some(parent);
        let first = found.iter().map(|(node, _)| *node).find(|&node| is_own(node)).unwrap_or_default();
        let sample = &dom.nodes[first as usize];
        let is_alike = |node: &u32| {
            let other = &dom.nodes[*node as usize];
            other.tag() == sample.tag() && other.first_class() == sample.first_class()
        };
        let entries =
            dom.children(parent).filter(is_alike).chain(found.iter().map(|(node, _)| *node)).collect();
        let mut by_url = HashMap::new();
        for (node, url) in found {
            by_url.entry(url).or_insert(node);
        }
        EntryList { entries, first, by_url }
    }

    /// A list without entries, so that nothing is replaced.
    fn none() -> EntryList {
        EntryList { entries: HashSet::new(), first: u32::MAX, by_url: HashMap::new() }
    }

    fn first(&self) -> u32 {
        self.first
    }
}

/// The text nodes of headline and summary in an entry.
struct EntryTexts {
    title: Option<u32>,
    summary: Option<u32>,
}

impl EntryTexts {
    fn new(dom: &Dom, entry: u32) -> EntryTexts {
        let mut is_linked = HashMap::new();
        let mut title: Option<(usize, u32)> = None;
        let mut summary: Option<(usize, u32)> = None;
        for node in entry..dom.nodes[entry as usize].end {
            let source = &dom.nodes[node as usize];
            let above =
                node > entry && source.parent.is_some_and(|parent| is_linked.get(&parent) == Some(&true));
            is_linked.insert(node, above || source.tag() == "a");
            let DomKind::Text(text) = &source.kind else { continue };
            let length = text.trim().chars().count();
            let place = if above { &mut title } else { &mut summary };
            let least = if above { 1 } else { MIN_SUMMARY_LENGTH };
            if length >= least && place.is_none_or(|(most, _)| length > most) {
                *place = Some((length, node));
            }
        }
        EntryTexts { title: title.map(|(_, node)| node), summary: summary.map(|(_, node)| node) }
    }
}

/// Whether an element cannot run, fetch or embed anything, and does not describe the page to the browser.
fn is_harmless(node: &DomNode) -> bool {
    node.is_html()
        && !matches!(
            node.tag(),
            "script"
                | "noscript"
                | "iframe"
                | "frame"
                | "frameset"
                | "object"
                | "embed"
                | "applet"
                | "portal"
                | "template"
                | "base"
                | "meta"
                | "link"
                | "audio"
                | "video"
                | "source"
                | "track"
                | "form"
                | "input"
                | "button"
                | "select"
                | "textarea"
        )
}

fn is_picture(tag: &str) -> bool {
    matches!(tag, "img" | "picture" | "figure" | "time")
}

fn is_void(tag: &str) -> bool {
    matches!(tag, "area" | "br" | "col" | "hr" | "img" | "wbr")
}

/// Writes a start tag with the attributes for layout only, so that nothing can run. `href` replaces every link if it is
/// given.
fn write_start(source: &DomNode, href: Option<&str>, out: &mut String) {
    let DomKind::Element { attributes, .. } = &source.kind else { return };
    let _ = write!(out, "<{}", source.tag());
    for attribute in attributes {
        let name: &str = &attribute.name.local;
        let is_kept = matches!(
            name,
            "class"
                | "id"
                | "style"
                | "lang"
                | "dir"
                | "title"
                | "alt"
                | "width"
                | "height"
                | "colspan"
                | "rowspan"
        );
        if is_kept && !(href.is_some() && matches!(name, "id" | "title" | "alt")) {
            let _ = write!(out, " {name}=\"{}\"", escaped(&attribute.value));
        }
        let is_web = |value: &str| {
            !value.contains(':') || value.starts_with("http://") || value.starts_with("https://")
        };
        if name == "href" && source.tag() == "a" && (href.is_some() || is_web(attribute.value.trim())) {
            let _ = write!(out, " href=\"{}\"", escaped(href.unwrap_or(attribute.value.trim())));
        }
    }
    out.push('>');
}

fn write_end(source: &DomNode, out: &mut String) {
    if !is_void(source.tag()) {
        let _ = write!(out, "</{}>", source.tag());
    }
}

fn write_text(out: &mut String, text: &str) {
    // Line ends between tags need no escape.
    for (place, line) in text.split('\n').enumerate() {
        if place > 0 {
            out.push('\n');
        }
        let _ = write!(out, "{}", escaped(line));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = "<title>News</title><link rel=stylesheet href=/s.css><script>run()</script><body onload=run()><h1>News</h1><ul class=l>\
        <li class=e onclick=run()><a href=/2><b>Second</b></a><p>What the second article is about, in one line.</p><i>by Ann</i></li>\
        <li class=e><a href=/1>First</a><p>What the first article is about, in another line.</p></li></ul><p>Imprint</p>";

    fn items(names: &[&str]) -> Vec<ChannelItem> {
        let item = |name: &&str| ChannelItem {
            title: format!("Title of <{name}>"),
            url: Some(format!("http://a.example/{name}")),
            summary: if *name == "3" { String::new() } else { format!("About {name} & more") },
            note: format!("note {name}"),
        };
        names.iter().map(item).collect()
    }

    fn refill(html: &str, known: &[&str], listed: &[&str]) -> Option<String> {
        let known = known.iter().map(|name| format!("http://a.example/{name}")).collect();
        let page = ChannelPage {
            dom: &Dom::parse(html),
            url: &Url::parse("http://a.example/").unwrap(),
            known: &known,
            items: &items(listed),
            notice: "Inferred, not captured.",
            style: &|url| (url == "http://a.example/s.css").then(|| "p { color: red } </style>".to_owned()),
        };
        page.to_html()
    }

    #[test]
    fn the_list_is_replaced_and_the_rest_stays() {
        let html = refill(PAGE, &["1", "2", "3", "4"], &["4", "1"]).unwrap();
        assert!(html.contains("<li class=\"e\"><a href=\"http://a.example/4\"><b>Title of &lt;4&gt;</b></a><p>About 4 &amp; more</p><i></i></li>"), "{html}");
        assert!(html.contains("<a href=\"/1\">First</a>"), "what the capture shows stays: {html}");
        assert!(
            !html.contains("Second") && !html.contains("Ann"),
            "what is known of another item only is not said: {html}"
        );
        assert!(html.contains("<h1>News</h1>") && html.contains("<p>Imprint</p>"), "{html}");
        assert!(html.contains("<style>p { color: red } <\\/style></style>"), "{html}");
        assert_eq!((html.matches("Inferred").count(), html.matches("note ").count()), (1, 2));
        assert!(!html.contains("script>") && !html.contains("run()"), "nothing runs: {html}");
    }

    #[test]
    fn a_page_without_a_list_is_not_filled() {
        assert_eq!(refill("<p>Nothing <a href=/1>here</a>", &["1", "2"], &["1"]), None);
        assert_eq!(refill("", &["1"], &["1"]), None);
        assert_eq!(refill(PAGE, &["7", "8"], &["7"]), None, "its links are not those of the feed");
    }

    proptest! {
        /// For every page, each item is in the result once and in order, and nothing can run.
        #[test]
        fn all_items_are_there(parts in proptest::collection::vec(0usize..8, 0..30)) {
            const PARTS: [&str; 8] = ["<li><a href=/1>one</a>", "<li><a href=/2>two</a><p>text of some length, with a comma and more", "<ul>", "</ul>",
                "<script>x</script>", "<div onclick=x>", "<table><tr><td><a href=/3>three</a>", "<svg><a href=/1>"];
            let html: String = parts.iter().map(|&part| PARTS[part]).collect();
            if let Some(html) = refill(&html, &["1", "2", "3"], &["4", "2"]) {
                let places: Vec<usize> = ["note 4", "note 2"].iter().filter_map(|note| html.find(note)).collect();
                prop_assert!(places.len() == 2 && places[0] < places[1], "{html}");
                prop_assert!(!html.contains("<script") && !html.contains("onclick"), "{html}");
            }
        }
    }
}
