//! P-VISUAL 7, on versions of pages that the caller has laid out and segmented.

use std::time::Instant;

use perennial_core::page::diff::{Delta, diff};
use perennial_core::page::segment::{BlockTree, vixml};
use perennial_core::rng::Rng;

use super::{Finding, Paper, Reproduction};
use crate::plant::{PlantRates, Recovery, measure_recovery, plant};
use crate::reproduce::judge::Interval;

/// A page for Figures 8 to 10.
#[derive(Clone, Debug)]
pub struct MeasuredPage {
    pub html_bytes: usize,
    /// Time of layout and segmentation.
    pub seconds: f64,
    pub tree: BlockTree,
}

/// A made news front.
#[derive(Clone, Debug)]
pub struct MadePage {
    pub html: String,
}

/// News fronts from 20 to 300 kB.
pub fn made_pages() -> Vec<MadePage> {
    (0..12u64).map(|seed| MadePage { html: front(40 + 60 * seed as usize, seed) }).collect()
}

fn front(n_teasers: usize, seed: u64) -> String {
    let mut rng = Rng::from_parts(&[seed, 0x6672_6f6e]);
    let mut number = || rng.below(10_000);
    let teaser = |n: usize, a: usize, b: usize| {
        format!(
            "<div class=\"teaser teaser--standard grid__item\" data-id=\"{n}\"><a href=\"/news/{a}/story-{n}.html\"><img \
             src=\"/images/{b}.jpg\" alt=\"Picture {b}\"><h3 class=\"teaser__headline\">Story {a} about place {b} and its council</h3></a><p \
             class=\"teaser__text\">The council of place {b} decided on item {a} after a debate of {n} hours.</p></div>"
        )
    };
    let teasers: String = (0..n_teasers).map(|n| teaser(n, number(), number())).collect();
    format!("<title>News</title><nav><a href=/>Home</a><a href=/sport>Sport</a></nav><main>{teasers}</main>")
}

/// Above this size the paper's Vi-XML is smaller than HTML.
const LARGE_PAGE: usize = 100_000;

pub(super) fn reproduce(pages: &[MeasuredPage], is_made: bool, all: &mut Reproduction) {
    all.findings.push(figure_8(pages));
    all.findings.push(figure_9(pages, is_made));
    all.findings.extend(figure_10(pages));
}

fn figure_8(pages: &[MeasuredPage]) -> Finding {
    // Seconds that are saved for 150 kB, relative to the paper's 0.2 s.
    let saved: Vec<f64> = pages
        .iter()
        .filter(|page| page.html_bytes > 20_000)
        .map(|page| 1.0 - page.seconds / page.html_bytes as f64 * 150_000.0 / 0.2)
        .collect();
    let claim = ("a page of 150 kB is segmented in 200 ms", "200 ms, layout 100 ms more");
    let finding = Finding::measured((Paper::Visual, "Fig. 8"), claim, &saved, None);
    let ms = finding.effect.map_or(f64::NAN, |effect| 200.0 * (1.0 - effect.mean));
    Finding { in_condition: format!("{ms:.1} ms for 150 kB, layout included"), ..finding }
}

fn figure_9(pages: &[MeasuredPage], is_made: bool) -> Finding {
    let of = (Paper::Visual, "Fig. 9");
    let claim = ("Vi-XML is smaller than HTML above 100 kB", "30 to 50 % smaller");
    if is_made {
        return Finding::untestable(
            of,
            claim,
            "the markup of made pages proves nothing; give real pages with --pages",
        );
    }
    let smaller: Vec<f64> = pages
        .iter()
        .filter(|page| page.html_bytes > LARGE_PAGE)
        .map(|page| 1.0 - vixml::write(&page.tree).len() as f64 / page.html_bytes as f64)
        .collect();
    Finding::measured(of, claim, &smaller, Some(0.3))
}

/// 10 % of each kind of operation are planted, as in P-VISUAL 7.2.
fn figure_10(pages: &[MeasuredPage]) -> [Finding; 3] {
    let (mut recovery, mut rates, mut sizes) = (Recovery::default(), Vec::new(), Vec::new());
    for (seed, page) in (0u64..).zip(pages) {
        let (after, planted) = plant(&page.tree, PlantRates::default(), seed);
        let (one, two) = (vixml::write(&page.tree), vixml::write(&after));
        let began = Instant::now();
        let (Ok(before), Ok(after)) = (vixml::read(&one), vixml::read(&two)) else { continue };
        let delta: Delta = diff(&before, &after);
        let written = delta.to_xml(&after);
        rates.push(1.0 / began.elapsed().as_secs_f64().max(1e-6));
        sizes.push(1.0 - written.len() as f64 / two.len().max(1) as f64);
        recovery.add(measure_recovery(&before, &planted, &delta));
    }
    let of = (Paper::Visual, "Fig. 10");
    // More than a hundred pages per second, on a logarithmic scale.
    let faster: Vec<f64> = rates.iter().map(|rate| (rate / 100.0).ln()).collect();
    let speed =
        Finding::measured(of, ("more than a hundred pages are compared per second", "> 100"), &faster, None);
    let rate = Interval::of(&rates).map_or(f64::NAN, |interval| interval.mean);
    let smaller =
        Finding::measured(of, ("the delta is smaller than a version", "always smaller"), &sizes, None);
    let planted = ("the planted operations are found", "checked by hand, with success");
    let found = Finding::untestable((Paper::Visual, "7.2"), planted, "");
    let (precision, recall) = (recovery.precision(), recovery.recall());
    [
        Finding { in_condition: format!("{rate:.0} per second: read, compare, write"), ..speed },
        smaller,
        match recovery.n_planted {
            0 => Finding { reason: "nothing could be planted into these pages".to_owned(), ..found },
            n => Finding {
                in_condition: format!("precision {precision:.4}, recall {recall:.4} of {n} operations"),
                verdict: match precision >= 0.999 && recall >= 0.999 {
                    true => super::Verdict::Repeated,
                    false => super::Verdict::NotRepeated,
                },
                reason: "a count, not an estimate".to_owned(),
                ..found
            },
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    #[test]
    fn made_pages_grow() {
        let sizes: Vec<usize> = made_pages().iter().map(|page| page.html.len()).collect();
        assert!(sizes[0] < 30_000 && sizes.is_sorted() && sizes[sizes.len() - 1] > 200_000, "{sizes:?}");
    }

    #[test]
    fn without_pages_nothing_is_claimed() {
        let mut all = Reproduction::default();
        reproduce(&[], true, &mut all);
        assert_eq!(all.findings.len(), 5);
        assert!(
            all.findings.iter().all(|finding| finding.verdict == Verdict::NotTestable),
            "{:?}",
            all.findings
        );
    }
}
