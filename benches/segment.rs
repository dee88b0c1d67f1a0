//! A layout of 150 KB of HTML -> the time to segment it, without layout, and to write and read its Vi-XML.
//!
//! cargo bench -p perennial-core --bench segment

use divan::{Bencher, black_box};
use perennial_core::page::layout::{Display, Layout, LayoutNode, Rect, Rgba};
use perennial_core::page::segment::{SegmentConfig, segment, vixml};

fn main() {
    divan::main();
}

/// Builds a page from top to bottom; `y` grows as texts are added.
struct Page {
    layout: Layout<'static>,
    y: f32,
    n_bytes: usize,
}

impl Page {
    fn new() -> Page {
        let layout = Layout { base_url: "http://bench.example/".into(), width: 1280.0, ..Layout::default() };
        let mut page = Page { layout, y: 0.0, n_bytes: 0 };
        page.element(None, "html", "", 0.0, 1280.0);
        page.element(Some(0), "body", "", 0.0, 1280.0);
        page
    }

    fn element(&mut self, parent: Option<u32>, tag: &str, class: &str, x: f32, w: f32) -> u32 {
        let is_inline = matches!(tag, "a" | "span" | "b" | "img");
        let mut attributes = Vec::new();
        if !class.is_empty() {
            attributes.push(("class".to_string(), class.to_string()));
        }
        if tag == "a" {
            attributes.push(("href".to_string(), format!("/story/{}?id={}", self.n_bytes, class)));
        }
        self.n_bytes += 2 * tag.len()
            + 5
            + attributes.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
        let display = if is_inline { Display::Inline } else { Display::Block };
        self.push(parent, tag, attributes, String::new(), Rect { x, y: self.y, w, h: 20.0 }, display)
    }

    fn text(&mut self, parent: u32, n_words: usize, x: f32, w: f32) {
        let text: String = (0..n_words)
            .map(|word| ["some ", "longer ", "words ", "of text "][(word * 7 + n_words) % 4])
            .collect();
        let h = (text.len() as f32 * 8.0 / w).ceil() * 20.0;
        self.n_bytes += text.len();
        self.push(Some(parent), "", Vec::new(), text, Rect { x, y: self.y, w, h }, Display::Inline);
        self.y += h + 12.0;
    }

    fn push(
        &mut self,
        parent: Option<u32>,
        tag: &str,
        attributes: Vec<(String, String)>,
        text: String,
        rect: Rect,
        display: Display,
    ) -> u32 {
        self.layout.nodes.push(LayoutNode {
            parent,
            tag: tag.to_string().into(),
            attributes: attributes.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            text: text.into(),
            rect,
            font_size: 16.0,
            font_weight: 400,
            color: Rgba { r: 0, g: 0, b: 0, a: 255 },
            background: Rgba::default(),
            has_background_image: false,
            display,
            is_fixed: false,
            is_visible: true,
            is_collapsed: false,
        });
        self.layout.nodes.len() as u32 - 1
    }
}

/// 150 KB of nested wrappers, cards, paragraphs and links.
fn page_of_150_kb() -> Layout<'static> {
    let mut page = Page::new();
    while page.n_bytes < 150_000 {
        let section = page.element(Some(1), "section", "part", 0.0, 1280.0);
        for side in 0..2 {
            let x = 640.0 * side as f32;
            let wrapper = page.element(Some(section), "div", "wrap", x, 620.0);
            let list = page.element(Some(wrapper), "div", "cards", x, 620.0);
            for _ in 0..6 {
                let card = page.element(Some(list), "article", "card", x, 600.0);
                let heading = page.element(Some(card), "h3", "title", x, 600.0);
                let link = page.element(Some(heading), "a", "more", x, 600.0);
                page.text(link, 8, x, 600.0);
                let paragraph = page.element(Some(card), "p", "", x, 600.0);
                page.text(paragraph, 30, x, 600.0);
            }
        }
    }
    page.layout
}

#[divan::bench]
fn cut_150_kb(bencher: Bencher) {
    let layout = page_of_150_kb();
    let config = SegmentConfig::default();
    bencher.bench(|| segment(black_box(&layout), &config));
}

#[divan::bench]
fn write_vixml(bencher: Bencher) {
    let tree = segment(&page_of_150_kb(), &SegmentConfig::default());
    bencher.bench(|| vixml::write(black_box(&tree)));
}

#[divan::bench]
fn read_vixml(bencher: Bencher) {
    let xml = vixml::write(&segment(&page_of_150_kb(), &SegmentConfig::default()));
    bencher.bench(|| vixml::read(black_box(&xml)));
}
