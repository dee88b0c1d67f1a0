//! Bytes of a document -> characters, tokens, elements, links.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`markup`] | text -> text that is safe inside HTML, SVG and XML |
//! | [`untrusted`] | untrusted text -> bounded text, and text that is harmless on a terminal |
//! | [`charset`] | bytes -> characters |
//! | [`xml`] | XML as it is found on the web -> tags and texts |
//! | [`tokens`] | HTML -> its tokens, in work that its length bounds |
//! | [`dom`] | HTML -> a bounded tree of elements and texts |
//! | [`links`] | HTML, CSS -> the URLs they refer to |
//! | [`numbers`] | two texts that differ in numbers -> whether the number is news |

pub mod markup;

pub mod untrusted;

pub mod charset;

pub mod xml;

pub mod tokens;

pub mod dom;

pub mod links;

pub mod numbers;
