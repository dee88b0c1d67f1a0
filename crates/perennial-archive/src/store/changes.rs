//! Lists changes in an order and continues at a cursor, however long the list is.

use std::fmt;
use std::str::FromStr;

use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use rusqlite::params;

use super::analyses::{CHANGE_COLUMNS, IS_CHANGE, read_change};
use super::rows::{Columns, Statements};
use super::{ChangeFilter, ChangeRow, Store};

/// A span with at most this many observations is sorted. In a longer span, SQLite walks the importance index until it
/// has found enough changes.
const FEW_OBSERVATIONS: i64 = 10_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ChangeOrder {
    Oldest,
    #[default]
    Latest,
    /// The most important first; among equally important ones, the older first.
    Strongest,
}

/// The place of a change in a list, where the next part of the list begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChangeKey {
    /// The time of the observation.
    pub time: Timestamp,
    pub page: PageId,
    pub importance: f64,
}

impl fmt::Display for ChangeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.time.as_millis(), self.page.0, self.importance)
    }
}

impl FromStr for ChangeKey {
    type Err = String;

    fn from_str(text: &str) -> Result<ChangeKey, String> {
        let read = || {
            let mut parts = text.splitn(3, '.');
            let time = Timestamp::from_millis(parts.next()?.parse().ok()?);
            let page = PageId(parts.next()?.parse().ok()?);
            let importance = parts.next()?.parse().ok().filter(|value: &f64| (0.0..=1.0).contains(value))?;
            Some(ChangeKey { time, page, importance })
        };
        read().ok_or_else(|| "take it from `next` of the answer before".to_owned())
    }
}

impl ChangeOrder {
    /// The SQL for "`key` comes after `after`", and for the order of keys.
    fn sql(self) -> (&'static str, &'static str) {
        match self {
            ChangeOrder::Oldest => ("(l.time, l.page) > (?6, ?7)", "l.time, l.page"),
            ChangeOrder::Latest => ("(l.time, l.page) < (?6, ?7)", "l.time DESC, l.page DESC"),
            ChangeOrder::Strongest => (
                "(l.importance < ?8 OR l.importance = ?8 AND (l.time, l.page) > (?6, ?7))",
                "l.importance DESC, l.time, l.page",
            ),
        }
    }

    /// Sorts keys and drops those up to `after`.
    pub fn arrange(self, keys: &mut Vec<ChangeKey>, after: Option<&ChangeKey>) {
        let compare = |a: &ChangeKey, b: &ChangeKey| {
            let by_time = (a.time, a.page).cmp(&(b.time, b.page));
            match self {
                ChangeOrder::Oldest => by_time,
                ChangeOrder::Latest => by_time.reverse(),
                ChangeOrder::Strongest => b.importance.total_cmp(&a.importance).then(by_time),
            }
        };
        keys.retain(|key| after.is_none_or(|after| compare(key, after).is_gt()));
        keys.sort_by(compare);
    }
}

/// The list from its beginning.
const ALL: &str = "?6 IS NULL AND ?7 IS ?8";

/// All changes in the order of the importance index.
const BY_IMPORTANCE: &str = "lessons l INDEXED BY lessons_importance CROSS JOIN pages p ON p.id = l.page";

/// The tables that contain the changes. SQLite selects one page, or the pages of one site, by number, so it reads only
/// their analyses. It reads all others by time, which is the order of the list.
fn change_tables(filter: &ChangeFilter<'_>) -> &'static str {
    match (filter.url, filter.host) {
        (None, None) => "lessons l INDEXED BY lessons_time CROSS JOIN pages p ON p.id = l.page",
        _ => "pages p CROSS JOIN lessons l ON l.page = p.id",
    }
}

impl Store {
    /// The keys of at most `limit` changes that pass the filter, in an order, after a place in it.
    pub fn change_keys(
        &self,
        filter: &ChangeFilter<'_>,
        order: ChangeOrder,
        after: Option<&ChangeKey>,
        limit: usize,
    ) -> anyhow::Result<Vec<ChangeKey>> {
        let (behind, by) = order.sql();
        if !self.is_sorted_by(filter, order)? {
            let behind = if after.is_some() { behind } else { ALL };
            return self.keys_where(change_tables(filter), behind, by, filter, after, limit);
        }
        // The changes as important as the place come first. Each of the two ranges of the index then begins at the
        // right place.
        let mut keys = Vec::new();
        let stretches = match after {
            Some(_) => {
                &["l.importance = ?8 AND (l.time, l.page) > (?6, ?7)", "l.importance < ?8 AND ?6 IS NOT ?7"][..]
            }
            None => &[ALL],
        };
        for stretch in stretches {
            let rest = limit - keys.len();
            if rest > 0 {
                keys.extend(self.keys_where(BY_IMPORTANCE, stretch, by, filter, after, rest)?);
            }
        }
        Ok(keys)
    }

    /// Whether an index contains the changes in this order. If not, all changes that pass the filter are sorted,
    /// whatever the limit.
    pub fn is_sorted_by(&self, filter: &ChangeFilter<'_>, order: ChangeOrder) -> anyhow::Result<bool> {
        if order != ChangeOrder::Strongest || filter.url.is_some() || filter.host.is_some() {
            return Ok(false);
        }
        let (since, until) = filter.span();
        let sql = "SELECT count(*) > ?3 FROM (SELECT 1 FROM lessons WHERE time >= ?1 AND time < ?2
            LIMIT ?3 + 1)";
        self.connection.value(sql, params![since, until, FEW_OBSERVATIONS])
    }

    fn keys_where(
        &self,
        from: &str,
        behind: &str,
        by: &str,
        filter: &ChangeFilter<'_>,
        after: Option<&ChangeKey>,
        limit: usize,
    ) -> anyhow::Result<Vec<ChangeKey>> {
        let place = match (filter.url, filter.host) {
            (Some(_), _) => "p.url = ?2 AND ?3 IS ?3",
            (None, Some(_)) => "?2 IS NULL AND p.site = (SELECT id FROM sites WHERE host = ?3)",
            (None, None) => "?2 IS ?3",
        };
        let sql = format!(
            "SELECT l.time, l.page, l.importance FROM {from}
             WHERE l.seen NOT IN (1, 5) AND {IS_CHANGE} AND l.importance >= ?1 AND {place}
               AND l.time >= ?4 AND l.time < ?5 AND {behind}
             ORDER BY {by} LIMIT ?9"
        );
        let (since, until) = filter.span();
        let values = params![
            filter.min_importance,
            filter.url,
            filter.host,
            since,
            until,
            after.map(|key| key.time.as_millis()),
            after.map(|key| key.page.0),
            after.map(|key| key.importance),
            i64::try_from(limit).unwrap_or(i64::MAX)
        ];
        self.connection.rows(&sql, values, |row| {
            Ok(ChangeKey { time: row.time(0)?, page: PageId(row.get(1)?), importance: row.get(2)? })
        })
    }

    /// The change that an observation showed, if any.
    pub fn change_at(&self, page: PageId, time: Timestamp) -> anyhow::Result<Option<ChangeRow>> {
        let sql = format!(
            "SELECT {CHANGE_COLUMNS} FROM lessons l JOIN pages p ON p.id = l.page
                WHERE l.page = ?1 AND l.time = ?2 AND {IS_CHANGE}"
        );
        self.connection.row(&sql, params![page.0, time.as_millis()], read_change)
    }

    /// How many observations were analysed.
    pub fn count_all_analyses(&self) -> anyhow::Result<u64> {
        self.connection.count("SELECT count(*) FROM lessons", [])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for (millis, page, importance) in [(0, 0, 0.0), (-5, 7, 1.0), (1_767_225_600_123, 9, 0.1 + 0.2)] {
            let key = ChangeKey { time: Timestamp::from_millis(millis), page: PageId(page), importance };
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        for text in ["", "1", "1.2", "x.1.0", "1.2.NaN", "1.2.7", "1.-2.0"] {
            assert!(text.parse::<ChangeKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn keys_stand_behind_the_place_where_a_list_ended() {
        let key = |time, page, importance| ChangeKey {
            time: Timestamp::from_secs(time),
            page: PageId(page),
            importance,
        };
        let all = [key(1, 1, 0.5), key(2, 1, 0.9), key(2, 2, 0.5), key(3, 1, 0.1)];
        for order in [ChangeOrder::Oldest, ChangeOrder::Latest, ChangeOrder::Strongest] {
            let mut keys = all.to_vec();
            order.arrange(&mut keys, None);
            for place in 0..keys.len() {
                let mut rest = all.to_vec();
                order.arrange(&mut rest, keys.get(place));
                assert_eq!(rest, keys[place + 1..]);
            }
        }
    }
}
