//! Rules of how the directories of a site change together, and plans that skip directories (P-NEAR; docs/rules.md,
//! docs/papers.md, Directories). Trees, rules and patterns are in [`perennial_core::directory`].
//!
//! | file | what becomes what |
//! |---|---|
//! | `history`, `file` | a file of versions -> a history |
//! | `synthetic` | a seed -> the history of a made site: random trees, directories that exclude each other |
//! | `evidence` | what was seen of pages -> sums, by page and directory |
//! | `score` | sums -> the share of the next changes that each page will have |
//! | `associate` | transitions -> directories that change together, or never do |
//! | `plan` | scores and a budget -> pages to fetch, ranked anew as answers come in |
//! | `skip` | rules, static directories -> directories that are skipped as a whole |
//! | `measure` | what was fetched of a version -> what was skipped and missed |
//! | `evaluate` | a history -> the measures of a plan |
//! | `closed` | the same where only what was fetched is known |
//! | [`mining`] | a history -> its rules and patterns, what each would have saved, its tree over time |
//! | [`table`] | histories and plans by name -> rows of results |
//! | [`figure`] | histories, or trees made from seeds -> the points of Figures 5 and 6 |
//! | [`replay`] | a history and a budget -> what the scheduler makes of it, with and without rules |

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
    PlanOutcome, Protocol, SkipAim, SkipPlan, TestWindow, curve, each_window, evaluate, tested_versions,
    tuned,
};
pub use evidence::{FetchHistory, PageDirectories, SiteEvidence, SiteKnowledge};
pub use file::read_history;
pub use history::{HistoryError, n_broken, parse_history, sizes, without};
pub use measure::{SkipMeasures, TestedVersion, VersionCounts};
pub use plan::{PageRanking, choose, rebuilt};
pub use score::{PageScores, own_shares, plain_rates, scores};
pub use skip::{delta_tree, outside, savings, skipped_by_near, static_directories};
pub use synthetic::{ExclusiveSite, RandomTrees};
