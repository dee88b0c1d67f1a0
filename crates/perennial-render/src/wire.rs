//! Encodes and decodes the messages between this process and a render worker.
//!
//! A frame is its length (4 bytes, little endian), its kind (1 byte) and its fields: numbers as LEB128, floats as 4
//! bytes, texts with their length before them. A page is sent as the nodes that the engine needs, with each name
//! written once. The response contains its boxes without text. Frames are never stored, because both ends must be the same program.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use html5ever::{Attribute, QualName};
use perennial_core::page::layout::{Boxes, Display, NodeBox, Rect, Rgba};

use crate::build;
use crate::dom::{Dom, DomKind, DomNode};
use crate::resource::Subresource;

const MAX_FRAME: usize = 1 << 30;

/// A message between the two ends.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerMessage {
    /// To the worker: lay this page out.
    Page(Box<WorkerPage>),
    /// From the worker: the page needs these URLs.
    Need(Vec<String>),
    /// To the worker: the subresources.
    Answer(Vec<Subresource>),
    /// From the worker: the layout.
    Done(Box<Boxes>),
    /// From the worker: the engine panicked with this message.
    Panicked(String),
}

/// A page as the worker receives it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerPage {
    /// The URL against which its links resolve.
    pub base: String,
    /// The nodes that the engine needs.
    pub dom: Dom,
    /// Their numbers at the other end, ascending.
    pub sources: Vec<u32>,
}

/// A malformed message.
#[derive(Debug, thiserror::Error)]
#[error("a render worker sent a broken frame at byte {at}: update so that both ends are the same program")]
pub struct WireError {
    /// The offset of the error.
    pub at: usize,
}

impl WorkerMessage {
    /// The complete frame with its length.
    pub fn to_frame(&self) -> Vec<u8> {
        frame(|out| match self {
            WorkerMessage::Page(page) => put_sent_page(out, page),
            WorkerMessage::Need(urls) => {
                out.push(2);
                put_number(out, urls.len() as u64);
                urls.iter().for_each(|url| put_text(out, url));
            }
            WorkerMessage::Answer(found) => {
                out.push(3);
                put_number(out, found.len() as u64);
                found.iter().for_each(|subresource| put_subresource(out, subresource));
            }
            WorkerMessage::Done(boxes) => {
                out.push(4);
                put_boxes(out, boxes);
            }
            WorkerMessage::Panicked(words) => {
                out.push(5);
                put_text(out, words);
            }
        })
    }

    /// Parses a frame without its length.
    pub fn from_body(body: &[u8]) -> Result<WorkerMessage, WireError> {
        let mut fields = FieldReader { bytes: body, at: 0 };
        let message = match fields.byte()? {
            1 => WorkerMessage::Page(Box::new(fields.page()?)),
            2 => WorkerMessage::Need(fields.list(FieldReader::text)?),
            3 => WorkerMessage::Answer(fields.list(FieldReader::subresource)?),
            4 => WorkerMessage::Done(Box::new(fields.boxes()?)),
            5 => WorkerMessage::Panicked(fields.text()?),
            _ => return Err(WireError { at: 0 }),
        };
        if fields.at == body.len() { Ok(message) } else { Err(WireError { at: fields.at }) }
    }

    /// Reads one message; `None` at the end of the stream.
    pub fn read(from: &mut impl Read) -> io::Result<Option<WorkerMessage>> {
        let mut length = [0; 4];
        match from.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let mut body = vec![0; body_length(length)?];
        from.read_exact(&mut body)?;
        WorkerMessage::from_body(&body).map(Some).map_err(io::Error::other)
    }

    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.to_frame())?;
        to.flush()
    }
}

/// The frame that requests a page's layout. Contains only the nodes that the engine needs.
pub(crate) fn page_frame(base: &str, dom: &Dom) -> Vec<u8> {
    frame(|out| {
        let mut page = PageWriter::new(out, base, dom.has_body_text);
        // Index among the sent nodes, by number.
        let mut places = vec![None; dom.nodes.len()];
        let mut index = 0;
        while let Some(node) = dom.nodes.get(index) {
            let is_taken = !build::is_left_out(node);
            let parent = node.parent.and_then(|parent| places[parent as usize]);
            let takes = |own: &Attribute| is_taken && build::takes(node.tag(), own);
            places[index] = Some(page.put(index as u32, parent, node, takes));
            // Of a style element the text is needed, of other opaque elements nothing.
            let is_entered = is_taken && (!build::is_opaque(node) || node.tag() == "style");
            index = if is_entered { index + 1 } else { node.end as usize };
        }
        page.end();
    })
}

fn put_sent_page(out: &mut Vec<u8>, sent: &WorkerPage) {
    let mut page = PageWriter::new(out, &sent.base, sent.dom.has_body_text);
    for (node, source) in sent.dom.nodes.iter().zip(&sent.sources) {
        page.put(*source, node.parent, node, |_| true);
    }
    page.end();
}

/// Writes the nodes of a page.
struct PageWriter<'a, 'n> {
    out: &'a mut Vec<u8>,
    /// Numbers of the names written so far.
    names: HashMap<&'n QualName, u64>,
    n_nodes: u32,
    /// One past the number of the last node.
    next: u32,
}

impl<'a, 'n> PageWriter<'a, 'n> {
    fn new(out: &'a mut Vec<u8>, base: &str, has_body_text: bool) -> PageWriter<'a, 'n> {
        out.push(1);
        put_text(out, base);
        out.push(u8::from(has_body_text));
        PageWriter { out, names: HashMap::new(), n_nodes: 0, next: 0 }
    }

    /// Writes a node: the distance of its number from the previous one, its parent's index, its name, attributes and
    /// text.
    fn put(
        &mut self,
        source: u32,
        parent: Option<u32>,
        node: &'n DomNode,
        takes: impl Fn(&Attribute) -> bool,
    ) -> u32 {
        put_number(self.out, u64::from(source - self.next) + 1);
        self.next = source + 1;
        put_number(self.out, parent.map_or(0, |parent| u64::from(parent) + 1));
        match &node.kind {
            DomKind::Text(text) => {
                self.out.push(0);
                put_text(self.out, text);
            }
            DomKind::Element { name, attributes } => {
                self.out.push(1);
                self.put_name(name);
                put_number(self.out, attributes.iter().filter(|own| takes(own)).count() as u64);
                for attribute in attributes.iter().filter(|own| takes(own)) {
                    self.put_name(&attribute.name);
                    put_text(self.out, &attribute.value);
                }
            }
        }
        self.n_nodes += 1;
        self.n_nodes - 1
    }

    /// Writes the number of a name. The first time its parts follow.
    fn put_name(&mut self, name: &'n QualName) {
        let n_names = self.names.len() as u64;
        let number = *self.names.entry(name).or_insert(n_names);
        put_number(self.out, number);
        if number == n_names {
            self.out.push(u8::from(name.prefix.is_some()));
            put_text(self.out, name.prefix.as_deref().unwrap_or_default());
            put_text(self.out, &name.ns);
            put_text(self.out, &name.local);
        }
    }

    fn end(self) {
        put_number(self.out, 0);
    }
}

/// Writes a frame around the output of `put`.
fn frame(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![0; 4];
    put(&mut out);
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

/// The length of a frame's body, from its first four bytes.
pub(crate) fn body_length(length: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME { Err(io::Error::other(WireError { at: 0 })) } else { Ok(length) }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn put_float(out: &mut Vec<u8>, float: f32) {
    out.extend_from_slice(&float.to_le_bytes());
}

fn put_subresource(out: &mut Vec<u8>, subresource: &Subresource) {
    match subresource {
        Subresource::Image(width, height) => {
            out.push(1);
            put_number(out, u64::from(*width));
            put_number(out, u64::from(*height));
        }
        Subresource::Css(css) => {
            out.push(2);
            put_text(out, css);
        }
        Subresource::Absent => out.push(3),
    }
}

fn put_boxes(out: &mut Vec<u8>, boxes: &Boxes) {
    put_text(out, &boxes.engine);
    put_float(out, boxes.width);
    put_float(out, boxes.height);
    put_number(out, boxes.nodes.len() as u64);
    for node in &boxes.nodes {
        put_node(out, node);
    }
}

fn put_node(out: &mut Vec<u8>, node: &NodeBox) {
    put_number(out, u64::from(node.source));
    put_number(out, node.parent.map_or(0, |parent| u64::from(parent) + 1));
    for side in [node.rect.x, node.rect.y, node.rect.w, node.rect.h, node.font_size] {
        put_float(out, side);
    }
    put_number(out, u64::from(node.font_weight));
    for color in [node.color, node.background] {
        out.extend_from_slice(&[color.r, color.g, color.b, color.a]);
    }
    let display = match node.display {
        Display::None => 0u8,
        Display::Inline => 1,
        Display::Block => 2,
        Display::FlexOrGrid => 3,
        Display::Table => 4,
    };
    let flags = [node.has_background_image, node.is_fixed, node.is_visible];
    out.push(flags.iter().fold(display, |packed, &flag| packed << 1 | u8::from(flag)));
}

struct FieldReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl FieldReader<'_> {
    fn take(&mut self, n: usize) -> Result<&[u8], WireError> {
        let end = self.at.checked_add(n).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or(WireError { at: self.at })?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, WireError> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u64, WireError> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(WireError { at: self.at })
    }

    fn text(&mut self) -> Result<String, WireError> {
        self.str().map(str::to_owned)
    }

    fn str(&mut self) -> Result<&str, WireError> {
        let n = self.number()? as usize;
        let at = self.at;
        std::str::from_utf8(self.take(n)?).map_err(|_| WireError { at })
    }

    fn float(&mut self) -> Result<f32, WireError> {
        let bytes = self.take(4)?;
        Ok(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn rgba(&mut self) -> Result<Rgba, WireError> {
        let bytes = self.take(4)?;
        Ok(Rgba { r: bytes[0], g: bytes[1], b: bytes[2], a: bytes[3] })
    }

    /// A count, followed by that many fields.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, WireError>) -> Result<Vec<T>, WireError> {
        let n = self.number()? as usize;
        // A field has at least one byte, so a count above the remaining bytes is invalid.
        if n > self.bytes.len() - self.at {
            return Err(WireError { at: self.at });
        }
        (0..n).map(|_| read(self)).collect()
    }

    fn subresource(&mut self) -> Result<Subresource, WireError> {
        match self.byte()? {
            1 => Ok(Subresource::Image(self.number()? as u32, self.number()? as u32)),
            2 => Ok(Subresource::Css(self.text()?)),
            3 => Ok(Subresource::Absent),
            _ => Err(WireError { at: self.at }),
        }
    }

    /// The index of a parent among the nodes read so far.
    fn parent(&mut self, n_before: usize) -> Result<Option<u32>, WireError> {
        match self.number()?.checked_sub(1) {
            Some(parent) if parent >= n_before as u64 => Err(WireError { at: self.at }),
            parent => Ok(parent.map(|parent| parent as u32)),
        }
    }

    fn page(&mut self) -> Result<WorkerPage, WireError> {
        let (base, has_body_text) = (self.text()?, self.byte()? != 0);
        let (mut nodes, mut sources, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = 0u32;
        while let Some(distance) = self.number()?.checked_sub(1) {
            let source = u32::try_from(u64::from(next).saturating_add(distance));
            let source = source.ok().filter(|&source| source < u32::MAX).ok_or(WireError { at: self.at })?;
            next = source + 1;
            let parent = self.parent(nodes.len())?;
            let kind = self.kind(&mut names)?;
            nodes.push(DomNode { parent, end: nodes.len() as u32 + 1, kind });
            sources.push(source);
        }
        let dom = Dom { has_body_text, ..Dom::in_order(nodes) };
        Ok(WorkerPage { base, dom, sources })
    }

    fn kind(&mut self, names: &mut Vec<QualName>) -> Result<DomKind, WireError> {
        if self.byte()? == 0 {
            return Ok(DomKind::Text(self.text()?));
        }
        let name = self.name(names)?;
        let n_attributes = self.number()? as usize;
        let mut attributes = Vec::with_capacity(n_attributes.min(64));
        for _ in 0..n_attributes {
            attributes.push(Attribute { name: self.name(names)?, value: self.str()?.into() });
        }
        Ok(DomKind::Element { name, attributes })
    }

    fn name(&mut self, names: &mut Vec<QualName>) -> Result<QualName, WireError> {
        let number = self.number()? as usize;
        if number == names.len() {
            let has_prefix = self.byte()? != 0;
            let prefix = self.str()?.into();
            let (ns, local) = (self.str()?.into(), self.str()?.into());
            names.push(QualName::new(has_prefix.then_some(prefix), ns, local));
        }
        names.get(number).cloned().ok_or(WireError { at: self.at })
    }

    fn boxes(&mut self) -> Result<Boxes, WireError> {
        let (engine, width, height) = (self.text()?, self.float()?, self.float()?);
        let n_nodes = self.number()? as usize;
        // A node has more than 30 bytes, so a higher count is invalid.
        let mut nodes = Vec::with_capacity(n_nodes.min((self.bytes.len() - self.at) / 30 + 1));
        for index in 0..n_nodes {
            nodes.push(self.node(index)?);
        }
        Ok(Boxes { engine, width, height, nodes })
    }

    fn node(&mut self, index: usize) -> Result<NodeBox, WireError> {
        let source = self.number()? as u32;
        let parent = self.parent(index)?;
        let rect = Rect { x: self.float()?, y: self.float()?, w: self.float()?, h: self.float()? };
        let font_size = self.float()?;
        let font_weight = self.number()? as u16;
        let (color, background) = (self.rgba()?, self.rgba()?);
        let packed = self.byte()?;
        let display = match packed >> 3 {
            0 => Display::None,
            1 => Display::Inline,
            2 => Display::Block,
            3 => Display::FlexOrGrid,
            4 => Display::Table,
            _ => return Err(WireError { at: self.at }),
        };
        Ok(NodeBox {
            source,
            parent,
            rect,
            font_size,
            font_weight,
            color,
            background,
            has_background_image: packed & 4 != 0,
            display,
            is_fixed: packed & 2 != 0,
            is_visible: packed & 1 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: &str = "<head><base href=/x><style media=print>a{}</style><body bgcolor=red onload='x()'><p id=a class='b c'>żółć \
        <img src=x srcset=y width=3><svg xml:lang=de viewBox='0 0 1 1'><path d=M0></svg><script>no()</script><b>last";

    fn round_trip(message: &WorkerMessage) {
        let frame = message.to_frame();
        let read = WorkerMessage::read(&mut &frame[..]).expect("a whole frame").expect("not the end");
        assert_eq!(&read, message);
    }

    fn sent(html: &str) -> WorkerPage {
        match WorkerMessage::from_body(&page_frame("http://a.example/", &Dom::parse(html))[4..]) {
            Ok(WorkerMessage::Page(page)) => *page,
            other => panic!("{other:?}"),
        }
    }

    fn boxes() -> Boxes {
        let node = |source: u32| NodeBox {
            source: 3 * source,
            parent: source.checked_sub(1),
            rect: Rect { x: 1.5, y: 2.0, w: source as f32, h: 4.0 },
            font_size: 16.0,
            font_weight: 700,
            color: Rgba { r: 1, g: 2, b: 3, a: 255 },
            has_background_image: source == 1,
            display: [Display::None, Display::Inline, Display::Block, Display::FlexOrGrid, Display::Table]
                [source as usize],
            is_fixed: source == 2,
            is_visible: source != 0,
            ..NodeBox::default()
        };
        Boxes { engine: "e".into(), width: 3.0, height: 9.0, nodes: (0..5).map(node).collect() }
    }

    #[test]
    fn every_message_comes_back() {
        round_trip(&WorkerMessage::Page(Box::new(sent(PAGE))));
        round_trip(&WorkerMessage::Done(Box::new(boxes())));
        round_trip(&WorkerMessage::Need(vec!["http://x/y.css".into(), "é".repeat(300)]));
        round_trip(&WorkerMessage::Panicked("index out of bounds".into()));
        round_trip(&WorkerMessage::Answer(vec![
            Subresource::Image(640, 70_000),
            Subresource::Css("a{}".into()),
            Subresource::Absent,
        ]));
        assert!(WorkerMessage::read(&mut &[][..]).expect("end").is_none());
    }

    #[test]
    fn a_page_is_sent_without_what_the_engine_leaves_out() {
        let (page, whole) = (sent(PAGE), Dom::parse(PAGE));
        let outline: Vec<String> = page
            .dom
            .nodes
            .iter()
            .map(|node| match &node.kind {
                DomKind::Text(text) => format!("'{text}'"),
                DomKind::Element { attributes, .. } => attributes
                    .iter()
                    .fold(node.tag().to_string(), |tag, own| format!("{tag} {}", &*own.name.local)),
            })
            .collect();
        let expected = "html|head|base|style media|'a{}'|body bgcolor|p id class|'żółć '|img src width|svg lang viewBox|script|b|'last'";
        assert_eq!(outline.join("|"), expected);
        for (node, source) in page.dom.nodes.iter().zip(page.sources) {
            assert_eq!(node.tag(), whole.nodes[source as usize].tag());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = WorkerMessage::from_body(&body) {
                let frame = message.to_frame();
                prop_assert_eq!(WorkerMessage::from_body(&frame[4..]).expect("own frame").to_frame(), frame);
            }
        }

        #[test]
        fn a_cut_frame_is_an_error(cut in 0usize..400) {
            for frame in [WorkerMessage::Done(Box::new(boxes())).to_frame(), page_frame("http://a.example/", &Dom::parse(PAGE))] {
                let body = &frame[4..];
                if cut < body.len() {
                    prop_assert!(WorkerMessage::from_body(&body[..cut]).is_err());
                }
            }
        }
    }
}
