//! URLs by version -> how the directories of a site change together, and which of them need no visit (P-NEAR;
//! docs/papers.md, Directories). Plans and their evaluation are in the laboratory.
//!
//! | file | what becomes what |
//! |---|---|
//! | `labels` | names -> numbers |
//! | `tree` | addresses -> the directory tree of a site |
//! | `bits` | transitions -> frequency, correlation, confidence |
//! | `delta` | versions -> the General Delta Tree |
//! | `mine` | the General Delta Tree -> patterns and rules |
//! | `history` | versions -> what came, changed and went |

mod bits;
mod delta;
mod history;
mod labels;
mod mine;
mod tree;

#[cfg(test)]
mod tests;

pub use bits::{Bits, Counts};
pub use delta::{Degree, DeltaTree, PageTransition, Significance};
pub use history::{PageChange, SiteHistory, SiteKind, SiteVersion};
pub use mine::{
    Alpha, DirectoryPattern, Mined, Rule, Subsumed, Thresholds, live_directories, mine, mine_from, n_pages,
};
pub use tree::{Node, Tree};
