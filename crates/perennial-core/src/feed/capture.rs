//! The content of one element -> its text: plain, HTML, or inline markup.

use data_encoding::BASE64_MIME_PERMISSIVE;
use url::Url;

use super::fragment::{absolute_html, looks_like_html};
use super::names::Meaning;
use super::{FeedText, MAX_LABEL_BYTES, MAX_VALUE_BYTES, Person};
use crate::text::markup::escaped;
use crate::text::untrusted::truncate;
use crate::text::xml::{Tag, unescaped};

/// How a format declares the type of a text.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Syntax {
    /// It does not.
    #[default]
    Rss,
    /// By the full media type and the `mode`.
    OldAtom,
    /// By one of three types; inline HTML is inside a `<div>` that does not belong to it.
    Atom,
}

/// The content of an element during parsing.
pub(super) struct TextCapture {
    pub(super) meaning: Meaning,
    /// The number of open elements, including this one.
    pub(super) level: usize,
    /// The text without tags.
    pub(super) plain: String,
    /// The text with its tags.
    markup: String,
    n_children: usize,
    /// Number of direct children, and whether there is text between them.
    n_outer: usize,
    has_outer_text: bool,
    is_first_div: bool,
    depth: usize,
    pub(super) href: Option<String>,
    pub(super) rel: String,
    pub(super) media_type: String,
    mode: String,
    pub(super) term: Option<String>,
    /// For a `guid`: whether it is the URL of a page.
    pub(super) is_permalink: Option<bool>,
}

impl TextCapture {
    pub(super) fn new(tag: &Tag<'_>, meaning: Meaning, level: usize) -> TextCapture {
        let attribute =
            |name: &str| tag.attribute(name).map(|value| truncate(value.trim(), MAX_LABEL_BYTES).to_owned());
        let is_guid = tag.local_name().eq_ignore_ascii_case("guid");
        let is_permalink =
            || !attribute("isPermaLink").is_some_and(|said| said.eq_ignore_ascii_case("false"));
        TextCapture {
            meaning,
            level,
            plain: String::new(),
            markup: String::new(),
            n_children: 0,
            n_outer: 0,
            has_outer_text: false,
            is_first_div: false,
            depth: 0,
            href: attribute("href").or_else(|| attribute("rdf:resource")),
            rel: attribute("rel").unwrap_or_default(),
            media_type: attribute("type").unwrap_or_default().to_ascii_lowercase(),
            mode: attribute("mode").unwrap_or_default().to_ascii_lowercase(),
            term: attribute("term").or_else(|| attribute("label")).or_else(|| attribute("text")),
            is_permalink: is_guid.then(is_permalink),
        }
    }

    /// Adds text with resolved references.
    pub(super) fn push(&mut self, text: &str) {
        self.plain.push_str(truncate(text, MAX_VALUE_BYTES.saturating_sub(self.plain.len())));
        let room = MAX_VALUE_BYTES.saturating_sub(self.markup.len());
        push_escaped(&mut self.markup, truncate(text, room));
        self.has_outer_text |= self.depth == 0 && !text.trim().is_empty();
    }

    /// Adds a start tag inside.
    pub(super) fn start_child(&mut self, tag: &Tag<'_>) {
        self.is_first_div |= self.n_children == 0 && tag.local_name().eq_ignore_ascii_case("div");
        self.n_children += 1;
        self.n_outer += usize::from(self.depth == 0);
        self.depth += 1;
        if self.markup.len() > MAX_VALUE_BYTES {
            return;
        }
        self.markup.push('<');
        self.markup.push_str(written_name(tag.name));
        for attribute in tag.raw_attributes() {
            // Namespace declarations are not HTML.
            if attribute.name.starts_with("xmlns:")
                || attribute.name == "xmlns" && attribute.value.ends_with("xhtml")
            {
                continue;
            }
            self.markup.push_str(&format!(
                " {}=\"{}\"",
                attribute.name,
                escaped(&unescaped(attribute.value))
            ));
        }
        self.markup.push_str(if is_void(tag.local_name()) { " />" } else { ">" });
    }

    /// Adds an end tag inside.
    pub(super) fn end_child(&mut self, name: &str) {
        self.depth = self.depth.saturating_sub(1);
        if self.markup.len() <= MAX_VALUE_BYTES && !is_void(crate::text::xml::local_name(name)) {
            self.markup.push_str(&format!("</{}>", written_name(name)));
        }
    }

    /// The text of the element. In Atom the default type is plain; RSS declares no type.
    pub(super) fn text(&self, syntax: Syntax, base: Option<&Url>) -> FeedText {
        let is_atom = syntax != Syntax::Rss;
        let media_type = self.media_type.as_str();
        let is_xml = media_type == "xhtml" || media_type.ends_with("+xml") || media_type.ends_with("/xml");
        let (value, is_html) = if let Some(text) = self.base64() {
            let is_html =
                media_type != "text/plain" && (media_type.contains("html") || looks_like_html(&text));
            (text, is_html)
        } else if self.wraps_escaped_html() {
            (self.plain.trim().to_owned(), true)
        } else if self.n_children > 0 || is_xml && self.mode != "escaped" {
            (self.inner_markup(syntax).trim().to_owned(), true)
        } else {
            let plain = self.plain.trim().to_owned();
            let is_html = match media_type {
                "html" | "text/html" | "application/xhtml+xml" => true,
                "text" | "text/plain" => false,
                "" if is_atom && self.mode != "escaped" => false,
                _ => self.meaning == Meaning::Content && !is_atom || looks_like_html(&plain),
            };
            (plain, is_html)
        };
        match base.filter(|_| is_html) {
            Some(base) => FeedText { value: absolute_html(&value, base), is_html },
            None => FeedText { value, is_html },
        }
    }

    /// Decodes `mode="base64"`, or a media type that is not text.
    fn base64(&self) -> Option<String> {
        let media_type = self.media_type.as_str();
        let is_text = !media_type.contains('/')
            || media_type.starts_with("text/")
            || media_type.ends_with("+xml")
            || media_type.ends_with("/xml");
        if self.n_children > 0 || is_text && self.mode != "base64" {
            return None;
        }
        let packed: String = self.plain.split_whitespace().collect();
        let bytes = BASE64_MIME_PERMISSIVE.decode(packed.as_bytes()).ok()?;
        Some(String::from_utf8(bytes).ok()?.trim().to_owned())
    }

    /// Whether a single `<div>` contains everything.
    fn is_in_div(&self) -> bool {
        self.n_outer == 1 && self.is_first_div && !self.has_outer_text
    }

    /// Whether a `<div>` contains escaped HTML. Some programs write it although the `<div>` is meant for inline HTML.
    fn wraps_escaped_html(&self) -> bool {
        self.media_type == "html"
            && self.n_children == 1
            && self.is_in_div()
            && looks_like_html(self.plain.trim())
    }

    /// The markup without the `<div>` that Atom 1.0 requires around it.
    fn inner_markup(&self, syntax: Syntax) -> &str {
        let markup = self.markup.trim();
        let is_xhtml = self.media_type == "xhtml"
            || syntax == Syntax::Atom && self.media_type == "application/xhtml+xml";
        let is_wrapped = is_xhtml && self.is_in_div();
        let inner = || markup.split_once('>')?.1.trim_end().strip_suffix("</div>");
        match is_wrapped {
            true => inner().unwrap_or(markup),
            false => markup,
        }
    }
}

/// HTML tags are written without a prefix.
fn written_name(name: &str) -> &str {
    name.strip_prefix("xhtml:").or_else(|| name.strip_prefix("html:")).unwrap_or(name)
}

/// Escapes text between tags. Quotes and line ends remain as they are.
fn push_escaped(out: &mut String, text: &str) {
    for part in text.split_inclusive(['&', '<', '>']) {
        let (plain, sign) = match part.as_bytes().last() {
            Some(b'&') => (&part[..part.len() - 1], "&amp;"),
            Some(b'<') => (&part[..part.len() - 1], "&lt;"),
            Some(b'>') => (&part[..part.len() - 1], "&gt;"),
            _ => (part, ""),
        };
        out.push_str(plain);
        out.push_str(sign);
    }
}

fn is_void(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(
        name.as_str(),
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// The URL in a text. Some feeds escape ampersands twice.
pub(super) fn url_in_text(text: &str) -> String {
    let first = text.split_ascii_whitespace().collect::<String>();
    truncate(&first.replace("&amp;", "&"), MAX_LABEL_BYTES).to_owned()
}

/// `me@example.com (A Name)`, `A Name <me@example.com>`, `A Name`.
pub(super) fn parse_person(text: &str) -> Person {
    let text = super::folded(text);
    let is_mail = |word: &str| {
        word.split_once('@').is_some_and(|(before, after)| !before.is_empty() && after.contains('.'))
    };
    let bare = |word: &str| {
        word.trim_matches(|c: char| "<>()[],;".contains(c)).trim_start_matches("mailto:").to_owned()
    };
    let email = text.split([' ', '(', '<']).map(bare).find(|word| is_mail(word)).unwrap_or_default();
    let name = match email.is_empty() {
        true => text,
        false => text
            .replace(&email, "")
            .replace("mailto:", "")
            .replace("()", "")
            .replace("<>", "")
            .replace("[]", ""),
    };
    let name = name.trim().trim_matches(|c: char| "<>,;".contains(c)).trim();
    let name = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')).unwrap_or(name).trim();
    Person { name: name.to_owned(), email, url: String::new() }
}
