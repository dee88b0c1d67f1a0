//! Captures and lessons -> looks: the one query for "which captures are looks at a page, and what did each show".
//!
//! For a look that was analysed its lesson says what it showed. Another is judged by its answer and the answer before it
//! ([`ChangeStatus::between`]).

use perennial_core::http::verdict::{AnswerKind, Identity};
use perennial_core::page::look::{Before, ChangeStatus};
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};
use rusqlite::types::Value;
use rusqlite::{params, params_from_iter};

use super::lessons::status_of;
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
    pub status: ChangeStatus,
    /// Whether `status` is from a lesson.
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

/// A page whose looks are asked for.
struct Watched {
    page: PageId,
    site: SiteId,
    /// Whether every capture of it is a look with a lesson, so that the lessons alone tell everything.
    is_learned: bool,
}

impl Store {
    /// Calls `each` with every look before `until`. Of several captures of a page in one second the first counts. The lessons of
    /// pages are read alone where they tell everything, which is a sixth of the work.
    pub fn looks(
        &self,
        selection: Selection<'_>,
        order: LookOrder,
        until: Timestamp,
        mut each: impl FnMut(Look) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let pages = self.watched(selection)?;
        match (order, selection) {
            (LookOrder::ByPage, _) => pages.iter().try_for_each(|page| self.looks_at(page, until, &mut each)),
            (LookOrder::ByTime, Selection::Pages) => self.looks_by_time(&pages, until, each),
            // Those of a site are few enough to be sorted here.
            (LookOrder::ByTime, Selection::Of(_)) => {
                sorted(|each| pages.iter().try_for_each(|page| self.looks_at(page, until, each)))?
                    .into_iter()
                    .try_for_each(each)
            }
        }
    }

    /// The pages by number.
    fn watched(&self, selection: Selection<'_>) -> anyhow::Result<Vec<Watched>> {
        let (filter, only) = self.filter_of(selection)?;
        let mut statement = self.connection().prepare(&format!(
            "SELECT p.id, p.site, p.n_captures = (SELECT count(*) FROM lessons l WHERE l.page = p.id)
             FROM pages p WHERE p.n_captures > 0 AND {filter} ORDER BY p.id"
        ))?;
        let pages = statement.query_map(params_from_iter(only), |row| {
            Ok(Watched { page: PageId(row.get(0)?), site: SiteId(row.get(1)?), is_learned: row.get(2)? })
        })?;
        Ok(pages.collect::<rusqlite::Result<_>>()?)
    }

    /// The looks at one page in order of time.
    fn looks_at(
        &self,
        watched: &Watched,
        until: Timestamp,
        each: &mut dyn FnMut(Look) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if !watched.is_learned {
            return self.looks_by_captures(watched, until, each);
        }
        let mut statement = self.connection().prepare_cached(
            "SELECT time, seen, importance FROM lessons WHERE page = ?1 AND time < ?2 ORDER BY time",
        )?;
        let mut rows = statement.query(params![watched.page.0, until.as_millis()])?;
        while let Some(row) = rows.next()? {
            let status = status_of(row.get(1)?, row.get(2)?);
            each(watched.look(Timestamp::from_millis(row.get(0)?), status, true))?;
        }
        Ok(())
    }

    /// The same for a page with captures that are no looks, or have no lesson.
    fn looks_by_captures(
        &self,
        watched: &Watched,
        until: Timestamp,
        each: &mut dyn FnMut(Look) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut statement = self.connection().prepare_cached(&format!(
            "SELECT c.time, c.answer, {IDENTITY}, l.seen, l.importance
             FROM captures c LEFT JOIN lessons l ON l.page = c.page AND l.time = c.time
             WHERE c.page = ?1 AND c.time < ?2 AND c.answer IS NOT NULL AND c.answer < 4 ORDER BY c.time, c.id"
        ))?;
        let mut rows = statement.query(params![watched.page.0, until.as_millis()])?;
        let (mut last, mut before, mut was_page) = (None, None::<Identity>, false);
        while let Some(row) = rows.next()? {
            let time = Timestamp::from_millis(row.get(0)?);
            if last.replace(time) == Some(time) {
                continue;
            }
            let (answer, identity) = (answer_of(row.get(1)?), Identity::parse(row.get_ref(2)?.as_str()?));
            let lesson: Option<i64> = row.get(3)?;
            let status = match lesson {
                Some(code) => Some(status_of(code, row.get(4)?)),
                None => {
                    let before = before.as_ref().map(|identity| Before { identity, was_page });
                    ChangeStatus::between(before, answer, &identity)
                }
            };
            was_page |= matches!(answer, AnswerKind::Content | AnswerKind::NotModified);
            before = Some(identity);
            if let Some(status) = status {
                each(watched.look(time, status, lesson.is_some()))?;
            }
        }
        Ok(())
    }

    /// The looks at all these pages in order of time. Only those that the lessons do not tell are held in memory.
    fn looks_by_time(
        &self,
        pages: &[Watched],
        until: Timestamp,
        mut each: impl FnMut(Look) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut others = sorted(|each| {
            let others = pages.iter().filter(|page| !page.is_learned);
            others.into_iter().try_for_each(|page| self.looks_by_captures(page, until, each))
        })?
        .into_iter()
        .peekable();
        let mut statement = self.connection().prepare_cached(
            "SELECT page, time, seen, importance FROM lessons WHERE time < ?1 ORDER BY time, page",
        )?;
        let mut rows = statement.query([until.as_millis()])?;
        while let Some(row) = rows.next()? {
            let page = PageId(row.get(0)?);
            let Ok(place) = pages.binary_search_by_key(&page, |known| known.page) else { continue };
            let Some(watched) = pages.get(place).filter(|known| known.is_learned) else { continue };
            let status = status_of(row.get(2)?, row.get(3)?);
            let look = watched.look(Timestamp::from_millis(row.get(1)?), status, true);
            while let Some(other) = others.next_if(|other| (other.time, other.page) < (look.time, look.page))
            {
                each(other)?;
            }
            each(look)?;
        }
        others.try_for_each(each)
    }

    /// The condition in SQL and what it compares with.
    fn filter_of(&self, selection: Selection<'_>) -> anyhow::Result<(String, Option<Value>)> {
        let Selection::Of(name) = selection else { return Ok((PAGES.to_owned(), None)) };
        if let Some(page) = self.page(name)? {
            return Ok(("p.id = ?1".to_owned(), Some(Value::from(i64::from(page.id.0)))));
        }
        let sites = "SELECT id FROM sites WHERE host = ?1 OR substr(host, 1, length(?1) + 1) = ?1 || ':'";
        Ok((format!("p.site IN ({sites}) AND {PAGES}"), Some(Value::from(name.to_owned()))))
    }
}

impl Watched {
    fn look(&self, time: Timestamp, status: ChangeStatus, is_analysed: bool) -> Look {
        Look { page: self.page, site: self.site, time, status, is_analysed }
    }
}

/// The looks that `read` tells, in order of time over all pages.
fn sorted(
    read: impl FnOnce(&mut dyn FnMut(Look) -> anyhow::Result<()>) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Look>> {
    let mut looks = Vec::new();
    read(&mut |look| {
        looks.push(look);
        Ok(())
    })?;
    looks.sort_unstable_by_key(|look| (look.time, look.page));
    Ok(looks)
}
