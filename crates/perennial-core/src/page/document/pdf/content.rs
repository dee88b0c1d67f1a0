//! The operators of a page -> positioned lines of text (ISO 32000-1, 8.4 and 9.4).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use memchr::memmem;

use super::file::{PdfFile, PdfPage};
use super::font::{Font, GlyphText};
use super::object::{Dictionary, Lexer, PdfValue, is_blank};

/// Maximum values and operators of all pages.
const MAX_VALUES: usize = 8_000_000;
/// Maximum bytes of text of all pages.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Maximum operands of an operator.
const MAX_OPERANDS: usize = 32;
/// Maximum saved states, and maximum nesting of forms.
const MAX_SAVED: usize = 64;
const MAX_FORMS: usize = 8;
/// Maximum fonts of a file, and maximum entries of all of their tables.
const MAX_FONTS: usize = 1024;
const MAX_FONT_ENTRIES: usize = 1 << 20;
/// Minimum gap that is a space, as a share of the font size.
const SPACE: f32 = 0.18;
/// Maximum distance between baselines of one line, as a share of the font size.
const SAME_LINE: f32 = 0.5;

/// A line of text.
pub(super) struct TextLine {
    pub(super) text: String,
    /// Its baseline, upwards from the bottom of the page.
    pub(super) y: f32,
    /// Its font size on the page.
    pub(super) size: f32,
}

/// a, b, c, d, e, f: (x, y) becomes (ax + cy + e, bx + dy + f).
type Matrix = [f32; 6];

const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// Applies `inner` first, then `outer`.
fn product(inner: Matrix, outer: Matrix) -> Matrix {
    let [a, b, c, d, e, f] = inner;
    let [oa, ob, oc, od, oe, of] = outer;
    [
        a * oa + b * oc,
        a * ob + b * od,
        c * oa + d * oc,
        c * ob + d * od,
        e * oa + f * oc + oe,
        e * ob + f * od + of,
    ]
}

/// The state that operators change and `q` saves.
#[derive(Clone)]
struct GraphicsState {
    page: Matrix,
    font: Option<Rc<Font>>,
    size: f32,
    leading: f32,
    letter_space: f32,
    word_space: f32,
    stretch: f32,
}

/// Reads the pages of a file one by one.
pub(super) struct Contents<'f> {
    file: &'f PdfFile<'f>,
    fonts: BTreeMap<usize, Rc<Font>>,
    n_font_entries: usize,
    n_values: usize,
    n_bytes: usize,
    state: GraphicsState,
    saved: Vec<GraphicsState>,
    text: Matrix,
    line: Matrix,
    /// The end of the last text, and whether an operator has moved since then.
    end: (f32, f32),
    has_moved: bool,
    lines: Vec<TextLine>,
    images: Vec<(String, String)>,
    /// Images that were already reported, by the memory address of their entries: a logo on every page is one image.
    seen_images: BTreeSet<usize>,
}

impl<'f> Contents<'f> {
    pub(super) fn new(file: &'f PdfFile<'f>) -> Contents<'f> {
        Contents {
            file,
            fonts: BTreeMap::new(),
            n_font_entries: MAX_FONT_ENTRIES,
            n_values: MAX_VALUES,
            n_bytes: MAX_TEXT_BYTES,
            state: GraphicsState::new(),
            saved: Vec::new(),
            text: IDENTITY,
            line: IDENTITY,
            end: (0.0, 0.0),
            has_moved: false,
            lines: Vec::new(),
            images: Vec::new(),
            seen_images: BTreeSet::new(),
        }
    }

    /// Whether the file exceeded the limits.
    pub(super) fn is_cut(&self) -> bool {
        self.n_values == 0 || self.n_bytes == 0
    }

    /// The lines of a page in drawing order, and its images: name and identifier.
    pub(super) fn read(&mut self, page: &PdfPage<'f>) -> (Vec<TextLine>, Vec<(String, String)>) {
        let mut operators = Vec::new();
        for stream in &page.contents {
            if let Some(mut bytes) = self.file.stream(stream) {
                operators.append(&mut bytes);
                operators.push(b'\n');
            }
        }
        self.state = GraphicsState::new();
        self.saved.clear();
        self.run(&operators, page.resources, 0);
        (std::mem::take(&mut self.lines), std::mem::take(&mut self.images))
    }

    fn run(&mut self, operators: &[u8], resources: Option<&'f Dictionary>, depth: usize) {
        let mut lexer = Lexer::new(operators, self.n_values);
        let mut operands: Vec<PdfValue> = Vec::new();
        while let Some(value) = lexer.value() {
            match value {
                PdfValue::Word(word) if word == "ID" => skip_image(&mut lexer),
                PdfValue::Word(word) if word == "Do" => {
                    self.n_values = lexer.n_left;
                    if let Some(name) = operands.last().and_then(PdfValue::name) {
                        self.draw(name, resources, depth);
                    }
                    lexer.n_left = self.n_values;
                    operands.clear();
                }
                PdfValue::Word(word) => {
                    self.operate(&word, &operands, resources);
                    operands.clear();
                }
                value if operands.len() < MAX_OPERANDS => operands.push(value),
                _ => {}
            }
            if self.n_bytes == 0 {
                break;
            }
        }
        self.n_values = lexer.n_left;
    }

    fn operate(&mut self, operator: &str, operands: &[PdfValue], resources: Option<&'f Dictionary>) {
        let number = |place: usize| operands.get(place).and_then(PdfValue::number).unwrap_or_default();
        let matrix = || [0, 1, 2, 3, 4, 5].map(number);
        match operator {
            "q" if self.saved.len() < MAX_SAVED => self.saved.push(self.state.clone()),
            "Q" => self.state = self.saved.pop().unwrap_or_else(|| self.state.clone()),
            "cm" => self.state.page = product(matrix(), self.state.page),
            "BT" => self.place(IDENTITY),
            "Tf" => {
                self.state.font =
                    operands.first().and_then(PdfValue::name).and_then(|name| self.font(name, resources));
                self.state.size = number(1);
            }
            "TL" => self.state.leading = number(0),
            "Tc" => self.state.letter_space = number(0),
            "Tw" => self.state.word_space = number(0),
            "Tz" => self.state.stretch = number(0) / 100.0,
            "Td" => self.move_line(number(0), number(1)),
            "TD" => {
                self.state.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            "Tm" => self.place(matrix()),
            "T*" => self.move_line(0.0, -self.state.leading),
            "Tj" | "'" | "\"" => {
                if operator == "\"" {
                    (self.state.word_space, self.state.letter_space) = (number(0), number(1));
                }
                if operator != "Tj" {
                    self.move_line(0.0, -self.state.leading);
                }
                self.show(operands.last().and_then(PdfValue::string).unwrap_or_default());
            }
            "TJ" => self.show_all(operands.last()),
            _ => {}
        }
    }

    fn place(&mut self, matrix: Matrix) {
        (self.text, self.line, self.has_moved) = (matrix, matrix, true);
    }

    fn move_line(&mut self, x: f32, y: f32) {
        self.place(product([1.0, 0.0, 0.0, 1.0, x, y], self.line));
    }

    /// Shows strings. Numbers between them move the next string to the left, in thousandths of the font size.
    fn show_all(&mut self, values: Option<&PdfValue>) {
        let Some(PdfValue::Array(values)) = values else { return };
        for value in values {
            match value {
                PdfValue::String(string) => self.show(string),
                PdfValue::Number(number) => {
                    self.advance(-number / 1000.0 * self.state.size * self.state.stretch)
                }
                _ => {}
            }
        }
    }

    fn advance(&mut self, x: f32) {
        self.text = product([1.0, 0.0, 0.0, 1.0, x, 0.0], self.text);
    }

    fn show(&mut self, string: &[u8]) {
        let Some(font) = self.state.font.clone() else { return };
        self.begin_text(font.has_widths);
        for glyph in font.glyphs(string) {
            if let Some(line) = self.lines.last_mut().filter(|_| self.n_bytes > 0) {
                let n_before = line.text.len();
                match glyph.text {
                    GlyphText::None => {}
                    GlyphText::One(letter) => line.text.push(letter),
                    GlyphText::Some(letters) => line.text.push_str(letters),
                }
                self.n_bytes = self.n_bytes.saturating_sub(line.text.len() - n_before);
            }
            let word_space = if glyph.is_space { self.state.word_space } else { 0.0 };
            let width = glyph.width / 1000.0 * self.state.size + self.state.letter_space + word_space;
            self.advance(width * self.state.stretch);
        }
        let place = product(self.text, self.state.page);
        self.end = (place[4], place[5]);
    }

    /// Begins a new line if the text is not on the last one, and a new word if there is a gap.
    fn begin_text(&mut self, has_widths: bool) {
        let [_, _, c, d, x, y] = product(self.text, self.state.page);
        let size = self.state.size.abs() * (c * c + d * d).sqrt();
        let gap = x - self.end.0;
        let is_on_line = (y - self.end.1).abs() <= SAME_LINE * size;
        match self.lines.last_mut().filter(|_| is_on_line) {
            Some(line) => {
                let is_apart = gap.abs() > SPACE * size || self.has_moved && !has_widths;
                if is_apart && !line.text.ends_with(' ') {
                    line.text.push(' ');
                }
            }
            None => self.lines.push(TextLine { text: String::new(), y, size }),
        }
        self.has_moved = false;
    }

    fn font(&mut self, name: &str, resources: Option<&'f Dictionary>) -> Option<Rc<Font>> {
        let file = self.file;
        let fonts = file.dictionary(resources?.get("Font"))?;
        let entries = file.dictionary(fonts.get(name))?;
        let key = std::ptr::from_ref(entries).addr();
        if let Some(font) = self.fonts.get(&key) {
            return Some(Rc::clone(font));
        }
        if self.fonts.len() >= MAX_FONTS {
            return None;
        }
        let font = Rc::new(Font::new(file, entries, self.n_font_entries));
        self.n_font_entries = self.n_font_entries.saturating_sub(font.n_entries());
        self.fonts.insert(key, Rc::clone(&font));
        Some(font)
    }

    /// Draws an XObject: a form is read like a page, an image is identified by its checksum.
    fn draw(&mut self, name: &str, resources: Option<&'f Dictionary>, depth: usize) {
        let file = self.file;
        let objects = resources.and_then(|resources| file.dictionary(resources.get("XObject")));
        let Some(value) = objects.and_then(|objects| objects.get(name)) else { return };
        let Some(entries) = file.dictionary(Some(value)) else { return };
        match entries.get("Subtype").and_then(PdfValue::name) {
            Some("Image") if self.seen_images.insert(std::ptr::from_ref(entries).addr()) => {
                let side = |name: &str| {
                    entries.get(name).map(|value| file.resolve(value)).and_then(PdfValue::number)
                };
                let (width, height) = (side("Width").unwrap_or_default(), side("Height").unwrap_or_default());
                let checksum = crc32fast::hash(file.packed(value).unwrap_or_default());
                self.images.push((format!("image {width}x{height}"), format!("crc32:{checksum:08x}")));
            }
            Some("Form") if depth < MAX_FORMS => {
                let Some(operators) = file.stream(value) else { return };
                let (state, saved) = (self.state.clone(), std::mem::take(&mut self.saved));
                if let Some(values) = file.array(entries.get("Matrix")) {
                    let number =
                        |place: usize| values.get(place).and_then(PdfValue::number).unwrap_or_default();
                    self.state.page = product([0, 1, 2, 3, 4, 5].map(number), self.state.page);
                }
                self.run(&operators, file.dictionary(entries.get("Resources")).or(resources), depth + 1);
                (self.state, self.saved) = (state, saved);
            }
            _ => {}
        }
    }
}

impl GraphicsState {
    fn new() -> GraphicsState {
        GraphicsState {
            page: IDENTITY,
            font: None,
            size: 0.0,
            leading: 0.0,
            letter_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
        }
    }
}

/// Skips an inline image up to a separate `EI`.
fn skip_image(lexer: &mut Lexer) {
    let rest = &lexer.bytes[lexer.at..];
    let is_lone = |at: &usize| {
        *at > 0 && is_blank(rest[at - 1]) && rest.get(at + 2).is_none_or(|&after| is_blank(after))
    };
    let end = memmem::find_iter(rest, b"EI").find(is_lone).map_or(rest.len(), |at| at + 2);
    lexer.at += end;
}
