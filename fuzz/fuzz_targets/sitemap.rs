//! Any bytes as a sitemap are read without a panic, within the protocol's limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::feed::sitemap::{MAX_ENTRIES, parse};

fuzz_target!(|data: &[u8]| {
    let sitemap = parse(data);
    assert!(sitemap.pages.len() + sitemap.sitemaps.len() <= MAX_ENTRIES);
});
