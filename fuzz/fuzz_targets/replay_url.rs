//! Any text as the path or query of a request, or as a date, is parsed or rejected. The parsed value is written and
//! parsed again unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::memento::ReplayUrl;
use perennial_core::memento::replay_url::{QueryParameters, earliest_time, escape, latest_time, unescape};
use perennial_core::memento::date;

fuzz_target!(|text: &str| {
    if let Some(replay_url) = ReplayUrl::parse(text) {
        let again = ReplayUrl::parse(&replay_url.to_string()).expect("what was written is read");
        assert_eq!(again.url, replay_url.url);
    }
    assert_eq!(unescape(&escape(text), true), text);
    assert!(earliest_time(text) <= latest_time(text));
    let query = QueryParameters::parse(text);
    let _ = (query.get("url"), query.is_on("x"));
    if let Some(time) = date::parse(text) {
        let _ = date::write(time);
    }
});
