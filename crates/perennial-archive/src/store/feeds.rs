//! Stores feeds and their items in the tables `feeds`, `feed_reads` and `items`.
//!
//! They are stored with the capture of the feed, so a rebuild from the WARC files restores them. An item is one row,
//! however often it was seen. Each column is the earliest value, the latest value, or the value at the latest time.
//! Losses between two polls are not stored, because they follow from when items were first and last seen.

use perennial_core::feed::{FeedFormat, PollHints};
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use rusqlite::{Row, params};

use super::rows::{Columns, Statements};
use super::{Commit, Store};

/// The contents of one capture of a feed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedRow {
    pub format: FeedFormat,
    /// Its name, without markup.
    pub title: String,
    /// The URL of its channel page.
    pub channel: Option<String>,
    /// The WebSub hub that announces new items.
    pub hub: Option<String>,
    /// The polling interval that the feed requests.
    pub pace: PollHints,
    /// `lastBuildDate` or the like, if the feed has one.
    pub updated: Option<Timestamp>,
    /// `Last-Modified` of the response. It is not stored.
    pub modified: Option<Timestamp>,
    /// The feed's URL at its hub. It is not stored.
    pub topic: Option<String>,
    pub items: Vec<ItemRow>,
}

/// An item in one capture of its feed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ItemRow {
    /// Identifies the item within the feed.
    pub key: String,
    /// The URL of its page, in the archive's canonical form.
    pub link: Option<String>,
    /// Its headline, without markup.
    pub title: String,
    /// Its summary, without markup.
    pub summary: String,
    pub author: String,
    /// Categories, one per line.
    pub categories: String,
    pub published: Option<Timestamp>,
    /// When it was changed, if the feed contains the date.
    pub updated: Option<Timestamp>,
    /// The page with its comments.
    pub comments: Option<String>,
    /// The feed of its comments.
    pub comment_feed: Option<String>,
    /// A digest of its texts.
    pub digest: i64,
}

impl ItemRow {
    /// The time of its last change; for a new item, its publication.
    pub fn changed(&self) -> Option<Timestamp> {
        self.published.max(self.updated)
    }
}

/// A feed as stored.
#[derive(Clone, Debug)]
pub struct StoredFeed {
    pub page: PageId,
    pub url: String,
    /// Number of the seed that it is followed for; `None` if it is not followed.
    pub seed: Option<i64>,
    /// Its format, as users read it.
    pub format: String,
    pub title: String,
    /// The URL of its channel page.
    pub channel: Option<String>,
    /// The WebSub hub that announces new items.
    pub hub: Option<String>,
    /// The polling interval that the feed requests.
    pub pace: PollHints,
    /// Whether the feed contains the date of its last change.
    pub has_updated: bool,
    /// When it was first read.
    pub first_read: Timestamp,
    /// When it was last read with new content.
    pub last_read: Timestamp,
    /// Captures with new content.
    pub n_reads: u64,
    /// Items in the last of these captures.
    pub n_held: u64,
    /// Items ever seen.
    pub n_items: u64,
    /// Items with a date of publication.
    pub n_published: u64,
    /// Items with a date of change.
    pub n_updated: u64,
    /// Pairs of consecutive reads without a common item. Items were lost in between.
    pub n_gaps: u64,
    /// When its last visit ended.
    pub visited: Option<Timestamp>,
}

/// An item as stored.
#[derive(Clone, Debug, serde::Serialize)]
pub struct StoredItem {
    /// URL of its feed.
    pub feed: String,
    /// Identifies the item within the feed.
    pub key: String,
    /// The URL of its page.
    pub link: Option<String>,
    pub title: String,
    pub summary: String,
    pub published: Option<String>,
    /// When it was first seen in the feed.
    pub first_seen: String,
}

/// Selects announced pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnnouncedFilter<'a> {
    /// Only pages of this host.
    pub site: Option<&'a str>,
    /// Only pages that this feed announced.
    pub feed: Option<&'a str>,
    /// Only pages first announced since then.
    pub since: Option<Timestamp>,
    /// Skips this many pages.
    pub skip: usize,
    /// Returns at most this many pages.
    pub limit: Option<usize>,
}

/// A captured page, and the item that announced it first.
#[derive(Clone, PartialEq, Debug)]
pub struct AnnouncedPage {
    pub page: PageId,
    pub url: String,
    /// URL of the feed.
    pub feed: String,
    /// The item's headline in the latest capture of the feed.
    pub title: String,
    pub summary: String,
    pub published: Option<Timestamp>,
    /// When the item was first seen in the feed.
    pub first_seen: Timestamp,
}

/// Whether an item of a capture is new or edited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemStatus {
    /// The feed was never read before, so the answer is unknown.
    FirstRead,
    /// The item was not in the feed before.
    New,
    /// Its texts changed.
    Edited,
    /// The item was in the feed before, with the same texts.
    Known,
}

impl Commit<'_> {
    /// Stores the contents of a capture of a feed.
    pub(super) fn put_feed(&mut self, page: u32, time: Timestamp, feed: &FeedRow) -> anyhow::Result<()> {
        let time = time.as_millis();
        let PollHints { ttl_minutes, skip_hours, skip_days, update_period_secs, update_frequency } =
            feed.pace;
        let sql = "INSERT INTO feeds (page, format, title, skip_hours, skip_days, first_read, last_read)
            VALUES (?1, '', '', 0, 0, ?2, ?2) ON CONFLICT (page) DO UPDATE
            SET first_read = min(first_read, ?2)";
        self.transaction.run(sql, params![page, time])?;
        let sql = "UPDATE feeds SET format = ?2, title = ?3, channel = ?4, hub = ?5, updated = ?6,
            ttl_minutes = ?7, skip_hours = ?8,
                skip_days = ?9, period_secs = ?10, frequency = ?11, last_read = ?12
            WHERE page = ?1 AND last_read <= ?12";
        self.transaction.run(
            sql,
            params![
                page,
                feed.format.name(),
                feed.title,
                feed.channel,
                feed.hub,
                feed.updated.map(Timestamp::as_millis),
                ttl_minutes,
                skip_hours,
                skip_days,
                update_period_secs,
                update_frequency,
                time
            ],
        )?;
        self.transaction.run(
            "INSERT OR REPLACE INTO feed_reads (feed, time, n_items) VALUES (?1, ?2, ?3)",
            params![page, time, feed.items.len() as i64],
        )?;
        feed.items.iter().try_for_each(|item| self.put_item(page, time, item))
    }

    fn put_item(&mut self, feed: u32, time: i64, item: &ItemRow) -> anyhow::Result<()> {
        let page = match &item.link {
            Some(link) => Some(self.announced_page(link, feed, Timestamp::from_millis(time))?),
            None => None,
        };
        let sql = "INSERT INTO items (feed, key, page, title, summary, author, categories, published,
            updated, comments, comment_feed,
                digest, changed, first_seen, last_seen)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?13)
            ON CONFLICT (feed, key) DO UPDATE SET
                page = CASE WHEN last_seen <= ?13 THEN coalesce(?3, page) ELSE page END,
                title = CASE WHEN last_seen <= ?13 THEN ?4 ELSE title END,
                summary = CASE WHEN last_seen <= ?13 THEN ?5 ELSE summary END,
                author = CASE WHEN last_seen <= ?13 THEN ?6 ELSE author END,
                categories = CASE WHEN last_seen <= ?13 THEN ?7 ELSE categories END,
                published = CASE WHEN last_seen <= ?13 THEN coalesce(?8, published)
                ELSE coalesce(published, ?8) END,
                updated = CASE WHEN last_seen <= ?13 THEN coalesce(?9, updated)
                ELSE coalesce(updated, ?9) END,
                comments = CASE WHEN last_seen <= ?13 THEN coalesce(?10, comments) ELSE comments END,
                comment_feed = CASE WHEN last_seen <= ?13 THEN coalesce(?11, comment_feed)
                ELSE comment_feed END,
                changed = CASE WHEN last_seen < ?13 AND digest <> ?12 THEN ?13 ELSE changed END,
                digest = CASE WHEN last_seen <= ?13 THEN ?12 ELSE digest END,
                first_seen = min(first_seen, ?13), last_seen = max(last_seen, ?13)";
        self.transaction.run(
            sql,
            params![
                feed,
                item.key,
                page,
                item.title,
                item.summary,
                item.author,
                item.categories,
                item.published.map(Timestamp::as_millis),
                item.updated.map(Timestamp::as_millis),
                item.comments,
                item.comment_feed,
                item.digest,
                time
            ],
        )
    }

    /// Whether an item was new or edited in the capture of its feed at `time`.
    pub fn news(&self, feed: PageId, key: &str, time: Timestamp) -> anyhow::Result<ItemStatus> {
        let time = Timestamp::from_secs(time.as_secs()).as_millis();
        let sql = "SELECT f.first_read >= ?3, i.first_seen >= ?3, i.changed >= ?3 FROM items i
            JOIN feeds f ON f.page = i.feed WHERE i.feed = ?1 AND i.key = ?2";
        let read = |row: &Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?]);
        Ok(match self.transaction.row(sql, params![feed.0, key, time], read)? {
            // If a different URL had the payload first, the capture is a revisit, and its items are not in the state.
            None | Some([true, _, _]) => ItemStatus::FirstRead,
            Some([_, true, _]) => ItemStatus::New,
            Some([_, _, true]) => ItemStatus::Edited,
            Some(_) => ItemStatus::Known,
        })
    }
}

/// How much of a feed is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FeedDetail {
    /// The columns that polling needs.
    Polling,
    /// The same, with counts of its items.
    Counts,
}

impl Store {
    /// Every feed ever read, by URL, with counts of its items.
    pub fn feeds(&self) -> anyhow::Result<Vec<StoredFeed>> {
        let mut feeds = self.feeds_in(FeedDetail::Counts)?;
        for feed in &mut feeds {
            feed.n_gaps = self.count_gaps(feed.page)?;
        }
        Ok(feeds)
    }

    /// The same without counts of items and gaps, which take long if there are many items.
    pub fn feeds_to_poll(&self) -> anyhow::Result<Vec<StoredFeed>> {
        self.feeds_in(FeedDetail::Polling)
    }

    fn feeds_in(&self, detail: FeedDetail) -> anyhow::Result<Vec<StoredFeed>> {
        let count = |what: &str| match detail {
            FeedDetail::Counts => format!("(SELECT count({what}) FROM items i WHERE i.feed = f.page)"),
            FeedDetail::Polling => "0".to_owned(),
        };
        let [n_items, n_published, n_updated] = ["*", "published", "updated"].map(count);
        let sql = format!(
            "SELECT f.page, p.url, c.seed, f.format, f.title, f.channel, f.ttl_minutes, f.skip_hours, f.skip_days,
                 f.period_secs, f.frequency, f.updated IS NOT NULL, f.first_read, f.last_read,
                 (SELECT count(*) FROM feed_reads r WHERE r.feed = f.page),
                 (SELECT n_items FROM feed_reads r WHERE r.feed = f.page ORDER BY time DESC LIMIT 1),
                 {n_items}, {n_published}, {n_updated}, c.visited, f.hub
             FROM feeds f JOIN pages p ON p.id = f.page
             LEFT JOIN crawl_pages c ON c.page = f.page ORDER BY p.url"
        );
        self.connection.rows(&sql, [], read_feed)
    }

    /// Consecutive reads of a feed without a common item: items were lost between them.
    fn count_gaps(&self, feed: PageId) -> anyhow::Result<u64> {
        let sql = "SELECT time FROM feed_reads WHERE feed = ?1 AND n_items > 0 ORDER BY time";
        let reads: Vec<i64> = self.connection.rows(sql, [feed.0], |row| row.get(0))?;
        let sql = "SELECT first_seen, last_seen FROM items WHERE feed = ?1";
        let spans: Vec<_> = self.connection.rows(sql, [feed.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(n_gaps(&reads, &spans))
    }

    /// When the items of a feed were published, else first seen; the latest `limit` times, ascending. Undated items in
    /// the first read are omitted, because their time is unknown.
    pub fn item_times(&self, feed: PageId, limit: usize) -> anyhow::Result<Vec<Timestamp>> {
        let sql = "SELECT time FROM (SELECT coalesce(i.published, i.updated, nullif(i.first_seen, f.first_read)) AS time
                FROM items i JOIN feeds f ON f.page = i.feed WHERE i.feed = ?1)
            WHERE time IS NOT NULL ORDER BY time DESC LIMIT ?2";
        let values = params![feed.0, limit as i64];
        let mut times: Vec<Timestamp> = self.connection.rows(sql, values, |row| row.time(0))?;
        times.reverse();
        Ok(times)
    }

    /// The item that announced a page last, if one did after `since`.
    pub fn page_item(&self, page: PageId, since: Option<Timestamp>) -> anyhow::Result<Option<StoredItem>> {
        let since = since.map_or(i64::MIN, Timestamp::as_millis);
        let sql = "SELECT p.url, i.key, q.url, i.title, i.summary, i.published, i.first_seen FROM items i
            JOIN pages p ON p.id = i.feed
            LEFT JOIN pages q ON q.id = i.page
            WHERE i.page = ?1 AND max(i.changed, i.first_seen, coalesce(i.updated, 0)) > ?2
            ORDER BY i.changed DESC LIMIT 1";
        self.connection.row(sql, params![page.0, since], read_item)
    }

    /// The captured pages that items announced, latest first. If several items announced a page, the first counts.
    pub fn announced_pages(&self, filter: &AnnouncedFilter<'_>) -> anyhow::Result<Vec<AnnouncedPage>> {
        let since = filter.since.map_or(i64::MIN, Timestamp::as_millis);
        let limit = filter.limit.map_or(-1, |limit| limit as i64);
        let sql = format!(
            "{ANNOUNCED} AND (?1 IS NULL OR s.host = ?1) AND (?2 IS NULL OR p.url = ?2)
                GROUP BY i.page HAVING min(i.first_seen) >= ?3
                ORDER BY coalesce(i.published, i.first_seen) DESC, i.id LIMIT ?4 OFFSET ?5"
        );
        self.connection.rows(
            &sql,
            params![filter.site, filter.feed, since, limit, filter.skip as i64],
            read_announced,
        )
    }

    /// The item that announced a page first.
    pub fn announced_page(&self, page: PageId) -> anyhow::Result<Option<AnnouncedPage>> {
        self.connection.row(&format!("{ANNOUNCED} AND i.page = ?1 GROUP BY i.page"), [page.0], read_announced)
    }

    /// The items of a feed known at an instant, latest first: first seen by then, or published by then and seen later.
    pub fn items_at(&self, feed: PageId, at: Timestamp, limit: usize) -> anyhow::Result<Vec<StoredItem>> {
        let sql = "SELECT p.url, i.key, q.url, i.title, i.summary, i.published, i.first_seen FROM items i
            JOIN pages p ON p.id = i.feed
            LEFT JOIN pages q ON q.id = i.page WHERE i.feed = ?1
            AND coalesce(i.published, i.first_seen) <= ?2
            ORDER BY coalesce(i.published, i.first_seen) DESC, i.id LIMIT ?3";
        self.connection.rows(sql, params![feed.0, at.as_millis(), limit as i64], read_item)
    }

    /// Pages that items announced as new or changed up to `until`, with the time. Items in the first read of a feed
    /// count only by their date, because their arrival is unknown.
    pub fn announced_by_items(&self, until: Timestamp) -> anyhow::Result<Vec<(PageId, Timestamp)>> {
        let sql = "SELECT page, max(time) FROM (SELECT i.page AS page,
                max(coalesce(i.published, 0), CASE WHEN i.changed > f.first_read THEN i.changed
                ELSE 0 END) AS time
                FROM items i JOIN feeds f ON f.page = i.feed WHERE i.page IS NOT NULL)
            WHERE time > 0 AND time <= ?1 GROUP BY page";
        self.connection.rows(sql, [until.as_millis()], |row| Ok((PageId(row.get(0)?), row.time(1)?)))
    }

    /// Followed feeds that were polled but never returned a readable feed.
    pub fn count_unread_feeds(&self) -> anyhow::Result<usize> {
        let sql = "SELECT count(*) FROM crawl_pages c WHERE c.kind = -1 AND c.visited IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM feeds f WHERE f.page = c.page)";
        Ok(self.connection.count(sql, [])? as usize)
    }
}

fn read_feed(row: &Row<'_>) -> rusqlite::Result<StoredFeed> {
    let pace = PollHints {
        ttl_minutes: row.get(6)?,
        skip_hours: row.get(7)?,
        skip_days: row.get(8)?,
        update_period_secs: row.get(9)?,
        update_frequency: row.get(10)?,
    };
    Ok(StoredFeed {
        page: PageId(row.get(0)?),
        url: row.get(1)?,
        seed: row.get(2)?,
        format: row.get(3)?,
        title: row.get(4)?,
        channel: row.get(5)?,
        pace,
        has_updated: row.get(11)?,
        first_read: row.time(12)?,
        last_read: row.time(13)?,
        n_reads: row.count(14)?,
        n_held: row.count(15)?,
        n_items: row.count(16)?,
        n_published: row.count(17)?,
        n_updated: row.count(18)?,
        n_gaps: 0,
        visited: row.optional_time(19)?,
        hub: row.get(20)?,
    })
}

/// Items whose page was captured. SQLite takes the other columns from the row with the least time.
const ANNOUNCED: &str = "SELECT i.page, q.url, p.url, i.title, i.summary, i.published, min(i.first_seen) FROM items i
    JOIN pages p ON p.id = i.feed JOIN pages q ON q.id = i.page JOIN sites s ON s.id = q.site WHERE q.n_captures > 0";

fn read_announced(row: &Row<'_>) -> rusqlite::Result<AnnouncedPage> {
    Ok(AnnouncedPage {
        page: PageId(row.get(0)?),
        url: row.get(1)?,
        feed: row.get(2)?,
        title: row.get(3)?,
        summary: row.get(4)?,
        published: row.optional_time(5)?,
        first_seen: row.time(6)?,
    })
}

fn read_item(row: &Row<'_>) -> rusqlite::Result<StoredItem> {
    Ok(StoredItem {
        feed: row.get(0)?,
        key: row.get(1)?,
        link: row.get(2)?,
        title: row.get(3)?,
        summary: row.get(4)?,
        published: row.optional_time(5)?.map(Timestamp::to_rfc3339),
        first_seen: row.time(6)?.to_rfc3339(),
    })
}

/// Counts the consecutive reads without a common item, from when each item was first and last seen. The work is linear
/// in reads plus items. Each item adds one at its first read and subtracts one at its last.
fn n_gaps(reads: &[i64], items: &[(i64, i64)]) -> u64 {
    let mut steps = vec![0i64; reads.len() + 1];
    for &(first, last) in items {
        let from = reads.partition_point(|&time| time < first);
        let to = reads.partition_point(|&time| time <= last);
        // The item is in the reads `from..to`, so it joins each of them except the last to the next.
        if from + 1 < to {
            steps[from] += 1;
            steps[to - 1] -= 1;
        }
    }
    let mut n_joining = 0;
    let joined = steps.iter().take(reads.len().saturating_sub(1)).filter(|step| {
        n_joining += **step;
        n_joining > 0
    });
    reads.len().saturating_sub(1) as u64 - joined.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_without_a_common_item_are_gaps() {
        assert_eq!(n_gaps(&[1, 2, 3], &[(1, 2), (2, 3)]), 0);
        assert_eq!(n_gaps(&[1, 2, 3], &[(1, 2), (3, 3)]), 1);
        assert_eq!((n_gaps(&[], &[]), n_gaps(&[1], &[(1, 1)])), (0, 0));
    }

    proptest! {
        /// The result equals a comparison of every pair with every item.
        #[test]
        fn gaps_are_those_of_every_pair(
            times in proptest::collection::btree_set(0i64..50, 0..12),
            items in proptest::collection::vec((0usize..12, 0usize..12), 0..20),
        ) {
            let reads: Vec<i64> = times.into_iter().collect();
            let at = |n: usize| reads.get(n % reads.len().max(1)).copied().unwrap_or(0);
            let items: Vec<(i64, i64)> = items.iter().map(|&(one, other)| (at(one).min(at(other)), at(one).max(at(other)))).collect();
            let is_gap = |pair: &&[i64]| !items.iter().any(|&(first, last)| first <= pair[0] && last >= pair[1]);
            prop_assert_eq!(n_gaps(&reads, &items), reads.windows(2).filter(is_gap).count() as u64);
        }
    }
}
