//! A page that was delivered -> whether it says that there is no such page.
//!
//! Many servers answer 200 where a page is missing. A reader knows it by one look: a short page whose title or first line
//! says so. Pages that only speak of such errors are longer, or say it elsewhere.

use std::sync::LazyLock;

/// A page with more letters outside links than this is taken at its word.
const MAX_LETTERS: usize = 1200;
/// Texts at the top in which the words are looked for.
const N_FIRST_TEXTS: usize = 12;
/// A line with more letters than this says something else too.
const MAX_LINE_LETTERS: usize = 120;

/// Bytes of a document in which its title is looked for.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How sites say it, in small letters.
static PHRASES: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("soft_error/phrases.txt").lines().collect());

/// What is missing when a page is, in small letters and as words begin. "The ferry is no longer available" speaks of a
/// ferry; "what you are looking for" is the page.
const PAGE_WORDS: &str = "page document file url uri link address article post content resource object video looking story \
    entry seite dokument datei artikel beitrag inhalt adresse fichier contenu página pagina documento archivo contenido \
    conteúdo artículo artigo articolo strona strony страниц ページ 页面";
/// A line of so few words may leave out what was not found.
const MAX_TERSE_WORDS: usize = 3;

/// Whether a page with this title and these texts, in reading order and without links, stands for a missing one.
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

/// The title of an HTML document; empty when it has none near its top.
pub fn title_of(html: &str) -> String {
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
        assert_eq!(title_of("<html><HEAD><Title lang=en>\n A  b</title>"), "A b");
        assert_eq!(title_of("<p>no title"), "");
        assert_eq!(title_of("<title>cut"), "cut");
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
