//! A delivered page -> whether it is an error page for a missing page.
//!
//! Many servers respond with 200 if a page is missing. Such an error page is short, and its title or first line
//! states the error. Pages about such errors are longer, or mention them elsewhere.

use std::sync::LazyLock;

/// A page with more letters outside links is not an error page.
const MAX_LETTERS: usize = 1200;
/// The first texts of the page, which are searched.
const N_FIRST_TEXTS: usize = 12;
/// A line with more letters is not an error message.
const MAX_LINE_LETTERS: usize = 120;

/// Bytes of a document that are searched for the title.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Common phrases in lower case.
static PHRASES: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("soft_error/phrases.txt").lines().collect());

/// The beginnings of words for the missing thing, in lower case. "The ferry is no longer available" is about a ferry;
/// in "what you are looking for" it is the page.
const PAGE_WORDS: &str = "page document file url uri link address article post content resource object video looking story \
    entry seite dokument datei artikel beitrag inhalt adresse fichier contenu página pagina documento archivo contenido \
    conteúdo artículo artigo articolo strona strony страниц ページ 页面";
/// A line with at most this many words may leave out the missing thing.
const MAX_TERSE_WORDS: usize = 3;

/// Whether a page with this title and these texts, in reading order and without links, is an error page.
pub fn is_error_page<'a>(title: &str, texts: impl Iterator<Item = &'a str>) -> bool {
    let mut n_letters = 0;
    let mut says_so = is_error_line(title);
    for (place, text) in texts.enumerate() {
        n_letters += text.chars().filter(|c| c.is_alphanumeric()).take(MAX_LETTERS + 1).count();
        if n_letters > MAX_LETTERS {
            return false;
        }
        says_so |= place < N_FIRST_TEXTS && is_error_line(text);
    }
    says_so
}

/// The title of an HTML document; empty if there is none near its top.
pub fn html_title(html: &str) -> String {
    let head = &html[..html.floor_char_boundary(MAX_HEAD_BYTES)];
    let lower = head.to_ascii_lowercase();
    let Some(start) = lower.find("<title").and_then(|at| Some(at + lower[at..].find('>')? + 1)) else {
        return String::new();
    };
    let end = lower[start..].find("</title").map_or(head.len(), |length| start + length);
    head[start..end].split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_error_line(line: &str) -> bool {
    if line.chars().count() > MAX_LINE_LETTERS {
        return false;
    }
    let line = line.to_lowercase();
    let words = || line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let n_words = line.split_whitespace().count();
    if n_words <= 8 && words().any(|word| word == "404") {
        return true;
    }
    let speaks_of_page = || {
        n_words <= MAX_TERSE_WORDS
            || words().any(|word| PAGE_WORDS.split(' ').any(|name| word.starts_with(name)))
    };
    n_words <= 16 && PHRASES.iter().any(|phrase| line.contains(phrase)) && speaks_of_page()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_error(title: &str, texts: &[&str]) -> bool {
        is_error_page(title, texts.iter().copied())
    }

    #[test]
    fn pages_that_say_so_in_title_or_first_lines() {
        assert!(is_error("404 - City of Example", &["Sorry."]));
        assert!(is_error("Example", &["Page not found", "Try our search."]));
        assert!(is_error("Seite nicht gefunden | Beispiel", &[]));
        assert!(is_error("Example", &["Menu", "The page you requested could not be found."]));
        assert!(is_error("Not Found", &[]));
        assert!(is_error("Oops", &["We couldn't find what you are looking for."]));
        assert!(is_error("Beispiel", &["Menü", "Diese Seite existiert nicht."]));
        assert!(is_error("Example", &["This article is no longer available."]));
    }

    #[test]
    fn titles_are_found() {
        assert_eq!(html_title("<html><HEAD><Title lang=en>\n A  b</title>"), "A b");
        assert_eq!(html_title("<p>no title"), "");
        assert_eq!(html_title("<title>cut"), "cut");
    }

    #[test]
    fn pages_that_speak_of_other_things() {
        assert!(!is_error("Bus line 404 in the new time table of the city and its suburbs", &["Departures"]));
        assert!(!is_error("Example", &["News", "The suspect has not been caught."]));
        assert!(!is_error(
            "Ferry",
            &["The night ferry is no longer available on Sundays.", "Ask at the harbour."]
        ));
        assert!(!is_error("Notice", &["Lost dog: the owner could not be found until today"]));
        let article = "Police said on Monday that the painting was not found in the house. ".repeat(30);
        assert!(!is_error("Painting not found", &[article.as_str()]), "an article is long");
    }
}
