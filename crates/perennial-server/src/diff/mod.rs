//! A comparison -> the diff view: both versions as they were captured, side by side, with their changes marked word by word;
//! both as one text; the changes only; the links (docs/diff.md).
//!
//! [`DiffView::body`] is a component: it needs [`STYLE`] and, to step from change to change and to join the two places of a
//! move, [`SCRIPT`]. Everything is readable without the script. [`DiffView::page`] is a single file for any browser.
//!
//! | file | input -> output |
//! |---|---|
//! | `words` | two texts -> which of their words are the same |
//! | `elements` | a tree -> its links, images and texts, indexed by block and content |
//! | `changes` | a comparison -> numbered changes, each with its parts of both versions |
//! | `position` | the parts of a tree -> words and images of the captured page |
//! | `marks` | changes and their places -> marked words, frames, tags |
//! | `css` | a stylesheet -> a self-contained one |
//! | `isolate` | a captured page and its marks -> a self-contained document without scripts |
//! | `text` | changes -> words; the text view; the links view |

mod changes;
mod css;
mod elements;
mod isolate;
mod marks;
mod position;
mod text;
mod words;

use std::fmt::Write;

use perennial_core::page::diff::OperationKind;
use perennial_core::page::segment::Selector;
use perennial_core::text::markup::{self, escaped};
use perennial_core::text::untrusted::shorten;
use perennial_core::time::Timestamp;
use url::Url;

use self::changes::{Changes, Group, ShownChange, list_changes};
use self::elements::Side;
pub use self::isolate::Original;
use self::isolate::{isolated, link_base, with_plain_space};
use self::marks::Marks;
use self::position::{Page, Places};
use self::text::{Extent, TextView, kind_name, write_change, write_links};
pub(crate) use self::words::marked_words;
use perennial_engine::analyse::{Comparison, headlines};
use perennial_engine::html::dates::{day_long, day_short, minute};
use perennial_engine::html::page;

/// The stylesheet of the component.
pub const STYLE: &str = include_str!("diff.css");
/// Its script.
pub const SCRIPT: &str = include_str!("diff.js");

/// A comparison to show.
pub struct DiffView<'a> {
    pub comparison: &'a Comparison,
    /// The formula of the importance.
    pub form: &'a str,
    /// The version before as captured; `None` if only its blocks are known.
    pub before: Option<Original<'a>>,
    /// The version after.
    pub after: Option<Original<'a>>,
    /// The URL at which to pin a selected part, if possible.
    pub pin: Option<&'a dyn Fn(&str) -> String>,
    /// The neighbours of the two versions in an archive; `None` for files.
    pub frame: Option<DiffFrame>,
}

/// The neighbours of two versions in an archive. Its texts are already HTML.
#[derive(Clone, Default, Debug)]
pub struct DiffFrame {
    /// The breadcrumbs to the page.
    pub crumbs: String,
    /// The index threshold of the page.
    pub threshold: f64,
    /// Whether the later version is indexed, as decided by its analysis.
    pub is_indexed: bool,
    /// Links to the previous and the next comparison.
    pub steps: String,
    /// The form for choosing two versions.
    pub slider: String,
}

/// One version, ready to show.
struct DiffSide {
    page: Page,
    places: Places,
    document: String,
    is_shown: Vec<bool>,
}

impl DiffView<'_> {
    /// A complete HTML file.
    pub fn page(&self) -> String {
        let host =
            Url::parse(&self.comparison.after.url).ok().and_then(|url| url.host_str().map(str::to_string));
        let title = format!("Changes of {}", host.as_deref().unwrap_or("a page"));
        let body = format!("<main class=\"pd-wrap\">{}</main><script>{SCRIPT}</script>", self.body());
        page(&title, STYLE, &body)
    }

    /// The component.
    pub fn body(&self) -> String {
        let (before, after) = (Side::of(&self.comparison.before), Side::of(&self.comparison.after));
        let Changes { shown: changes, n_over, links_in_texts } =
            list_changes(self.comparison, &before, &after);
        let shown = [
            self.before.as_ref().map(|original| DiffSide::new(original, [&before, &after], &changes, true)),
            self.after.as_ref().map(|original| DiffSide::new(original, [&after, &before], &changes, false)),
        ];
        let view =
            Parts { view: self, before: &before, after: &after, changes: &changes, n_over, shown: &shown };
        let mut out = String::from("<div class=\"pd\">");
        view.write_head(&mut out);
        view.write_bar(&mut out);
        out.push_str("<div class=\"pd-cols\">");
        view.write_list(&mut out);
        out.push_str("<div class=\"pd-views\">");
        view.write_panes(&mut out);
        view.write_text(&mut out);
        out.push_str("<section class=\"pd-view pd-links\" aria-label=\"Links\">");
        write_links(&mut out, changes.iter().chain(&links_in_texts), &before, &after);
        out.push_str("</section></div></div></div>");
        out
    }
}

impl DiffSide {
    fn new(
        original: &Original<'_>,
        [own, other]: [&Side<'_>; 2],
        changes: &[ShownChange],
        is_before: bool,
    ) -> DiffSide {
        let page = Page::of(original.html);
        let places = Places::of(own, &page, link_base(&page, original.url).as_ref());
        let mut marks = Marks::of(changes, is_before, &page, &places);
        marks.add_absent(changes, is_before, own, other, &places);
        if !is_before {
            marks.add_gone(changes, other, own, &places);
        }
        let document = isolated(original, &page, &marks, changes, is_before);
        DiffSide { page, places, document, is_shown: marks.is_shown }
    }
}

/// The input of all parts of the view.
struct Parts<'v, 't> {
    view: &'v DiffView<'v>,
    before: &'v Side<'t>,
    after: &'v Side<'t>,
    changes: &'v [ShownChange],
    n_over: usize,
    shown: &'v [Option<DiffSide>; 2],
}

impl Parts<'_, '_> {
    fn n(&self, group: Group) -> usize {
        self.changes.iter().filter(|change| change.group == group).count()
    }

    fn has_pages(&self) -> bool {
        self.shown.iter().all(Option::is_some)
    }

    fn write_head(&self, out: &mut String) {
        let comparison = self.view.comparison;
        let (before, after) = (&comparison.before, &comparison.after);
        // A version without a time is a file.
        let is_file = Timestamp::parse(&after.version).is_err();
        let place = if is_file { &after.version } else { &after.url };
        match &self.view.frame {
            Some(around) => out.push_str(&around.crumbs),
            None => {
                let _ = write!(out, "<p class=\"crumbs\">{}</p>", escaped(&shorten(place, 160)));
            }
        }
        let importance = comparison.assessment.importance.get();
        let _ = write!(
            out,
            "<div class=\"pd-head\"><div><h1>{}</h1><p class=\"lead\">{}. Importance {}",
            self.heading(),
            escaped(&describe_span(&before.version, &after.version)),
            decimal(importance)
        );
        let _ = match &self.view.frame {
            Some(around) if around.is_indexed => {
                write!(out, ", kept in the index: the threshold is {}.", decimal(around.threshold))
            }
            Some(around) => write!(out, ", below the index threshold of {}.", decimal(around.threshold)),
            None => write!(out, " <span class=\"mute\">({})</span>.", escaped(self.view.form)),
        };
        if let Some(headlines) = headlines(&comparison.delta) {
            let _ = write!(out, " {}.", escaped(&capital(&headlines)));
        }
        if self.n_over > 0 {
            let _ = write!(
                out,
                " {} more changes are not shown: <code>--format json</code> has all of them.",
                self.n_over
            );
        }
        out.push_str("</p></div>");
        match &self.view.frame {
            Some(around) => {
                let _ = write!(out, "{}</div>{}", around.steps, around.slider);
            }
            None => out.push_str("</div>"),
        }
    }

    fn heading(&self) -> String {
        let (n_news, n_moves) = (self.n(Group::News), self.n(Group::Moves));
        let n_folded = self.n(Group::Ads) + self.n(Group::Noise);
        let changes = count(n_news, "change");
        let what = match (n_news, n_moves, n_folded) {
            (0, 0, 0) => return "No change that a reader could tell".to_string(),
            (0, 0, _) => return "Nothing but noise and advertisements".to_string(),
            (0, moves, _) => count(moves, "move"),
            (_, 0, _) => changes,
            (_, moves, _) => format!("{changes} and {}", count(moves, "move")),
        };
        let times = [&self.view.comparison.before, &self.view.comparison.after];
        let [before, after] = times.map(|tree| Timestamp::parse(&tree.version).ok());
        match before.zip(after).filter(|(before, after)| before < after) {
            Some((before, after)) => format!("{what} in {}", distance((after - before).as_hours_f64())),
            None => what,
        }
    }

    /// The switches. They are plain form controls that the style sheet evaluates, so they work without a script.
    fn write_bar(&self, out: &mut String) {
        out.push_str("<form class=\"pd-bar\" aria-label=\"What to show\"><span class=\"seg\" role=\"group\" aria-label=\"View\">");
        let views = [("side", "Side by side"), ("inline", "Inline"), ("text", "Text"), ("links", "Links")];
        let first = if self.has_pages() { "side" } else { "text" };
        for (name, label) in
            views.into_iter().filter(|(name, _)| self.has_pages() || matches!(*name, "text" | "links"))
        {
            let checked = if name == first { " checked" } else { "" };
            let _ = write!(
                out,
                "<label><input type=\"radio\" name=\"view\" id=\"pd-{name}\" value=\"{name}\"{checked}><span>{label}</span></label>"
            );
        }
        out.push_str("</span><span class=\"sws\">");
        for (group, label, checked) in
            [(Group::Moves, "Moves", " checked"), (Group::Ads, "Ads", ""), (Group::Noise, "Noise", "")]
        {
            let _ = write!(
                out,
                "<label class=\"sw\"><input type=\"checkbox\" id=\"pd-f-{}\"{checked}> {label} {}</label>",
                group.class(),
                self.n(group)
            );
        }
        out.push_str(
            "</span><a class=\"pd-here\" href=\"#\" hidden>Link to this view</a><span class=\"keys\"><kbd>n</kbd> next <kbd>p</kbd> previous",
        );
        if self.view.frame.is_some() {
            out.push_str(" <kbd>[</kbd> earlier <kbd>]</kbd> later");
        }
        out.push_str(" <kbd>m</kbd> <kbd>a</kbd> <kbd>o</kbd> switches</span></form>");
    }

    fn write_list(&self, out: &mut String) {
        out.push_str("<nav class=\"pd-list\" aria-label=\"Changes only\"><h2>Changes only <span class=\"mute\">share of importance</span></h2><ol>");
        for (number, change) in self.changes.iter().enumerate() {
            self.write_entry(out, number, change);
        }
        out.push_str("</ol>");
        for (group, what) in
            [(Group::Noise, "change nothing but noise"), (Group::Ads, "are about advertisements")]
        {
            let n = self.n(group);
            if n > 0 {
                let _ = write!(
                    out,
                    "<p class=\"folded not-{}\"><label for=\"pd-f-{}\">{n} {what}</label></p>",
                    group.class(),
                    group.class()
                );
            }
        }
        if self.changes.is_empty() {
            out.push_str("<p class=\"empty\">Both versions say the same to a reader.</p>");
        }
        out.push_str("<p class=\"legend\">");
        for op in OperationKind::ALL {
            let _ = write!(out, "<span>{} {}</span>", op_mark(op), kind_name(op));
        }
        out.push_str("</p></nav>");
    }

    fn write_entry(&self, out: &mut String, number: usize, change: &ShownChange) {
        let _ = write!(
            out,
            "<li class=\"{}\"><a href=\"#t{}\" data-pd=\"{}\">{}<span><span class=\"t\"><b>{}</b> ",
            change.group.class(),
            number + 1,
            number + 1,
            op_mark(change.op),
            number + 1
        );
        write_change(out, change, self.before, self.after, Extent::Short);
        let _ = write!(out, "</span><span class=\"where\">{}", change.subject);
        if let Some(role) = change.role {
            let _ = write!(out, ", {role}");
        }
        if let Some(reason) = &change.reason {
            let _ = write!(out, ": {}", escaped(reason));
        }
        let is_anywhere = self.shown.iter().flatten().any(|shown| shown.is_shown[number]);
        if self.has_pages() && !is_anywhere {
            out.push_str(", not marked in the page");
        }
        out.push_str("</span></span>");
        if change.value > 0.0 {
            let _ = write!(
                out,
                "<span class=\"v\" title=\"share of the importance\">{:.0} %</span>",
                100.0 * change.share
            );
        }
        out.push_str("</a>");
        if let Some((pin, selector)) = self.view.pin.zip(self.changed_part(change)) {
            let _ = write!(
                out,
                "<a class=\"pin\" href=\"{}\">Pin or ignore <code>{}</code></a>",
                escaped(&pin(&selector)),
                markup::isolated(&selector)
            );
        }
        out.push_str("</li>");
    }

    /// A unique selector of the smallest element around a change.
    fn changed_part(&self, change: &ShownChange) -> Option<String> {
        let sides = [(&self.shown[1], &change.after), (&self.shown[0], &change.before)];
        sides.into_iter().find_map(|(shown, pieces)| {
            let DiffSide { page, places, .. } = shown.as_ref()?;
            let words = places.piece_words(pieces);
            let nodes = words.iter().flatten().map(|word| page.words[*word].node);
            let nodes = nodes.chain(pieces.iter().filter_map(|piece| places.piece_node(*piece)));
            let (first, last) = nodes.fold(None, |span: Option<(u32, u32)>, node| {
                Some(span.map_or((node, node), |(first, last)| (first.min(node), last.max(node))))
            })?;
            let mut here = page.common(first, last);
            while let Some(node) = here {
                if let Some(selector) = Selector::unique_for(&page.dom, node) {
                    return Some(selector.to_string());
                }
                here = page.dom.nodes.get(node as usize)?.parent.filter(|above| page.dom.is_element(*above));
            }
            None
        })
    }

    fn write_panes(&self, out: &mut String) {
        if !self.has_pages() {
            out.push_str(
                "<p class=\"empty pd-view pd-side\">Of one of the versions only its words are known.</p>",
            );
            return;
        }
        out.push_str("<section class=\"pd-view pd-side\" aria-label=\"The pages\"><div class=\"panes\">");
        let trees = [&self.view.comparison.before, &self.view.comparison.after];
        for (name, shown, tree) in [("Before", &self.shown[0], trees[0]), ("After", &self.shown[1], trees[1])]
        {
            let Some(shown) = shown else { continue };
            let side = name.to_ascii_lowercase();
            // The frame cannot run scripts, so it may share our origin. That lets our script measure and mark it.
            let _ = write!(
                out,
                "<div class=\"pane pane-{side}\"><h2>{name} <span class=\"mute\">{}</span></h2><div class=\"paper\" tabindex=\"0\" role=\"region\" aria-label=\"The page {side}\"><iframe \
                 name=\"pd-{side}\" title=\"The page {side}\" sandbox=\"allow-same-origin\" referrerpolicy=\"no-referrer\" \
                 loading=\"eager\" srcdoc=\"{}\"></iframe></div></div>",
                escaped(&short_version(&tree.version)),
                with_plain_space(escaped(&shown.document).to_string())
            );
        }
        out.push_str("<svg class=\"joins\" aria-hidden=\"true\"></svg></div></section>");
    }

    fn write_text(&self, out: &mut String) {
        out.push_str("<section class=\"pd-view pd-text\" aria-label=\"Text\">");
        let placed = [&self.shown[0], &self.shown[1]]
            .map(|shown| shown.as_ref().map(|shown| (&shown.page, &shown.places)));
        TextView { before: self.before, after: self.after, changes: self.changes }.write(out, placed);
        out.push_str("</section>");
    }
}

/// The time of a capture, or the name of a file without its folders.
fn short_version(version: &str) -> String {
    match Timestamp::parse(version) {
        Ok(at) => format!("{} {}", day_short(at), minute(at)),
        Err(_) => file_label(version).to_string(),
    }
}

fn file_label(version: &str) -> &str {
    version.rsplit(['/', '\\']).next().unwrap_or(version)
}

/// The time between the versions, for people.
fn describe_span(before: &str, after: &str) -> String {
    let times = Timestamp::parse(before).ok().zip(Timestamp::parse(after).ok());
    let Some((from, to)) = times else { return format!("{} to {}", file_label(before), file_label(after)) };
    let is_same_day = day_long(from) == day_long(to);
    let day = if is_same_day { String::new() } else { format!("{}, ", day_long(to)) };
    format!("{}, {} to {day}{}", day_long(from), minute(from), minute(to))
}

/// The sign of an operation, for readers who cannot see its colour.
fn sign(op: OperationKind) -> &'static str {
    match op {
        OperationKind::Insert => "+",
        OperationKind::Delete => "−",
        OperationKind::Update => "~",
        OperationKind::Move => "↕",
    }
}

fn op_mark(op: OperationKind) -> String {
    let title = kind_name(op);
    format!(
        "<span class=\"op {}\" title=\"{title}\"><span class=\"vh\">{title} </span>{}</span>",
        op.name(),
        sign(op)
    )
}

fn decimal(importance: f64) -> String {
    if importance > 0.0 && importance < 0.005 {
        format!("{importance:.4}")
    } else {
        format!("{importance:.2}")
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A duration for people.
fn distance(hours: f64) -> String {
    match hours {
        _ if hours < 1.0 => format!("{:.0} min", (60.0 * hours).max(1.0)),
        _ if hours < 48.0 => format!("{hours:.0} h"),
        _ => format!("{:.0} days", hours / 24.0),
    }
}

#[cfg(test)]
mod tests;
