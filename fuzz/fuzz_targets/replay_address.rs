//! Any text as the path or query of a request, or as a date, is parsed or rejected. The parsed value is written and
//! parsed again unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::memento::ReplayAddress;
use perennial_core::memento::address::{Query, earliest_of, escape, time_of_digits, unescape};
use perennial_core::memento::date;

fuzz_target!(|text: &str| {
    if let Some(address) = ReplayAddress::parse(text) {
        let again = ReplayAddress::parse(&address.to_string()).expect("what was written is read");
        assert_eq!(again.url, address.url);
    }
    assert_eq!(unescape(&escape(text), true), text);
    assert!(earliest_of(text) <= time_of_digits(text));
    let query = Query::parse(text);
    let _ = (query.get("url"), query.is_on("x"));
    if let Some(time) = date::parse(text) {
        let _ = date::write(time);
    }
});
