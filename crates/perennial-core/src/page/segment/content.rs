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
        within: Vec::new(),
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
    spot: TextPosition,
    is_within_text: bool,
}

/// The state of reading a leaf: the open link and the open paragraph.
struct LeafReader<'a> {
    page: &'a PageFacts<'a>,
    resolver: &'a UrlResolver<'a>,
    block: Block,
    link: Option<OpenLink>,
    text: Option<(u32, String)>,
    n_breaks: u8,
    /// Links and images inside the open text. Their positions are bytes of the raw text until it is closed.
    within: Vec<(PositionedKind, usize)>,
}

/// The list that an index refers to.
#[derive(Clone, Copy)]
enum PositionedKind {
    Link,
    Image,
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
        let is_blank = text.chars().all(is_space);
        if self.page.anchors[index as usize] != NONE {
            self.open_link(index);
            // The texts before and after a link are separate words.
            self.space();
            if let Some(link) = &mut self.link {
                link.name.push_str(text);
            }
            return;
        }
        let paragraph = self.page.paragraphs[index as usize];
        let is_same = self.text.as_ref().is_some_and(|(open, _)| *open == paragraph) && self.n_breaks < 2;
        if !is_same && !is_blank {
            self.close_text();
            self.text = Some((paragraph, String::new()));
        }
        if let Some((open, open_text)) = &mut self.text
            && *open == paragraph
        {
            open_text.push_str(text);
        }
        self.n_breaks = if is_blank { self.n_breaks } else { 0 };
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
        let (spot, is_within_text) = self.here();
        if is_within_text {
            self.within.push((PositionedKind::Image, self.block.images.len()));
        }
        self.block.places.images.push(spot);
        self.block.images.push(Image::ignoring(self.resolver.ignored, name, source));
    }

    /// The current position, and whether it is inside an open text.
    fn here(&self) -> (TextPosition, bool) {
        let text = self.block.texts.len() as u32;
        match &self.text {
            Some((_, open)) => (TextPosition { text, byte: open.len() as u32 }, true),
            None => (TextPosition { text, byte: 0 }, false),
        }
    }

    fn open_link(&mut self, index: u32) {
        let anchor = self.page.anchors[index as usize];
        if self.link.as_ref().is_none_or(|link| link.anchor != anchor) {
            self.close_link();
            // The texts before and after a link are separate words.
            self.space();
            let (spot, is_within_text) = self.here();
            self.link =
                Some(OpenLink { anchor, name: String::new(), image_name: None, spot, is_within_text });
        }
    }

    /// A link without words is named after its image or label. An invisible link is left out.
    fn close_link(&mut self) {
        let Some(link) = self.link.take() else { return };
        let node = self.page.node(link.anchor);
        let mut name = fold(&link.name);
        if name.is_empty() {
            let label = || ["aria-label", "title"].iter().find_map(|name| node.attribute(name)).map(fold);
            let has_box = node.rect.w > 1.0 && node.rect.h > 1.0;
            match link.image_name.or_else(|| label().filter(|label| has_box && !label.is_empty())) {
                Some(found) => name = found,
                None => return,
            }
        }
        let url = self.resolver.resolve(node.attribute("href").unwrap_or(""));
        if link.is_within_text && self.text.is_some() && link.spot.text == self.block.texts.len() as u32 {
            self.within.push((PositionedKind::Link, self.block.links.len()));
        }
        self.block.places.links.push(link.spot);
        self.block.links.push(Link::ignoring(self.resolver.ignored, name, url));
    }

    fn close_text(&mut self) {
        self.n_breaks = 0;
        let within = std::mem::take(&mut self.within);
        let Some((_, text)) = self.text.take() else { return };
        let mut marks: Vec<u32> =
            within.iter().filter_map(|mark| self.spot(mark).map(|spot| spot.byte)).collect();
        let text = fold_marked(&text, &mut marks);
        for (mark, byte) in within.iter().zip(marks) {
            if let Some(spot) = self.spot(mark) {
                spot.byte = byte;
            }
        }
        if !text.is_empty() {
            self.block.texts.push(Text::new(text));
        }
    }

    fn spot(&mut self, (kind, number): &(PositionedKind, usize)) -> Option<&mut TextPosition> {
        match kind {
            PositionedKind::Link => self.block.places.links.get_mut(*number),
            PositionedKind::Image => self.block.places.images.get_mut(*number),
        }
    }

    fn space(&mut self) {
        if let Some((_, text)) = &mut self.text {
            text.push(' ');
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

/// Like [`fold`], but also moves each mark from a byte of the raw text to the byte of the next word in the result.
/// There are few marks, and they are nearly sorted.
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
