//! Algorithm 1 of P-FEED as published (docs/papers.md), in the variants of Table 3. It is measured but not used.
//!
//! Leaves with words of the context are conceptual nodes. Each counts for its nearest container, and the container with
//! the most dense nodes is the wrapper. docs/papers.md fills the gaps of our copy of the paper.

use std::collections::{BTreeMap, HashSet};

use perennial_core::article::{
    Grams, PageLine, folded, lines, plain_text, title_and_description, word_hashes,
};
use perennial_core::text::dom::Dom;

use super::concepts::Concepts;

/// A leaf is dense from so many matches per word on. The paper gives no number. Of 0, 0.01, 0.02, 0.05, 0.1 and 0.2 the
/// first two are equally good on the tuning half, and all others are worse (experiments/extraction).
pub const MIN_DENSITY: f64 = 0.01;
/// A wrapper with a smaller share of the context's grams is inconsistent (P-FEED 4.2: "does not contain half of the
/// semantic context").
const MIN_CONSISTENCY: f64 = 0.5;

/// A row of the paper's Table 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExtractionVariant {
    /// The container with exactly the title.
    ExactTitle,
    /// Concepts alone.
    Concepts,
    /// Grams of so many words alone.
    Grams(usize),
    /// Grams of three words, or concepts if these are inconsistent.
    GramsThenConcepts,
}

impl ExtractionVariant {
    /// All measured variants.
    pub const ALL: [ExtractionVariant; 6] = [
        ExtractionVariant::ExactTitle,
        ExtractionVariant::Concepts,
        ExtractionVariant::Grams(2),
        ExtractionVariant::Grams(3),
        ExtractionVariant::Grams(4),
        ExtractionVariant::GramsThenConcepts,
    ];

    /// The name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            ExtractionVariant::ExactTitle => "exact-title",
            ExtractionVariant::Concepts => "concepts",
            ExtractionVariant::Grams(2) => "grams-2",
            ExtractionVariant::Grams(4) => "grams-4",
            ExtractionVariant::Grams(_) => "grams-3",
            ExtractionVariant::GramsThenConcepts => "grams-then-concepts",
        }
    }
}

/// The text of the article, found by the paper's algorithm. Without title and description, those in the page's head
/// count.
pub fn extract_text(
    dom: &Dom,
    title: Option<&str>,
    description: Option<&str>,
    variant: ExtractionVariant,
) -> String {
    let (own_title, own_description) = title_and_description(dom);
    let is_announced = title.is_some() || description.is_some();
    let title = title.unwrap_or(&own_title);
    let description = description.map(plain_text);
    let description = description.as_deref().unwrap_or(if is_announced { "" } else { &own_description });
    let parts = [title, description];
    let page = PageLines { dom, lines: lines(dom) };
    let by_concepts = || {
        let concepts = Concepts::new(&parts);
        find_wrapper(&page, |text| concepts.found_in(text)).map(|(node, _)| node)
    };
    let by_grams = |n: usize| {
        let grams = Grams::new(&parts, n);
        let found = find_wrapper(&page, |text| grams.found_in(text));
        found.map(|(node, n_held)| (node, n_held as f64 >= MIN_CONSISTENCY * grams.len() as f64))
    };
    let node = match variant {
        ExtractionVariant::ExactTitle => title_container(&page, title),
        ExtractionVariant::Concepts => by_concepts(),
        ExtractionVariant::Grams(n) => by_grams(n).map(|(node, _)| node),
        ExtractionVariant::GramsThenConcepts => {
            let found = by_grams(3);
            let consistent = found.filter(|&(_, is_consistent)| is_consistent).map(|(node, _)| node);
            consistent.or_else(by_concepts).or(found.map(|(node, _)| node))
        }
    };
    node.map(|node| text_below(&page, node)).unwrap_or_default()
}

struct PageLines<'d> {
    dom: &'d Dom,
    lines: Vec<PageLine>,
}

/// The wrapper, and the number of different matches in it.
fn find_wrapper(page: &PageLines<'_>, matches: impl Fn(&str) -> Vec<u64>) -> Option<(u32, usize)> {
    let mut zones: BTreeMap<u32, (usize, usize, HashSet<u64>)> = BTreeMap::new();
    for line in &page.lines {
        let text = &line.text;
        let found = matches(text);
        if found.is_empty() {
            continue;
        }
        let density = found.len() as f64 / word_hashes(text).count().max(1) as f64;
        let zone = zones.entry(semantic_node(page, line)).or_default();
        zone.0 += usize::from(density >= MIN_DENSITY);
        zone.1 += found.len();
        zone.2.extend(found);
    }
    let best = zones
        .into_iter()
        .max_by_key(|(node, (n_dense, n_matches, _))| (*n_dense, *n_matches, std::cmp::Reverse(*node)));
    best.map(|(node, (_, _, held))| (node, held.len()))
}

/// The nearest container around a leaf. A paragraph would be too small as a wrapper.
fn semantic_node(page: &PageLines<'_>, line: &PageLine) -> u32 {
    let nodes = &page.dom.nodes;
    let is_zone = |tag: &str| matches!(tag, "div" | "article" | "section" | "main" | "td" | "body");
    let above = std::iter::successors(Some(line.block), |&node| nodes[node as usize].parent);
    above.into_iter().find(|&node| is_zone(nodes[node as usize].tag())).unwrap_or(0)
}

fn title_container(page: &PageLines<'_>, title: &str) -> Option<u32> {
    let title = folded(title);
    let is_title = |line: &&PageLine| !title.is_empty() && folded(&line.text) == title;
    page.lines.iter().find(is_title).map(|line| semantic_node(page, line))
}

fn text_below(page: &PageLines<'_>, node: u32) -> String {
    let below = node..page.dom.nodes[node as usize].end;
    let kept = page.lines.iter().filter(|line| below.contains(&line.node) && !line.is_comment);
    kept.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIRST: &str =
        "The bridge over the river will be rebuilt from next spring, the council said on Monday.";

    #[test]
    fn every_variant_finds_the_zone_of_the_context() {
        let html = format!(
            "<body><div id=a><p>Other words stand here, of sport and of weather.</p></div><div id=b><h2>Bridge to be rebuilt</h2>\
             <p>{FIRST}</p><p>Traffic will use the old ferry until then.</p></div>"
        );
        for variant in ExtractionVariant::ALL {
            let text = extract_text(&Dom::parse(&html), Some("Bridge to be rebuilt"), Some(FIRST), variant);
            assert!(text.contains("old ferry") && !text.contains("weather"), "{}: {text}", variant.name());
        }
    }

    proptest! {
        #[test]
        fn any_page_gives_a_text(picks in proptest::collection::vec(0..10usize, 0..60), has_title in any::<bool>()) {
            const PARTS: [&str; 10] = [
                "<div class=post>", "</div>", "<p>", "<h2>Same title</h2>", "<table><tr><td>", "<div class=comments>", "日本語の文章。",
                "Words of a sentence, which is long enough to be one. ", "é&amp;\u{a0}", "<script>",
            ];
            let dom = Dom::parse(&picks.iter().map(|&pick| PARTS[pick]).collect::<String>());
            for variant in ExtractionVariant::ALL {
                extract_text(&dom, has_title.then_some("Same title"), None, variant);
            }
        }
    }
}
