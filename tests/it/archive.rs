//! The life of an archive on the command line: `init`, `import`, `export`, `verify` and `info`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use perennial_warc::Compression;

use crate::crawled::Archive;
use crate::facts::Facts;
use crate::program::{Ran, folder, perennial, ran, sample_file, sample_warc, testdata};
use crate::web::{Web, html, status};

#[test]
fn init_makes_an_archive_once_and_says_how_to_go_on() {
    let (_dir, archive) = folder();
    let missing = perennial(&archive, ["status"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("perennial init"), "{}", missing.stderr);
    perennial(&archive, ["init"]).ok();
    for name in ["perennial.toml", "warc", "index", "state.db"] {
        assert!(archive.join(name).exists(), "{name}");
    }
    let again = perennial(&archive, ["init"]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("nothing was changed"));
    assert_eq!(perennial(&archive, ["status", "--no-such-option"]).code, 2);
}

#[test]
fn the_archive_is_found_without_being_named() {
    let (dir, archive) = folder();
    let run = |at: &Path, env: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perennial"));
        command.current_dir(at).env_remove("PERENNIAL_ARCHIVE").args(["status", "--json"]);
        if let Some(env) = env {
            command.env("PERENNIAL_ARCHIVE", env);
        }
        ran(&mut command)
    };
    assert_eq!(run(dir.path(), None).code, 1);
    perennial(&archive, ["init"]).ok();
    assert_eq!(run(dir.path(), None).ok().json()["archive"], "archive");
    assert_eq!(run(&archive, None).ok().json()["archive"], ".");
    assert_eq!(run(Path::new("/"), Some(&archive)).ok().json()["n_captures"], 0);
}

#[test]
fn imported_captures_are_full_citizens() {
    let (dir, archive) = folder();
    perennial(&archive, ["init"]).ok();
    let file = sample_file(dir.path(), "a");
    let report = perennial(&archive, ["import".as_ref(), file.as_os_str(), "--json".as_ref()]).ok().json();
    assert_eq!(report["files"][0]["n_captures"], 6);
    assert_eq!(report["files"][0]["n_problems"], 0);
    assert_eq!(fs::read(archive.join("warc/a.warc.gz")).unwrap(), fs::read(&file).unwrap());
    let info = perennial(&archive, ["status", "--json"]).ok().json();
    // Two of the four URLs are pages that people read.
    assert_eq!(info["n_pages"], 2);
    assert_eq!(info["n_captures"], 6);
    assert_eq!(info["n_revisits"], 1);
    // Two versions of the home page, one of each other page.
    assert_eq!(info["n_versions"], 5);
    // Only the latest version links /third, and only the first links elsewhere.example.
    assert_eq!(info["n_pages_linked_only"], 2);
    perennial(&archive, ["verify"]).ok();
}

#[test]
fn importing_twice_changes_nothing() {
    let (dir, archive) = folder();
    let file = sample_file(dir.path(), "a");
    perennial(&archive, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    let before = snapshot(&archive);
    perennial(&archive, ["import".as_ref(), file.as_os_str()]).ok();
    // The same captures in a different container change nothing either.
    let plain = dir.path().join("plain.warc");
    fs::write(&plain, sample_warc("a", Compression::None)).unwrap();
    let zstd = dir.path().join("other.warc.zst");
    fs::write(&zstd, sample_warc("a", Compression::Zstd(3))).unwrap();
    perennial(&archive, ["import".as_ref(), plain.as_os_str(), zstd.as_os_str()]).ok();
    assert_eq!(snapshot(&archive), before);
    // They change nothing even after a rebuild has discarded what was known of the first import.
    perennial(&archive, ["verify", "--rebuild"]).ok();
    perennial(&archive, ["import".as_ref(), file.as_os_str()]).ok();
    assert_eq!(snapshot(&archive), before);
}

#[test]
fn all_wrappings_hold_the_same_captures() {
    let wrappings: [(&str, Vec<u8>); 4] = [
        ("gz", sample_warc("a", Compression::Gzip(6))),
        ("plain", sample_warc("a", Compression::None)),
        ("zst", sample_warc("a", Compression::Zstd(3))),
        ("whole", whole_file_gzip(&sample_warc("a", Compression::None))),
    ];
    let mut seen = Vec::new();
    for (name, bytes) in wrappings {
        let (dir, archive) = folder();
        let file = dir.path().join(name);
        fs::write(&file, bytes).unwrap();
        perennial(&archive, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
        perennial(&archive, ["verify"]).ok();
        let wacz = dir.path().join("all.wacz");
        perennial(&archive, ["export", "--format", "wacz", "-o", wacz.to_str().unwrap()]).ok();
        let (_other_dir, other) = folder();
        perennial(&other, ["import".as_ref(), "--create".as_ref(), wacz.as_os_str()]).ok();
        perennial(&other, ["verify"]).ok();
        seen.push((name, facts(&archive), facts(&other)));
    }
    for (name, direct, through_wacz) in &seen {
        assert_eq!(direct, &seen[0].1, "{name}");
        assert_eq!(through_wacz, &seen[0].1, "{name} through WACZ");
    }
}

fn whole_file_gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_rebuild_gives_the_same_state() {
    let (dir, archive) = folder();
    for salt in ["a", "b", "c"] {
        let file = sample_file(dir.path(), salt);
        perennial(&archive, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    }
    let before = facts(&archive);
    // In this order: captures, versions, captured pages, sites, pages with links, all pages. The versions include a row
    // for the revisit of each site, which names its payload by SHA-1 alone. All pages include one linked page per site
    // and one elsewhere.
    assert_eq!(before.len(), 18 + 18 + 12 + 3 + 9 + 16, "{before:#?}");
    fs::remove_file(archive.join("state.db")).unwrap();
    fs::remove_dir_all(archive.join("index")).unwrap();
    let missing = perennial(&archive, ["status"]);
    assert!(missing.stderr.contains("verify --rebuild"), "{}", missing.stderr);
    perennial(&archive, ["verify", "--rebuild"]).ok();
    assert_eq!(facts(&archive), before);
}

/// Captures, versions, pages and links, without their offsets in the files.
fn facts(archive: &Path) -> Vec<String> {
    Facts::captured(archive)
}

/// Whatever must not change in an archive: the contents of its files, and the facts in its state.
fn snapshot(archive: &Path) -> (Vec<(String, Vec<u8>)>, Vec<String>) {
    let mut files = Vec::new();
    for folder in ["warc", "index"] {
        for entry in fs::read_dir(archive.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            // A rebuild may number captures differently, and the name of the index file contains these numbers.
            let name = if folder == "index" { "index".to_string() } else { name };
            files.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    files.sort();
    (files, facts(archive))
}

/// The report of an import that added the sound records. The exit code shows that others were damaged.
fn ended_with_defects(ran: Ran) -> serde_json::Value {
    assert_eq!(ran.code, 4, "{} {}", ran.stdout, ran.stderr);
    ran.json()
}

#[test]
fn damaged_files_give_all_that_is_sound_and_name_the_rest() {
    let (dir, archive) = folder();
    let whole = sample_warc("a", Compression::Gzip(6));
    let torn = dir.path().join("torn.warc.gz");
    fs::write(&torn, &whole[..whole.len() - 40]).unwrap();
    let mut flipped = sample_warc("b", Compression::Gzip(6));
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    let flipped_file = dir.path().join("flipped.warc.gz");
    fs::write(&flipped_file, flipped).unwrap();
    let mut garbage = sample_warc("c", Compression::Gzip(6));
    garbage.splice(0..0, b"\0\0 this is no record \xff".iter().copied());
    let garbage_file = dir.path().join("garbage.warc.gz");
    fs::write(&garbage_file, garbage).unwrap();

    perennial(&archive, ["init"]).ok();
    let import = |file: &Path| perennial(&archive, ["import".as_ref(), file.as_os_str(), "--json".as_ref()]);
    let report = ended_with_defects(import(&torn));
    assert_eq!(report["files"][0]["n_captures"], 5);
    assert_eq!(report["files"][0]["n_problems"], 1);
    assert!(report["files"][0]["problems"][0]["what"].as_str().unwrap().contains("ends inside the record"));
    let report = ended_with_defects(import(&flipped_file));
    assert!(report["files"][0]["n_captures"].as_u64().unwrap() >= 4, "{report}");
    assert!(report["files"][0]["n_problems"].as_u64().unwrap() >= 1, "{report}");
    let not_warc = import(&garbage_file);
    assert_eq!(not_warc.code, 1);
    assert!(not_warc.stderr.contains("neither WARC"), "{}", not_warc.stderr);

    // The damaged bytes are stored as they came. `verify` reports them, and `--repair` moves the torn end to a side
    // file.
    let defects = perennial(&archive, ["verify", "--json"]);
    assert_eq!(defects.code, 4);
    let kinds: Vec<_> =
        defects.json()["defects"].as_array().unwrap().iter().map(|d| d["kind"].clone()).collect();
    assert!(kinds.iter().all(|kind| kind == "damage"), "{kinds:?}");
    let repaired = perennial(&archive, ["verify", "--repair", "--json"]).json();
    let cut =
        repaired["repairs"].as_array().unwrap().iter().find(|r| r["repair"] == "cut-torn").unwrap().clone();
    let kept = fs::read(archive.join("warc").join(cut["kept_in"].as_str().unwrap())).unwrap();
    let left = fs::read(archive.join("warc/torn.warc.gz")).unwrap();
    assert_eq!([left, kept].concat(), &whole[..whole.len() - 40]);
    assert!(repaired["defects"].as_array().unwrap().iter().all(|d| d["file"] == "flipped.warc.gz"));
}

#[test]
fn verify_names_every_kind_of_defect() {
    let (dir, archive) = folder();
    let file = sample_file(dir.path(), "a");
    perennial(&archive, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    let check = |what: &str| {
        let ran = perennial(&archive, ["verify"]);
        assert_eq!(ran.code, 4, "{}", ran.stdout);
        assert!(ran.stdout.contains(what), "{} lacks {what}", ran.stdout);
        perennial(&archive, ["verify", "--repair"]).ok();
        perennial(&archive, ["verify"]).ok();
    };
    let state = || {
        let state = rusqlite::Connection::open(archive.join("state.db")).unwrap();
        state.pragma_update(None, "foreign_keys", false).unwrap();
        state
    };
    // The index: a surplus line, a missing line, no file.
    let run = || fs::read_dir(archive.join("index")).unwrap().next().unwrap().unwrap().path();
    let lines = fs::read_to_string(run()).unwrap();
    fs::write(run(), format!("{lines}zz,example)/ 20240101000000 {{\"url\": \"http://example.zz/\"}}\n"))
        .unwrap();
    check("a line of no capture: zz,example)/");
    let lines = fs::read_to_string(run()).unwrap();
    fs::write(run(), lines.split_once('\n').unwrap().1).unwrap();
    check("a capture is missing: example,a)/");
    fs::remove_file(run()).unwrap();
    check("cannot open it");
    // The state: a capture without a record, a missing capture, a wrong field, a wrong count.
    state().execute("UPDATE captures SET offset = 1 WHERE id = 2", []).unwrap();
    check("the file has no such record");
    state().execute_batch("DELETE FROM captures WHERE id = 3").unwrap();
    check("the state lacks this capture");
    state().execute("UPDATE captures SET status = 500 WHERE id = 1", []).unwrap();
    check("kind and status");
    state().execute("UPDATE pages SET n_captures = 9 WHERE id = 1", []).unwrap();
    check("counts other captures");
    state().execute("DELETE FROM versions WHERE page = (SELECT min(page) FROM versions)", []).unwrap();
    check("do not add up");
    // A missing file.
    fs::write(archive.join("warc/dropped.warc.gz"), sample_warc("b", Compression::Gzip(6))).unwrap();
    perennial(&archive, ["verify", "--repair"]).ok();
    fs::remove_file(archive.join("warc/dropped.warc.gz")).unwrap();
    check("is not there");
}

#[test]
fn a_wrong_digest_is_named() {
    let (dir, archive) = folder();
    let plain = String::from_utf8(sample_warc("a", Compression::None)).unwrap();
    let wrong = plain.replacen("a one</h1>", "A ONE</h1>", 1);
    assert_ne!(plain, wrong);
    let file = dir.path().join("wrong.warc");
    fs::write(&file, wrong).unwrap();
    let ran = perennial(&archive, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]);
    assert!(ran.code == 4 && ran.stdout.contains("payload digest"), "{}", ran.stdout);
    let ran = perennial(&archive, ["verify"]);
    assert_eq!(ran.code, 4);
    assert!(ran.stdout.contains("its block digest is sha1:"), "{}", ran.stdout);
}

#[test]
fn exports_contain_the_selected_pages_and_their_subresources() {
    let (dir, archive) = folder();
    let files: Vec<_> = ["a", "b"].iter().map(|salt| sample_file(dir.path(), salt)).collect();
    perennial(&archive, ["import".as_ref(), "--create".as_ref(), files[0].as_os_str(), files[1].as_os_str()])
        .ok();
    let export = |name: &str, args: &[&str]| {
        let path = dir.path().join(name);
        let mut all = vec!["export", "--json", "-o", path.to_str().unwrap()];
        all.extend(args);
        (perennial(&archive, all), path)
    };
    let (report, _) = export("site.wacz", &["--format", "wacz", "--site", "a.example"]);
    assert_eq!(report.ok().json()["n_captures"], 6);
    // The export includes the record of 1 March, because the revisit of 3 March cannot be replayed without it.
    let (report, path) = export(
        "day.warc.gz",
        &["--format", "warc", "--site", "a.example", "--since", "2024-03-03", "--until", "2024-03-04"],
    );
    let report = report.ok().json();
    assert_eq!((report["n_captures"].as_u64(), report["n_origins"].as_u64()), (Some(1), Some(1)));
    let (_other_dir, other) = folder();
    perennial(&other, ["import".as_ref(), "--create".as_ref(), path.as_os_str()]).ok();
    perennial(&other, ["verify"]).ok();
    assert_eq!(perennial(&other, ["status", "--json"]).json()["n_captures"], 2);
    let (report, path) = export("page.cdxj", &["--format", "cdxj", "--page", "http://b.example/second"]);
    report.ok();
    assert!(fs::read_to_string(path).unwrap().starts_with("example,b)/second 20240302080000 {"));
    let (none, path) = export("none.wacz", &["--format", "wacz", "--site", "no.example"]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains("no capture fits") && !path.exists());
    let (again, _) = export("site.wacz", &["--format", "wacz"]);
    assert!(again.stderr.contains("--force"));
}

#[test]
fn an_index_beside_is_compared() {
    let (dir, archive) = folder();
    let file = sample_file(dir.path(), "a");
    perennial(&archive, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    let index = dir.path().join("beside.cdxj");
    perennial(&archive, ["export", "--format", "cdxj", "-o", index.to_str().unwrap()]).ok();
    let line =
        "example,a)/gone 20240301080000 {\"url\": \"http://a.example/gone\", \"digest\": \"sha1:X\"}\n";
    fs::write(&index, fs::read_to_string(&index).unwrap() + line).unwrap();
    let (_other_dir, other) = folder();
    let args =
        ["import".as_ref(), "--create".as_ref(), file.as_os_str(), index.as_os_str(), "--json".as_ref()];
    let report = perennial(&other, args).ok().json();
    assert_eq!(report["indexes"][0]["n_confirmed"], 6);
    assert_eq!(report["indexes"][0]["n_unconfirmed"], 1);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let (dir, archive) = folder();
    let file = sample_file(dir.path(), "a");
    perennial(&archive, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    let mut child = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .arg("--archive")
        .arg(&archive)
        .args(["status", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_shipped_sample_is_whole_and_its_revisit_is_readable() {
    let (_dir, root) = folder();
    let sample = testdata("sample.warc.gz");
    perennial(&root, ["import".as_ref(), "--create".as_ref(), sample.as_os_str()]).ok();
    perennial(&root, ["verify"]).ok();
    let info = perennial(&root, ["status", "--json"]).ok().json();
    assert_eq!((info["n_sites"].as_u64(), info["n_pages"].as_u64()), (Some(2), Some(5)));
    assert_eq!((info["n_captures"].as_u64(), info["n_revisits"].as_u64()), (Some(13), Some(1)));
    let archive = perennial_archive::Archive::open(&root).unwrap();
    let store = archive.store().unwrap();
    let home = store.page("http://garden.example/").unwrap().unwrap();
    let bodies: Vec<Vec<u8>> = store
        .page_captures(home.id)
        .unwrap()
        .iter()
        .map(|capture| archive.payload(&store, capture).unwrap().unwrap().bytes)
        .collect();
    let expected: Vec<Vec<u8>> = [1, 1, 2, 3]
        .iter()
        .map(|n| fs::read(testdata(&format!("sample/garden/home-{n}.html"))).unwrap())
        .collect();
    assert_eq!(bodies, expected);
    assert_eq!(store.page_versions(home.id).unwrap().len(), 3);
}

#[test]
fn the_torn_sample_gives_what_is_left_of_it() {
    let (_dir, root) = folder();
    let sample = testdata("sample-torn.warc.gz");
    let args = ["import".as_ref(), "--create".as_ref(), sample.as_os_str(), "--json".as_ref()];
    let report = ended_with_defects(perennial(&root, args));
    assert_eq!(report["files"][0]["n_problems"], 2, "{report}");
    assert!(report["files"][0]["n_captures"].as_u64().unwrap() >= 11, "{report}");
}

#[test]
fn encoded_bodies_are_read_for_links_and_stored_as_they_came() {
    use perennial_archive::{Archive, ArchiveWriter, Exchange, ExchangeBody};
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    let page = crate::program::html("zipped and chunked", &["/far", "/near"]);
    let zipped = whole_file_gzip(page.as_bytes());
    let (first, rest) = zipped.split_at(20);
    let mut body = format!("{:x}\r\n", first.len()).into_bytes();
    body.extend_from_slice(first);
    body.extend_from_slice(format!("\r\n{:X};ext=1\r\n", rest.len()).as_bytes());
    body.extend_from_slice(rest);
    body.extend_from_slice(b"\r\n0\r\nTrailer: x\r\n\r\n");
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    let exchange = || Exchange {
        url: "http://coded.example/",
        time: perennial_core::time::Timestamp::parse("2025-05-05").unwrap(),
        ip: None,
        request_head: b"",
        request_body: b"",
        response_head: head,
        body: ExchangeBody::Bytes(&body),
        truncated: None,
        metadata: &[],
        derived: &[],
        links: None,
    };
    assert!(writer.append(exchange()).unwrap().is_new_version);
    assert_eq!(writer.append(exchange()).unwrap().kind, perennial_archive::store::CaptureKind::Revisit);
    writer.close().unwrap();
    let store = archive.store().unwrap();
    let page_row = store.page("http://coded.example/").unwrap().unwrap();
    assert_eq!(store.page_links(page_row.id.0).unwrap().len(), 2);
    let captures = store.page_captures(page_row.id).unwrap();
    for capture in &captures {
        let stored = archive.payload(&store, capture).unwrap().unwrap();
        assert_eq!(stored.bytes, page.as_bytes());
        assert_eq!(stored.head.as_bytes(), head);
    }
    assert_eq!(captures.len(), 2);
    perennial(&root, ["verify"]).ok();
}

#[test]
fn an_archive_may_write_zstd_and_change_its_mind() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html("<a href=/next>next</a> the first page"),
        "/next" => html("the second page"),
        _ => status(404),
    });
    let archive = Archive::new();
    let path = archive.root.join("perennial.toml");
    let set = |before: &str, after: &str| {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(before));
        fs::write(&path, text.replace(before, after)).unwrap();
    };
    set("compression = \"gzip\"", "compression = \"zstd\"");
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    set("compression = \"zstd\"", "compression = \"gzip\"");
    archive.ok(&["run", "--once", "--delay", "0"]);
    let mut extensions: Vec<String> = fs::read_dir(archive.root.join("warc"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name[name.find(".warc").unwrap()..].to_string())
        .collect();
    extensions.sort();
    assert_eq!(extensions, [".warc.gz", ".warc.zst"]);
    archive.verify();
    let before = archive.json(&["status"]);
    archive.ok(&["verify", "--rebuild"]);
    assert_eq!(archive.json(&["status"])["n_captures"], before["n_captures"]);
    let exported = archive.root.join("all.warc.gz");
    archive.ok(&["export", "--format", "warc", "-o", exported.to_str().unwrap()]);
    archive.verify();
}
