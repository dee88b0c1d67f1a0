//! An archive's state -> everything in it that is derived from the WARC files, identified by URL and not by row number.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use perennial_core::url::PageId;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

/// Whatever a rebuild of the state must reproduce.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// Captures, versions, captured pages, sites, links and analyses, as sorted lines.
    pub(crate) lines: Vec<String>,
    /// All pages, including those known only from links.
    pub(crate) urls: BTreeSet<String>,
    /// The pages in the frontier. Some come from sitemaps and settings, without a link from any page.
    pub(crate) frontier: BTreeSet<String>,
    /// PageRank by URL.
    pub(crate) ranks: BTreeMap<String, f32>,
}

const CAPTURED: &[&str] = &[
    "SELECT 'capture', p.url, c.time, c.kind, c.status, c.mime, c.digest, c.content, c.answer, c.identity
         FROM captures c
         JOIN pages p ON p.id = c.page",
    "SELECT 'version', p.url, v.digest, v.content, v.first_time, v.last_time, v.n_captures, o.time FROM versions v
         JOIN pages p ON p.id = v.page LEFT JOIN captures o ON o.id = v.origin",
    "SELECT 'page', url, surt, first_seen, last_seen, n_captures, mime, status, kind FROM pages WHERE n_captures > 0",
    "SELECT DISTINCT 'site', s.host FROM sites s JOIN pages p ON p.site = s.id WHERE p.n_captures > 0",
];

const PLACES: &[&str] = &[
    "SELECT 'place', p.url, c.time, c.kind, f.name, c.offset, c.length, c.group_offset, c.group_length
         FROM captures c JOIN pages p ON p.id = c.page JOIN files f ON f.id = c.file",
    "SELECT 'file', name, committed FROM files",
];

const LEARNED: &[&str] = &[
    "SELECT 'lesson', p.url, l.time, l.before, l.seen, l.importance, l.n_operations, l.is_indexed
         FROM lessons l JOIN pages p ON p.id = l.page",
    "SELECT 'known', p.url, k.time, k.tree_time, k.identity, k.noise, k.first, k.total, k.gathered,
         k.shown_identity, k.shown_time FROM known k JOIN pages p ON p.id = k.page",
];

impl Facts {
    /// Reads an archive without a running writer.
    pub(crate) fn of(archive: &Path) -> Facts {
        let state = open(archive);
        let mut facts = Facts { lines: lines(&state, CAPTURED), ..Facts::default() };
        facts.lines.extend(lines(&state, PLACES));
        facts.lines.extend(lines(&state, LEARNED));
        facts.lines.extend(trees(archive, &state));
        facts.lines.extend(links(archive, &state));
        facts.lines.sort();
        facts.urls = words(&state, "SELECT url FROM pages");
        facts.frontier = words(&state, "SELECT url FROM pages JOIN crawl_pages ON page = id");
        facts.ranks = ranks(archive, &state);
        facts
    }

    /// The captures, independent of their offsets, and the facts derived from them without analysis.
    pub(crate) fn captured(archive: &Path) -> Vec<String> {
        let state = open(archive);
        let mut all = lines(&state, CAPTURED);
        all.extend(links(archive, &state));
        all.extend(words(&state, "SELECT url FROM pages").into_iter().map(|url| format!("'url' {url}")));
        all.sort();
        all
    }

    /// A rebuilt state contains the same facts, except for pages that only the crawl's own state contained.
    #[track_caller]
    pub(crate) fn assert_same_after(&self, after: &Facts) {
        let lost: Vec<_> =
            self.lines.iter().filter(|line| after.lines.binary_search(line).is_err()).collect();
        let gained: Vec<_> =
            after.lines.iter().filter(|line| self.lines.binary_search(line).is_err()).collect();
        assert!(lost.is_empty() && gained.is_empty(), "lost: {lost:#?}\ngained: {gained:#?}");
        let news: Vec<_> = after.urls.difference(&self.urls).collect();
        assert!(news.is_empty(), "pages that the crawl had not: {news:#?}");
        let lost: Vec<_> =
            self.urls.difference(&after.urls).filter(|url| !self.frontier.contains(*url)).collect();
        assert!(lost.is_empty(), "pages that the crawl had: {lost:#?}");
        for (url, rank) in &self.ranks {
            let again = after.ranks.get(url).copied().unwrap_or_default();
            // The order of summation differs.
            assert!((rank - again).abs() <= 1e-3 * rank.max(1.0), "{url} had rank {rank}, has {again}");
        }
        assert_eq!(self.ranks.len(), after.ranks.len());
    }
}

fn open(archive: &Path) -> Connection {
    Connection::open_with_flags(archive.join("state.db"), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn lines(state: &Connection, statements: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for sql in statements {
        let mut statement = state.prepare(sql).unwrap();
        let n_columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let word = |n| match row.get::<_, Value>(n).unwrap() {
                Value::Null => "-".to_string(),
                Value::Integer(n) => n.to_string(),
                Value::Real(x) => format!("{x:.9}"),
                Value::Text(text) => format!("'{text}'"),
                Value::Blob(bytes) => format!("{bytes:02x?}"),
            };
            lines.push((0..n_columns).map(word).collect::<Vec<_>>().join(" "));
        }
    }
    lines
}

fn words(state: &Connection, sql: &str) -> BTreeSet<String> {
    state.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Blocks and their contents. Their boxes may come from an earlier page with the same structure.
fn trees(archive: &Path, state: &Connection) -> Vec<String> {
    let store = perennial_archive::Archive::open(archive).unwrap().store().unwrap();
    let mut all = Vec::new();
    for (page, url) in urls_by_number(state) {
        for time in store.tree_times(PageId(page)).unwrap() {
            let tree = store.tree_at(PageId(page), time).unwrap().unwrap().without_boxes();
            all.push(format!("'tree' '{url}' {} {tree:?}", time.as_millis()));
        }
    }
    all
}

fn links(archive: &Path, state: &Connection) -> Vec<String> {
    let store = perennial_archive::Archive::open(archive).unwrap().store().unwrap();
    let urls = urls_by_number(state);
    let mut statement = state.prepare("SELECT page, time FROM links").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(|row| {
        let (page, time): (u32, i64) = row.unwrap();
        let targets = store.page_links(page).unwrap();
        let mut targets: Vec<&str> = targets.iter().map(|page| urls[page].as_str()).collect();
        targets.sort_unstable();
        format!("'links' '{}' {time} -> {}", urls[&page], targets.join(" "))
    })
    .collect()
}

fn urls_by_number(state: &Connection) -> BTreeMap<u32, String> {
    let mut statement = state.prepare("SELECT id, url FROM pages").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn ranks(archive: &Path, state: &Connection) -> BTreeMap<String, f32> {
    let store = perennial_archive::Archive::open(archive).unwrap().store().unwrap();
    let ranks = perennial_engine::learn::page_ranks(&store, &[]).unwrap();
    let captured = words(state, "SELECT url FROM pages WHERE n_captures > 0");
    urls_by_number(state)
        .into_iter()
        .filter(|(_, url)| captured.contains(url))
        .map(|(page, url)| (url, perennial_engine::learn::rank(&ranks, PageId(page))))
        .collect()
}
