//! The command line of Perennial, and the demonstration.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`demo`] | a seed -> the living web: sites that change by known patterns, served on loopback |
//! | [`doctor`] | this machine -> findings about what an archive needs, each with a hint |
//! | [`cli`] | arguments -> calls -> printed results |

// `println!` panics when the reader of a pipe has gone: print through `cli::Context::print`.
#![warn(clippy::print_stdout)]

pub mod demo;

pub mod doctor;

pub mod cli;
