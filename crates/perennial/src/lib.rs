//! The command line of Perennial, and the demonstration.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`demo`] | a seed -> the living web: sites that change by known patterns, served on loopback |
//! | [`doctor`] | this machine -> what an archive needs of it and lacks, each with its cure |
//! | [`cli`] | arguments -> calls, results -> print |

// `println!` panics when the reader of a pipe has gone: print through `cli::Context::print`.
#![warn(clippy::print_stdout)]

pub mod demo;

pub mod doctor;

pub mod cli;
