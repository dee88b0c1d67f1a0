//! Presences of all passages that match a query -> presences of the match on the page.

use crate::time::Timestamp;

/// The time during which a passage was on a page, according to observations. It appeared between `absent_until` and
/// `first`, and vanished between `last` and `gone`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PassagePresence {
    /// The last observation without it before `first`; `None` if the first observation showed it.
    pub absent_until: Option<Timestamp>,
    /// The first observation that showed it.
    pub first: Timestamp,
    /// The last observation that showed it.
    pub last: Timestamp,
    /// The first observation without it after `last`; `None` while it is present.
    pub gone: Option<Timestamp>,
}

/// Joins presences that touch or overlap: an edited passage that still matches continues.
pub fn join(mut presences: Vec<PassagePresence>) -> Vec<PassagePresence> {
    presences.sort_by_key(|presence| (presence.first, presence.gone.is_none(), presence.gone));
    let mut joined: Vec<PassagePresence> = Vec::new();
    for presence in presences {
        match joined.last_mut() {
            Some(whole) if whole.gone.is_none_or(|gone| presence.first <= gone) => {
                if presence.first == whole.first && presence.absent_until < whole.absent_until {
                    whole.absent_until = presence.absent_until;
                }
                whole.gone = match (whole.gone, presence.gone) {
                    (Some(before), Some(after)) => Some(before.max(after)),
                    _ => None,
                };
                whole.last = whole.last.max(presence.last);
            }
            _ => joined.push(presence),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn a_sentence_in_an_edited_paragraph_goes_on() {
        let presence = |before: Option<i64>, first, last, gone: Option<i64>| PassagePresence {
            absent_until: before.map(at),
            first: at(first),
            last: at(last),
            gone: gone.map(at),
        };
        let presences = vec![
            presence(Some(1), 2, 3, Some(4)),
            presence(Some(3), 4, 5, Some(6)),
            presence(Some(7), 8, 9, None),
        ];
        assert_eq!(join(presences), [presence(Some(1), 2, 5, Some(6)), presence(Some(7), 8, 9, None)]);
    }

    /// Observations 0 to 9, each with some of four passages. The expected result is the runs of observations with any
    /// of them.
    fn shown() -> impl Strategy<Value = Vec<Vec<bool>>> {
        prop::collection::vec(prop::collection::vec(any::<bool>(), 10), 1..4)
    }

    fn passage_presences(passage: &[bool]) -> Vec<PassagePresence> {
        let mut presences = Vec::new();
        for observation in 0..passage.len() {
            if passage[observation] && (observation == 0 || !passage[observation - 1]) {
                let end = (observation..passage.len()).find(|&observation| !passage[observation]);
                presences.push(PassagePresence {
                    absent_until: observation.checked_sub(1).map(|observation| at(observation as i64)),
                    first: at(observation as i64),
                    last: at(end.map_or(passage.len() - 1, |end| end - 1) as i64),
                    gone: end.map(|end| at(end as i64)),
                });
            }
        }
        presences
    }

    proptest! {
        #[test]
        fn joined_presences_are_the_runs_with_any_passage(passages in shown()) {
            let any: Vec<bool> = (0..10).map(|observation| passages.iter().any(|passage| passage[observation])).collect();
            let presences = passages.iter().flat_map(|passage| passage_presences(passage)).collect();
            prop_assert_eq!(join(presences), passage_presences(&any));
        }
    }
}
