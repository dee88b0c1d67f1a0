//! Changes -> words with their differences marked; the text view; the links view.

use std::fmt::Write;
use std::ops::Range;

use perennial_core::page::diff::{ElementKind, OperationKind};
use perennial_core::text::markup::escaped;
use perennial_core::text::untrusted::shorten;

use super::changes::{ShownChange, joined};
use super::elements::Side;
use super::op_mark;
use super::position::{Page, Places};
use super::words::{Difference, Word, WordRun, align};

/// Words around a difference in a shortened text.
const N_WORDS_AROUND: usize = 6;
/// Maximum number of words of one shortened stretch.
const N_WORDS_SHOWN: usize = 28;
/// Lines around a change in the text view.
const N_LINES_AROUND: usize = 2;

/// How much of a text is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The differences, with a few words around each.
    Short,
    Whole,
}

/// Writes the words of a change before and after, with their differences marked.
pub(super) fn write_change(
    out: &mut String,
    change: &ShownChange,
    before: &Side<'_>,
    after: &Side<'_>,
    extent: Extent,
) {
    let (old, new, difference) = match &change.words {
        Some(words) => (
            words.before.clone(),
            words.after.clone(),
            change.difference.is_some().then_some(&words.difference),
        ),
        None => (joined(before, &change.before), joined(after, &change.after), change.difference.as_ref()),
    };
    match difference {
        Some(difference) if old != new => write_difference(out, &old, &new, difference, extent),
        Some(_) => write_words(out, &new, "", extent),
        None if change.op == OperationKind::Delete => write_words(out, &old, "del", extent),
        None if change.op == OperationKind::Insert => write_words(out, &new, "ins", extent),
        None => write_words(out, if new.is_empty() { &old } else { &new }, "", extent),
    }
    if change.op == OperationKind::Update {
        write_urls(out, change, before, after);
    } else if old.is_empty() && new.is_empty() {
        let url = change.after.first().map(|&piece| after.pieces[piece].url);
        let url = url.or(change.before.first().map(|&piece| before.pieces[piece].url));
        let _ = write!(out, "<span class=\"adr\">{}</span>", escaped(&shorten(url.unwrap_or(""), 200)));
    }
}

/// Writes both URLs if the target of an updated link or picture changed.
fn write_urls(out: &mut String, change: &ShownChange, before: &Side<'_>, after: &Side<'_>) {
    let addressed = |side: &Side<'_>, places: &[usize]| {
        let place = places.iter().copied().find(|&place| side.pieces[place].kind != ElementKind::Text);
        place.map(|place| side.pieces[place].url.to_string())
    };
    if let (Some(old), Some(new)) = (addressed(before, &change.before), addressed(after, &change.after))
        && old != new
    {
        out.push_str(" <span class=\"adr\">");
        write_url_difference(out, &old, &new);
        out.push_str("</span>");
    }
}

/// Writes two URLs with the differing part of each marked.
pub(super) fn write_url_difference(out: &mut String, old: &str, new: &str) {
    let n_first = old.char_indices().zip(new.chars()).take_while(|((_, x), y)| x == y).last();
    let start = n_first.map_or(0, |((at, character), _)| at + character.len_utf8());
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let same_end = old_rest.chars().rev().zip(new_rest.chars().rev()).take_while(|(x, y)| x == y);
    let n_last: usize = same_end.map(|(x, _)| x.len_utf8()).sum();
    let lead = &old[..start];
    for (rest, tag, between) in
        [(old_rest, "del", " <span aria-hidden=\"true\">→</span> "), (new_rest, "ins", "")]
    {
        let (middle, tail) = rest.split_at(rest.len() - n_last);
        let _ = write!(out, "{}", escaped(&short_lead(lead)));
        if !middle.is_empty() {
            let _ = write!(out, "<{tag}>{}</{tag}>", escaped(&shorten(middle, 300)));
        }
        let _ = write!(out, "{}{between}", escaped(&shorten(tail, 80)));
    }
}

/// The common beginning of two URLs; only its end if it is long.
fn short_lead(lead: &str) -> String {
    const MAX: usize = 60;
    let n_letters = lead.chars().count();
    match n_letters > MAX {
        true => format!("…{}", lead.chars().skip(n_letters - MAX).collect::<String>()),
        false => lead.to_string(),
    }
}

fn write_words(out: &mut String, text: &str, tag: &str, extent: Extent) {
    let words = super::words::words(text);
    let n_shown = if extent == Extent::Short { words.len().min(N_WORDS_SHOWN) } else { words.len() };
    write_tagged(out, tag, span(text, &words, 0..n_shown));
    if n_shown < words.len() {
        let _ = write!(out, " <span class=\"more\">… {} words</span>", words.len());
    }
}

fn write_tagged(out: &mut String, tag: &str, text: &str) {
    let _ = match (tag.is_empty(), text.is_empty()) {
        (_, true) => Ok(()),
        (true, _) => write!(out, "{}", escaped(text)),
        (false, _) => write!(out, "<{tag}>{}</{tag}>", escaped(text)),
    };
}

fn span<'t>(text: &'t str, words: &[Word], range: Range<usize>) -> &'t str {
    match (words.get(range.start), words.get(range.end.wrapping_sub(1))) {
        (Some(first), Some(last)) if !range.is_empty() => &text[first.range.start..last.range.end],
        _ => "",
    }
}

fn write_difference(out: &mut String, old: &str, new: &str, difference: &Difference, extent: Extent) {
    if difference.is_rewritten {
        write_words(out, old, "del", extent);
        out.push(' ');
        write_words(out, new, "ins", extent);
        return;
    }
    let n_runs = difference.runs.len();
    for (number, run) in difference.runs.iter().enumerate() {
        if number > 0 {
            out.push(' ');
        }
        match run {
            WordRun::Same(_, same) => write_same(
                out,
                new,
                &difference.after,
                same.clone(),
                (number == 0, number + 1 == n_runs),
                extent,
            ),
            WordRun::Other(gone, come) => {
                write_part(out, "del", old, &difference.before, gone.clone(), extent);
                if !gone.is_empty() && !come.is_empty() {
                    out.push(' ');
                }
                write_part(out, "ins", new, &difference.after, come.clone(), extent);
            }
        }
    }
}

fn write_part(out: &mut String, tag: &str, text: &str, words: &[Word], range: Range<usize>, extent: Extent) {
    let n_shown = if extent == Extent::Short { range.len().min(N_WORDS_SHOWN) } else { range.len() };
    write_tagged(out, tag, span(text, words, range.start..range.start + n_shown));
    if n_shown < range.len() {
        let _ = write!(out, " <span class=\"more\">… {} words</span>", range.len());
    }
}

/// Writes common words: all of them, or those next to a difference.
fn write_same(
    out: &mut String,
    text: &str,
    words: &[Word],
    same: Range<usize>,
    (is_first, is_last): (bool, bool),
    extent: Extent,
) {
    let n_lead = if is_first { 0 } else { N_WORDS_AROUND };
    let n_tail = if is_last { 0 } else { N_WORDS_AROUND };
    if extent == Extent::Whole || same.len() <= n_lead + n_tail + 1 {
        return write_tagged(out, "", span(text, words, same));
    }
    write_tagged(out, "", span(text, words, same.start..same.start + n_lead));
    out.push_str(" … ");
    write_tagged(out, "", span(text, words, same.end - n_tail..same.end));
}

/// A line of the text view.
enum Line {
    Plain { html: String, leaf: usize, is_link: bool },
    Changed(String),
}

/// Writes both versions as one text, in the reading order of the later one.
pub(super) struct TextView<'v, 't> {
    pub(super) before: &'v Side<'t>,
    pub(super) after: &'v Side<'t>,
    pub(super) changes: &'v [ShownChange],
}

impl TextView<'_, '_> {
    pub(super) fn write(&self, out: &mut String, placed: [Option<(&Page, &Places)>; 2]) {
        let (old, new) = (reading_order(self.before, placed[0]), reading_order(self.after, placed[1]));
        let key = |side: &Side<'_>, place: usize| {
            (side.pieces[place].id.0 ^ (side.pieces[place].id.0 >> 32)) as u32
        };
        let old_keys: Vec<u32> = old.iter().map(|&place| key(self.before, place)).collect();
        let new_keys: Vec<u32> = new.iter().map(|&place| key(self.after, place)).collect();
        let owners = [self.owners(true), self.owners(false)];
        let mut is_written = vec![false; self.changes.len()];
        let mut lines = Vec::new();
        for run in align(&old_keys, &new_keys) {
            if let WordRun::Other(gone, _) = &run {
                for &place in &old[gone.clone()] {
                    let owner = owners[0][place].filter(|&number| self.is_shown_before(number));
                    lines.extend(owner.and_then(|number| self.changed_line(number, &mut is_written)));
                }
            }
            let (WordRun::Same(_, come) | WordRun::Other(_, come)) = run;
            for &place in &new[come] {
                match owners[1][place] {
                    Some(number) => lines.extend(self.changed_line(number, &mut is_written)),
                    None => lines.extend(self.plain_line(place)),
                }
            }
        }
        write_lines(out, &lines);
    }

    /// Removed text is shown at its old position, other text at its new one.
    fn is_shown_before(&self, number: usize) -> bool {
        let change = &self.changes[number];
        change.op == OperationKind::Delete || change.after.is_empty()
    }

    /// For each piece its change.
    fn owners(&self, is_before: bool) -> Vec<Option<usize>> {
        let n_pieces = if is_before { self.before.pieces.len() } else { self.after.pieces.len() };
        let mut owners = vec![None; n_pieces];
        for (number, change) in self.changes.iter().enumerate() {
            for &place in if is_before { &change.before } else { &change.after } {
                owners[place].get_or_insert(number);
            }
        }
        owners
    }

    fn changed_line(&self, number: usize, is_written: &mut [bool]) -> Option<Line> {
        if std::mem::replace(&mut is_written[number], true) {
            return None;
        }
        let change = &self.changes[number];
        let mut html = String::new();
        let _ = write!(
            html,
            "<p class=\"ln {}\" id=\"t{}\">{}<span>",
            change.group.class(),
            number + 1,
            op_mark(change.op)
        );
        write_change(&mut html, change, self.before, self.after, Extent::Whole);
        html.push_str("</span></p>");
        Some(Line::Changed(html))
    }

    fn plain_line(&self, place: usize) -> Option<Line> {
        let piece = &self.after.pieces[place];
        let is_link = piece.kind == ElementKind::Link;
        let html = escaped(piece.text).to_string();
        let is_line = piece.kind != ElementKind::Image && !piece.is_in_text;
        (!piece.text.is_empty() && is_line).then_some(Line::Plain { html, leaf: piece.leaf, is_link })
    }
}

/// The pieces of a version in the order of its page, if known.
fn reading_order(side: &Side<'_>, placed: Option<(&Page, &Places)>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..side.pieces.len()).collect();
    if let Some((page, places)) = placed {
        // A piece that was not found follows the one before it.
        let mut last = (0, 0);
        let keys: Vec<(usize, u32)> = order
            .iter()
            .map(|&place| {
                let leaf = side.pieces[place].leaf;
                let start =
                    places.piece_start(place, page).unwrap_or(if last.0 == leaf { last.1 } else { 0 });
                last = (leaf, start);
                last
            })
            .collect();
        order.sort_by_key(|&place| keys[place]);
    }
    order
}

/// Writes changed lines with a few around them. The others are counted and folded.
fn write_lines(out: &mut String, lines: &[Line]) {
    let mut start = 0;
    while start < lines.len() {
        let n_plain = lines[start..].iter().take_while(|line| matches!(line, Line::Plain { .. })).count();
        if n_plain == 0 {
            if let Line::Changed(html) = &lines[start] {
                out.push_str(html);
            }
            start += 1;
            continue;
        }
        let plain = &lines[start..start + n_plain];
        let n_lead = if start == 0 { 0 } else { N_LINES_AROUND };
        let n_tail = if start + n_plain == lines.len() { 0 } else { N_LINES_AROUND };
        if n_plain <= n_lead + n_tail + 2 {
            write_plain(out, plain);
        } else {
            write_plain(out, &plain[..n_lead]);
            let folded = &plain[n_lead..n_plain - n_tail];
            let _ =
                write!(out, "<details class=\"fold\"><summary>{} lines as before</summary>", folded.len());
            write_plain(out, folded);
            out.push_str("</details>");
            write_plain(out, &plain[n_plain - n_tail..]);
        }
        start += n_plain;
    }
}

/// Joins consecutive links into one line.
fn write_plain(out: &mut String, lines: &[Line]) {
    let mut was_link_of = None;
    for line in lines {
        let Line::Plain { html, leaf, is_link } = line else { continue };
        match was_link_of == Some(*leaf) && *is_link {
            true => out.push_str(" · "),
            false => {
                if was_link_of.is_some() {
                    out.push_str("</p>");
                }
                out.push_str("<p class=\"ln as\">");
            }
        }
        out.push_str(html);
        was_link_of = is_link.then_some(*leaf);
        if !is_link {
            out.push_str("</p>");
        }
    }
    if was_link_of.is_some() {
        out.push_str("</p>");
    }
}

/// Writes a table of added, removed and retargeted links and pictures, and returns their number.
pub(super) fn write_links<'c>(
    out: &mut String,
    changes: impl Iterator<Item = &'c ShownChange>,
    before: &Side<'_>,
    after: &Side<'_>,
) -> usize {
    const MAX_ROWS: usize = 2_000;
    let mut rows = String::new();
    let mut n_rows = 0;
    for change in changes.filter(|change| change.op != OperationKind::Move) {
        let addressed = |side: &Side<'_>, places: &[usize]| {
            let places = places.iter().copied().filter(|&place| side.pieces[place].kind != ElementKind::Text);
            places.collect::<Vec<usize>>()
        };
        let (old, new) = (addressed(before, &change.before), addressed(after, &change.after));
        for row in 0..old.len().max(new.len()) {
            let old = old.get(row).map(|&place| &before.pieces[place]);
            let new = new.get(row).map(|&place| &after.pieces[place]);
            let same = old.zip(new).is_some_and(|(old, new)| (old.text, old.url) == (new.text, new.url));
            if same || n_rows >= MAX_ROWS {
                continue;
            }
            n_rows += 1;
            let name = new.or(old).map_or("", |piece| piece.text);
            let _ =
                write!(rows, "<tr class=\"{}\"><td>{}</td><td>", change.group.class(), op_mark(change.op));
            match old.zip(new).filter(|(old, new)| old.text != new.text) {
                Some((old, new)) => {
                    let _ = write!(
                        rows,
                        "<del>{}</del> <ins>{}</ins>",
                        escaped(&shorten(old.text, 200)),
                        escaped(&shorten(new.text, 200))
                    );
                }
                None => {
                    let _ = write!(rows, "{}", escaped(&shorten(name, 200)));
                }
            }
            rows.push_str("</td><td class=\"adr\">");
            match (old.map(|piece| piece.url), new.map(|piece| piece.url)) {
                (Some(old), Some(new)) if old != new => write_url_difference(&mut rows, old, new),
                (old, new) => {
                    let _ = write!(rows, "{}", escaped(&shorten(new.or(old).unwrap_or(""), 300)));
                }
            }
            rows.push_str("</td></tr>");
        }
    }
    if n_rows > 0 {
        let _ = write!(
            out,
            "<table class=\"t links\"><thead><tr><th>Change</th><th>Name</th><th>Address</th></tr></thead><tbody>{rows}</tbody></table>"
        );
    } else {
        out.push_str("<p class=\"empty\">No link and no picture came, went, or leads elsewhere.</p>");
    }
    n_rows
}

/// The kind of a change in one word, for tests and for readers who cannot see colours.
pub(super) fn kind_name(op: OperationKind) -> &'static str {
    match op {
        OperationKind::Insert => "inserted",
        OperationKind::Delete => "deleted",
        OperationKind::Update => "updated",
        OperationKind::Move => "moved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str, extent: Extent) -> String {
        let mut out = String::new();
        write_difference(&mut out, old, new, &Difference::of(old, new), extent);
        out
    }

    #[test]
    fn the_difference_in_a_long_text_is_shown_with_words_around_it() {
        let text = |n: usize| {
            (0..200)
                .map(|i| if i == 150 { format!("number{n} ") } else { format!("w{i} ") })
                .collect::<String>()
        };
        assert_eq!(
            shown(&text(1), &text(2), Extent::Short),
            " … w144 w145 w146 w147 w148 w149 <del>number1</del> <ins>number2</ins> w151 w152 w153 w154 w155 w156 … "
        );
        assert!(shown(&text(1), &text(2), Extent::Whole).starts_with("w0 w1 "));
    }

    #[test]
    fn the_part_of_an_url_that_differs_is_marked() {
        let mut out = String::new();
        write_url_difference(
            &mut out,
            "http://a.example/file-1.2.sha512",
            "http://a.example/file-1.3.sha512",
        );
        assert_eq!(
            out,
            "http://a.example/file-1.<del>2</del>.sha512 <span aria-hidden=\"true\">→</span> \
             http://a.example/file-1.<ins>3</ins>.sha512"
        );
        let mut out = String::new();
        write_url_difference(&mut out, "x", "x\"><script>");
        assert!(!out.contains("<script>"), "{out}");
    }

    #[test]
    fn links_in_a_row_stand_in_one_line() {
        let line = |text: &str, leaf, is_link| Line::Plain { html: text.into(), leaf, is_link };
        let mut out = String::new();
        write_plain(
            &mut out,
            &[line("a", 0, true), line("b", 0, true), line("c", 1, true), line("d", 1, false)],
        );
        assert_eq!(out, "<p class=\"ln as\">a · b</p><p class=\"ln as\">c</p><p class=\"ln as\">d</p>");
    }
}
