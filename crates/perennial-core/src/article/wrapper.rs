//! Leaves and boxes -> the element that wraps the article, and the leaves that belong to it.

use super::boxes::{BoxKind, BoxKinds, is_marked_body};
use super::page::{LeafPage, LeafSums};

/// The element around an article, and the kinds of boxes left out of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrapper {
    pub(super) node: u32,
    pub(super) dropped: BoxKinds,
    /// Length of the running text below it.
    pub(super) n_good: f64,
}

/// Kinds of boxes with reliable names.
pub(super) const SURE: BoxKinds = BoxKind::Comments as BoxKinds
    | BoxKind::Newsletter as BoxKinds
    | BoxKind::Advertisement as BoxKinds
    | BoxKind::Share as BoxKinds
    | BoxKind::Related as BoxKinds
    | BoxKind::Surrounding as BoxKinds;
/// Kinds of boxes to leave out: all, the reliable ones, and the most reliable ones.
const LEVELS: [BoxKinds; 3] =
    [BoxKinds::MAX, SURE, BoxKind::Comments as BoxKinds | BoxKind::Surrounding as BoxKinds];
/// The minimum share of running text that a level keeps, compared with the best level.
const MIN_KEPT: f64 = 0.3;
/// The search descends to a child with this share of its parent's value.
const DESCENT: f64 = 0.85;

/// The minimum share of the wrapper's running text in an element marked as article.
const MIN_MARKED: f64 = 0.5;
/// The minimum share of the text of all marked elements in it.
const MIN_OF_MARKED: f64 = 0.85;

/// The wrapper of the article below a node.
pub(super) fn find(page: &LeafPage<'_>, root: u32) -> Option<Wrapper> {
    let found: Vec<Wrapper> = LEVELS.iter().filter_map(|&dropped| at_level(page, root, dropped)).collect();
    let most = found.iter().map(|wrapper| wrapper.n_good).fold(0.0, f64::max);
    found
        .into_iter()
        .find(|wrapper| wrapper.n_good >= MIN_KEPT * most)
        .or_else(|| without_running_text(page, root))
}

/// Finds an element marked as article that has no running text, such as a status or a picture with a caption.
fn without_running_text(page: &LeafPage<'_>, root: u32) -> Option<Wrapper> {
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

fn at_level(page: &LeafPage<'_>, root: u32, dropped: BoxKinds) -> Option<Wrapper> {
    let dom = page.leaves.dom;
    let sums = page.sums(|index| page.value(index, dropped));
    let score = |node: u32| sums.of(page.leaves.below(node));
    let mut best: Option<(u32, f64)> = None;
    for node in root..dom.nodes[root as usize].end {
        if !dom.nodes[node as usize].tag().is_empty() {
            let score = score(node);
            // Of nested elements with the same score the innermost one wins, because it comes later.
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
    // The wrapper is a container, not a single paragraph.
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

/// By node: whether paragraphs of running text are its direct children. Then it is the container of the text,
/// including deeper elements next to them.
fn parents_of_paragraphs(page: &LeafPage<'_>, dropped: BoxKinds) -> Vec<bool> {
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

/// The outermost element below a wrapper that is marked as article and contains most of the marked text. So a text
/// split into several such elements remains together.
fn marked_below(page: &LeafPage<'_>, wrapper: u32, n_good: f64, good: &LeafSums) -> Option<u32> {
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

/// Elements that can wrap an article; never a paragraph, a list item or a heading (P-FEED 4.2).
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
