//! Observations <-> the tables `observations`, `trees` and `known`. All of it can be made again from the
//! captures, so nothing here is the only copy of anything.

use anyhow::Context;
use perennial_core::importance::Importance;
use perennial_core::noise::NoiseHistory;
use perennial_core::observe::{Known, Observation};
use perennial_core::page::PageId;
use perennial_core::schedule::VisitOutcome;
use perennial_core::segment::{BlockTree, vixml};
use perennial_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

/// Level at which trees and deltas are packed: they are small and written often.
const ZSTD_LEVEL: i32 = 3;
/// A tree or delta that unpacks to more than this is damaged.
const MAX_UNPACKED_BYTES: u64 = 256 << 20;

/// What the next capture of a page is compared with.
#[derive(Clone, Debug)]
pub struct KnownPage {
    tree: Tree,
    noise: NoiseHistory,
    /// Payload of the capture that was analysed last: the same again needs no look.
    pub digest: String,
    /// The capture that was analysed last.
    pub time: Timestamp,
    /// The capture whose tree it is: earlier than `time` when later ones showed the same.
    pub tree_time: Timestamp,
}

/// Most visits find the same payload and never need the tree.
#[derive(Clone, Debug)]
enum Tree {
    Packed(Vec<u8>),
    Read(BlockTree),
}

impl KnownPage {
    /// Tree and noise history, as the comparison wants them.
    pub fn known(&self) -> anyhow::Result<Known> {
        let tree = match &self.tree {
            Tree::Packed(packed) => read_tree(packed)?,
            Tree::Read(tree) => tree.clone(),
        };
        Ok(Known { tree, noise: self.noise.clone() })
    }
}

/// What one capture taught, ready to be kept. Made by the thread that analysed, written by the one that
/// owns the state.
#[derive(Clone, Debug)]
pub struct Lesson {
    page: PageId,
    time: Timestamp,
    before: Option<Timestamp>,
    /// How much the change matters.
    pub importance: Importance,
    /// There were changes, all of them noise.
    pub is_noise: bool,
    n_operations: usize,
    delta: Option<Vec<u8>>,
    tree: Option<Vec<u8>>,
    tree_time: Timestamp,
    noise: Vec<u8>,
    digest: String,
}

impl Lesson {
    /// A capture with the payload of the one before: nothing to look at.
    pub fn same_payload(page: PageId, time: Timestamp, known: &mut KnownPage) -> Lesson {
        known.noise.record_unchanged();
        let before = std::mem::replace(&mut known.time, time);
        Lesson {
            page,
            time,
            before: Some(before),
            importance: Importance::NONE,
            is_noise: false,
            n_operations: 0,
            delta: None,
            tree: None,
            tree_time: known.tree_time,
            noise: known.noise.to_bytes(),
            digest: known.digest.clone(),
        }
    }

    /// A capture that was looked at, and what is known of the page from now on.
    pub fn seen(
        page: PageId,
        time: Timestamp,
        digest: String,
        before: Option<&KnownPage>,
        observation: Observation,
    ) -> anyhow::Result<(Lesson, KnownPage)> {
        let kept_tree = before.filter(|_| observation.is_unchanged()).map(|known| known.tree_time);
        let delta = observation.delta.as_ref().filter(|delta| !delta.is_empty());
        let tree = &observation.known.tree;
        let lesson = Lesson {
            page,
            time,
            before: before.map(|known| known.time),
            importance: observation.importance(),
            is_noise: observation.is_only_noise,
            n_operations: observation.assessment.contributions.len(),
            delta: delta.map(|delta| pack(&delta.to_xml(tree))).transpose()?,
            tree: kept_tree.is_none().then(|| pack(&vixml::write(tree))).transpose()?,
            tree_time: kept_tree.unwrap_or(time),
            noise: observation.known.noise.to_bytes(),
            digest: digest.clone(),
        };
        let Known { tree, noise } = observation.known;
        let known = KnownPage { tree: Tree::Read(tree), noise, digest, time, tree_time: lesson.tree_time };
        Ok((lesson, known))
    }

    /// Which page.
    pub fn page(&self) -> PageId {
        self.page
    }

    /// The capture.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// What the scheduler is told.
    pub fn outcome(&self) -> VisitOutcome {
        match self.is_unchanged() {
            true => VisitOutcome::Unchanged,
            false => VisitOutcome::Changed(self.importance),
        }
    }

    /// Nothing changed that a reader would call new.
    pub fn is_unchanged(&self) -> bool {
        self.delta.is_none() && self.before.is_some() || self.is_noise
    }

    /// Writes it down. Lessons of one page come in order of time.
    pub fn keep(&self, connection: &Connection) -> anyhow::Result<()> {
        let (page, time) = (self.page.0, self.time.as_millis());
        let before = self.before.map(Timestamp::as_millis);
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO observations (page, time, before, importance, is_noise, n_operations, delta)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                page,
                time,
                before,
                self.importance.get(),
                self.is_noise,
                self.n_operations as i64,
                self.delta
            ])?;
        if let Some(tree) = &self.tree {
            connection
                .prepare_cached("INSERT OR REPLACE INTO trees (page, time, vixml) VALUES (?1, ?2, ?3)")?
                .execute(params![page, self.tree_time.as_millis(), tree])?;
        }
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO known (page, time, tree_time, digest, noise) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![page, time, self.tree_time.as_millis(), self.digest, self.noise])?;
        Ok(())
    }
}

/// What is known of a page, if any of its captures was analysed.
pub fn known_page(connection: &Connection, page: PageId) -> anyhow::Result<Option<KnownPage>> {
    let row = connection
        .prepare_cached(
            "SELECT k.time, k.tree_time, k.digest, k.noise, t.vixml FROM known k
             JOIN trees t ON t.page = k.page AND t.time = k.tree_time WHERE k.page = ?1",
        )?
        .query_row([page.0], |row| {
            let (noise, vixml): (Vec<u8>, Vec<u8>) = (row.get(3)?, row.get(4)?);
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, noise, vixml))
        })
        .optional()?;
    let Some((time, tree_time, digest, noise, vixml)) = row else { return Ok(None) };
    Ok(Some(KnownPage {
        tree: Tree::Packed(vixml),
        // A history that cannot be read is learned again.
        noise: NoiseHistory::from_bytes(&noise).unwrap_or_default(),
        digest,
        time: Timestamp::from_millis(time),
        tree_time: Timestamp::from_millis(tree_time),
    }))
}

/// The tree that a reader saw at an instant: that of the last analysed capture at or before it.
pub fn tree_at(connection: &Connection, page: PageId, time: Timestamp) -> anyhow::Result<Option<BlockTree>> {
    let packed: Option<Vec<u8>> = connection
        .prepare_cached("SELECT vixml FROM trees WHERE page = ?1 AND time <= ?2 ORDER BY time DESC LIMIT 1")?
        .query_row(params![page.0, time.as_millis()], |row| row.get(0))
        .optional()?;
    packed.map(|packed| read_tree(&packed)).transpose()
}

/// Forgets what was learned of a page, because captures came that are older than what was analysed.
pub(super) fn forget(connection: &Connection, page: PageId) -> anyhow::Result<()> {
    for table in ["observations", "trees", "known"] {
        connection.execute(&format!("DELETE FROM {table} WHERE page = ?1"), [page.0])?;
    }
    Ok(())
}

fn pack(text: &str) -> anyhow::Result<Vec<u8>> {
    Ok(zstd::bulk::compress(text.as_bytes(), ZSTD_LEVEL)?)
}

/// A packed tree or delta as text.
pub fn unpack(packed: &[u8]) -> anyhow::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    zstd::stream::read::Decoder::new(packed)?.take(MAX_UNPACKED_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn read_tree(packed: &[u8]) -> anyhow::Result<BlockTree> {
    let cure = "a stored tree is damaged: make it again with `perennial verify --rebuild`";
    vixml::read(&unpack(packed).context(cure)?).context(cure)
}
