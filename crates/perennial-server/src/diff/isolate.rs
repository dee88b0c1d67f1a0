//! A captured page and its marks -> a document for a frame: no script, no URL that a browser loads, and the captured
//! stylesheets, pictures and fonts embedded.
//!
//! The frame's sandbox and the document's own policy forbid scripts and requests. Removing them here serves appearance and
//! size; safety does not depend on it.

use std::fmt::Write;

use perennial_core::page::diff::OperationKind;
use perennial_core::text::dom::{DomKind, DomNode};
use perennial_core::text::markup::escaped;
use perennial_render::CapturedResource;
use url::Url;

use super::changes::ShownChange;
use super::css::Assets;
use super::marks::{Gone, Marks};
use super::position::{Page, SOURCES};

/// The document's policy: it may load only embedded data.
const POLICY: &str = "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";

/// The style of marks. It must be visible on any colours.
const STYLE: &str = include_str!("frame.css");

/// Elements that are omitted with their content.
const LEFT_OUT: [&str; 21] = [
    "script",
    "noscript",
    "template",
    "iframe",
    "frame",
    "frameset",
    "object",
    "embed",
    "applet",
    "base",
    "meta",
    "link",
    "title",
    "audio",
    "video",
    "source",
    "param",
    "set",
    "animate",
    "animateMotion",
    "animateTransform",
];

/// Elements without an end tag.
const VOID: [&str; 8] = ["area", "br", "col", "hr", "img", "input", "wbr", "track"];

/// A version of a page as it was captured.
pub struct Original<'a> {
    /// Its URL, against which links are resolved.
    pub url: &'a str,
    /// Its HTML, decoded.
    pub html: &'a str,
    /// Finds captured stylesheets, pictures and fonts.
    pub subresources: &'a dyn Fn(&str) -> Option<CapturedResource>,
}

/// The URL against which the links of a page are resolved.
pub(super) fn link_base(page: &Page, url: &str) -> Option<Url> {
    let own = Url::parse(url).ok()?;
    match page.dom.base_href().and_then(|base| own.join(base).ok()) {
        Some(base) if matches!(base.scheme(), "http" | "https") => Some(base),
        _ => Some(own),
    }
}

/// Writes the document.
pub(super) fn isolated(
    original: &Original<'_>,
    page: &Page,
    marks: &Marks,
    changes: &[ShownChange],
    is_before: bool,
) -> String {
    let mut writer = Writer {
        page,
        marks,
        changes,
        is_before,
        base: link_base(page, original.url),
        assets: Assets::new(original.subresources),
        next_word: 0,
        out: String::with_capacity(original.html.len()),
    };
    let _ = write!(
        writer.out,
        "<!DOCTYPE html><meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"><meta charset=\"utf-8\"><style>{STYLE}</style>"
    );
    writer.write_all();
    with_plain_space(writer.out)
}

/// Escapes a text but keeps line ends and tabs. They are valid in attributes, and escaping them would enlarge the page.
pub(super) fn with_plain_space(html: String) -> String {
    html.replace("&#10;", "\n").replace("&#9;", "\t")
}

struct Writer<'a> {
    page: &'a Page,
    marks: &'a Marks,
    changes: &'a [ShownChange],
    is_before: bool,
    base: Option<Url>,
    assets: Assets<'a>,
    /// The first word of the page that is not written yet.
    next_word: usize,
    out: String,
}

impl Writer<'_> {
    fn write_all(&mut self) {
        let page = self.page;
        // The elements that are open, with the node behind each.
        let mut open: Vec<(u32, String)> = Vec::new();
        let mut index = 0;
        while let Some(node) = page.dom.nodes.get(index as usize) {
            while let Some((_, tag)) = open.pop_if(|(end, _)| *end <= index) {
                let _ = write!(self.out, "</{tag}>");
            }
            match &node.kind {
                DomKind::Text(text) => self.write_text(index, text),
                DomKind::Element { .. } if node.tag() == "link" => self.write_stylesheet(node),
                DomKind::Element { .. } if node.tag() == "style" => self.write_style(index, node),
                DomKind::Element { .. } if !LEFT_OUT.contains(&node.tag()) => {
                    if let Some(tag) = self.write_tag(index, node) {
                        open.push((node.end, tag));
                    }
                    index += 1;
                    continue;
                }
                DomKind::Element { .. } => {}
            }
            index = node.end;
        }
        while let Some((_, tag)) = open.pop() {
            let _ = write!(self.out, "</{tag}>");
        }
    }

    /// Writes a start tag and returns the name of its end tag, if it needs one.
    fn write_tag(&mut self, index: u32, node: &DomNode) -> Option<String> {
        let tag = element_name(node.tag());
        for &number in self.marks.image_tags.get(&index).map_or(&[][..], Vec::as_slice) {
            self.write_number(number);
        }
        let _ = write!(self.out, "<{tag}");
        self.write_attributes(node);
        if let Some(&number) = self.marks.frames.get(&index) {
            let change = &self.changes[number];
            let _ = write!(
                self.out,
                " data-pd-frame=\"{}\" data-pd-op=\"{}\" data-pd-group=\"{}\"",
                number + 1,
                change.op.name(),
                change.group.class()
            );
        }
        self.out.push('>');
        (!VOID.contains(&node.tag())).then_some(tag)
    }

    fn write_attributes(&mut self, node: &DomNode) {
        let DomKind::Element { attributes, .. } = &node.kind else { return };
        let tag = node.tag();
        for attribute in attributes {
            let (name, value) = (&*attribute.name.local, &*attribute.value);
            if !is_plain_name(name) {
                continue;
            }
            match name {
                "style" => {
                    let style = self.assets.style(value, self.base.as_ref());
                    self.write_attribute(name, &style);
                }
                "href" if tag == "a" || tag == "area" => self.write_url(value),
                // Attributes of SVG drawings.
                "href" if value.starts_with('#') => self.write_attribute(name, value),
                "type" if tag == "input" && value.eq_ignore_ascii_case("image") => {}
                "class" | "id" | "lang" | "dir" | "alt" | "title" | "width" | "height" | "type" | "value"
                | "colspan" | "rowspan" | "align" | "valign" | "border" | "cellpadding" | "cellspacing"
                | "bgcolor" | "color" | "face" | "size" | "rows" | "cols" | "start" | "open" | "hidden"
                | "checked" | "disabled" | "placeholder" | "role" | "media" | "span" | "nowrap"
                | "noshade" | "clear" | "hspace" | "vspace" | "for" | "label" | "selected" | "multiple"
                | "reversed" | "summary" | "text" | "link" | "vlink" | "alink" | "itemprop" | "rel" => {
                    self.write_attribute(name, value);
                }
                _ if name.starts_with("data-pd") => {}
                // Selectors of styles may use them.
                _ if name.starts_with("data-") || name.starts_with("aria-") => {
                    self.write_attribute(name, value)
                }
                _ if !node.is_html() && is_of_drawing(name, value) => self.write_attribute(name, value),
                _ => {}
            }
        }
        if matches!(tag, "img" | "input") {
            self.write_source(node);
        }
    }

    fn write_attribute(&mut self, name: &str, value: &str) {
        let _ = write!(self.out, " {name}=\"{}\"", escaped(value));
    }

    /// Keeps the URL of a link, so it is styled and shown as a link. The frame may not open windows.
    fn write_url(&mut self, value: &str) {
        let resolved = self.base.as_ref().and_then(|base| base.join(value.trim()).ok());
        if let Some(url) = resolved.filter(|url| matches!(url.scheme(), "http" | "https")) {
            self.write_attribute("href", url.as_str());
            self.out.push_str(" target=\"_blank\" rel=\"noreferrer\"");
        }
    }

    /// The source of a picture, if captured. An embedded picture with an alternative source is a placeholder of lazy
    /// loading, so the alternative is used.
    fn write_source(&mut self, node: &DomNode) {
        let sources =
            SOURCES.iter().filter_map(|name| node.attribute(name)).filter(|source| !source.trim().is_empty());
        let resolved = sources.filter_map(|source| self.base.as_ref()?.join(source.trim()).ok());
        let (inner, outer): (Vec<Url>, Vec<Url>) = resolved.partition(|source| source.scheme() == "data");
        let is_named =
            !outer.is_empty() || ["srcset", "data-srcset"].iter().any(|name| node.attribute(name).is_some());
        let mut chosen = if is_named { outer.iter() } else { inner.iter() };
        match chosen.find_map(|source| self.assets.asset(source)) {
            Some(data) => self.write_attribute("src", &data),
            None => self.out.push_str(" data-pd-missing"),
        }
    }

    fn write_stylesheet(&mut self, node: &DomNode) {
        let is_style = node.attribute("rel").is_some_and(|rel| {
            let mut words = rel.split_ascii_whitespace();
            words.any(|word| word.eq_ignore_ascii_case("stylesheet"))
                && !rel.to_ascii_lowercase().contains("alternate")
        });
        let url = node.attribute("href").filter(|_| is_style);
        let url = url.and_then(|url| self.base.as_ref()?.join(url.trim()).ok());
        if let Some(style) = url.and_then(|url| self.assets.stylesheet(&url)) {
            self.write_style_element(&style, node.attribute("media"));
        }
    }

    fn write_style(&mut self, index: u32, node: &DomNode) {
        let style = self.assets.style(&self.page.dom.text_content(index), self.base.as_ref());
        self.write_style_element(&style, node.attribute("media"));
    }

    fn write_style_element(&mut self, style: &str, media: Option<&str>) {
        self.out.push_str("<style");
        if let Some(media) = media {
            self.write_attribute("media", media);
        }
        let _ = write!(self.out, ">{style}</style>");
    }

    fn write_text(&mut self, index: u32, text: &str) {
        let words = &self.page.words;
        while words.get(self.next_word).is_some_and(|word| word.node < index) {
            self.next_word += 1;
        }
        let (mut written, mut open) = (0, None);
        while let Some(word) = words.get(self.next_word).filter(|word| word.node == index) {
            let mark = self.marks.words[self.next_word];
            let tags = self.marks.tags.get(&self.next_word);
            let absent = self.marks.absent.get(&self.next_word);
            let gone = self.marks.gone_before.get(&self.next_word);
            // The space between two marked words belongs to the mark.
            if mark != open || tags.is_some() || absent.is_some() || gone.is_some() {
                let between = if open.is_some() && open != mark {
                    word_end(text, written, word.range.start)
                } else {
                    written
                };
                self.write_escaped(&text[written..between]);
                self.close(&mut open);
                self.write_escaped(&text[between..word.range.start]);
                written = word.range.start;
                for &number in tags.into_iter().flatten() {
                    self.write_number(number);
                }
                for &number in absent.into_iter().flatten() {
                    let _ = write!(self.out, "<pd-a data-pd-at=\"{}\"></pd-a>", number + 1);
                }
                gone.into_iter().flatten().for_each(|gone| self.write_gone(gone));
                self.open(mark, &mut open);
            }
            self.write_escaped(&text[written..word.range.end]);
            written = word.range.end;
            if let Some(gone) = self.marks.gone_behind.get(&self.next_word) {
                self.close(&mut open);
                gone.iter().for_each(|gone| self.write_gone(gone));
            }
            self.next_word += 1;
        }
        self.close(&mut open);
        self.write_escaped(&text[written..]);
    }

    /// Removed words with their own space, so nothing remains if they are hidden.
    fn write_gone(&mut self, gone: &Gone) {
        let change = &self.changes[gone.number];
        let (number, group) = (gone.number + 1, change.group.class());
        let whole = if gone.is_whole { " data-pd-whole" } else { "" };
        let _ = write!(self.out, "<pd-g data-pd=\"{number}\" data-pd-group=\"{group}\"{whole}> ");
        if change.op == OperationKind::Delete {
            self.write_number(gone.number);
        }
        let _ = write!(self.out, "<pd-s>{}</pd-s> </pd-g>", escaped(&gone.text));
    }

    fn write_escaped(&mut self, text: &str) {
        let _ = write!(self.out, "{}", escaped(text));
    }

    fn open(&mut self, mark: Option<usize>, open: &mut Option<usize>) {
        let Some(number) = mark.filter(|_| open.is_none()) else { return };
        let change = &self.changes[number];
        let kind = match change.op {
            OperationKind::Move => "move",
            _ if self.is_before => "del",
            _ => "ins",
        };
        let _ = write!(
            self.out,
            "<pd-w data-pd=\"{}\" data-pd-op=\"{kind}\" data-pd-group=\"{}\">",
            number + 1,
            change.group.class()
        );
        *open = mark;
    }

    fn close(&mut self, open: &mut Option<usize>) {
        if open.take().is_some() {
            self.out.push_str("</pd-w>");
        }
    }

    fn write_number(&mut self, number: usize) {
        let change = &self.changes[number];
        let _ = write!(
            self.out,
            "<pd-t data-pd=\"{}\" data-pd-op=\"{}\" data-pd-group=\"{}\"><b>{}{}</b></pd-t>",
            number + 1,
            change.op.name(),
            change.group.class(),
            super::sign(change.op),
            number + 1
        );
    }
}

/// The end of the written text without trailing space.
fn word_end(text: &str, written: usize, next: usize) -> usize {
    written + text[written..next].trim_end().len()
}

/// The name of an element, if it is valid.
fn element_name(tag: &str) -> String {
    let is_plain = tag.starts_with(|c: char| c.is_ascii_alphabetic())
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match is_plain && !tag.starts_with("pd-") {
        true => tag.to_string(),
        false => "span".to_string(),
    }
}

fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.len() <= 100 && name.bytes().all(is_plain)
}

/// Whether the attribute of a drawing is harmless: it contains numbers, colours and names, and no URL outside the page.
fn is_of_drawing(name: &str, value: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !lower.starts_with("on") && lower != "href" && !value.to_ascii_lowercase().contains("javascript:")
}
