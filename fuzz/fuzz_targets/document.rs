//! Any bytes as a document of any format are read without a panic, into a tree that can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::page::document::DocumentFormat;
use perennial_core::page::segment::vixml;

fuzz_target!(|data: &[u8]| {
    let Some((&pick, bytes)) = data.split_first() else { return };
    let format = DocumentFormat::ALL[pick as usize % DocumentFormat::ALL.len()];
    let _ = DocumentFormat::detect(None, "/file", bytes);
    if let Some(document) = format.read("http://page.example/", None, bytes) {
        assert_eq!(vixml::read(&vixml::write(&document.tree)).as_ref(), Ok(&document.tree));
    }
});
