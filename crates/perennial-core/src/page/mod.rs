//! A layout -> visible blocks, changes between two versions, and their importance.
//!
//! | module | input and output |
//! |---|---|
//! | [`layout`] | the boxes, fonts and colours of every node, as a renderer delivers them |
//! | [`segment`] | layout -> [`segment::BlockTree`] (VIPS), Vi-XML |
//! | [`diff`] | two block trees -> [`diff::Delta`] (Vi-DIFF), Vi-Delta, apply |
//! | [`document`] | text, JSON, CSV, XML, PDF -> [`segment::BlockTree`] |
//! | [`importance`] | delta -> [`importance::Importance`], 0 to 1: how much it matters |
//! | [`noise`] | a page's history of changes -> the share of a change that is noise |
//! | [`observe`] | a capture and the page state before it -> delta, importance, the new page state |
//! | [`change_status`] | two consecutive responses -> how the later one relates to the earlier |
//! | [`threshold`] | versions by importance -> those that reach the index threshold |

pub mod layout;

pub mod segment;

pub mod diff;

pub mod document;

pub mod importance;

pub mod noise;

pub mod observe;

pub mod change_status;

pub mod threshold;
