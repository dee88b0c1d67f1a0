//! Replaces words by single characters of the same width. Layout needs only the width of a word and that it is not
//! broken. A single character gives the same lines for a sixth of the work.

use std::collections::HashMap;

use blitz_dom::{BaseDocument, NodeData};
use style::Zero;
use style::properties::ComputedValues;
use style::values::computed::{OverflowWrap, TextTransform, WordBreak};

use crate::dom::{Dom, DomKind};
use crate::engine::NodeMap;
use crate::fonts::Fonts;
use crate::sfnt::{STAND_IN_STEP, STAND_INS, Widths};

/// Longer words keep their characters, because they may have to be broken.
const LONGEST: usize = 24;

/// Shortens the texts of a document that has styles but no boxes yet.
pub(crate) fn shorten(document: &mut BaseDocument, dom: &Dom, built: &NodeMap, fonts: &Fonts) {
    let mut short = String::new();
    // Many elements share their styles, which keep their address as long as the document lives.
    let mut widths_by_style: HashMap<*const ComputedValues, Option<&Widths>> = HashMap::new();
    for (node, id) in dom.nodes.iter().zip(&built.ids) {
        let DomKind::Text(text) = &node.kind else { continue };
        let parent = node.parent.and_then(|parent| built.ids[parent as usize]);
        let (Some(id), Some(parent)) = (*id, parent) else { continue };
        if text.len() <= 1 || text.bytes().all(|byte| byte.is_ascii_whitespace()) {
            continue;
        }
        let Some(styles) = document.get_node(parent).and_then(|parent| parent.primary_styles()) else {
            continue;
        };
        let computed: &ComputedValues = &styles;
        let widths = *widths_by_style
            .entry(std::ptr::from_ref(computed))
            .or_insert_with(|| keeps_words_whole(computed).then(|| fonts.letter_widths(computed)));
        drop(styles);
        let Some(widths) = widths else { continue };
        short.clear();
        shorten_into(&mut short, text, widths);
        if let Some(NodeData::Text(own)) = document.get_node_mut(id).map(|node| &mut node.data) {
            own.content.clone_from(&short);
        }
    }
}

/// Whether no style applies to single characters, so words may be shortened.
fn keeps_words_whole(styles: &ComputedValues) -> bool {
    styles.clone_text_transform() == TextTransform::NONE
        && styles.clone_letter_spacing().0.is_zero()
        && styles.clone_word_break() != WordBreak::BreakAll
        && styles.clone_overflow_wrap() != OverflowWrap::Anywhere
}

fn shorten_into(short: &mut String, text: &str, widths: &Widths) {
    let (mut start, mut n_letters, mut width) = (0, 0, 0);
    for (at, letter) in text.char_indices() {
        match widths.in_word(letter) {
            Some(own) => {
                n_letters += 1;
                // A hostile word may have millions of characters.
                width = u32::saturating_add(width, u32::from(own));
            }
            None => {
                push_word(short, &text[start..at], n_letters, width);
                short.push(letter);
                (start, n_letters, width) = (at + letter.len_utf8(), 0, 0);
            }
        }
    }
    push_word(short, &text[start..], n_letters, width);
}

fn push_word(short: &mut String, word: &str, n_letters: usize, width: u32) {
    match stand_in(width).filter(|_| (2..=LONGEST).contains(&n_letters)) {
        Some(letter) => short.push(letter),
        None => short.push_str(word),
    }
}

/// The character of this width; `None` for the longest words, which have none.
fn stand_in(width: u32) -> Option<char> {
    let n_steps = width.saturating_add(u32::from(STAND_IN_STEP) / 2) / u32::from(STAND_IN_STEP);
    let letter = STAND_INS.start.saturating_add(n_steps);
    char::from_u32(letter).filter(|_| STAND_INS.contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sfnt::Sfnt;

    #[test]
    fn words_become_letters_and_the_rest_stays() {
        let widths = Sfnt::new(dejavu::sans::regular()).widths();
        let short = |text: &str| {
            let mut out = String::new();
            shorten_into(&mut out, text, &widths);
            out.chars().map(|c| if STAND_INS.contains(&(c as u32)) { 'W' } else { c }).collect::<String>()
        };
        assert_eq!(short("Once (upon) a time, well-known"), "W W a W W-W");
        assert_eq!(short("  née 12.5 %\u{a0}\n"), "  W W %\u{a0}\n");
        assert_eq!(short("日本語 wird שלום"), "日本語 W שלום");
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(short(&long), long);
        let endless = "W".repeat(4_000_000);
        assert_eq!(short(&endless), endless);
        assert_eq!(short(""), "");
    }

    #[test]
    fn a_stand_in_is_as_wide_as_its_word() {
        let widths = Sfnt::new(dejavu::serif_condensed::bold()).widths();
        for word in ["it", "Wort", "archive,", "millimetre"] {
            let mut out = String::new();
            shorten_into(&mut out, word, &widths);
            let stand_in = out.chars().next().unwrap() as u32 - STAND_INS.start;
            let exact: u32 = word.chars().map(|letter| u32::from(widths.in_word(letter).unwrap())).sum();
            assert!((stand_in * u32::from(STAND_IN_STEP)).abs_diff(exact) <= u32::from(STAND_IN_STEP) / 2);
        }
    }

    /// Under `overflow-wrap: anywhere` words keep their characters, and no word that fits into a line is broken.
    #[test]
    fn lines_are_those_of_the_letters() {
        let engine = crate::LayoutEngine::new();
        let text = "The archive (which never sleeps) saw 1,024 pages; most of them hadn't changed at all, \
            \u{fc}brigens, \u{43d}\u{435} \u{432}\u{441}\u{435}: well-known ones did, \"every\" hour. "
            .repeat(3);
        for style in [
            "width:300px;font:16px Arial",
            "width:412px;font:bold 13px Georgia",
            "width:611px;font:italic 19px/1.5 monospace",
        ] {
            let page =
                format!("<p style='{style}'>{text}</p><p style='{style};overflow-wrap:anywhere'>{text}</p>");
            let layout = engine.layout(&page, "http://a.example/", &crate::resource::nothing);
            let texts: Vec<_> = layout.nodes.iter().filter(|node| node.text.starts_with("The")).collect();
            let [words, letters] = texts[..] else { panic!("{} texts", texts.len()) };
            assert_eq!(words.rect.h, letters.rect.h, "{style}");
            assert!(
                (words.rect.w - letters.rect.w).abs() < 3.0,
                "{style}: {} {}",
                words.rect.w,
                letters.rect.w
            );
        }
    }
}
