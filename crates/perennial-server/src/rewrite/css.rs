//! Rewrites the URLs in a stylesheet or an inline style.
//!
//! A tokenizer that follows CSS Syntax reads the text, so that escapes, comments, strings and nesting mean the same as in a browser.
//! Everything except URLs is unchanged.

use std::fmt::Write as _;

use cssparser::{Parser, Token};
use perennial_core::memento::Modifier;

use super::url::RewritePlace;

/// The depth to which nesting is followed. Deeper blocks are read as if they were less deep, and their URLs are rewritten too.
const MAX_DEPTH: u8 = 64;

/// Functions with URLs as strings.
const URL_FUNCTIONS: [&str; 5] = ["url", "src", "image", "image-set", "-webkit-image-set"];

/// Rewrites a stylesheet or a list of declarations.
pub fn rewrite_css(css: &str, place: &RewritePlace) -> String {
    let mut out = CssRewriting { place, out: String::with_capacity(css.len() + css.len() / 4) };
    let mut parser = Parser::new(css);
    parser.set_nested_block_limit(MAX_DEPTH);
    out.block(&mut parser, CssContext::Plain);
    out.out
}

/// The meaning of a string in its context.
#[derive(Clone, Copy, PartialEq)]
enum CssContext {
    /// Text.
    Plain,
    /// The URL of an image or font.
    Url,
    /// After `@import`: a stylesheet.
    Import,
}

struct CssRewriting<'a> {
    place: &'a RewritePlace,
    out: String,
}

impl CssRewriting<'_> {
    /// Rewrites everything up to the end of the current block.
    fn block(&mut self, parser: &mut Parser<'_>, within: CssContext) {
        let mut context = within;
        loop {
            let start = parser.position();
            let Ok(token) = parser.next_including_whitespace_and_comments() else {
                return;
            };
            let token = token.clone();
            let written = parser.slice_from(start);
            match &token {
                Token::AtKeyword(name) if name.eq_ignore_ascii_case("import") => context = CssContext::Import,
                // The strings of `@charset` and `@namespace` are not requested.
                Token::AtKeyword(_) => context = within,
                Token::Semicolon => context = within,
                _ => {}
            }
            match &token {
                Token::UnquotedUrl(url) => self.url(url, part_in(context), written, true),
                Token::QuotedString(url) if context != CssContext::Plain => {
                    self.url(url, part_in(context), written, false);
                }
                _ => self.out.push_str(written),
            }
            self.nested(parser, &token, context);
            if matches!(token, Token::CurlyBracketBlock) {
                context = within;
            }
        }
    }

    /// Rewrites the inside of a function or a block, and its end.
    fn nested(&mut self, parser: &mut Parser<'_>, token: &Token<'_>, context: CssContext) {
        let (end, inside) = match token {
            Token::Function(name) => {
                let is_url = URL_FUNCTIONS.iter().any(|known| name.eq_ignore_ascii_case(known));
                let inside = match (is_url, context) {
                    (true, CssContext::Import) => CssContext::Import,
                    (true, _) => CssContext::Url,
                    (false, _) => CssContext::Plain,
                };
                (')', inside)
            }
            Token::ParenthesisBlock => (')', CssContext::Plain),
            Token::SquareBracketBlock => (']', CssContext::Plain),
            Token::CurlyBracketBlock => ('}', CssContext::Plain),
            _ => return,
        };
        let is_followed = parser.parse_nested_block(|inner| {
            self.block(inner, inside);
            Ok::<(), cssparser::ParseError<()>>(())
        });
        // The tokens of a block that is too deep arrive one by one, including its end.
        if is_followed.is_ok() {
            self.out.push(end);
        }
    }

    fn url(&mut self, url: &str, part: Modifier, written: &str, is_function: bool) {
        match self.place.rewrite(url, part) {
            None => {
                self.out.push_str(written);
                // At the end of the text a URL may be unterminated.
                if is_function && !written.ends_with(')') {
                    self.out.push(')');
                }
            }
            Some(to) => {
                let mut text = String::with_capacity(to.len() + 2);
                // Writing to a string cannot fail.
                let _ = cssparser::serialize_string(&to, &mut text);
                let _ =
                    if is_function { write!(self.out, "url({text})") } else { write!(self.out, "{text}") };
            }
        }
    }
}

fn part_in(context: CssContext) -> Modifier {
    if context == CssContext::Import { Modifier::Style } else { Modifier::Object }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> RewritePlace {
        RewritePlace::of_test("2020", "http://a.example/css/s.css")
    }

    fn check(css: &str, expected: &str) {
        assert_eq!(rewrite_css(css, &place()), expected);
    }

    #[test]
    fn urls_are_found_in_every_form() {
        let to = "/web/2020oe_/http://a.example";
        check("a{b:url(x.png)}", &format!("a{{b:url(\"{to}/css/x.png\")}}"));
        check("a{b:URL( '/x.png' ) no-repeat}", &format!("a{{b:URL( \"{to}/x.png\" ) no-repeat}}"));
        check("a{b:u\\72l(/x)}", &format!("a{{b:url(\"{to}/x\")}}"));
        check("a{b:url(ht\\74 p\\3a //b.example/)}", "a{b:url(\"/web/2020oe_/http://b.example/\")}");
        check(
            "a{b:image-set('x' 1x, url(y) 2x)}",
            &format!("a{{b:image-set(\"{to}/css/x\" 1x, url(\"{to}/css/y\") 2x)}}"),
        );
        check("b:url(/x)", &format!("b:url(\"{to}/x\")"));
        check("@media x{a{b:url(/x)}}", &format!("@media x{{a{{b:url(\"{to}/x\")}}}}"));
    }

    #[test]
    fn imports_are_stylesheets() {
        let to = "/web/2020cs_/http://a.example";
        check("@import 'x.css' screen;a{}", &format!("@import \"{to}/css/x.css\" screen;a{{}}"));
        check("@IMPORT url(/x.css);", &format!("@IMPORT url(\"{to}/x.css\");"));
        check("@import/**/url('/x.css') layer(a);", &format!("@import/**/url(\"{to}/x.css\") layer(a);"));
        check("@imp\\6frt '/x';", &format!("@imp\\6frt \"{to}/x\";"));
    }

    #[test]
    fn all_else_stays_as_it_is() {
        for css in [
            "a::before { content: 'http://x.example/' } /* url(x) */",
            "@charset \"utf-8\"; @namespace svg 'http://www.w3.org/2000/svg';",
            "a{b:url(#c)} b{c:url(data:image/png;base64,AA==)}",
            "a[href='http://x.example/'] {}",
            "<!-- a{} -->",
        ] {
            check(css, css);
        }
    }

    #[test]
    fn what_is_open_at_the_end_is_closed_and_what_is_too_deep_is_rewritten_too() {
        check("a{b:url(", "a{b:url()}");
        let deep = "{".repeat(200) + "a:url(http://x.example/)" + &"}".repeat(200);
        let rewritten = deep.replace("(http://x.example/)", "(\"/web/2020oe_/http://x.example/\")");
        check(&deep, &rewritten);
    }

    proptest! {
        /// After rewriting, no URL points elsewhere.
        #[test]
        fn nothing_leads_out(pieces in proptest::collection::vec(prop::sample::select(vec![
            "@import ", "url(", "'", "\"", ")", "http://evil.example/", "//evil.example", "/x", "\\", "{", "}", ";", "a:",
            "image-set(", ",", "/*", "*/", " ", "\n", "src(", "\\68", "<!--", "url( 'http://evil.example/' )", "@",
        ]), 0..40)) {
            let css = rewrite_css(&pieces.concat(), &place());
            let again = rewrite_css(&css, &RewritePlace { root: "/other/".into(), ..place() });
            prop_assert!(!again.contains("/other/2020oe_/http://evil"), "{css:?} {again:?}");
            prop_assert!(!again.contains("/other/2020cs_/http://evil"), "{css:?} {again:?}");
        }
    }
}
