//! A layout and its blocks -> a picture: the words of the page where they stand, boxes for blocks, each with its reference,
//! role and importance.
//!
//! With a screenshot of the page underneath, the boxes are drawn over it. A tiny rasteriser of rectangles and
//! letters is enough for that.

use perennial_core::page::layout::{Layout, LayoutNode, Rect, VIEWPORT_WIDTH};
use perennial_core::page::segment::{Block, BlockTree};

use crate::lettering::Lettering;

/// A page is drawn down to this height.
const MAX_HEIGHT: f32 = 16_000.0;
/// Most texts that are written.
const MAX_TEXTS: usize = 20_000;

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
    let mut lettering = Lettering::new();
    let mut canvas = match screenshot {
        Some(png) => Canvas::from_png(png)?,
        None => sketch(layout),
    };
    for leaf in tree.leaves() {
        canvas.fill(&leaf.rect, colour(leaf.importance), 50);
    }
    if screenshot.is_none() {
        let texts = layout.nodes.iter().filter(|node| node.is_visible && node.is_text());
        let mut end = LineEnd::default();
        for node in texts.filter(|node| node.rect.y < MAX_HEIGHT).take(MAX_TEXTS) {
            end = write_text(&mut canvas, &mut lettering, node, end);
        }
    }
    for block in tree.walk() {
        let (ink, thickness) = if block.is_leaf() { ([40, 50, 90], 2) } else { ([170, 40, 170], 1) };
        canvas.outline(&block.rect, ink, thickness);
    }
    for leaf in tree.leaves() {
        label(&mut canvas, &mut lettering, leaf);
    }
    canvas.to_png()
}

/// From pale blue over yellow to red, by the square root, which the eye tells apart better.
fn colour(importance: f32) -> Rgb {
    let heat = importance.clamp(0.0, 1.0).sqrt();
    let blend = |cold: f32, hot: f32| (cold + (hot - cold) * heat) as u8;
    [blend(120.0, 255.0), blend(180.0, 60.0), blend(255.0, 30.0)]
}

/// Reference, role and importance of a leaf, at its upper right or near it, where the least is covered.
fn label(canvas: &mut Canvas, lettering: &mut Lettering, leaf: &Block) {
    const SIZE: f32 = 12.0;
    let text = format!("{} {} {:.1} %", leaf.name(), leaf.role.name(), 100.0 * leaf.importance);
    let width = lettering.width(&text, true, SIZE) + 8.0;
    let (rect, inner) = (leaf.rect, leaf.rect.right() - width);
    let places = [
        (inner, rect.y),
        (rect.right(), rect.y),
        (inner, rect.y - LABEL_HEIGHT),
        (inner, rect.bottom()),
        (inner, rect.bottom() - LABEL_HEIGHT),
    ];
    let places = places.map(|(x, y)| Rect { x: x.max(0.0), y: y.max(0.0), w: width, h: LABEL_HEIGHT });
    let is_within =
        |place: &Rect| place.right() <= canvas.width as f32 && place.bottom() <= canvas.height as f32;
    // Of places that cover as much the first is taken.
    let best = places.iter().filter(|place| is_within(place)).min_by_key(|place| canvas.n_dark(place));
    let place = best.unwrap_or(&places[0]);
    canvas.fill(place, [17, 34, 51], 235);
    canvas.write(lettering, &text, (place.x + 4.0, place.y + 13.0), (SIZE, true), [255, 255, 255]);
}

const LABEL_HEIGHT: f32 = 17.0;

/// Draws the page from its layout: backgrounds, and images as boxes.
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
    }
    canvas
}

/// Where the last line of a text ends.
#[derive(Clone, Copy, Default)]
struct LineEnd {
    x: f32,
    /// The upper edge of the line.
    top: f32,
}

/// Writes the words of a node into its box, in as many lines as the engine gave them. The box of a text with several lines is as wide as the
/// longest of them; if the text before ends in its first line, it begins behind that.
fn write_text(canvas: &mut Canvas, lettering: &mut Lettering, node: &LayoutNode, before: LineEnd) -> LineEnd {
    let rect = node.rect;
    if !(rect.w > 0.0 && rect.h > 0.0 && node.font_size > 0.0) {
        return before;
    }
    let is_bold = node.font_weight >= 600;
    let n_lines = (rect.h / (node.font_size * 1.25)).round().clamp(1.0, 400.0);
    let words: Vec<&str> = node.text.split_whitespace().collect();
    let all = lettering.width(&words.join(" "), is_bold, node.font_size);
    let step = rect.h / n_lines;
    let is_in_line = n_lines > 1.0 && (before.top - rect.y).abs() < step / 2.0;
    let indent =
        Some(before.x + node.font_size / 4.0 - rect.x).filter(|x| is_in_line && (0.0..rect.w).contains(x));
    let indent = indent.unwrap_or(0.0);
    // Words that would not fit are written smaller: the page had another font.
    let size = node.font_size * ((n_lines * rect.w - indent) / all.max(1.0)).clamp(0.6, 1.0);
    let ink = canvas.ink_on(&rect, [node.color.r, node.color.g, node.color.b]);
    let mut base = rect.y + step / 2.0 + size * 0.36;
    let (mut line, mut x) = (String::new(), rect.x + indent);
    for word in words {
        let longer = if line.is_empty() { word.to_string() } else { format!("{line} {word}") };
        let is_last = base + step > rect.bottom() + step / 2.0;
        let may_end = !line.is_empty() || x > rect.x;
        if may_end && !is_last && x + lettering.width(&longer, is_bold, size) > rect.right() + 1.0 {
            canvas.write(lettering, &line, (x, base), (size, is_bold), ink);
            (line, base, x) = (word.to_string(), base + step, rect.x);
        } else {
            line = longer;
        }
    }
    canvas.write(lettering, &line, (x, base), (size, is_bold), ink);
    LineEnd { x: x + lettering.width(&line, is_bold, size), top: rect.bottom() - step }
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

    /// Writes a line of text from the left end of its base line.
    fn write(
        &mut self,
        lettering: &mut Lettering,
        text: &str,
        (x, y): (f32, f32),
        (size, is_bold): (f32, bool),
        ink: Rgb,
    ) {
        let mut pen = x;
        for character in text.chars() {
            if pen > self.width as f32 {
                return;
            }
            let letter = lettering.letter(character, is_bold, size);
            let (left, top) =
                (pen.round() as i64 + i64::from(letter.left), y.round() as i64 - i64::from(letter.top));
            for (row, dots) in letter.ink.chunks(letter.width.max(1)).enumerate() {
                for (column, &dot) in dots.iter().enumerate().filter(|(_, dot)| **dot > 0) {
                    let (x, y) = (left + column as i64, top + row as i64);
                    if (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y) {
                        self.blend(x as usize, y as usize, ink, u16::from(dot));
                    }
                }
            }
            pen += letter.advance;
        }
    }

    /// Dark dots in a rectangle: words, and what was drawn.
    fn n_dark(&self, rect: &Rect) -> usize {
        let (left, right) = (rect.x as usize, (rect.right() as usize).min(self.width));
        let (top, bottom) = (rect.y as usize, (rect.bottom() as usize).min(self.height));
        let is_dark = |x: usize, y: usize| {
            let at = (y * self.width + x) * 3;
            self.pixels[at..at + 3].iter().map(|&channel| u32::from(channel)).sum::<u32>() < 3 * 140
        };
        (top..bottom).map(|y| (left..right).filter(|x| is_dark(*x, y)).count()).sum()
    }

    /// The colour of a text if it can be read where it stands, else black or white: the picture behind it may be missing.
    fn ink_on(&self, rect: &Rect, ink: Rgb) -> Rgb {
        let (x, y) = (rect.x.max(0.0) as usize, rect.y.max(0.0) as usize);
        if x >= self.width || y >= self.height {
            return ink;
        }
        let at = (y * self.width + x) * 3;
        let light = |rgb: &[u8]| rgb.iter().map(|&channel| i32::from(channel)).sum::<i32>() / 3;
        let ground = light(&self.pixels[at..at + 3]);
        match (light(&ink) - ground).abs() >= 90 {
            true => ink,
            false if ground > 127 => [34, 34, 34],
            false => [255, 255, 255],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dom::Dom;
    use crate::structural;
    use perennial_core::page::segment::{SegmentConfig, segment};

    #[test]
    fn a_picture_has_the_size_of_the_page_and_shows_its_blocks() {
        let dom = Dom::parse("<h1>Title</h1><p>Some words to read.");
        let layout = structural::layout(&dom, "http://a.example/");
        let tree = segment(&layout, &SegmentConfig::default());
        let png = draw_png(&tree, &layout, None).expect("drawn");
        let canvas = Canvas::from_png(&png).expect("read back");
        assert_eq!((canvas.width, canvas.height), (1280, layout.height as usize));
        let ink = |canvas: &Canvas| {
            canvas.pixels.chunks(3).filter(|rgb| rgb.iter().all(|&byte| byte < 100)).count()
        };
        let without = Layout {
            nodes: layout.nodes.iter().filter(|node| !node.is_text()).cloned().collect(),
            ..layout.clone()
        };
        let blank = Canvas::from_png(&draw_png(&tree, &without, None).expect("drawn")).expect("read back");
        assert!(
            ink(&canvas) > ink(&blank) + 100,
            "the words are written: {} and {}",
            ink(&canvas),
            ink(&blank)
        );
        let again = draw_png(&tree, &layout, Some(&png)).expect("drawn over a screenshot");
        assert!(Canvas::from_png(&again).expect("read back").pixels.iter().any(|&byte| byte < 255));
    }

    #[test]
    fn a_link_that_wraps_begins_behind_the_text_before_it() {
        let dom = Dom::parse("<p>words");
        let layout = structural::layout(&dom, "http://a.example/");
        let words = layout.nodes.iter().find(|node| node.is_text()).expect("a text");
        let text = |text: &'static str, w: f32, h: f32| LayoutNode {
            text: text.into(),
            rect: Rect { x: 0.0, y: 0.0, w, h },
            font_size: 16.0,
            ..words.clone()
        };
        let (mut canvas, mut lettering) = (Canvas::new(400, 100), Lettering::new());
        let first = text("Read also what", 110.0, 20.0);
        let end = write_text(&mut canvas, &mut lettering, &first, LineEnd::default());
        assert!((80.0..120.0).contains(&end.x) && end.top == 0.0, "{} {}", end.x, end.top);
        let before = Canvas { width: 400, height: 100, pixels: canvas.pixels.clone() };
        let link = text("the council decided about the old market hall yesterday", 250.0, 40.0);
        let end = write_text(&mut canvas, &mut lettering, &link, end);
        let left = Rect { x: 0.0, y: 0.0, w: 90.0, h: 20.0 };
        assert_eq!(canvas.n_dark(&left), before.n_dark(&left), "nothing is written over the text before");
        assert!(
            canvas.n_dark(&Rect { x: 130.0, ..left }) > 0 && canvas.n_dark(&Rect { y: 20.0, ..left }) > 0
        );
        assert_eq!(end.top, 20.0);
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
