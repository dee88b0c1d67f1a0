//! Any text as a page with an article: every algorithm extracts it within limits, and all its words are words of the
//! page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::article::version::{edits, same_version};
use perennial_core::article::{ArticleContext, Template, extract};
use perennial_core::text::dom::Dom;
use perennial_lab::feeds::extraction::{ExtractionVariant, extract_text};

fuzz_target!(|data: &[u8]| {
    let text = perennial_core::text::charset::decode_text(data, None);
    // The first line is the title that a feed gives.
    let (title, html) = text.split_once('\n').unwrap_or(("", &text));
    let dom = Dom::parse(html);
    let template = Template::from_neighbours([&dom, &dom]);
    let plain = extract(&dom, &ArticleContext::default());
    for template in [None, Some(&template)] {
        let url = Some("http://page.example/a");
        let article = extract(&dom, &ArticleContext { title: Some(title), description: Some(title), url, template });
        assert!(article.text.len() <= 2 * html.len() + 2, "a text is no longer than its page");
        assert!(same_version(&article, &article) && edits(&article, &article).is_empty());
        let _ = edits(&plain, &article);
    }
    for variant in ExtractionVariant::ALL {
        let _ = extract_text(&dom, Some(title), None, variant);
    }
});
