//! Archived content -> content whose addresses lead into the archive.
//!
//! Three layers, each of which needs the ones above it no more than it must (docs/replay.md, docs/decisions/0036-rewriting.md):
//! what is here rewrites on the server; `replay.js` runs before the page's own scripts and rewrites what they build; `worker.js`
//! is a service worker for what is left. Beneath all three lies the policy that every answer carries.
//!
//! | file | what becomes what |
//! |---|---|
//! | [`url`] | an address in a document -> the address in this archive |
//! | [`css`] | a stylesheet -> the same with addresses rewritten |
//! | `tokens`, [`script`] | a script -> one that sees the page's own location |
//! | [`attributes`], [`html`] | a page -> the same with addresses rewritten and our script first |
//! | [`headers`] | the head of an archived answer -> the fields of a replay, and its policy |
//! | [`body`] | the body of an archived answer -> the body of a replay |

pub mod attributes;
pub mod body;
pub mod css;
pub mod headers;
pub mod html;
pub mod script;
mod tokens;
pub mod url;
