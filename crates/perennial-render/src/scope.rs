//! Decides by the styles of its ancestors whether a node is visible and whether it is fixed to the viewport.
//!
//! Both engines use this module, so the same page has the same visible words in both.

use perennial_core::page::layout::Rect;

/// Whether an element is never visible. It still has a place in the layout, because selectors count the children of
/// an element.
pub(crate) fn is_never_shown(tag: &str) -> bool {
    matches!(tag, "base" | "head" | "link" | "meta" | "noscript" | "script" | "style" | "template")
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Position {
    #[default]
    Static,
    Relative,
    Absolute,
    Fixed,
    Sticky,
}

/// The styles of an element that affect the visibility of its descendants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StyleCues {
    pub(crate) position: Position,
    pub(crate) is_transparent: bool,
    /// Whether it clips overflow.
    pub(crate) is_cutting: bool,
    /// `visibility: visible`, which is inherited.
    pub(crate) is_visible: bool,
}

/// The state that a node passes to its descendants.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct VisibilityScope {
    pub(crate) is_hidden: bool,
    /// Whether an ancestor is empty and clips overflow, so nothing below it is visible. Absolutely positioned
    /// nodes are clipped by positioned ancestors only.
    pub(crate) is_cut: bool,
    is_cut_by_positioned: bool,
    pub(crate) is_fixed: bool,
}

/// Whether a node is visible, and whether it is fixed to the viewport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    pub(crate) is_fixed: bool,
    pub(crate) is_visible: bool,
}

impl VisibilityScope {
    /// The scope below an element, and the element's own visibility. `rect` is its box if it has one.
    pub(crate) fn enter(self, rect: Option<&Rect>, cues: StyleCues) -> (VisibilityScope, Sight) {
        let is_empty = rect.is_some_and(|rect| rect.w <= 1.0 || rect.h <= 1.0);
        let is_cutting = is_empty && cues.is_cutting;
        let is_absolute = matches!(cues.position, Position::Absolute | Position::Fixed);
        let is_cut_above = if is_absolute { self.is_cut_by_positioned } else { self.is_cut };
        let below = VisibilityScope {
            is_hidden: self.is_hidden || cues.is_transparent,
            is_cut: is_cut_above || is_cutting,
            is_cut_by_positioned: self.is_cut_by_positioned
                || (is_cutting && cues.position != Position::Static),
            is_fixed: self.is_fixed || matches!(cues.position, Position::Fixed | Position::Sticky),
        };
        let is_visible = !below.is_hidden && cues.is_visible && !below.is_cut;
        (below, Sight { is_fixed: below.is_fixed, is_visible })
    }

    /// Whether everything below is hidden by the element itself, not by one above.
    pub(crate) fn is_closed_within(&self, above: &VisibilityScope) -> bool {
        (self.is_hidden && !above.is_hidden) || (self.is_cut && !above.is_cut)
    }

    /// The visibility of a text below a node with this scope.
    pub(crate) fn enter_text(self, text: &str, rect: &Rect, is_parent_visible: bool) -> Sight {
        let is_on_page = rect.right() > 0.0 && rect.bottom() > 0.0;
        let is_seen = is_parent_visible && !self.is_hidden && !self.is_cut;
        Sight { is_fixed: self.is_fixed, is_visible: is_seen && (is_on_page || text.trim().is_empty()) }
    }

    /// The visibility of a text that the engine did not place.
    pub(crate) fn without_place(self, is_parent_visible: bool) -> Sight {
        let is_visible = is_parent_visible && !self.is_hidden && !self.is_cut;
        Sight { is_fixed: self.is_fixed, is_visible }
    }
}

/// Hides boxes to the left of or above the page.
pub(crate) fn hide_off_page(rect: &Rect, is_visible: &mut bool) {
    let is_off_page = rect.area() > 0.0 && (rect.right() <= 0.0 || rect.bottom() <= 0.0);
    *is_visible &= !is_off_page;
}

/// Width and height of the visible part of a page.
pub(crate) fn extent<'a>(seen: impl Iterator<Item = &'a Rect>) -> (f32, f32) {
    seen.filter(|rect| rect.area() > 0.0)
        .fold((0.0, 0.0), |(w, h): (f32, f32), rect| (w.max(rect.right()), h.max(rect.bottom())))
}
