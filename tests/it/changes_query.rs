//! Queries for changes: `perennial changes`, `/api/changes`, `/changes` and `/changes.atom` return the same changes for
//! the same query.

use perennial_core::memento::replay_url::escape;
use serde_json::Value;

use crate::dashboard::{crawled, host};
use crate::dashboard_pages::TestDashboard;
use crate::web::{Web, html, status};

/// The URL and time of each change.
fn keys(changes: &Value) -> Vec<(String, String)> {
    let text = |change: &Value, name: &str| change[name].as_str().unwrap().to_owned();
    changes.as_array().unwrap().iter().map(|change| (text(change, "url"), text(change, "after"))).collect()
}

/// The changes with an operation that passes. The program's result is compared with this reference.
fn with_operation(all: &Value, is_so: impl Fn(&Value) -> bool) -> Vec<(String, String)> {
    let has = |change: &&Value| change["operations"].as_array().unwrap().iter().any(&is_so);
    let found: Vec<Value> = all.as_array().unwrap().iter().filter(has).cloned().collect();
    keys(&Value::Array(found))
}

#[test]
fn one_query_has_one_result_in_all_interfaces() {
    let (web, archive) = crawled();
    let all = archive.json(&["changes"]);
    let site = host(&web);
    let (limits, home) = (web.url("/limits"), web.url("/"));
    let queries: &[(&[&str], String)] = &[
        (&[], "noise=1".into()),
        (&["--without-noise"], String::new()),
        (&["--appeared", "\"fifty kilometres\""], "appears=%22fifty%20kilometres%22&noise=1".into()),
        (&["--vanished", "thirty"], "vanishes=thirty&noise=1".into()),
        (&["--appeared", "/f.fty/", "--kind", "edited"], "appears=%2Ff.fty%2F&kind=edited&noise=1".into()),
        (&["--appears", "nothing"], "appears=nothing&noise=1".into()),
        (&["--op", "update", "--element", "text"], "op=update&element=text&noise=1".into()),
        (&["--element", "item"], "element=headline&noise=1".into()),
        (&["--op", "insert"], "op=insert&noise=1".into()),
        (&["--block", "main"], "block=main&noise=1".into()),
        (&["--text", "defends"], "text=defends&noise=1".into()),
        (&["--selector", "h1"], "selector=h1&noise=1".into()),
        (&["--selector", "p", "--appeared", "fifty"], "selector=p&appears=fifty&noise=1".into()),
        (&["--kind", "vanished"], "kind=vanished&noise=1".into()),
        (&["--kind", "retitled"], "kind=retitled&noise=1".into()),
        (&["--min-importance", "0.3"], "least=0.3&noise=1".into()),
        (&["--since", "2026-01-01T12:00:00Z"], "since=2026-01-01T12%3A00%3A00Z&noise=1".into()),
        (&["--until", "2026-01-01T12:00:00Z"], "until=20260101120000&noise=1".into()),
        (&[&site], format!("site={}&noise=1", escape(&site))),
        (&[&limits], format!("page={}&noise=1", escape(&limits))),
        (&[&home, "--op", "update"], format!("site={}&op=update&noise=1", escape(&home))),
    ];
    let check = |face: &TestDashboard, is_wanted: &dyn Fn(&str) -> bool| {
        for (number, (args, query)) in queries.iter().enumerate().filter(|(_, (_, query))| is_wanted(query)) {
            let reported = archive.json(&[&["changes"], *args].concat());
            let json = |path: &str| -> Value {
                let (status, text, _) = face.get(path);
                assert_eq!(status, 200, "{path}: {text}");
                serde_json::from_str(&text).unwrap()
            };
            let answer = json(&format!("/api/changes?{query}&order=oldest&limit=200"));
            assert_eq!(answer["changes"], reported, "{args:?} {query}");
            assert_eq!(answer["next"], Value::Null);
            let (_, feed, _) = face.get(&format!("/changes.atom?{query}"));
            assert_eq!(
                feed.matches("<entry>").count(),
                reported.as_array().unwrap().len().min(50),
                "{query}"
            );
            // Each part of the list continues with the next one, in every order.
            for order in ["latest", "oldest", "importance"].into_iter().filter(|_| number % 3 == 0) {
                let whole = keys(&json(&format!("/api/changes?{query}&order={order}&limit=200"))["changes"]);
                assert_eq!(whole.len(), reported.as_array().unwrap().len());
                let (mut walked, mut after) = (Vec::new(), String::new());
                loop {
                    let part = json(&format!("/api/changes?{query}&order={order}&limit=2{after}"));
                    walked.extend(keys(&part["changes"]));
                    assert!(walked.len() <= whole.len(), "{query} {order} does not end");
                    let Some(next) = part["next"].as_str() else { break };
                    after = format!("&after={next}");
                }
                assert_eq!(walked, whole, "{query} {order}");
            }
        }
    };
    check(&TestDashboard::of(&archive), &|_| true);
    // Without the text index the query scans the changes. The result is the same.
    for entry in std::fs::read_dir(&archive.root).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("search.db") {
            std::fs::remove_file(path).unwrap();
        }
    }
    check(&TestDashboard::of(&archive), &|query| query.contains("appears") || query.contains("vanishes"));

    let request = |args: &[&str]| keys(&archive.json(&[&["changes"], args].concat()));
    assert_eq!(request(&["--appeared", "fifty"]).len(), 1);
    assert_eq!(request(&["--appeared", "fifty"]), request(&["--vanished", "thirty"]));
    assert_eq!(request(&["--op", "update"]), with_operation(&all, |entry| entry["op"] == "update"));
    let is_headline = |entry: &Value| entry["element"] == "item" && entry["op"] == "insert";
    assert_eq!(request(&["--op", "insert", "--element", "headline"]), with_operation(&all, is_headline));
    assert!(!request(&["--op", "insert", "--element", "headline"]).is_empty());
    let latest = request(&["--limit", "2"]);
    assert_eq!(latest, keys(&all)[keys(&all).len() - 2..], "the latest, oldest first");
    let wrong = archive.run(&["changes", "--block", "elsewhere"]);
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("choose main"));
}

#[test]
fn the_page_keeps_the_query_and_names_the_mistake() {
    let (web, archive) = crawled();
    let face = TestDashboard::of(&archive);
    let (status, page, policy) = face.get("/changes?op=update&element=text&appears=fifty");
    assert!(status == 200 && !page.contains("<script") && policy.starts_with("default-src 'none'"), "{page}");
    assert!(page.contains("<h1>1 change</h1>") && page.contains("<ins>fifty</ins>"), "{page}");
    assert!(page.contains("value=\"update\" selected") && page.contains("value=\"fifty\""), "{page}");
    assert!(page.contains("/changes.atom?appears=fifty&amp;op=update&amp;element=text"), "{page}");
    assert!(page.contains("/api/changes?appears=fifty"), "{page}");
    assert!(page.contains(&format!("/page?url={}", escape(&web.url("/limits")))), "{page}");
    let (_, none, _) = face.get("/changes?appears=nobody");
    assert!(none.contains("<h1>No matching change</h1>") && none.contains("a longer span"), "{none}");
    let (status, wrong, _) = face.get("/changes?text=%2F(%2F&site=%3Cscript%3E");
    assert!(status == 200 && wrong.contains("class=\"alert\"") && !wrong.contains("<script"), "{wrong}");
    for path in
        ["/api/changes?op=turn", "/api/changes?after=x", "/api/changes?limit=0", "/changes.atom?since=x"]
    {
        let (status, reported, _) = face.get(path);
        assert!(status == 400 && reported.contains(": "), "{path}: {reported}");
    }
    let (_, home, _) = face.get("/?since=7d");
    assert!(home.contains("href=\"/changes\""), "{home}");
}

/// A page whose twelve paragraphs have new words at each visit, and one with a counter.
fn restless() -> (Web, crate::crawled::Archive) {
    let web = Web::serve(|request| {
        let n = request.n_before;
        let ending = [
            "ish", "en", "ine", "ful", "less", "like", "most", "ness", "wood", "leaf", "seed", "root", "bud",
        ];
        let word = |i: usize| {
            let plant = ["amber", "birch", "cedar", "dahlia", "elder", "fennel", "ginger"][i % 7];
            format!("{plant}{}", ending[n % ending.len()])
        };
        match request.path.as_str() {
            "/" => {
                let texts: String = (0..12)
                    .map(|i| {
                        format!(
                            "<p>Paragraph {i}: {} of {} in {}.</p>",
                            word(n + i),
                            word(2 * n + i),
                            word(n * i + 3)
                        )
                    })
                    .collect();
                html(&format!("<title>Long</title><h1>Long</h1>{texts}<a href=/counter>Counter</a>"))
            }
            "/counter" => {
                html(&format!("<title>Counter</title><h1>Counter</h1><p>{} visitors</p>", 100 + 7 * n))
            }
            _ => status(404),
        }
    });
    let archive = crate::crawled::Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("1h", "12h");
    (web, archive)
}

#[test]
fn people_see_the_latest_changes_first_and_at_most_a_screen() {
    let (web, archive) = restless();
    let text = archive.ok(&["changes"]);
    let times: Vec<&str> =
        text.lines().filter(|line| line.starts_with("2026-")).map(|line| &line[..20]).collect();
    assert!(times.len() >= 2 && times.is_sorted_by(|later, earlier| later >= earlier), "{text}");
    assert!(text.lines().count() <= 24 && text.lines().last().unwrap().contains("--limit 100"), "{text}");
    let more = text.lines().find(|line| line.contains(" more: perennial diff ")).expect(&text);
    let arguments: Vec<&str> = more.split(' ').skip_while(|word| *word != "diff").collect();
    assert!(archive.ok(&arguments).starts_with("importance "), "{more}");
    let whole = archive.ok(&["changes", "--limit", "100"]);
    assert!(whole.lines().count() > 24 && !whole.contains("--limit 100"), "{whole}");

    // The first change of a counter is shown; later ones are folded, with the reason one step away.
    let counter = web.url("/counter");
    assert_eq!(
        archive.ok(&["changes", &counter]).lines().filter(|line| line.starts_with("2026-")).count(),
        1
    );
    let noise = archive.ok(&["changes", &counter, "--with-noise", "--limit", "100"]);
    assert!(noise.lines().filter(|line| line.starts_with("2026-")).count() > 5, "{noise}");
    assert!(noise.contains("noise: a counter that changed at 4 of 4 visits"), "{noise}");
    let all = archive.json(&["changes", &counter]);
    let reasons: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["operations"][0]["noise_reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons[..2], ["a counter, by its form", "a counter that changed at 1 of 1 visits"]);
    assert_eq!(all[0]["noise"], false);
}
