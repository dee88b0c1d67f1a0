//! The recorded scenarios: an archive is created, crawled twice, extended by imports, opened after a kill, and rebuilt.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use perennial_archive::import::import;
use perennial_archive::verify::rebuild;
use perennial_archive::{Archive, ArchiveWriter};
use perennial_core::rng::Rng;
use perennial_warc::Compression;

use super::disk::{Change, NameOp, Node, Op};
use super::trace::{Recording, record};
use super::{Captures, captures, real_folder};
use crate::program::{append_random, perennial, sample_warc};
use crate::wait::wait_until;
use crate::web::{Reply, Web, WebRequest, html, status};

/// Repeats the command and compares; its argument is the captures that the start found.
type Again = Box<dyn Fn(&Path, Captures) -> Result<(), String> + Sync>;

/// A recorded command, with the captures that must exist after it.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) recording: Recording,
    pub(crate) before: Captures,
    pub(crate) after: Captures,
    /// URL and digest of each line of crawl.log, with the operation that wrote it.
    reported: Vec<(usize, String, String)>,
    pub(crate) again: Again,
    /// The command is repeated after every n-th checked prefix.
    pub(crate) redo_stride: usize,
}

impl Scenario {
    fn record(name: &'static str, root: &Path, args: &[&str], again: Again) -> Scenario {
        let archive = root.join("archive");
        let found = |root: &Path| Archive::open(root).map(|archive| captures(&archive)).unwrap_or_default();
        let before = found(&archive);
        let mut command = Command::new(env!("CARGO_BIN_EXE_perennial"));
        command.arg("--archive").arg(&archive).args(args);
        let recording = record(root, &command);
        let reported = reported_in(&recording);
        Scenario { name, before, after: found(&archive), reported, recording, again, redo_stride: 5 }
    }

    pub(crate) fn reported_before(&self, cut: usize) -> impl Iterator<Item = (&str, &str)> {
        self.reported.iter().take_while(move |(at, ..)| *at < cut).map(|(_, url, digest)| (&**url, &**digest))
    }
}

/// The lines of crawl.log, which are written when their captures are committed.
fn reported_in(recording: &Recording) -> Vec<(usize, String, String)> {
    let log = Path::new("archive/crawl.log");
    let mut file = recording.before.names().find(|(path, _)| *path == log).map(|(_, node)| node);
    let mut reported = Vec::new();
    for (at, op) in recording.ops.iter().enumerate() {
        match op {
            Op::Name(NameOp::Put(path, node)) if path == log => file = Some(*node),
            Op::Data(id, Change::Write(_, bytes)) if file == Some(Node::File(*id)) => {
                for line in String::from_utf8_lossy(bytes).lines() {
                    let line: serde_json::Value = serde_json::from_str(line).unwrap();
                    if let (Some(url), Some(digest)) = (line["url"].as_str(), line["digest"].as_str()) {
                        reported.push((at, url.to_string(), digest.to_string()));
                    }
                }
            }
            _ => {}
        }
    }
    reported
}

/// All scenarios, with a web of this many pages.
pub(crate) fn all(n_pages: usize) -> Vec<Scenario> {
    let mut scenarios = vec![
        init(),
        import_after_kill("import after a kill", b""),
        import_after_kill("import after a kill in a record", TORN),
    ];
    let sources = Sources::new(n_pages);
    scenarios.extend(crawls(n_pages, &sources));
    scenarios
}

fn nothing_again() -> Again {
    Box::new(|_, _| Ok(()))
}

fn init() -> Scenario {
    let (_dir, root) = real_folder();
    Scenario::record("init", &root, &["init"], nothing_again())
}

/// All pages are linked from the first. Most change at each fetch, and some compress badly.
fn site(request: &WebRequest, n_pages: usize) -> Reply {
    let Some(n) = request.path.trim_start_matches("/p").parse::<usize>().ok().filter(|n| *n < n_pages) else {
        return status(404);
    };
    let edition = if n.is_multiple_of(3) { 0 } else { request.n_before };
    let links: String = (1..=3).map(|k| format!("<a href=/p{}>next</a>", n * 3 + k)).collect();
    let mut rng = Rng::from_parts(&[n as u64, edition as u64]);
    let n_words = if n.is_multiple_of(5) { 3000 } else { 20 };
    let words: String = (0..n_words).map(|_| format!("{:x} ", rng.bits())).collect();
    html(&format!("page {n} in edition {edition} {links} {words}"))
}

/// Two crawls, an import into their archive, and a rebuild of all.
fn crawls(n_pages: usize, sources: &Sources) -> Vec<Scenario> {
    let (_dir, root) = real_folder();
    let archive = root.join("archive");
    let web = Arc::new(Web::serve(move |request| site(request, n_pages)));
    perennial(&archive, ["init"]).ok();
    perennial(&archive, ["add", &web.url("/p0"), "--allow-private"]).ok();
    // Small files make the change from one file to the next frequent.
    set(&archive, "max_file_bytes", 60_000);
    let first = recorded_crawl("crawl", &root, &web, n_pages);
    // Times of records are whole seconds: a second fetch within one would be the same capture.
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let ended = second();
    wait_until("the next second", || second() > ended);
    set(&archive, "compression", "zstd");
    let second = recorded_crawl("crawl again", &root, &web, n_pages);
    let mut args = vec!["import", "--no-analysis"];
    args.extend(sources.paths.iter().map(|path| path.to_str().unwrap()));
    let third = Scenario::record("import", &root, &args, sources.import_again());
    let rebuild_again: Again = Box::new(|root, before| {
        let archive = Archive::open(root).unwrap();
        rebuild(&archive, &|_| ()).map_err(|error| format!("{error:#}"))?;
        if captures(&archive) == before { Ok(()) } else { Err("a rebuild finds other captures".to_string()) }
    });
    let fourth = Scenario::record("rebuild", &root, &["verify", "--rebuild"], rebuild_again);
    vec![first, second, third, fourth]
}

/// A pass over all pages. A repeated pass continues until all pages are captured.
fn recorded_crawl(name: &'static str, root: &Path, web: &Arc<Web>, n_pages: usize) -> Scenario {
    const CRAWL: [&str; 7] = ["run", "--once", "--delay", "0", "--connections", "2", "--no-analysis"];
    let web = web.clone();
    let again: Again = Box::new(move |root, _| {
        let ran = perennial(root, CRAWL);
        if ran.code != 0 {
            return Err(format!("crawled again: {}", ran.stderr));
        }
        let found = captures(&Archive::open(root).unwrap());
        let urls: BTreeSet<&str> = found.keys().map(|key| key.0.as_str()).collect();
        match (0..n_pages).map(|n| web.url(&format!("/p{n}"))).find(|url| !urls.contains(url.as_str())) {
            Some(url) => Err(format!("crawled again, {url} is not there")),
            None => Ok(()),
        }
    });
    // Each runs in a process of its own and fetches a whole web.
    Scenario { redo_stride: 20, ..Scenario::record(name, root, &CRAWL, again) }
}

fn set(archive: &Path, key: &str, value: impl Into<toml_edit::Value>) {
    perennial_archive::settings::edit(&archive.join("perennial.toml"), |document, _| {
        document["warc"][key] = toml_edit::value(value);
        Ok(())
    })
    .unwrap();
}

/// Files of other tools, kept while they may be imported again.
struct Sources {
    dir: Arc<tempfile::TempDir>,
    paths: Vec<PathBuf>,
}

impl Sources {
    /// A large file, an uncompressed one, one that must be rewritten, and one without new captures.
    fn new(n: usize) -> Sources {
        let dir = tempfile::tempdir().unwrap();
        let many: Vec<u8> =
            (0..n * 2).flat_map(|n| sample_warc(&format!("many{n}"), Compression::Gzip(6))).collect();
        let whole = crate::crawled::gzip(&sample_warc("whole", Compression::None));
        let files = [
            ("many.warc.gz", many),
            ("plain.warc", sample_warc("plain", Compression::None)),
            ("whole.warc.gz", whole),
            ("known.warc.gz", sample_warc("many1", Compression::Gzip(1))),
        ];
        let paths = files.map(|(name, bytes)| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        });
        Sources { dir: Arc::new(dir), paths: paths.into() }
    }

    /// A repeated import completes the captures.
    fn import_again(&self) -> Again {
        let (dir, paths) = (self.dir.clone(), self.paths.clone());
        Box::new(move |root, before| {
            let _kept = &dir;
            let archive = Archive::open(root).unwrap();
            let words = |error: anyhow::Error| format!("{error:#}");
            let mut writer = ArchiveWriter::open(&archive).map_err(words)?;
            import(&mut writer, &paths, &|_| ()).map_err(words)?;
            writer.close().map_err(words)?;
            let after = captures(&archive);
            let wanted = paths.len() - 1;
            let n_of = |stem: &str| after.keys().filter(|key| key.0.contains(stem)).count();
            if before.keys().any(|key| !after.contains_key(key)) || after.values().any(|n| *n != 1) {
                return Err("imported again, captures are lost or there twice".to_string());
            }
            match [n_of("//many"), n_of("//plain"), n_of("//whole")].iter().filter(|n| **n >= 6).count() {
                n if n == wanted => Ok(()),
                _ => Err("imported again, not all is there".to_string()),
            }
        })
    }
}

/// The beginning of a record.
const TORN: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff and then nothing";

/// The start that repairs the remains of a kill: captures behind the last commit, and perhaps a torn record.
fn import_after_kill(name: &'static str, torn: &[u8]) -> Scenario {
    let (_dir, root) = real_folder();
    let path = root.join("archive");
    let archive = Archive::create(&path).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    for n in 0..12 {
        append_random(&mut writer, "power.example", n, 200 * n);
        if n == 7 {
            writer.commit().unwrap();
        }
    }
    let n_synced = writer.store().files().unwrap()[0].committed_bytes;
    drop(writer);
    let open = std::fs::read_dir(path.join("warc")).unwrap().next().unwrap().unwrap().path();
    let mut file = std::fs::OpenOptions::new().append(true).open(&open).unwrap();
    file.write_all(torn).unwrap();
    let sources = Sources::new(1);
    let mut args = vec!["import", "--no-analysis"];
    args.extend(sources.paths.iter().map(|path| path.to_str().unwrap()));
    let mut scenario = Scenario::record(name, &root, &args, sources.import_again());
    // Writes of the killed process after its last commit are not yet on disk when the import begins.
    scenario.recording.before.unsync(open.strip_prefix(&root).unwrap(), n_synced);
    scenario
}
