//! SQL over views: their contents, their documentation, and the statements that are rejected.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::crawled::Archive;
use crate::web::{Reply, Web, WebRequest, html, status};

/// A page that changes at each visit, one that vanishes, and a feed.
fn site(request: &WebRequest) -> Reply {
    const WORDS: [&str; 4] =
        ["the harbour opens", "a bridge, \"new\" and red", "ferries stop", "trams run again"];
    let words = WORDS[request.n_before % 4];
    match request.path.as_str() {
        "/" => html(&format!(
            "<title>News, \"today\"</title><link rel=alternate type='application/rss+xml' href=/feed><h1>News</h1>\
             <p>In the city {words}, says the mayor of the town.</p><a href=/gone>Plan</a>"
        )),
        "/gone" if request.n_before < 2 => html("<title>Plan</title><h1>Plan</h1><p>What to do when the river rises.</p>"),
        "/feed" => Reply::Page(
            200,
            vec![("Content-Type", "application/rss+xml".into())],
            b"<rss version='2.0'><channel><title>T</title><item><title>One</title><link>/gone</link><guid>1</guid></item></channel></rss>".to_vec(),
        ),
        _ => status(404),
    }
}

fn crawled() -> (Web, Archive) {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "1d");
    (web, archive)
}

fn documented() -> BTreeMap<String, Vec<String>> {
    let text = include_str!("../../docs/sql.md");
    let (mut views, mut view): (BTreeMap<String, Vec<String>>, _) = (BTreeMap::new(), String::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("## `").and_then(|rest| rest.strip_suffix('`')) {
            view = name.to_owned();
            views.insert(view.clone(), Vec::new());
        } else if let Some(columns) = line.strip_prefix("- ").filter(|_| !view.is_empty()) {
            let names = columns.split(':').next().unwrap().split('`').skip(1).step_by(2);
            views.entry(view.clone()).or_default().extend(names.map(str::to_owned));
        }
    }
    views
}

#[test]
fn the_views_hold_what_other_commands_tell_and_what_is_documented() {
    let (web, archive) = crawled();
    let views: BTreeMap<String, Vec<String>> =
        serde_json::from_value(archive.json(&["sql", "--views"])).unwrap();
    assert_eq!(documented(), views);
    for (view, columns) in &views {
        let text = archive.ok(&["sql", "--csv", &format!("select * from {view}")]);
        assert_eq!(text.lines().next().unwrap(), columns.join(","), "{view}");
        assert!(text.lines().count() > 1, "{view} is empty");
    }
    let one = |sql: &str| archive.json(&["sql", sql])[0]["n"].clone();
    let info = archive.json(&["status"]);
    assert_eq!(one("select count(*) n from captures"), info["n_captures"], "{info}");
    let changes = archive.json(&["changes"]);
    let rows = archive
        .json(&["sql", "select url, time, kind, importance, is_noise from changes order by time, url"]);
    let key = |change: &Value, time: &str| {
        let text = |name: &str| change[name].as_str().unwrap().to_owned();
        (text(time), text("url"), text("kind"))
    };
    let mut reported: Vec<_> =
        changes.as_array().unwrap().iter().map(|change| key(change, "after")).collect();
    reported.sort();
    let found: Vec<_> = rows.as_array().unwrap().iter().map(|row| key(row, "time")).collect();
    assert!(found.len() > 3 && found == reported, "{rows} {changes}");
    assert_eq!(one("select count(*) n from items join pages using (url) where items.title = 'One'"), 1);
    assert_eq!(one(&format!("select count(*) n from articles where url = '{}'", web.url("/gone"))), 1);
    let table = archive.ok(&["sql", "select kind, null as empty from pages where url like '%/gone'"]);
    assert_eq!(table, "kind  empty\npage\n1 rows\n");

    let file = archive.root.join("changes.csv");
    let path = file.to_str().unwrap();
    archive.ok(&["export", "--format", "csv", "--output", path]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().next().unwrap(), views["changes"].join(","));
    assert_eq!(text.lines().count(), 1 + found.len(), "{text}");
    assert!(text.contains(",\"News, \"\"today\"\"\","), "{text}");
    let report = archive.json(&[
        "export",
        "--format",
        "csv",
        "--table",
        "versions",
        "--output",
        path,
        "--force",
        "--page",
        &web.url("/"),
    ]);
    assert_eq!(
        report["n_rows"],
        one(&format!("select count(*) n from versions where url = '{}'", web.url("/")))
    );
}

#[test]
fn trees_and_deltas_of_an_archive_are_one_document_each() {
    let (web, archive) = crawled();
    let path = archive.root.join("out.xml");
    let export = |format: &str| {
        let output = path.to_str().unwrap();
        let report = archive.json(&[
            "export",
            "--format",
            format,
            "--output",
            output,
            "--force",
            "--page",
            &web.url("/"),
        ]);
        (report["n"].as_u64().unwrap() as usize, std::fs::read_to_string(&path).unwrap())
    };
    let count = |sql: &str| archive.json(&["sql", sql])[0]["n"].as_u64().unwrap() as usize;
    let (n_trees, trees) = export("vixml");
    assert!(
        trees.starts_with("<?xml") && trees.ends_with("</Trees>\n") && trees.matches("<?xml").count() == 1
    );
    assert_eq!(trees.matches("\n<Document ").count(), n_trees);
    let (n_deltas, deltas) = export("videlta");
    assert_eq!(deltas.matches("\n<Delta ").count(), n_deltas);
    let place = format!("where url = '{}'", web.url("/"));
    assert_eq!(n_deltas, count(&format!("select count(*) n from changes {place} and n_operations > 0")));
    assert_eq!(n_trees, n_deltas + 1, "a tree for each change, and the first");
}

#[test]
fn a_statement_only_reads_views_and_ends_in_time() {
    let (_web, archive) = crawled();
    for (sql, hint) in [
        ("select * from trees", "only reading from the views"),
        ("select * from main.pages", "only reading from the views"),
        ("with pages as (select * from trees) select * from pages", "only reading from the views"),
        ("select * from sqlite_master", "only reading from the views"),
        ("select * from pragma_table_info('pages')", "only reading from the views"),
        ("pragma user_version", "only reading from the views"),
        ("delete from pages", "views"),
        ("insert into sites values ('x', 1, 1)", "views"),
        ("create table x (y)", "only reading from the views"),
        ("attach 'x.db' as x", "only reading from the views"),
        ("select load_extension('x')", "views"),
        ("select * from nowhere", "docs/sql.md lists"),
        ("select 1; select 2", "write one statement"),
        ("select length(randomblob(900000000))", "more memory than it may have"),
        (
            "select group_concat(a.url || b.url || c.url) from captures a, captures b, captures c, captures d, captures e",
            "more memory than it may have",
        ),
    ] {
        let output = archive.run(&["sql", "--time-limit", "5s", "--max-memory", "96MiB", sql]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(hint), "{sql}: {said}");
    }
    let endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n";
    let output = archive.run(&["sql", "--time-limit", "300ms", endless]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("it took longer than 300ms"), "{output:?}");
    let one_step = "select instr(hex(zeroblob(20000000)), hex(zeroblob(10000000)) || '1')";
    let output = archive.run(&["sql", "--time-limit", "300ms", one_step]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("exceeded its time limit"), "{output:?}");
    let output = archive.run(&["sql", "--max-rows", "2", "--csv", "select url from captures"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    assert!(String::from_utf8_lossy(&output.stderr).contains("only the first 2 rows are shown"));
}
