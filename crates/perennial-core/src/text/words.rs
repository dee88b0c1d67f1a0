//! A word -> its meaning next to a time or a number. The words are those of `words.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Meanings of a word, as bits: a word may belong to several languages.
pub(super) mod class {
    pub(in crate::text) const MONTH: u32 = 1;
    pub(in crate::text) const WEEKDAY: u32 = 1 << 1;
    pub(in crate::text) const UNIT_OF_TIME: u32 = 1 << 2;
    pub(in crate::text) const SHORT_UNIT_OF_TIME: u32 = 1 << 3;
    pub(in crate::text) const OTHER_TIME: u32 = 1 << 4;
    pub(in crate::text) const TIME: u32 = MONTH | WEEKDAY | UNIT_OF_TIME | SHORT_UNIT_OF_TIME | OTHER_TIME;
    pub(in crate::text) const AGE: u32 = 1 << 5;
    pub(in crate::text) const STAMP: u32 = 1 << 6;
    pub(in crate::text) const COUNTER: u32 = 1 << 7;
    pub(in crate::text) const COPYRIGHT: u32 = 1 << 8;
    pub(in crate::text) const BY: u32 = 1 << 9;
    pub(in crate::text) const DATE_FILLER: u32 = 1 << 10;
    pub(in crate::text) const FILLER: u32 = 1 << 11;
    pub(in crate::text) const NUMERAL: u32 = 1 << 12;
    pub(in crate::text) const CURRENCY: u32 = 1 << 13;
    pub(in crate::text) const UNIT: u32 = 1 << 14;
    pub(in crate::text) const IMPORTANT: u32 = 1 << 15;
    pub(in crate::text) const IMPORTANT_ENDING: u32 = 1 << 16;
    pub(in crate::text) const RESERVED: u32 = 1 << 17;
    pub(in crate::text) const RIGHTS: u32 = 1 << 18;
}

/// The sections of the file.
const SECTIONS: [(&str, u32); 19] = [
    ("month", class::MONTH),
    ("weekday", class::WEEKDAY),
    ("unit of time", class::UNIT_OF_TIME),
    ("short unit of time", class::SHORT_UNIT_OF_TIME),
    ("other time", class::OTHER_TIME),
    ("age", class::AGE),
    ("stamp", class::STAMP),
    ("counter", class::COUNTER),
    ("copyright", class::COPYRIGHT),
    ("by", class::BY),
    ("date filler", class::DATE_FILLER),
    ("filler", class::FILLER),
    ("numeral", class::NUMERAL),
    ("currency", class::CURRENCY),
    ("unit", class::UNIT),
    ("important", class::IMPORTANT),
    ("important ending", class::IMPORTANT_ENDING),
    ("reserved", class::RESERVED),
    ("rights", class::RIGHTS),
];

/// The words of a section.
fn section(name: &str) -> impl Iterator<Item = &'static str> {
    let sections = include_str!("words.txt").split("\n[").skip(1);
    let own = sections.filter_map(move |section| section.strip_prefix(name)?.strip_prefix("]\n"));
    own.flat_map(str::lines).filter(|line| !line.starts_with('#')).flat_map(str::split_ascii_whitespace)
}

/// The classes of all known words.
static WORDS: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| {
    let mut words = HashMap::new();
    for (name, bit) in SECTIONS {
        section(name).for_each(|word| *words.entry(word).or_default() |= bit);
    }
    words
});

static IMPORTANT_ENDINGS: LazyLock<Vec<&str>> = LazyLock::new(|| section("important ending").collect());

/// Whether a word in lower case belongs to one of these classes.
pub(super) fn is_a(word: &str, classes: u32) -> bool {
    WORDS.get(word).is_some_and(|own| own & classes != 0)
}

/// Whether a number next to this word matters: units, important counts, labels of limits and validity.
pub(super) fn is_important(word: &str) -> bool {
    let is_compound = || IMPORTANT_ENDINGS.iter().any(|end| word.len() > end.len() && word.ends_with(end));
    is_a(word, class::UNIT | class::IMPORTANT) || is_compound()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_of_the_file_is_read() {
        let n_sections = include_str!("words.txt").lines().filter(|line| line.starts_with('[')).count();
        assert_eq!(n_sections, SECTIONS.len());
        for (name, bit) in SECTIONS {
            assert!(section(name).all(|word| is_a(word, bit)) && section(name).next().is_some(), "{name}");
        }
        assert!(is_a("mars", class::MONTH) && !is_a("mars", class::WEEKDAY) && !is_a("#", class::TIME));
        assert!(is_important("mindestlohn") && is_important("kg") && !is_important("lohn"));
    }
}
