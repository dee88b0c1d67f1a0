//! `verify` distinguishes unfinished work from defects, and the next start completes the work.

use std::fs;
use std::path::{Path, PathBuf};

use perennial_archive::{Archive, ArchiveWriter, Repair};
use perennial_warc::Compression;

use crate::program::{append_random, folder, perennial, sample_file, sample_warc};

/// An archive whose writer was stopped with three of ten captures committed, its open file, and the end of the last
/// commit in it.
fn stopped(root: &Path) -> (Archive, PathBuf, usize) {
    let archive = Archive::create(root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    for n in 0..10 {
        append_random(&mut writer, "stop.example", n, 4000);
        if n == 2 {
            writer.commit().unwrap();
        }
    }
    let committed = writer.store().files().unwrap()[0].committed_bytes as usize;
    drop(writer);
    let open = fs::read_dir(root.join("warc")).unwrap().next().unwrap().unwrap().path();
    (archive, open, committed)
}

#[test]
fn sound_records_behind_a_lost_stretch_stay() {
    let (_dir, root) = folder();
    let (archive, open, committed) = stopped(&root);
    // The disk kept the later sectors of an unsynced write but not the earlier ones.
    let mut bytes = fs::read(&open).unwrap();
    bytes[committed + 6000..committed + 9000].fill(0);
    fs::write(&open, &bytes).unwrap();
    let writer = ArchiveWriter::open(&archive).unwrap();
    let cut = |repair: &Repair| match repair {
        Repair::CutTorn { bytes, .. } => Some(*bytes as usize),
        _ => None,
    };
    let n_cut: usize = writer.repairs().iter().filter_map(cut).sum();
    assert!(n_cut >= 3000, "{:?}", writer.repairs());
    let side = fs::read_dir(root.join("warc")).unwrap().map(|entry| entry.unwrap().path());
    let side: Vec<PathBuf> = side.filter(|path| path.extension().is_some_and(|e| e == "torn")).collect();
    assert_eq!(side.iter().map(|path| fs::metadata(path).unwrap().len()).sum::<u64>(), n_cut as u64);
    writer.close().unwrap();
    perennial(&root, ["verify"]).ok();
    // The hole of 3000 bytes touches at most two captures of 4000 bytes.
    let n_captures = archive.store().unwrap().counts().unwrap().n_captures;
    assert!((8..10).contains(&n_captures), "{n_captures}");
}

#[test]
fn what_the_next_start_completes_is_no_defect() {
    let (_dir, root) = folder();
    let (archive, open, committed) = stopped(&root);
    fs::write(root.join("warc/dropped.warc.gz"), sample_warc("b", Compression::Gzip(6))).unwrap();
    let report = perennial(&root, ["verify", "--json"]).ok().json();
    let n_behind = fs::metadata(&open).unwrap().len() as usize - committed;
    let reported: Vec<&str> =
        report["unfinished"].as_array().unwrap().iter().filter_map(|u| u["what"].as_str()).collect();
    assert_eq!(
        reported,
        ["6 captures are not in the state yet", &format!("{n_behind} bytes behind the last commit")]
    );
    let words = perennial(&root, ["verify"]).ok().stdout;
    assert!(words.contains("dropped.warc.gz: 6 captures") && words.contains("no defects"), "{words}");
    ArchiveWriter::open(&archive).unwrap().close().unwrap();
    let report = perennial(&root, ["verify", "--json"]).ok().json();
    assert_eq!(
        (&report["unfinished"], &report["n_captures"]),
        (&serde_json::json!([]), &serde_json::json!(16))
    );
}

#[test]
fn damage_in_a_file_that_is_not_in_the_state_is_a_defect() {
    let (_dir, root) = folder();
    let (_archive, ..) = stopped(&root);
    let mut bytes = sample_warc("b", Compression::Gzip(6));
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(root.join("warc/dropped.warc.gz"), bytes).unwrap();
    let ran = perennial(&root, ["verify"]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(ran.stdout.contains("dropped.warc.gz at "), "{}", ran.stdout);
}

#[test]
fn a_run_of_the_index_that_is_lost_is_made_anew() {
    let (dir, root) = folder();
    for name in ["a", "b", "c"] {
        let file = sample_file(dir.path(), name);
        perennial(&root, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    }
    for entry in fs::read_dir(root.join("index")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let archive = Archive::open(&root).unwrap();
    let writer = ArchiveWriter::open(&archive).unwrap();
    assert!(matches!(writer.repairs(), [Repair::ForgotRuns { .. }]), "{:?}", writer.repairs());
    writer.close().unwrap();
    perennial(&root, ["verify"]).ok();
    let lines: usize = fs::read_dir(root.join("index"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap().lines().count())
        .sum();
    assert_eq!(lines, 18);
}

#[test]
fn what_a_killed_rebuild_left_is_swept_up() {
    let (_dir, root) = folder();
    let (archive, ..) = stopped(&root);
    for name in ["state.db.new", "state.db.new-wal", "state.db.new-shm"] {
        fs::write(root.join(name), "half a state").unwrap();
    }
    ArchiveWriter::open(&archive).unwrap().close().unwrap();
    let left = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.starts_with("state.db.new")).count(), 0);
    perennial(&root, ["verify"]).ok();
}
