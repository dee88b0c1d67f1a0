//! Any bytes as a feed or a list of subscriptions are read without a panic, within their limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::feed::{self, MAX_ITEMS, opml};
use perennial_core::text::xml::Scanner;

fuzz_target!(|data: &[u8]| {
    if let Ok(feed) = feed::parse(data, None, "http://e.org/d/feed") {
        assert!(feed.items.len() <= MAX_ITEMS);
        for item in feed.items.iter().take(100) {
            let _ = (item.key(), item.title.words(), item.changed());
        }
    }
    assert!(opml::parse(data).len() <= opml::MAX_SUBSCRIPTIONS);
    let text = String::from_utf8_lossy(data);
    let _ = feed::parse_date(&text);
    // The scanner makes progress on every token.
    let mut scanner = Scanner::new(&text);
    let mut before = 0;
    while scanner.next().is_some() {
        assert!(scanner.position() > before);
        before = scanner.position();
    }
});
