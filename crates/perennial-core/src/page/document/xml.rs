//! XML -> one text per element; RSS and Atom -> one block per item, with its title, link and summary.
//!
//! Broken XML is read as far as possible ([`crate::text::xml`]). [`crate::feed`] reads feeds for the crawl; here every
//! readable element counts.

use url::Url;

use super::draft::{DocumentDraft, DocumentUnit, UnitPlacement};
use crate::text::xml::{Scanner, Tag, XmlPiece, unescaped};

/// Maximum length of the text of one element.
const MAX_ELEMENT_BYTES: usize = 1 << 20;
/// Maximum length of an element or attribute name.
const MAX_NAME_BYTES: usize = 100;
/// Maximum nesting of elements.
const MAX_DEPTH: usize = 256;

/// Reads a document. Relative links resolve against `url`.
pub(super) fn read(text: &str, url: &str) -> DocumentDraft {
    let mut reader = UnitReader { base: Url::parse(url).ok(), ..UnitReader::default() };
    for piece in Scanner::new(text) {
        match piece {
            XmlPiece::Start(tag) => {
                reader.start(&tag);
                if tag.is_empty {
                    reader.end();
                }
            }
            XmlPiece::Text(text) => reader.text(&text),
            XmlPiece::Literal(text) => reader.text(text),
            XmlPiece::End(_) => reader.end(),
        }
    }
    reader.finish()
}

/// An open element.
struct OpenElement {
    name: String,
    text: String,
    href: Option<String>,
}

#[derive(Default)]
struct UnitReader {
    draft: DocumentDraft,
    base: Option<Url>,
    open: Vec<OpenElement>,
    /// Number of open elements beyond the maximum nesting.
    n_deeper: usize,
    is_feed: bool,
    /// The content so far of the open item or of the open child of the root.
    unit: DocumentUnit,
    item: OpenItem,
}

/// An item of a feed, or the feed itself.
#[derive(Default)]
struct OpenItem {
    is_open: bool,
    title: String,
    link: String,
    texts: Vec<String>,
}

impl UnitReader {
    fn start(&mut self, tag: &Tag<'_>) {
        if self.open.len() >= MAX_DEPTH {
            self.n_deeper += 1;
            return;
        }
        let name = tag.local_name();
        let name = name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned();
        if self.open.is_empty() {
            self.is_feed = matches!(name.as_str(), "rss" | "feed" | "RDF");
        }
        if self.is_feed && is_item(&name) {
            self.close_item();
            self.item.is_open = true;
        }
        let mut href = None;
        for attribute in tag.raw_attributes() {
            let key = attribute.name;
            let key = &key[..key.floor_char_boundary(MAX_NAME_BYTES)];
            let value = unescaped(attribute.value).replace(['\t', '\n', '\r'], " ");
            match key {
                "href" if self.is_feed => href = Some(value),
                // Schema and language attributes are not for readers.
                key if key.starts_with("xmlns") || key.contains(':') => {}
                _ if self.is_feed || value.is_empty() => {}
                key => self.unit.texts.push(format!("{name} {key}: {value}")),
            }
        }
        self.open.push(OpenElement { name, text: String::new(), href });
    }

    fn text(&mut self, piece: &str) {
        if let Some(open) = self.open.last_mut().filter(|open| open.text.len() < MAX_ELEMENT_BYTES) {
            open.text.push_str(piece);
        }
    }

    fn end(&mut self) {
        if self.n_deeper > 0 {
            self.n_deeper -= 1;
            return;
        }
        let Some(open) = self.open.pop() else { return };
        match self.is_feed {
            true => self.end_feed_element(open),
            false => self.end_element(&open),
        }
    }

    fn end_element(&mut self, open: &OpenElement) {
        let text = open.text.trim();
        if !text.is_empty() {
            if self.draft.title.is_empty() && open.name == "title" {
                text.clone_into(&mut self.draft.title);
            }
            self.unit.texts.push(format!("{}: {text}", open.name));
        }
        // Each child of the root is a unit.
        if self.open.len() <= 1 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let mut unit = std::mem::take(&mut self.unit);
        unit.key = unit.texts.first().cloned().unwrap_or_default();
        self.draft.add(unit);
    }

    fn end_feed_element(&mut self, open: OpenElement) {
        let text = without_tags(open.text.trim());
        match open.name.as_str() {
            name if is_item(name) => self.close_item(),
            "title" if self.item.title.is_empty() => self.item.title = text,
            "link" if self.item.link.is_empty() => self.item.link = open.href.unwrap_or(text),
            // Needed by feed readers, but not by people.
            "id" | "guid" | "generator" | "ttl" | "docs" | "language" | "link" => {}
            _ if text.is_empty() => {}
            "description" | "summary" | "content" | "encoded" | "subtitle" => self.item.texts.push(text),
            // The name is part of the text, which makes a changed date an edit of the same text.
            name => self.item.texts.push(format!("{name}: {text}")),
        }
    }

    /// Ends the open item or the head of the feed.
    fn close_item(&mut self) {
        let item = std::mem::take(&mut self.item);
        if !item.is_open && self.draft.title.is_empty() {
            item.title.clone_into(&mut self.draft.title);
        }
        let url = match &self.base {
            Some(base) => base.join(&item.link).map(String::from).unwrap_or(item.link.clone()),
            None => item.link.clone(),
        };
        let mut unit =
            DocumentUnit { key: item.title.clone(), place: UnitPlacement::Apart, ..DocumentUnit::default() };
        unit.texts = item.texts;
        match item.link.is_empty() {
            true if !item.title.is_empty() => unit.texts.insert(0, item.title),
            true => {}
            false => unit.links.push((super::draft::folded(&item.title), url)),
        }
        self.draft.add(unit);
    }

    fn finish(mut self) -> DocumentDraft {
        // A truncated file ends with all of its open elements.
        while let Some(open) = self.open.pop() {
            match self.is_feed {
                true => self.end_feed_element(open),
                false => self.end_element(&open),
            }
        }
        match self.is_feed {
            true => self.close_item(),
            false => self.flush(),
        }
        self.draft
    }
}

fn is_item(name: &str) -> bool {
    matches!(name, "item" | "entry")
}

/// Removes tags from a text, because summaries are often HTML.
fn without_tags(text: &str) -> String {
    if !text.contains('<') {
        return text.to_owned();
    }
    let (mut words, mut is_inside) = (String::with_capacity(text.len()), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied().unwrap_or(' ');
        match character {
            '<' if next.is_ascii_alphabetic() || matches!(next, '/' | '!') => {
                is_inside = true;
                words.push(' ');
            }
            '>' if is_inside => is_inside = false,
            _ if is_inside => {}
            character => words.push(character),
        }
    }
    words
}
