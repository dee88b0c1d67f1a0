//! Any untrusted text: its output contains no terminal commands, file names stay in their folder, and lines are
//! bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::text::untrusted::{
    BoundedLine, MAX_LABEL_BYTES, MAX_LINE_BYTES, MAX_NAME_BYTES, MAX_URL_BYTES, bounded_lines,
    checked_label, checked_url, file_name, quoted, terminal_safe,
};

fuzz_target!(|data: &[u8]| {
    for line in bounded_lines(data).map_while(Result::ok) {
        let (BoundedLine::Whole(line) | BoundedLine::TooLong(line)) = line;
        // Each byte that is not UTF-8 becomes three bytes.
        assert!(line.len() <= 3 * MAX_LINE_BYTES);
    }
    let text = String::from_utf8_lossy(data);
    assert!(!terminal_safe(&text).chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    let name = file_name(&text);
    assert!(name.len() <= MAX_NAME_BYTES && !name.contains(['/', '\\', '\0']) && !name.starts_with('.'));
    assert!(checked_url(&text).is_ok_and(|text| text.len() <= MAX_URL_BYTES) || checked_url(&text).is_err());
    assert!(checked_label(&text).is_none_or(|text| text.len() <= MAX_LABEL_BYTES));
    let _ = quoted(&text);
});
