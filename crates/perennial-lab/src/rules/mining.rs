//! Mines the rules and patterns of a history, what each rule would have saved, and the tree over time (P-NEAR Figures 1
//! and 4).

use perennial_core::directory::{
    DeltaTree, DirectoryNode, DirectoryRule, DirectoryTree, MinedRules, Significance, SiteHistory,
    Subsumption, Thresholds, live_directories, mine, n_pages,
};
use perennial_engine::html::chart::Bars;
use serde::Serialize;

use super::{rule_savings, static_directories, version_sizes};

#[derive(Clone, Copy, Debug)]
pub struct MiningConfig {
    pub thresholds: Thresholds,
    /// Number of versions to learn from, the latest ones.
    pub n_versions: usize,
    /// Whether subsumed rules are reported.
    pub with_subsumed: bool,
    /// Maximum number of directories, rules and patterns to report.
    pub top: usize,
}

/// The rules, patterns and directories of a site.
#[derive(Serialize)]
pub struct SiteReport {
    pub site: String,
    pub n_versions: usize,
    /// Current number of pages.
    pub n_pages: u64,
    /// Number of rules that hold.
    pub n_rules: usize,
    /// Number of rules contradicted by a directory below the tail.
    pub n_contradicted: usize,
    /// Number of patterns that hold.
    pub n_patterns: usize,
    /// The rules that save most.
    pub rules: Vec<RuleReport>,
    /// The most frequent patterns.
    pub patterns: Vec<RulePatternReport>,
    /// Number of directories without a change.
    pub n_static_directories: usize,
    /// Number of pages in these directories.
    pub n_static_pages: u64,
    /// The directories with most changes.
    pub directories: Vec<DirectoryReport>,
    /// The number of pages of each version.
    pub sizes: Vec<usize>,
    /// The date of each version.
    pub dates: Vec<String>,
}

/// A rule, and what it would have saved.
#[derive(Serialize)]
pub struct RuleReport {
    /// Directories that change together.
    pub head: Vec<String>,
    /// The directory that does not change when the head changes.
    pub tail: String,
    /// Share of versions in which all directories of the head change.
    pub frequency: f64,
    /// Correlation of head and tail, from -1 to 1.
    pub correlation: f64,
    /// Share of the head's changes without a change of the tail.
    pub confidence: f64,
    /// Minimum degree of a change that counts.
    pub alpha: f64,
    /// Current number of pages of the tail.
    pub n_pages: u64,
    /// Fetches of the tail's pages in the versions in which the head changes.
    pub saved_fetches: u64,
    /// Changes of the tail's pages in these versions.
    pub missed_changes: u64,
    /// Whether a directory below the tail changes with the head. The rule is then not used.
    pub contradicted: bool,
    /// Why the rule is subsumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subsumed_by: Option<&'static str>,
}

/// Directories that change together.
#[derive(Serialize)]
pub struct RulePatternReport {
    /// The chain of directories.
    pub directories: Vec<String>,
    /// Share of versions in which all directories change.
    pub frequency: f64,
}

/// A directory over time.
#[derive(Serialize)]
pub struct DirectoryReport {
    pub path: String,
    /// Current number of pages.
    pub n_pages: u64,
    /// Degree of change from each version to the next.
    pub degrees: Vec<f32>,
}

impl MiningConfig {
    pub fn report(&self, history: &SiteHistory) -> SiteReport {
        let delta = history.delta_of_last(self.n_versions, Significance::Later);
        let mined = mine(&delta, &self.thresholds, self.with_subsumed);
        let still = static_directories(&delta);
        let first = history.versions.len().saturating_sub(self.n_versions);
        SiteReport {
            site: history.name.clone(),
            n_versions: delta.n_transitions() + 1,
            n_pages: n_pages(&delta, DirectoryTree::ROOT),
            n_rules: mined.rules.len(),
            n_contradicted: mined.rules.iter().filter(|rule| rule.is_contradicted).count(),
            n_patterns: mined.patterns.len(),
            rules: self.rules(&delta, &mined),
            patterns: self.patterns(&delta, &mined),
            n_static_directories: still.iter().filter(|node| delta.size(**node) > 0).count(),
            n_static_pages: still.iter().map(|node| n_pages(&delta, *node)).sum(),
            directories: self.directories(&delta),
            sizes: version_sizes(history).split_off(first),
            dates: history.versions[first..].iter().map(|version| version.date.clone()).collect(),
        }
    }

    fn rules(&self, delta: &DeltaTree, mined: &MinedRules) -> Vec<RuleReport> {
        let path = |node: &DirectoryNode| delta.tree().path(*node);
        let report = |rule: &DirectoryRule| {
            let (saved_fetches, missed_changes) = rule_savings(delta, rule);
            RuleReport {
                head: rule.head.iter().map(path).collect(),
                tail: path(&rule.tail),
                frequency: f64::from(rule.counts.first) / f64::from(rule.counts.n.max(1)),
                correlation: rule.correlation,
                confidence: rule.counts.confidence(),
                alpha: rule.alpha,
                n_pages: n_pages(delta, rule.tail),
                saved_fetches,
                missed_changes,
                contradicted: rule.is_contradicted,
                subsumed_by: rule.subsumed.map(|by| match by {
                    Subsumption::ByPattern => "a pattern",
                    Subsumption::ByRule => "a rule",
                }),
            }
        };
        let mut rules: Vec<RuleReport> = mined.rules.iter().map(report).collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.saved_fetches));
        rules.truncate(self.top);
        rules
    }

    fn patterns(&self, delta: &DeltaTree, mined: &MinedRules) -> Vec<RulePatternReport> {
        let n = delta.n_transitions().max(1) as f64;
        let mut patterns: Vec<RulePatternReport> = mined
            .patterns
            .iter()
            .map(|pattern| RulePatternReport {
                directories: pattern.chain.iter().map(|node| delta.tree().path(*node)).collect(),
                frequency: f64::from(pattern.n_together) / n,
            })
            .collect();
        patterns.sort_by(|a, b| b.frequency.total_cmp(&a.frequency).then(a.directories.cmp(&b.directories)));
        patterns.truncate(self.top);
        patterns
    }

    /// The directories with most changed pages, sorted by path.
    fn directories(&self, delta: &DeltaTree) -> Vec<DirectoryReport> {
        let changed =
            |node: &DirectoryNode| delta.degrees(*node).map(|degree| u64::from(degree.n_pages)).sum::<u64>();
        let mut nodes = live_directories(delta);
        nodes.sort_by_cached_key(|node| (*node != DirectoryTree::ROOT, std::cmp::Reverse(changed(node))));
        nodes.truncate(self.top);
        let report = |node: &DirectoryNode| {
            let mut degrees = vec![0.0; delta.n_transitions()];
            for degree in delta.degrees(*node) {
                degrees[(degree.transition - delta.oldest()) as usize] = degree.degree;
            }
            DirectoryReport { path: delta.tree().path(*node), n_pages: n_pages(delta, *node), degrees }
        };
        let mut reports: Vec<DirectoryReport> = nodes.iter().map(report).collect();
        reports.sort_by(|a, b| a.path.cmp(&b.path));
        reports
    }
}

/// Charts of the size of each site over time, and of its directories.
pub fn site_charts(reports: &[SiteReport]) -> Vec<Bars> {
    let of_site = |report: &SiteReport| {
        // Dates without a time keep six ticks apart.
        let day = |date: &String| date.split('T').next().unwrap_or_default().to_owned();
        let ticks = |dates: &[String]| {
            let step = dates.len().div_ceil(6).max(1);
            dates.iter().enumerate().step_by(step).map(|(at, date)| (at, day(date))).collect::<Vec<_>>()
        };
        let size = Bars {
            title: format!("{}: size", report.site),
            values: report.sizes.iter().map(|size| *size as f64).collect(),
            top: report.sizes.iter().copied().max().unwrap_or(0) as f64,
            ticks: ticks(&report.dates),
            below: "pages".to_owned(),
        };
        let directory = |directory: &DirectoryReport| Bars {
            title: format!("{} ({} pages)", directory.path, directory.n_pages),
            values: directory.degrees.iter().map(|degree| f64::from(*degree)).collect(),
            top: f64::from(directory.degrees.iter().copied().fold(0.0, f32::max)),
            ticks: ticks(report.dates.get(1..).unwrap_or_default()),
            below: "degree of change".to_owned(),
        };
        std::iter::once(size).chain(report.directories.iter().map(directory)).collect::<Vec<_>>()
    };
    reports.iter().flat_map(of_site).collect()
}
