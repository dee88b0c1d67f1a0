//! Worlds of changing pages -> what a crawler with a budget would have caught of them.
//!
//! The simulator drives the scheduler that the crawler uses, under a virtual clock, on a world in which every change is
//! known. So its figures are exact, and the same seed gives the same figures.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`world`] | page specifications, or explicit changes -> a [`world::World`]: which page changed when, and how much |
//! | [`paper`] | a seed -> the world of the papers' experiments |
//! | [`calendar`] | a seed -> a world in which some pages follow days of the week, of the month, or holidays |
//! | [`trace`] | files of observed changes -> a world |
//! | [`drive`] | a world and a scheduler's configuration -> captures, completeness, coherence |
//! | [`bound`] | a world and a budget -> what no crawler could beat |
//! | [`experiment`] | a world, strategies and budgets -> tables of results beside the bounds |
//! | [`directories`] | a seed -> histories of made sites: random trees, directories that exclude each other |
//! | [`replay`] | the history of a site and a budget -> what the scheduler makes of it, with and without rules |
//! | [`claims`] | results -> which of the papers' findings hold |
//! | [`report`] | results -> the papers' figures |
//! | [`feeds`] | feeds -> statistics and figures of P-FEED, inferred channel pages |

pub mod world;

pub mod paper;

pub mod calendar;

pub mod trace;

pub mod drive;

pub mod bound;

pub mod experiment;

pub mod directories;

pub mod replay;

pub mod claims;

pub mod report;

pub mod feeds;
