//! A timestamp server states when the manifest existed. The server of these tests makes its responses with openssl, which
//! also verifies what the archive keeps. The tests need the feature `interop`, so a machine without openssl fails them
//! loudly.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perennial_archive::now;

use crate::crawled::Archive;
use crate::program::{perennial, sample_file};
use crate::wait::wait_until;
use crate::web::{Reply, Web, WebRequest, status};

/// An authority, and a server's certificate from it.
const MAKE_AUTHORITY: &str = r#"set -e
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 36500 -subj "/CN=test authority"
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tsa.key -out tsa.csr -subj "/CN=test timestamps"
printf 'extendedKeyUsage=critical,timeStamping\n' > ext
openssl x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -extfile ext -out tsa.pem
printf '[tsa]\ndefault_tsa=t\n[t]\nserial=serial\ndefault_policy=1.2.3.4.1\ndigests=sha256\nsigner_digest=sha256\ness_cert_id_chain=no\n' > tsa.cnf
echo 01 > serial"#;

fn run(dir: &Path, program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(dir).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn respond(dir: &Path, request: &WebRequest) -> Vec<u8> {
    let name = |ending: &str| format!("{}.{ending}", request.n_before);
    fs::write(dir.join(name("tsq")), &request.body).unwrap();
    let (query, reply) = (name("tsq"), name("tsr"));
    let made = ["-config", "tsa.cnf", "-inkey", "tsa.key", "-signer", "tsa.pem"];
    let args = [&["ts", "-reply", "-queryfile", &query, "-out", &reply][..], &made].concat();
    run(dir, "openssl", &args);
    fs::read(dir.join(reply)).unwrap()
}

fn granted(body: Vec<u8>) -> Reply {
    Reply::Page(200, vec![("Content-Type", "application/timestamp-reply".into())], body)
}

fn with_server(web: &Web) -> Archive {
    let archive = Archive::new();
    perennial_archive::settings::edit(&archive.root.join("perennial.toml"), |document, _| {
        document["archive"]["timestamp_server"] = toml_edit::value(web.url("/tsa"));
        Ok(())
    })
    .unwrap();
    archive
}

fn import(archive: &Archive, salt: &str) -> String {
    let file = sample_file(archive.root.parent().unwrap(), salt);
    let ran = perennial(&archive.root, ["import", "--no-analysis", file.to_str().unwrap()]).ok();
    ran.stderr
}

fn tokens(archive: &Archive) -> Vec<PathBuf> {
    let files = fs::read_dir(archive.root.join("timestamps")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|it| it == "tsr")).collect();
    files.sort();
    files
}

#[test]
fn a_server_states_when_the_manifest_existed() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "sh", &["-c", MAKE_AUTHORITY]);
    let at = dir.path().to_owned();
    let web = Web::serve(move |request: &WebRequest| granted(respond(&at, request)));
    let archive = with_server(&web);
    assert_eq!(import(&archive, "one"), "");
    assert_eq!(import(&archive, "two"), "");
    let requests = web.requests();
    assert!(
        requests.iter().all(|request| request.field("content-type") == Some("application/timestamp-query"))
    );
    let found = tokens(&archive);
    assert_eq!((found.len(), requests.len()), (2, 2), "{found:?}");

    // openssl confirms what is kept, for the hash in the manifest.
    let lines = fs::read_to_string(archive.root.join("manifest.jsonl")).unwrap();
    let entries: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (token, entry) in found.iter().zip(&entries) {
        let (token, hash) = (token.to_str().unwrap(), entry["hash"].as_str().unwrap());
        run(dir.path(), "openssl", &["ts", "-verify", "-in", token, "-digest", hash, "-CAfile", "ca.pem"]);
    }
    let report = archive.json(&["verify"]);
    assert_eq!(report["manifest"]["timestamps"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["manifest"]["timestamps"][1]["n"], 2);
    let text = archive.ok(&["verify"]);
    assert!(text.contains("2 timestamps: the entries up to 2 existed at 20"), "{text}");
    assert!(!archive.ok(&["status"]).contains("timestamps"));

    let out = archive.root.parent().unwrap().join("out.wacz");
    archive.ok(&["export", "--output", out.to_str().unwrap(), "--format", "wacz", "--sign"]);
    let mut wacz = zip::ZipArchive::new(fs::File::open(&out).unwrap()).unwrap();
    let name = found[1].file_name().unwrap().to_str().unwrap();
    let mut exported = Vec::new();
    std::io::copy(&mut wacz.by_name(&format!("perennial/timestamps/{name}")).unwrap(), &mut exported)
        .unwrap();
    assert_eq!(exported, fs::read(&found[1]).unwrap());

    // Every flip is named, and so is a manifest that was written again.
    let sound = fs::read(&found[0]).unwrap();
    for at in (0..sound.len()).step_by(sound.len() / 12) {
        let mut bytes = sound.clone();
        bytes[at] ^= 4;
        fs::write(&found[0], bytes).unwrap();
        let ran = perennial(&archive.root, ["verify"]);
        assert_eq!(ran.code, 4, "byte {at}: {}", ran.stdout);
        assert!(ran.stdout.contains(found[0].file_name().unwrap().to_str().unwrap()), "{}", ran.stdout);
    }
    fs::write(&found[0], sound).unwrap();
    archive.verify();
    // A manifest made in the same second would be the same.
    let second = now().to_digits14();
    wait_until("the next second", || now().to_digits14() != second);
    fs::remove_file(archive.root.join("manifest.jsonl")).unwrap();
    archive.ok(&["analyse"]);
    let ran = perennial(&archive.root, ["verify"]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("entry 1 of the manifest is not the one that had this timestamp"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_server_that_fails_stops_nothing_and_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "sh", &["-c", MAKE_AUTHORITY]);
    let at = dir.path().to_owned();
    let web = Web::serve(move |request: &WebRequest| match request.n_before {
        0 => status(503),
        1 => granted(b"<html>welcome</html>".to_vec()),
        2 => Reply::Close,
        3 => {
            // A refusal.
            granted(vec![0x30, 0x05, 0x30, 0x03, 0x02, 0x01, 0x02])
        }
        // The sixth response is that to the fifth request.
        5 => granted(fs::read(at.join("4.tsr")).unwrap()),
        _ => granted(respond(&at, request)),
    });
    let archive = with_server(&web);
    let said = import(&archive, "one");
    assert!(said.contains("no timestamp of the manifest yet") && said.contains("503"), "{said}");
    let status = archive.ok(&["status"]);
    assert!(status.contains("timestamps none since 20") && status.contains("503"), "{status}");
    let doctor = perennial(&archive.root, ["doctor"]).stdout;
    assert!(doctor.contains("warning  timestamps"), "{doctor}");
    // The next command waits, unless the user insists.
    assert_eq!(import(&archive, "two"), "");
    assert_eq!(web.requests().len(), 1);
    for what in ["not a timestamp", "closed the connection", "refused with status 2"] {
        let ran = perennial(&archive.root, ["verify", "--timestamp"]).ok();
        assert!(ran.stderr.contains(what), "{}", ran.stderr);
    }
    assert_eq!(archive.json(&["status"])["timestamp_failure"]["n_tries"], 4);
    let ran = perennial(&archive.root, ["verify", "--timestamp"]).ok();
    assert!(ran.stdout.contains("1 timestamp: the entries up to 2"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(archive.json(&["status"])["timestamp_failure"], serde_json::Value::Null);
    // Somebody sends an earlier response again.
    let said = import(&archive, "three");
    assert!(said.contains("different content"), "{said}");
    assert_eq!(tokens(&archive).len(), 1);
    archive.verify();
}
