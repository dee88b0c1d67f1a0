//! Any text as an index line is read back as written. Any bytes as an index file can be searched.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use perennial_warc::cdxj::{CdxjLine, SortedCdxj};
use perennial_warc::surt::{KeyRange, MatchType, surt};

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        if let Ok(line) = CdxjLine::parse(text) {
            let again = CdxjLine::parse(&line.to_string()).expect("what is written can be read");
            assert_eq!(again.url, line.url);
            assert_eq!(again.to_string(), line.to_string());
        }
        let _ = surt(text);
    }
    for matching in [MatchType::Exact, MatchType::Domain] {
        let index = SortedCdxj::new(Cursor::new(data)).expect("memory does not fail");
        let range = KeyRange::of("http://example.com/", matching);
        if let Ok(lines) = index.range(&range) {
            for line in lines.take(10_000) {
                let _ = line.map(|l| CdxjLine::parse(&l));
            }
        }
    }
});
