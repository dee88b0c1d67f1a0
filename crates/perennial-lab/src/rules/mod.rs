//! Rules of how the directories of a site change together, and plans that skip directories (P-NEAR; docs/rules.md,
//! docs/papers.md, Directories). Trees, rules and patterns are in [`perennial_core::directory`].
//!
//! | file | input -> output |
//! |---|---|
//! | `history`, `file` | a file of versions -> a history |
//! | `synthetic` | a seed -> the history of a synthetic site: random trees, directories that exclude each other |
//! | `evidence` | observed changes -> sums by page and directory |
//! | `score` | sums -> the share of the next changes that each page will have |
//! | `associate` | transitions -> directories that change together, or never |
//! | `plan` | scores and a budget -> pages to fetch, ranked again after each round |
//! | `skip` | rules, static directories -> directories that are skipped as a whole |
//! | `measure` | the fetched pages of a version -> counts of skipped pages and missed changes |
//! | `evaluate` | a history -> the measures of a plan |
//! | `closed` | the same in a closed loop, in which only fetched pages are known |
//! | [`mining`] | a history -> its rules and patterns, their savings, its tree over time |
//! | [`table`] | histories and plans by name -> rows of results |
//! | [`figure`] | histories or synthetic trees -> the points of Figures 5 and 6 |
//! | [`replay`] | a history and a budget -> the result of the scheduler, with and without rules |

mod associate;
mod closed;
mod evaluate;
mod evidence;
pub mod figure;
mod file;
mod history;
mod measure;
pub mod mining;
mod plan;
pub mod replay;
mod score;
mod skip;
mod synthetic;
pub mod table;

#[cfg(test)]
mod tests;

pub use associate::{Association, associations};
pub use closed::{ClosedLoop, LoopResult, closed_loop};
pub use evaluate::{
    PlanOutcome, Protocol, SkipAim, SkipPlan, TestWindow, each_window, evaluate_plan, recall_curve,
    tested_versions, tune_thresholds,
};
pub use evidence::{FetchHistory, PageDirectories, SiteEvidence, SiteKnowledge};
pub use file::read_history;
pub use history::{HistoryError, n_broken, parse_history, version_sizes, without_paths};
pub use measure::{SkipMeasures, TestedVersion, VersionCounts};
pub use plan::{PageRanking, choose_pages, unfetched_rebuilt_pages};
pub use score::{PageScores, own_shares, plain_rates, scores};
pub use skip::{delta_tree, near_skipped_directories, pages_outside, rule_savings, static_directories};
pub use synthetic::{ExclusiveSite, RandomTrees};
