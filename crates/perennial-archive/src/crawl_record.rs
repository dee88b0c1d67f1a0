//! `crawl.json`: options, visits in flight and plan of the running crawl, for other processes.
//!
//! After the crawl the file remains, because the next crawl probably has the same options.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::lock;

const FILE: &str = "crawl.json";

/// Options of the last crawl, and its state when it last wrote the file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlRecord {
    /// The number of the process.
    pub process: u32,
    pub began: String,
    pub updated: String,
    /// The overall budget in force, such as `100/1h`; none without a limit of visits.
    pub budget: Option<String>,
    /// Whether the budget was given on the command line.
    pub is_budget_given: bool,
    /// The goal for all sites, if it was given on the command line.
    pub goal: Option<String>,
    pub strategy: String,
    /// Options of the strategy, if they were given on the command line.
    pub varying_budget: Option<bool>,
    pub interval_secs: Option<i64>,
    /// The visits in flight, the oldest first.
    pub fetching: Vec<FetchInProgress>,
    /// URLs that wait for their host.
    pub n_waiting: u64,
    /// When the plan was made; none if there is none.
    pub planned: Option<String>,
    /// The next visits, in order, as values of the plan's own type.
    pub plan: Vec<serde_json::Value>,
}

/// A visit in flight.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FetchInProgress {
    pub url: String,
    /// When it started.
    pub since: String,
}

impl CrawlRecord {
    /// The record of the last crawl; `None` if there is none or it is unreadable.
    pub fn load(root: &Path) -> Option<CrawlRecord> {
        serde_json::from_slice(&fs::read(path(root)).ok()?).ok()
    }

    /// The record of the crawl that runs now.
    pub fn of_running(root: &Path) -> Option<CrawlRecord> {
        let record = CrawlRecord::load(root)?;
        lock::is_written_by(root, record.process).then_some(record)
    }

    /// Writes the record. Readers see the old one or the new one. It need not survive a power cut, so it is not synced.
    pub fn save(&self, root: &Path) -> anyhow::Result<()> {
        let (path, beside) = (path(root), path(root).with_extension("json.tmp"));
        fs::write(&beside, serde_json::to_vec(self)?)?;
        Ok(fs::rename(beside, path)?)
    }
}

fn path(root: &Path) -> PathBuf {
    root.join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_record_of_the_process_that_holds_the_lock_is_of_a_running_crawl() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(CrawlRecord::load(dir.path()), None);
        let mine = CrawlRecord { process: std::process::id(), ..CrawlRecord::default() };
        mine.save(dir.path()).unwrap();
        assert_eq!(CrawlRecord::of_running(dir.path()), None, "no lock is held");
        let lock = lock::WriteLock::take(dir.path()).unwrap();
        assert_eq!(CrawlRecord::of_running(dir.path()), Some(mine.clone()));
        CrawlRecord { process: 1, ..mine.clone() }.save(dir.path()).unwrap();
        assert_eq!(CrawlRecord::of_running(dir.path()), None, "another command holds it");
        drop(lock);
        fs::write(path(dir.path()), "{\"process\":").unwrap();
        assert_eq!(CrawlRecord::load(dir.path()), None);
    }
}
