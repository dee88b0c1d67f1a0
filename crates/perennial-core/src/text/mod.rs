//! Bytes of a document -> characters, tokens, elements, links.
//!
//! | module | input and output |
//! |---|---|
//! | [`markup`] | text -> text that is safe inside HTML, SVG and XML |
//! | [`untrusted`] | untrusted text -> bounded text, and text that is harmless on a terminal |
//! | [`charset`] | bytes -> characters |
//! | [`xml`] | XML as found on the web -> tags and texts |
//! | [`tokens`] | HTML -> its tokens, with work bounded by its length |
//! | [`dom`] | HTML -> a bounded tree of elements and texts |
//! | [`links`] | HTML, CSS -> the URLs that they reference |
//! | [`numbers`] | two texts that differ in numbers -> whether the number is news |
//! | [`stamps`] | a text -> whether it is only a time stamp, a clock or a counter |
//! | [`quantity`] | a number -> text with the right form of the noun |
//! | `words` | a word -> its meaning next to a time or a number |
//! | [`typography`] | a text -> the same without quotes, dashes, spaces, case and Unicode forms of its own |

pub mod markup;

pub mod untrusted;

pub mod charset;

pub mod xml;

pub mod tokens;

pub mod dom;

pub mod links;

pub mod numbers;

pub mod stamps;

pub mod quantity;

pub mod typography;

mod words;
