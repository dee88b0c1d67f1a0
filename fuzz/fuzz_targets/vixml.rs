//! Any text read as Vi-XML: an error or a tree that writes and reads back to itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::page::segment::vixml;

fuzz_target!(|text: &str| {
    if let Ok(tree) = vixml::read(text) {
        let written = vixml::write(&tree);
        // NaN is unequal to itself; the text is not.
        assert_eq!(vixml::read(&written).map(|again| vixml::write(&again)).as_deref(), Ok(written.as_str()));
    }
});
