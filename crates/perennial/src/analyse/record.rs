//! Observations <-> the tables `observations`, `trees` and `known`. All of it can be made again from the
//! captures, so nothing here is the only copy of anything.

use anyhow::Context;
use perennial_core::importance::Importance;
use perennial_core::noise::NoiseHistory;
use perennial_core::observe::{Known, Observation};
use perennial_core::page::PageId;
use perennial_core::schedule::VisitOutcome;
use perennial_core::segment::{BlockTree, vixml};
use perennial_core::threshold::IndexThreshold;
use perennial_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::history::outcome_of;

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
    worth: Worth,
}

/// What decides which versions are worth indexing (SPEC 5).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Worth {
    first: Timestamp,
    total: f64,
    gathered: f64,
}

impl Worth {
    /// Takes in a look; whether its version is worth indexing. delta(P), the mean of omega_k, is the importance
    /// that the page showed in a mean period of an hour.
    fn take(&mut self, importance: Importance, now: Timestamp) -> bool {
        self.total += importance.get();
        let periods = (now - self.first).as_hours_f64().max(1.0);
        let mut threshold = IndexThreshold::new(self.total / periods).with_gathered(self.gathered);
        let is_indexed = threshold.offer(importance);
        self.gathered = threshold.gathered();
        is_indexed
    }
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
    /// Whether search and "next important version" see it.
    pub is_indexed: bool,
    n_operations: usize,
    delta: Option<Vec<u8>>,
    tree: Option<Vec<u8>>,
    tree_time: Timestamp,
    noise: Vec<u8>,
    digest: String,
    worth: Worth,
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
            is_indexed: false,
            n_operations: 0,
            delta: None,
            tree: None,
            tree_time: known.tree_time,
            noise: known.noise.to_bytes(),
            digest: known.digest.clone(),
            worth: known.worth,
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
        let (mut worth, is_indexed) = match before {
            // Everything is new, and nothing of it is a change.
            None => (Worth { first: time, total: 0.0, gathered: 0.0 }, true),
            Some(known) => {
                let mut worth = known.worth;
                let is_news = !observation.is_only_noise && !observation.is_unchanged();
                let is_indexed = is_news && worth.take(observation.importance(), time);
                (worth, is_indexed)
            }
        };
        worth.first = worth.first.min(time);
        let lesson = Lesson {
            page,
            time,
            before: before.map(|known| known.time),
            importance: observation.importance(),
            is_noise: observation.is_only_noise,
            is_indexed,
            n_operations: observation.assessment.contributions.len(),
            delta: delta.map(|delta| pack(&delta.to_xml(tree))).transpose()?,
            tree: kept_tree.is_none().then(|| pack(&vixml::write(tree))).transpose()?,
            tree_time: kept_tree.unwrap_or(time),
            noise: observation.known.noise.to_bytes(),
            digest: digest.clone(),
            worth,
        };
        let Known { tree, noise } = observation.known;
        let tree_time = lesson.tree_time;
        let known = KnownPage { tree: Tree::Read(tree), noise, digest, time, tree_time, worth };
        Ok((lesson, known))
    }

    /// What changed, as Vi-Delta; an empty one when nothing did.
    pub fn delta_xml(&self) -> anyhow::Result<String> {
        let empty = || perennial_core::diff::Delta::default().to_operations_xml();
        self.delta.as_deref().map_or_else(|| Ok(empty()), unpack)
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
        outcome_of(if self.is_noise { Importance::NONE } else { self.importance })
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
                "INSERT OR REPLACE INTO observations (page, time, before, importance, is_noise, n_operations, delta,
                     is_indexed)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                page,
                time,
                before,
                self.importance.get(),
                self.is_noise,
                self.n_operations as i64,
                self.delta,
                self.is_indexed
            ])?;
        if let Some(tree) = &self.tree {
            connection
                .prepare_cached("INSERT OR REPLACE INTO trees (page, time, vixml) VALUES (?1, ?2, ?3)")?
                .execute(params![page, self.tree_time.as_millis(), tree])?;
        }
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO known (page, time, tree_time, digest, noise, first, total, gathered)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                page,
                time,
                self.tree_time.as_millis(),
                self.digest,
                self.noise,
                self.worth.first.as_millis(),
                self.worth.total,
                self.worth.gathered
            ])?;
        Ok(())
    }
}

/// What is known of a page, if any of its captures was analysed.
pub fn known_page(connection: &Connection, page: PageId) -> anyhow::Result<Option<KnownPage>> {
    connection
        .prepare_cached(
            "SELECT k.time, k.tree_time, k.digest, k.noise, t.vixml, coalesce(k.first, k.time), k.total, k.gathered
             FROM known k JOIN trees t ON t.page = k.page AND t.time = k.tree_time WHERE k.page = ?1",
        )?
        .query_row([page.0], |row| {
            let time = |column| row.get(column).map(Timestamp::from_millis);
            let noise: Vec<u8> = row.get(3)?;
            Ok(KnownPage {
                tree: Tree::Packed(row.get(4)?),
                // A history that cannot be read is learned again.
                noise: NoiseHistory::from_bytes(&noise).unwrap_or_default(),
                digest: row.get(2)?,
                time: time(0)?,
                tree_time: time(1)?,
                worth: Worth { first: time(5)?, total: row.get(6)?, gathered: row.get(7)? },
            })
        })
        .optional()
        .map_err(Into::into)
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
