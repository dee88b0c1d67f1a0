//! What earlier visits taught -> the scheduler's knowledge: an archive of ten years starts with what it knows.
//!
//! Nothing learned is stored twice: rates and patterns are a function of the observations, and telling them
//! again takes a second a million.

use perennial_core::importance::Importance;
use perennial_core::page::PageId;
use perennial_core::schedule::{Scheduler, VisitOutcome};
use perennial_core::time::Timestamp;
use rusqlite::Connection;

use super::frontier::Ending;

/// Tells the scheduler every visit that was analysed, in order of time, then how the others ended.
pub fn replay(connection: &Connection, scheduler: &mut Scheduler, now: Timestamp) -> anyhow::Result<()> {
    each_observation(connection, |page, outcome, time| scheduler.record(page, outcome, time))?;
    let mut statement = connection.prepare(
        "SELECT page, visited, ending FROM crawl_pages WHERE kind = 0 AND visited IS NOT NULL
         AND (ending > 1 OR page NOT IN (SELECT page FROM known))",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let outcome = match Ending::from_code(row.get(2)?) {
            Ending::Changed | Ending::Unchanged => VisitOutcome::Unchanged,
            Ending::Failed => VisitOutcome::Failed { retry_at: None },
            Ending::Gone => VisitOutcome::Gone,
        };
        scheduler.record(PageId(row.get(0)?), outcome, Timestamp::from_millis(row.get(1)?));
    }
    scheduler.learn_now(now);
    Ok(())
}

/// Every observation in order of time, as the scheduler takes it.
pub fn each_observation(
    connection: &Connection,
    mut each: impl FnMut(PageId, VisitOutcome, Timestamp),
) -> anyhow::Result<()> {
    let mut statement = connection.prepare(
        "SELECT page, time, importance, before IS NULL OR (delta IS NOT NULL AND NOT is_noise)
         FROM observations ORDER BY time",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let outcome = match row.get(3)? {
            true => VisitOutcome::Changed(Importance::new(row.get(2)?)),
            false => VisitOutcome::Unchanged,
        };
        each(PageId(row.get(0)?), outcome, Timestamp::from_millis(row.get(1)?));
    }
    Ok(())
}
