//! What the scheduler found out about prices <-> the table `crawl_bearings`.

use perennial_core::schedule::Checkpoint;

use super::rows::Statements;
use super::{Commit, Store};

impl Commit<'_> {
    /// Keeps what the scheduler knows now in place of what it knew before.
    pub fn put_checkpoint(&self, bearings: &Checkpoint) -> anyhow::Result<()> {
        let text = serde_json::to_string(bearings)?;
        self.transaction.run("INSERT OR REPLACE INTO crawl_bearings (id, bearings) VALUES (1, ?1)", [text])
    }
}

impl Store {
    /// What the last crawl knew of prices. What cannot be read is found out again.
    pub fn checkpoint(&self) -> anyhow::Result<Option<Checkpoint>> {
        let text: Option<String> =
            self.connection.row("SELECT bearings FROM crawl_bearings", [], |row| row.get(0))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}
