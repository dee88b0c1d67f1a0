//! Addresses by version -> how the directories of a site change together, and which of them need no visit (P-NEAR;
//! docs/papers.md, Directories).
//!
//! | file | what becomes what |
//! |---|---|
//! | `labels` | names -> numbers |
//! | `tree` | addresses -> the directory tree of a site |
//! | `bits` | transitions -> frequency, correlation, confidence |
//! | `delta` | versions -> the General Delta Tree |
//! | `mine` | the General Delta Tree -> patterns and rules |
//! | `history` | a file of versions -> what came, changed and went |
//! | `evidence` | what was seen of pages -> sums, by page and directory |
//! | `score` | sums -> the share of the next changes that each page will have |
//! | `associate` | transitions -> directories that change together, or never do |
//! | `plan` | scores and a budget -> pages to fetch, ranked anew as answers come in |
//! | `skip` | rules, static directories -> directories that are skipped as a whole |
//! | `measure` | what was fetched of a version -> what was skipped and missed |
//! | `evaluate` | a history -> the measures of a plan |
//! | `closed` | the same where only what was fetched is known |

mod associate;
mod bits;
mod closed;
mod delta;
mod evaluate;
mod evidence;
mod history;
mod labels;
mod measure;
mod mine;
mod plan;
mod score;
mod skip;
mod tree;

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod tests;

pub use associate::{Association, associations, by_chance};
pub use bits::{Bits, Counts};
pub use closed::{ClosedLoop, LoopOutcome, closed_loop};
pub use delta::{Degree, DeltaTree, PageTransition, Significance};
pub use evaluate::{
    Aim, Outcome, Plan, Protocol, Window, curve, each_window, evaluate, tested_versions, tuned,
};
pub use evidence::{Directories, Evidence, Known, Looks};
pub use history::{HistoryError, PageChange, SiteHistory, SiteKind, SiteVersion, parse_history};
pub use measure::{Counted, Measures, Test};
pub use mine::{
    Alpha, DirectoryPattern, Mined, Rule, Subsumed, Thresholds, live_directories, mine, mine_from, n_pages,
    savings, skipped_by_rules,
};
pub use plan::{Ranking, choose, rebuilt};
pub use score::{Scores, own_shares, plain_rates, scores};
pub use skip::{delta_of, outside, skipped_by_near, static_directories};
pub use tree::{Node, Tree};
