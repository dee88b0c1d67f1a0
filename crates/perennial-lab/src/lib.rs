//! The laboratory repeats the experiments of the papers and simulates other strategies (`perennial lab`).
//!
//! The product does not use it. A simulation drives the crawler's own scheduler under a virtual clock, on a world in
//! which every change is known. Its results are exact, and the same seed gives the same results. docs/papers.md
//! describes the papers and how this code deviates from them.
//!
//! | paper | what is repeated | module |
//! |---|---|---|
//! | P-PATTERN 8 and 9 | strategies and Figures 7 to 9, in the papers' world | [`papers`], [`paper`], [`report`] |
//! | P-QUALITY 7 | the comparison of seven strategies, and its findings | [`papers`], [`experiment`], [`claims`] |
//! | P-NEAR 5 and 6 | plans that skip directories, Figures 1, 4, 5 and 6 | [`rules`] |
//! | P-FEED 3 | statistics of feeds, Figures 1 and 2, Table 2 | [`feeds::statistics`] |
//! | P-FEED 4 | Algorithm 1 in the variants of Table 3 | [`feeds::extraction`] |
//! | P-FEED 6 | channel pages between their captures | [`feeds::inferred`] |
//! | P-VISUAL 7.2 | the change simulator | [`plant`] |
//!
//! | module | input -> output |
//! |---|---|
//! | [`rng`] | a seed -> random numbers and distributions |
//! | [`world`] | page specifications or recorded changes -> a [`world::World`] with all changes of all pages |
//! | [`paper`] | a seed -> the world of the papers' experiments |
//! | [`calendar`] | a seed -> a world in which some pages follow days of the week, of the month, or holidays |
//! | [`trace`] | files of observed changes -> a world |
//! | [`strategy`] | the compared strategies, by name |
//! | [`papers`] | pages and their past visits -> the next visit, by the strategies of the papers |
//! | [`quality`] | captures and all changes of a world -> completeness, coherence, timeliness |
//! | [`drive`] | a world and a scheduler's configuration -> captures, completeness, coherence |
//! | [`bound`] | a world and a budget -> bounds for every crawler |
//! | [`experiment`] | a world, strategies and budgets -> results and bounds |
//! | [`claims`] | results -> which of the papers' findings hold |
//! | [`chart`] | series of values -> a line chart |
//! | [`report`] | results -> the papers' figures |
//! | [`reproduce`] | papers -> the published value, ours, and a verdict for each table and figure |
//! | [`rules`] | versions of a site -> rules and plans of P-NEAR, with measures of what they skip and miss |
//! | [`feeds`] | feeds -> statistics and figures of P-FEED, inferred channel pages, its extraction algorithm |
//! | [`draw`] | a block tree and its layout -> a drawing of the page with its blocks |
//! | [`xpath`] | an XPath and a Vi-Delta or Vi-XML document -> the selected nodes |
//! | [`plant`] | a page and a seed -> the page with planted changes, as in P-VISUAL 7.2 |

pub mod rng;

pub mod world;

pub mod paper;

pub mod calendar;

pub mod trace;

pub mod strategy;

pub mod papers;

pub mod quality;

pub mod drive;

pub mod bound;

pub mod experiment;

pub mod claims;

pub mod chart;

pub mod report;

pub mod reproduce;

pub mod rules;

pub mod feeds;

pub mod draw;

pub mod plant;

pub mod xpath;
