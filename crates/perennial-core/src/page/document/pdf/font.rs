//! The codes of a shown string -> characters and widths (ISO 32000-1, 9.6 to 9.10).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use encoding_rs::{Encoding, MACINTOSH, WINDOWS_1252};

use super::file::PdfFile;
use super::object::{Dictionary, Lexer, PdfValue};

/// Maximum entries of a table of characters or widths, including repeated ones.
const MAX_ENTRIES: usize = 1 << 16;
/// Maximum differences from an encoding.
const MAX_DIFFERENCES: usize = 1024;
/// Maximum values of a character map.
const MAX_VALUES: usize = 1 << 19;
/// Default width of a glyph, in thousandths of the font size.
const USUAL_WIDTH: f32 = 500.0;

/// The properties of a font that are needed to read its text.
pub(super) struct Font {
    /// Whether codes have two bytes.
    is_wide: bool,
    /// Whether codes are UTF-16.
    is_unicode: bool,
    /// The characters by code, from the font's own map.
    characters: BTreeMap<u32, String>,
    /// The characters of the 256 codes of a simple font.
    encoding: Vec<Option<char>>,
    widths: BTreeMap<u32, f32>,
    usual_width: f32,
    pub(super) has_widths: bool,
}

/// A shown code.
pub(super) struct Glyph<'f> {
    pub(super) text: GlyphText<'f>,
    /// In thousandths of the font size.
    pub(super) width: f32,
    pub(super) is_space: bool,
}

/// The characters of a code.
pub(super) enum GlyphText<'f> {
    None,
    One(char),
    Some(&'f str),
}

impl Font {
    /// Reads a font. Its tables have at most `n_left` entries together.
    pub(super) fn new(file: &PdfFile, entries: &Dictionary, n_left: usize) -> Font {
        let is_wide = entries.get("Subtype").and_then(PdfValue::name) == Some("Type0");
        let named = entries.get("Encoding").and_then(|value| file.resolve(value).name()).unwrap_or_default();
        let mut font = Font {
            is_wide,
            is_unicode: is_wide && (named.contains("UCS2") || named.contains("UTF16")),
            characters: BTreeMap::new(),
            encoding: if is_wide { Vec::new() } else { simple_encoding(file, entries) },
            widths: BTreeMap::new(),
            usual_width: USUAL_WIDTH,
            has_widths: false,
        };
        if let Some(table) = entries.get("ToUnicode").and_then(|value| file.stream(value)) {
            font.characters = read_character_map(&table, n_left.min(MAX_ENTRIES));
        }
        match is_wide {
            true => font.read_wide_widths(file, entries, n_left.min(MAX_ENTRIES)),
            false => font.read_widths(file, entries),
        }
        font.has_widths = !font.widths.is_empty();
        font
    }

    /// Number of entries of its tables.
    pub(super) fn n_entries(&self) -> usize {
        self.characters.len() + self.widths.len()
    }

    fn read_widths(&mut self, file: &PdfFile, entries: &Dictionary) {
        let first =
            entries.get("FirstChar").and_then(|value| file.resolve(value).number()).unwrap_or_default();
        let widths = file.array(entries.get("Widths")).unwrap_or_default();
        // A Type 3 font has its own scale.
        let matrix = file.array(entries.get("FontMatrix")).filter(|_| has_glyph_procedures(entries));
        let scale =
            matrix.and_then(|matrix| matrix.first()?.number()).map_or(1.0, |scale| scale.abs() * 1000.0);
        for (code, width) in (first as u32..256).zip(widths) {
            self.widths.extend(file.resolve(width).number().map(|width| (code, width * scale)));
        }
    }

    /// `[first [width width] first last width]`.
    fn read_wide_widths(&mut self, file: &PdfFile, entries: &Dictionary, mut n_left: usize) {
        let descendants = file.array(entries.get("DescendantFonts")).unwrap_or_default();
        let Some(entries) = file.dictionary(descendants.first()) else { return };
        let usual = entries.get("DW").and_then(|value| file.resolve(value).number());
        self.usual_width = usual.unwrap_or(1000.0);
        let mut values =
            file.array(entries.get("W")).unwrap_or_default().iter().map(|value| file.resolve(value));
        while let (Some(first), Some(second)) = (values.next().and_then(PdfValue::number), values.next()) {
            let codes = first as u32..1 << 16;
            let before = n_left;
            match second {
                PdfValue::Array(widths) => {
                    for (code, width) in codes.zip(widths).take(before) {
                        n_left -= 1;
                        self.widths.extend(width.number().map(|width| (code, width)));
                    }
                }
                last => {
                    let Some(width) = values.next().and_then(PdfValue::number) else { return };
                    let last = last.number().unwrap_or_default() as u32;
                    for code in codes.take_while(|code| *code <= last).take(before) {
                        n_left -= 1;
                        self.widths.insert(code, width);
                    }
                }
            }
            n_left = n_left.saturating_sub(1);
        }
    }

    /// The glyphs of a string.
    pub(super) fn glyphs<'f>(&'f self, string: &'f [u8]) -> impl Iterator<Item = Glyph<'f>> {
        string.chunks(if self.is_wide { 2 } else { 1 }).map(|code| {
            let code = code.iter().fold(0, |code, &byte| code << 8 | u32::from(byte));
            let width = self.widths.get(&code).copied().unwrap_or(self.usual_width);
            Glyph { text: self.glyph_text(code), width, is_space: !self.is_wide && code == 32 }
        })
    }

    fn glyph_text(&self, code: u32) -> GlyphText<'_> {
        if let Some(text) = self.characters.get(&code) {
            return GlyphText::Some(text);
        }
        let character = match self.is_unicode {
            true => char::from_u32(code),
            false => self.encoding.get(code as usize).copied().flatten(),
        };
        character.map_or(GlyphText::None, GlyphText::One)
    }
}

/// The characters of a simple font: a named encoding and the differences from it.
fn simple_encoding(file: &PdfFile, entries: &Dictionary) -> Vec<Option<char>> {
    let encoding = entries.get("Encoding").map(|value| file.resolve(value));
    let (base, differences) = match encoding {
        Some(PdfValue::Name(name)) => (Some(name.as_str()), None),
        Some(PdfValue::Dictionary(entries)) => {
            let base = entries.get("BaseEncoding").and_then(|value| file.resolve(value).name());
            (base, file.array(entries.get("Differences")))
        }
        _ => (None, None),
    };
    let mut codes = match base {
        Some("WinAnsiEncoding") => single_byte_codes(WINDOWS_1252),
        Some("MacRomanEncoding") => single_byte_codes(MACINTOSH),
        _ => standard(),
    };
    let mut code = 0;
    for value in differences.unwrap_or_default().iter().take(MAX_DIFFERENCES) {
        match value {
            PdfValue::Number(number) => code = *number as usize,
            PdfValue::Name(name) => {
                if let Some(place) = codes.get_mut(code) {
                    *place = glyph_character(name)
                        .or_else(|| numbered_character(name).filter(|_| has_glyph_procedures(entries)));
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    codes
}

fn ascii() -> Vec<Option<char>> {
    (0..=255u8).map(|byte| matches!(byte, 32..=126).then_some(byte as char)).collect()
}

/// ASCII, and a web encoding above it.
fn single_byte_codes(encoding: &'static Encoding) -> Vec<Option<char>> {
    let mut codes = ascii();
    for byte in 128..=255u8 {
        codes[usize::from(byte)] = encoding.decode_without_bom_handling(&[byte]).0.chars().next();
    }
    codes
}

/// Adobe's standard encoding above ASCII, the default of fonts without an encoding. It starts at 0xA1; `\0` marks
/// codes without a character.
const STANDARD: &str = "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ\0–†‡·\0¶•‚„”»…‰\0¿\0`´ˆ˜¯˘˙¨\0˚¸\0˝˛ˇ—";

fn standard() -> Vec<Option<char>> {
    let mut codes = ascii();
    (codes[0x27], codes[0x60]) = (Some('’'), Some('‘'));
    let upper = (0xa1..).zip(STANDARD.chars());
    let letters = [(0xe1, 'Æ'), (0xe3, 'ª'), (0xe8, 'Ł'), (0xe9, 'Ø'), (0xea, 'Œ'), (0xeb, 'º'), (0xf1, 'æ')];
    let more = [(0xf5, 'ı'), (0xf8, 'ł'), (0xf9, 'ø'), (0xfa, 'œ'), (0xfb, 'ß')];
    for (code, character) in upper.chain(letters).chain(more).filter(|(_, character)| *character != '\0') {
        codes[code] = Some(character);
    }
    codes
}

/// Whether the glyphs of a font are drawings (Type 3).
fn has_glyph_procedures(entries: &Dictionary) -> bool {
    entries.get("Subtype").and_then(PdfValue::name) == Some("Type3")
}

/// The character of a name such as `a65`. TeX uses such names for bitmap characters.
fn numbered_character(name: &str) -> Option<char> {
    let code: u8 = name.strip_prefix('a')?.parse().ok()?;
    (code.is_ascii_graphic() || code == b' ').then_some(code as char)
}

/// The character with a glyph name.
fn glyph_character(name: &str) -> Option<char> {
    let name = name.split('.').next().unwrap_or_default();
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return letter.is_ascii_alphabetic().then_some(letter);
    }
    let known = GLYPHS.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.get(..4));
    let digits = known.or_else(|| name.strip_prefix("uni")).or_else(|| name.strip_prefix('u'))?;
    let is_code = (4..=6).contains(&digits.len());
    char::from_u32(u32::from_str_radix(digits.get(..digits.len().min(6))?, 16).ok()?).filter(|_| is_code)
}

/// Reads the character map of a font: `beginbfchar <01> <0041> endbfchar`, `beginbfrange <02> <04> <0042> endbfrange`.
fn read_character_map(table: &[u8], n_left: usize) -> BTreeMap<u32, String> {
    let mut reading = CharacterMap { characters: BTreeMap::new(), n_left };
    let mut lexer = Lexer::new(table, MAX_VALUES);
    while let Some(value) = lexer.value().filter(|_| reading.n_left > 0) {
        match value.word() {
            Some("beginbfchar") => reading.read_single(&mut lexer),
            Some("beginbfrange") => reading.read_ranges(&mut lexer),
            _ => {}
        }
    }
    reading.characters
}

/// A character map during reading.
struct CharacterMap {
    characters: BTreeMap<u32, String>,
    /// Number of entries that may still be read.
    n_left: usize,
}

impl CharacterMap {
    fn insert(&mut self, code: u32, text: String) {
        if let Some(n_left) = self.n_left.checked_sub(1) {
            self.n_left = n_left;
            self.characters.insert(code, text);
        }
    }

    fn read_single(&mut self, lexer: &mut Lexer) {
        while let Some(PdfValue::String(code)) = lexer.value() {
            let Some(PdfValue::String(text)) = lexer.value() else { return };
            self.insert(read_code(&code), utf16(&text));
        }
    }

    fn read_ranges(&mut self, lexer: &mut Lexer) {
        while let Some(PdfValue::String(first)) = lexer.value() {
            let Some(PdfValue::String(last)) = lexer.value() else { return };
            let codes = read_code(&first)..=read_code(&last);
            match lexer.value() {
                Some(PdfValue::String(start)) => self.insert_range(codes, &utf16(&start)),
                Some(PdfValue::Array(texts)) => {
                    for (code, text) in codes.zip(&texts) {
                        self.insert(code, text.string().map(utf16).unwrap_or_default());
                    }
                }
                _ => return,
            }
        }
    }

    /// Inserts a range of codes. The last character of `start` is incremented for each code.
    fn insert_range(&mut self, codes: RangeInclusive<u32>, start: &str) {
        let Some(last) = start.chars().next_back() else { return };
        let stem = &start[..start.len() - last.len_utf8()];
        for (code, step) in codes.zip(0u32..).take(self.n_left) {
            let letter =
                char::from_u32((last as u32).saturating_add(step)).unwrap_or(char::REPLACEMENT_CHARACTER);
            self.insert(code, format!("{stem}{letter}"));
        }
    }
}

fn read_code(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |code, &byte| code << 8 | u32::from(byte))
}

/// The characters of one code, of which real fonts have only a few.
fn utf16(bytes: &[u8]) -> String {
    encoding_rs::UTF_16BE.decode_without_bom_handling(&bytes[..bytes.len().min(64)]).0.into_owned()
}

/// Names of glyphs with more than one character, with the code of their character (from Adobe's glyph list).
const GLYPHS: &str = include_str!("glyphs.txt");
