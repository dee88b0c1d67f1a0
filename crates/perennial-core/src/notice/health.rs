//! Visits of a watched page -> whether its watch still sees it. A watch that sees nothing reports no change, and its
//! owner would think that nothing changes.

use crate::time::Timestamp;

/// A watch that does not see its page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlindWatch {
    /// Visits in a row.
    pub n_failures: u32,
    /// Why the last of them saw nothing, in words.
    pub reason: String,
    /// The first of them.
    pub since: Timestamp,
    /// Whether its owner was notified.
    pub is_reported: bool,
}

/// The notice for the owner of a watch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HealthNotice {
    /// The watch sees nothing.
    Failing(BlindWatch),
    /// The watch sees its page again.
    Working(BlindWatch),
}

/// The state of a watch after a visit, and the notice for its owner: that it is blind after `most` failures in a row,
/// once, and later that it is not any more.
pub fn after_visit(
    before: Option<BlindWatch>,
    seen: Result<(), String>,
    at: Timestamp,
    most: u32,
) -> (Option<BlindWatch>, Option<HealthNotice>) {
    let Err(reason) = seen else {
        let reported = before.filter(|watch| watch.is_reported);
        return (None, reported.map(HealthNotice::Working));
    };
    let (n_before, since, was_reported) =
        before.map_or((0, at, false), |watch| (watch.n_failures, watch.since, watch.is_reported));
    let n_failures = n_before.saturating_add(1);
    let is_news = !was_reported && most > 0 && n_failures >= most;
    let watch = BlindWatch { n_failures, reason, since, is_reported: was_reported || is_news };
    let notice = is_news.then(|| HealthNotice::Failing(watch.clone()));
    (Some(watch), notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The notice of each visit: `f` after a failure that is reported, `w` for working again.
    fn reports(visits: &str, most: u32) -> String {
        let mut watch = None;
        let mut reports = String::new();
        for (secs, visit) in (0..).zip(visits.chars()) {
            let seen = if visit == '+' { Ok(()) } else { Err("it is away".to_owned()) };
            let (next, notice) = after_visit(watch, seen, Timestamp::from_secs(secs), most);
            watch = next;
            reports.push(match notice {
                Some(HealthNotice::Failing(_)) => 'f',
                Some(HealthNotice::Working(_)) => 'w',
                None => '.',
            });
        }
        reports
    }

    #[test]
    fn a_blind_watch_is_reported_once_and_its_recovery_too() {
        assert_eq!(reports("+--+---------+--+", 3), "......f......w...");
        assert_eq!(reports("-+-+", 1), "fwfw");
        assert_eq!(reports("----+", 0), ".....", "never");
    }

    #[test]
    fn a_report_names_the_last_reason_and_the_first_failure() {
        let (watch, _) = after_visit(None, Err("slow".to_owned()), Timestamp::from_secs(5), 2);
        let (_, notice) = after_visit(watch, Err("gone".to_owned()), Timestamp::from_secs(9), 2);
        let expected = BlindWatch {
            n_failures: 2,
            reason: "gone".to_owned(),
            since: Timestamp::from_secs(5),
            is_reported: true,
        };
        assert_eq!(notice, Some(HealthNotice::Failing(expected)));
    }
}
