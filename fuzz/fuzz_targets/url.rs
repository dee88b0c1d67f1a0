//! Any text as a URL: canonicalising twice changes nothing more, and traps and shapes are found without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::time::Timestamp;
use perennial_core::url::canonical::{canonicalise, parse, resolve};
use perennial_core::url::trap::{find_trap, shape};

fuzz_target!(|text: &str| {
    let base = url::Url::parse("https://example.org/a/b?c").expect("a URL");
    for url in [parse(text), resolve(&base, text)].into_iter().flatten() {
        assert_eq!(canonicalise(url.clone()).as_ref(), Some(&url));
        let _ = (find_trap(&url, Timestamp::from_secs(1_800_000_000)), shape(&url));
    }
});
