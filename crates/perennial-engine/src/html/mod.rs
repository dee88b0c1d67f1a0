//! Builds HTML and SVG: one page frame, one escape function ([`perennial_core::text::markup`]), one chart module.
//!
//! Every page is self-contained: it loads no script, style, font or image.
//!
//! | module | purpose |
//! |---|---|
//! | [`chart`] | bars and time lines in SVG; bars in a terminal |
//! | [`dates`] | days, times and durations in words |

pub mod chart;
pub mod dates;

use perennial_core::text::markup::{escaped, without_direction_marks};

/// A complete page. `body` is HTML.
pub fn page(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{}</title><style>{style}</style></head><body>{body}</body></html>\n",
        escaped(&without_direction_marks(&cut(title)))
    )
}

/// Longest title, and longest text that appeared or vanished, in characters.
const MAX_LETTERS: usize = 200;

/// The beginning of a text, cut at a space if possible.
pub fn cut(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(MAX_LETTERS) else { return text.to_string() };
    let end = text[..end].rfind(' ').filter(|blank| *blank > end / 2).unwrap_or(end);
    format!("{} …", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_end_at_a_word() {
        let text = "Straße ".repeat(60);
        let short = cut(&text);
        assert!(short.ends_with("Straße …") && short.chars().count() <= MAX_LETTERS + 2, "{short}");
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"ß".repeat(300)).chars().count(), MAX_LETTERS + 2);
    }
}
