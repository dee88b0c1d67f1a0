//! The stays of all passages that answer a question -> the stays of the answer on the page.

use crate::time::Timestamp;

/// From when to when something stood on a page, as far as looks tell: it appeared after `absent_until` and not after `first`, and
/// vanished after `last` and not after `gone`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    /// The last look before it that did not show it; `None` where it stood there at the first look.
    pub absent_until: Option<Timestamp>,
    /// The first look that showed it.
    pub first: Timestamp,
    /// The last look that showed it.
    pub last: Timestamp,
    /// The first look after that, which did not show it any more; `None` while it is there.
    pub gone: Option<Timestamp>,
}

/// Joins stays that touch or overlap: a passage that was edited and still answers goes on.
pub fn join(mut stays: Vec<Stay>) -> Vec<Stay> {
    stays.sort_by_key(|stay| (stay.first, stay.gone.is_none(), stay.gone));
    let mut joined: Vec<Stay> = Vec::new();
    for stay in stays {
        match joined.last_mut() {
            Some(whole) if whole.gone.is_none_or(|gone| stay.first <= gone) => {
                if stay.first == whole.first && stay.absent_until < whole.absent_until {
                    whole.absent_until = stay.absent_until;
                }
                whole.gone = match (whole.gone, stay.gone) {
                    (Some(before), Some(after)) => Some(before.max(after)),
                    _ => None,
                };
                whole.last = whole.last.max(stay.last);
            }
            _ => joined.push(stay),
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
        let stay = |before: Option<i64>, first, last, gone: Option<i64>| Stay {
            absent_until: before.map(at),
            first: at(first),
            last: at(last),
            gone: gone.map(at),
        };
        let stays =
            vec![stay(Some(1), 2, 3, Some(4)), stay(Some(3), 4, 5, Some(6)), stay(Some(7), 8, 9, None)];
        assert_eq!(join(stays), [stay(Some(1), 2, 5, Some(6)), stay(Some(7), 8, 9, None)]);
    }

    /// Looks 0 to 9; at each the page shows some of four passages. The truth is the run of looks with any of them.
    fn shown() -> impl Strategy<Value = Vec<Vec<bool>>> {
        prop::collection::vec(prop::collection::vec(any::<bool>(), 10), 1..4)
    }

    fn stays_of(passage: &[bool]) -> Vec<Stay> {
        let mut stays = Vec::new();
        for look in 0..passage.len() {
            if passage[look] && (look == 0 || !passage[look - 1]) {
                let end = (look..passage.len()).find(|&look| !passage[look]);
                stays.push(Stay {
                    absent_until: look.checked_sub(1).map(|look| at(look as i64)),
                    first: at(look as i64),
                    last: at(end.map_or(passage.len() - 1, |end| end - 1) as i64),
                    gone: end.map(|end| at(end as i64)),
                });
            }
        }
        stays
    }

    proptest! {
        #[test]
        fn joined_stays_are_the_runs_of_looks_that_show_any(passages in shown()) {
            let any: Vec<bool> = (0..10).map(|look| passages.iter().any(|passage| passage[look])).collect();
            let stays = passages.iter().flat_map(|passage| stays_of(passage)).collect();
            prop_assert_eq!(join(stays), stays_of(&any));
        }
    }
}
