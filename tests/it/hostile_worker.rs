//! Orphaned or exploited layout workers: they end with their parent, and can only compute.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use perennial_render::resource::nothing;
use perennial_render::{Fallback, PageLimits, WorkerCommand, WorkerPool};

use crate::wait::wait_until;

/// A page that keeps the layout engine busy for minutes in little memory. For each rule, each paragraph checks all
/// paragraphs before it.
fn long_page() -> String {
    let rules: String = (0..2000).map(|n| format!(".a{n} ~ p ~ p ~ p{{color:red}}")).collect();
    format!("<style>{rules}</style>{}", "<p>a".repeat(20_000))
}

fn worker(arguments: &[&str]) -> WorkerCommand {
    WorkerCommand {
        program: env!("CARGO_BIN_EXE_perennial").into(),
        arguments: arguments.iter().map(Into::into).collect(),
    }
}

/// The workers of a process, as folders of `/proc`.
fn workers_of(parent: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_worker = |path: &PathBuf| {
        let stat = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        after_name.split_whitespace().nth(1) == Some(&parent.to_string())
            && String::from_utf8_lossy(&line).contains("render-worker")
    };
    entries.filter(is_worker).collect()
}

/// CPU time of a process, in ticks.
fn cpu_ticks(process: &std::path::Path) -> u64 {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().nth(11).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Whether a process has ended: it is gone, or a zombie.
fn is_gone(process: &std::path::Path) -> bool {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    matches!(state, None | Some("Z" | "X"))
}

#[test]
fn a_worker_that_computes_ends_with_its_killed_parent() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("long.html");
    std::fs::write(&file, long_page()).unwrap();
    let mut parent = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["lab", "segment"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // After half a second of CPU time it has read the page and is laying it out.
    wait_until("a worker that computes", || {
        workers_of(parent.id()).iter().any(|worker| cpu_ticks(worker) > 50)
    });
    let workers = workers_of(parent.id());
    parent.kill().unwrap();
    parent.wait().unwrap();
    for worker in workers {
        wait_until("the end of a worker without its parent", || is_gone(&worker));
    }
}

#[test]
fn a_worker_can_do_nothing_but_compute() {
    let gaps = worker(&["render-worker"]).confinement_gaps().unwrap();
    assert_eq!(
        gaps,
        Vec::<String>::new(),
        "each line is something that this machine does not keep a worker from"
    );
}

#[test]
fn a_page_that_computes_too_long_is_ended_by_the_system() {
    let limits = PageLimits { time: Duration::from_secs(600), ..PageLimits::default() };
    let pool = WorkerPool::new(worker(&["render-worker", "--cpu-secs", "1"]), limits);
    let rendered = pool.layout(&long_page(), "http://a.example/", &nothing);
    assert_eq!(rendered.fallback, Some(Fallback::Crashed));
    // The limit is per page. A worker that lays out many short pages continues.
    for _ in 0..20 {
        let short = "<div style='float:left;width:10%'>a b c</div>".repeat(2000);
        assert_eq!(pool.layout(&short, "http://a.example/", &nothing).fallback, None);
    }
}
