//! Captures and lessons -> looks: the one query for "which captures are looks at a page, and what did each show".
//!
//! For a look that was analysed its lesson says what it showed. Another is judged by its answer and the answer before it
//! ([`Seen::between`]).

use perennial_core::look::{Before, Seen};
use perennial_core::page::{PageId, SiteId};
use perennial_core::time::Timestamp;
use perennial_core::verdict::AnswerKind;
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::lessons::seen_of;
use super::{IDENTITY, Store};

/// Pages that people read: those that a crawl visited as pages, and where no crawl visited them, HTML.
pub(super) const PAGES: &str = "p.kind = 0";

/// What is analysed: pages, and feeds, whose words people read too. Feeds are no pages in counts and schedules.
pub(super) const ANALYSED: &str = "p.kind <= 0";

/// Which pages' looks.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'a> {
    /// Of all pages that people read.
    Pages,
    /// Of the pages of this host, or of the page with this address. A host without a port stands for that host on any
    /// port.
    Of(&'a str),
}

/// The order in which looks are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookOrder {
    /// One page after the other, each in order of time.
    ByPage,
    /// In order of time over all pages.
    ByTime,
}

/// One look at a page.
#[derive(Clone, PartialEq, Debug)]
pub struct Look {
    /// The page that was captured.
    pub page: PageId,
    /// The page's site.
    pub site: SiteId,
    /// When it was captured.
    pub time: Timestamp,
    /// What it showed compared with the look before.
    pub seen: Seen,
    /// Whether `seen` is from a lesson.
    pub is_analysed: bool,
}

/// The number in the state file.
pub(super) fn answer_code(kind: AnswerKind) -> i64 {
    match kind {
        AnswerKind::Content => 0,
        AnswerKind::NotModified => 1,
        AnswerKind::Redirect => 2,
        AnswerKind::Gone => 3,
        AnswerKind::Failed => 4,
    }
}

/// From the number in the state file.
pub(super) fn answer_of(code: i64) -> AnswerKind {
    match code {
        0 => AnswerKind::Content,
        1 => AnswerKind::NotModified,
        2 => AnswerKind::Redirect,
        3 => AnswerKind::Gone,
        _ => AnswerKind::Failed,
    }
}

impl Store {
    /// Calls `each` with every look before `until`. Of several captures of a page in one second the first counts.
    pub fn looks(
        &self,
        selection: Selection<'_>,
        order: LookOrder,
        until: Timestamp,
        mut each: impl FnMut(Look) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (filter, only) = self.filter_of(selection)?;
        let order = match order {
            LookOrder::ByPage => "k.page, k.time",
            LookOrder::ByTime => "k.time, k.page",
        };
        let mut statement = self.connection().prepare(&format!(
            "WITH looks AS (
               SELECT c.page AS page, p.site AS site, c.time AS time, c.answer AS answer,
                 {IDENTITY} AS identity, min(c.id) AS id
               FROM captures c JOIN pages p ON p.id = c.page
               WHERE c.answer IS NOT NULL AND c.answer < 4 AND c.time < ?1 AND {filter}
               GROUP BY c.page, c.time)
             SELECT k.page, k.site, k.time, k.answer, k.identity,
               lag(k.identity) OVER w, l.seen, l.importance, coalesce(max(k.answer <= 1) OVER earlier, 0)
             FROM looks k LEFT JOIN lessons l ON l.page = k.page AND l.time = k.time
             WINDOW w AS (PARTITION BY k.page ORDER BY k.time),
               earlier AS (PARTITION BY k.page ORDER BY k.time ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
             ORDER BY {order}"
        ))?;
        let values = [Some(Value::from(until.as_millis())), only].into_iter().flatten();
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if let Some(look) = read_look(row)? {
                each(look)?;
            }
        }
        Ok(())
    }

    /// The condition in SQL and what it compares with.
    fn filter_of(&self, selection: Selection<'_>) -> anyhow::Result<(String, Option<Value>)> {
        let Selection::Of(name) = selection else { return Ok((PAGES.to_owned(), None)) };
        if let Some(page) = self.page(name)? {
            return Ok(("c.page = ?2".to_owned(), Some(Value::from(i64::from(page.id.0)))));
        }
        let sites = "SELECT id FROM sites WHERE host = ?2 OR substr(host, 1, length(?2) + 1) = ?2 || ':'";
        Ok((format!("p.site IN ({sites}) AND {PAGES}"), Some(Value::from(name.to_owned()))))
    }
}

fn read_look(row: &Row<'_>) -> rusqlite::Result<Option<Look>> {
    let lesson: Option<i64> = row.get(6)?;
    let seen = match lesson {
        Some(code) => Some(seen_of(code, row.get(7)?)),
        None => {
            let (before, identity): (Option<String>, String) = (row.get(5)?, row.get(4)?);
            let was_page = row.get(8)?;
            let before = before.as_deref().map(|identity| Before { identity, was_page });
            Seen::between(before, answer_of(row.get(3)?), &identity)
        }
    };
    let (page, site) = (PageId(row.get(0)?), SiteId(row.get(1)?));
    let time = Timestamp::from_millis(row.get(2)?);
    Ok(seen.map(|seen| Look { page, site, time, seen, is_analysed: lesson.is_some() }))
}
