//! Captures dated in the future, by a forged record or by a clock that was ahead, silence nothing.

use std::net::TcpListener;

use perennial_archive::now;
use perennial_warc::{Compression, NewRecord, RecordIds, WarcWriter};

use crate::crawled::Archive;
use crate::program::perennial;
use crate::wait::wait_until;
use crate::web::{Reply, Web, WebRequest, html, status};

/// A page with a different sentence at each request.
fn news(request: &WebRequest) -> Reply {
    const WORDS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];
    match request.path.as_str() {
        "/" => {
            let word = WORDS[request.n_before % 6];
            html(&format!(
                "<!doctype html><title>News</title><h1>News</h1><p>The council decided {word} things about the bridge \
                 over the river, and {word} about the park.</p>"
            ))
        }
        _ => status(404),
    }
}

/// An archive that follows the site, with a rule whose notices remain in the outbox.
fn watching(web: &Web) -> Archive {
    let archive = Archive::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    archive.append_settings(&format!("[[notify]]\nname = \"all\"\nto = \"webhook:http://{closed}/\"\n"));
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive
}

/// Visits the page once, in a second of its own.
fn visit(archive: &Archive) {
    let second = now().as_secs();
    wait_until("the next second", || now().as_secs() > second);
    archive.ok(&["run", "--once", "--delay", "0", "--no-serve"]);
}

fn n_waiting(archive: &Archive) -> u64 {
    archive.json(&["notify", "list"])[0]["n_waiting"].as_u64().unwrap()
}

/// A WARC file with one page, dated in the year 2099.
fn from_the_future(archive: &Archive, url: &str) -> String {
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::Gzip(6)).unwrap();
    let date = perennial_core::time::Timestamp::parse("2099-01-01").unwrap();
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let body = b"<!doctype html><title>t</title><h1>Words</h1><p>of the year 2099, which is far away.</p>";
    let id = RecordIds::new(7).next_id();
    out.write(&NewRecord::response(id, date, url, head, body)).unwrap();
    let path = archive.root.parent().unwrap().join("future.warc.gz");
    std::fs::write(&path, out.into_inner()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_forged_date_of_another_host_does_not_silence_a_new_rule() {
    let web = Web::serve(news);
    let archive = watching(&web);
    archive.ok(&["import", &from_the_future(&archive, "http://elsewhere.example/")]);
    (0..4).for_each(|_| visit(&archive));
    assert_eq!(n_waiting(&archive), 3, "{}", archive.ok(&["changes"]));
}

#[test]
fn a_forged_date_of_the_watched_page_hides_none_of_its_captures() {
    let web = Web::serve(news);
    let archive = watching(&web);
    visit(&archive);
    archive.ok(&["import", &from_the_future(&archive, &web.url("/"))]);
    (0..3).for_each(|_| visit(&archive));
    assert_eq!(n_waiting(&archive), 3);
    assert_eq!(archive.json(&["changes"]).as_array().unwrap().len(), 3);
    let last = archive.json(&["status"])["last_capture"].as_str().unwrap().to_owned();
    // The last visit may be in the present second.
    assert!(last <= now().to_rfc3339(), "{last}");
    archive.verify();
}

#[test]
fn after_a_crawl_with_a_clock_that_was_ahead_the_watch_goes_on() {
    let web = Web::serve(news);
    let archive = watching(&web);
    let ahead = ["run", "--no-serve", "--time-lapse", "max", "--start", "2099-01-01", "--delay", "0"];
    let policy = ["--strategy", "fixed-interval", "--interval", "1h", "--time-limit", "150m"];
    archive.ended(&[&ahead[..], &policy[..]].concat(), 15);
    let n_before = n_waiting(&archive);
    assert!(n_before > 0);
    // It was no time-lapse, but a clock.
    let settings = std::fs::read_to_string(archive.root.join("perennial.toml")).unwrap();
    assert!(settings.contains("time_lapse = true"), "a time-lapse says that it is one");
    std::fs::write(archive.root.join("perennial.toml"), settings.replace("time_lapse = true", "")).unwrap();
    (0..4).for_each(|_| visit(&archive));
    assert_eq!(n_waiting(&archive), n_before + 3);
    archive.verify();
}

#[test]
fn records_dated_in_the_future_are_named() {
    let archive = Archive::new();
    let path = from_the_future(&archive, "http://elsewhere.example/");
    let imported = archive.ok(&["import", &path]);
    assert!(imported.contains("dated 2099-01-01T00:00:00Z, in the future"), "{imported}");
    let found = archive.json(&["verify"]);
    assert_eq!(found["n_future"], 1, "{found}");
    assert!(found["future"][0]["what"].as_str().unwrap().contains("http://elsewhere.example/"), "{found}");
    let status = archive.json(&["status"]);
    assert_eq!((&status["n_future"], &status["last_capture"]), (&1.into(), &serde_json::Value::Null));
    let doctor = perennial(&archive.root, ["doctor"]);
    assert!(doctor.stdout.contains("the newest capture is dated 2099-01-01"), "{}", doctor.stdout);
}

#[test]
fn a_rule_that_cannot_fire_is_reported() {
    let web = Web::serve(news);
    let archive = watching(&web);
    archive.append_settings(
        "[[notify]]\nname = \"blind\"\nto = \"command:true\"\nplace = \"nowhere.example\"\n",
    );
    let silent = archive.json(&["status"])["silent_rules"].clone();
    assert_eq!(silent.as_array().unwrap().len(), 1, "{silent}");
    assert_eq!(silent[0]["rule"], "blind");
    let doctor = perennial(&archive.root, ["doctor"]);
    assert_eq!(doctor.code, 4);
    assert!(doctor.stdout.contains("the rule `blind` cannot fire"), "{}", doctor.stdout);
    archive.ok(&["pause", &web.url("/")]);
    assert_eq!(archive.json(&["status"])["silent_rules"].as_array().unwrap().len(), 2);
}
