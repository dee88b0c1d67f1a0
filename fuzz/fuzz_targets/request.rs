//! Any body of a request: the URL under which it is indexed is bounded, and the requested one is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::http::cookies::CookieJar;
use perennial_core::http::login::parse_recording;
use perennial_warc::request::{CapturedRequest, capture_url, with_query};
use perennial_warc::surt::surt;

const KINDS: [&str; 5] = [
    "application/x-www-form-urlencoded",
    "application/json",
    "text/plain",
    "multipart/form-data; boundary=-",
    "",
];

fuzz_target!(|data: &[u8]| {
    let (kind, body) = data.split_first().unwrap_or((&0, &[]));
    let url = "http://example.org/?a=b";
    let found = capture_url(url, "POST", KINDS[*kind as usize % KINDS.len()], body);
    assert!(found.len() < 32 << 10);
    let request = CapturedRequest::parse(&found).expect("it has a method");
    assert_eq!((request.url, request.method), (url, "POST"));
    assert_eq!(surt(&with_query(url, "POST", &request.query())), surt(&found));
    let text = String::from_utf8_lossy(body);
    let _ = (CookieJar::from_netscape(&text), parse_recording(&text));
});
