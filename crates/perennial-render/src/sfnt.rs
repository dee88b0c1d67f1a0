//! Reduces font files to what layout needs, and adds one placeholder character for every width.
//!
//! Layout needs the characters of a font and their widths. Kerning, ligatures and the shaping of scripts (GSUB, GPOS)
//! move a line less than the difference between these fonts and the reader's. Outlines are never drawn. So these
//! tables are left out. Each font gets [`STAND_INS`] instead: characters of every width, for words that are laid out
//! as one character.

use std::ops::Range;

/// Characters that replace whole words. The n-th is n times [`STAND_IN_STEP`] wide. They are at the end of the last
/// private-use plane, where no icon font puts its icons.
pub(crate) const STAND_INS: Range<u32> = 0x10_F000..0x10_F800;

/// The step in font units: a sixty-fourth of the font size.
pub(crate) const STAND_IN_STEP: u16 = UNITS_PER_EM / 64;

/// Font units per em, the same in all built-in fonts.
const UNITS_PER_EM: u16 = 2048;

/// Characters with stored widths: Latin, Greek and Cyrillic.
const N_WIDTHS: usize = 0x530;

/// Tables that are copied unchanged.
const COPIED: [&[u8; 4]; 4] = [b"OS/2", b"head", b"name", b"post"];

/// The widths of the characters of words.
pub(crate) struct Widths([u16; N_WIDTHS]);

impl Widths {
    /// The width of a character in font units. `None` ends a word: the font lacks the character, its width is not
    /// stored, or a line may break next to it.
    #[inline]
    pub(crate) fn in_word(&self, letter: char) -> Option<u16> {
        self.0.get(letter as usize).copied().filter(|width| *width > 0)
    }
}

/// Characters next to which no line breaks within a word (Unicode annex 14: AL, NU, IS, QU and brackets between
/// letters).
fn is_in_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '.' | ',' | ':' | ';' | '\'' | '"' | '(' | ')')
}

/// A font file of a package of ours, which is well formed.
pub(crate) struct Sfnt<'a>(&'a [u8]);

impl<'a> Sfnt<'a> {
    pub(crate) fn new(file: &'a [u8]) -> Sfnt<'a> {
        Sfnt(file)
    }

    fn table(&self, wanted: &[u8; 4]) -> &'a [u8] {
        let n_tables = u16_at(self.0, 4);
        let mut records = (0..n_tables).map(|index| &self.0[12 + 16 * usize::from(index)..]);
        let record = records.find(|record| record.starts_with(wanted));
        record.map_or(&[], |record| {
            let offset = u32_at(record, 8) as usize;
            &self.0[offset..offset + u32_at(record, 12) as usize]
        })
    }

    /// First and last character and the first glyph of each group, ascending: the subtable of format 12.
    fn groups(&self) -> Vec<[u32; 3]> {
        let cmap = self.table(b"cmap");
        let offsets = (0..u16_at(cmap, 2)).map(|index| u32_at(cmap, 8 + 8 * usize::from(index)) as usize);
        let Some(map) = offsets.map(|offset| &cmap[offset..]).find(|map| u16_at(map, 0) == 12) else {
            return Vec::new();
        };
        let group = |index: u32| [0, 4, 8].map(|at| u32_at(map, 16 + 12 * index as usize + at));
        (0..u32_at(map, 12)).map(group).collect()
    }

    /// Advance and left side bearing of every glyph.
    fn metrics(&self) -> Vec<(u16, u16)> {
        let (table, n_glyphs) = (self.table(b"hmtx"), usize::from(u16_at(self.table(b"maxp"), 4)));
        let n_long = usize::from(u16_at(self.table(b"hhea"), 34));
        let metric = |glyph: usize| match glyph.checked_sub(n_long) {
            None => (u16_at(table, 4 * glyph), u16_at(table, 4 * glyph + 2)),
            // The last glyphs share one advance.
            Some(short) => (u16_at(table, 4 * (n_long - 1)), u16_at(table, 4 * n_long + 2 * short)),
        };
        (0..n_glyphs).map(metric).collect()
    }

    pub(crate) fn widths(&self) -> Widths {
        let metrics = self.metrics();
        let mut widths = [0; N_WIDTHS];
        for [first, last, glyph] in self.groups() {
            for letter in first..=last.min(N_WIDTHS as u32 - 1) {
                if char::from_u32(letter).is_some_and(is_in_word) {
                    widths[letter as usize] = metrics[(glyph + letter - first) as usize].0;
                }
            }
        }
        Widths(widths)
    }

    /// The reduced font with the placeholder characters.
    pub(crate) fn for_layout(&self) -> Vec<u8> {
        let mut metrics = self.metrics();
        let mut groups = self.groups();
        groups.push([STAND_INS.start, STAND_INS.end - 1, metrics.len() as u32]);
        metrics.extend((0..STAND_INS.len() as u16).map(|n| (n * STAND_IN_STEP, 0)));
        let n_glyphs = (metrics.len() as u16).to_be_bytes();
        let mut maxp = self.table(b"maxp").to_vec();
        maxp[4..6].copy_from_slice(&n_glyphs);
        let mut hhea = self.table(b"hhea").to_vec();
        hhea[34..36].copy_from_slice(&n_glyphs);
        let hmtx =
            metrics.iter().flat_map(|(advance, bearing)| [advance.to_be_bytes(), bearing.to_be_bytes()]);
        let mut tables: Vec<(&[u8; 4], Vec<u8>)> =
            COPIED.iter().map(|&tag| (tag, self.table(tag).to_vec())).collect();
        tables.push((b"maxp", maxp));
        tables.push((b"hhea", hhea));
        tables.push((b"hmtx", hmtx.flatten().collect()));
        tables.push((b"cmap", cmap(&groups)));
        tables.sort_by_key(|(tag, _)| *tag);
        file(&self.0[..4], &tables)
    }
}

/// One subtable of format 12, for all of Unicode.
fn cmap(groups: &[[u32; 3]]) -> Vec<u8> {
    let mut table = Vec::new();
    // Version 0 with one subtable: platform 3, encoding 10, at byte 12.
    for field in [0u16, 1, 3, 10, 0, 12, 12, 0] {
        table.extend(field.to_be_bytes());
    }
    for field in [16 + 12 * groups.len() as u32, 0, groups.len() as u32] {
        table.extend(field.to_be_bytes());
    }
    table.extend(groups.iter().flatten().flat_map(|field| field.to_be_bytes()));
    table
}

fn file(version: &[u8], tables: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut directory = version.to_vec();
    // The next three fields support a binary search over the tables. The engine does not use them.
    for field in [tables.len() as u16, 0, 0, 0] {
        directory.extend(field.to_be_bytes());
    }
    let start = 12 + 16 * tables.len();
    let mut body = Vec::new();
    for (tag, table) in tables {
        directory.extend(*tag);
        for field in [0, (start + body.len()) as u32, table.len() as u32] {
            directory.extend(field.to_be_bytes());
        }
        body.extend(table);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    directory.append(&mut body);
    directory
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_as_wide_as_before_and_stand_ins_as_wide_as_their_number() {
        for cut in [dejavu::sans::regular(), dejavu::sans_mono::bold(), dejavu::serif_condensed::italic()] {
            let before = Sfnt::new(cut);
            let file = before.for_layout();
            let after = Sfnt::new(&file);
            let (old, new) = (before.widths(), after.widths());
            for letter in ['a', 'W', '3', 'é', 'ß', 'Ж', 'ω', '.', '\u{301}'] {
                assert_eq!(old.in_word(letter), new.in_word(letter));
            }
            assert!(old.in_word('W') >= old.in_word('a') && old.in_word('a') > Some(500));
            let [first, last, glyph] = *after.groups().last().unwrap();
            assert_eq!((first, last), (STAND_INS.start, STAND_INS.end - 1));
            let metrics = after.metrics();
            assert_eq!(metrics[glyph as usize + 64].0, UNITS_PER_EM);
            assert_eq!(metrics.len(), (glyph + last - first + 1) as usize);
        }
    }
}
