//! A file that was being written during a crash -> its sound records without gaps. The rest goes to a side file.
//!
//! A disk may store unsynced writes in any order. Sound records can therefore follow a lost range of bytes. The sound
//! records remain. The other bytes are removed, or `verify` would report them forever.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use anyhow::Context;
use perennial_warc::{DigestVerdict, WarcItem, WarcReader};

use super::recover::Repair;
use super::{files, sync_dir};

/// Removes everything but sound records from a file. `from` must be the start of a record, and the state must have no
/// capture after it.
pub(crate) fn repair_file(path: &Path, name: &str, from: u64) -> anyhow::Result<Vec<Repair>> {
    let context = || format!("cannot repair {}", path.display());
    let torn = torn_stretches(path, from).with_context(context)?;
    let bytes = fs::metadata(path).with_context(context)?.len();
    match &torn[..] {
        [] => Ok(Vec::new()),
        [last] if last.end >= bytes => Ok(vec![cut_torn_end(path, name, last.start)?]),
        _ => cut_out(path, name, &torn, bytes).with_context(context),
    }
}

fn torn_stretches(path: &Path, from: u64) -> io::Result<Vec<Range<u64>>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = WarcReader::seekable(file)?;
    let mut torn: Vec<Range<u64>> = Vec::new();
    while let Some(item) = reader.next_item()? {
        let damage = match item {
            WarcItem::Damage(damage) => Some(damage),
            WarcItem::Record(mut record) => {
                let offset = record.offset();
                // An unreadable block causes the same error at the end of the record.
                let is_false = record.check_digests().is_ok_and(|(block, payload)| {
                    [block, payload].iter().any(|verdict| matches!(verdict, DigestVerdict::Mismatch { .. }))
                });
                let ended = record.finish()?;
                if ended.is_ok() && is_false {
                    torn.push(offset..reader.offset());
                }
                ended.err()
            }
        };
        torn.extend(damage.map(|damage| damage.offset..damage.offset + damage.length));
    }
    Ok(torn)
}

/// Moves ranges into the side file, and replaces the file with the rest atomically.
fn cut_out(path: &Path, name: &str, torn: &[Range<u64>], bytes: u64) -> anyhow::Result<Vec<Repair>> {
    let side_name = format!("{name}-{}.torn", torn[0].start);
    let beside = path.with_added_extension(files::COPYING_SUFFIX.trim_start_matches('.'));
    let mut side = OpenOptions::new().append(true).create(true).open(path.with_file_name(&side_name))?;
    let mut rest = File::create(&beside)?;
    let mut repairs = Vec::new();
    let mut done = 0;
    for stretch in torn {
        copy(path, done..stretch.start, &mut rest)?;
        copy(path, stretch.clone(), &mut side)?;
        done = stretch.end;
        repairs.push(Repair::CutTorn {
            file: name.to_string(),
            offset: stretch.start,
            bytes: stretch.end - stretch.start,
            kept_in: side_name.clone(),
        });
    }
    copy(path, done..bytes, &mut rest)?;
    side.sync_all()?;
    rest.sync_all()?;
    // The name of the side file must be durable before the bytes leave the WARC file.
    let dir = path.parent().unwrap_or(Path::new("."));
    sync_dir(dir)?;
    fs::rename(&beside, path)?;
    sync_dir(dir)?;
    Ok(repairs)
}

fn copy(path: &Path, stretch: Range<u64>, out: &mut File) -> io::Result<()> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(stretch.start))?;
    io::copy(&mut file.take(stretch.end.saturating_sub(stretch.start)), out)?;
    Ok(())
}

/// Moves everything from `offset` on into a side file, which is synced before the file is truncated.
pub(crate) fn cut_torn_end(path: &Path, name: &str, offset: u64) -> anyhow::Result<Repair> {
    let side_name = format!("{name}-{offset}.torn");
    let side_path = path.with_file_name(&side_name);
    let context = || format!("cannot cut the torn end of {}", path.display());
    let mut file = OpenOptions::new().read(true).write(true).open(path).with_context(context)?;
    file.seek(SeekFrom::Start(offset)).with_context(context)?;
    // A second cut at the same offset is appended to the first.
    let mut side = OpenOptions::new().append(true).create(true).open(&side_path).with_context(context)?;
    let bytes = io::copy(&mut file, &mut side).with_context(context)?;
    side.sync_all().with_context(context)?;
    sync_dir(path.parent().unwrap_or(Path::new("."))).with_context(context)?;
    file.set_len(offset).with_context(context)?;
    file.sync_all().with_context(context)?;
    Ok(Repair::CutTorn { file: name.to_string(), offset, bytes, kept_in: side_name })
}
