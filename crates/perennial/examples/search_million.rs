//! Fills a text index with N versions of pages and compares it with SQLite's full-text index over whole versions.
//!
//! ```text
//! cargo run --release --example search_million -- DIR 1000000
//! ```
//!
//! Each page has a hundred versions. Each version has twelve passages of ten to fourteen words, one of which is new.
//! Words are drawn by rank as in a language. One new passage in five also appears on other pages. The code that a
//! crawl uses (`TextCommit::show`) writes the index, without laying pages out. Queries run through the same code as
//! `perennial search`.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use perennial_archive::store::{ObservationRow, ShownText, Texts};
use perennial_archive::{Archive, ArchiveWriter};
use perennial_core::page::segment::BlockRole;
use perennial_core::rng::Rng;
use perennial_core::search::TextQuery;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use perennial_engine::search::{SearchQuery, find_pages};
use perennial_warc::surt::surt;
use rusqlite::{Connection, params};

const VERSIONS_PER_PAGE: u64 = 100;
const PASSAGES: u64 = 12;
const VOCABULARY: f64 = 60_000.0;
const N_QUERIES: u64 = 300;
/// Limit on the presences that a query reads, for both indexes.
const MAX_ROWS: usize = 20_000;

fn word(rng: &mut Rng) -> String {
    // A word's probability is proportional to 1/r, where r is its rank.
    let rank = VOCABULARY.powf(rng.below(1_000_000) as f64 / 1_000_000.0) as u64;
    let (mut left, mut word) = (rank + 1, String::new());
    while left > 0 {
        word.push_str(["ka", "te", "mi", "ro", "su", "la", "ne", "do"][(left % 8) as usize]);
        left /= 8;
    }
    word
}

/// Passage `number` of a page. Some passages are on many pages.
fn passage(page: u64, number: u64) -> String {
    let mut rng = Rng::from_parts(&[page, number]);
    if rng.below(5) == 0 {
        rng = Rng::from_parts(&[u64::MAX, rng.below(20_000) as u64]);
    }
    let n = 10 + rng.below(5);
    (0..n).map(|_| word(&mut rng)).collect::<Vec<_>>().join(" ")
}

/// The passages of a version. Each version has one that the previous version did not have.
fn version(page: u64, number: u64) -> Vec<String> {
    (number..number + PASSAGES).map(|number| passage(page, number)).collect()
}

fn time(version: u64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000 + 86_400 * version as i64)
}

fn median_and_p95(mut millis: Vec<f64>) -> (f64, f64) {
    millis.sort_by(f64::total_cmp);
    (millis[millis.len() / 2], millis[millis.len() * 95 / 100])
}

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir =
        args.first().map(Path::new).ok_or_else(|| anyhow::anyhow!("give a folder that is not there yet"))?;
    let n_versions: u64 = args.get(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let n_pages = (n_versions / VERSIONS_PER_PAGE).max(1);
    let archive = Archive::create(dir)?;
    let pages = make_pages(&archive, n_pages)?;

    let begin = Instant::now();
    let mut texts = Texts::open_write(&archive.texts_path())?;
    for (number, part) in pages.chunks(64).enumerate() {
        texts.write(|commit| {
            for (at, page) in part.iter().enumerate() {
                let seed = (number * 64 + at) as u64;
                for version_number in 0..VERSIONS_PER_PAGE {
                    let said = version(seed, version_number);
                    let shown: Vec<ShownText<'_>> =
                        said.iter().map(|text| ShownText { text, role: BlockRole::Main }).collect();
                    let before = version_number.checked_sub(1).map(time);
                    // One version in four is worth indexing, as in archives of news.
                    let row = ObservationRow {
                        time: time(version_number),
                        before,
                        is_indexed: version_number % 4 == 0,
                    };
                    commit.show(*page, &row, &shown)?;
                }
                commit.set_seen(*page, time(VERSIONS_PER_PAGE - 1), VERSIONS_PER_PAGE)?;
            }
            Ok(())
        })?;
    }
    let indexing = begin.elapsed().as_secs_f64();
    let counts = texts.counts()?;
    println!("{n_versions} versions of {n_pages} pages");
    println!(
        "passages: {:.0} versions/s, {} passages, {} stays",
        n_versions as f64 / indexing,
        counts.n_texts,
        counts.n_presences
    );
    println!("passages: {:.0} bytes a version", counts.n_bytes as f64 / n_versions as f64);
    let queries = queries(n_pages)?;
    let store = archive.store()?;
    let texts = Texts::open_read(&archive.texts_path())?.ok_or_else(|| anyhow::anyhow!("no index"))?;
    tell("passages", &queries, |query| {
        let search = SearchQuery { limit: 50, ..SearchQuery::default() };
        Ok(find_pages(&store, &texts, query, &search)?.n_pages)
    })?;
    whole_versions(dir, n_pages, &queries)
}

fn make_pages(archive: &Archive, n_pages: u64) -> anyhow::Result<Vec<PageId>> {
    let mut writer = ArchiveWriter::open(archive)?;
    let mut pages = Vec::new();
    for number in 0..n_pages {
        let url = format!("http://site{}.example/page/{number}", number % 50);
        pages.push(writer.store_mut().page_id(&url, &surt(&url))?);
    }
    writer.close()?;
    Ok(pages)
}

/// Queries of four kinds: a word, two words of one passage, three consecutive words, and the beginning of a word.
fn queries(n_pages: u64) -> anyhow::Result<Vec<TextQuery>> {
    let mut rng = Rng::from_parts(&[5]);
    let mut queries = Vec::new();
    for number in 0..N_QUERIES {
        let text = passage(rng.below(n_pages as usize) as u64, rng.below(100) as u64);
        let words: Vec<&str> = text.split(' ').collect();
        let at = rng.below(words.len() - 3);
        let search = match number % 4 {
            0 => words[at].to_owned(),
            1 => format!("{} {}", words[at], words[at + 2]),
            2 => format!("\"{}\"", words[at..at + 3].join(" ")),
            _ => format!("{}* {}", words[at], words[at + 1]),
        };
        queries.push(TextQuery::parse(&search)?);
    }
    Ok(queries)
}

fn tell(
    name: &str,
    queries: &[TextQuery],
    mut run: impl FnMut(&TextQuery) -> anyhow::Result<usize>,
) -> anyhow::Result<()> {
    let (mut millis, mut n_found) = (Vec::new(), 0);
    for query in queries {
        let begin = Instant::now();
        n_found += run(query)?;
        millis.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let (median, p95) = median_and_p95(millis);
    println!(
        "{name}: median {median:.2} ms, p95 {p95:.2} ms, {:.1} pages an answer",
        n_found as f64 / queries.len() as f64
    );
    Ok(())
}

/// Measures the same texts with one row per version.
fn whole_versions(dir: &Path, n_pages: u64, queries: &[TextQuery]) -> anyhow::Result<()> {
    let mut connection = Connection::open(dir.join("versions.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    connection.execute_batch(
        "CREATE TABLE versions (id INTEGER PRIMARY KEY, page INTEGER NOT NULL, time INTEGER NOT NULL);
         CREATE VIRTUAL TABLE words USING fts5(folded, content='', tokenize='ascii');",
    )?;
    let begin = Instant::now();
    let all: Vec<u64> = (0..n_pages).collect();
    for part in all.chunks(64) {
        let transaction = connection.transaction()?;
        {
            let mut put = transaction.prepare_cached("INSERT INTO versions (page, time) VALUES (?1, ?2)")?;
            let mut index =
                transaction.prepare_cached("INSERT INTO words (rowid, folded) VALUES (?1, ?2)")?;
            for page in part {
                for version_number in 0..VERSIONS_PER_PAGE {
                    let id = put.insert(params![*page as i64, time(version_number).as_millis()])?;
                    index.execute(params![id, version(*page, version_number).join(" ")])?;
                }
            }
        }
        transaction.commit()?;
    }
    let n_versions = n_pages * VERSIONS_PER_PAGE;
    println!("whole versions: {:.0} versions/s", n_versions as f64 / begin.elapsed().as_secs_f64());
    let size = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let n_bytes = size("PRAGMA page_count")? * size("PRAGMA page_size")?;
    println!("whole versions: {:.0} bytes a version, without the texts", n_bytes as f64 / n_versions as f64);
    tell("whole versions", queries, |query| {
        let mut statement = connection.prepare_cached(
            "SELECT v.page, v.time FROM words w JOIN versions v ON v.id = w.rowid WHERE words MATCH ?1 ORDER BY w.rowid DESC LIMIT ?2",
        )?;
        let expression: Vec<String> = query.alternatives[0]
            .iter()
            .map(|clause| {
                format!("\"{}\"{}", clause.words.join(" "), if clause.is_prefix { " *" } else { "" })
            })
            .collect();
        let mut rows = statement.query(params![expression.join(" AND "), MAX_ROWS as i64])?;
        let mut pages: HashMap<i64, Vec<i64>> = HashMap::new();
        while let Some(row) = rows.next()? {
            pages.entry(row.get(0)?).or_default().push(row.get(1)?);
        }
        Ok(pages.len())
    })
}
