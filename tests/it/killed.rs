//! SIGKILL of every command that writes: crawl, import, analysis, repair, rebuild, erasure, and a closing crawl. Right
//! after each kill `verify` finds no defect, and in the end nothing is lost, torn or duplicated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use perennial_archive::Archive as Opened;
use perennial_archive::store::CaptureFilter;
use perennial_core::rng::Rng;
use perennial_warc::Compression;

use crate::crawled::Archive;
use crate::program::sample_warc;
use crate::wait::{found_within, wait_until};
use crate::web::{Reply, Web, WebRequest, html, status};

const N_PAGES: usize = 60;
/// The samples in one imported file, with six captures each.
const N_SAMPLES: usize = 60;

#[test]
fn kills_of_all_that_writes_lose_nothing() {
    Killer::new(5).run(4);
}

#[test]
#[ignore = "takes minutes: the command is in experiments/power-loss/README.md"]
fn two_hundred_kills() {
    Killer::new(6).run(30);
}

/// The command that is killed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Work {
    Crawl,
    Close,
    Import,
    Analyse,
    Repair,
    Rebuild,
    Erase,
}

const ALL: [Work; 7] =
    [Work::Crawl, Work::Import, Work::Analyse, Work::Close, Work::Repair, Work::Rebuild, Work::Erase];

struct Killer {
    archive: Archive,
    web: Web,
    sources: tempfile::TempDir,
    imported: Vec<PathBuf>,
    /// Hosts of imported captures that were to be erased.
    erased: BTreeSet<String>,
    rng: Rng,
    /// The maximum delay before a kill. It adapts to earlier runs: about every second kill should come too late.
    patience: BTreeMap<Work, Duration>,
    n_unfinished: usize,
}

/// Every page is reachable from the first. Most pages change at each visit.
fn site(request: &WebRequest) -> Reply {
    let Some(n) = request.path.trim_start_matches("/p").parse::<usize>().ok().filter(|n| *n < N_PAGES) else {
        return status(404);
    };
    let edition = if n.is_multiple_of(3) { 0 } else { request.n_before };
    let links: String = (1..=3)
        .map(|k| n * 3 + k)
        .filter(|to| *to < N_PAGES)
        .map(|to| format!("<a href=/p{to}>next</a>"))
        .collect();
    let mut rng = Rng::from_parts(&[n as u64, edition as u64]);
    let words: String = (0..40 * (n % 7)).map(|_| format!("{:x} ", rng.bits())).collect();
    html(&format!("page {n} in edition {edition} {links} {words}"))
}

impl Killer {
    fn new(seed: u64) -> Killer {
        let (archive, web) = (Archive::new(), Web::serve(site));
        archive.ok(&["add", &web.url("/p0"), "--allow-private"]);
        perennial_archive::settings::edit(&archive.root.join("perennial.toml"), |document, _| {
            document["warc"]["max_file_bytes"] = toml_edit::value(40_000);
            Ok(())
        })
        .unwrap();
        Killer {
            archive,
            web,
            sources: tempfile::tempdir().unwrap(),
            imported: Vec::new(),
            erased: BTreeSet::new(),
            rng: Rng::new(seed),
            patience: BTreeMap::new(),
            n_unfinished: 0,
        }
    }

    /// Performs `n_each` kills of each kind, in turn.
    fn run(mut self, n_each: usize) {
        let mut n_kills: BTreeMap<Work, usize> = BTreeMap::new();
        // A run that ends before its kill does not count. The bound ends a test in which no kill succeeds.
        for _ in 0..n_each * 20 {
            for work in ALL {
                let n_done = n_kills.entry(work).or_default();
                if *n_done < n_each && self.kill(work) {
                    *n_done += 1;
                    self.verify_at_once(work);
                }
            }
            if n_kills.values().all(|n| *n == n_each) {
                break;
            }
        }
        // On a fast disk, nearly every close may end before its kill.
        assert!(n_kills.values().all(|n| *n * 3 >= n_each), "too few kills: {n_kills:?}");
        println!("{n_kills:?} kills, {} left something unfinished", self.n_unfinished);
        self.check_the_end();
    }

    /// Starts a command and kills it at a random moment. Returns false if it ended earlier.
    fn kill(&mut self, work: Work) -> bool {
        let crawl = ["run", "--once", "--delay", "0", "--connections", "4", "--no-analysis"];
        let limit = (2 + self.rng.below(12)).to_string();
        let args: Vec<String> = match work {
            Work::Crawl => crawl.map(str::to_string).into(),
            Work::Close => {
                [&crawl[..], &["--limit", &limit]].concat().iter().map(|arg| arg.to_string()).collect()
            }
            Work::Import => {
                let path = self.new_source();
                vec!["import".into(), "--no-analysis".into(), path.to_string_lossy().into_owned()]
            }
            Work::Analyse => vec!["analyse".into()],
            Work::Repair => vec!["verify".into(), "--repair".into()],
            Work::Rebuild => vec!["verify".into(), "--rebuild".into()],
            Work::Erase => {
                let host =
                    format!("s{}-{}.example", self.rng.below(self.imported.len()), self.rng.below(N_SAMPLES));
                self.erased.insert(host.clone());
                ["erase", &host, "--reason", "a test", "--yes"].map(str::to_string).into()
            }
        };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let n_lines = self.archive.log().len();
        let mut child =
            self.archive.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if work == Work::Close {
            // The log contains the last visit once it is committed. Then the crawl closes.
            let n_wanted = n_lines + limit.parse::<usize>().unwrap();
            wait_until("the last visit in the log", || {
                self.archive.log().len() >= n_wanted || child.try_wait().unwrap().is_some()
            });
        }
        let patience = *self.patience.entry(work).or_insert(Duration::from_millis(100));
        let is_killed = kill_after(&mut child, patience.mul_f64(self.rng.unit()));
        let factor = if is_killed { 1.2 } else { 0.6 };
        self.patience.insert(work, patience.mul_f64(factor).min(Duration::from_secs(5)));
        is_killed
    }

    fn new_source(&mut self) -> PathBuf {
        let n = self.imported.len();
        let path = self.sources.path().join(format!("source-{n}.warc.gz"));
        let samples = (0..N_SAMPLES).flat_map(|k| sample_warc(&format!("s{n}-{k}"), Compression::Gzip(1)));
        std::fs::write(&path, samples.collect::<Vec<u8>>()).unwrap();
        self.imported.push(path.clone());
        path
    }

    /// Before any other command starts, the archive is sound, and `verify` reports what the next start will repair.
    fn verify_at_once(&mut self, work: Work) {
        let output = self.archive.run(&["verify", "--json"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "after a killed {work:?}: {text} {output:?}");
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(report["defects"].as_array().unwrap().is_empty(), "after a killed {work:?}: {text}");
        self.n_unfinished += usize::from(!report["unfinished"].as_array().unwrap().is_empty());
    }

    /// Repeats everything without a kill. The archive then contains every reported visit and every imported capture,
    /// each once.
    fn check_the_end(&self) {
        self.archive.ok(&["run", "--once", "--delay", "0", "--no-analysis"]);
        let sources = self.imported.iter().map(|path| path.to_str().unwrap());
        self.archive.ok(&["import", "--no-analysis"].into_iter().chain(sources).collect::<Vec<_>>());
        for host in &self.erased {
            // It fails if nothing is left to erase.
            self.archive.run(&["erase", host, "--reason", "a test", "--yes"]);
        }
        let report = self.archive.json(&["verify"]);
        assert!(report["unfinished"].as_array().unwrap().is_empty(), "{report}");
        let (mut seen, mut n_imported) = (BTreeSet::new(), 0);
        let mut pairs = BTreeSet::new();
        let store = Opened::open(&self.archive.root).unwrap().store().unwrap();
        store
            .each_capture(&CaptureFilter::default(), |capture| {
                n_imported += usize::from(capture.url.contains(".example/"));
                pairs.insert((capture.url.clone(), capture.digest.clone()));
                let is_new = seen.insert((capture.url, capture.time, capture.kind as u8, capture.digest));
                assert!(is_new, "a capture is there twice: {:?}", seen.last());
                Ok(())
            })
            .unwrap();
        let n_samples = self.imported.len() * N_SAMPLES - self.erased.len();
        assert_eq!(n_imported, n_samples * 6, "imported captures");
        let log = self.archive.log();
        assert!(log.len() > N_PAGES, "hardly anything was crawled: {}", log.len());
        for line in log {
            if let (Some(url), Some(digest)) = (line["url"].as_str(), line["digest"].as_str()) {
                assert!(pairs.contains(&(url.to_string(), digest.to_string())), "lost: {line}");
            }
        }
        for n in 0..N_PAGES {
            assert!(self.web.n_requests(&format!("/p{n}")) > 0, "page {n} was lost");
        }
        println!("{} captures, {n_imported} of them imported", seen.len());
    }
}

/// Waits and kills. Returns false if the process ended earlier, which must have been a success.
fn kill_after(child: &mut Child, delay: Duration) -> bool {
    if let Some(status) = found_within(delay, || child.try_wait().unwrap()) {
        // An erasure fails if nothing is left to erase.
        assert!(matches!(status.code(), Some(0 | 1 | 15)), "it ended by itself: {status}");
        return false;
    }
    let _ = child.kill();
    child.wait().unwrap().code().is_none()
}
