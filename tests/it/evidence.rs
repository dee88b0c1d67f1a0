//! The manifest shows what was changed or removed, exports are signed, and removals leave nothing behind.

use std::fs;
use std::io::Read;
use std::path::Path;

use data_encoding::BASE64;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;

use crate::crawled::Archive;
use crate::program::perennial;
use crate::web::{Web, WebRequest, html, status};

const SECRET: &str = "unspeakable";

/// Two pages that link to each other. One contains the word that will be erased.
fn site(request: &WebRequest) -> crate::web::Reply {
    let n = request.n_before;
    match request.path.as_str() {
        "/" => html(&format!(
            "<!doctype html><title>Home</title><h1>Home</h1><p>Edition {n} of home.</p><a href=/private>private</a>"
        )),
        "/private" => html(&format!(
            "<!doctype html><title>P</title><h1>Private</h1><p>An {SECRET} word in edition {n}.</p>"
        )),
        _ => status(404),
    }
}

fn crawled() -> (Web, Archive) {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.append_settings("[[notify]]\nname = \"all\"\nto = \"webhook:http://127.0.0.1:9/\"\n");
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    for _ in 0..3 {
        archive.lapse("1h", "2h");
    }
    archive.verify();
    (web, archive)
}

fn verified(archive: &Archive, args: &[&str], code: i32) -> Value {
    let ran = perennial(&archive.root, [&["verify", "--json"][..], args].concat());
    assert_eq!(ran.code, code, "{} {}", ran.stdout, ran.stderr);
    ran.json()
}

/// The files whose decompressed content contains a text.
fn containing(folder: &Path, text: &str, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            containing(&path, text, into);
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        if path.to_string_lossy().ends_with(".gz") {
            let mut whole = Vec::new();
            flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut whole).unwrap();
            bytes = whole;
        }
        if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            into.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
}

#[test]
fn a_kept_manifest_shows_that_a_file_was_replaced_or_removed() {
    let (_web, archive) = crawled();
    let manifest = archive.root.join("manifest.jsonl");
    let kept = archive.root.parent().unwrap().join("kept.jsonl");
    fs::copy(&manifest, &kept).unwrap();
    let kept = kept.to_str().unwrap();
    let lines = fs::read_to_string(&manifest).unwrap();
    assert_eq!(lines.lines().count(), 3, "one entry per file: {lines}");
    archive.lapse("1h", "2h");
    let report = verified(&archive, &["--since-manifest", kept], 0);
    assert_eq!(report["manifest"]["n_entries"], 4, "{report}");

    // Somebody removes the second file, and makes state and manifest again without it.
    let mut names: Vec<_> =
        fs::read_dir(archive.root.join("warc")).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    fs::remove_file(&names[1]).unwrap();
    let report = verified(&archive, &[], 4);
    assert!(report["defects"].to_string().contains("the manifest lists this file"), "{report}");
    fs::remove_file(&manifest).unwrap();
    archive.ok(&["verify", "--rebuild"]);
    archive.verify();
    let report = verified(&archive, &["--since-manifest", kept], 4);
    assert!(report["defects"].to_string().contains("entry 2 of the kept manifest"), "{report}");
}

#[test]
fn going_on_without_a_lost_file_is_an_entry_of_the_manifest() {
    let (_web, archive) = crawled();
    let mut names: Vec<_> =
        fs::read_dir(archive.root.join("warc")).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    fs::remove_file(&names[0]).unwrap();
    archive.ok(&["verify", "--rebuild"]);
    let report = verified(&archive, &[], 0);
    assert_eq!(report["manifest"]["removals"][0]["act"], "lost", "{report}");
}

#[test]
fn a_signed_export_is_verified_with_its_own_key() {
    let (_web, archive) = crawled();
    let out = archive.root.parent().unwrap().join("out.wacz");
    let mut keys = Vec::new();
    for _ in 0..2 {
        archive.ok(&["export", "--output", out.to_str().unwrap(), "--format", "wacz", "--sign", "--force"]);
        let mut zip = zip::ZipArchive::new(fs::File::open(&out).unwrap()).unwrap();
        let mut read = |name: &str| {
            let mut text = String::new();
            zip.by_name(name).unwrap().read_to_string(&mut text).unwrap();
            text
        };
        let digest: Value = serde_json::from_str(&read("datapackage-digest.json")).unwrap();
        assert_eq!(
            read("perennial/manifest.jsonl"),
            fs::read_to_string(archive.root.join("manifest.jsonl")).unwrap()
        );
        let signed = &digest["signedData"];
        assert_eq!(signed["hash"], digest["hash"]);
        let bytes = |name: &str| BASE64.decode(signed[name].as_str().unwrap().as_bytes()).unwrap();
        let (key, signature) = (bytes("publicKey"), bytes("signature"));
        // The last 65 bytes are the point on the curve.
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key[key.len() - 65..]);
        let hash = signed["hash"].as_str().unwrap();
        public.verify(hash.as_bytes(), &signature).unwrap();
        assert!(public.verify(format!("{hash}0").as_bytes(), &signature).is_err());
        keys.push(key);
    }
    assert_eq!(keys[0], keys[1], "the key is made once");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(archive.root.join("signing.key")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_erased_page_leaves_nothing_but_tombstones() {
    let (web, archive) = crawled();
    let page = web.url("/private");
    let kept = archive.root.parent().unwrap().join("kept.jsonl");
    fs::copy(archive.root.join("manifest.jsonl"), &kept).unwrap();
    let mut before = Vec::new();
    containing(&archive.root.join("warc"), SECRET, &mut before);
    assert!(before.len() >= 3, "{before:?}");
    assert!(archive.ok(&["search", SECRET]).contains("/private"));
    let n_captures = archive.json(&["status"])["n_captures"].as_u64().unwrap();

    let erase = ["erase", &page, "--reason", "request 7"];
    let planned = archive.ok(&erase);
    assert!(planned.contains("nothing was changed: add --yes"), "{planned}");
    assert_eq!(archive.json(&["status"])["n_captures"], n_captures, "a dry run");

    let done = archive.json(&[&erase[..], &["--yes"]].concat());
    assert_eq!((&done["is_done"], &done["n_urls"]), (&true.into(), &1.into()), "{done}");
    let mut after = Vec::new();
    containing(&archive.root, SECRET, &mut after);
    assert_eq!(after, Vec::<String>::new());
    assert!(!archive.ok(&["search", SECRET]).contains("/private"));
    let report = verified(&archive, &["--since-manifest", kept.to_str().unwrap()], 0);
    let removal = &report["manifest"]["removals"][0];
    assert_eq!((&removal["act"], &removal["what"]), (&"erased".into(), &page.clone().into()), "{report}");
    assert_eq!(removal["reason"], "request 7");
    assert!(archive.ok(&["verify"]).contains("request 7"));
    // The other page is as it was.
    assert!(archive.ok(&["view", "--raw", &web.url("/")]).contains("of home"));
    archive.ok(&["verify", "--rebuild"]);
    verified(&archive, &[], 0);
    let urls =
        archive.ok(&["sql", "SELECT count(*) AS n FROM captures WHERE url LIKE '%/private'", "--json"]);
    assert!(urls.contains("0"), "{urls}");
}

#[test]
fn an_erased_url_that_is_hidden_is_in_no_file() {
    let (web, archive) = crawled();
    let page = web.url("/private");
    // Nothing links to it any more, and it is not followed by itself.
    archive.ok(&["erase", &web.url("/"), "--reason", "request 7", "--yes"]);
    let done = archive.json(&["erase", &page, "--reason", "request 8", "--hide-url", "--yes"]);
    assert_eq!(done["is_done"], true, "{done}");
    let mut after = Vec::new();
    containing(&archive.root, "/private", &mut after);
    assert_eq!(after, Vec::<String>::new());
    let report = verified(&archive, &[], 0);
    let removal = report["manifest"]["removals"].as_array().unwrap().last().unwrap();
    assert!(removal["what"].as_str().unwrap().starts_with("urn:sha256:"), "{report}");
    assert!(!archive.log().is_empty(), "the other lines are kept");
    archive.ok(&["verify", "--rebuild"]);
    verified(&archive, &[], 0);
    after.clear();
    containing(&archive.root, "/private", &mut after);
    assert_eq!(after, Vec::<String>::new());
}

#[test]
fn an_erasure_that_was_killed_is_completed() {
    let (web, archive) = crawled();
    let host = web.address.to_string();
    // The first step of an erasure is on disk; then the process died.
    let names: Vec<String> = fs::read_dir(archive.root.join("warc"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let pending =
        serde_json::json!({ "number": "1", "part": { "site": host }, "reason": "order 9", "files": names });
    fs::write(archive.root.join("erase.pending"), pending.to_string()).unwrap();
    archive.ok(&["analyse"]);
    assert!(!archive.root.join("erase.pending").exists());
    let mut after = Vec::new();
    containing(&archive.root.join("warc"), SECRET, &mut after);
    assert_eq!(after, Vec::<String>::new());
    let report = verified(&archive, &[], 0);
    assert_eq!(report["manifest"]["removals"].as_array().unwrap().len(), names.len(), "{report}");
    assert_eq!(archive.json(&["status"])["n_captures"], 0);
}
