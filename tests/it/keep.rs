//! `keep = "important"`: versions that are not worth their bytes are kept as what changed, and nothing else suffers.

use crate::crawled::Archive;
use crate::program::{folder, perennial};
use crate::web::{Web, html, status};

/// An article that is written anew at every sixth request, with a word in its margin that is another each time.
fn article() -> Web {
    const MARGIN: [&str; 7] = ["sunny", "cloudy", "windy", "rainy", "foggy", "frosty", "mild"];
    Web::serve(|asked| match asked.path.as_str() {
        "/" => {
            let edition = asked.n_before / 6;
            let story: String = (0..12)
                .map(|line| {
                    format!(
                        "<p>Edition {edition} reports in line {line}: {}</p>",
                        "word of it ".repeat(20 + edition)
                    )
                })
                .collect();
            let weather = MARGIN[asked.n_before % MARGIN.len()];
            html(&format!(
                "<main><h1>The story of edition {edition}</h1>{story}</main><footer><p>Outside it is {weather}</p></footer>"
            ))
        }
        _ => status(404),
    })
}

fn crawled(keep: &str) -> (Web, Archive) {
    let (web, archive) = (article(), Archive::new());
    archive.ok(&["add", &web.url("/"), "--allow-private", "--keep", keep]);
    archive.ended(
        &[
            "crawl",
            "--time-lapse",
            "max",
            "--start",
            "2026-01-01",
            "--delay",
            "0",
            "--strategy",
            "fixed-interval",
            "--interval",
            "1h",
            "--time-limit",
            "24h",
        ],
        15,
    );
    (web, archive)
}

fn stored(archive: &Archive, how: &str) -> usize {
    archive.log().iter().filter(|line| line["kind"] == "page" && line["stored"] == how).count()
}

#[test]
fn unimportant_versions_are_kept_as_what_changed() {
    let (_web, archive) = crawled("important");
    let (whole, deltas) = (stored(&archive, "response"), stored(&archive, "delta"));
    assert!(whole >= 4, "every edition is stored whole, {whole} versions were");
    assert!(deltas >= 12, "most weather is left out, {deltas} versions were");
    let info = perennial(archive.path(), ["info", "--json"]).ok().json();
    assert_eq!(info["n_left_out"], deltas);
    archive.verify();

    let changes = |archive: &Archive| perennial(archive.path(), ["changes", "--json"]).ok().json();
    let before = changes(&archive);
    assert!(before.as_array().unwrap().len() >= 16, "{before}");
    std::fs::remove_file(archive.path().join("state.db")).unwrap();
    perennial(archive.path(), ["verify", "--rebuild"]).ok();
    perennial(archive.path(), ["analyse"]).ok();
    assert_eq!(changes(&archive), before, "what was left out is learned again from its deltas");
}

#[test]
fn all_versions_are_whole_unless_asked_for() {
    let (_web, archive) = crawled("all");
    assert_eq!(stored(&archive, "delta"), 0);
    assert!(stored(&archive, "response") >= 20);
}

#[test]
fn an_import_learns_from_the_history_of_a_collection() {
    let (web, collected) = crawled("all");
    let (_dir, archive) = folder();
    let warcs: Vec<_> =
        std::fs::read_dir(collected.path().join("warc")).unwrap().map(|file| file.unwrap().path()).collect();
    let mut args = vec!["--json".into(), "import".into(), "--create".into()];
    args.extend(warcs.into_iter().map(std::path::PathBuf::into_os_string));
    let report = perennial(&archive, args).ok().json();
    assert!(report["learned"]["n_captures"].as_u64().unwrap() >= 20, "{report}");
    assert!(report["learned"]["n_changed"].as_u64().unwrap() >= 4, "{report}");
    let patterns = perennial(&archive, ["--json", "patterns"]).ok().json();
    let page = patterns.as_array().unwrap().iter().find(|page| page["url"] == web.url("/")).unwrap();
    assert!(page["n_looks"].as_u64().unwrap() >= 20, "{page}");
    assert_eq!(page["n_not_analysed"], 0);
    assert!(page["changes_per_day"].as_f64().unwrap() > 3.0, "{page}");
}
