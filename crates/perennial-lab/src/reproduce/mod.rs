//! Every table and figure of the five papers: the published value, ours in the paper's condition and as shipped, and a
//! verdict (docs/papers.md, Can the papers be repeated?).
//!
//! | file | what is repeated |
//! |---|---|
//! | `judge` | samples -> interval and verdict |
//! | `table` | rows of numbers, as in the papers' tables and figures |
//! | [`data`] | files -> histories, pages, posts, feeds |
//! | `examples` | the worked examples of the papers |
//! | `world` | P-PATTERN and P-QUALITY, in worlds drawn from seeds |
//! | `near` | P-NEAR, on histories or made sites |
//! | `feed` | P-FEED, on made pages |
//! | `visual` | P-VISUAL, on pages or made pages |
//! | `page` | findings -> an HTML page |

pub mod data;
mod examples;
mod feed;
mod judge;
mod near;
mod page;
mod table;
mod visual;
mod world;

use std::fmt;
use std::str::FromStr;

use perennial_core::directory::SiteHistory;
use serde::Serialize;

use crate::chart::Chart;
use crate::feeds::statistics::FeedStatistics;
pub use feed::AnnouncedPost;
pub use judge::{Interval, Verdict};
pub use table::{ResultRow, ResultTable};
pub use visual::{MeasuredPage, fastest, made_pages};
pub use world::WorldResults;

/// One of the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    Pattern,
    Quality,
    Visual,
    Near,
    Feed,
}

impl Paper {
    pub const ALL: [Paper; 5] = [Paper::Pattern, Paper::Quality, Paper::Visual, Paper::Near, Paper::Feed];

    pub fn name(self) -> &'static str {
        match self {
            Paper::Pattern => "P-PATTERN",
            Paper::Quality => "P-QUALITY",
            Paper::Visual => "P-VISUAL",
            Paper::Near => "P-NEAR",
            Paper::Feed => "P-FEED",
        }
    }
}

impl Paper {
    /// How often [`reproduce`] reports progress.
    pub fn n_steps(self) -> u64 {
        match self {
            Paper::Pattern | Paper::Quality => world::PUBLISHED.n_seeds,
            Paper::Near => 7,
            Paper::Visual | Paper::Feed => 1,
        }
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown paper.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a paper: choose pattern, quality, visual, near or feed")]
pub struct PaperError(String);

impl FromStr for Paper {
    type Err = PaperError;
    fn from_str(text: &str) -> Result<Paper, PaperError> {
        let name = text.trim().to_ascii_uppercase();
        let found = Paper::ALL
            .into_iter()
            .find(|paper| paper.name().trim_start_matches("P-") == name || paper.name() == name);
        found.ok_or_else(|| PaperError(text.chars().take(40).collect()))
    }
}

/// A claim of a paper, and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub paper: &'static str,
    /// The table or figure.
    pub item: &'static str,
    pub claim: &'static str,
    /// The paper's value.
    pub published: &'static str,
    /// Ours in the paper's condition.
    pub in_condition: String,
    /// Ours with the algorithms and settings of the product.
    pub as_shipped: String,
    /// The measured effect.
    pub effect: Option<Interval>,
    pub verdict: Verdict,
    /// The reason of the verdict, or what is missing.
    pub reason: String,
}

impl Finding {
    /// A claim that an effect is positive. `effect` is published, if it has a number.
    fn measured(
        (paper, item): (Paper, &'static str),
        (claim, published): (&'static str, &'static str),
        samples: &[f64],
        effect: Option<f64>,
    ) -> Finding {
        let interval = Interval::from_samples(samples);
        let verdict = interval.map_or(Verdict::NotTestable, |interval| interval.judge(effect));
        let reason = match verdict {
            Verdict::Repeated if effect.is_some() => {
                "the interval excludes no effect and reaches the published one"
            }
            Verdict::Repeated => "the interval excludes no effect",
            Verdict::InSign if effect.is_some() => {
                "the interval excludes no effect, but is below the published one"
            }
            Verdict::InSign => "the interval excludes no effect, but the effect is below two points",
            Verdict::NotRepeated => "the interval contains no effect or the opposite one",
            Verdict::NotTestable => "fewer than three samples have no interval",
        };
        Finding {
            paper: paper.name(),
            item,
            claim,
            published,
            in_condition: interval.map_or_else(|| "-".to_owned(), percent_interval),
            as_shipped: "-".to_owned(),
            effect: interval,
            verdict,
            reason: reason.to_owned(),
        }
    }

    /// A claim that cannot be tested, and why.
    fn untestable(
        (paper, item): (Paper, &'static str),
        (claim, published): (&'static str, &'static str),
        reason: &str,
    ) -> Finding {
        let (in_condition, as_shipped, reason) = ("-".to_owned(), "-".to_owned(), reason.to_owned());
        let (effect, verdict) = (None, Verdict::NotTestable);
        Finding {
            paper: paper.name(),
            item,
            claim,
            published,
            in_condition,
            as_shipped,
            effect,
            verdict,
            reason,
        }
    }
}

/// The mean; not a number for none.
fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, n) = values.into_iter().fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    sum / n
}

fn percent_interval(interval: Interval) -> String {
    let Interval { mean, low, high, n } = interval;
    format!("{:+.1} % ({:+.1} to {:+.1}, n = {n})", mean * 100.0, low * 100.0, high * 100.0)
}

/// The data that the program does not have.
#[derive(Debug, Default)]
pub struct ReproductionData {
    /// Histories of sites, for P-NEAR.
    pub histories: Vec<SiteHistory>,
    /// Versions of pages, for P-VISUAL.
    pub pages: Vec<MeasuredPage>,
    /// Whether the pages are those of [`made_pages`].
    pub pages_are_made: bool,
    /// Posts with their feed items, for P-FEED.
    pub posts: Vec<AnnouncedPost>,
    /// Statistics of feeds, for P-FEED.
    pub feeds: Option<FeedStatistics>,
}

/// The findings of some papers, with tables and charts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reproduction {
    pub findings: Vec<Finding>,
    pub tables: Vec<ResultTable>,
    /// Titles and charts.
    #[serde(skip)]
    charts: Vec<(String, Chart)>,
}

/// Repeats the experiments of one paper. P-PATTERN and P-QUALITY use one world, so `world` keeps its results.
pub fn reproduce(
    paper: Paper,
    data: &ReproductionData,
    world: &mut WorldResults,
    step: &(dyn Fn() + Sync),
) -> Reproduction {
    let mut all = Reproduction::default();
    examples::check(paper, &mut all);
    match paper {
        Paper::Pattern | Paper::Quality => world.reproduce(paper, step, &mut all),
        Paper::Visual => {
            visual::reproduce(&data.pages, data.pages_are_made, &mut all);
            step();
        }
        Paper::Near => near::reproduce(&data.histories, step, &mut all),
        Paper::Feed => {
            feed::reproduce(&data.posts, data.feeds.as_ref(), &mut all);
            step();
        }
    }
    all
}

impl Reproduction {
    /// Adds the findings of a different paper.
    pub fn extend(&mut self, other: Reproduction) {
        self.findings.extend(other.findings);
        self.tables.extend(other.tables);
        self.charts.extend(other.charts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn papers_have_names() {
        for paper in Paper::ALL {
            assert_eq!(paper.name().parse(), Ok(paper));
        }
        assert_eq!("near".parse(), Ok(Paper::Near));
        assert!("far".parse::<Paper>().unwrap_err().to_string().contains("near"));
    }

    #[test]
    fn no_claim_is_repeated_without_an_effect() {
        let of = (Paper::Near, "Table 2");
        let none = Finding::measured(of, ("skips", "a third"), &[0.0, 0.01, -0.01], Some(0.33));
        assert_eq!(none.verdict, Verdict::NotRepeated);
        assert_eq!(
            Finding::measured(of, ("skips", "a third"), &[0.4], Some(0.33)).verdict,
            Verdict::NotTestable
        );
    }
}
