//! Finds the steps from one version of a page to the next, which the banner offers, from the analyses.

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use rusqlite::{Row, params};

use super::Store;
use super::analyses::{IS_NEW_VERSION, parse_change_status};
use super::rows::{Columns, Statements};

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VersionStep {
    /// The observation that first showed it.
    pub time: Timestamp,
    /// How it relates to the observation before.
    pub status: ChangeStatus,
    /// Whether it is worth indexing (docs/papers.md, Index threshold): an important version.
    pub is_important: bool,
}

/// The versions of a page around an instant.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct VersionSteps {
    /// The version at the instant: the last that began at or before it.
    pub here: Option<VersionStep>,
    /// The version before `here`.
    pub previous: Option<VersionStep>,
    /// The version after `here`.
    pub next: Option<VersionStep>,
    /// The last important version before `here`.
    pub previous_important: Option<VersionStep>,
    /// The first important version after `here`.
    pub next_important: Option<VersionStep>,
}

impl Store {
    /// The versions of a page around an instant, as far as its observations are analysed.
    pub fn versions_around(&self, page: PageId, at: Timestamp) -> anyhow::Result<VersionSteps> {
        let here = self.step(page, "time <= ?2", "DESC", at, false)?;
        let Some(from) = here.map(|here| here.time) else {
            let next = self.step(page, "time > ?2", "ASC", at, false)?;
            let next_important = self.step(page, "time > ?2", "ASC", at, true)?;
            return Ok(VersionSteps { next, next_important, ..VersionSteps::default() });
        };
        Ok(VersionSteps {
            here,
            previous: self.step(page, "time < ?2", "DESC", from, false)?,
            next: self.step(page, "time > ?2", "ASC", at, false)?,
            previous_important: self.step(page, "time < ?2", "DESC", from, true)?,
            next_important: self.step(page, "time > ?2", "ASC", at, true)?,
        })
    }

    fn step(
        &self,
        page: PageId,
        condition: &str,
        order: &str,
        at: Timestamp,
        is_important: bool,
    ) -> anyhow::Result<Option<VersionStep>> {
        let important = if is_important { "AND is_indexed" } else { "" };
        let sql = format!(
            "SELECT time, seen, importance, is_indexed FROM lessons l
                WHERE page = ?1 AND {condition} AND {IS_NEW_VERSION} {important} ORDER BY time {order}
                LIMIT 1"
        );
        self.connection.row(&sql, params![page.0, at.as_millis()], read_step)
    }
}

fn read_step(row: &Row<'_>) -> rusqlite::Result<VersionStep> {
    Ok(VersionStep {
        time: row.time(0)?,
        status: parse_change_status(row.get(1)?, row.get(2)?),
        is_important: row.get(3)?,
    })
}
