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
//! | [`strategy`] | the strategies that are compared, by name |
//! | [`papers`] | what is known of pages -> the next visit, by the strategies of the papers |
//! | [`drive`] | a world and a scheduler's configuration -> captures, completeness, coherence |
//! | [`bound`] | a world and a budget -> what no crawler could beat |
//! | [`experiment`] | a world, strategies and budgets -> tables of results beside the bounds |
//! | [`claims`] | results -> which of the papers' findings hold |
//! | [`report`] | results -> the papers' figures |
//! | [`rules`] | versions of a site -> rules of P-NEAR, plans, what they would have skipped and missed |
//! | [`feeds`] | feeds -> statistics and figures of P-FEED, inferred channel pages, its own extraction |
//! | [`plant`] | a page and a seed -> the page with planted changes, as in P-VISUAL 7.2 |

pub mod world;

pub mod paper;

pub mod calendar;

pub mod trace;

pub mod strategy;

pub mod papers;

pub mod drive;

pub mod bound;

pub mod experiment;

pub mod claims;

pub mod report;

pub mod rules;

pub mod feeds;

pub mod plant;
