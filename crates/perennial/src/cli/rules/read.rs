//! Files and archives -> histories.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use perennial_core::directory::SiteHistory;
use perennial_core::schedule::amounts::parse_span;
use perennial_core::time::Span;

use crate::cli::Context;
use crate::cli::context::not_found;
use perennial_engine::learn::site_history;
use perennial_lab::rules::{parse_history, without};

/// A history is not unpacked beyond this: a small file can claim to be endless.
const MOST_BYTES: u64 = 2 << 30;

/// Whose history.
#[derive(Args)]
pub(super) struct Source {
    /// A site of the archive, by its host
    #[arg(value_name = "SITE", conflicts_with = "history", required_unless_present = "history")]
    site: Option<String>,

    /// Files of versions, plain or packed with gzip, zstd or xz
    #[arg(long, value_name = "FILE", num_args = 1..)]
    history: Vec<PathBuf>,

    /// Leave out pages whose path contains this text
    #[arg(long, value_name = "TEXT")]
    without: Option<String>,

    /// Length of a version of an archived site [default: as long as the median page waits for its next look]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    every: Option<Span>,
}

impl Source {
    /// Reads all of them, with progress.
    pub(super) fn read(&self, context: &Context) -> anyhow::Result<Vec<SiteHistory>> {
        let mut histories = Vec::new();
        if let Some(site) = &self.site {
            let snapshot = context.snapshot()?;
            let history = site_history(snapshot.store(), site, self.every, perennial_archive::now())?;
            if history.versions.is_empty() {
                return Err(not_found(snapshot.store(), site));
            }
            if history.versions.len() < 3 {
                bail!(
                    "{site} was passed over {} times: rules need three passes or more, and are good from about ten on. \
                     `perennial crawl` makes more, --every makes them shorter",
                    history.versions.len()
                );
            }
            histories.push(history);
        }
        histories.extend(read_files(context, &self.history)?);
        if let Some(text) = &self.without {
            histories = histories.iter().map(|history| without(history, text)).collect();
        }
        Ok(histories)
    }
}

/// Reads files of versions, with progress.
pub(super) fn read_files(context: &Context, files: &[PathBuf]) -> anyhow::Result<Vec<SiteHistory>> {
    let mut histories = Vec::new();
    let bar = context.progress_count(files.len() as u64, "reading histories");
    for file in files {
        let history = read_file(file).with_context(|| format!("reading {}", file.display()))?;
        if history.n_aside > 0 {
            context.note(format_args!(
                "{}: {} changes that cannot be were passed over, such as the removal of an unknown page",
                file.display(),
                history.n_aside
            ));
        }
        histories.push(history);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(histories)
}

fn read_file(path: &Path) -> anyhow::Result<SiteHistory> {
    let mut file = BufReader::new(File::open(path)?);
    let name = path.file_name().map_or_else(|| "site".into(), |name| name.to_string_lossy());
    let name = name.split(".tsv").next().unwrap_or(&name).to_owned();
    let start = file.fill_buf()?;
    let packing = [(&b"\xfd7zXZ\0"[..], 'x'), (&b"\x1f\x8b"[..], 'g'), (&b"\x28\xb5\x2f\xfd"[..], 'z')];
    let packing = packing.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, kind)| *kind);
    let history = match packing {
        Some('x') => parse_history(&name, unpacked_xz(&mut file)?.as_slice()),
        Some('g') => parse_history(&name, bounded(flate2::bufread::MultiGzDecoder::new(file))),
        Some(_) => parse_history(&name, bounded(zstd::stream::read::Decoder::with_buffer(file)?)),
        None => parse_history(&name, bounded(file)),
    };
    Ok(history?)
}

fn bounded(input: impl Read) -> impl BufRead {
    BufReader::new(input.take(MOST_BYTES))
}

fn unpacked_xz(file: &mut impl BufRead) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Bounded(Vec::new());
    lzma_rs::xz_decompress(file, &mut bytes).map_err(|e| {
        anyhow::anyhow!("the xz file cannot be unpacked: {e:?}; unpack it with `xz -d` and try again")
    })?;
    Ok(bytes.0)
}

/// Takes what is written up to a bound.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() as u64 + bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("the unpacked file is larger than 2 GiB"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
