//! Any text as Vi-XML is an error, or a tree that is written and read back unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::page::segment::vixml;

fuzz_target!(|text: &str| {
    if let Ok(tree) = vixml::read(text) {
        let written = vixml::write(&tree);
        // NaN is unequal to itself, but its text is equal.
        assert_eq!(vixml::read(&written).map(|again| vixml::write(&again)).as_deref(), Ok(written.as_str()));
    }
});
