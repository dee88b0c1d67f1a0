//! [`Delta`] <-> Vi-Delta (P-VISUAL 5.1, figure 5, extended by `<Structure>`; docs/papers.md, Vi-DIFF and Vi-Delta); the
//! schema is in `docs/videlta.md`.
//!
//! If the delta is longer than the Vi-XML of the new version, the Vi-XML is stored instead. A `<Document>` in place of
//! a `<Delta>` replaces the whole version.

use std::fmt::Write;
use std::str::FromStr;

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::{
    Appearance, BlockDelta, BlockOperation, BlockRef, Delta, Element, ElementKind, ElementMove, ItemChange,
    ItemDelta, LinksInTexts, Regrouping, Update,
};
use crate::page::layout::Rect;
use crate::page::segment::vixml::{self, XmlError, attribute, has, number, parse};
use crate::page::segment::{Block, BlockRole, BlockTree, ElementPositions, MAX_PLACES};

impl Delta {
    /// Writes Vi-Delta, or the Vi-XML of the new version if that is shorter.
    pub fn to_xml(&self, after: &BlockTree) -> String {
        let whole = vixml::write(after);
        if self.replacement.is_some() {
            return whole;
        }
        let delta = self.to_operations_xml();
        if delta.len() <= whole.len() { delta } else { whole }
    }

    /// Writes Vi-Delta with every operation, however long it is.
    pub fn to_operations_xml(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Delta");
        attribute(&mut out, "url", &self.url);
        attribute(&mut out, "from", &self.from);
        attribute(&mut out, "to", &self.to);
        attribute(&mut out, "engine", &self.engine);
        if self.length != 1.0 {
            number(&mut out, "length", self.length);
        }
        if self.has_same_words {
            number(&mut out, "sameWords", true);
        }
        if self.n_page_words > 0 {
            number(&mut out, "words", self.n_page_words);
            number(&mut out, "otherWords", self.n_other_words);
        }
        out.push_str(">\n");
        write_group(&mut out, "Structure", &self.structure, write_structure);
        write_group(&mut out, "Nesting", &self.nested, write_structure);
        self.blocks.iter().for_each(|block| write_block(&mut out, block));
        write_group(&mut out, "Move", &self.moves, write_move);
        write_group(&mut out, "Shift", &self.shifted, write_move);
        write_group(&mut out, "Look", &self.appearances, write_appearance);
        if let Some(items) = &self.items {
            write_items(&mut out, items);
        }
        out.push_str("</Delta>\n");
        out
    }

    /// Reads Vi-Delta or Vi-XML.
    pub fn from_xml(xml: &str) -> Result<Delta, XmlError> {
        if root(xml).is_some_and(|root| root == "Document") {
            let whole = vixml::read(xml).map_err(|error| XmlError { format: "Vi-Delta", ..error })?;
            let (url, engine, to) = (whole.url.clone(), whole.engine.clone(), whole.version.clone());
            return Ok(Delta { url, engine, to, replacement: Some(Box::new(whole)), ..Delta::default() });
        }
        read(xml)
    }
}

/// Omits empty groups.
fn write_group<T>(out: &mut String, tag: &str, all: &[T], write_one: fn(&mut String, &T)) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "<{tag}>");
    all.iter().for_each(|one| write_one(out, one));
    let _ = writeln!(out, "</{tag}>");
}

fn write_items(out: &mut String, items: &ItemDelta) {
    out.push_str("<Items");
    if let Some(size) = &items.size {
        vixml::write_list_size(out, size);
    }
    number(out, "hub", items.is_listing);
    number(out, "proseShare", items.prose_share);
    out.push_str(">\n");
    if !items.kept.is_empty() {
        let _ = writeln!(out, "<Kept>{}</Kept>", write_ranks(&items.kept));
    }
    for change in &items.changes {
        let _ = write!(out, "<Change op=\"{}\"", change.kind.name());
        for (name, rank) in [("rankBefore", change.rank_before), ("rankAfter", change.rank_after)] {
            if let Some(rank) = rank {
                number(out, name, rank);
            }
        }
        number(out, "share", change.share);
        out.push_str(">\n");
        change.before.iter().chain(&change.after).for_each(|item| vixml::write_item(out, item));
        out.push_str("</Change>\n");
    }
    out.push_str("</Items>\n");
}

fn write_structure(out: &mut String, operation: &BlockOperation) {
    match operation {
        BlockOperation::Insert(block) => write_whole(out, "Insert", block),
        BlockOperation::Delete(block) => write_whole(out, "Delete", block),
        BlockOperation::Move { from, to, importance } => {
            let _ = writeln!(
                out,
                "<Move><Block from=\"{from}\" to=\"{to}\" importance=\"{importance}\"/></Move>"
            );
        }
    }
}

fn write_whole(out: &mut String, operation: &str, block: &Block) {
    write_group(out, operation, std::slice::from_ref(block), |out, block| vixml::write_block(out, block, 0));
}

fn write_block(out: &mut String, block: &BlockDelta) {
    let _ = write!(out, "<Block ref=\"{}\"", block.before);
    if block.after != block.before {
        number(out, "to", &block.after);
    }
    number(out, "importance", block.importance);
    if block.importance_before != block.importance {
        number(out, "was", block.importance_before);
    }
    attribute(out, "role", block.role.name());
    for (name, n) in ["links", "imgs", "txts"].into_iter().zip(block.n_elements) {
        number(out, name, n);
    }
    number(out, "words", block.n_words);
    out.push_str(">\n");
    write_placed(out, "Insert", &block.inserted);
    write_placed(out, "Delete", &block.deleted);
    write_group(out, "Update", &block.updated, write_update);
    for Regrouping { before, after, .. } in &block.regrouped {
        out.push_str("<Regroup>\n");
        write_placed(out, "Before", before);
        write_placed(out, "After", after);
        out.push_str("</Regroup>\n");
    }
    for (kind, order) in &block.reordered {
        let _ = writeln!(out, "<Order of=\"{}\">{}</Order>", tag(*kind), write_ranks(order));
    }
    write_placed(out, "Same", &block.respelled);
    let LinksInTexts { inserted, deleted, updated } = &block.in_texts;
    for (name, places) in [
        ("Again", &block.again),
        ("Still", &block.still),
        ("InsertInText", inserted),
        ("DeleteInText", deleted),
        ("UpdateInText", updated),
    ] {
        if !places.is_empty() {
            let _ = writeln!(out, "<{name}>{}</{name}>", write_ranks(places));
        }
    }
    out.push_str("</Block>\n");
}

fn tag(kind: ElementKind) -> &'static str {
    match kind {
        ElementKind::Link => "link",
        ElementKind::Image => "img",
        ElementKind::Text => "txt",
    }
}

fn write_placed(out: &mut String, group: &str, elements: &[(u32, Element)]) {
    write_group(out, group, elements, |out, (place, element)| {
        let _ = write!(out, "<{} n=\"{place}\"", tag(element.kind()));
        write_element(out, element);
        out.push_str("/>\n");
    });
}

/// Writes the attributes of an element. Its ID is written only if it does not follow from them.
fn write_element(out: &mut String, element: &Element) {
    let (text_name, url_name) = attribute_names(element.kind());
    attribute(out, text_name, element.text());
    if !url_name.is_empty() {
        attribute(out, url_name, element.url());
    }
    write_id(out, "ID", element);
}

fn write_id(out: &mut String, name: &str, element: &Element) {
    let id = element.id();
    if Element::new(element.kind(), element.text(), element.url()).id() != id {
        number(out, name, id);
    }
}

fn write_update(out: &mut String, update: &Update) {
    let _ = write!(out, "<{} n=\"{}\"", tag(update.before.kind()), update.index);
    let (text_name, url_name) = attribute_names(update.before.kind());
    write_change(out, text_name, update.before.text(), update.after.text());
    write_change(out, url_name, update.before.url(), update.after.url());
    for (name, element) in [("oldID", &update.before), ("newID", &update.after)] {
        write_id(out, name, element);
    }
    if let Some(distance) = update.distance_outside_links {
        number(out, "outsideLinks", distance);
    }
    out.push_str("/>\n");
}

fn attribute_names(kind: ElementKind) -> (&'static str, &'static str) {
    match kind {
        ElementKind::Link => ("name", "adr"),
        ElementKind::Image => ("name", "src"),
        ElementKind::Text => ("text", ""),
    }
}

/// Writes `name` if both values are equal, otherwise `oldName` and `newName`.
fn write_change(out: &mut String, name: &str, before: &str, after: &str) {
    if name.is_empty() {
        return;
    }
    if before == after {
        return attribute(out, name, before);
    }
    attribute(out, &format!("old{}", capital(name)), before);
    attribute(out, &format!("new{}", capital(name)), after);
}

fn capital(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_ascii_uppercase() + rest
}

fn write_move(out: &mut String, moved: &ElementMove) {
    let _ = write!(out, "<{}", tag(moved.element.kind()));
    write_element(out, &moved.element);
    if moved.is_in_text {
        number(out, "inText", true);
    }
    if let Some(before) = &moved.before {
        attribute(out, "was", before.text());
    }
    let _ = writeln!(
        out,
        " fromBlock=\"{}\" fromN=\"{}\" toBlock=\"{}\" toN=\"{}\" importance=\"{}\"/>",
        moved.from, moved.from_index, moved.to, moved.to_index, moved.importance
    );
}

fn write_appearance(out: &mut String, appearance: &Appearance) {
    let _ = write!(out, "<Block ref=\"{}\"", appearance.block);
    if let Some(rect) = appearance.rect {
        let _ = write!(out, " box=\"{} {} {} {}\"", rect.x, rect.y, rect.w, rect.h);
    }
    if let Some(doc) = appearance.doc {
        number(out, "doc", doc);
    }
    if let Some(importance) = appearance.importance {
        number(out, "importance", importance);
    }
    if let Some(role) = appearance.role {
        attribute(out, "role", role.name());
    }
    if let Some(is_collapsed) = appearance.is_collapsed {
        number(out, "collapsed", is_collapsed);
    }
    if let Some(places) = &appearance.places {
        number(out, "linksAt", vixml::write_spots(&places.links));
        number(out, "imgsAt", vixml::write_spots(&places.images));
    }
    out.push_str("/>\n");
}

/// Writes runs of consecutive ranks as `3-7`.
fn write_ranks(order: &[u32]) -> String {
    let mut out = String::new();
    for run in order.chunk_by(|x, y| x + 1 == *y) {
        let space = if out.is_empty() { "" } else { " " };
        let _ = match run {
            [one] => write!(out, "{space}{one}"),
            [first, .., last] => write!(out, "{space}{first}-{last}"),
            [] => Ok(()),
        };
    }
    out
}

/// Maximum number of ranks. Without it a hostile range could exhaust memory.
const MAX_RANKS: u32 = 1 << 20;

fn read_ranks(text: &str) -> Result<Vec<u32>, String> {
    let wrong = |part: &str| format!("{part:?} is not a rank; write 3 or 3-7");
    let mut order = Vec::new();
    for part in text.split_ascii_whitespace() {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.parse().map_err(|_| wrong(part))?;
        let last: u32 = last.parse().map_err(|_| wrong(part))?;
        if first > last || last - first >= MAX_RANKS || order.len() >= MAX_RANKS as usize {
            return Err(wrong(part));
        }
        order.extend(first..=last);
    }
    Ok(order)
}

fn root(xml: &str) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) | Event::Empty(tag) => return Some(tag.name().0.to_string()),
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn read(xml: &str) -> Result<Delta, XmlError> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut state = VideltaReader::default();
    loop {
        let offset = reader.buffer_position();
        let fail = |reason: String| XmlError { format: "Vi-Delta", offset, reason };
        match reader.read_event().map_err(|error| fail(error.to_string()))? {
            Event::Start(tag) if state.holds_vixml(tag.name().0) => {
                let start = offset as usize;
                reader.read_to_end(tag.name()).map_err(|error| fail(error.to_string()))?;
                let block = xml.get(start..reader.buffer_position() as usize).unwrap_or_default();
                state.vixml(block).map_err(fail)?;
            }
            Event::Start(tag) => state.start(&tag).map_err(fail)?,
            Event::Text(text) => state.text(&text.xml10_content()).map_err(fail)?,
            Event::End(_) => state.end(),
            Event::Eof => return state.finish().map_err(fail),
            _ => {}
        }
    }
}

/// The state of reading a delta. `open` holds the names of the open elements.
type NumberedElements = Vec<(u32, Element)>;

#[derive(Default)]
struct VideltaReader {
    delta: Option<Delta>,
    open: Vec<String>,
    order_of: Option<ElementKind>,
    /// The texts of the open `<Regroup>`, before and after.
    regrouped: (NumberedElements, NumberedElements),
}

impl VideltaReader {
    /// Blocks in `<Structure>` are Vi-XML.
    fn holds_vixml(&self, tag: &str) -> bool {
        let open: Vec<&str> = self.open.iter().map(String::as_str).collect();
        tag == "Block" && matches!(open[..], ["Delta", "Structure" | "Nesting", "Insert" | "Delete"])
    }

    fn vixml(&mut self, block: &str) -> Result<(), String> {
        let whole = format!("<Document url=\"\" version=\"\">{block}</Document>");
        let tree = vixml::read(&whole).map_err(|error| error.to_string())?;
        let is_insert = self.open.last().is_some_and(|tag| tag == "Insert");
        let wrap = if is_insert { BlockOperation::Insert } else { BlockOperation::Delete };
        let is_nesting = self.open.iter().any(|tag| tag == "Nesting");
        let delta = self.delta.as_mut().ok_or("<Structure> outside <Delta>; move it inside")?;
        let operations = if is_nesting { &mut delta.nested } else { &mut delta.structure };
        operations.extend(tree.blocks.into_iter().map(wrap));
        Ok(())
    }

    fn start(&mut self, tag: &BytesStart) -> Result<(), String> {
        let name = tag.name().0.to_string();
        let open: Vec<&str> = self.open.iter().map(String::as_str).collect();
        match (&open[..], name.as_str(), &mut self.delta) {
            ([], "Delta", delta @ None) => *delta = Some(read_delta(tag)?),
            ([], "Delta", Some(_)) => return Err("a second <Delta>; keep one per file".into()),
            ([], _, _) | (_, _, None) => return Err("no <Delta>: this is not Vi-Delta".into()),
            (["Delta", "Structure", "Move"], "Block", Some(delta)) => {
                delta.structure.push(read_block_move(tag)?);
            }
            (["Delta", "Nesting", "Move"], "Block", Some(delta)) => {
                delta.nested.push(read_block_move(tag)?);
            }
            (["Delta"], "Block", Some(delta)) => delta.blocks.push(read_block(tag)?),
            (["Delta", "Move"], "link" | "img" | "txt", Some(delta)) => delta.moves.push(read_move(tag)?),
            (["Delta", "Shift"], "link" | "img" | "txt", Some(delta)) => delta.shifted.push(read_move(tag)?),
            (["Delta"], "Items", Some(delta)) => delta.items = Some(read_items(tag)?),
            (["Delta", "Items"], "Change", Some(Delta { items: Some(items), .. })) => {
                items.changes.push(read_item_change(tag)?);
            }
            (["Delta", "Items", "Change"], "item", Some(Delta { items: Some(items), .. })) => {
                let change = items.changes.last_mut().ok_or("an item outside <Change>; move it inside")?;
                let is_before = change.kind.has_before() && change.before.is_none();
                let side = if is_before { &mut change.before } else { &mut change.after };
                *side = Some(vixml::read_item(tag)?);
            }
            (["Delta", "Items", "Change", "item"], "place", Some(Delta { items: Some(items), .. })) => {
                let change = items.changes.last_mut().ok_or("a place outside <Change>; move it inside")?;
                let item = change.after.as_mut().or(change.before.as_mut());
                let item = item.ok_or("a place outside an item; move it inside")?;
                if item.places.len() >= MAX_PLACES {
                    return Err(format!("more than {MAX_PLACES} places of an item; remove the last ones"));
                }
                let place = vixml::read_place(tag, item)?;
                item.places.push(place);
            }
            (["Delta", "Look"], "Block", Some(delta)) => delta.appearances.push(read_appearance(tag)?),
            (["Delta", "Block"], "Order", _) => {
                self.order_of = Some(element_kind_from_tag(&vixml::text(tag, "of")?)?)
            }
            (["Delta", "Block"], "Regroup", _) => self.regrouped = Default::default(),
            (["Delta", "Block", "Regroup", side], "txt", _) => {
                let text = (parse(tag, "n")?, read_element(tag, ElementKind::Text, "")?);
                let is_before = *side == "Before";
                if is_before { self.regrouped.0.push(text) } else { self.regrouped.1.push(text) }
            }
            (["Delta", "Block", group], "link" | "img" | "txt", Some(delta)) => {
                if let Some(block) = delta.blocks.last_mut() {
                    read_change(group, tag, block)?;
                }
            }
            _ => {}
        }
        if self.open.len() >= vixml::MAX_DEPTH {
            return Err(format!("elements nested deeper than {}; flatten them", vixml::MAX_DEPTH));
        }
        self.open.push(name);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        if self.open.last().is_some_and(|tag| tag == "Kept")
            && let Some(Delta { items: Some(items), .. }) = &mut self.delta
        {
            items.kept = read_ranks(text)?;
            return Ok(());
        }
        let block = self.delta.as_mut().and_then(|delta| delta.blocks.last_mut());
        let is_within = self.open.get(1).is_some_and(|tag| tag == "Block") && self.open.len() == 3;
        match (self.open.last().map(String::as_str).filter(|_| is_within), block) {
            (Some("Again"), Some(block)) => block.again = read_ranks(text)?,
            (Some("Still"), Some(block)) => block.still = read_ranks(text)?,
            (Some("InsertInText"), Some(block)) => block.in_texts.inserted = read_ranks(text)?,
            (Some("DeleteInText"), Some(block)) => block.in_texts.deleted = read_ranks(text)?,
            (Some("UpdateInText"), Some(block)) => block.in_texts.updated = read_ranks(text)?,
            _ => {}
        }
        let block = self.delta.as_mut().and_then(|delta| delta.blocks.last_mut());
        if let (Some(kind), Some(block)) = (self.order_of, block) {
            block.reordered.push((kind, read_ranks(text)?));
        }
        Ok(())
    }

    fn end(&mut self) {
        let is_regrouping = self.open.pop().is_some_and(|tag| tag == "Regroup");
        if is_regrouping && let Some(block) = self.delta.as_mut().and_then(|delta| delta.blocks.last_mut()) {
            let (before, after) = std::mem::take(&mut self.regrouped);
            block.regrouped.push(Regrouping::new(before, after));
        }
        self.order_of = None;
    }

    fn finish(self) -> Result<Delta, String> {
        match self.delta {
            Some(delta) if self.open.is_empty() => Ok(delta),
            Some(_) => Err("the text ends before </Delta>; the file is truncated".into()),
            None => Err("no <Delta>: this is not Vi-Delta".into()),
        }
    }
}

fn read_delta(tag: &BytesStart) -> Result<Delta, String> {
    Ok(Delta {
        url: vixml::text(tag, "url")?,
        from: vixml::text(tag, "from")?,
        to: vixml::text(tag, "to")?,
        engine: vixml::text(tag, "engine").unwrap_or_default(),
        length: optional(tag, "length")?.unwrap_or(1.0),
        has_same_words: optional(tag, "sameWords")?.unwrap_or(false),
        n_page_words: optional(tag, "words")?.unwrap_or(0),
        n_other_words: optional(tag, "otherWords")?.unwrap_or(0),
        ..Delta::default()
    })
}

fn read_items(tag: &BytesStart) -> Result<ItemDelta, String> {
    Ok(ItemDelta {
        size: if has(tag, "words") { Some(vixml::read_list_size(tag)?) } else { None },
        is_listing: parse(tag, "hub")?,
        prose_share: parse(tag, "proseShare")?,
        ..ItemDelta::default()
    })
}

fn read_item_change(tag: &BytesStart) -> Result<ItemChange, String> {
    Ok(ItemChange {
        kind: vixml::text(tag, "op")?.parse()?,
        rank_before: optional(tag, "rankBefore")?,
        rank_after: optional(tag, "rankAfter")?,
        before: None,
        after: None,
        share: parse(tag, "share")?,
    })
}

fn read_block_move(tag: &BytesStart) -> Result<BlockOperation, String> {
    let importance = parse(tag, "importance")?;
    Ok(BlockOperation::Move { from: reference(tag, "from")?, to: reference(tag, "to")?, importance })
}

fn reference(tag: &BytesStart, name: &str) -> Result<BlockRef, String> {
    vixml::text(tag, name)?.parse()
}

fn read_block(tag: &BytesStart) -> Result<BlockDelta, String> {
    let before = reference(tag, "ref")?;
    let after = if has(tag, "to") { reference(tag, "to")? } else { before.clone() };
    let importance = parse(tag, "importance")?;
    Ok(BlockDelta {
        before,
        after,
        importance,
        importance_before: optional(tag, "was")?.unwrap_or(importance),
        role: BlockRole::from_name(&vixml::text(tag, "role").unwrap_or_default()),
        n_elements: [parse(tag, "links")?, parse(tag, "imgs")?, parse(tag, "txts")?],
        n_words: parse(tag, "words")?,
        ..BlockDelta::default()
    })
}

fn optional<T: FromStr>(tag: &BytesStart, name: &str) -> Result<Option<T>, String> {
    if has(tag, name) { parse(tag, name).map(Some) } else { Ok(None) }
}

fn element_kind_from_tag(tag: &str) -> Result<ElementKind, String> {
    let found = ElementKind::ALL.into_iter().find(|kind| self::tag(*kind) == tag);
    found.ok_or_else(|| format!("{tag:?} is not an element; expected link, img or txt"))
}

fn read_change(group: &str, tag: &BytesStart, block: &mut BlockDelta) -> Result<(), String> {
    let kind = element_kind_from_tag(tag.name().0)?;
    let place: u32 = parse(tag, "n")?;
    match group {
        "Insert" => block.inserted.push((place, read_element(tag, kind, "")?)),
        "Delete" => block.deleted.push((place, read_element(tag, kind, "")?)),
        "Same" => block.respelled.push((place, read_element(tag, kind, "")?)),
        "Update" => {
            let (before, after) = (read_element(tag, kind, "old")?, read_element(tag, kind, "new")?);
            let distance_outside_links = optional(tag, "outsideLinks")?;
            block.updated.push(Update { index: place, before, after, distance_outside_links });
        }
        _ => {}
    }
    Ok(())
}

/// `side` is empty, `old` or `new`. An attribute without a prefix is valid for both sides.
fn read_element(tag: &BytesStart, kind: ElementKind, side: &str) -> Result<Element, String> {
    let get = |name: &str| {
        let sided = format!("{side}{}", capital(name));
        if !side.is_empty() && has(tag, &sided) { vixml::text(tag, &sided) } else { vixml::text(tag, name) }
    };
    let (text_name, url_name) = attribute_names(kind);
    let text = get(text_name)?;
    let id_name = if side.is_empty() { "ID".to_string() } else { format!("{side}ID") };
    let url = if url_name.is_empty() { String::new() } else { get(url_name)? };
    let mut element = Element::new(kind, &text, &url);
    if has(tag, &id_name) {
        *element.id_mut() = vixml::id(tag, &id_name)?;
    }
    Ok(element)
}

fn read_move(tag: &BytesStart) -> Result<ElementMove, String> {
    Ok(ElementMove {
        from: reference(tag, "fromBlock")?,
        from_index: parse(tag, "fromN")?,
        to: reference(tag, "toBlock")?,
        to_index: parse(tag, "toN")?,
        importance: parse(tag, "importance")?,
        element: read_element(tag, element_kind_from_tag(tag.name().0)?, "")?,
        before: match has(tag, "was") {
            true => Some(Element::new(ElementKind::Text, &vixml::text(tag, "was")?, "")),
            false => None,
        },
        is_in_text: optional(tag, "inText")?.unwrap_or(false),
    })
}

fn read_appearance(tag: &BytesStart) -> Result<Appearance, String> {
    let text = |name: &str| has(tag, name).then(|| vixml::text(tag, name)).transpose();
    Ok(Appearance {
        block: reference(tag, "ref")?,
        rect: text("box")?.map(|value| read_box(&value)).transpose()?,
        doc: optional(tag, "doc")?,
        importance: optional(tag, "importance")?,
        role: text("role")?.map(|name| BlockRole::from_name(&name)),
        is_collapsed: optional(tag, "collapsed")?,
        places: match (text("linksAt")?, text("imgsAt")?) {
            (None, None) => None,
            (links, images) => Some(ElementPositions {
                links: vixml::read_spots(&links.unwrap_or_default())?,
                images: vixml::read_spots(&images.unwrap_or_default())?,
            }),
        },
    })
}

fn read_box(value: &str) -> Result<Rect, String> {
    let numbers: Result<Vec<f32>, _> = value.split(' ').map(str::parse).collect();
    match numbers.as_deref() {
        Ok(&[x, y, w, h]) => Ok(Rect { x, y, w, h }),
        _ => Err(format!("box=\"{value}\" is not a box; expected four numbers x y w h")),
    }
}
