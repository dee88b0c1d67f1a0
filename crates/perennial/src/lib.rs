//! Everything of Perennial that has effects: the archive on disk, the network, the command line.
//!
//! The algorithms are in `perennial-core`; this crate runs them.

pub mod cli;
