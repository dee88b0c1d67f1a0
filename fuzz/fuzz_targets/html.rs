//! Any text as a page is parsed within limits, laid out by its tags and segmented. It is also read as a message of a
//! layout worker.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_core::page::segment::{SegmentConfig, Selector, segment};
use perennial_render::dom::{Dom, MAX_DEPTH, MAX_NODES};
use perennial_render::structural;
use perennial_render::wire::WorkerMessage;

fuzz_target!(|data: &[u8]| {
    let html = perennial_core::text::charset::decode_text(data, None);
    let dom = Dom::parse(&html);
    assert!(dom.nodes.len() < MAX_NODES + 2 * MAX_DEPTH as usize);
    let layout = structural::layout(&dom, "http://page.example/");
    for (index, node) in layout.nodes.iter().enumerate() {
        assert!(node.parent.is_none_or(|parent| (parent as usize) < index));
        assert!([node.rect.x, node.rect.y, node.rect.w, node.rect.h].iter().all(|side| side.is_finite()));
    }
    let _ = segment(&layout, &SegmentConfig::default());
    // A selector matches no more than there is.
    for selector in ["p", "div > a, [class] b", "* * *"] {
        let text = Selector::parse(selector).map(|selector| selector.text_in(&dom)).unwrap_or_default();
        assert!(text.len() <= html.len() * 4 + 16);
    }
    // The same bytes as a message of a layout worker are read or rejected.
    let _ = WorkerMessage::from_body(data);
});
