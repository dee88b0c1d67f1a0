//! A run of nodes -> its visible links, images and texts: the extension of VIPS in P-VISUAL 4 (docs/papers.md, Blocks
//! and Vi-XML).

use url::Url;

use super::facts::{NONE, PageFacts, is_image};
use super::id::IgnoredParameters;
use super::{Block, Image, Link, NodeId, Text, TextPosition};
use crate::page::layout::LayoutNode;

/// Resolves the URLs of one page.
pub(super) struct UrlResolver<'a> {
    base: Option<Url>,
    ignored: &'a IgnoredParameters,
}

impl<'a> UrlResolver<'a> {
    pub(super) fn new(base_url: &str, ignored: &'a IgnoredParameters) -> UrlResolver<'a> {
        UrlResolver { base: Url::parse(base_url).ok(), ignored }
    }

    /// The absolute URL, or the text as written if it cannot be resolved.
    fn resolve(&self, url: &str) -> String {
        let url = url.trim();
        let resolved = match &self.base {
            Some(base) => base.join(url),
            None => Url::parse(url),
        };
        resolved.map_or_else(|_| url.to_string(), String::from)
    }

    /// A `data:` URL contains the image itself. It is replaced by its hash.
    fn resolve_image(&self, source: &str) -> String {
        if source.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
            let kind = source[5..].split([';', ',']).next().unwrap_or("");
            let NodeId(hash) = Text::new(source).id;
            return format!("data:{kind},{hash:016x}");
        }
        self.resolve(source)
    }
}

/// The content of the nodes from `start` to `end` (exclusive).
pub(super) fn leaf(page: &PageFacts, resolver: &UrlResolver, start: u32, end: u32) -> Block {
    let mut reader = LeafReader {
        page,
        resolver,
        block: Block::leaf(vec![], vec![], vec![]),
        link: None,
        text: None,
        n_breaks: 0,
    };
    for index in start..end {
        reader.visit(index);
    }
    reader.close_link();
    reader.close_text();
    reader.block
}

struct OpenLink {
    anchor: u32,
    name: String,
    image_name: Option<String>,
    position: TextPosition,
    is_within_text: bool,
    /// Whether it is in the line of its paragraph, so that its words are part of the text.
    is_inline: bool,
}

/// An open paragraph. Its raw text contains the words of links too.
struct OpenText {
    paragraph: u32,
    raw: String,
    /// Whether there are words outside links. Without them the paragraph is a row of links.
    has_own_words: bool,
    /// Links and images inside, with bytes of the raw text.
    marks: Vec<Mark>,
    /// Byte after the last link.
    end_of_link: usize,
}

/// A link or image inside an open text.
struct Mark {
    kind: PositionedKind,
    number: usize,
    start: usize,
    /// Byte after the name of a link that is part of the text, otherwise `start`.
    end: usize,
}

/// The list that an index refers to.
#[derive(Clone, Copy)]
enum PositionedKind {
    Link,
    Image,
}

/// The state of reading a leaf: the open link and the open paragraph.
struct LeafReader<'a> {
    page: &'a PageFacts<'a>,
    resolver: &'a UrlResolver<'a>,
    block: Block,
    link: Option<OpenLink>,
    text: Option<OpenText>,
    n_breaks: u8,
}

impl LeafReader<'_> {
    fn visit(&mut self, index: u32) {
        if self.page.anchors[index as usize] != self.link.as_ref().map_or(NONE, |link| link.anchor) {
            self.close_link();
        }
        if !self.page.is_seen[index as usize] {
            return;
        }
        let node = self.page.node(index);
        if node.is_text() {
            self.visit_text(index, &node.text);
        } else {
            self.visit_element(index, node);
        }
    }

    fn visit_text(&mut self, index: u32, text: &str) {
        if self.page.anchors[index as usize] != NONE {
            return self.visit_link_text(index, text);
        }
        let is_blank = text.chars().all(is_space);
        self.open_text(index, is_blank);
        let paragraph = self.page.paragraphs[index as usize];
        if let Some(open) = self.text.as_mut().filter(|open| open.paragraph == paragraph) {
            open.raw.push_str(text);
            open.has_own_words |= text.contains(char::is_alphanumeric);
        }
        self.n_breaks = if is_blank { self.n_breaks } else { 0 };
    }

    fn visit_link_text(&mut self, index: u32, text: &str) {
        let is_blank = text.chars().all(is_space);
        let has_begun = self.link.as_ref().is_some_and(|link| !link.name.trim().is_empty());
        if !has_begun {
            // A link in a different paragraph, or after an empty line, ends the text before it.
            self.open_text(index, is_blank);
        }
        self.open_link(index);
        let Some(link) = &mut self.link else { return };
        link.name.push_str(text);
        if link.is_inline
            && let Some(open) = &mut self.text
        {
            open.raw.push_str(text);
        }
        self.n_breaks = if is_blank { self.n_breaks } else { 0 };
    }

    /// Continues the open text, or begins one if these are words of a new paragraph.
    fn open_text(&mut self, index: u32, is_blank: bool) {
        let paragraph = self.page.paragraphs[index as usize];
        let is_same = self.text.as_ref().is_some_and(|open| open.paragraph == paragraph) && self.n_breaks < 2;
        if !is_same && !is_blank {
            self.close_text();
            let (raw, marks) = (String::new(), Vec::new());
            self.text = Some(OpenText { paragraph, raw, has_own_words: false, marks, end_of_link: 0 });
        }
    }

    fn visit_element(&mut self, index: u32, node: &LayoutNode) {
        if node.tag == "br" {
            self.n_breaks = self.n_breaks.saturating_add(1);
            self.space();
            if let Some(link) = &mut self.link {
                link.name.push(' ');
            }
            return;
        }
        if self.page.paragraphs[index as usize] == index
            && let Some(link) = &mut self.link
        {
            link.name.push(' ');
        }
        if self.page.anchors[index as usize] == index {
            self.open_link(index);
        } else if is_image(node) {
            self.visit_image(index, node);
        } else if let Some(value) = button_text(node) {
            self.close_text();
            self.block.texts.extend(folded_text(value));
        }
    }

    fn visit_image(&mut self, index: u32, node: &LayoutNode) {
        let Some(source) = image_source(node) else { return };
        let source = self.resolver.resolve_image(source);
        let name = match node.attribute("alt").map(fold).filter(|alt| !alt.is_empty()) {
            Some(alt) => alt,
            None => file_name(&source).to_string(),
        };
        if self.page.anchors[index as usize] != NONE {
            self.open_link(index);
            if let Some(link) = &mut self.link {
                link.image_name.get_or_insert_with(|| name.clone());
            }
        }
        let (position, is_within_text) = self.here();
        if is_within_text && let Some(open) = &mut self.text {
            let (kind, number, start) = (PositionedKind::Image, self.block.images.len(), open.raw.len());
            open.marks.push(Mark { kind, number, start, end: start });
        }
        self.block.places.images.push(position);
        self.block.images.push(Image::ignoring(self.resolver.ignored, name, source));
    }

    /// The current position, and whether it is inside an open text.
    fn here(&self) -> (TextPosition, bool) {
        let text = self.block.texts.len() as u32;
        let byte = self.text.as_ref().map_or(0, |open| open.raw.len() as u32);
        (TextPosition { text, byte, n_bytes: 0 }, self.text.is_some())
    }

    fn open_link(&mut self, index: u32) {
        let anchor = self.page.anchors[index as usize];
        if self.link.as_ref().is_some_and(|link| link.anchor == anchor) {
            // A text may have begun with the first words of the link.
            let (here, is_within_text) = self.here();
            if let Some(link) = self.link.as_mut().filter(|link| link.name.trim().is_empty()) {
                (link.position, link.is_within_text) = (here, is_within_text);
            }
            return;
        }
        self.close_link();
        // Two links side by side are separate words.
        if self.text.as_ref().is_some_and(|open| open.end_of_link > 0 && open.end_of_link == open.raw.len()) {
            self.space();
        }
        let (position, is_within_text) = self.here();
        let is_inline =
            !self.page.facts(anchor).has_blocks && self.page.paragraphs[anchor as usize] != anchor;
        let (name, image_name) = (String::new(), None);
        self.link = Some(OpenLink { anchor, name, image_name, position, is_within_text, is_inline });
    }

    /// A link without words is named after its image or label. An invisible link is left out.
    fn close_link(&mut self) {
        let Some(mut link) = self.link.take() else { return };
        let node = self.page.node(link.anchor);
        let mut name = fold(&link.name);
        if name.is_empty() {
            let label = || ["aria-label", "title"].iter().find_map(|name| node.attribute(name)).map(fold);
            let has_box = node.rect.w > 1.0 && node.rect.h > 1.0;
            match link.image_name.or_else(|| label().filter(|label| has_box && !label.is_empty())) {
                Some(found) => name = found,
                None => return,
            }
            link.is_inline = false;
        }
        let url = self.resolver.resolve(node.attribute("href").unwrap_or(""));
        if link.is_within_text
            && link.position.text == self.block.texts.len() as u32
            && let Some(open) = &mut self.text
        {
            let start = (link.position.byte as usize).min(open.raw.len());
            let end = if link.is_inline { open.raw.len() } else { start };
            open.end_of_link = end;
            open.marks.push(Mark { kind: PositionedKind::Link, number: self.block.links.len(), start, end });
        }
        self.block.places.links.push(link.position);
        self.block.links.push(Link::ignoring(self.resolver.ignored, name, url));
    }

    fn close_text(&mut self) {
        self.n_breaks = 0;
        let Some(mut open) = self.text.take() else { return };
        if !open.has_own_words {
            open.cut_out_links();
        }
        let mut bytes: Vec<u32> = open.marks.iter().map(|mark| mark.start as u32).collect();
        let text = fold_marked(&open.raw, &mut bytes);
        for (mark, byte) in open.marks.iter().zip(bytes) {
            let is_named = mark.end > mark.start;
            let name = self.block.links.get(mark.number).filter(|_| is_named).map(|link| link.name.as_str());
            let n_bytes = name.filter(|name| text[byte as usize..].starts_with(name)).map_or(0, str::len);
            let places = &mut self.block.places;
            let position = match mark.kind {
                PositionedKind::Link => places.links.get_mut(mark.number),
                PositionedKind::Image => places.images.get_mut(mark.number),
            };
            if let Some(position) = position {
                (position.byte, position.n_bytes) = (byte, n_bytes as u32);
            }
        }
        if !text.is_empty() {
            self.block.texts.push(Text::new(text));
        }
    }

    fn space(&mut self) {
        if let Some(open) = &mut self.text {
            open.raw.push(' ');
        }
    }
}

impl OpenText {
    /// Leaves only the signs between links, at their places.
    fn cut_out_links(&mut self) {
        for mark in self.marks.iter_mut().filter(|mark| mark.end > mark.start) {
            self.raw.replace_range(mark.start..mark.end, &" ".repeat(mark.end - mark.start));
            mark.end = mark.start;
        }
    }
}

fn folded_text(text: &str) -> Option<Text> {
    let text = fold(text);
    (!text.is_empty()).then(|| Text::new(text))
}

/// White space, invisible characters, and characters that XML forbids.
fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Like [`fold`], but also moves each mark from a byte of the raw text to the same byte in the result, or to the next
/// word if there was white space. There are few marks, and they are nearly sorted.
fn fold_marked(text: &str, marks: &mut [u32]) -> String {
    let mut order: Vec<usize> = (0..marks.len()).collect();
    order.sort_by_key(|&mark| marks[mark]);
    let mut order = order.into_iter().peekable();
    let mut folded = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        if !folded.is_empty() {
            folded.push(' ');
        }
        while let Some(mark) = order.next_if(|&mark| marks[mark] as usize <= at) {
            marks[mark] = folded.len() as u32;
        }
        let (word, after) = rest.split_at(end_of_word(rest));
        while let Some(mark) = order.next_if(|&mark| (marks[mark] as usize) < at + word.len()) {
            marks[mark] = (folded.len() + marks[mark] as usize - at) as u32;
        }
        folded.push_str(word);
        rest = after.trim_start_matches(is_space);
    }
    order.for_each(|mark| marks[mark] = folded.len() as u32);
    folded
}

/// Reduces white space to single spaces and trims the text.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        let (word, after) = rest.split_at(end_of_word(rest));
        folded.push_str(word);
        rest = after.trim_start_matches(is_space);
    }
    folded
}

/// Number of bytes before the first space. ASCII characters need no decoding.
fn end_of_word(text: &str) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        at += match byte {
            b'!'..=b'~' => 1,
            _ => match text[at..].chars().next() {
                Some(letter) if !is_space(letter) => letter.len_utf8(),
                _ => break,
            },
        };
    }
    at
}

/// The label of an `<input>` button.
fn button_text<'a>(node: &'a LayoutNode) -> Option<&'a str> {
    let kind = node.attribute("type")?;
    let is_button = ["submit", "button", "reset"].iter().any(|name| kind.eq_ignore_ascii_case(name));
    (node.tag == "input" && is_button).then(|| node.attribute("value")).flatten()
}

/// The URL of an image. Pages that load images lazily store it in a different attribute next to a placeholder.
fn image_source<'a>(node: &'a LayoutNode) -> Option<&'a str> {
    let attribute = |name: &&str| node.attribute(name).map(str::trim).filter(|value| !value.is_empty());
    let source = attribute(&"src");
    let is_placeholder =
        source.is_none_or(|source| source.get(..5).is_some_and(|s| s.eq_ignore_ascii_case("data:")));
    let late = || ["data-src", "data-original", "data-lazy-src"].iter().find_map(attribute);
    let first_of_set = || attribute(&"srcset")?.split([' ', ',']).next();
    if is_placeholder { late().or_else(first_of_set).or(source) } else { source }
}

fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn folding_joins_the_words(text in "([a-z.é日\u{a0}\u{2003}\t\n \u{1}\u{85}\u{ffff}]|\\PC){0,40}") {
            let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(fold(&text), words.join(" "));
        }

        #[test]
        fn marks_stay_between_the_same_words(text in "([a-c]|  ){0,30}", marks in proptest::collection::vec(0usize..40, 0..5)) {
            let mut found: Vec<u32> =
                marks.iter().map(|mark| text[..(*mark).min(text.len())].rfind(' ').map_or(0, |at| at + 1) as u32).collect();
            let expected: Vec<usize> = found.iter().map(|mark| text[..*mark as usize].split_whitespace().count()).collect();
            let folded = fold_marked(&text, &mut found);
            prop_assert_eq!(&folded, &fold(&text));
            for (mark, n_before) in found.into_iter().zip(expected) {
                prop_assert_eq!(folded[..mark as usize].split_whitespace().count(), n_before);
            }
        }
    }
}
