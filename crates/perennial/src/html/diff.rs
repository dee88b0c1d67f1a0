//! A comparison -> one HTML file: both versions side by side, blocks coloured by operation and importance, a list of
//! operations that shows its place on click as P-VISUAL 8 proposes (docs/papers.md). No script or style from elsewhere.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use perennial_core::diff::{BlockOperation, BlockRef, Delta, ElementKind};
use perennial_core::markup::escaped;
use perennial_core::segment::{Block, BlockTree, NodeId};

use super::page;
use crate::analyse::{Comparison, Entry};

const STYLE: &str = include_str!("diff.css");
const SCRIPT: &str = include_str!("diff.js");

/// Writes the page.
pub fn to_html(comparison: &Comparison, form: &str) -> String {
    let entries = comparison.entries();
    let marks = Marks::of(&comparison.delta, &entries);
    let mut out = String::new();
    write_head(&mut out, comparison, form, &entries);
    out.push_str("<main><nav><ol>");
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|&x, &y| entries[y].share.total_cmp(&entries[x].share));
    order.iter().for_each(|&number| write_entry(&mut out, number, &entries[number]));
    if entries.is_empty() {
        out.push_str("<li class=\"none\">No change that a reader could tell.</li>");
    }
    out.push_str("</ol></nav>");
    write_pane(&mut out, "before", &comparison.before, &marks.before, &entries);
    write_pane(&mut out, "after", &comparison.after, &marks.after, &entries);
    let _ = write!(out, "</main><script>{SCRIPT}</script>");
    page(&format!("Changes of {}", comparison.after.url), STYLE, &out)
}

fn write_head(out: &mut String, comparison: &Comparison, form: &str, entries: &[Entry]) {
    let importance = comparison.assessment.importance.get();
    let _ = write!(
        out,
        "<header><div class=\"meter\"><b>{:.0}</b><span>%</span><i style=\"width:{:.1}%\"></i></div><div><h1>{}</h1><p>{} → {} · {form}",
        100.0 * importance,
        100.0 * importance,
        escaped(&comparison.after.url),
        escaped(&comparison.before.version),
        escaped(&comparison.after.version),
    );
    for op in ["insert", "delete", "update", "move"] {
        let n = entries.iter().filter(|entry| entry.op == op).count();
        let _ = write!(out, " <span class=\"key {op}\">{n} {op}</span>");
    }
    out.push_str("</p></div></header>");
}

fn write_entry(out: &mut String, number: usize, entry: &Entry) {
    let ad = if entry.advertisement { "<em>ad</em>" } else { "" };
    let place = entry.block_after.as_ref().or(entry.block_before.as_ref()).map_or("", String::as_str);
    let _ = write!(
        out,
        "<li data-op=\"{number}\" class=\"{}\" tabindex=\"0\"><span class=\"share\" title=\"share of the importance\"><i \
         style=\"width:{:.0}%\"></i>{:.1} %</span><b>{}</b> {} <code>{place}</code>{ad}<p>{}</p></li>",
        entry.op,
        100.0 * entry.share,
        100.0 * entry.share,
        entry.op,
        entry.element,
        escaped(&entry.summary()),
    );
}

/// Which operation an element or block of a version belongs to.
#[derive(Default)]
struct Side {
    elements: HashMap<(Vec<u16>, NodeId), usize>,
    blocks: HashMap<Vec<u16>, usize>,
    /// Words of the other side of an update: what is not among them is marked.
    others: HashMap<usize, String>,
}

struct Marks {
    before: Side,
    after: Side,
}

impl Marks {
    /// Numbers run as in [`Delta::operations`]: structure, block by block, moves.
    fn of(delta: &Delta, entries: &[Entry]) -> Marks {
        let mut marks = Marks { before: Side::default(), after: Side::default() };
        let mut number = 0;
        for operation in &delta.structure {
            match operation {
                BlockOperation::Insert(block) => mark_all(block, number, &mut marks.after),
                BlockOperation::Delete(block) => mark_all(block, number, &mut marks.before),
                BlockOperation::Move { from, to, .. } => {
                    marks.before.blocks.insert(from.0.clone(), number);
                    marks.after.blocks.insert(to.0.clone(), number);
                }
            }
            number += 1;
        }
        for block in &delta.blocks {
            for (_, element) in &block.inserted {
                marks.after.elements.insert((block.after.0.clone(), element.id()), number);
                number += 1;
            }
            for (_, element) in &block.deleted {
                marks.before.elements.insert((block.before.0.clone(), element.id()), number);
                number += 1;
            }
            for update in &block.updated {
                marks.before.elements.insert((block.before.0.clone(), update.before.id()), number);
                marks.after.elements.insert((block.after.0.clone(), update.after.id()), number);
                marks.before.others.insert(number, update.after.text().to_string());
                marks.after.others.insert(number, update.before.text().to_string());
                number += 1;
            }
        }
        for moved in &delta.moves {
            marks.before.elements.insert((moved.from.0.clone(), moved.element.id()), number);
            marks.after.elements.insert((moved.to.0.clone(), moved.element.id()), number);
            number += 1;
        }
        debug_assert_eq!(number, entries.len());
        marks
    }
}

fn mark_all(block: &Block, number: usize, side: &mut Side) {
    for block in block.walk() {
        side.blocks.insert(block.reference.clone(), number);
    }
}

fn write_pane(out: &mut String, name: &str, tree: &BlockTree, side: &Side, entries: &[Entry]) {
    let height = tree.blocks.iter().map(|block| block.rect.bottom()).fold(200.0, f32::max);
    let _ = write!(
        out,
        "<section id=\"{name}\"><h2>{name}</h2><div class=\"scroll\"><div class=\"sheet\" style=\"height:{height}px\">"
    );
    for block in tree.walk() {
        write_block(out, block, side, entries);
    }
    out.push_str("</div></div></section>");
}

/// The operation with the largest share gives a block its colour, the sum of shares the strength of the colour.
fn write_block(out: &mut String, block: &Block, side: &Side, entries: &[Entry]) {
    let own = side.blocks.get(&block.reference).copied();
    let numbers: HashSet<usize> = own.into_iter().chain(element_marks(block, side)).collect();
    let strongest =
        numbers.iter().max_by(|&&x, &&y| entries[x].share.total_cmp(&entries[y].share).then(y.cmp(&x)));
    if !block.is_leaf() && own.is_none() {
        return;
    }
    let strength: f64 = numbers.iter().map(|&number| entries[number].share).sum();
    let class = strongest.map_or("", |&number| entries[number].op);
    let op = own.map(|number| format!(" data-op=\"{number}\"")).unwrap_or_default();
    let reference = BlockRef(block.reference.clone());
    let rect = block.rect;
    let kind = if block.is_leaf() { "leaf" } else { "inner" };
    let _ = write!(
        out,
        "<div class=\"block {kind} {class}\"{op} title=\"{reference} {} · importance {:.3}\" \
         style=\"left:{}px;top:{}px;width:{}px;height:{}px;--strength:{:.2}\">",
        block.role.name(),
        block.importance,
        rect.x,
        rect.y,
        rect.w.max(8.0),
        rect.h.max(8.0),
        0.12 + 0.6 * strength.min(1.0),
    );
    if block.is_leaf() {
        let _ = write!(out, "<tt>{reference}</tt>");
        write_content(out, block, side, entries);
    }
    out.push_str("</div>");
}

fn element_marks<'a>(block: &'a Block, side: &'a Side) -> impl Iterator<Item = usize> + 'a {
    let ids = block.links.iter().map(|link| link.id);
    let ids =
        ids.chain(block.images.iter().map(|image| image.id)).chain(block.texts.iter().map(|text| text.id));
    ids.filter_map(|id| side.elements.get(&(block.reference.clone(), id)).copied())
}

fn write_content(out: &mut String, block: &Block, side: &Side, entries: &[Entry]) {
    for text in &block.texts {
        write_element(out, block, text.id, ElementKind::Text, &text.text, "", side, entries);
    }
    for link in &block.links {
        write_element(out, block, link.id, ElementKind::Link, &link.name, &link.address, side, entries);
    }
    for image in &block.images {
        write_element(out, block, image.id, ElementKind::Image, &image.name, &image.source, side, entries);
    }
}

#[allow(clippy::too_many_arguments)]
fn write_element(
    out: &mut String,
    block: &Block,
    id: NodeId,
    kind: ElementKind,
    text: &str,
    address: &str,
    side: &Side,
    entries: &[Entry],
) {
    let number = side.elements.get(&(block.reference.clone(), id)).copied();
    let op = number.map_or("", |number| entries[number].op);
    let data = number.map(|number| format!(" data-op=\"{number}\"")).unwrap_or_default();
    let title = if address.is_empty() { String::new() } else { format!(" title=\"{}\"", escaped(address)) };
    let _ = write!(out, "<span class=\"{} {op}\"{data}{title}>", kind.name());
    match number.and_then(|number| side.others.get(&number)) {
        Some(other) if kind == ElementKind::Text => write_marked(out, text, other),
        _ => {
            let _ = write!(out, "{}", escaped(if text.is_empty() { address } else { text }));
        }
    }
    out.push_str("</span> ");
}

/// Marks the words that the other version lacks.
fn write_marked(out: &mut String, text: &str, other: &str) {
    let known: HashSet<&str> = other.split_whitespace().collect();
    for word in text.split_whitespace() {
        if known.contains(word) {
            let _ = write!(out, "{} ", escaped(word));
        } else {
            let _ = write!(out, "<mark>{}</mark> ", escaped(word));
        }
    }
}
