//! A layout and its blocks -> a picture: grey bars for text, boxes for blocks, their references beside them.
//!
//! With a screenshot of the page underneath, the boxes are drawn over it. A tiny rasteriser of rectangles and
//! digits is enough for that.

use perennial_core::layout::{Layout, Rect, VIEWPORT_WIDTH};
use perennial_core::segment::{Block, BlockTree};

/// A page is drawn down to this height.
const MAX_HEIGHT: f32 = 16_000.0;

type Rgb = [u8; 3];

/// A screenshot that cannot be read as a picture.
#[derive(Debug, thiserror::Error)]
#[error("the browser's screenshot cannot be read ({0}): use --format svg")]
pub struct PictureError(String);

/// Draws blocks over a screenshot, or over the page as the layout knows it, as PNG.
pub fn draw_png(
    tree: &BlockTree,
    layout: &Layout,
    screenshot: Option<&[u8]>,
) -> Result<Vec<u8>, PictureError> {
    let mut canvas = match screenshot {
        Some(png) => Canvas::from_png(png)?,
        None => sketch(layout),
    };
    for leaf in tree.leaves() {
        canvas.fill(&leaf.rect, colour(leaf.importance), 60);
    }
    for block in tree.walk() {
        let thickness = if block.is_leaf() { 2 } else { 1 };
        canvas.outline(&block.rect, [40, 50, 90], thickness);
    }
    for leaf in tree.leaves() {
        label(&mut canvas, leaf);
    }
    canvas.to_png()
}

/// From pale blue over yellow to red, by the square root, which the eye tells apart better.
fn colour(importance: f32) -> Rgb {
    let heat = importance.clamp(0.0, 1.0).sqrt();
    let blend = |cold: f32, hot: f32| (cold + (hot - cold) * heat) as u8;
    [blend(120.0, 255.0), blend(180.0, 60.0), blend(255.0, 30.0)]
}

fn label(canvas: &mut Canvas, leaf: &Block) {
    let text = format!("{} {:.2}", leaf.name(), leaf.importance);
    let (x, y) = (leaf.rect.x.max(0.0) as i32 + 3, leaf.rect.y.max(0.0) as i32 + 3);
    let width = text.chars().count() as f32 * 8.0 + 2.0;
    canvas.fill(&Rect { x: x as f32 - 2.0, y: y as f32 - 2.0, w: width, h: 14.0 }, [255, 255, 255], 220);
    for (place, character) in text.chars().enumerate() {
        canvas.character(character, x + place as i32 * 8, y);
    }
}

/// Draws the page from its layout: backgrounds, images as boxes, texts as bars.
fn sketch(layout: &Layout) -> Canvas {
    let width =
        if layout.width.is_finite() { layout.width.clamp(VIEWPORT_WIDTH, 4000.0) } else { VIEWPORT_WIDTH };
    let height = if layout.height.is_finite() { layout.height.clamp(100.0, MAX_HEIGHT) } else { 100.0 };
    let mut canvas = Canvas::new(width as usize, height as usize);
    for node in layout.nodes.iter().filter(|node| node.is_visible) {
        if node.background.a > 0 {
            let color = node.background;
            canvas.fill(&node.rect, [color.r, color.g, color.b], u16::from(color.a));
        }
        if matches!(&*node.tag, "img" | "svg" | "video" | "canvas" | "iframe") {
            canvas.fill(&node.rect, [205, 215, 205], 255);
        }
        if node.is_text() && !node.text.trim().is_empty() {
            bars(&mut canvas, node.rect, node.font_size, [node.color.r, node.color.g, node.color.b]);
        }
    }
    canvas
}

fn bars(canvas: &mut Canvas, rect: Rect, font_size: f32, color: Rgb) {
    if !(rect.h.is_finite() && font_size > 0.0) {
        return;
    }
    let n_lines = (rect.h / (font_size * 1.25)).round().clamp(1.0, 400.0);
    let step = rect.h / n_lines;
    for line in 0..n_lines as usize {
        let y = rect.y + line as f32 * step + step * 0.3;
        canvas.fill(&Rect { x: rect.x, y, w: rect.w, h: font_size * 0.45 }, color, 130);
    }
}

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![255; width * height * 3] }
    }

    fn from_png(bytes: &[u8]) -> Result<Canvas, PictureError> {
        let broken = |error: png::DecodingError| PictureError(error.to_string());
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(broken)?;
        let size = reader.output_buffer_size().ok_or_else(|| PictureError("too large".into()))?;
        let mut buffer = vec![0; size];
        let frame = reader.next_frame(&mut buffer).map_err(broken)?;
        let n_channels = frame.color_type.samples();
        let mut canvas = Canvas::new(frame.width as usize, frame.height as usize);
        for (pixel, source) in canvas.pixels.chunks_exact_mut(3).zip(buffer.chunks_exact(n_channels)) {
            let rgb = if n_channels < 3 { [source[0]; 3] } else { [source[0], source[1], source[2]] };
            pixel.copy_from_slice(&rgb);
        }
        Ok(canvas)
    }

    fn to_png(&self) -> Result<Vec<u8>, PictureError> {
        let broken = |error: png::EncodingError| PictureError(error.to_string());
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header().map_err(broken)?;
        writer.write_image_data(&self.pixels).map_err(broken)?;
        writer.finish().map_err(broken)?;
        Ok(out)
    }

    /// Blends a rectangle in; `alpha` is 0 to 255.
    fn fill(&mut self, rect: &Rect, color: Rgb, alpha: u16) {
        // Casts from float clamp, and NaN becomes 0.
        let (left, right) = (rect.x.max(0.0) as usize, (rect.right().max(0.0) as usize).min(self.width));
        let (top, bottom) = (rect.y.max(0.0) as usize, (rect.bottom().max(0.0) as usize).min(self.height));
        for y in top..bottom {
            for x in left..right {
                self.blend(x, y, color, alpha);
            }
        }
    }

    fn blend(&mut self, x: usize, y: usize, color: Rgb, alpha: u16) {
        let at = (y * self.width + x) * 3;
        for (channel, new) in color.into_iter().enumerate() {
            let old = u16::from(self.pixels[at + channel]);
            self.pixels[at + channel] = ((old * (255 - alpha) + u16::from(new) * alpha) / 255) as u8;
        }
    }

    fn outline(&mut self, rect: &Rect, color: Rgb, thickness: u8) {
        let t = f32::from(thickness);
        let Rect { x, y, w, h } = *rect;
        for side in [
            Rect { x, y, w, h: t },
            Rect { x, y: y + h - t, w, h: t },
            Rect { x, y, w: t, h },
            Rect { x: x + w - t, y, w: t, h },
        ] {
            self.fill(&side, color, 255);
        }
    }

    fn character(&mut self, character: char, x: i32, y: i32) {
        let Some((_, rows)) = GLYPHS.iter().find(|(known, _)| *known == character) else { return };
        for (row, bits) in rows.iter().enumerate() {
            for column in (0..3).filter(|column| bits & (4 >> column) != 0) {
                let (left, top) = (x + column * 2, y + row as i32 * 2);
                self.fill(&Rect { x: left as f32, y: top as f32, w: 2.0, h: 2.0 }, [0, 0, 0], 255);
            }
        }
    }
}

/// The characters of a reference, three by five pixels.
const GLYPHS: [(char, [u8; 5]); 12] = [
    ('0', [7, 5, 5, 5, 7]),
    ('1', [2, 6, 2, 2, 7]),
    ('2', [7, 1, 7, 4, 7]),
    ('3', [7, 1, 7, 1, 7]),
    ('4', [5, 5, 7, 1, 1]),
    ('5', [7, 4, 7, 1, 7]),
    ('6', [7, 4, 7, 5, 7]),
    ('7', [7, 1, 2, 2, 2]),
    ('8', [7, 5, 7, 5, 7]),
    ('9', [7, 5, 7, 1, 7]),
    ('B', [6, 5, 6, 5, 6]),
    ('.', [0, 0, 0, 0, 2]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dom::Dom;
    use crate::structural;
    use perennial_core::segment::{SegmentConfig, segment};

    #[test]
    fn a_picture_has_the_size_of_the_page_and_shows_its_blocks() {
        let dom = Dom::parse("<h1>Title</h1><p>Some words to read.");
        let layout = structural::layout(&dom, "http://a.example/");
        let tree = segment(&layout, &SegmentConfig::default());
        let png = draw_png(&tree, &layout, None).expect("drawn");
        let canvas = Canvas::from_png(&png).expect("read back");
        assert_eq!((canvas.width, canvas.height), (1280, layout.height as usize));
        let again = draw_png(&tree, &layout, Some(&png)).expect("drawn over a screenshot");
        assert!(Canvas::from_png(&again).expect("read back").pixels.iter().any(|&byte| byte < 255));
    }

    #[test]
    fn boxes_that_make_no_sense_are_no_harm() {
        let mut canvas = Canvas::new(10, 10);
        for rect in [
            Rect { x: f32::NAN, y: 0.0, w: f32::INFINITY, h: 5.0 },
            Rect { x: -1e30, y: -5.0, w: 1e31, h: 1e31 },
            Rect { x: 1e30, y: 1e30, w: -5.0, h: -1.0 },
        ] {
            canvas.fill(&rect, [0, 0, 0], 255);
            canvas.outline(&rect, [0, 0, 0], 2);
        }
        assert_eq!(canvas.pixels.len(), 300);
    }

    #[test]
    fn a_broken_screenshot_is_an_error() {
        assert!(draw_png(&BlockTree::default(), &Layout::default(), Some(b"no picture")).is_err());
    }
}
