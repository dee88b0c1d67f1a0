//! HTML inside a feed -> the words that a reader sees, or the same HTML with absolute URLs.

use std::cell::RefCell;

use html5ever::tokenizer::states::{Rawtext, ScriptData};
use html5ever::tokenizer::{TagKind, Token, TokenSink, TokenSinkResult, TokenizerOpts};
use url::Url;

use crate::text::markup::escaped;
use crate::text::tokens::read_tokens;
use crate::text::xml::{Scanner, XmlPiece, unescaped};

/// Attributes whose values are URLs.
const URLS: [&str; 11] = [
    "href",
    "src",
    "cite",
    "action",
    "longdesc",
    "background",
    "data",
    "poster",
    "usemap",
    "classid",
    "codebase",
];

/// Tags that identify a text as HTML.
const HTML_TAGS: &str = "a abbr b big blockquote body br center cite code dd div dl dt em figure font h1 h2 h3 h4 \
    hr html i iframe img li ol p pre q s small span strike strong sub sup table td tr u ul";

/// Whether a text of unknown type looks like HTML: it contains an HTML tag or a character reference.
pub(super) fn looks_like_html(text: &str) -> bool {
    let has_tag = || {
        Scanner::new(text).any(|piece| match piece {
            XmlPiece::Start(tag) => HTML_TAGS.split(' ').any(|html| tag.name.eq_ignore_ascii_case(html)),
            _ => false,
        })
    };
    text.contains('<') && has_tag() || text.contains('&') && unescaped(text) != text
}

/// Makes the URLs in HTML absolute, and changes nothing else.
pub fn absolute_html(html: &str, base: &Url) -> String {
    let mut out = String::with_capacity(html.len());
    let mut copied = 0;
    let start = html.as_ptr() as usize;
    for piece in Scanner::new(html) {
        let XmlPiece::Start(tag) = piece else { continue };
        for attribute in tag.raw_attributes() {
            let name = attribute.name.to_ascii_lowercase();
            if !URLS.contains(&crate::text::xml::local_name(&name)) {
                continue;
            }
            let value = unescaped(attribute.value);
            let Some(url) = base.join(value.trim()).ok().filter(|_| !super::has_scheme(value.trim())) else {
                continue;
            };
            // The value is a slice of the text, so the difference of the pointers is its position.
            let from = attribute.value.as_ptr() as usize - start;
            out.push_str(&html[copied..from]);
            out.push_str(&escaped(url.as_str()).to_string());
            copied = from + attribute.value.len();
        }
    }
    out.push_str(&html[copied..]);
    out
}

/// The words of HTML as a reader sees them, without scripts and styles, with white space collapsed.
pub fn html_words(html: &str) -> String {
    let words = read_tokens(html, WordSink::default(), TokenizerOpts::default());
    super::folded(&words.text.into_inner())
}

#[derive(Default)]
struct WordSink {
    text: RefCell<String>,
    is_hidden: std::cell::Cell<bool>,
}

impl TokenSink for WordSink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => {
                let is_start = tag.kind == TagKind::StartTag;
                let name: &str = &tag.name;
                self.is_hidden.set(is_start && matches!(name, "script" | "style"));
                if !is_inline(name) {
                    self.text.borrow_mut().push(' ');
                }
                if is_start && name == "script" {
                    return TokenSinkResult::RawData(ScriptData);
                }
                if is_start && name == "style" {
                    return TokenSinkResult::RawData(Rawtext);
                }
            }
            Token::CharacterTokens(text) if !self.is_hidden.get() => self.text.borrow_mut().push_str(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Tags that do not separate words.
fn is_inline(name: &str) -> bool {
    matches!(
        name,
        "a" | "abbr"
            | "b"
            | "bdi"
            | "big"
            | "cite"
            | "code"
            | "em"
            | "font"
            | "i"
            | "mark"
            | "q"
            | "s"
            | "small"
            | "span"
            | "strong"
            | "sub"
            | "sup"
            | "u"
            | "wbr"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_those_a_reader_sees() {
        assert_eq!(
            html_words("<p>One <b>t</b>wo</p><p>three &amp; &eacute;</p><script>x<y</script>"),
            "One two three & é"
        );
        assert_eq!(html_words("a < b"), "a < b");
    }

    #[test]
    fn urls_become_absolute_and_nothing_else_changes() {
        let base = Url::parse("http://e.org/d/p").unwrap();
        let html =
            "<a title='x' href=\"../q?a=1&amp;b=2\">t</a><img src=i.png><a href=http://f.org>u</a> & <b>";
        assert_eq!(
            absolute_html(html, &base),
            "<a title='x' href=\"http://e.org/q?a=1&amp;b=2\">t</a><img src=http://e.org/d/i.png><a href=http://f.org>u</a> & <b>"
        );
    }

    #[test]
    fn plain_text_is_not_taken_for_html() {
        for text in ["AT&T", "a < b > c", "<blink> is a tag", "1 & 2; 3"] {
            assert!(!looks_like_html(text), "{text}");
        }
        for html in ["<b>x</b>", "AT&amp;T", "x<br/>", "&#8217;"] {
            assert!(looks_like_html(html), "{html}");
        }
    }

    proptest! {
        #[test]
        fn any_html_is_survived(html in "[<>/a-c='\"& hrefs;]{0,60}") {
            let base = Url::parse("http://e.org/").unwrap();
            let once = absolute_html(&html, &base);
            prop_assert_eq!(absolute_html(&once, &base), once, "an absolute address stays");
            let _ = html_words(&html);
        }
    }
}
