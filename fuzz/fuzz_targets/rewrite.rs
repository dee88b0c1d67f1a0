//! Any text as a page, a stylesheet and a script of a replay. A second parser finds no URL that points out of the
//! archive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::text::charset::{Charset, decode_text};
use perennial_core::text::dom::Dom;
use perennial_server::rewrite::css::rewrite_css;
use perennial_server::rewrite::html::{PageOptions, rewrite_page, rewrite_page_strictly};
use perennial_server::rewrite::script::{rewrite_handler, rewrite_script};
use perennial_server::rewrite::url::RewritePlace;
use url::Url;

const URLS: [&str; 7] = ["href", "src", "action", "formaction", "poster", "background", "cite"];
const KEPT: [&str; 8] = ["javascript:", "data:", "blob:", "about:", "mailto:", "tel:", "sms:", "xmpp:"];

fn is_held(value: &str) -> bool {
    let plain: String = value.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let plain = plain.trim_matches(|c: char| c <= ' ').to_lowercase();
    plain.is_empty()
        || plain.starts_with('#')
        || plain.starts_with("/web/2020")
        || KEPT.iter().any(|scheme| plain.starts_with(scheme))
}

fuzz_target!(|data: &[u8]| {
    let text = decode_text(data, None);
    let Ok(base) = Url::parse("http://page.example/a/b") else { return };
    let place = RewritePlace { root: "/web/".into(), time: "2020".into(), base, charset: Charset::default() };
    let _ = rewrite_script(&text, &place);
    let _ = rewrite_handler(&text, &place);
    // Every URL in the second pass was rewritten in the first.
    let css = rewrite_css(&text, &place);
    const AGAIN: &str = "/again-7c1e/2020";
    let again = rewrite_css(&css, &RewritePlace { root: "/again-7c1e/".into(), ..place.clone() });
    for (at, _) in again.match_indices(AGAIN).filter(|_| !text.contains(AGAIN)) {
        let url = &again[at + AGAIN.len() + 4..];
        assert!(url.starts_with("http://page.example/web/2020"), "{css:?}");
    }
    let options = PageOptions { place, injection: None, is_outermost: true, n_nested: 0 };
    let _ = rewrite_page(&text, options.clone());
    // Strict mode rejects what browsers parse differently. In a replay, the content security policy also covers what
    // the rewriter parses differently in some nestings of SVG and MathML.
    let lower = text.to_ascii_lowercase();
    if lower.contains("<svg") || lower.contains("<math") {
        return;
    }
    let Ok(page) = rewrite_page_strictly(&text, options) else { return };
    for node in &Dom::parse(&page).nodes {
        for name in URLS {
            if let Some(value) = node.attribute(name) {
                assert!(is_held(value), "{} {name}={value:?} in {page:?}", node.tag());
            }
        }
    }
});
