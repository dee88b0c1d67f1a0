//! Any text of strangers: what is shown commands no terminal, what becomes a file name leaves no folder, lines are bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::text::foreign::{
    Line, MAX_ADDRESS_BYTES, MAX_LABEL_BYTES, MAX_LINE_BYTES, MAX_NAME_BYTES, address, bounded_lines,
    file_name, label, quoted, shown,
};

fuzz_target!(|data: &[u8]| {
    for line in bounded_lines(data).map_while(Result::ok) {
        let (Line::Whole(line) | Line::TooLong(line)) = line;
        // Bytes that are no UTF-8 become three.
        assert!(line.len() <= 3 * MAX_LINE_BYTES);
    }
    let text = String::from_utf8_lossy(data);
    assert!(!shown(&text).chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    let name = file_name(&text);
    assert!(name.len() <= MAX_NAME_BYTES && !name.contains(['/', '\\', '\0']) && !name.starts_with('.'));
    assert!(address(&text).is_ok_and(|text| text.len() <= MAX_ADDRESS_BYTES) || address(&text).is_err());
    assert!(label(&text).is_none_or(|text| text.len() <= MAX_LABEL_BYTES));
    let _ = quoted(&text);
});
