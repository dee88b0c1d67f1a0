//! Any bytes as an HTTP message: every span is inside the head.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_warc::http::HttpHead;

fuzz_target!(|data: &[u8]| {
    let head = HttpHead::parse(data);
    assert!(data.starts_with(head.as_bytes()));
    for span in head.spans() {
        assert!(span.name.start <= span.name.end && span.name.end <= span.value.start);
        assert!(span.value.start <= span.value.end && span.value.end as usize <= head.len());
    }
    let _ = (head.status(), head.method(), head.reason(), head.media_type(), head.charset(), head.codings());
    assert_eq!(HttpHead::parse(head.as_bytes()), head);
});
