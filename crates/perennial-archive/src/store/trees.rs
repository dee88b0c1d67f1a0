//! Stores the last tree of each page whole in the table `trees`. The table `past_trees` contains each earlier tree as
//! its difference to the next, so a state grows with the changes.
//!
//! At intervals an earlier tree is also whole. Any tree can therefore be restored from few differences.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context;
use perennial_core::page::segment::BlockTree;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{Columns, Statements};
use super::{Commit, Store, tree_packing};

/// Consecutive differences before an earlier tree is stored whole.
const MAX_STEPS: u32 = 64;
/// Bytes of text in such a chain of differences. They unpack in a few milliseconds.
const MAX_CHAIN_BYTES: u64 = 2 << 20;

/// A packed whole tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackedTree(Arc<[u8]>);

impl PackedTree {
    pub fn of(tree: &BlockTree) -> anyhow::Result<PackedTree> {
        Ok(PackedTree(tree_packing::pack(&tree_packing::tree_to_text(tree))?.into()))
    }

    /// Unpacks the tree.
    pub fn read(&self) -> anyhow::Result<BlockTree> {
        tree_packing::tree_from_text(&tree_packing::unpack(&self.0)?)
    }
}

/// The new last tree of a page. The analysing thread makes it, so the thread that owns the state need not.
#[derive(Clone, Debug)]
pub struct NewTree {
    whole: PackedTree,
    before: Option<TreeBefore>,
}

/// The previous last tree, with its difference to the new one.
#[derive(Clone, Debug)]
struct TreeBefore {
    whole: PackedTree,
    patch: Vec<u8>,
    n_bytes: u64,
}

impl NewTree {
    /// A tree and its predecessor.
    pub fn following(tree: PackedTree, before: Option<&PackedTree>) -> anyhow::Result<NewTree> {
        let before = before.map(|whole| TreeBefore::of(whole, &tree)).transpose()?;
        Ok(NewTree { whole: tree, before })
    }

    /// The whole tree.
    pub fn whole(&self) -> &PackedTree {
        &self.whole
    }
}

impl TreeBefore {
    fn of(whole: &PackedTree, next: &PackedTree) -> anyhow::Result<TreeBefore> {
        let (text, next) = (tree_packing::unpack(&whole.0)?, tree_packing::unpack(&next.0)?);
        let patch = tree_packing::pack_beside(&text, &next)?;
        Ok(TreeBefore { whole: whole.clone(), patch, n_bytes: text.len() as u64 })
    }
}

/// The row of `trees`.
struct LastTree {
    time: i64,
    whole: PackedTree,
    /// Consecutive differences that lead back from it.
    n_steps: u32,
    /// Bytes of their texts.
    n_bytes: u64,
}

impl Commit<'_> {
    pub(super) fn put_tree(&self, page: PageId, time: Timestamp, tree: &NewTree) -> anyhow::Result<()> {
        put_tree(self.transaction, page.0, time.as_millis(), tree)
    }

    pub(super) fn forget_trees(&self, page: PageId) -> rusqlite::Result<()> {
        forget_trees(self.transaction, page.0)
    }
}

pub(super) fn forget_trees(connection: &Connection, page: u32) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM trees WHERE page = ?1", [page])?;
    connection.execute("DELETE FROM past_trees WHERE page = ?1", [page])?;
    Ok(())
}

/// Makes a tree the last one of its page. It replaces trees of the same time and later.
pub(super) fn put_tree(connection: &Connection, page: u32, time: i64, tree: &NewTree) -> anyhow::Result<()> {
    if last_tree(connection, page)?.is_some_and(|last| last.time >= time) {
        cut_off(connection, page, time)?;
    }
    let (mut n_steps, mut n_bytes) = (0, 0);
    if let Some(last) = last_tree(connection, page)? {
        let made;
        let before = match &tree.before {
            Some(before) if before.whole == last.whole => before,
            // A different analysis was stored in between.
            _ => {
                made = TreeBefore::of(&last.whole, &tree.whole)?;
                &made
            }
        };
        (n_steps, n_bytes) = (last.n_steps + 1, last.n_bytes + before.n_bytes);
        let is_whole = n_steps > MAX_STEPS || n_bytes > MAX_CHAIN_BYTES;
        if is_whole {
            (n_steps, n_bytes) = (0, 0);
        }
        let bytes = if is_whole { &*last.whole.0 } else { &before.patch };
        connection
            .prepare_cached("INSERT INTO past_trees (page, time, is_whole, packed) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![page, last.time, is_whole, bytes])?;
    }
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO trees (page, time, packed, n_steps, n_bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![page, time, &*tree.whole.0, n_steps, n_bytes as i64])?;
    Ok(())
}

fn last_tree(connection: &Connection, page: u32) -> rusqlite::Result<Option<LastTree>> {
    let mut statement =
        connection.prepare_cached("SELECT time, packed, n_steps, n_bytes FROM trees WHERE page = ?1")?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(LastTree {
            time: row.get(0)?,
            whole: PackedTree(row.get::<_, Vec<u8>>(1)?.into()),
            n_steps: row.get(2)?,
            n_bytes: row.count(3)?,
        })
    };
    statement.query_row([page], read).optional()
}

/// Removes the trees from a time on. The tree before becomes the last one, and the differences before it remain valid.
fn cut_off(connection: &Connection, page: u32, time: i64) -> anyhow::Result<()> {
    let before = text_at(connection, page, time - 1)?;
    connection.execute("DELETE FROM trees WHERE page = ?1", [page])?;
    connection.execute("DELETE FROM past_trees WHERE page = ?1 AND time >= ?2", [page as i64, time])?;
    let Some(TextSpan { from: time, text, .. }) = before else { return Ok(()) };
    connection.execute("DELETE FROM past_trees WHERE page = ?1 AND time = ?2", [page as i64, time])?;
    // The length of the remaining chain is unknown here, so the next tree begins a new one.
    let (n_steps, n_bytes) = (MAX_STEPS, MAX_CHAIN_BYTES as i64);
    connection.execute(
        "INSERT INTO trees (page, time, packed, n_steps, n_bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![page, time, tree_packing::pack(&text)?, n_steps, n_bytes],
    )?;
    Ok(())
}

/// The text of a tree, and the time for which it is the last one of its page.
#[derive(Debug)]
struct TextSpan {
    from: i64,
    /// When the next tree begins.
    until: i64,
    text: String,
}

/// The tree that is the last one at an instant.
fn text_at(connection: &Connection, page: u32, time: i64) -> anyhow::Result<Option<TextSpan>> {
    Ok(spans_from(connection, page, time)?.pop())
}

/// The same, preceded by the later trees that it is restored from, latest first. One statement reads them all: after a
/// commit in between, the differences would start from a newer last tree than the one read.
fn spans_from(connection: &Connection, page: u32, time: i64) -> anyhow::Result<Vec<TextSpan>> {
    let mut statement = connection.prepare_cached(
        "SELECT time, is_whole, packed FROM past_trees WHERE page = ?1
             AND time >= (SELECT max(time) FROM past_trees WHERE page = ?1 AND time <= ?2)
             AND NOT EXISTS (SELECT 1 FROM trees WHERE page = ?1 AND time <= ?2)
         UNION ALL SELECT time, 1, packed FROM trees WHERE page = ?1
         ORDER BY time",
    )?;
    let mut rows = statement.query(params![page, time])?;
    let (mut patches, mut whole) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        let (from, is_whole, bytes): (i64, bool, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if from > time && patches.is_empty() {
            return Ok(Vec::new());
        }
        if is_whole {
            let until = rows.next()?.map(|row| row.get(0)).transpose()?.unwrap_or(i64::MAX);
            whole = Some(TextSpan { from, until, text: tree_packing::unpack(&bytes)? });
            break;
        }
        patches.push((from, bytes));
    }
    if patches.is_empty() && whole.is_none() {
        return Ok(Vec::new());
    }
    let mut spans = vec![whole.context(NO_LAST_TREE)?];
    for (from, patch) in patches.into_iter().rev() {
        let Some(next) = spans.last() else { break };
        let text = tree_packing::unpack_beside(&patch, &next.text)?;
        spans.push(TextSpan { from, until: next.from, text });
    }
    Ok(spans)
}

const NO_LAST_TREE: &str = "the last tree of a page is missing: make it again with `perennial verify --rebuild` and `perennial analyse`";

/// Migrates the trees of schema 9, which are all whole, into the two tables. If a page has an unreadable tree, the page
/// is analysed again.
pub(super) fn migrate_trees(connection: &Connection) -> anyhow::Result<()> {
    let mut pages = connection.prepare("SELECT DISTINCT page FROM trees_9 ORDER BY page")?;
    let pages: Vec<u32> = pages.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for page in pages {
        if migrate_page_trees(connection, page).is_err() {
            forget_trees(connection, page)?;
            connection.execute("DELETE FROM lessons WHERE page = ?1", [page])?;
            connection.execute("DELETE FROM known WHERE page = ?1", [page])?;
        }
    }
    Ok(())
}

fn migrate_page_trees(connection: &Connection, page: u32) -> anyhow::Result<()> {
    let mut rows =
        connection.prepare_cached("SELECT time, vixml FROM trees_9 WHERE page = ?1 ORDER BY time")?;
    let mut rows = rows.query([page])?;
    let mut before: Option<PackedTree> = None;
    while let Some(row) = rows.next()? {
        let tree = tree_packing::tree_from_text(&tree_packing::unpack_schema_9(row.get_ref(1)?.as_blob()?)?)?;
        let tree = NewTree::following(PackedTree::of(&tree)?, before.as_ref())?;
        put_tree(connection, page, row.get(0)?, &tree)?;
        before = Some(tree.whole);
    }
    Ok(())
}

/// When the tree of the observation before this one is stored, if it was made again: just before this one, so the tree
/// with which earlier observations were compared remains.
pub fn remade_at(time: Timestamp) -> Timestamp {
    time - Span::from_millis(1)
}

/// Reads the trees of an archive. It keeps the unpacked texts for neighbours in time.
#[derive(Debug)]
pub struct TreeReader<'s> {
    store: &'s Store,
    kept: HashMap<u32, Vec<TextSpan>>,
    n_kept_bytes: usize,
}

/// Bytes of texts that a reader keeps.
const MAX_KEPT_BYTES: usize = 64 << 20;

impl<'s> TreeReader<'s> {
    pub fn new(store: &'s Store) -> TreeReader<'s> {
        TreeReader { store, kept: HashMap::new(), n_kept_bytes: 0 }
    }

    /// The tree that a reader of the page saw at an instant: that of the last analysed observation at or before it.
    pub fn tree_at(&mut self, page: PageId, time: Timestamp) -> anyhow::Result<Option<BlockTree>> {
        let time = time.as_millis();
        let kept = self.kept.get(&page.0).and_then(|spans| spans.iter().find(|span| span.contains(time)));
        if let Some(kept) = kept {
            return tree_packing::tree_from_text(&kept.text).map(Some);
        }
        let spans = spans_from(&self.store.connection, page.0, time)?;
        let found = spans.last().map(|span| tree_packing::tree_from_text(&span.text)).transpose()?;
        self.keep(page.0, spans);
        Ok(found)
    }

    fn keep(&mut self, page: u32, spans: Vec<TextSpan>) {
        let n_bytes = |spans: &[TextSpan]| spans.iter().map(|span| span.text.len()).sum::<usize>();
        if self.n_kept_bytes > MAX_KEPT_BYTES {
            self.kept.clear();
            self.n_kept_bytes = 0;
        }
        self.n_kept_bytes += n_bytes(&spans);
        if let Some(replaced) = self.kept.insert(page, spans) {
            self.n_kept_bytes -= n_bytes(&replaced);
        }
    }
}

impl TextSpan {
    fn contains(&self, time: i64) -> bool {
        (self.from..self.until).contains(&time)
    }
}

impl Store {
    /// The tree that a reader saw at an instant: that of the last analysed observation at or before it.
    pub fn tree_at(&self, page: PageId, time: Timestamp) -> anyhow::Result<Option<BlockTree>> {
        let found = text_at(&self.connection, page.0, time.as_millis())?;
        found.map(|span| tree_packing::tree_from_text(&span.text)).transpose()
    }

    /// The trees of two observations, made by the same engine if possible. If the earlier one was the last of an earlier
    /// engine, it was made again for the comparison with the observation after it ([`remade_at`]).
    pub fn comparable_trees(
        &self,
        page: PageId,
        before: Timestamp,
        after: Timestamp,
    ) -> anyhow::Result<Option<(BlockTree, BlockTree)>> {
        let Some((was, is)) = self.tree_at(page, before)?.zip(self.tree_at(page, after)?) else {
            return Ok(None);
        };
        if was.engine == is.engine {
            return Ok(Some((was, is)));
        }
        let sql = "SELECT min(time) FROM lessons WHERE page = ?1 AND time > ?2";
        let next: Option<i64> =
            self.connection.query_row(sql, params![page.0, before.as_millis()], |row| row.get(0))?;
        let again =
            next.map(|next| self.tree_at(page, remade_at(Timestamp::from_millis(next)))).transpose()?;
        let again = again.flatten().filter(|again| again.engine == is.engine);
        Ok(Some((again.unwrap_or(was), is)))
    }

    /// The observations of a page whose tree differed from the one before.
    pub fn tree_times(&self, page: PageId) -> anyhow::Result<Vec<Timestamp>> {
        let sql = "SELECT time FROM past_trees WHERE page = ?1 UNION ALL SELECT time FROM trees
            WHERE page = ?1 ORDER BY 1";
        self.connection.rows(sql, [page.0], |row| row.get(0).map(Timestamp::from_millis))
    }

    pub(super) fn last_packed_tree(&self, page: PageId) -> rusqlite::Result<Option<(Timestamp, PackedTree)>> {
        let last = last_tree(&self.connection, page.0)?;
        Ok(last.map(|last| (Timestamp::from_millis(last.time), last.whole)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::tree_packing::tests::any_tree;
    use super::*;
    use perennial_core::page::segment::{Block, Text};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_write(&dir.path().join("state.db")).unwrap();
        store.connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        (dir, store)
    }

    fn put(store: &Store, time: i64, tree: &BlockTree, before: Option<&PackedTree>) -> PackedTree {
        let new = NewTree::following(PackedTree::of(tree).unwrap(), before).unwrap();
        put_tree(&store.connection, 1, time, &new).unwrap();
        new.whole
    }

    fn numbered(n: usize, n_words: usize) -> BlockTree {
        let words: String = (0..n_words).map(|word| format!("{} ", (word * n) % 1013)).collect();
        let leaf = Block { importance: 1.0, ..Block::leaf(vec![], vec![], vec![Text::new(words)]) };
        let mut tree = BlockTree { version: n.to_string(), blocks: vec![leaf], ..BlockTree::default() };
        tree.seal();
        tree
    }

    /// Any version equals the stored one, whether it is read alone, forwards, or backwards.
    fn assert_all(store: &Store, trees: &[(i64, BlockTree)]) {
        let times: Vec<i64> = trees.iter().map(|(time, _)| *time).collect();
        let stored: Vec<i64> =
            store.tree_times(PageId(1)).unwrap().iter().map(|time| time.as_millis()).collect();
        assert_eq!(stored, times);
        let mut reader = TreeReader::new(store);
        for (time, tree) in trees.iter().chain(trees.iter().rev()) {
            for later in [0, 9] {
                let time = Timestamp::from_millis(time + later);
                assert_eq!(store.tree_at(PageId(1), time).unwrap().as_ref(), Some(tree));
                assert_eq!(reader.tree_at(PageId(1), time).unwrap().as_ref(), Some(tree));
            }
        }
        let early = Timestamp::from_millis(times.first().map_or(0, |time| time - 1));
        assert_eq!(store.tree_at(PageId(1), early).unwrap(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn every_version_is_made_again_as_it_was(trees in vec(any_tree(), 1..12), again in 0usize..12, other in any_tree()) {
            let (_dir, store) = store();
            let mut all: Vec<(i64, BlockTree)> = (0..).map(|n| 10 * n).zip(trees).collect();
            let mut before = None;
            for (time, tree) in &all {
                before = Some(put(&store, *time, tree, before.as_ref()));
            }
            assert_all(&store, &all);
            // A tree that replaces an earlier one removes the trees after it.
            all.truncate(again.min(all.len()));
            all.push((10 * all.len() as i64, other));
            let (time, tree) = all.last().unwrap();
            put(&store, *time, tree, None);
            assert_all(&store, &all);
        }
    }

    #[test]
    fn rows_of_differences_are_bounded_in_number_and_bytes() {
        for (n_trees, n_words, n_whole) in [(200, 5, 3), (10, 300_000, 4)] {
            let (_dir, store) = store();
            let trees: Vec<(i64, BlockTree)> =
                (0..n_trees).map(|n| (10 * n as i64, numbered(n, n_words))).collect();
            let mut before = None;
            for (time, tree) in &trees {
                before = Some(put(&store, *time, tree, before.as_ref()));
            }
            let sql = "SELECT count(*) FROM past_trees WHERE is_whole";
            let found: i64 = store.connection.query_row(sql, [], |row| row.get(0)).unwrap();
            assert_eq!(found, n_whole, "of {n_trees} trees of {n_words} words");
            assert_all(&store, &trees);
        }
    }

    /// The text index reads while the crawl commits.
    #[test]
    fn a_commit_does_not_spoil_what_another_connection_reads() {
        let (dir, mut store) = store();
        let reader = Store::open_read(&dir.path().join("state.db")).unwrap();
        let mut before = put(&store, 0, &numbered(0, 50), None);
        let n_put = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                for n in 1..2_000 {
                    let tree = PackedTree::of(&numbered(n, 50)).unwrap();
                    let new = NewTree::following(tree, Some(&before)).unwrap();
                    store
                        .write(|commit| commit.put_tree(PageId(1), Timestamp::from_millis(n as i64), &new))
                        .unwrap();
                    before = new.whole;
                    n_put.store(n, Ordering::Relaxed);
                }
            });
            while !writing.is_finished() {
                // Not the last tree, so it is restored from later ones.
                let n = n_put.load(Ordering::Relaxed).saturating_sub(2);
                let read = reader.tree_at(PageId(1), Timestamp::from_millis(n as i64)).unwrap();
                assert_eq!(read, Some(numbered(n, 50)));
            }
        });
    }

    #[test]
    fn a_difference_to_another_tree_than_the_last_is_made_anew() {
        let (_dir, store) = store();
        let (first, other, second) = (numbered(1, 50), numbered(7, 50), numbered(2, 50));
        put(&store, 0, &first, None);
        put(&store, 10, &second, Some(&PackedTree::of(&other).unwrap()));
        assert_all(&store, &[(0, first), (10, second)]);
    }
}
