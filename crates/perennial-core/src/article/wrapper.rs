//! Leaves and boxes -> the element that wraps the object, and which of its leaves belong to it.

use super::boxes::{BoxKind, Kinds, is_marked_body};
use super::page::{Page, Sums};

/// The element around an object, and the kinds of boxes that were left out of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrapper {
    pub(super) node: u32,
    pub(super) dropped: Kinds,
    /// Running text below it.
    pub(super) n_good: f64,
}

/// Kinds of boxes that are hardly ever named by mistake.
pub(super) const SURE: Kinds = BoxKind::Comments as Kinds
    | BoxKind::Newsletter as Kinds
    | BoxKind::Advertisement as Kinds
    | BoxKind::Share as Kinds
    | BoxKind::Related as Kinds
    | BoxKind::Beside as Kinds;
/// Kinds of boxes that are left out, from all to the least doubtful ones.
const LEVELS: [Kinds; 3] = [Kinds::MAX, SURE, BoxKind::Comments as Kinds | BoxKind::Beside as Kinds];
/// A level is taken when it keeps this share of the most that any level keeps.
const MIN_KEPT: f64 = 0.3;
/// The wrapper is the child that holds this share of what its parent holds.
const DESCENT: f64 = 0.85;

/// An element that says that it is the article needs this share of the wrapper's running text.
const MIN_MARKED: f64 = 0.5;
/// It needs this share of what all such elements hold.
const MIN_OF_MARKED: f64 = 0.85;

/// The wrapper of the object below a node.
pub(super) fn find(page: &Page<'_>, root: u32) -> Option<Wrapper> {
    let found: Vec<Wrapper> = LEVELS.iter().filter_map(|&dropped| at_level(page, root, dropped)).collect();
    let most = found.iter().map(|wrapper| wrapper.n_good).fold(0.0, f64::max);
    found
        .into_iter()
        .find(|wrapper| wrapper.n_good >= MIN_KEPT * most)
        .or_else(|| without_running_text(page, root))
}

/// A status, a picture with a line below it: no running text, but an element that says that it is the object.
fn without_running_text(page: &Page<'_>, root: u32) -> Option<Wrapper> {
    let dom = page.leaves.dom;
    let dropped = LEVELS[0];
    let kept =
        page.sums(|index| if page.kinds[index] & dropped == 0 { page.leaf(index).length } else { 0.0 });
    let is_marked = |node: &u32| {
        let source = &dom.nodes[*node as usize];
        matches!(source.tag(), "article" | "main") || is_container(source.tag()) && is_marked_body(source)
    };
    let held = |node: &u32| kept.of(page.leaves.below(*node));
    let marked = (root..dom.nodes.get(root as usize)?.end).filter(is_marked).filter(|node| held(node) > 0.0);
    let node = marked.max_by(|a, b| held(a).total_cmp(&held(b)).then(a.cmp(b)))?;
    Some(Wrapper { node, dropped, n_good: 0.0 })
}

fn at_level(page: &Page<'_>, root: u32, dropped: Kinds) -> Option<Wrapper> {
    let dom = page.leaves.dom;
    let sums = page.sums(|index| page.value(index, dropped));
    let score = |node: u32| sums.of(page.leaves.below(node));
    let mut best: Option<(u32, f64)> = None;
    for node in root..dom.nodes[root as usize].end {
        if !dom.nodes[node as usize].tag().is_empty() {
            let score = score(node);
            if best.is_none_or(|(_, most)| score >= most) {
                best = Some((node, score));
            }
        }
    }
    let (mut node, mut most) = best.filter(|&(_, score)| score > 0.0)?;
    let has_paragraphs = parents_of_paragraphs(page, dropped);
    while !has_paragraphs[node as usize]
        && let Some((child, score)) =
            dom.children(node).map(|child| (child, score(child))).find(|&(_, score)| score >= DESCENT * most)
        && is_container(dom.nodes[child as usize].tag())
    {
        (node, most) = (child, score);
    }
    let good = page.sums(|index| {
        let is_kept = page.kinds[index] & dropped == 0 && page.leaf(index).is_good;
        if is_kept { page.leaf(index).length } else { 0.0 }
    });
    // A single paragraph is not a wrapper: its container is.
    while node != root
        && !is_container(dom.nodes[node as usize].tag())
        && let Some(parent) = dom.nodes[node as usize].parent
    {
        node = parent;
    }
    let n_good = good.of(page.leaves.below(node));
    let marked = marked_below(page, node, n_good, &good);
    Some(Wrapper { node: marked.unwrap_or(node), dropped, n_good })
}

/// By node: whether paragraphs of running text stand right below it. Then it is the text's own container, and what is beside them in
/// deeper elements belongs to the same text.
fn parents_of_paragraphs(page: &Page<'_>, dropped: Kinds) -> Vec<bool> {
    let nodes = &page.leaves.dom.nodes;
    let mut has = vec![false; nodes.len()];
    for index in 0..page.n_leaves() {
        let leaf = page.leaf(index);
        let block = &nodes[leaf.block as usize];
        let is_paragraph = leaf.is_good
            && block.tag() == "p"
            && page.kinds[index] & dropped == 0
            && !page.is_template[index];
        if let Some(parent) = block.parent.filter(|_| is_paragraph) {
            has[parent as usize] = true;
        }
    }
    has
}

/// The outermost element below a wrapper that says that it is the article, and holds most of what such elements hold: text
/// that is cut into several of them stays together.
fn marked_below(page: &Page<'_>, wrapper: u32, n_good: f64, good: &Sums) -> Option<u32> {
    let nodes = &page.leaves.dom.nodes;
    let is_article = |node: u32| nodes[node as usize].tag() == "article";
    let is_body =
        |node: u32| is_container(nodes[node as usize].tag()) && is_marked_body(&nodes[node as usize]);
    let largest = |within: u32, is_marked: &dyn Fn(u32) -> bool| -> Option<u32> {
        let (mut most, mut total, mut node) = ((0.0, None), 0.0, within + 1);
        while node < nodes[within as usize].end {
            if is_marked(node) {
                let held = good.of(page.leaves.below(node));
                total += held;
                if held > most.0 {
                    most = (held, Some(node));
                }
                node = nodes[node as usize].end;
            } else {
                node += 1;
            }
        }
        most.1.filter(|_| most.0 >= MIN_MARKED * n_good && most.0 >= MIN_OF_MARKED * total)
    };
    let article = largest(wrapper, &is_article);
    largest(article.unwrap_or(wrapper), &is_body).or(article)
}

/// Elements that may wrap an object: never a paragraph, an entry of a list or a heading (P-FEED 4.2).
pub(super) fn is_container(tag: &str) -> bool {
    matches!(
        tag,
        "html"
            | "body"
            | "div"
            | "article"
            | "section"
            | "main"
            | "td"
            | "table"
            | "tbody"
            | "tr"
            | "center"
            | "form"
            | "blockquote"
            | "fieldset"
            | "ul"
            | "ol"
            | "dl"
            | "header"
            | "aside"
            | "details"
    )
}
