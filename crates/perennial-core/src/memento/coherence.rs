//! What is known of the versions of a part, and the instant of the page that needs it -> the version to show, and whether it
//! is known to have been there.
//!
//! Other replay systems take what was captured closest in time. We know more than instants: a content that two looks in a row
//! showed was there in between, and what was last modified before an instant and looked at after it was there at that
//! instant. So the choice is made by interval. The four states are those of Ainsworth, Nelson and Van de Sompel,
//! "A Framework for Evaluation of Composite Memento Temporal Coherence" (2014): what is known to have existed
//! at the root's time is coherent, what is known not to have existed is violating. Between them they tell what was seen
//! before and may have lasted (possibly coherent) from what was seen after and may have been new (possibly violative).
//!
//! "Known" rests on one assumption: a content does not go and come back unseen. So two looks in a row that show the same are one stay, and whatever
//! other looks showed was not there in between, nor before the first look or after the last. A content that no look saw may
//! have been there at any time that is left. The tests try all histories that fit the looks.

use crate::time::{Span, Timestamp};

/// One look at a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// When.
    pub time: Timestamp,
    /// What it showed: equal for equal contents.
    pub content: u64,
    /// What the server said of the content's age, if anything.
    pub modified: Option<Timestamp>,
    /// Whether the archive holds what it showed. A look that only confirms a content is one too, if the content is held.
    pub is_held: bool,
}

/// What is known of a version at an instant. The better, the less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Coherence {
    /// It is known to have been there.
    Coherent,
    /// It was there before, and nothing says that it had gone.
    PossiblyCoherent,
    /// It was there at the next look; nothing says that it was not there yet.
    PossiblyViolative,
    /// It is known not to have been there: something else was, or it came later, or something else was seen since.
    Violating,
}

impl Coherence {
    /// As headers and pages name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Coherence::Coherent => "coherent",
            Coherence::PossiblyCoherent => "possibly-coherent",
            Coherence::PossiblyViolative => "possibly-violative",
            Coherence::Violating => "violating",
        }
    }

    /// Nothing is known against one kind of "possibly" that is not known against the other, so nearness decides there.
    fn rank(self) -> u8 {
        match self {
            Coherence::Coherent => 0,
            Coherence::PossiblyCoherent | Coherence::PossiblyViolative => 1,
            Coherence::Violating => 2,
        }
    }
}

/// The version to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Which of the looks.
    pub index: usize,
    /// What is known of it at the instant.
    pub state: Coherence,
}

/// The version of a part to show at an instant; `looks` earliest first. None is violating where another is not, none is "possibly"
/// where another is known; among equals the nearest in time is taken, of two as near the earlier. `None` when nothing is held.
pub fn choose(looks: &[Look], at: Timestamp) -> Option<Choice> {
    let known = Known::at(looks, at);
    let held = (0..looks.len()).filter(|&index| looks[index].is_held);
    let choices = held.map(|index| Choice { index, state: known.state_of(looks, index, at) });
    choices.min_by_key(|choice| (choice.state.rank(), distance(looks[choice.index].time, at), choice.index))
}

/// What other replay systems show: the version that was captured closest to the instant, of two as near the earlier; with the
/// state that it has.
pub fn closest(looks: &[Look], at: Timestamp) -> Option<Choice> {
    let held = (0..looks.len()).filter(|&index| looks[index].is_held);
    let index = held.min_by_key(|&index| (distance(looks[index].time, at), index))?;
    Some(Choice { index, state: Known::at(looks, at).state_of(looks, index, at) })
}

/// What is known of a look's content at an instant.
pub fn state_of(looks: &[Look], index: usize, at: Timestamp) -> Coherence {
    Known::at(looks, at).state_of(looks, index, at)
}

fn distance(a: Timestamp, b: Timestamp) -> u64 {
    a.as_millis().abs_diff(b.as_millis())
}

/// What the looks around an instant say about it.
struct Known {
    /// The looks at the very instant; empty range when there is none.
    first_at: usize,
    /// The first look behind the instant.
    first_after: usize,
    /// The content that was there between the last look before the instant and the first behind it.
    between: Option<u64>,
}

impl Known {
    fn at(looks: &[Look], at: Timestamp) -> Known {
        let first_at = looks.partition_point(|look| look.time < at);
        let first_after = looks.partition_point(|look| look.time <= at);
        let mut known = Known { first_at, first_after, between: None };
        if first_at == first_after {
            known.between =
                content_between(first_at.checked_sub(1).map(|index| &looks[index]), looks.get(first_at), at);
        }
        known
    }

    fn state_of(&self, looks: &[Look], index: usize, at: Timestamp) -> Coherence {
        let look = &looks[index];
        let seen = &looks[self.first_at..self.first_after];
        if seen.iter().any(|seen| seen.content == look.content) || self.between == Some(look.content) {
            return Coherence::Coherent;
        }
        if !seen.is_empty() || self.between.is_some() {
            return Coherence::Violating;
        }
        let is_last_before =
            self.first_at.checked_sub(1).is_some_and(|last| looks[last].content == look.content);
        if is_last_before {
            return Coherence::PossiblyCoherent;
        }
        // Whatever is neither the version before nor the one behind had gone before the one, or came after the other.
        let Some(next) = looks.get(self.first_after).filter(|next| next.content == look.content) else {
            return Coherence::Violating;
        };
        let begins_later = next.modified.is_some_and(|modified| modified > at && modified <= next.time);
        if begins_later { Coherence::Violating } else { Coherence::PossiblyViolative }
    }
}

/// The content at an instant between two looks, if it is known: both showed it, or the later one says that it is older than the
/// instant. A date of modification that lies before a look at something else is wrong, and says nothing.
fn content_between(before: Option<&Look>, after: Option<&Look>, at: Timestamp) -> Option<u64> {
    let after = after?;
    if before.is_some_and(|before| before.content == after.content) {
        return Some(after.content);
    }
    let modified = after.modified.filter(|&modified| modified <= at)?;
    let is_contradicted = before.is_some_and(|before| modified <= before.time);
    (!is_contradicted).then_some(after.content)
}

/// A part of a page as it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// When what is shown was captured.
    pub time: Timestamp,
    /// What is known of it at the page's time.
    pub state: Coherence,
}

/// What is known of a page with all its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Composite {
    /// The worst state of a part; a page without parts is coherent.
    pub state: Coherence,
    /// Of the earliest capture that is shown.
    pub earliest: Timestamp,
    /// Of the latest capture that is shown.
    pub latest: Timestamp,
    /// Parts in each state, in the order of [`Coherence`].
    pub n_in_state: [u32; 4],
    /// Parts that the archive does not hold: nothing is shown in their place.
    pub n_missing: u32,
}

impl Composite {
    /// A page that was captured at an instant, without its parts.
    pub fn of_root(root: Timestamp) -> Composite {
        Composite {
            state: Coherence::Coherent,
            earliest: root,
            latest: root,
            n_in_state: [0; 4],
            n_missing: 0,
        }
    }

    /// Adds a part; `None` is one that the archive does not hold.
    pub fn add(&mut self, part: Option<Part>) {
        let Some(part) = part else {
            self.n_missing += 1;
            return;
        };
        self.state = self.state.max(part.state);
        self.earliest = self.earliest.min(part.time);
        self.latest = self.latest.max(part.time);
        self.n_in_state[part.state as usize] += 1;
    }

    /// From the earliest to the latest capture that is shown.
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

    fn look(time: i64, content: u64) -> Look {
        Look { time: at(time), content, modified: None, is_held: true }
    }

    fn modified(time: i64, content: u64, modified: i64) -> Look {
        Look { modified: Some(at(modified)), ..look(time, content) }
    }

    fn chosen(looks: &[Look], time: i64) -> (i64, Coherence) {
        let choice = choose(looks, at(time)).unwrap();
        (looks[choice.index].time.as_secs(), choice.state)
    }

    #[test]
    fn the_interval_decides_and_not_the_distance() {
        use Coherence::*;
        // Version 1 was confirmed at 100; version 2 came at 110. The page is of 60: the nearest capture is not the point.
        let looks = [look(0, 1), look(100, 1), look(110, 2)];
        assert_eq!(chosen(&looks, 60), (100, Coherent));
        assert_eq!(chosen(&looks, 106), (110, PossiblyViolative));
        assert_eq!(chosen(&looks, 104), (100, PossiblyCoherent));
        assert_eq!(chosen(&looks, 110), (110, Coherent));
        assert_eq!(chosen(&looks, 500), (110, PossiblyCoherent));
        assert_eq!(chosen(&looks, -5), (0, PossiblyViolative));
        assert_eq!(state_of(&looks, 2, at(60)), Violating);
        assert_eq!(state_of(&looks, 0, at(500)), Violating);
    }

    #[test]
    fn the_date_of_modification_reaches_back() {
        use Coherence::*;
        // Nearer in time is version 1, but version 2 says that it was there already.
        let looks = [look(0, 1), modified(100, 2, 5)];
        assert_eq!(chosen(&looks, 10), (100, Coherent));
        assert_eq!(closest(&looks, at(10)), Some(Choice { index: 0, state: Violating }));
        // And here it says that it was not.
        assert_eq!(state_of(&looks, 1, at(4)), Violating);
        assert_eq!(chosen(&looks, 4), (0, PossiblyCoherent));
        // A date before a look at something else is wrong.
        assert_eq!(chosen(&[look(50, 1), modified(100, 2, 5)], 80), (100, PossiblyViolative));
        // So is one in the future.
        assert_eq!(state_of(&[modified(100, 2, 500)], 0, at(50)), PossiblyViolative);
    }

    #[test]
    fn what_is_not_held_is_known_but_not_shown() {
        let mut looks = [look(0, 1), look(10, 2), look(20, 2)];
        looks[1].is_held = false;
        looks[2].is_held = false;
        assert_eq!(chosen(&looks, 15), (0, Coherence::Violating));
        assert_eq!(choose(&[], at(0)), None);
    }

    #[test]
    fn a_composite_is_as_good_as_its_worst_part() {
        let mut page = Composite::of_root(at(100));
        assert_eq!((page.state, page.spread()), (Coherence::Coherent, Span::ZERO));
        page.add(Some(Part { time: at(90), state: Coherence::PossiblyCoherent }));
        page.add(None);
        page.add(Some(Part { time: at(130), state: Coherence::Coherent }));
        assert_eq!((page.state, page.spread()), (Coherence::PossiblyCoherent, Span::from_secs(40)));
        assert_eq!((page.n_in_state, page.n_missing), ([1, 1, 0, 0], 1));
    }

    /// A part that truly changes: contents and when each began. Looks see it as it is; dates of modification are true.
    fn histories() -> impl Strategy<Value = (Vec<(i64, u64)>, Vec<Look>)> {
        let changes = prop::collection::vec((1i64..40, 0u64..3), 1..8);
        let looks = prop::collection::vec((1i64..30, any::<bool>()), 1..10);
        (changes, looks).prop_map(|(changes, looks)| {
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
                Look { modified: says_date.then(|| at(began)), ..look(time, content) }
            };
            let looks = looks.into_iter().map(see).collect();
            (truth, looks)
        })
    }

    /// Looks at anything, with dates of modification that may be wrong.
    fn any_looks() -> impl Strategy<Value = Vec<Look>> {
        let look_at = (1i64..6, 0u64..3, prop::option::of(-3i64..9), any::<bool>());
        prop::collection::vec(look_at, 1..6).prop_map(|steps| {
            let mut time = 0;
            let next = |(step, content, age, is_held): (i64, u64, Option<i64>, bool)| {
                time += step;
                let modified = age.map(|age| at(time - age));
                Look { time: at(time), content, modified, is_held }
            };
            steps.into_iter().map(next).collect()
        })
    }

    /// When the content of a look may have come: from each of these instants on it was there until the look.
    fn comings(before: Option<&Look>, look: &Look) -> Vec<i64> {
        let earliest = before.map_or(look.time.as_secs() - 40, |before| before.time.as_secs() + 1);
        let said = look.modified.map(Timestamp::as_secs);
        match said.filter(|&said| said <= look.time.as_secs() && (before.is_none() || said >= earliest)) {
            Some(said) => vec![said],
            None => (earliest..=look.time.as_secs()).collect(),
        }
    }

    /// What was there at an instant in each history that fits the looks; `None` is a content that no look saw.
    fn contents_in_all_histories(looks: &[Look], instant: i64) -> Vec<Option<u64>> {
        if let Some(seen) = looks.iter().find(|look| look.time == at(instant)) {
            return vec![Some(seen.content)];
        }
        let before = looks.iter().rev().find(|look| look.time < at(instant));
        let after = looks.iter().find(|look| look.time > at(instant));
        if let (Some(before), Some(after)) = (before, after)
            && before.content == after.content
        {
            return vec![Some(before.content)];
        }
        let came = after.map_or(vec![i64::MAX], |after| comings(before, after));
        let went = before.map_or(i64::MIN, |before| before.time.as_secs() + 1);
        let mut contents = Vec::new();
        for came in came {
            // The one before goes at any time until the next one comes.
            let goings = if before.is_some() { went..=came.min(instant + 1).max(went) } else { went..=went };
            for gone in goings {
                let is_still = before.filter(|_| instant < gone).map(|look| look.content);
                let is_already = after.filter(|_| came <= instant).map(|look| look.content);
                contents.push(is_already.or(is_still));
            }
        }
        contents
    }

    proptest! {
        /// Against brute force over all histories: coherent is what was there in every one of them, violating what was there in none.
        #[test]
        fn states_say_what_all_histories_say(looks in any_looks(), instant in -8i64..40) {
            let contents = contents_in_all_histories(&looks, instant);
            for index in 0..looks.len() {
                let is_there = |content: &Option<u64>| *content == Some(looks[index].content);
                let (all, any) = (contents.iter().all(is_there), contents.iter().any(is_there));
                let state = state_of(&looks, index, at(instant));
                prop_assert_eq!(state == Coherence::Coherent, all, "{:?} of {:?}", state, looks[index]);
                prop_assert_eq!(state == Coherence::Violating, !any, "{:?} of {:?}", state, looks[index]);
            }
        }

        /// A whole page view: no choice of versions for its parts is better, and where every part can be coherent all of them are.
        #[test]
        fn no_view_is_worse_than_it_must_be(parts in prop::collection::vec(any_looks(), 1..5), instant in -8i64..40) {
            let mut page = Composite::of_root(at(instant));
            // The worst of the best that there is for each part: 0 in all histories, 1 in some, 2 in none.
            let mut least = 0;
            for looks in &parts {
                let contents = contents_in_all_histories(looks, instant);
                let class = |look: &Look| {
                    let is_there = |content: &Option<u64>| *content == Some(look.content);
                    if contents.iter().all(is_there) { 0 } else if contents.iter().any(is_there) { 1 } else { 2 }
                };
                least = looks.iter().filter(|look| look.is_held).map(class).min().unwrap_or(0).max(least);
                let choice = choose(looks, at(instant));
                page.add(choice.map(|choice| Part { time: looks[choice.index].time, state: choice.state }));
            }
            prop_assert_eq!(page.state.rank(), least);
            prop_assert_eq!(page.n_in_state.iter().sum::<u32>() + page.n_missing, parts.len() as u32);
            prop_assert_eq!(page.state == Coherence::Violating, page.n_in_state[3] > 0);
        }

        /// Where no two changes fall between two looks, what is called coherent was there, and between the first look and the last
        /// what is called violating was not.
        #[test]
        fn what_is_known_is_true((truth, looks) in histories(), instant in -5i64..300) {
            let true_content = truth.iter().rev().find(|version| version.0 <= instant).map(|version| version.1);
            let n_changes = |from: &Look, to: &Look| {
                truth.iter().filter(|version| version.0 > from.time.as_secs() && version.0 <= to.time.as_secs()).count()
            };
            prop_assume!(looks.windows(2).all(|pair| n_changes(&pair[0], &pair[1]) <= 1));
            let is_within = looks[0].time <= at(instant) && at(instant) <= looks[looks.len() - 1].time;
            for index in 0..looks.len() {
                let is_there = true_content == Some(looks[index].content);
                match state_of(&looks, index, at(instant)) {
                    Coherence::Coherent => prop_assert!(is_there),
                    Coherence::Violating if is_within => prop_assert!(!is_there),
                    _ => {}
                }
            }
        }

        /// Against brute force: no held version is in a better class than the chosen one, and none of the same class is nearer.
        #[test]
        fn the_choice_is_the_best_there_is((_, mut looks) in histories(), held in any::<u16>(), instant in -5i64..300) {
            for (place, look) in looks.iter_mut().enumerate() {
                look.is_held = held >> place & 1 == 1;
            }
            let class = |state: Coherence| match state {
                Coherence::Coherent => 0,
                Coherence::Violating => 2,
                _ => 1,
            };
            let held: Vec<usize> = (0..looks.len()).filter(|&index| looks[index].is_held).collect();
            let Some(choice) = choose(&looks, at(instant)) else {
                prop_assert!(held.is_empty());
                return Ok(());
            };
            prop_assert!(looks[choice.index].is_held);
            for index in held {
                let other = class(state_of(&looks, index, at(instant)));
                prop_assert!(class(choice.state) <= other);
                if class(choice.state) == other {
                    prop_assert!(distance(looks[choice.index].time, at(instant)) <= distance(looks[index].time, at(instant)));
                }
            }
            let near = closest(&looks, at(instant)).unwrap();
            prop_assert!(class(choice.state) <= class(near.state));
        }

        /// A few looks on either side of the instant decide as all looks do, so that a server need not read them all.
        #[test]
        fn a_window_decides_as_all_looks_do((_, looks) in histories(), instant in -5i64..300, n in 1usize..4) {
            let middle = looks.partition_point(|look| look.time <= at(instant));
            let from = middle.saturating_sub(n);
            let window = &looks[from..(middle + n).min(looks.len())];
            let all = choose(&looks, at(instant)).unwrap();
            let few = choose(window, at(instant)).unwrap();
            prop_assert_eq!((all.index, all.state), (few.index + from, few.state));
        }
    }
}
