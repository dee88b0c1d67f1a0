//! A rendered page -> the blocks that a reader sees (P-VISUAL 4: extended VIPS).

mod block;
mod id;
pub mod vixml;

pub use block::{Block, BlockRole, BlockTree, Image, Link, NodeId, Text, Walk};
pub use id::IgnoreRules;
