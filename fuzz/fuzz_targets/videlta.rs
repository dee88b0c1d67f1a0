//! Any text is a Vi-Delta or an error. A delta applies to a version or returns an error. A written delta is read back
//! unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::page::diff::Delta;
use perennial_core::page::importance::{ImportanceConfig, importance};
use perennial_core::page::segment::{Block, BlockTree, Link, Text};

fuzz_target!(|xml: &str| {
    let Ok(delta) = Delta::from_xml(xml) else { return };
    let leaf =
        |n: u32| Block::leaf(vec![Link::new(n.to_string(), "/a")], vec![], vec![Text::new("one two three")]);
    let mut before =
        BlockTree { blocks: vec![leaf(1), Block::inner(vec![leaf(2), leaf(3)])], ..BlockTree::default() };
    before.seal();
    let _ = delta.apply(&before);
    let value = importance(&delta, &ImportanceConfig::default()).get();
    assert!((0.0..=1.0).contains(&value));
    if delta.replacement.is_none() {
        let again = Delta::from_xml(&delta.to_operations_xml()).unwrap();
        assert_eq!(again.to_operations_xml(), delta.to_operations_xml());
    }
});
