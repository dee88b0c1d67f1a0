//! Messages between this process and a render worker <-> bytes.
//!
//! A frame is its length (4 bytes, little endian), its kind (1 byte) and its fields: numbers as LEB128, floats as
//! 4 bytes, texts with their length before them. It is never stored, because both ends are the same program.

use std::io::{self, Read, Write};

use perennial_core::layout::{Display, Layout, LayoutNode, Rect, Rgba};

use crate::resource::Requisite;

/// Longest frame.
const MAX_FRAME: usize = 1 << 30;

/// A message between the two ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// To the worker: lay this page out.
    Page {
        /// Address of the page.
        url: String,
        /// Its text.
        html: String,
    },
    /// From the worker: the page asks for this address.
    Need(String),
    /// To the worker: what was found there.
    Answer(Requisite),
    /// From the worker: the layout.
    Done(Box<Layout>),
    /// From the worker: the engine panicked with this message.
    Panicked(String),
}

/// Bytes that are no message.
#[derive(Debug, thiserror::Error)]
#[error("a render worker sent a broken frame at byte {at}: update so that both ends are the same program")]
pub struct WireError {
    /// The offset of the error.
    pub at: usize,
}

impl Message {
    /// The whole frame, its length first.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        match self {
            Message::Page { url, html } => {
                out.push(1);
                put_text(&mut out, url);
                put_text(&mut out, html);
            }
            Message::Need(url) => {
                out.push(2);
                put_text(&mut out, url);
            }
            Message::Answer(requisite) => put_requisite(&mut out, requisite),
            Message::Done(layout) => {
                out.push(6);
                put_layout(&mut out, layout);
            }
            Message::Panicked(words) => {
                out.push(7);
                put_text(&mut out, words);
            }
        }
        let length = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    }

    /// Reads what follows the length.
    pub fn from_body(body: &[u8]) -> Result<Message, WireError> {
        let mut fields = Fields { bytes: body, at: 0 };
        let message = match fields.byte()? {
            1 => Message::Page { url: fields.text()?, html: fields.text()? },
            2 => Message::Need(fields.text()?),
            3 => Message::Answer(Requisite::Image(fields.number()? as u32, fields.number()? as u32)),
            4 => Message::Answer(Requisite::Css(fields.text()?)),
            5 => Message::Answer(Requisite::Absent),
            6 => Message::Done(Box::new(fields.layout()?)),
            7 => Message::Panicked(fields.text()?),
            _ => return Err(WireError { at: 0 }),
        };
        if fields.at == body.len() { Ok(message) } else { Err(WireError { at: fields.at }) }
    }

    /// Reads one message; `None` at the end of the stream.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Message>> {
        let mut length = [0; 4];
        match from.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let mut body = vec![0; body_length(length)?];
        from.read_exact(&mut body)?;
        Message::from_body(&body).map(Some).map_err(io::Error::other)
    }

    /// Writes one message and flushes.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.to_frame())?;
        to.flush()
    }
}

/// The length of the body that a frame's first four bytes announce.
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

fn put_requisite(out: &mut Vec<u8>, requisite: &Requisite) {
    match requisite {
        Requisite::Image(width, height) => {
            out.push(3);
            put_number(out, u64::from(*width));
            put_number(out, u64::from(*height));
        }
        Requisite::Css(css) => {
            out.push(4);
            put_text(out, css);
        }
        Requisite::Absent => out.push(5),
    }
}

fn put_layout(out: &mut Vec<u8>, layout: &Layout) {
    put_text(out, &layout.base_url);
    put_text(out, &layout.engine);
    put_float(out, layout.width);
    put_float(out, layout.height);
    put_number(out, layout.nodes.len() as u64);
    for node in &layout.nodes {
        put_node(out, node);
    }
}

fn put_node(out: &mut Vec<u8>, node: &LayoutNode) {
    put_number(out, node.parent.map_or(0, |parent| u64::from(parent) + 1));
    put_text(out, &node.tag);
    put_number(out, node.attributes.len() as u64);
    for (name, value) in &node.attributes {
        put_text(out, name);
        put_text(out, value);
    }
    put_text(out, &node.text);
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

struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Fields<'_> {
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
        let n = self.number()? as usize;
        let at = self.at;
        let bytes = self.take(n)?.to_vec();
        String::from_utf8(bytes).map_err(|_| WireError { at })
    }

    fn float(&mut self) -> Result<f32, WireError> {
        let bytes = self.take(4)?;
        Ok(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn rgba(&mut self) -> Result<Rgba, WireError> {
        let bytes = self.take(4)?;
        Ok(Rgba { r: bytes[0], g: bytes[1], b: bytes[2], a: bytes[3] })
    }

    fn layout(&mut self) -> Result<Layout, WireError> {
        let (base_url, engine) = (self.text()?, self.text()?);
        let (width, height) = (self.float()?, self.float()?);
        let n_nodes = self.number()? as usize;
        // A node takes more than 30 bytes, so that a higher count cannot be true.
        let mut nodes = Vec::with_capacity(n_nodes.min((self.bytes.len() - self.at) / 30 + 1));
        for index in 0..n_nodes {
            nodes.push(self.node(index)?);
        }
        Ok(Layout { base_url, engine, width, height, nodes })
    }

    fn node(&mut self, index: usize) -> Result<LayoutNode, WireError> {
        let parent = self.number()?.checked_sub(1).map(|parent| parent as u32);
        if parent.is_some_and(|parent| parent as usize >= index) {
            return Err(WireError { at: self.at });
        }
        let tag = self.text()?;
        let n_attributes = self.number()? as usize;
        let mut attributes = Vec::with_capacity(n_attributes.min(64));
        for _ in 0..n_attributes {
            attributes.push((self.text()?, self.text()?));
        }
        let text = self.text()?;
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
        Ok(LayoutNode {
            parent,
            tag,
            attributes,
            text,
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
    use crate::dom::Dom;
    use crate::structural;
    use proptest::prelude::*;

    fn round_trip(message: &Message) {
        let frame = message.to_frame();
        let read = Message::read(&mut &frame[..]).expect("a whole frame").expect("not the end");
        assert_eq!(&read, message);
    }

    #[test]
    fn every_message_comes_back() {
        let html = "<body bgcolor=red><p id=a class='b c'>żółć <img src=x width=3 height=4></p><table><td>x";
        let layout = structural::layout(&Dom::parse(html), "http://a.example/b");
        assert!(layout.nodes.len() > 6);
        round_trip(&Message::Done(Box::new(layout)));
        round_trip(&Message::Page { url: "u".into(), html: "é".repeat(300) });
        round_trip(&Message::Need("http://x/y.css".into()));
        round_trip(&Message::Panicked("index out of bounds".into()));
        for requisite in [Requisite::Image(640, 70_000), Requisite::Css("a{}".into()), Requisite::Absent] {
            round_trip(&Message::Answer(requisite));
        }
        assert!(Message::read(&mut &[][..]).expect("end").is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = Message::from_body(&body) {
                let frame = message.to_frame();
                prop_assert_eq!(Message::from_body(&frame[4..]).expect("own frame").to_frame(), frame);
            }
        }

        #[test]
        fn a_cut_frame_is_an_error(cut in 0usize..400) {
            let layout = structural::layout(&Dom::parse("<p>some text<b>bold</b>"), "http://a.example/");
            let frame = Message::Done(Box::new(layout)).to_frame();
            let body = &frame[4..];
            if cut < body.len() {
                prop_assert!(Message::from_body(&body[..cut]).is_err());
            }
        }
    }
}
