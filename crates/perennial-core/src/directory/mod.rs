//! URLs by version -> directories that change together, and directories that need no visit (P-NEAR; docs/papers.md,
//! Directories). Plans and their evaluation are in `perennial-lab`.
//!
//! | file | what becomes what |
//! |---|---|
//! | `labels` | names -> numbers |
//! | `tree` | URLs -> the directory tree of a site |
//! | `bits` | sets of transitions -> frequency, correlation, confidence |
//! | `delta` | versions -> the General Delta Tree |
//! | `mine` | the General Delta Tree -> patterns and rules |
//! | `history` | versions -> added, changed and removed pages |

mod bits;
mod delta;
mod history;
mod labels;
mod mine;
mod tree;

#[cfg(test)]
mod tests;

pub use bits::{CoOccurrence, TransitionBits};
pub use delta::{ChangeDegree, DeltaTree, PageTransition, Significance};
pub use history::{PageChange, SiteHistory, SiteKind, SiteVersion};
pub use mine::{
    Alpha, DirectoryPattern, DirectoryRule, MinedRules, Subsumption, Thresholds, live_directories, mine,
    mine_from, n_pages,
};
pub use tree::{DirectoryNode, DirectoryTree};
