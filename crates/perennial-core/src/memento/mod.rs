//! Memento replay: what a client requests, which version to show, and how coherent the page is.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`replay_url`] | the path and query of a request <-> time, modifier, URL |
//! | [`date`] | HTTP dates <-> instants |
//! | [`coherence`] | observations of a part and an instant -> the version to show, and its coherence |

pub mod coherence;
pub mod date;
pub mod replay_url;

pub use coherence::{
    ChosenVersion, CompositeCoherence, PartCoherence, PartObservation, TemporalCoherence, choose, closest,
};
pub use replay_url::{Modifier, ReplayUrl, RequestedTime};
