//! PDF -> its text in drawing order.
//!
//! It reads only the visible content: objects, text operators and the character maps of fonts (ISO 32000-1). Encrypted
//! files and scans give `None`. Pages do not become blocks: a page break carries no meaning, and one new line would
//! move everything after it.

mod content;
mod file;
mod font;
mod object;

use std::collections::BTreeMap;

use super::draft::{DocumentDraft, DocumentUnit, UnitPlacement};
use content::{Contents, TextLine};
use file::PdfFile;

/// Maximum distance between lines of one paragraph, as a multiple of their font size.
const SAME_PARAGRAPH: f32 = 1.6;
/// Maximum relative difference between font sizes that count as equal.
const SAME_SIZE: f32 = 0.12;
/// Minimum font size of a heading, relative to the main size.
const HEADING: f32 = 1.15;
/// Maximum length of a heading.
const MAX_HEADING_LETTERS: usize = 160;

/// Reads a file. `None` if it contains no readable words.
pub(super) fn read(bytes: &[u8]) -> Option<DocumentDraft> {
    let file = PdfFile::open(bytes)?;
    let mut contents = Contents::new(&file);
    let mut paragraphs: Vec<Paragraph> = Vec::new();
    for page in file.pages() {
        let (lines, images) = contents.read(&page);
        let start = paragraphs.len();
        lines.iter().for_each(|line| add_line(&mut paragraphs, start, line));
        if !images.is_empty() {
            paragraphs.push(Paragraph { images, ..Paragraph::default() });
        }
    }
    let mut draft = DocumentDraft::default();
    draft.title = file.title().map(decode_title).unwrap_or_default();
    draft.is_cut = file.is_cut() || contents.is_cut();
    let usual = main_font_size(&paragraphs);
    for paragraph in paragraphs {
        let is_heading = paragraph.size > HEADING * usual && paragraph.text.len() <= MAX_HEADING_LETTERS;
        let mut unit = DocumentUnit::from_text(
            &paragraph.text,
            if is_heading { UnitPlacement::Heading } else { UnitPlacement::Among },
        );
        unit.images = paragraph.images;
        draft.add(unit);
    }
    Some(draft)
}

#[derive(Default)]
struct Paragraph {
    text: String,
    y: f32,
    size: f32,
    images: Vec<(String, String)>,
}

/// Adds a line to the last paragraph of its page, or begins a new paragraph.
fn add_line(paragraphs: &mut Vec<Paragraph>, start: usize, line: &TextLine) {
    if line.text.trim().is_empty() {
        return;
    }
    let is_same = |last: &&mut Paragraph| {
        let below = last.y - line.y;
        let is_size = (last.size - line.size).abs() <= SAME_SIZE * last.size;
        is_size && below.abs() <= SAME_PARAGRAPH * line.size
    };
    match paragraphs[start..].last_mut().filter(is_same) {
        Some(last) => {
            last.text.push(' ');
            last.text.push_str(&line.text);
            last.y = line.y;
        }
        None => {
            let text = line.text.clone();
            paragraphs.push(Paragraph { text, y: line.y, size: line.size, images: Vec::new() });
        }
    }
}

/// The most frequent font size by characters.
fn main_font_size(paragraphs: &[Paragraph]) -> f32 {
    let mut letters: BTreeMap<u32, usize> = BTreeMap::new();
    for paragraph in paragraphs {
        *letters.entry((paragraph.size * 10.0) as u32).or_default() += paragraph.text.len();
    }
    letters.into_iter().max_by_key(|(_, n_letters)| *n_letters).map_or(0.0, |(size, _)| size as f32 / 10.0)
}

/// Decodes a string of the file's metadata: UTF-16 or UTF-8 with a byte order mark, or nearly Latin-1.
fn decode_title(bytes: &[u8]) -> String {
    let encoding =
        encoding_rs::Encoding::for_bom(bytes).map_or(encoding_rs::WINDOWS_1252, |(encoding, _)| encoding);
    encoding.decode(bytes).0.into_owned()
}
