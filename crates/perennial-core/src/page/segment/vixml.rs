//! [`BlockTree`] <-> Vi-XML (P-VISUAL 3.2 and 4, figure 3; docs/papers.md, Blocks and Vi-XML); the schema is in
//! `docs/vixml.md`.
//!
//! Reading a written tree gives exactly the same tree. IDs are read, not computed, because they may leave out ignored
//! URL parameters.

use std::fmt::{Display, Write};

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use super::{
    Block, BlockRef, BlockRole, BlockTree, Image, ItemList, ItemPlace, Link, ListItem, MAX_ITEMS, MAX_PLACES,
    NodeId, Text, TextPosition,
};
use crate::page::layout::Rect;
use crate::text::markup::escaped;

/// Maximum nesting of blocks. No page needs more, and code that walks the tree must not exhaust its stack.
pub const MAX_DEPTH: usize = 64;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{format}, byte {offset}: {reason}")]
pub struct XmlError {
    /// Vi-XML or Vi-Delta.
    pub format: &'static str,
    /// Position of the error in bytes.
    pub offset: u64,
    /// The problem and the correct form.
    pub reason: String,
}

/// Writes a tree. Characters that XML forbids (most control characters) become U+FFFD.
pub fn write(tree: &BlockTree) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Document");
    attribute(&mut out, "url", &tree.url);
    attribute(&mut out, "version", &tree.version);
    attribute(&mut out, "engine", &tree.engine);
    out.push_str(">\n");
    for block in &tree.blocks {
        write_block(&mut out, block, 1);
    }
    if let Some(list) = &tree.list {
        write_list(&mut out, list);
    }
    out.push_str("</Document>\n");
    out
}

fn write_list(out: &mut String, list: &ItemList) {
    out.push_str(" <Items");
    write_list_size(out, list);
    out.push_str(">\n");
    for item in &list.items {
        out.push_str("  ");
        write_item(out, item);
    }
    out.push_str(" </Items>\n");
}

pub(crate) fn write_list_size(out: &mut String, list: &ItemList) {
    number(out, "words", list.n_item_words);
    number(out, "prose", list.n_prose_words);
    number(out, "body", list.n_body_words);
}

pub(crate) fn write_item(out: &mut String, item: &ListItem) {
    out.push_str("<item");
    attribute(out, "adr", &item.url);
    attribute(out, "title", &item.title);
    if !item.teaser.is_empty() {
        attribute(out, "teaser", &item.teaser);
    }
    number(out, "weight", item.weight);
    out.push('>');
    for place in &item.places {
        let _ = write!(out, "<place t=\"{:08x}\"", place.template);
        if place.title != item.title {
            attribute(out, "title", &place.title);
        }
        out.push_str("/>");
    }
    out.push_str("</item>\n");
}

pub(crate) fn read_list_size(tag: &BytesStart) -> Result<ItemList, String> {
    Ok(ItemList {
        items: Vec::new(),
        n_item_words: parse(tag, "words")?,
        n_prose_words: parse(tag, "prose")?,
        n_body_words: parse(tag, "body")?,
    })
}

pub(crate) fn read_item(tag: &BytesStart) -> Result<ListItem, String> {
    Ok(ListItem {
        url: text(tag, "adr")?,
        title: text(tag, "title")?,
        teaser: text(tag, "teaser").unwrap_or_default(),
        weight: parse(tag, "weight")?,
        places: Vec::new(),
    })
}

/// Reads a place of an item. Without a title it has that of the item.
pub(crate) fn read_place(tag: &BytesStart, item: &ListItem) -> Result<ItemPlace, String> {
    let value = text(tag, "t")?;
    let template = u32::from_str_radix(&value, 16);
    let template = template
        .map_err(|_| format!("t=\"{value}\" is not a template; expected eight hexadecimal digits"))?;
    let title = if has(tag, "title") { text(tag, "title")? } else { item.title.clone() };
    Ok(ItemPlace { template, title })
}

pub(crate) fn write_block(out: &mut String, block: &Block, depth: usize) {
    indent(out, depth);
    out.push_str("<Block");
    attribute(out, "ref", &block.name());
    number(out, "id", block.id);
    number(out, "x", block.rect.x);
    number(out, "y", block.rect.y);
    number(out, "w", block.rect.w);
    number(out, "h", block.rect.h);
    number(out, "doc", block.doc);
    number(out, "importance", block.importance);
    attribute(out, "role", block.role.name());
    out.push_str(">\n");
    for child in &block.children {
        write_block(out, child, depth + 1);
    }
    write_links(out, block, depth + 1);
    write_images(out, block, depth + 1);
    write_texts(out, block, depth + 1);
    indent(out, depth);
    out.push_str("</Block>\n");
}

fn write_links(out: &mut String, block: &Block, depth: usize) {
    let head = (block.links_id(), write_spots(&block.places.links));
    write_group(out, "Links", head, &block.links, depth, |out, link| {
        out.push_str("<link");
        number(out, "ID", link.id);
        attribute(out, "name", &link.name);
        attribute(out, "adr", &link.url);
        out.push_str("/>");
    });
}

fn write_images(out: &mut String, block: &Block, depth: usize) {
    let head = (block.images_id(), write_spots(&block.places.images));
    write_group(out, "Imgs", head, &block.images, depth, |out, image| {
        out.push_str("<img");
        number(out, "ID", image.id);
        attribute(out, "name", &image.name);
        attribute(out, "src", &image.source);
        out.push_str("/>");
    });
}

fn write_texts(out: &mut String, block: &Block, depth: usize) {
    write_group(out, "Txts", (block.texts_id(), String::new()), &block.texts, depth, |out, text| {
        out.push_str("<txt");
        number(out, "ID", text.id);
        out.push('>');
        let _ = write!(out, "{}</txt>", escaped(&text.text));
    });
}

/// Writes positions as `text:byte`, as `text` if the byte is 0, and with `*n` if n elements share one.
pub(crate) fn write_spots(spots: &[TextPosition]) -> String {
    let mut out = String::new();
    for run in spots.chunk_by(|x, y| x == y) {
        let space = if out.is_empty() { "" } else { " " };
        let TextPosition { text, byte } = run[0];
        let _ = write!(out, "{space}{text}");
        if byte > 0 {
            let _ = write!(out, ":{byte}");
        }
        if run.len() > 1 {
            let _ = write!(out, "*{}", run.len());
        }
    }
    out
}

/// Maximum number of positions in a list. Without it a hostile repetition could exhaust memory.
const MAX_SPOTS: usize = 1 << 20;

pub(crate) fn read_spots(text: &str) -> Result<Vec<TextPosition>, String> {
    let mut spots = Vec::new();
    for part in text.split_ascii_whitespace() {
        let wrong = || format!("{part:?} is not a position; write 3, 3:14 or 3:14*2");
        let (place, n) = part.split_once('*').unwrap_or((part, "1"));
        let (text, byte) = place.split_once(':').unwrap_or((place, "0"));
        let spot = TextPosition {
            text: text.parse().map_err(|_| wrong())?,
            byte: byte.parse().map_err(|_| wrong())?,
        };
        let n: usize = n.parse().map_err(|_| wrong())?;
        if n > MAX_SPOTS || spots.len() + n > MAX_SPOTS {
            return Err(format!("more than {MAX_SPOTS} positions; leave them out"));
        }
        spots.extend(std::iter::repeat_n(spot, n));
    }
    Ok(spots)
}

/// Omits empty groups.
fn write_group<T>(
    out: &mut String,
    tag: &str,
    (id, places): (NodeId, String),
    items: &[T],
    depth: usize,
    write_item: fn(&mut String, &T),
) {
    // A block of a delta also contains the positions of elements that moved into it.
    if items.is_empty() && places.is_empty() {
        return;
    }
    indent(out, depth);
    let _ = write!(out, "<{tag} ID=\"{id}\"");
    if !places.is_empty() {
        number(out, "at", places);
    }
    out.push_str(">\n");
    for item in items {
        indent(out, depth + 1);
        write_item(out, item);
        out.push('\n');
    }
    indent(out, depth);
    let _ = writeln!(out, "</{tag}>");
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n(' ', depth.min(MAX_DEPTH)));
}

/// Writes a value that needs no escaping. Writing to a String cannot fail.
pub(crate) fn number(out: &mut String, name: &str, value: impl Display) {
    let _ = write!(out, " {name}=\"{value}\"");
}

pub(crate) fn attribute(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, " {name}=\"{}\"", escaped(value));
}

/// Reads a tree. It skips unknown elements and attributes, which later releases may add.
pub fn read(xml: &str) -> Result<BlockTree, XmlError> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut state = VixmlReader::default();
    loop {
        let offset = reader.buffer_position();
        let fail = |reason: String| XmlError { format: "Vi-XML", offset, reason };
        match reader.read_event().map_err(|error| fail(error.to_string()))? {
            Event::Start(tag) if !VixmlReader::knows(tag.name().0) => {
                reader.read_to_end(tag.name()).map_err(|error| fail(error.to_string()))?;
            }
            Event::Start(tag) => state.start(&tag).map_err(fail)?,
            Event::End(tag) => state.end(tag.name().0).map_err(fail)?,
            Event::Text(text) => state.text(&text.xml10_content()),
            Event::CData(text) => state.text(&text.xml10_content()),
            Event::GeneralRef(entity) => state.entity(&entity).map_err(fail)?,
            Event::Eof => return state.finish().map_err(fail),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

#[derive(Default)]
struct VixmlReader {
    tree: Option<BlockTree>,
    open: Vec<Block>,
    text: Option<(NodeId, String)>,
    is_closed: bool,
}

impl VixmlReader {
    fn knows(tag: &str) -> bool {
        matches!(
            tag,
            "Document"
                | "Block"
                | "Links"
                | "Imgs"
                | "Txts"
                | "link"
                | "img"
                | "txt"
                | "Items"
                | "item"
                | "place"
        )
    }

    fn start(&mut self, tag: &BytesStart) -> Result<(), String> {
        match tag.name().0 {
            "Document" => self.start_document(tag)?,
            "Block" => self.start_block(tag)?,
            "link" => {
                let link = Link { id: id(tag, "ID")?, name: text(tag, "name")?, url: text(tag, "adr")? };
                self.leaf("link")?.links.push(link);
            }
            "img" => {
                let image = Image { id: id(tag, "ID")?, name: text(tag, "name")?, source: text(tag, "src")? };
                self.leaf("img")?.images.push(image);
            }
            "txt" => {
                self.leaf("txt")?;
                self.text = Some((id(tag, "ID")?, String::new()));
            }
            "Links" => self.leaf("Links")?.places.links = spots(tag)?,
            "Imgs" => self.leaf("Imgs")?.places.images = spots(tag)?,
            "Items" | "item" | "place" => self.start_item(tag)?,
            _ => {}
        }
        Ok(())
    }

    fn start_item(&mut self, tag: &BytesStart) -> Result<(), String> {
        let tree = self.tree.as_mut().ok_or("<Items> outside <Document>; move it inside")?;
        if tag.name().0 == "Items" {
            if tree.list.is_some() {
                return Err("a second <Items>; keep one per document".into());
            }
            tree.list = Some(read_list_size(tag)?);
            return Ok(());
        }
        let list = tree.list.as_mut().ok_or("an item outside <Items>; move it inside")?;
        if tag.name().0 == "item" {
            if list.items.len() >= MAX_ITEMS {
                return Err(format!("more than {MAX_ITEMS} items; remove the last ones"));
            }
            list.items.push(read_item(tag)?);
        } else {
            let item = list.items.last_mut().ok_or("a place outside an item; move it inside")?;
            if item.places.len() >= MAX_PLACES {
                return Err(format!("more than {MAX_PLACES} places of an item; remove the last ones"));
            }
            let place = read_place(tag, item)?;
            item.places.push(place);
        }
        Ok(())
    }

    fn start_document(&mut self, tag: &BytesStart) -> Result<(), String> {
        if self.tree.is_some() {
            return Err("a second <Document>; keep one tree per file".into());
        }
        let (url, version, engine) =
            (text(tag, "url")?, text(tag, "version")?, text(tag, "engine").unwrap_or_default());
        self.tree = Some(BlockTree { url, version, engine, ..BlockTree::default() });
        Ok(())
    }

    fn start_block(&mut self, tag: &BytesStart) -> Result<(), String> {
        if self.tree.is_none() || self.is_closed {
            return Err("<Block> outside <Document>; move it inside".into());
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("blocks nested deeper than {MAX_DEPTH}; flatten them"));
        }
        if let Some(above) = self.open.last()
            && !(above.links.is_empty() && above.images.is_empty() && above.texts.is_empty())
        {
            return Err("a block with both blocks and content; wrap the content in a <Block>".into());
        }
        self.open.push(Block {
            reference: text(tag, "ref")?.parse::<BlockRef>()?.0,
            id: id(tag, "id")?,
            rect: Rect { x: parse(tag, "x")?, y: parse(tag, "y")?, w: parse(tag, "w")?, h: parse(tag, "h")? },
            doc: parse(tag, "doc")?,
            importance: parse(tag, "importance")?,
            role: BlockRole::from_name(&text(tag, "role").unwrap_or_default()),
            ..Block::default()
        });
        Ok(())
    }

    /// The open block, which must be a leaf.
    fn leaf(&mut self, what: &str) -> Result<&mut Block, String> {
        match self.open.last_mut() {
            Some(block) if block.children.is_empty() => Ok(block),
            Some(_) => Err(format!("<{what}> in a block that contains blocks; wrap it in a <Block>")),
            None => Err(format!("<{what}> outside a <Block>; move it inside")),
        }
    }

    fn end(&mut self, tag: &str) -> Result<(), String> {
        match tag {
            "Document" => self.is_closed = true,
            "txt" => {
                if let Some((id, text)) = self.text.take() {
                    self.leaf("txt")?.texts.push(Text { id, text });
                }
            }
            "Block" => {
                if let Some(block) = self.open.pop() {
                    match (self.open.last_mut(), &mut self.tree) {
                        (Some(above), _) => above.children.push(block),
                        (None, Some(tree)) => tree.blocks.push(block),
                        (None, None) => {}
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Only `<txt>` contains text. White space between other elements is ignored.
    fn text(&mut self, piece: &str) {
        if let Some((_, text)) = &mut self.text {
            text.push_str(piece);
        }
    }

    fn entity(&mut self, entity: &BytesRef) -> Result<(), String> {
        let unknown = || format!("unknown entity &{};; write the character itself", &**entity);
        match entity.resolve_char_ref().map_err(|error| error.to_string())? {
            Some(c) => self.text(c.encode_utf8(&mut [0; 4])),
            None => self.text(resolve_xml_entity(entity).ok_or_else(unknown)?),
        }
        Ok(())
    }

    fn finish(self) -> Result<BlockTree, String> {
        match self.tree {
            Some(tree) if self.is_closed => Ok(tree),
            Some(_) => Err("the text ends before </Document>; the file is truncated".into()),
            None => Err("no <Document>: this is not Vi-XML".into()),
        }
    }
}

/// The positions in `at`. Trees of earlier releases have none.
fn spots(tag: &BytesStart) -> Result<Vec<TextPosition>, String> {
    if has(tag, "at") { read_spots(&text(tag, "at")?) } else { Ok(Vec::new()) }
}

pub(crate) fn has(tag: &BytesStart, name: &str) -> bool {
    tag.try_get_attribute(name).is_ok_and(|found| found.is_some())
}

pub(crate) fn text(tag: &BytesStart, name: &str) -> Result<String, String> {
    let found = tag.try_get_attribute(name).map_err(|error| error.to_string())?;
    let value = found.ok_or_else(|| format!("<{}> without the attribute {name}; add it", tag.name().0))?;
    value
        .normalized_value(XmlVersion::Implicit1_0)
        .map(|value| value.into_owned())
        .map_err(|error| error.to_string())
}

pub(crate) fn parse<T: std::str::FromStr>(tag: &BytesStart, name: &str) -> Result<T, String> {
    let value = text(tag, name)?;
    value.parse().map_err(|_| format!("{name}=\"{value}\" is not a number in the valid range"))
}

pub(crate) fn id(tag: &BytesStart, name: &str) -> Result<NodeId, String> {
    let value = text(tag, name)?;
    let digits = u64::from_str_radix(&value, 16);
    digits
        .map(NodeId)
        .map_err(|_| format!("{name}=\"{value}\" is not an ID; expected sixteen hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Any text that XML can hold, with many special characters.
    fn any_text() -> impl Strategy<Value = String> {
        "([ -~]|[&<>\"'\t\n\r]|\\PC|\u{e9}|\u{1f600}){0,12}"
    }

    fn any_leaf() -> impl Strategy<Value = Block> {
        let links = vec((any_text(), any_text()).prop_map(|(name, url)| Link::new(name, url)), 0..3);
        let images = vec((any_text(), any_text()).prop_map(|(name, source)| Image::new(name, source)), 0..3);
        let texts = vec(any_text().prop_map(Text::new), 0..3);
        (links, images, texts, any::<[f32; 4]>(), 0.0..1.0f32).prop_map(
            |(links, images, texts, [x, y, w, h], importance)| {
                let mut block = Block::leaf(links, images, texts);
                block.importance = importance;
                block.role = BlockRole::Navigation;
                let finite = |v: f32| if v.is_finite() { v } else { 0.5 };
                block.rect = Rect { x: finite(x), y: finite(y), w: finite(w), h: finite(h) };
                block
            },
        )
    }

    fn any_tree() -> impl Strategy<Value = BlockTree> {
        let block = any_leaf().prop_recursive(4, 24, 4, |child| vec(child, 1..4).prop_map(Block::inner));
        (any_text(), any_text(), vec(block, 0..4)).prop_map(|(url, version, blocks)| {
            let mut tree = BlockTree { url, version, engine: "test <1>".into(), blocks, list: None };
            tree.seal();
            tree
        })
    }

    proptest! {
        #[test]
        fn reading_what_was_written_gives_the_same_tree(tree in any_tree()) {
            let xml = write(&tree);
            prop_assert_eq!(&read(&xml).unwrap(), &tree);
            prop_assert_eq!(write(&read(&xml).unwrap()), xml);
        }

        #[test]
        fn damaged_vixml_is_an_error_or_a_tree_but_no_panic(tree in any_tree(), at in 0usize..4000, with in "\\PC{0,4}|[<>&\"/]{1,3}") {
            let mut xml = write(&tree);
            let at = (0..=at.min(xml.len())).rev().find(|at| xml.is_char_boundary(*at)).unwrap();
            xml.insert_str(at, &with);
            let _ = read(&xml);
            let _ = read(&xml[at..]);
        }
    }

    #[test]
    fn the_schema_is_the_papers() {
        let mut leaf =
            Block::leaf(vec![Link::new("Home", "http://a.org/?a&b")], vec![], vec![Text::new("1 < 2")]);
        leaf.importance = 1.0;
        let mut tree = BlockTree {
            url: "http://a.org/".into(),
            version: "V1".into(),
            engine: "e".into(),
            blocks: vec![leaf],
            list: None,
        };
        tree.seal();
        let xml = write(&tree);
        assert!(xml.contains("<Document url=\"http://a.org/\" version=\"V1\" engine=\"e\">"), "{xml}");
        assert!(xml.contains("<Block ref=\"B1\" id=\""), "{xml}");
        assert!(
            xml.contains(" x=\"0\" y=\"0\" w=\"0\" h=\"0\" doc=\"10\" importance=\"1\" role=\"other\">"),
            "{xml}"
        );
        assert!(xml.contains(" name=\"Home\" adr=\"http://a.org/?a&amp;b\"/>"), "{xml}");
        assert!(xml.contains(">1 &lt; 2</txt>"), "{xml}");
    }

    #[test]
    fn errors_contain_place_and_hint() {
        for (xml, reason) in [
            ("", "no <Document>"),
            ("<Document url='' version=''>", "truncated"),
            ("<Block ref='B1'/>", "outside <Document>"),
            ("<Document url='' version=''><link ID='0' name='' adr=''/></Document>", "outside a <Block>"),
            ("<Document version=''/>", "without the attribute url"),
            ("<Document url='' version=''><Block ref='x'/></Document>", "is not a block reference"),
        ] {
            let error = read(xml).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_thousand_nested_blocks_are_refused() {
        let block = "<Block ref='B1' id='0' x='0' y='0' w='0' h='0' doc='1' importance='0'>";
        let xml = format!("<Document url='' version=''>{}", block.repeat(1000));
        assert!(read(&xml).unwrap_err().reason.contains("deeper"));
    }

    #[test]
    fn additions_of_later_releases_are_skipped() {
        let xml = "<Document url='' version='' new='1'><News><txt>x</txt></News></Document>";
        assert_eq!(read(xml).unwrap().blocks, []);
    }
}
