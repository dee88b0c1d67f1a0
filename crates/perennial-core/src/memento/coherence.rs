//! Observations of a part of a page, and the page's time -> the version to show, and whether it is known to have
//! existed then.
//!
//! Other replay systems choose the capture closest in time. Observations support more. Content in two consecutive
//! observations existed in between. Content that was last modified before an instant and observed after it existed at
//! that instant. So this module chooses by interval. The four states are those of Ainsworth, Nelson and Van de
//! Sompel, "A Framework for Evaluation of Composite Memento Temporal Coherence" (2014). Content known to have existed
//! at the root's time is coherent; content known not to have existed is violating. Between them, content observed
//! before that may have lasted is possibly coherent, and content observed after that may have been new is possibly
//! violative.
//!
//! "Known" rests on one assumption: content does not vanish and return unobserved. So equal consecutive observations
//! are one presence. Content of other observations did not exist in between, nor before its first observation or
//! after its last. Content that was never observed may have existed at any remaining time. The tests try all
//! histories that agree with the observations.

use crate::time::{Span, Timestamp};

/// One observation of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartObservation {
    pub time: Timestamp,
    /// Equal for equal contents.
    pub content: u64,
    /// The time of modification that the server sent, if any.
    pub modified: Option<Timestamp>,
    /// Whether the archive contains the content. An observation that merely confirms it counts, if the content is
    /// archived.
    pub is_held: bool,
}

/// What is known about a version at an instant; smaller is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TemporalCoherence {
    /// It is known to have existed.
    Coherent,
    /// It existed before, and may have lasted.
    PossiblyCoherent,
    /// It existed at the next observation, and may have existed already.
    PossiblyViolative,
    /// It is known not to have existed: different content did, or it came later, or different content was observed
    /// since.
    Violating,
}

impl TemporalCoherence {
    /// The name in headers and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            TemporalCoherence::Coherent => "coherent",
            TemporalCoherence::PossiblyCoherent => "possibly-coherent",
            TemporalCoherence::PossiblyViolative => "possibly-violative",
            TemporalCoherence::Violating => "violating",
        }
    }

    /// The two "possibly" states are equally good, so the distance in time decides between them.
    fn rank(self) -> u8 {
        match self {
            TemporalCoherence::Coherent => 0,
            TemporalCoherence::PossiblyCoherent | TemporalCoherence::PossiblyViolative => 1,
            TemporalCoherence::Violating => 2,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChosenVersion {
    /// Index of the observation.
    pub index: usize,
    /// Its state at the instant.
    pub state: TemporalCoherence,
}

/// The version of a part to show at an instant; `looks` must be sorted. The best class of states wins, then the
/// smallest distance in time, then the earlier one. `None` if nothing is archived.
pub fn choose(observations: &[PartObservation], at: Timestamp) -> Option<ChosenVersion> {
    let known = ContentAt::at(observations, at);
    let held = (0..observations.len()).filter(|&index| observations[index].is_held);
    let choices =
        held.map(|index| ChosenVersion { index, state: known.coherence_at(observations, index, at) });
    choices.min_by_key(|choice| {
        (choice.state.rank(), distance(observations[choice.index].time, at), choice.index)
    })
}

/// The choice of other replay systems: the version closest in time, or the earlier of two, with its state.
pub fn closest(observations: &[PartObservation], at: Timestamp) -> Option<ChosenVersion> {
    let held = (0..observations.len()).filter(|&index| observations[index].is_held);
    let index = held.min_by_key(|&index| (distance(observations[index].time, at), index))?;
    Some(ChosenVersion {
        index,
        state: ContentAt::at(observations, at).coherence_at(observations, index, at),
    })
}

/// The state of an observation's content at an instant.
pub fn coherence_at(observations: &[PartObservation], index: usize, at: Timestamp) -> TemporalCoherence {
    ContentAt::at(observations, at).coherence_at(observations, index, at)
}

fn distance(a: Timestamp, b: Timestamp) -> u64 {
    a.as_millis().abs_diff(b.as_millis())
}

/// The observations around an instant, and the content known from them.
struct ContentAt {
    /// The first observation at exactly the instant; the range up to `first_after` may be empty.
    first_at: usize,
    /// The first observation after the instant.
    first_after: usize,
    /// The content known to have existed between the observations before and after the instant.
    between: Option<u64>,
}

impl ContentAt {
    fn at(observations: &[PartObservation], at: Timestamp) -> ContentAt {
        let first_at = observations.partition_point(|observation| observation.time < at);
        let first_after = observations.partition_point(|observation| observation.time <= at);
        let mut known = ContentAt { first_at, first_after, between: None };
        if first_at == first_after {
            known.between = content_between(
                first_at.checked_sub(1).map(|index| &observations[index]),
                observations.get(first_at),
                at,
            );
        }
        known
    }

    fn coherence_at(
        &self,
        observations: &[PartObservation],
        index: usize,
        at: Timestamp,
    ) -> TemporalCoherence {
        let observation = &observations[index];
        let seen = &observations[self.first_at..self.first_after];
        if seen.iter().any(|seen| seen.content == observation.content)
            || self.between == Some(observation.content)
        {
            return TemporalCoherence::Coherent;
        }
        // The content at this instant is known, and it is a different one.
        if !seen.is_empty() || self.between.is_some() {
            return TemporalCoherence::Violating;
        }
        let is_last_before = self
            .first_at
            .checked_sub(1)
            .is_some_and(|last| observations[last].content == observation.content);
        if is_last_before {
            return TemporalCoherence::PossiblyCoherent;
        }
        // Content of neither neighbouring observation had vanished before the earlier one, or appeared after the
        // later one.
        let Some(next) =
            observations.get(self.first_after).filter(|next| next.content == observation.content)
        else {
            return TemporalCoherence::Violating;
        };
        let begins_later = next.modified.is_some_and(|modified| modified > at && modified <= next.time);
        if begins_later { TemporalCoherence::Violating } else { TemporalCoherence::PossiblyViolative }
    }
}

/// The content at an instant between two observations, if known: both showed it, or the later one was last modified
/// before the instant. A modification time before an observation of different content is wrong and ignored.
fn content_between(
    before: Option<&PartObservation>,
    after: Option<&PartObservation>,
    at: Timestamp,
) -> Option<u64> {
    let after = after?;
    if before.is_some_and(|before| before.content == after.content) {
        return Some(after.content);
    }
    let modified = after.modified.filter(|&modified| modified <= at)?;
    let is_contradicted = before.is_some_and(|before| modified <= before.time);
    (!is_contradicted).then_some(after.content)
}

/// A shown part of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartCoherence {
    /// The time of the shown capture.
    pub time: Timestamp,
    /// Its state at the page's time.
    pub state: TemporalCoherence,
}

/// The coherence of a page with all its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompositeCoherence {
    /// The worst state of a part; a page without parts is coherent.
    pub state: TemporalCoherence,
    /// The time of the earliest shown capture.
    pub earliest: Timestamp,
    /// The time of the latest shown capture.
    pub latest: Timestamp,
    /// Parts in each state, in the order of [`TemporalCoherence`].
    pub n_in_state: [u32; 4],
    /// Parts that are not archived; nothing replaces them.
    pub n_missing: u32,
}

impl CompositeCoherence {
    /// A page captured at an instant, without its parts.
    pub fn new(root: Timestamp) -> CompositeCoherence {
        CompositeCoherence {
            state: TemporalCoherence::Coherent,
            earliest: root,
            latest: root,
            n_in_state: [0; 4],
            n_missing: 0,
        }
    }

    /// Adds a part; `None` if it is not archived.
    pub fn add(&mut self, part: Option<PartCoherence>) {
        let Some(part) = part else {
            self.n_missing += 1;
            return;
        };
        self.state = self.state.max(part.state);
        self.earliest = self.earliest.min(part.time);
        self.latest = self.latest.max(part.time);
        self.n_in_state[part.state as usize] += 1;
    }

    /// The time from the earliest to the latest shown capture.
    pub fn spread(&self) -> Span {
        Span::from_millis(self.latest.as_millis() - self.earliest.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn observation(time: i64, content: u64) -> PartObservation {
        PartObservation { time: at(time), content, modified: None, is_held: true }
    }

    fn modified(time: i64, content: u64, modified: i64) -> PartObservation {
        PartObservation { modified: Some(at(modified)), ..observation(time, content) }
    }

    fn chosen(observations: &[PartObservation], time: i64) -> (i64, TemporalCoherence) {
        let choice = choose(observations, at(time)).unwrap();
        (observations[choice.index].time.as_secs(), choice.state)
    }

    #[test]
    fn the_interval_decides_and_not_the_distance() {
        use TemporalCoherence::*;
        // Version 1 was confirmed at 100; version 2 came at 110. The page is from 60: distance is not decisive.
        let observations = [observation(0, 1), observation(100, 1), observation(110, 2)];
        assert_eq!(chosen(&observations, 60), (100, Coherent));
        assert_eq!(chosen(&observations, 106), (110, PossiblyViolative));
        assert_eq!(chosen(&observations, 104), (100, PossiblyCoherent));
        assert_eq!(chosen(&observations, 110), (110, Coherent));
        assert_eq!(chosen(&observations, 500), (110, PossiblyCoherent));
        assert_eq!(chosen(&observations, -5), (0, PossiblyViolative));
        assert_eq!(coherence_at(&observations, 2, at(60)), Violating);
        assert_eq!(coherence_at(&observations, 0, at(500)), Violating);
    }

    #[test]
    fn the_date_of_modification_reaches_back() {
        use TemporalCoherence::*;
        // Version 1 is nearer in time, but version 2 was modified before.
        let observations = [observation(0, 1), modified(100, 2, 5)];
        assert_eq!(chosen(&observations, 10), (100, Coherent));
        assert_eq!(closest(&observations, at(10)), Some(ChosenVersion { index: 0, state: Violating }));
        // Here version 2 was modified later.
        assert_eq!(coherence_at(&observations, 1, at(4)), Violating);
        assert_eq!(chosen(&observations, 4), (0, PossiblyCoherent));
        // A modification time before an observation of different content is wrong.
        assert_eq!(chosen(&[observation(50, 1), modified(100, 2, 5)], 80), (100, PossiblyViolative));
        // So is one in the future.
        assert_eq!(coherence_at(&[modified(100, 2, 500)], 0, at(50)), PossiblyViolative);
    }

    #[test]
    fn what_is_not_held_is_known_but_not_shown() {
        let mut observations = [observation(0, 1), observation(10, 2), observation(20, 2)];
        observations[1].is_held = false;
        observations[2].is_held = false;
        assert_eq!(chosen(&observations, 15), (0, TemporalCoherence::Violating));
        assert_eq!(choose(&[], at(0)), None);
    }

    #[test]
    fn a_composite_is_as_good_as_its_worst_part() {
        let mut page = CompositeCoherence::new(at(100));
        assert_eq!((page.state, page.spread()), (TemporalCoherence::Coherent, Span::ZERO));
        page.add(Some(PartCoherence { time: at(90), state: TemporalCoherence::PossiblyCoherent }));
        page.add(None);
        page.add(Some(PartCoherence { time: at(130), state: TemporalCoherence::Coherent }));
        assert_eq!((page.state, page.spread()), (TemporalCoherence::PossiblyCoherent, Span::from_secs(40)));
        assert_eq!((page.n_in_state, page.n_missing), ([1, 1, 0, 0], 1));
    }

    /// A part that changes: contents with their start times. Observations and modification times are correct.
    fn histories() -> impl Strategy<Value = (Vec<(i64, u64)>, Vec<PartObservation>)> {
        let changes = prop::collection::vec((1i64..40, 0u64..3), 1..8);
        let observations = prop::collection::vec((1i64..30, any::<bool>()), 1..10);
        (changes, observations).prop_map(|(changes, observations)| {
            let mut truth = Vec::new();
            let mut time = -1000;
            for (step, content) in changes {
                if truth.last().is_none_or(|&(_, last)| last != content) {
                    truth.push((time, content));
                }
                time = time.max(0) + step;
            }
            let mut time = 0;
            let see = |(step, says_date): (i64, bool)| {
                time += step;
                let &(began, content) = truth.iter().rev().find(|version| version.0 <= time).unwrap();
                PartObservation { modified: says_date.then(|| at(began)), ..observation(time, content) }
            };
            let observations = observations.into_iter().map(see).collect();
            (truth, observations)
        })
    }

    /// Any observations, with modification times that may be wrong.
    fn any_observations() -> impl Strategy<Value = Vec<PartObservation>> {
        let any_step = (1i64..6, 0u64..3, prop::option::of(-3i64..9), any::<bool>());
        prop::collection::vec(any_step, 1..6).prop_map(|steps| {
            let mut time = 0;
            let next = |(step, content, age, is_held): (i64, u64, Option<i64>, bool)| {
                time += step;
                let modified = age.map(|age| at(time - age));
                PartObservation { time: at(time), content, modified, is_held }
            };
            steps.into_iter().map(next).collect()
        })
    }

    /// The possible instants from which the content of an observation existed until the observation.
    fn comings(before: Option<&PartObservation>, observation: &PartObservation) -> Vec<i64> {
        let earliest = before.map_or(observation.time.as_secs() - 40, |before| before.time.as_secs() + 1);
        let said = observation.modified.map(Timestamp::as_secs);
        match said
            .filter(|&said| said <= observation.time.as_secs() && (before.is_none() || said >= earliest))
        {
            Some(said) => vec![said],
            None => (earliest..=observation.time.as_secs()).collect(),
        }
    }

    /// The content at an instant in each history that agrees with the observations; `None` is unobserved content.
    fn contents_in_all_histories(observations: &[PartObservation], instant: i64) -> Vec<Option<u64>> {
        if let Some(seen) = observations.iter().find(|observation| observation.time == at(instant)) {
            return vec![Some(seen.content)];
        }
        let before = observations.iter().rev().find(|observation| observation.time < at(instant));
        let after = observations.iter().find(|observation| observation.time > at(instant));
        if let (Some(before), Some(after)) = (before, after)
            && before.content == after.content
        {
            return vec![Some(before.content)];
        }
        let came = after.map_or(vec![i64::MAX], |after| comings(before, after));
        let went = before.map_or(i64::MIN, |before| before.time.as_secs() + 1);
        let mut contents = Vec::new();
        for came in came {
            // The earlier content may vanish at any time until the later one appears.
            let goings = if before.is_some() { went..=came.min(instant + 1).max(went) } else { went..=went };
            for gone in goings {
                let is_still = before.filter(|_| instant < gone).map(|observation| observation.content);
                let is_already = after.filter(|_| came <= instant).map(|observation| observation.content);
                contents.push(is_already.or(is_still));
            }
        }
        contents
    }

    proptest! {
        /// Against brute force over all histories: coherent content existed in all of them, violating content in
        /// none.
        #[test]
        fn states_agree_with_all_histories(observations in any_observations(), instant in -8i64..40) {
            let contents = contents_in_all_histories(&observations, instant);
            for index in 0..observations.len() {
                let is_there = |content: &Option<u64>| *content == Some(observations[index].content);
                let (all, any) = (contents.iter().all(is_there), contents.iter().any(is_there));
                let state = coherence_at(&observations, index, at(instant));
                prop_assert_eq!(state == TemporalCoherence::Coherent, all, "{:?} of {:?}", state, observations[index]);
                prop_assert_eq!(state == TemporalCoherence::Violating, !any, "{:?} of {:?}", state, observations[index]);
            }
        }

        /// For a whole page view: no other choice of versions is better, and all parts are coherent if they can be.
        #[test]
        fn no_other_choice_gives_a_better_view(parts in prop::collection::vec(any_observations(), 1..5), instant in -8i64..40) {
            let mut page = CompositeCoherence::new(at(instant));
            // The worst of the best choices for each part: 0 in all histories, 1 in some, 2 in none.
            let mut least = 0;
            for observations in &parts {
                let contents = contents_in_all_histories(observations, instant);
                let class = |observation: &PartObservation| {
                    let is_there = |content: &Option<u64>| *content == Some(observation.content);
                    if contents.iter().all(is_there) { 0 } else if contents.iter().any(is_there) { 1 } else { 2 }
                };
                least = observations.iter().filter(|observation| observation.is_held).map(class).min().unwrap_or(0).max(least);
                let choice = choose(observations, at(instant));
                page.add(choice.map(|choice| PartCoherence { time: observations[choice.index].time, state: choice.state }));
            }
            prop_assert_eq!(page.state.rank(), least);
            prop_assert_eq!(page.n_in_state.iter().sum::<u32>() + page.n_missing, parts.len() as u32);
            prop_assert_eq!(page.state == TemporalCoherence::Violating, page.n_in_state[3] > 0);
        }

        /// If at most one change falls between two observations, coherent content existed, and violating content
        /// between the first and the last observation did not.
        #[test]
        fn known_states_are_true((truth, observations) in histories(), instant in -5i64..300) {
            let true_content = truth.iter().rev().find(|version| version.0 <= instant).map(|version| version.1);
            let n_changes = |from: &PartObservation, to: &PartObservation| {
                truth.iter().filter(|version| version.0 > from.time.as_secs() && version.0 <= to.time.as_secs()).count()
            };
            prop_assume!(observations.windows(2).all(|pair| n_changes(&pair[0], &pair[1]) <= 1));
            let is_within = observations[0].time <= at(instant) && at(instant) <= observations[observations.len() - 1].time;
            for index in 0..observations.len() {
                let is_there = true_content == Some(observations[index].content);
                match coherence_at(&observations, index, at(instant)) {
                    TemporalCoherence::Coherent => prop_assert!(is_there),
                    TemporalCoherence::Violating if is_within => prop_assert!(!is_there),
                    _ => {}
                }
            }
        }

        /// Against brute force: no archived version is in a better class than the chosen one, and none of the same
        /// class is nearer.
        #[test]
        fn no_other_version_is_better((_, mut observations) in histories(), held in any::<u16>(), instant in -5i64..300) {
            for (place, observation) in observations.iter_mut().enumerate() {
                observation.is_held = held >> place & 1 == 1;
            }
            let class = |state: TemporalCoherence| match state {
                TemporalCoherence::Coherent => 0,
                TemporalCoherence::Violating => 2,
                _ => 1,
            };
            let held: Vec<usize> = (0..observations.len()).filter(|&index| observations[index].is_held).collect();
            let Some(choice) = choose(&observations, at(instant)) else {
                prop_assert!(held.is_empty());
                return Ok(());
            };
            prop_assert!(observations[choice.index].is_held);
            for index in held {
                let other = class(coherence_at(&observations, index, at(instant)));
                prop_assert!(class(choice.state) <= other);
                if class(choice.state) == other {
                    prop_assert!(distance(observations[choice.index].time, at(instant)) <= distance(observations[index].time, at(instant)));
                }
            }
            let near = closest(&observations, at(instant)).unwrap();
            prop_assert!(class(choice.state) <= class(near.state));
        }

        /// A few observations around the instant suffice, so a server need not read all of them.
        #[test]
        fn a_window_decides_like_all_observations((_, observations) in histories(), instant in -5i64..300, n in 1usize..4) {
            let middle = observations.partition_point(|observation| observation.time <= at(instant));
            let from = middle.saturating_sub(n);
            let window = &observations[from..(middle + n).min(observations.len())];
            let all = choose(&observations, at(instant)).unwrap();
            let few = choose(window, at(instant)).unwrap();
            prop_assert_eq!((all.index, all.state), (few.index + from, few.state));
        }
    }
}
