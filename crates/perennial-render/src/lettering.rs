//! Text -> dots of ink: the letters of the built-in fonts, drawn small, for pictures that people read.
//!
//! Layout takes the condensed cut for most families of a page, so the words drawn here are as wide as the engine thought.

use std::collections::HashMap;
use std::rc::Rc;

use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, MetadataProvider};

/// Lines of dots in a line of pixels, and dots in a pixel.
const FINENESS: usize = 4;
/// Sizes beyond this are drawn as this.
const MAX_SIZE: f32 = 96.0;
/// Pieces of a curve.
const N_PIECES: usize = 6;

/// A letter at one size.
pub(crate) struct Letter {
    /// From the pen to the left edge of the dots.
    pub(crate) left: i32,
    /// From the base line up to their upper edge.
    pub(crate) top: i32,
    pub(crate) width: usize,
    /// Ink of each pixel, 0 to 255, row by row.
    pub(crate) ink: Vec<u8>,
    pub(crate) advance: f32,
}

/// Draws letters and remembers them.
pub(crate) struct Lettering {
    fonts: Option<[FontRef<'static>; 2]>,
    drawn: HashMap<(char, bool, u16), Rc<Letter>>,
}

impl Lettering {
    pub(crate) fn new() -> Lettering {
        let files = [dejavu::sans_condensed::regular(), dejavu::sans_condensed::bold()];
        let fonts = files.map(|file| FontRef::new(file).ok());
        let [Some(regular), Some(bold)] = fonts else {
            return Lettering { fonts: None, drawn: HashMap::new() };
        };
        Lettering { fonts: Some([regular, bold]), drawn: HashMap::new() }
    }

    /// A letter; one that the font lacks is its box.
    pub(crate) fn letter(&mut self, letter: char, is_bold: bool, size: f32) -> Rc<Letter> {
        let size = size.clamp(4.0, MAX_SIZE);
        let key = (letter, is_bold, (4.0 * size) as u16);
        if let Some(drawn) = self.drawn.get(&key) {
            return Rc::clone(drawn);
        }
        let font = self.fonts.as_ref().map(|fonts| &fonts[usize::from(is_bold)]);
        let drawn = Rc::new(font.map_or_else(Letter::none, |font| Letter::of(font, letter, size)));
        self.drawn.insert(key, Rc::clone(&drawn));
        drawn
    }

    /// How wide a text is.
    pub(crate) fn width(&mut self, text: &str, is_bold: bool, size: f32) -> f32 {
        text.chars().map(|letter| self.letter(letter, is_bold, size).advance).sum()
    }
}

impl Letter {
    fn none() -> Letter {
        Letter { left: 0, top: 0, width: 0, ink: Vec::new(), advance: 0.0 }
    }

    fn of(font: &FontRef<'_>, letter: char, size: f32) -> Letter {
        let glyph = font.charmap().map(letter).unwrap_or_default();
        let advance =
            font.glyph_metrics(Size::new(size), LocationRef::default()).advance_width(glyph).unwrap_or(0.0);
        let mut outline = Outline::default();
        if let Some(drawn) = font.outline_glyphs().get(glyph) {
            // A letter whose outline is broken has no ink.
            let _ = drawn.draw(DrawSettings::unhinted(Size::new(size), LocationRef::default()), &mut outline);
        }
        outline.filled(advance)
    }
}

/// The edges of a letter, as straight pieces, y upwards.
#[derive(Default)]
struct Outline {
    edges: Vec<[(f32, f32); 2]>,
    start: (f32, f32),
    pen: (f32, f32),
}

impl OutlinePen for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.close();
        (self.start, self.pen) = ((x, y), (x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.edges.push([self.pen, (x, y)]);
        self.pen = (x, y);
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        let (from, n) = (self.pen, N_PIECES as f32);
        for piece in 1..=N_PIECES {
            let t = piece as f32 / n;
            let blend =
                |a: f32, b: f32, c: f32| (1.0 - t) * (1.0 - t) * a + 2.0 * (1.0 - t) * t * b + t * t * c;
            self.line_to(blend(from.0, cx, x), blend(from.1, cy, y));
        }
    }

    fn curve_to(&mut self, ax: f32, ay: f32, bx: f32, by: f32, x: f32, y: f32) {
        // Our fonts have none; two quadratic pieces are near enough.
        let (mx, my) = ((ax + bx) / 2.0, (ay + by) / 2.0);
        self.quad_to(ax, ay, mx, my);
        self.quad_to(bx, by, x, y);
    }

    fn close(&mut self) {
        if self.pen != self.start {
            let start = self.start;
            self.line_to(start.0, start.1);
        }
    }
}

impl Outline {
    /// Counts for each pixel how many of its dots are inside.
    fn filled(mut self, advance: f32) -> Letter {
        self.close();
        let points = || self.edges.iter().flatten();
        let low = |of: fn(&(f32, f32)) -> f32| points().map(of).fold(f32::INFINITY, f32::min);
        let high = |of: fn(&(f32, f32)) -> f32| points().map(of).fold(f32::NEG_INFINITY, f32::max);
        let (left, right) = (low(|point| point.0).floor(), high(|point| point.0).ceil());
        let (bottom, top) = (low(|point| point.1).floor(), high(|point| point.1).ceil());
        if !(right > left && top > bottom && right - left < 4.0 * MAX_SIZE && top - bottom < 4.0 * MAX_SIZE) {
            return Letter { advance, ..Letter::none() };
        }
        let (width, height) = ((right - left) as usize, (top - bottom) as usize);
        let mut dots = vec![0u16; width * height];
        for line in 0..height * FINENESS {
            let y = top - (line as f32 + 0.5) / FINENESS as f32;
            let row = &mut dots[line / FINENESS * width..][..width];
            for [from, to] in self.crossings(y) {
                let dot = |x: f32| ((x - left) * FINENESS as f32).round().max(0.0) as usize;
                for dot in dot(from)..dot(to).min(width * FINENESS) {
                    row[dot / FINENESS] += 1;
                }
            }
        }
        let most = (FINENESS * FINENESS) as u16;
        let ink = dots.into_iter().map(|n| (n.min(most) * 255 / most) as u8).collect();
        Letter { left: left as i32, top: top as i32, width, ink, advance }
    }

    /// The stretches of a line that are inside, by the rule of non-zero winding.
    fn crossings(&self, y: f32) -> Vec<[f32; 2]> {
        let mut found: Vec<(f32, i32)> = Vec::new();
        for [from, to] in &self.edges {
            if (from.1 <= y) != (to.1 <= y) {
                let x = from.0 + (y - from.1) / (to.1 - from.1) * (to.0 - from.0);
                found.push((x, if to.1 > from.1 { 1 } else { -1 }));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut stretches, mut winding, mut start) = (Vec::new(), 0, 0.0);
        for (x, turn) in found {
            if winding == 0 {
                start = x;
            }
            winding += turn;
            if winding == 0 {
                stretches.push([start, x]);
            }
        }
        stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ink in each row, as a share of its width.
    fn rows(letter: &Letter) -> Vec<f32> {
        letter
            .ink
            .chunks(letter.width)
            .map(|row| row.iter().map(|&ink| f32::from(ink) / 255.0).sum())
            .collect()
    }

    #[test]
    fn letters_have_their_shapes() {
        let mut lettering = Lettering::new();
        let l = lettering.letter('l', false, 20.0);
        let stroke = rows(&l);
        assert!(stroke.len() >= 14, "{stroke:?}");
        assert!(
            stroke[2..stroke.len() - 2].iter().all(|ink| (1.0..=3.0).contains(ink)),
            "one stroke: {stroke:?}"
        );
        let o = lettering.letter('o', false, 20.0);
        let middle =
            &o.ink.chunks(o.width).nth(o.ink.len() / o.width / 2).unwrap()[o.width / 2..o.width / 2 + 1];
        assert_eq!(middle, [0], "an o is empty inside");
        assert!(lettering.letter('W', true, 20.0).advance > lettering.letter('i', true, 20.0).advance);
        assert!(lettering.letter(' ', false, 20.0).ink.is_empty());
        assert!(lettering.width("word", false, 12.0) > 4.0 * 4.0);
    }

    #[test]
    fn any_size_and_letter_is_drawn_within_bounds() {
        let mut lettering = Lettering::new();
        for letter in ['\0', 'é', '日', '\u{10ffff}', 'W'] {
            for size in [f32::NAN, -5.0, 0.0, 7.3, 1e9] {
                let drawn = lettering.letter(letter, false, size);
                assert!(drawn.ink.len() <= 400 * 400 && drawn.advance.is_finite());
            }
        }
    }
}
