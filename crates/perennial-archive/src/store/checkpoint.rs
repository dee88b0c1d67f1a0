//! Stores the scheduler's checkpoint, which contains shadow prices, in the table `crawl_bearings`.

use perennial_core::schedule::Checkpoint;

use super::rows::Statements;
use super::{Commit, Store};

impl Commit<'_> {
    /// Replaces the stored checkpoint.
    pub fn put_checkpoint(&self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        let text = serde_json::to_string(checkpoint)?;
        self.transaction.run("INSERT OR REPLACE INTO crawl_bearings (id, bearings) VALUES (1, ?1)", [text])
    }
}

impl Store {
    /// The checkpoint of the last crawl. The scheduler computes an unreadable one again.
    pub fn checkpoint(&self) -> anyhow::Result<Option<Checkpoint>> {
        let text: Option<String> =
            self.connection.row("SELECT bearings FROM crawl_bearings", [], |row| row.get(0))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}
