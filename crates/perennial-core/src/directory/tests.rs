//! The paper's examples, and a comparison with brute force on small random trees.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A version: the content of each page by its path.
type SiteVersion = BTreeMap<String, u8>;

fn version(pages: &[(&str, u8)]) -> SiteVersion {
    pages.iter().map(|(path, content)| ((*path).to_owned(), *content)).collect()
}

/// The differences of two versions, by merging their sorted paths.
fn changes(before: &SiteVersion, after: &SiteVersion) -> Vec<(String, PageTransition)> {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |path: &String| match (before.get(path), after.get(path)) {
        (None, Some(_)) => Some(PageTransition::Inserted),
        (Some(_), None) => Some(PageTransition::Deleted),
        (before, after) => (before != after).then_some(PageTransition::Updated(1.0)),
    };
    paths.into_iter().filter_map(|path| change(path).map(|change| (path.clone(), change))).collect()
}

fn delta_of(versions: &[SiteVersion], window: usize, significance: Significance) -> DeltaTree {
    let mut delta = DeltaTree::new("site", window, significance);
    let first: Vec<DirectoryNode> = versions[0].keys().map(|path| delta.page(path)).collect();
    delta.begin(first);
    for pair in versions.windows(2) {
        let changes: Vec<(DirectoryNode, PageTransition)> = changes(&pair[0], &pair[1])
            .into_iter()
            .map(|(path, change)| (delta.page(&path), change))
            .collect();
        assert_eq!(delta.add(changes), 0);
    }
    delta
}

/// The fixture with every printed number of Examples 1 to 6. The site is the paper's directory `a`.
fn fixture() -> [SiteVersion; 4] {
    [
        version(&[("c", 0), ("m", 0), ("b/f/h", 1), ("b/g/j", 0), ("b/g/k", 1)]),
        version(&[("c", 0), ("n", 0), ("b/d", 0), ("b/f/h", 1), ("b/g/k", 2), ("b/g/l", 1)]),
        version(&[("c", 0), ("b/x", 0), ("b/y", 0), ("b/f/h", 1), ("b/g/k", 3), ("b/g/l", 2)]),
        version(&[("c", 0), ("b/x", 0), ("b/y", 0), ("b/f/h", 2), ("b/g/k", 4), ("b/g/z", 0)]),
    ]
}

fn thresholds(alpha: f64, beta: f64, gamma: f64, theta: f64) -> Thresholds {
    Thresholds { alpha: Alpha::Fixed(alpha), beta, gamma: Some(gamma), theta, is_strict: false }
}

fn degrees(delta: &DeltaTree, path: &str) -> Vec<f32> {
    let node = delta.tree().directory(path).unwrap();
    let mut all = vec![0.0; delta.n_transitions()];
    delta.degrees(node).for_each(|degree| all[(degree.transition - delta.oldest()) as usize] = degree.degree);
    all
}

fn ones(delta: &DeltaTree, path: &str) -> String {
    let bits = delta.bits(delta.tree().directory(path).unwrap());
    (0..3).map(|transition| if bits.has(transition) { '1' } else { '0' }).collect()
}

#[test]
fn examples_1_2_and_3_degrees_of_change() {
    let delta = delta_of(&fixture(), 3, Significance::Later);
    assert_eq!(degrees(&delta, ""), [6.0 / 12.0, 6.0 / 12.0, 4.0 / 11.0]);
    assert_eq!(degrees(&delta, "b"), [4.0 / 8.0, 5.0 / 9.0, 4.0 / 9.0]);
    assert_eq!(degrees(&delta, "b/g"), [3.0 / 4.0, 2.0 / 3.0, 3.0 / 4.0]);
    assert_eq!(degrees(&delta, "b/f"), [0.0, 0.0, 0.5]);
    let bits = |path: &str| delta.bits_from(delta.tree().directory(path).unwrap(), 0.5);
    assert_eq!(bits("b").count_with(&bits("b/g")), 2, "FoC of {{sb, sg}} is 2/3");
}

#[test]
fn example_6_bits() {
    let delta = delta_of(&fixture(), 3, Significance::From(0.5));
    assert_eq!(["", "b", "b/g", "b/f"].map(|path| ones(&delta, path)), ["110", "110", "111", "001"]);
}

#[test]
fn examples_4_and_5_patterns_and_rules() {
    for significance in [Significance::From(0.5), Significance::Later] {
        let delta = delta_of(&fixture(), 3, significance);
        let node = |path: &str| delta.tree().directory(path).unwrap();
        let (a, b, f, g) = (DirectoryTree::ROOT, node("b"), node("b/f"), node("b/g"));
        let mined = mine(&delta, &thresholds(0.5, 0.6, 0.5, 1.0), false);
        let chains: BTreeSet<Vec<DirectoryNode>> =
            mined.patterns.iter().map(|pattern| pattern.chain.clone()).collect();
        assert_eq!(chains, BTreeSet::from([vec![a, b], vec![a, b, g], vec![b, g]]));
        let rules: Vec<(Vec<DirectoryNode>, DirectoryNode)> =
            mined.rules.iter().map(|rule| (rule.head.clone(), rule.tail)).collect();
        assert_eq!(rules, [(vec![a, b], f), (vec![b], f)]);
        assert!(
            mined.rules.iter().all(|rule| rule.correlation == Some(-1.0) && rule.counts.confidence() == 1.0)
        );
        assert_eq!(n_pages(&delta, a), 6);
        // a => not f is also a rule, and the pattern <a, b> subsumes it.
        let all = mine(&delta, &thresholds(0.5, 0.6, 0.5, 1.0), true);
        let subsumed: Vec<&DirectoryRule> = all.rules.iter().filter(|rule| rule.subsumed.is_some()).collect();
        assert_eq!((subsumed.len(), &subsumed[0].head, subsumed[0].tail), (1, &vec![a], f));
        assert_eq!(subsumed[0].subsumed, Some(Subsumption::ByPattern));
    }
}

#[test]
fn a_subtree_that_comes_or_goes_as_a_whole_has_degree_1() {
    let versions = [
        version(&[("a/x", 0)]),
        version(&[("a/x", 0), ("b/c/y", 0), ("b/z", 0)]),
        version(&[("a/x", 0)]),
        version(&[("a/x", 0)]),
    ];
    let delta = delta_of(&versions, 3, Significance::Later);
    assert_eq!(degrees(&delta, "b"), [1.0, 1.0, 0.0]);
    assert_eq!(degrees(&delta, "b/c"), [1.0, 1.0, 0.0]);
    assert_eq!(degrees(&delta, ""), [4.0 / 7.0, 4.0 / 7.0, 0.0]);
    assert_eq!(delta.size(DirectoryTree::ROOT), 3);
    assert!(delta.is_static(delta.tree().directory("a").unwrap()));
}

#[test]
fn impossible_changes_are_counted_and_passed_over() {
    let mut delta = DeltaTree::new("site", 4, Significance::Later);
    let (a, b) = (delta.page("a"), delta.page("b"));
    delta.begin([a, a]);
    assert_eq!(
        delta.add([
            (a, PageTransition::Inserted),
            (b, PageTransition::Deleted),
            (b, PageTransition::Updated(1.0))
        ]),
        3
    );
    assert_eq!((delta.size(DirectoryTree::ROOT), delta.n_transitions()), (2, 1));
}

#[test]
fn the_degree_of_an_update_counts() {
    let mut delta = DeltaTree::new("site", 4, Significance::Later);
    let (a, b) = (delta.page("d/a"), delta.page("d/b"));
    delta.begin([a, b]);
    delta.add([(a, PageTransition::Updated(0.02)), (b, PageTransition::Updated(0.1))]);
    assert_eq!(degrees(&delta, "d"), [0.12f32 / 3.0]);
}

#[test]
fn gamma_that_is_not_given_is_lowered_until_a_rule_appears() {
    // In ten transitions the site changes in six and `quiet` in three, once together: phi is about -0.356.
    let site = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0];
    let quiet = [1, 0, 0, 0, 0, 0, 1, 1, 0, 0];
    let mut delta = DeltaTree::new("site", 10, Significance::From(0.05));
    let many: Vec<DirectoryNode> = (0..40).map(|n| delta.page(&format!("p{n}"))).collect();
    let few: Vec<DirectoryNode> = (0..2).map(|n| delta.page(&format!("quiet/p{n}"))).collect();
    delta.begin(many.iter().chain(&few).copied());
    for (site, quiet) in site.iter().zip(quiet) {
        let site = many.iter().take(10 * site).map(|page| (*page, PageTransition::Updated(1.0)));
        let quiet = few.iter().take(quiet).map(|page| (*page, PageTransition::Updated(1.0)));
        delta.add(site.chain(quiet).collect::<Vec<_>>());
    }
    let found = |gamma| {
        let thresholds =
            Thresholds { alpha: Alpha::Fixed(0.05), beta: 0.5, gamma, theta: 0.5, is_strict: false };
        mine(&delta, &thresholds, false).rules.len()
    };
    assert_eq!((found(None), found(Some(0.5)), found(Some(0.35)), found(Some(0.36))), (1, 0, 1, 0));
}

/// A site whose root changes in every transition has an undefined correlation with everything below it.
#[test]
fn an_undefined_correlation_excludes_rules_only_if_strict() {
    let mut delta = DeltaTree::new("site", 10, Significance::From(0.05));
    let news: Vec<DirectoryNode> = (0..20).map(|n| delta.page(&format!("news/p{n}"))).collect();
    let about: Vec<DirectoryNode> = (0..40).map(|n| delta.page(&format!("about/p{n}"))).collect();
    delta.begin(news.iter().chain(&about).copied());
    for transition in 0..10 {
        let changed = news.iter().take(10).chain(about.iter().take(usize::from(transition == 4)));
        delta.add(changed.map(|page| (*page, PageTransition::Updated(1.0))).collect::<Vec<_>>());
    }
    let tails = |is_strict| -> Vec<String> {
        let thresholds = Thresholds { is_strict, ..thresholds(0.05, 0.5, 0.5, 0.7) };
        let mined = mine(&delta, &thresholds, false);
        mined.rules.iter().map(|rule| delta.tree().path(rule.tail)).collect()
    };
    assert_eq!((tails(true), tails(false)), (vec![], vec!["/about/".to_owned()]));
}

/// Computes everything by its definition, on paths.
struct Brute {
    n: u32,
    /// Significance by directory and transition. A directory is a path with a slash at the end.
    bits: BTreeMap<String, Vec<bool>>,
    /// Directories without any change, which are no tails.
    still: BTreeSet<String>,
}

fn directories_of(path: &str) -> Vec<String> {
    let folders = path.match_indices('/').map(|(at, _)| path[..=at].to_owned());
    std::iter::once(String::new()).chain(folders).collect()
}

fn nodes_of(version: &SiteVersion) -> BTreeSet<String> {
    version.keys().flat_map(|path| directories_of(path).into_iter().chain([path.clone()])).collect()
}

impl Brute {
    fn of(versions: &[SiteVersion], alpha: f64) -> Brute {
        let all: BTreeSet<String> = versions
            .iter()
            .flat_map(|version| version.keys().flat_map(|path| directories_of(path)))
            .collect();
        let degree = |directory: &str, before: &SiteVersion, after: &SiteVersion| {
            let within = |version: &SiteVersion| {
                let nodes = nodes_of(version).into_iter();
                nodes.filter(|node| node.starts_with(directory)).collect::<BTreeSet<String>>()
            };
            let (old, new) = (within(before), within(after));
            let is_changed = |node: &&String| {
                old.contains(*node) != new.contains(*node) || before.get(*node) != after.get(*node)
            };
            let union: BTreeSet<&String> = old.union(&new).collect();
            let n_changed = union.iter().copied().filter(|node| is_changed(node)).count();
            n_changed as f64 / union.len().max(1) as f64
        };
        let bits_of = |directory: &String| {
            let significant = |pair: &[SiteVersion]| {
                let degree = degree(directory, &pair[0], &pair[1]);
                degree >= alpha && degree > 0.0
            };
            versions.windows(2).map(significant).collect::<Vec<bool>>()
        };
        let bits = all.iter().map(|directory| (directory.clone(), bits_of(directory))).collect();
        let is_still = |directory: &&String| {
            versions.windows(2).all(|pair| degree(directory, &pair[0], &pair[1]) == 0.0)
        };
        let still = all.iter().filter(is_still).cloned().collect();
        Brute { n: versions.len() as u32 - 1, bits, still }
    }

    fn n_together(&self, members: &[&String]) -> u32 {
        let together = |at: &usize| members.iter().all(|member| self.bits[*member][*at]);
        (0..self.n as usize).filter(together).count() as u32
    }

    fn is_pattern(&self, chain: &[&String], beta: f64) -> bool {
        let n = self.n_together(chain);
        n > 0 && f64::from(n) >= beta * f64::from(self.n) - 1e-9
    }

    /// All patterns that start at a directory.
    fn patterns<'a>(&'a self, start: &'a String, beta: f64) -> Vec<Vec<&'a String>> {
        let mut found: Vec<Vec<&String>> = vec![vec![start]];
        found.retain(|chain| self.is_pattern(chain, beta));
        let mut at = 0;
        while at < found.len() {
            let chain = found[at].clone();
            let last = chain[chain.len() - 1];
            for next in self.bits.keys().filter(|next| *next != last && next.starts_with(last.as_str())) {
                let longer = [chain.as_slice(), &[next]].concat();
                if self.is_pattern(&longer, beta) {
                    found.push(longer);
                }
            }
            at += 1;
        }
        found
    }

    /// All rules that start at a directory, by Definitions 5 to 7.
    fn rules<'a>(&'a self, start: &'a String, t: &Thresholds) -> Vec<(Vec<&'a String>, &'a String)> {
        let mut rules = Vec::new();
        for head in self.patterns(start, t.beta) {
            let last = head[head.len() - 1];
            for tail in self.bits.keys().filter(|tail| *tail != last && tail.starts_with(last.as_str())) {
                let both = [head.as_slice(), &[tail]].concat();
                let counts = CoOccurrence {
                    n: self.n,
                    first: self.n_together(&head),
                    second: self.n_together(&[tail]),
                    both: self.n_together(&both),
                };
                let is_negative =
                    counts.correlation().map_or(!t.is_strict, |phi| phi <= -t.gamma.unwrap() + 1e-9);
                let is_live = !self.still.contains(tail);
                if is_live
                    && !self.is_pattern(&both, t.beta)
                    && is_negative
                    && counts.confidence() >= t.theta - 1e-9
                {
                    rules.push((head.clone(), tail));
                }
            }
        }
        rules
    }

    /// The rules that neither a pattern nor another rule subsumes, by Definitions 8 to 10.
    fn unsubsumed<'a>(
        &'a self,
        start: &'a String,
        t: &Thresholds,
    ) -> BTreeSet<(Vec<&'a String>, &'a String)> {
        let patterns = self.patterns(start, t.beta);
        let is_above = |above: &String, below: &String| above != below && below.starts_with(above.as_str());
        let by_pattern = |(head, tail): &(Vec<&String>, &String)| {
            let with_tail: Vec<&String> = head.iter().copied().chain([*tail]).collect();
            patterns.iter().any(|pattern| {
                (1..with_tail.len().min(pattern.len()))
                    .any(|i| with_tail[..i] == pattern[..i] && is_above(pattern[i], with_tail[i]))
            })
        };
        let mut rules = self.rules(start, t);
        rules.retain(|rule| !by_pattern(rule));
        let tails: Vec<&String> = rules.iter().map(|rule| rule.1).collect();
        rules.retain(|(_, tail)| !tails.iter().any(|other| is_above(other, tail)));
        rules.into_iter().collect()
    }
}

fn name(delta: &DeltaTree, node: DirectoryNode) -> String {
    delta.tree().path(node)[1..].to_owned()
}

fn random_versions() -> impl Strategy<Value = Vec<SiteVersion>> {
    let path = "([ab]/){0,4}[xyz]";
    let page = prop::collection::vec(prop_oneof![3 => Just(None), 7 => (0u8..3).prop_map(Some)], 9);
    prop::collection::btree_map(path, page, 1..14).prop_flat_map(|pages| {
        (3usize..9).prop_map(move |n| {
            let of = |at: usize| {
                pages.iter().filter_map(|(path, contents)| contents[at].map(|c| (path.clone(), c))).collect()
            };
            (0..n).map(of).collect()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn degrees_and_rules_are_those_of_the_definitions(
        versions in random_versions(), alpha in 0.05f64..0.8, beta in 0.15f64..0.8, gamma in 0.1f64..0.9, theta in 0.3f64..1.0,
    ) {
        let brute = Brute::of(&versions, alpha);
        let t = thresholds(alpha, beta, gamma, theta);
        for significance in [Significance::From(alpha), Significance::Later] {
            let delta = delta_of(&versions, versions.len(), significance);
            for (directory, expected) in &brute.bits {
                let node = delta.tree().directory(directory).unwrap();
                let bits = if significance == Significance::Later {
                    delta.bits_from(node, alpha)
                } else {
                    delta.bits(node)
                };
                let found: Vec<bool> = (0..expected.len()).map(|at| bits.has(at)).collect();
                prop_assert_eq!(&found, expected, "{}", directory);
            }
            let (mined, all) = (mine(&delta, &t, false), mine(&delta, &t, true));
            let named = |rule: &DirectoryRule| {
                (rule.head.iter().map(|node| name(&delta, *node)).collect::<Vec<_>>(), name(&delta, rule.tail))
            };
            let of = |rules: Vec<(Vec<&String>, &String)>| {
                rules
                    .into_iter()
                    .map(|(head, tail)| (head.into_iter().cloned().collect::<Vec<_>>(), tail.clone()))
                    .collect::<BTreeSet<_>>()
            };
            let starts = || brute.bits.keys();
            let expected = starts().flat_map(|start| brute.unsubsumed(start, &t)).collect();
            prop_assert_eq!(mined.rules.iter().map(named).collect::<BTreeSet<_>>(), of(expected));
            let expected = starts().flat_map(|start| brute.rules(start, &t)).collect();
            prop_assert_eq!(all.rules.iter().map(named).collect::<BTreeSet<_>>(), of(expected));
            let alone = all.rules.iter().filter(|rule| rule.subsumed.is_none()).map(named);
            prop_assert_eq!(alone.collect::<BTreeSet<_>>(), mined.rules.iter().map(named).collect());
        }
    }

    /// Lemmas 1 and 2: among the rules of one start no tail is below another tail, and no directory is in both a head
    /// and a tail.
    #[test]
    fn rules_of_one_start_never_contradict_each_other(
        versions in random_versions(), alpha in 0.05f64..0.8, beta in 0.15f64..0.8,
    ) {
        let delta = delta_of(&versions, versions.len(), Significance::From(alpha));
        let mined = mine(&delta, &thresholds(alpha, beta, 0.2, 0.5), false);
        for rule in &mined.rules {
            for other in mined.rules.iter().filter(|other| other.head[0] == rule.head[0]) {
                prop_assert!(!other.head.contains(&rule.tail));
                prop_assert!(rule == other || !delta.tree().is_within(rule.tail, other.tail));
            }
        }
    }

    /// A window of n transitions depends on the last n only.
    #[test]
    fn a_sliding_window_equals_a_new_tree(versions in random_versions(), window in 1usize..6, alpha in 0.05f64..0.8) {
        for significance in [Significance::From(alpha), Significance::Later] {
            let sliding = delta_of(&versions, window, significance);
            let last = &versions[(versions.len() - 1).saturating_sub(window)..];
            let fresh = Brute::of(last, alpha);
            for (directory, expected) in &fresh.bits {
                let node = sliding.tree().directory(directory).unwrap();
                let bits = match significance {
                    Significance::Later => sliding.bits_from(node, alpha),
                    Significance::From(_) => sliding.bits(node),
                };
                let oldest = sliding.oldest() as usize;
                let found: Vec<bool> = (0..expected.len()).map(|at| bits.has((oldest + at) % window)).collect();
                prop_assert_eq!(&found, expected, "{}", directory);
                prop_assert_eq!(bits.count() as usize, found.iter().filter(|bit| **bit).count());
            }
        }
    }
}
