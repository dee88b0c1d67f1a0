//! A parsed page -> its leaves: the visible lines and paragraphs, each with its element.
//!
//! Inline elements are joined, so `<b>` or `<a>` does not split a sentence (P-FEED 4.2; docs/papers.md). Two
//! line breaks in a row end a leaf. All later steps use leaves and ranges of leaves. The leaves below an element are
//! contiguous, so a sum over them is the difference of two prefix sums.

use crate::text::dom::{Dom, DomKind, DomNode};
use crate::url::canonical::host_name;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LeafKind {
    Text,
    /// `h1` to `h6`, by its level.
    Heading(u8),
    Item,
    Cell,
    /// Text with its own line breaks, such as code.
    Preformatted,
    /// The caption of a picture.
    Caption,
}

#[derive(Debug)]
pub(super) struct TextLeaf {
    /// The first node of its text.
    pub(super) node: u32,
    /// The last node of its text.
    pub(super) last: u32,
    /// The nearest block element around it.
    pub(super) block: u32,
    pub(super) kind: LeafKind,
    /// With single spaces; line breaks are kept.
    pub(super) text: String,
    /// Number of letters. Letters of scripts without spaces count more.
    pub(super) length: f32,
    /// The share of `text` in links.
    pub(super) link_share: f32,
    /// Whether none of its links targets a different page of the same site.
    pub(super) leads_out: bool,
    /// Whether it is running text: long enough, not mostly links, with punctuation.
    pub(super) is_good: bool,
}

/// The leaves of a page, with their positions.
pub(super) struct Leaves<'d> {
    pub(super) dom: &'d Dom,
    pub(super) leaves: Vec<TextLeaf>,
    /// By node: the number of leaves that begin before it, with one extra entry at the end.
    n_before: Vec<u32>,
}

/// The weight of a character of a script without spaces, in letters.
const DENSE_SCRIPT: f32 = 2.5;
/// The minimum length of running text.
const MIN_GOOD_LENGTH: f32 = 40.0;
/// Longer text needs no punctuation.
const LONG_LENGTH: f32 = 80.0;
/// The maximum share of links in a paragraph.
const MAX_LINK_SHARE: f32 = 0.4;
/// The same with more than [`LONG_LENGTH`] letters outside of links.
const MAX_LONG_LINK_SHARE: f32 = 0.75;

impl<'d> Leaves<'d> {
    pub(super) fn from_dom(dom: &'d Dom, url: Option<&str>) -> Leaves<'d> {
        let host = url.and_then(host_name).or_else(|| own_host(dom));
        let mut reader =
            LeafCollector { dom, block_of: vec![0; dom.nodes.len()], open: None, leaves: Vec::new() };
        let mut links: Vec<LinkReach> = vec![LinkReach::None; dom.nodes.len()];
        let mut n_before = Vec::with_capacity(dom.nodes.len() + 1);
        let mut node = 0;
        let mut hidden_until = 0;
        while node < dom.nodes.len() {
            let source = &dom.nodes[node];
            let parent = source.parent.map_or(node, |parent| parent as usize);
            links[node] =
                if source.tag() == "a" { LinkReach::from_anchor(source, host) } else { links[parent] };
            n_before.push(reader.n_leaves() as u32);
            if node >= hidden_until {
                if is_unseen(source) {
                    hidden_until = source.end as usize;
                } else {
                    reader.read(node, parent, links[node]);
                }
            }
            node += 1;
        }
        reader.close();
        n_before.push(reader.leaves.len() as u32);
        Leaves { dom, leaves: reader.leaves, n_before }
    }

    /// The leaf around or below a node, or the last one before it.
    pub(super) fn near(&self, node: u32) -> Option<usize> {
        let end = self.dom.nodes[node as usize].end;
        (self.n_before[end as usize] as usize).checked_sub(1)
    }

    /// The leaves below a node.
    pub(super) fn below(&self, node: u32) -> std::ops::Range<usize> {
        let end = self.dom.nodes[node as usize].end;
        self.n_before[node as usize] as usize..self.n_before[end as usize] as usize
    }
}

/// The target of a link.
#[derive(Clone, Copy, PartialEq)]
enum LinkReach {
    None,
    /// To a page of the same site.
    Within,
    /// To another site, or within the same page.
    Out,
}

impl LinkReach {
    fn from_anchor(anchor: &DomNode, own_host: Option<&str>) -> LinkReach {
        match (anchor.attribute("href"), own_host) {
            (None, _) => LinkReach::None,
            (Some(href), _) if href.starts_with('#') => LinkReach::Out,
            (Some(href), Some(own)) if host_name(href).is_some_and(|host| !is_same_site(host, own)) => {
                LinkReach::Out
            }
            _ => LinkReach::Within,
        }
    }
}

fn is_same_site(host: &str, own: &str) -> bool {
    let plain = |host: &str| host.to_ascii_lowercase().trim_start_matches("www.").to_owned();
    let (host, own) = (plain(host), plain(own));
    host == own || host.ends_with(&format!(".{own}")) || own.ends_with(&format!(".{host}"))
}

/// The page's own host, according to its metadata.
fn own_host(dom: &Dom) -> Option<&str> {
    let head = dom.child_of_root("head")?;
    let of = |node: &'_ DomNode| -> Option<usize> {
        let is_canonical = node.tag() == "link"
            && node.attribute("rel").is_some_and(|rel| rel.eq_ignore_ascii_case("canonical"));
        let is_url = node.tag() == "meta" && node.attribute("property") == Some("og:url");
        if is_canonical {
            Some(0)
        } else if is_url {
            Some(1)
        } else {
            None
        }
    };
    let mut found: [Option<&str>; 2] = [None, None];
    for child in dom.children(head) {
        let node = &dom.nodes[child as usize];
        if let Some(place) = of(node) {
            let url = node.attribute(if place == 0 { "href" } else { "content" });
            found[place] = found[place].or(url.and_then(host_name));
        }
    }
    found[0].or(found[1])
}

/// A leaf during parsing.
struct LeafDraft {
    node: u32,
    last: u32,
    block: u32,
    text: String,
    n_linked: usize,
    n_linked_out: usize,
    n_breaks: u8,
}

struct LeafCollector<'d> {
    dom: &'d Dom,
    /// By node: the nearest block element, including itself.
    block_of: Vec<u32>,
    open: Option<LeafDraft>,
    leaves: Vec<TextLeaf>,
}

impl LeafCollector<'_> {
    fn n_leaves(&self) -> usize {
        self.leaves.len() + usize::from(self.open.is_some())
    }

    fn read(&mut self, node: usize, parent: usize, link: LinkReach) {
        match &self.dom.nodes[node].kind {
            DomKind::Text(text) => {
                self.block_of[node] = self.block_of[parent];
                self.take(node, text, link);
            }
            DomKind::Element { .. } => {
                let tag = self.dom.nodes[node].tag();
                let is_block = !is_inline(tag);
                self.block_of[node] = if is_block { node as u32 } else { self.block_of[parent] };
                if tag == "br" {
                    self.break_line();
                } else if is_block {
                    self.close();
                }
            }
        }
    }

    fn take(&mut self, node: usize, text: &str, link: LinkReach) {
        let block = self.block_of[node];
        if self.open.as_ref().is_some_and(|open| open.block != block) {
            self.close();
        }
        let is_blank = text.chars().all(is_space);
        if self.open.is_none() {
            if is_blank {
                return;
            }
            let open = LeafDraft {
                node: node as u32,
                last: node as u32,
                block,
                text: String::new(),
                n_linked: 0,
                n_linked_out: 0,
                n_breaks: 0,
            };
            self.open = Some(open);
        }
        let is_preformatted = self.dom.nodes[block as usize].tag() == "pre";
        let Some(open) = &mut self.open else { return };
        let before = open.text.len();
        if is_preformatted {
            open.text.push_str(text);
        } else {
            push_words(&mut open.text, text, open.n_breaks > 0);
        }
        if !is_blank {
            open.n_breaks = 0;
            open.last = node as u32;
            let n_added = open.text.len() - before;
            open.n_linked += if link == LinkReach::None { 0 } else { n_added };
            open.n_linked_out += if link == LinkReach::Out { n_added } else { 0 };
        }
    }

    fn break_line(&mut self) {
        if let Some(open) = &mut self.open {
            open.n_breaks += 1;
            if open.n_breaks >= 2 {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        open.text.truncate(open.text.trim_end().len());
        let n_leading = open.text.len() - open.text.trim_start().len();
        open.text.drain(..n_leading);
        let link_share = open.n_linked as f32 / open.text.len().max(1) as f32;
        let kind = leaf_kind(self.dom, open.block);
        let length = text_length(&open.text);
        self.leaves.push(TextLeaf {
            node: open.node,
            last: open.last,
            block: open.block,
            kind,
            is_good: is_good(&open.text, length, link_share, kind),
            text: open.text,
            length,
            link_share: link_share.min(1.0),
            leads_out: open.n_linked > 0 && open.n_linked == open.n_linked_out,
        });
    }
}

/// Appends the words of `text` with single spaces, on a new line after a line break.
fn push_words(line: &mut String, text: &str, is_broken: bool) {
    let begins_with_space = text.starts_with(is_space);
    let mut is_first = true;
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        let needs_space = if is_first { begins_with_space } else { true };
        if is_first && is_broken && !line.is_empty() {
            line.truncate(line.trim_end().len());
            line.push('\n');
        } else if needs_space && !line.is_empty() && !line.ends_with(is_space) {
            line.push(' ');
        }
        line.push_str(word);
        is_first = false;
    }
    if !line.is_empty() && text.ends_with(is_space) && !line.ends_with(is_space) {
        line.push(' ');
    }
}

/// White space, including invisible separators.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}' | '\u{feff}')
}

pub(super) fn text_length(text: &str) -> f32 {
    if text.is_ascii() {
        return text.len() as f32;
    }
    text.chars().map(|c| if is_dense(c) { DENSE_SCRIPT } else { 1.0 }).sum()
}

/// Kana, Han and Hangul.
fn is_dense(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

fn is_good(text: &str, length: f32, link_share: f32, kind: LeafKind) -> bool {
    if length < MIN_GOOD_LENGTH || matches!(kind, LeafKind::Heading(_)) {
        return false;
    }
    let n_unlinked = length * (1.0 - link_share);
    let is_linked =
        link_share > MAX_LINK_SHARE && (n_unlinked < LONG_LENGTH || link_share > MAX_LONG_LINK_SHARE);
    !is_linked && (length >= LONG_LENGTH || has_sentence_mark(text))
}

/// Whether a text contains punctuation of sentences, in any common script.
pub(super) fn has_sentence_mark(text: &str) -> bool {
    text.contains(['.', ',', '!', '?', ';', ':', '…', '。', '、', '，', '！', '？', '।', '؟', '،', '۔'])
}

/// The kind of a leaf, from the nearest element around its block that determines it.
fn leaf_kind(dom: &Dom, block: u32) -> LeafKind {
    let mut node = Some(block);
    for _ in 0..4 {
        let Some(index) = node else { break };
        let source = &dom.nodes[index as usize];
        match source.tag() {
            "h1" => return LeafKind::Heading(1),
            "h2" => return LeafKind::Heading(2),
            "h3" => return LeafKind::Heading(3),
            "h4" => return LeafKind::Heading(4),
            "h5" | "h6" => return LeafKind::Heading(5),
            "li" | "dd" | "dt" => return LeafKind::Item,
            "td" | "th" => return LeafKind::Cell,
            "pre" => return LeafKind::Preformatted,
            "figcaption" => return LeafKind::Caption,
            "p" | "blockquote" | "article" | "section" | "main" => return LeafKind::Text,
            _ => node = source.parent,
        }
    }
    LeafKind::Text
}

/// Whether an element is never displayed.
fn is_unseen(node: &DomNode) -> bool {
    let tag = node.tag();
    if tag.is_empty() {
        return false;
    }
    let is_by_tag = matches!(
        tag,
        "head"
            | "script"
            | "style"
            | "noscript"
            | "template"
            | "svg"
            | "math"
            | "iframe"
            | "object"
            | "select"
            | "button"
            | "textarea"
            | "input"
            | "option"
            | "datalist"
            | "canvas"
            | "audio"
            | "video"
            | "map"
            | "dialog"
    );
    is_by_tag || is_hidden(node)
}

fn is_hidden(node: &DomNode) -> bool {
    let style = node.attribute("style").unwrap_or_default();
    let is_styled_away = style.len() > 9 && {
        let style: String =
            style.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
        style.contains("display:none") || style.contains("visibility:hidden")
    };
    is_styled_away || node.attribute("hidden").is_some()
}

/// Elements within a line, including unknown ones, as in browsers.
fn is_inline(tag: &str) -> bool {
    !matches!(
        tag,
        "html"
            | "body"
            | "address"
            | "article"
            | "aside"
            | "blockquote"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "dir"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hgroup"
            | "hr"
            | "legend"
            | "li"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "p"
            | "pre"
            | "search"
            | "section"
            | "summary"
            | "table"
            | "tbody"
            | "td"
            | "tfoot"
            | "th"
            | "thead"
            | "tr"
            | "ul"
            | "caption"
            | "picture"
            | "optgroup"
    )
}
