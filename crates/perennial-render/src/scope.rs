//! The styles of nodes above -> whether a node can be seen and whether it stays in view.
//!
//! Both engines use this module, so that the same page has the same visible words in both.

use perennial_core::layout::{Layout, LayoutNode};

/// `position` of CSS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Position {
    #[default]
    Static,
    Relative,
    Absolute,
    Fixed,
    Sticky,
}

/// The styles of one element that decide what can be seen below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cues {
    pub(crate) position: Position,
    pub(crate) is_transparent: bool,
    /// Whether it clips what overflows its box.
    pub(crate) is_cutting: bool,
    /// Whether it has `visibility: visible`, which is inherited.
    pub(crate) is_visible: bool,
}

/// What holds for everything below a node.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Scope {
    pub(crate) is_hidden: bool,
    /// Whether a box above is empty and clips what overflows, so that nothing below it shows. A box that is not
    /// positioned does not clip what is positioned absolutely.
    pub(crate) is_cut: bool,
    is_cut_by_positioned: bool,
    pub(crate) is_fixed: bool,
}

impl Scope {
    /// The scope below `own`. Sets the flags of `own` too.
    pub(crate) fn enter(self, own: &mut LayoutNode, cues: Cues, has_box: bool) -> Scope {
        let is_empty = has_box && (own.rect.w <= 1.0 || own.rect.h <= 1.0);
        let is_cutting = is_empty && cues.is_cutting;
        let is_absolute = matches!(cues.position, Position::Absolute | Position::Fixed);
        let is_cut_above = if is_absolute { self.is_cut_by_positioned } else { self.is_cut };
        let below = Scope {
            is_hidden: self.is_hidden || cues.is_transparent || own.attribute("aria-hidden") == Some("true"),
            is_cut: is_cut_above || is_cutting,
            is_cut_by_positioned: self.is_cut_by_positioned
                || (is_cutting && cues.position != Position::Static),
            is_fixed: self.is_fixed || matches!(cues.position, Position::Fixed | Position::Sticky),
        };
        own.is_fixed = below.is_fixed;
        own.is_visible = !below.is_hidden && cues.is_visible && !below.is_cut;
        below
    }

    /// Sets the flags of a text below a node with this scope.
    pub(crate) fn enter_text(self, own: &mut LayoutNode, is_parent_visible: bool) {
        own.is_fixed = self.is_fixed;
        let is_on_page = own.rect.right() > 0.0 && own.rect.bottom() > 0.0;
        let is_blank = own.text.trim().is_empty();
        own.is_visible = is_parent_visible && !self.is_hidden && !self.is_cut && (is_on_page || is_blank);
    }
}

/// Hides what is left of or above the page, and measures the page.
pub(crate) fn finish(layout: &mut Layout) {
    for node in &mut layout.nodes {
        let is_off_page = node.rect.area() > 0.0 && (node.rect.right() <= 0.0 || node.rect.bottom() <= 0.0);
        node.is_visible &= !is_off_page;
    }
    let seen = layout.nodes.iter().filter(|node| node.is_visible && node.rect.area() > 0.0);
    (layout.width, layout.height) = seen
        .fold((0.0, 0.0), |(w, h): (f32, f32), node| (w.max(node.rect.right()), h.max(node.rect.bottom())));
}
