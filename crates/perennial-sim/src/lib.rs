//! Worlds of changing pages, and what a crawler with a budget would have caught of them.
//!
//! The simulator drives the very scheduler that the crawler uses, under a virtual clock, against a truth that
//! is known to the last change; so its figures are exact and come again from the same seed.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`chance`] | a seed -> the same numbers on every machine |
//! | [`world`] | page specifications, or explicit changes -> a [`world::World`]: who changed when, and how much |
//! | [`paper`] | a seed -> the world of the papers' experiments |
//! | [`trace`] | files of observed changes -> a world |

pub mod chance;

pub mod world;

pub mod paper;

pub mod trace;
