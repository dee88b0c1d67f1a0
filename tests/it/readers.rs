//! The content of a page as people read it: words in order, and changes relative to the length of the page.

use std::path::Path;
use std::process::Command;

fn perennial(arguments: &[&str], files: &[&Path]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(arguments)
        .args(files)
        .env_remove("PERENNIAL_ARCHIVE")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn leaves(block: &serde_json::Value) -> Vec<&serde_json::Value> {
    match block["children"].as_array() {
        Some(children) => children.iter().flat_map(leaves).collect(),
        None => vec![block],
    }
}

/// The text of all leaves, and the words that no leaf contains.
fn read(html: &str) -> (String, u64) {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    std::fs::write(&page, html).unwrap();
    let tree = perennial(&["lab", "segment", "--format", "json"], &[&page]);
    let blocks = tree["blocks"].as_array().unwrap();
    let texts: Vec<&str> =
        blocks.iter().flat_map(leaves).map(|leaf| leaf["text"].as_str().unwrap()).collect();
    (texts.join(" "), tree["lost_words"].as_u64().unwrap())
}

#[test]
fn a_leaf_has_the_reading_order_of_the_page() {
    let html = "<body><h1>Bridge <a href=/closed>closed</a> for repairs</h1><p>Divers found cracks in <a href=/p>two piers</a>, \
                the <b>harbour <a href=/o>office</a></b> said. <img src=/i.jpg alt=pier width=90 height=90> It stays <a href=/c>closed</a>.</p>\
                <ul><li><a href=/1>First</a> of all</li><li>then <a href=/2>second</a></li></ul></body>";
    let (text, n_lost) = read(html);
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    assert_eq!(
        words.join(" "),
        "Bridge closed for repairs Divers found cracks in two piers the harbour office said It stays closed First of all \
         then second"
    );
    assert_eq!(n_lost, 0);
}

#[test]
fn a_table_within_a_row_keeps_its_words() {
    let html = "<style>.t{display:table}.r{display:table-row}.c{display:table-cell}.g{display:table-row-group}</style>\
                <div class=t><div class=g><div class=r><div class=t><div class=r><div class=c><p>Dues are paid at the office.</p></div>\
                <div class=c>Every day</div></div></div></div></div></div><p>An end.</p>";
    assert_eq!(read(html), ("Dues are paid at the office. Every day An end.".into(), 0));
}

#[test]
fn words_without_a_box_are_still_read() {
    let html = "<table><caption>Rain <b>by month</b>, in mm</caption><tr><td>May<td>61</table>\
                <table><caption style='display:none'>Hidden</caption><tr><td>June\u{200b}<span>\u{200b}</span><td>74</table><p>An end.</p>";
    assert_eq!(read(html), ("Rain by month, in mm May 61 June\u{200b} 74 An end.".into(), 0));
}

/// The importance of a new entry hardly depends on the length of the list. At the top of 20 and of 2,000 entries it
/// differs by less than a factor of 3, in prose and in links.
#[test]
fn the_length_of_a_list_hardly_matters() {
    let log = |from: usize, n: usize| {
        let entry = |n: usize| {
            format!("<li>Day {n}: the pilot boat brought ship{n} in and took mail{n} out again.</li>\n")
        };
        let entries: String = (from..from + n).map(entry).collect();
        format!(
            "<body><h1>Log of the harbour</h1><ul>{entries}</ul><footer><p>The office</p></footer></body>"
        )
    };
    let list = |from: usize, n: usize| {
        let entry = |n: usize| {
            format!("<li><a href=/story-of-the-ship-{n}>Ship number {n} has come in at last</a></li>\n")
        };
        let entries: String = (from..from + n).map(entry).collect();
        format!("<body><h1>All ships</h1><ul>{entries}</ul><footer><p>The office</p></footer></body>")
    };
    let dir = tempfile::tempdir().unwrap();
    let importance = |before: String, after: String| {
        let files = [dir.path().join("before.html"), dir.path().join("after.html")];
        std::fs::write(&files[0], before).unwrap();
        std::fs::write(&files[1], after).unwrap();
        perennial(&["diff", "--format", "json"], &[&files[0], &files[1]])["importance"].as_f64().unwrap()
    };
    let logs = [20, 2000].map(|n| importance(log(1, n), log(0, n + 1)));
    let lists = [20, 2000].map(|n| importance(list(1, n), list(0, n + 1)));
    for [few, many] in [logs, lists] {
        assert!(few > 0.01 && few < 3.0 * many && many < 3.0 * few, "{logs:?} {lists:?}");
    }
}

/// On a page of links to many hosts, a link to the same site weighs no more than others.
#[test]
fn a_page_of_links_to_many_hosts_has_no_main_host() {
    let page = |entries: &[usize]| {
        let entry = |n: &usize| {
            let host = if n.is_multiple_of(9) { String::new() } else { format!("https://host{n}.example") };
            format!(
                "<li><a href={host}/what-happened-to-number-{n}>What happened to number {n} in the end</a> \
                 <span>{n} points by <a href=/user?id=u{n}>u{n}</a> <a href=/item?id={n}>{n} comments</a></span></li>"
            )
        };
        format!("<body><ol>{}</ol></body>", entries.iter().map(entry).collect::<String>())
    };
    let dir = tempfile::tempdir().unwrap();
    let before: Vec<usize> = (1..31).collect();
    let importance = |n: usize| {
        let after: Vec<usize> = std::iter::once(n).chain(before.iter().copied()).collect();
        let files = [dir.path().join("before.html"), dir.path().join("after.html")];
        std::fs::write(&files[0], page(&before)).unwrap();
        std::fs::write(&files[1], page(&after)).unwrap();
        perennial(&["diff", "--format", "json"], &[&files[0], &files[1]])["importance"].as_f64().unwrap()
    };
    let (elsewhere, own) = (importance(100), importance(99));
    assert!(elsewhere > 0.01 && (elsewhere - own).abs() < 0.001, "{elsewhere} {own}");
}
