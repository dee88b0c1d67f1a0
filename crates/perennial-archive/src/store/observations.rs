//! Derives observations from captures and analyses: the one query for which captures are observations of a page, and
//! how each relates to the one before.
//!
//! The analysis of an observation contains its status. Without an analysis, the status follows from its response and
//! the response before it ([`ChangeStatus::between`]).

use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::page::change_status::{ChangeStatus, PreviousResponse};
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};
use rusqlite::types::Value;
use rusqlite::{params, params_from_iter};

use super::analyses::parse_change_status;
use super::rows::{Columns, Statements};
use super::{IDENTITY, Store};

/// Pages that people read: those visited as pages or, if no crawl visited them, HTML.
pub(super) const PAGES: &str = "p.kind = 0";

/// Pages and feeds are analysed, because people read both. Counts and schedules do not treat feeds as pages.
pub(super) const ANALYSED: &str = "p.kind <= 0";

/// Which pages' observations are read.
#[derive(Clone, Copy, Debug)]
pub enum ObservationSelection<'a> {
    /// All pages that people read.
    Pages,
    /// The pages of this host, or the page with this URL. A host without a port matches that host on any port.
    Of(&'a str),
}

/// The order in which observations are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObservationOrder {
    /// Page by page, each in order of time.
    ByPage,
    /// In order of time over all pages.
    ByTime,
}

/// One observation of a page.
#[derive(Clone, PartialEq, Debug)]
pub struct Observation {
    pub page: PageId,
    pub site: SiteId,
    /// When it was captured.
    pub time: Timestamp,
    /// How it relates to the observation before.
    pub status: ChangeStatus,
    /// Whether `status` is from an analysis.
    pub is_analysed: bool,
}

/// The number in the state file.
pub(super) fn response_kind_code(kind: ResponseKind) -> i64 {
    match kind {
        ResponseKind::Content => 0,
        ResponseKind::NotModified => 1,
        ResponseKind::Redirect => 2,
        ResponseKind::Gone => 3,
        ResponseKind::Failed => 4,
    }
}

/// From the number in the state file.
pub(super) fn parse_response_kind(code: i64) -> ResponseKind {
    match code {
        0 => ResponseKind::Content,
        1 => ResponseKind::NotModified,
        2 => ResponseKind::Redirect,
        3 => ResponseKind::Gone,
        _ => ResponseKind::Failed,
    }
}

/// A page whose observations are read.
struct ObservedPage {
    page: PageId,
    site: SiteId,
    /// Whether every capture is an analysed observation, in which case the analyses alone contain everything.
    is_analysed: bool,
}

impl Store {
    /// Calls `each` with every observation before `until`. Among several captures of a page in one second, the first
    /// counts. If every capture of a page was analysed, only the analyses are read, which is a sixth of the work.
    pub fn observations(
        &self,
        selection: ObservationSelection<'_>,
        order: ObservationOrder,
        until: Timestamp,
        mut each: impl FnMut(Observation) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let pages = self.watched(selection)?;
        match (order, selection) {
            (ObservationOrder::ByPage, _) => {
                pages.iter().try_for_each(|page| self.page_observations(page, until, &mut each))
            }
            (ObservationOrder::ByTime, ObservationSelection::Pages) => {
                self.observations_by_time(&pages, until, each)
            }
            // The observations of a site are few enough to sort here.
            (ObservationOrder::ByTime, ObservationSelection::Of(_)) => {
                sorted(|each| pages.iter().try_for_each(|page| self.page_observations(page, until, each)))?
                    .into_iter()
                    .try_for_each(each)
            }
        }
    }

    /// The selected pages, in order of their numbers.
    fn watched(&self, selection: ObservationSelection<'_>) -> anyhow::Result<Vec<ObservedPage>> {
        let (filter, only) = self.page_condition(selection)?;
        let sql = format!(
            "SELECT p.id, p.site, p.n_captures = (SELECT count(*) FROM lessons l WHERE l.page = p.id)
                FROM pages p WHERE p.n_captures > 0 AND {filter} ORDER BY p.id"
        );
        self.connection.rows(&sql, params_from_iter(only), |row| {
            Ok(ObservedPage {
                page: PageId(row.get(0)?),
                site: SiteId(row.get(1)?),
                is_analysed: row.get(2)?,
            })
        })
    }

    /// The observations of one page in order of time.
    fn page_observations(
        &self,
        watched: &ObservedPage,
        until: Timestamp,
        each: &mut dyn FnMut(Observation) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if !watched.is_analysed {
            return self.observations_by_captures(watched, until, each);
        }
        let sql = "SELECT time, seen, importance FROM lessons WHERE page = ?1 AND time < ?2 ORDER BY time";
        self.connection.each_row(sql, params![watched.page.0, until.as_millis()], |row| {
            let status = parse_change_status(row.get(1)?, row.get(2)?);
            each(watched.observation(row.time(0)?, status, true))
        })
    }

    /// The same for a page that has captures which are not observations or were not analysed.
    fn observations_by_captures(
        &self,
        watched: &ObservedPage,
        until: Timestamp,
        each: &mut dyn FnMut(Observation) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT c.time, c.answer, {IDENTITY}, l.seen, l.importance
             FROM captures c LEFT JOIN lessons l ON l.page = c.page AND l.time = c.time
             WHERE c.page = ?1 AND c.time < ?2 AND c.answer IS NOT NULL AND c.answer < 4 ORDER BY c.time, c.id"
        ))?;
        let mut rows = statement.query(params![watched.page.0, until.as_millis()])?;
        let (mut last, mut before, mut was_page) = (None, None::<Identity>, false);
        while let Some(row) = rows.next()? {
            let time = row.time(0)?;
            if last.replace(time) == Some(time) {
                continue;
            }
            let (response_kind, identity) =
                (parse_response_kind(row.get(1)?), Identity::parse(row.get_ref(2)?.as_str()?));
            let analysed: Option<i64> = row.get(3)?;
            let status = match analysed {
                Some(code) => Some(parse_change_status(code, row.get(4)?)),
                None => {
                    let before = before.as_ref().map(|identity| PreviousResponse { identity, was_page });
                    ChangeStatus::between(before, response_kind, &identity)
                }
            };
            was_page |= matches!(response_kind, ResponseKind::Content | ResponseKind::NotModified);
            before = Some(identity);
            if let Some(status) = status {
                each(watched.observation(time, status, analysed.is_some()))?;
            }
        }
        Ok(())
    }

    /// The observations of all these pages in order of time. Memory holds only those not read from the analyses.
    fn observations_by_time(
        &self,
        pages: &[ObservedPage],
        until: Timestamp,
        mut each: impl FnMut(Observation) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut others = sorted(|each| {
            let others = pages.iter().filter(|page| !page.is_analysed);
            others.into_iter().try_for_each(|page| self.observations_by_captures(page, until, each))
        })?
        .into_iter()
        .peekable();
        let mut statement = self.connection.prepare_cached(
            "SELECT page, time, seen, importance FROM lessons WHERE time < ?1 ORDER BY time, page",
        )?;
        let mut rows = statement.query([until.as_millis()])?;
        while let Some(row) = rows.next()? {
            let page = PageId(row.get(0)?);
            let Ok(place) = pages.binary_search_by_key(&page, |known| known.page) else { continue };
            let Some(watched) = pages.get(place).filter(|known| known.is_analysed) else { continue };
            let status = parse_change_status(row.get(2)?, row.get(3)?);
            let observation = watched.observation(row.time(1)?, status, true);
            while let Some(other) =
                others.next_if(|other| (other.time, other.page) < (observation.time, observation.page))
            {
                each(other)?;
            }
            each(observation)?;
        }
        others.try_for_each(each)
    }

    /// The SQL condition and the value that it compares with.
    fn page_condition(&self, selection: ObservationSelection<'_>) -> anyhow::Result<(String, Option<Value>)> {
        let ObservationSelection::Of(name) = selection else { return Ok((PAGES.to_owned(), None)) };
        if let Some(page) = self.page(name)? {
            return Ok(("p.id = ?1".to_owned(), Some(Value::from(i64::from(page.id.0)))));
        }
        let sites = "SELECT id FROM sites WHERE host = ?1 OR substr(host, 1, length(?1) + 1) = ?1 || ':'";
        Ok((format!("p.site IN ({sites}) AND {PAGES}"), Some(Value::from(name.to_owned()))))
    }
}

impl ObservedPage {
    fn observation(&self, time: Timestamp, status: ChangeStatus, is_analysed: bool) -> Observation {
        Observation { page: self.page, site: self.site, time, status, is_analysed }
    }
}

/// The observations that `read` passes on, in order of time over all pages.
fn sorted(
    read: impl FnOnce(&mut dyn FnMut(Observation) -> anyhow::Result<()>) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Observation>> {
    let mut observations = Vec::new();
    read(&mut |observation| {
        observations.push(observation);
        Ok(())
    })?;
    observations.sort_unstable_by_key(|observation| (observation.time, observation.page));
    Ok(observations)
}
