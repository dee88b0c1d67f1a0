//! Stores notices in `outbox.db`: what each rule has sent and still has to send, and up to which observation each page
//! was processed.
//!
//! Pending notices follow from the analyses: the outbox stores the last processed observation of each page, and
//! processes the later ones next. Sent notices follow from nothing else, so a rebuild keeps this file. Pages are
//! identified by a hash of their URL, because a rebuilt state numbers them differently.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, bail};
use perennial_core::notice::BlindWatch;
use perennial_core::time::Timestamp;
use rusqlite::{Connection, Row, params};
use serde::Serialize;

use super::page_sums::PageSums;
use super::reading::open_read_only;
use super::rows::{Columns, Statements};
use super::{BUSY_TIMEOUT, url_hash};

const OUTBOX_VERSION: i64 = 2;

/// Sent notices that are kept for display.
const MAX_SENT: i64 = 1_000;

const SCHEMA: &str = "
    CREATE TABLE rules (
        name TEXT PRIMARY KEY,
        since INTEGER,                   -- the time of the last capture before the rule was there; NULL: there was none
        n_sent INTEGER NOT NULL DEFAULT 0,
        last_sent INTEGER,
        n_failures INTEGER NOT NULL DEFAULT 0, -- in a row
        ready_at INTEGER NOT NULL DEFAULT 0,   -- nothing is sent before
        error TEXT,                      -- of the last failure; NULL: the last one was sent
        since_capture INTEGER            -- the number of the last capture before the rule was there; NULL: `since` counts
    ) WITHOUT ROWID;
    CREATE TABLE seen (
        page INTEGER PRIMARY KEY,        -- 64 bits of its address
        until INTEGER NOT NULL,          -- the last look that was taken in
        capture INTEGER                  -- its number; NULL: `until` counts
    );
    CREATE TABLE notices (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        rule TEXT NOT NULL,
        page INTEGER NOT NULL,
        time INTEGER NOT NULL,           -- of the look
        body TEXT NOT NULL,              -- the notice as JSON
        n_tries INTEGER NOT NULL DEFAULT 0,
        due INTEGER NOT NULL DEFAULT 0,  -- not to be sent before
        sent INTEGER,                    -- when it was taken; NULL: it waits
        UNIQUE (rule, page, time)
    );
    CREATE INDEX notices_waiting ON notices(rule, page, id) WHERE sent IS NULL;
    CREATE TABLE numbering (             -- one row: the state whose capture numbers the others contain
        id INTEGER PRIMARY KEY CHECK (id = 1),
        state INTEGER NOT NULL
    );
";

/// Adds what version 1 lacks.
const FROM_VERSION_1: &str = "
    ALTER TABLE rules ADD COLUMN since_capture INTEGER;
    ALTER TABLE seen ADD COLUMN capture INTEGER;
    CREATE TABLE numbering (id INTEGER PRIMARY KEY CHECK (id = 1), state INTEGER NOT NULL);
";

/// Added in version 2: watches that do not see their page.
const BLIND_SCHEMA: &str = "
    CREATE TABLE blind (
        rule TEXT NOT NULL,
        page INTEGER NOT NULL,           -- 64 bits of its address
        url TEXT NOT NULL,
        n_failures INTEGER NOT NULL,     -- visits in a row
        reason TEXT NOT NULL,            -- of the last one
        since INTEGER NOT NULL,          -- the first one
        is_reported INTEGER NOT NULL,
        PRIMARY KEY (rule, page)
    ) WITHOUT ROWID;
";

#[derive(Debug)]
pub struct Outbox {
    connection: Connection,
    /// Only of an outbox for writing.
    sums: Option<PageSums>,
}

/// Held while a thread writes. Each rule's thread has a connection, and a checkpoint must know all that is in the log.
static WRITING: Mutex<()> = Mutex::new(());

fn writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Outbox {
    fn drop(&mut self) {
        if let Some(sums) = &mut self.sums {
            let _writing = writing();
            // Without room on the disk, the log remains, and the next writer copies it.
            let _ = sums.checkpoint(&self.connection);
        }
    }
}

/// A notice that is added to the outbox.
#[derive(Clone, Debug)]
pub struct NewNotice {
    /// Name of the rule.
    pub rule: String,
    /// The observation that showed the change.
    pub time: Timestamp,
    /// The notice as JSON.
    pub body: String,
}

/// A place in the sequence of captures. A capture's number only grows, while its time is what a record or a clock
/// claims. A rebuilt state has other numbers; then only the time is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapturePlace {
    pub time: Option<Timestamp>,
    pub number: Option<i64>,
}

impl CapturePlace {
    /// Whether a capture was made after this place.
    pub fn is_before(&self, time: Timestamp, number: i64) -> bool {
        self.number.map_or_else(|| self.time.is_none_or(|at| time > at), |at| number > at)
    }
}

/// The processed observations of a page.
#[derive(Clone, Debug)]
pub struct PageNotices {
    pub url: String,
    /// The last processed observation, and its number.
    pub until: Timestamp,
    pub capture: i64,
    /// The times of all of them, in order.
    pub observed: Vec<Timestamp>,
    /// Its notices, in order of time.
    pub notices: Vec<NewNotice>,
}

/// A notice that waits to be sent.
#[derive(Clone, Debug)]
pub struct PendingNotice {
    pub id: i64,
    /// The notice as JSON.
    pub body: String,
    /// How often sending was tried.
    pub n_tries: u32,
}

/// The state of a rule, for display.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RuleState {
    pub name: String,
    /// Notices that wait.
    pub n_waiting: u64,
    /// Notices that the receiver acknowledged.
    pub n_sent: u64,
    /// When the last one was acknowledged.
    pub last_sent: Option<String>,
    /// Consecutive failures.
    pub n_failures: u32,
    /// When the next attempt is due; absent if none failed.
    pub ready_at: Option<String>,
    /// Why the last one failed.
    pub error: Option<String>,
    /// Pages that the rule cannot see, with the reasons.
    pub blind: Vec<BlindPage>,
}

/// A page that a rule does not see.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BlindPage {
    pub url: String,
    pub reason: String,
    pub since: String,
    /// Visits in a row.
    pub n_failures: u32,
}

impl Outbox {
    /// Opens for writing, and creates the file if it is missing. The caller holds the archive's write lock, or waits
    /// for the holder's commits.
    pub fn open_write(path: &Path) -> anyhow::Result<Outbox> {
        let opened = Outbox::try_open_write(path);
        opened.with_context(|| format!("cannot use {}; move it away, and rules start afresh", path.display()))
    }

    fn try_open_write(path: &Path) -> anyhow::Result<Outbox> {
        let mut outbox = Outbox::connect(path)?;
        outbox.make()?;
        Ok(outbox)
    }

    fn connect(path: &Path) -> anyhow::Result<Outbox> {
        let _writing = writing();
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A power cut may lose the last commits. Observations are then processed again, and notices sent again.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let sums = Some(PageSums::take_over(&connection, path)?);
        Ok(Outbox { connection, sums })
    }

    fn after_commit(&mut self) -> anyhow::Result<()> {
        match &mut self.sums {
            Some(sums) => sums.after_commit(&self.connection),
            None => Ok(()),
        }
    }

    fn make(&mut self) -> anyhow::Result<()> {
        let _writing = writing();
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match version {
            0 => {
                let sql = format!("{SCHEMA} {BLIND_SCHEMA} PRAGMA user_version = {OUTBOX_VERSION};");
                transaction.execute_batch(&sql)?;
            }
            1 => {
                let sql = format!("{FROM_VERSION_1} {BLIND_SCHEMA} PRAGMA user_version = {OUTBOX_VERSION};");
                transaction.execute_batch(&sql)?;
            }
            OUTBOX_VERSION => {}
            other => bail!("it has schema {other}: install a later perennial"),
        }
        Ok(transaction.commit()?)
    }

    /// Opens for reading; `None` if there was never anything to send.
    pub fn open_read(path: &Path) -> anyhow::Result<Option<Outbox>> {
        if !path.exists() {
            return Ok(None);
        }
        let connection = open_read_only(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(Some(Outbox { connection, sums: None }))
    }

    /// Adds new rules, which apply to captures after `latest` in the state with this identity. Removes the rules that
    /// no longer exist with their pending notices, and returns the number of these notices.
    pub fn keep_rules(&mut self, names: &[&str], latest: CapturePlace, state: i64) -> anyhow::Result<usize> {
        let _writing = writing();
        let transaction = self.connection.transaction()?;
        let numbered: Option<i64> = transaction.row("SELECT state FROM numbering", [], |row| row.get(0))?;
        if numbered != Some(state) {
            transaction.run("UPDATE rules SET since_capture = NULL", [])?;
            transaction.run("UPDATE seen SET capture = NULL", [])?;
            transaction.run("INSERT OR REPLACE INTO numbering (id, state) VALUES (1, ?1)", [state])?;
        }
        let known: Vec<String> = transaction.rows("SELECT name FROM rules", [], |row| row.get(0))?;
        let mut n_forgotten = 0;
        for gone in known.iter().filter(|name| !names.contains(&name.as_str())) {
            transaction.execute("DELETE FROM rules WHERE name = ?1", [gone])?;
            transaction.execute("DELETE FROM blind WHERE rule = ?1", [gone])?;
            n_forgotten +=
                transaction.execute("DELETE FROM notices WHERE rule = ?1 AND sent IS NULL", [gone])?;
        }
        for name in names {
            let sql = "INSERT OR IGNORE INTO rules (name, since, since_capture) VALUES (?1, ?2, ?3)";
            transaction.run(sql, params![name, latest.time.map(Timestamp::as_millis), latest.number])?;
        }
        transaction.commit()?;
        Ok(n_forgotten)
    }

    /// The last capture before the rule existed.
    pub fn since(&self, rule: &str) -> anyhow::Result<CapturePlace> {
        let sql = "SELECT since, since_capture FROM rules WHERE name = ?1";
        let place = self.connection.row(sql, [rule], read_place)?;
        Ok(place.unwrap_or(CapturePlace { time: None, number: None }))
    }

    /// The last processed observation of a page; `None` if there is none.
    pub fn seen(&self, url: &str) -> anyhow::Result<Option<CapturePlace>> {
        let sql = "SELECT until, capture FROM seen WHERE page = ?1";
        self.connection.row(sql, [url_hash(url) as i64], read_place)
    }

    /// Stores notices and processed observations of pages in one commit. An observation processed before is not
    /// changed.
    pub fn put(&mut self, taken: &[PageNotices]) -> anyhow::Result<()> {
        let _writing = writing();
        let transaction = self.connection.transaction()?;
        for page in taken {
            let hash = url_hash(&page.url) as i64;
            for notice in &page.notices {
                let sql = "INSERT OR IGNORE INTO notices (rule, page, time, body) VALUES (?1, ?2, ?3, ?4)";
                transaction.run(sql, params![notice.rule, hash, notice.time.as_millis(), notice.body])?;
            }
            let sql = "INSERT INTO seen (page, until, capture) VALUES (?1, ?2, ?3)
                ON CONFLICT (page) DO UPDATE SET until = excluded.until, capture = excluded.capture
                WHERE capture IS NULL OR capture <= excluded.capture";
            transaction.run(sql, params![hash, page.until.as_millis(), page.capture])?;
        }
        transaction.commit()?;
        self.after_commit()
    }

    /// Deletes all notices of pages that were erased. What was sent cannot be taken back.
    pub(crate) fn forget_pages(&mut self, urls: &[String]) -> anyhow::Result<()> {
        let _writing = writing();
        let transaction = self.connection.transaction()?;
        for url in urls {
            let hash = url_hash(url) as i64;
            transaction.run("DELETE FROM notices WHERE page = ?1", [hash])?;
            transaction.run("DELETE FROM seen WHERE page = ?1", [hash])?;
        }
        transaction.commit()?;
        // Deleted rows remain in the free pages of the file until it is rewritten.
        self.connection.execute_batch("VACUUM")?;
        self.after_commit()
    }

    /// Whether a rule sees a page; `None` if it does.
    pub fn blind(&self, rule: &str, url: &str) -> anyhow::Result<Option<BlindWatch>> {
        let sql = "SELECT n_failures, reason, since, is_reported FROM blind WHERE rule = ?1 AND page = ?2";
        self.connection.row(sql, params![rule, url_hash(url) as i64], |row| {
            Ok(BlindWatch {
                n_failures: row.get(0)?,
                reason: row.get(1)?,
                since: row.time(2)?,
                is_reported: row.get(3)?,
            })
        })
    }

    /// Stores whether a rule sees a page, with the notice about it, in one commit.
    pub fn put_blind(
        &mut self,
        rule: &str,
        url: &str,
        watch: Option<&BlindWatch>,
        notice: Option<&NewNotice>,
    ) -> anyhow::Result<()> {
        let transaction = self.connection.transaction()?;
        let hash = url_hash(url) as i64;
        match watch {
            Some(BlindWatch { n_failures, reason, since, is_reported }) => {
                let sql =
                    "INSERT OR REPLACE INTO blind (rule, page, url, n_failures, reason, since, is_reported)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
                let values = params![rule, hash, url, n_failures, reason, since.as_millis(), is_reported];
                transaction.run(sql, values)?;
            }
            None => {
                transaction.run("DELETE FROM blind WHERE rule = ?1 AND page = ?2", params![rule, hash])?
            }
        }
        if let Some(notice) = notice {
            let sql = "INSERT OR IGNORE INTO notices (rule, page, time, body) VALUES (?1, ?2, ?3, ?4)";
            transaction.run(sql, params![notice.rule, hash, notice.time.as_millis(), notice.body])?;
        }
        Ok(transaction.commit()?)
    }

    fn blind_pages(&self, rule: &str) -> anyhow::Result<Vec<BlindPage>> {
        let is_old: i64 = self.connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        // A reader may see the file before a crawl of this release has opened it.
        if is_old < 2 {
            return Ok(Vec::new());
        }
        let sql = "SELECT url, reason, since, n_failures FROM blind WHERE rule = ?1 ORDER BY url LIMIT 100";
        self.connection.rows(sql, [rule], |row| {
            let since = row.time(2)?.to_rfc3339();
            Ok(BlindPage { url: row.get(0)?, reason: row.get(1)?, since, n_failures: row.get(3)? })
        })
    }

    /// The next notice of a rule with a number above `after` that may be sent now: the first pending one of its page.
    /// With `is_asked`, notices waiting for a retry are included.
    pub fn next(
        &self,
        rule: &str,
        now: Timestamp,
        is_requested: bool,
        after: i64,
    ) -> anyhow::Result<Option<PendingNotice>> {
        let read =
            |row: &Row<'_>| Ok(PendingNotice { id: row.get(0)?, body: row.get(1)?, n_tries: row.get(2)? });
        let values = params![rule, now.as_millis(), is_requested, after];
        let sql = "SELECT n.id, n.body, n.n_tries FROM notices n JOIN rules r ON r.name = n.rule
            WHERE n.rule = ?1 AND n.sent IS NULL AND (?3 OR n.due <= ?2 AND r.ready_at <= ?2)
            AND n.id > ?4
              AND NOT EXISTS (SELECT 1 FROM notices m
                WHERE m.rule = n.rule AND m.page = n.page AND m.sent IS NULL AND m.id < n.id)
            ORDER BY n.id LIMIT 1";
        self.connection.row(sql, values, read)
    }

    /// When the next notice of a rule may be sent; `None` if none is pending.
    pub fn next_due(&self, rule: &str) -> anyhow::Result<Option<Timestamp>> {
        let sql = "SELECT max(r.ready_at, (SELECT min(n.due) FROM notices n WHERE n.rule = r.name
            AND n.sent IS NULL
              AND NOT EXISTS (SELECT 1 FROM notices m
                WHERE m.rule = n.rule AND m.page = n.page AND m.sent IS NULL AND m.id < n.id)))
            FROM rules r WHERE r.name = ?1";
        self.connection.time(sql, [rule])
    }

    /// Consecutive failures of a rule.
    pub fn n_failures(&self, rule: &str) -> anyhow::Result<u32> {
        let sql = "SELECT n_failures FROM rules WHERE name = ?1";
        Ok(self.connection.row(sql, [rule], |row| row.get(0))?.unwrap_or_default())
    }

    /// Records that the receiver acknowledged a notice.
    pub fn put_sent(&mut self, rule: &str, id: i64, now: Timestamp) -> anyhow::Result<()> {
        let _writing = writing();
        let transaction = self.connection.transaction()?;
        let now = now.as_millis();
        let sql = "UPDATE notices SET sent = ?2, n_tries = n_tries + 1 WHERE id = ?1";
        transaction.run(sql, params![id, now])?;
        let sql = "UPDATE rules SET n_sent = n_sent + 1, last_sent = ?2, n_failures = 0, ready_at = 0,
            error = NULL WHERE name = ?1";
        transaction.run(sql, params![rule, now])?;
        transaction.run("DELETE FROM notices WHERE sent IS NOT NULL AND id <= ?1 - ?2", [id, MAX_SENT])?;
        Ok(transaction.commit()?)
    }

    /// Records that a notice failed, and retries it at `again`. If the notice itself was not the cause, the rule sends
    /// nothing before then.
    pub fn put_failed(
        &mut self,
        rule: &str,
        id: i64,
        error: &str,
        again: Timestamp,
        is_own_fault: bool,
    ) -> anyhow::Result<()> {
        let _writing = writing();
        let transaction = self.connection.transaction()?;
        let again = again.as_millis();
        transaction.run("UPDATE notices SET n_tries = n_tries + 1, due = ?2 WHERE id = ?1", [id, again])?;
        let sql = "UPDATE rules SET error = ?2, n_failures = n_failures + (NOT ?3),
              ready_at = CASE WHEN ?3 THEN ready_at ELSE ?4 END WHERE name = ?1";
        transaction.run(sql, params![rule, error, is_own_fault, again])?;
        Ok(transaction.commit()?)
    }

    /// The state of each rule, by name.
    pub fn states(&self) -> anyhow::Result<Vec<RuleState>> {
        let sql = "SELECT name, n_sent, last_sent, n_failures, ready_at, error,
              (SELECT count(*) FROM notices WHERE rule = name AND sent IS NULL)
            FROM rules ORDER BY name";
        let mut states: Vec<RuleState> = self.connection.rows(sql, [], |row| {
            Ok(RuleState {
                name: row.get(0)?,
                n_sent: row.count(1)?,
                last_sent: row.optional_time(2)?.map(Timestamp::to_rfc3339),
                n_failures: row.get(3)?,
                ready_at: row
                    .optional_time(4)?
                    .filter(|at| *at > Timestamp::EPOCH)
                    .map(Timestamp::to_rfc3339),
                error: row.get(5)?,
                n_waiting: row.count(6)?,
                blind: Vec::new(),
            })
        })?;
        for state in &mut states {
            state.blind = self.blind_pages(&state.name)?;
        }
        Ok(states)
    }
}

fn read_place(row: &Row<'_>) -> rusqlite::Result<CapturePlace> {
    Ok(CapturePlace { time: row.optional_time(0)?, number: row.get(1)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn taken(url: &str, times: &[i64]) -> PageNotices {
        let notice =
            |secs: &i64| NewNotice { rule: "r".into(), time: at(*secs), body: format!("{url}@{secs}") };
        PageNotices {
            url: url.into(),
            until: at(*times.last().unwrap()),
            capture: *times.last().unwrap(),
            observed: times.iter().copied().map(at).collect(),
            notices: times.iter().map(notice).collect(),
        }
    }

    #[test]
    fn notices_of_a_page_wait_for_those_before_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("outbox.db");
        let mut outbox = Outbox::open_write(&path).unwrap();
        let start = CapturePlace { time: Some(at(1)), number: Some(1) };
        outbox.keep_rules(&["r"], start, 7).unwrap();
        outbox.put(&[taken("a", &[10, 20]), taken("b", &[15])]).unwrap();
        outbox.put(&[taken("a", &[10, 20])]).unwrap();
        let body = |outbox: &Outbox, now| outbox.next("r", at(now), false, 0).unwrap().map(|next| next.body);
        assert_eq!(body(&outbox, 0).as_deref(), Some("a@10"));
        let first = outbox.next("r", at(0), false, 0).unwrap().unwrap();
        // The notice is at fault: the other page's notice is sent, and the later notice of the same page waits.
        outbox.put_failed("r", first.id, "400", at(100), true).unwrap();
        let other = outbox.next("r", at(0), false, 0).unwrap().unwrap();
        assert_eq!(other.body, "b@15");
        outbox.put_sent("r", other.id, at(5)).unwrap();
        assert_eq!(body(&outbox, 50), None);
        assert_eq!(outbox.next_due("r").unwrap(), Some(at(100)));
        assert_eq!(body(&outbox, 100).as_deref(), Some("a@10"));
        // The notice is not at fault: the rule sends nothing.
        outbox.put_failed("r", first.id, "no answer", at(200), false).unwrap();
        assert_eq!(body(&outbox, 150), None);
        assert_eq!(
            outbox.next("r", at(150), true, 0).unwrap().unwrap().body,
            "a@10",
            "whoever asks does not wait"
        );
        assert_eq!(outbox.next("r", at(150), true, first.id).unwrap().map(|next| next.body), None);
        drop(outbox);
        let mut outbox = Outbox::open_write(&path).unwrap();
        outbox.put_sent("r", first.id, at(300)).unwrap();
        assert_eq!(body(&outbox, 300).as_deref(), Some("a@20"));
        let state = &outbox.states().unwrap()[0];
        assert_eq!((state.n_waiting, state.n_sent, state.n_failures), (1, 2, 0));
        assert_eq!(outbox.seen("a").unwrap(), Some(CapturePlace { time: Some(at(20)), number: Some(20) }));
        assert_eq!(outbox.since("r").unwrap(), start);
        assert_eq!(outbox.keep_rules(&["q"], start, 7).unwrap(), 1, "a rule that is gone sends nothing");
        outbox.keep_rules(&["q"], start, 8).unwrap();
        let rebuilt = CapturePlace { number: None, ..start };
        assert_eq!(outbox.since("q").unwrap(), rebuilt, "a rebuilt state has other numbers");
        assert_eq!(outbox.states().unwrap().len(), 1);
    }
}
