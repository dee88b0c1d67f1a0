//! Replay through time: what clients ask for, which version answers it, and how true the whole is.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`address`] | the path and query of a request -> time, modifier, address; and back |
//! | [`date`] | HTTP dates <-> instants |
//! | [`coherence`] | what is known of a part's versions and an instant -> the version to show, and what it is worth |

pub mod address;
pub mod coherence;
pub mod date;

pub use address::{Modifier, ReplayAddress, When};
pub use coherence::{Choice, Coherence, Composite, Look, Part, choose, closest};
