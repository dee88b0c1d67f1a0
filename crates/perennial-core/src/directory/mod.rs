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

mod bits;
mod delta;
mod labels;
mod mine;
mod tree;

#[cfg(test)]
mod tests;

pub use bits::{Bits, Counts};
pub use delta::{Change, Degree, DeltaTree, Significance};
pub use mine::{
    Alpha, Mined, Pattern, Rule, Subsumed, Thresholds, live_directories, mine, mine_from, skipped_by_rules,
};
pub use tree::{Node, Tree};
