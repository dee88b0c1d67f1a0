//! Checksums of a database's pages, in a file next to it: `verify` finds every flipped bit.
//!
//! A write reaches the database file only in a checkpoint, which copies pages from SQLite's write-ahead log. That log has
//! checksums, the database has none. So this module does all checkpoints itself, each in three steps:
//! 1. It writes the checksums of all pages in the log to `NAME-sums-pending`.
//! 2. SQLite copies the pages, possibly not all, because readers may need the old ones.
//! 3. It reads the copied pages, and writes their checksums to `NAME-sums`.
//!
//! At any moment, every page of the database has its checksum in one of the two files, whenever the program is killed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::BUSY_TIMEOUT;
use crate::disk::write_whole;

/// The log is copied when it is longer. SQLite's own default is 4 MB; each of our checkpoints syncs three files more.
const MAX_LOG_BYTES: u64 = 8 << 20;

const MAGIC: &[u8; 8] = b"prnlsum1";
/// The magic, the page size, and the change counter of the database.
const HEADER_BYTES: usize = 16;
const COUNTER_OFFSET: u64 = 12;

/// How often a page is read again that a writer may have been replacing.
const MAX_READS: usize = 5;

/// SQLite never uses the page at this offset.
const LOCK_OFFSET: u64 = 1 << 30;

/// Suffixes of the files that this module keeps next to a database.
pub(super) const SUFFIXES: [&str; 2] = ["-sums", "-sums-pending"];

/// The checksums of one database, for its writer.
#[derive(Debug)]
pub(super) struct PageSums {
    database: PathBuf,
    /// Length of the log at which the next checkpoint is due.
    due_bytes: u64,
}

/// The checksums that the pages of a database may have.
#[derive(Default)]
struct KnownSums {
    page_bytes: u32,
    /// SQLite's change counter when the checksums were written.
    counter: u32,
    /// By page, the first is page 1; 0 if unknown.
    settled: Vec<u32>,
    pending: HashMap<u32, HashSet<u32>>,
}

/// The result of comparing a database with its checksums.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageCheck {
    /// It was written by an earlier version of this program, or is missing.
    NoSums,
    /// The numbers of the pages that contradict their checksums.
    Contradicting(Vec<u32>),
}

impl PageSums {
    /// Takes over the checkpoints of a connection, the only one that writes. Every connection for writing must be
    /// opened this way before its first write.
    pub(super) fn take_over(connection: &Connection, database: &Path) -> anyhow::Result<PageSums> {
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        let mut sums = PageSums { database: database.to_owned(), due_bytes: MAX_LOG_BYTES };
        sums.checkpoint(connection)?;
        let header = DatabaseHeader::read(database)?;
        if !beside(database, SUFFIXES[0]).exists() || KnownSums::read(database)?.is_of_another(&header) {
            sums.settle_all()?;
        }
        Ok(sums)
    }

    /// Does a checkpoint if the log has become long.
    pub(super) fn after_commit(&mut self, connection: &Connection) -> anyhow::Result<()> {
        match length(&beside(&self.database, "-wal"))? >= self.due_bytes {
            true => self.checkpoint(connection),
            false => Ok(()),
        }
    }

    /// Copies the log into the database as far as readers allow.
    pub(super) fn checkpoint(&mut self, connection: &Connection) -> anyhow::Result<()> {
        let mut known = KnownSums::read(&self.database)?;
        let log = beside(&self.database, "-wal");
        let frames = read_log(&log)?;
        if frames.is_empty() && known.pending.is_empty() {
            return Ok(());
        }
        for (page, sum) in frames {
            known.pending.entry(page).or_default().insert(sum);
        }
        write_whole(&beside(&self.database, SUFFIXES[1]), &known.pending_bytes())?;
        // A reader of an old page must not delay the writer. The rest is copied next time.
        connection.busy_timeout(std::time::Duration::ZERO)?;
        let done =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0));
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let is_whole = done?;
        known.page_bytes = DatabaseHeader::read(&self.database)?.page_bytes;
        self.settle(&mut known)?;
        if is_whole {
            fs::remove_file(beside(&self.database, SUFFIXES[1]))?;
        }
        self.due_bytes = length(&log)? + MAX_LOG_BYTES;
        Ok(())
    }

    /// Moves the checksums of pages that have been copied to the file of checksums.
    fn settle(&self, known: &mut KnownSums) -> anyhow::Result<()> {
        let path = beside(&self.database, SUFFIXES[0]);
        if !path.exists() {
            // `take_over` settles all pages.
            return Ok(());
        }
        let (database, file) = (File::open(&self.database)?, OpenOptions::new().write(true).open(&path)?);
        let mut buffer = vec![0; known.page_bytes as usize];
        for (page, sums) in &known.pending {
            let at = u64::from(page - 1);
            // The log may contain pages beyond the end of a database that shrank.
            if database.read_exact_at(&mut buffer, at * u64::from(known.page_bytes)).is_err() {
                continue;
            }
            let sum = checksum(&buffer);
            if sums.contains(&sum) {
                file.write_all_at(&sum.to_le_bytes(), HEADER_BYTES as u64 + at * 4)?;
            }
        }
        // A checksum beyond the end of a database that shrank would contradict the page that is there when it grows again.
        let n_pages = length(&self.database)? / u64::from(known.page_bytes.max(1));
        let sums_bytes = HEADER_BYTES as u64 + n_pages * 4;
        if file.metadata()?.len() > sums_bytes {
            file.set_len(sums_bytes)?;
        }
        let counter = DatabaseHeader::read(&self.database)?.counter;
        file.write_all_at(&counter.to_le_bytes(), COUNTER_OFFSET)?;
        Ok(file.sync_all()?)
    }

    /// Writes the checksums of all pages as they are.
    fn settle_all(&self) -> anyhow::Result<()> {
        let DatabaseHeader { page_bytes, counter } = DatabaseHeader::read(&self.database)?;
        let mut bytes = [&MAGIC[..], &page_bytes.to_le_bytes(), &counter.to_le_bytes()].concat();
        if page_bytes > 0 {
            let mut database = BufReader::with_capacity(1 << 20, File::open(&self.database)?);
            let mut buffer = vec![0; page_bytes as usize];
            while database.read_exact(&mut buffer).is_ok() {
                bytes.extend(checksum(&buffer).to_le_bytes());
            }
        }
        Ok(write_whole(&beside(&self.database, SUFFIXES[0]), &bytes)?)
    }
}

/// Compares each page of a database with its checksum, also while a writer works.
pub fn check_pages(database: &Path) -> anyhow::Result<PageCheck> {
    if !database.exists() || !beside(database, SUFFIXES[0]).exists() {
        return Ok(PageCheck::NoSums);
    }
    let mut known = KnownSums::read(database)?;
    let header = DatabaseHeader::read(database)?;
    let page_bytes = header.page_bytes;
    if known.is_of_another(&header) {
        return Ok(PageCheck::NoSums);
    }
    if page_bytes == 0 || known.page_bytes != page_bytes {
        return Ok(PageCheck::Contradicting(if length(database)? == 0 { Vec::new() } else { vec![1] }));
    }
    let mut file = BufReader::with_capacity(1 << 20, File::open(database)?);
    let mut buffer = vec![0; page_bytes as usize];
    let mut wrong = Vec::new();
    'pages: for page in 1.. {
        if file.read_exact(&mut buffer).is_err() {
            break;
        }
        let offset = u64::from(page - 1) * u64::from(page_bytes);
        let mut n_reads = 1;
        while offset != LOCK_OFFSET && !known.holds(page, checksum(&buffer)) {
            if n_reads == MAX_READS {
                wrong.push(page);
                break;
            }
            n_reads += 1;
            match file.get_ref().read_exact_at(&mut buffer, offset) {
                // The database shrank meanwhile.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break 'pages,
                read => read?,
            }
            known = KnownSums::read(database)?;
        }
    }
    Ok(PageCheck::Contradicting(wrong))
}

impl KnownSums {
    fn read(database: &Path) -> io::Result<KnownSums> {
        let mut known = KnownSums::default();
        // In this order: a checksum leaves the pending ones after it is among the settled ones.
        let bytes = read_if_there(&beside(database, SUFFIXES[1]))?;
        if let Some((pairs, sum)) = bytes.split_last_chunk::<4>()
            && checksum(pairs) == u32::from_le_bytes(*sum)
        {
            let pages = words(pairs).step_by(2).zip(words(pairs).skip(1).step_by(2));
            for (page, sum) in pages.filter(|(page, _)| *page > 0) {
                known.pending.entry(page).or_default().insert(sum);
            }
        }
        let bytes = read_if_there(&beside(database, SUFFIXES[0]))?;
        if let Some((header, sums)) = bytes.split_at_checked(HEADER_BYTES)
            && header.starts_with(MAGIC)
        {
            let mut numbers = words(&header[MAGIC.len()..]);
            known.page_bytes = numbers.next().unwrap_or_default();
            known.counter = numbers.next().unwrap_or_default();
            known.settled = words(sums).collect();
        }
        Ok(known)
    }

    /// Whether the database was replaced by another one, such as an earlier copy, without its checksums.
    fn is_of_another(&self, header: &DatabaseHeader) -> bool {
        self.pending.is_empty() && self.page_bytes == header.page_bytes && self.counter != header.counter
    }

    fn pending_bytes(&self) -> Vec<u8> {
        let pairs = self.pending.iter().flat_map(|(page, sums)| sums.iter().map(move |sum| [*page, *sum]));
        let mut bytes: Vec<u8> = pairs.flatten().flat_map(u32::to_le_bytes).collect();
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    fn holds(&self, page: u32, sum: u32) -> bool {
        let settled = self.settled.get(page as usize - 1).copied().unwrap_or_default();
        // A checkpoint with a concurrent reader may copy a later page first. A page before it is then a hole.
        let is_hole = settled == 0;
        settled == sum || self.pending.get(&page).is_some_and(|sums| is_hole || sums.contains(&sum))
    }
}

/// CRC-32, which differs after every change within 32 bits; never 0.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum().max(1)
}

/// The pages in the committed part of a write-ahead log with their checksums, each version of a page.
/// <https://sqlite.org/fileformat2.html#walformat>
fn read_log(path: &Path) -> io::Result<Vec<(u32, u32)>> {
    let mut frames = Vec::new();
    let mut header = [0; 32];
    let mut log = match File::open(path) {
        Ok(file) => BufReader::with_capacity(1 << 20, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(frames),
        Err(error) => return Err(error),
    };
    if log.read_exact(&mut header).is_err() || big(&header, 0) | 1 != 0x377f_0683 {
        return Ok(frames);
    }
    let is_big = big(&header, 0) & 1 == 1;
    let mut sum = log_checksum([0, 0], &header[..24], is_big);
    let page_bytes = big(&header, 8) as usize;
    if sum != [big(&header, 24), big(&header, 28)] || !is_page_size(page_bytes) {
        return Ok(frames);
    }
    let (mut frame, mut n_committed) = (vec![0; 24 + page_bytes], 0);
    while log.read_exact(&mut frame).is_ok() && frame[8..16] == header[16..24] {
        let (head, page) = frame.split_at(24);
        sum = log_checksum(log_checksum(sum, &head[..8], is_big), page, is_big);
        if sum != [big(head, 16), big(head, 20)] || big(head, 0) == 0 {
            break;
        }
        frames.push((big(head, 0), checksum(page)));
        if big(head, 4) > 0 {
            n_committed = frames.len();
        }
    }
    frames.truncate(n_committed);
    Ok(frames)
}

fn log_checksum(mut sum: [u32; 2], bytes: &[u8], is_big: bool) -> [u32; 2] {
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| match is_big {
            true => big(pair, at),
            false => big(pair, at).swap_bytes(),
        };
        sum[0] = sum[0].wrapping_add(word(0)).wrapping_add(sum[1]);
        sum[1] = sum[1].wrapping_add(word(4)).wrapping_add(sum[0]);
    }
    sum
}

/// The numbers in the first bytes of a database. <https://sqlite.org/fileformat2.html#the_database_header>
struct DatabaseHeader {
    /// 0 if the file is empty or not a database.
    page_bytes: u32,
    /// Changes when the database grows or shrinks, among others.
    counter: u32,
}

impl DatabaseHeader {
    fn read(database: &Path) -> io::Result<DatabaseHeader> {
        let (mut file, mut header) = (File::open(database)?, [0; 28]);
        if file.read_exact(&mut header).is_err() {
            return Ok(DatabaseHeader { page_bytes: 0, counter: 0 });
        }
        let written = u32::from(header[16]) << 8 | u32::from(header[17]);
        let bytes = if written == 1 { 1 << 16 } else { written };
        let page_bytes = if is_page_size(bytes as usize) { bytes } else { 0 };
        Ok(DatabaseHeader { page_bytes, counter: big(&header, 24) })
    }
}

fn is_page_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && (512..=1 << 16).contains(&bytes)
}

fn big(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word))
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_os_string();
    name.push(suffix);
    name.into()
}

fn length(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

fn read_if_there(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use perennial_core::rng::Rng;

    use super::*;

    fn opened(path: &Path) -> (Connection, PageSums) {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        let sums = PageSums::take_over(&connection, path).unwrap();
        connection.execute_batch("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, b BLOB)").unwrap();
        (connection, sums)
    }

    fn fill(connection: &Connection, n: i64) {
        for id in 0..n {
            let sql = "INSERT OR REPLACE INTO t VALUES (?1, randomblob(700 + ?1 % 5 * 3000))";
            connection.execute(sql, [id]).unwrap();
        }
    }

    const SOUND: PageCheck = PageCheck::Contradicting(Vec::new());

    #[test]
    fn every_flip_is_found_in_its_page() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        let (connection, mut sums) = opened(&path);
        fill(&connection, 50);
        assert_eq!(check_pages(&path).unwrap(), SOUND, "nothing is copied yet");
        sums.checkpoint(&connection).unwrap();
        drop(connection);
        assert_eq!(check_pages(&path).unwrap(), SOUND);
        let sound = fs::read(&path).unwrap();
        let mut rng = Rng::new(1);
        for _ in 0..100 {
            let (at, bit) = (rng.below(sound.len()), rng.below(8));
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << bit;
            fs::write(&path, bytes).unwrap();
            let found = check_pages(&path).unwrap();
            // Different databases have different change counters.
            let is_counter = (24..28).contains(&at) && found == PageCheck::NoSums;
            let is_page_size = (16..18).contains(&at) && found == PageCheck::Contradicting(vec![1]);
            let expected = PageCheck::Contradicting(vec![at as u32 / 4096 + 1]);
            assert!(is_counter || is_page_size || found == expected, "byte {at}: {found:?}");
        }
    }

    #[test]
    fn pages_are_sound_at_every_moment_beside_readers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        let (connection, mut sums) = opened(&path);
        for n in 1..20 {
            fill(&connection, n * 4);
            // The reader prevents that later pages are copied.
            let reader = Connection::open(&path).unwrap();
            reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
            reader.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
            fill(&connection, n * 3);
            sums.checkpoint(&connection).unwrap();
            assert_eq!(check_pages(&path).unwrap(), SOUND, "{n}");
            drop(reader);
            if n % 5 == 0 {
                connection.execute_batch("DELETE FROM t WHERE id > 10; VACUUM").unwrap();
                sums.checkpoint(&connection).unwrap();
            }
            assert_eq!(check_pages(&path).unwrap(), SOUND, "{n}");
        }
    }

    #[test]
    fn a_copy_taken_at_any_time_is_sound_and_is_continued() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        let (connection, mut sums) = opened(&path);
        for n in 1..8 {
            fill(&connection, n * 9);
            if n % 3 == 0 {
                sums.checkpoint(&connection).unwrap();
            }
            // What a killed process leaves.
            let copy = tempfile::tempdir().unwrap();
            for entry in fs::read_dir(dir.path()).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
            let copied = copy.path().join("t.db");
            assert_eq!(check_pages(&copied).unwrap(), SOUND, "{n}");
            let (connection, mut sums) = opened(&copied);
            fill(&connection, 5);
            sums.checkpoint(&connection).unwrap();
            drop(connection);
            assert_eq!(check_pages(&copied).unwrap(), SOUND, "{n}");
        }
    }
}
