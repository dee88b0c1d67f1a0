//! Responses to POST and similar requests are found by method and body, from an import to an export and in pages.

use std::path::Path;

use perennial_core::time::Timestamp;
use perennial_warc::{Compression, NewRecord, RecordIds, WarcWriter};

use crate::program::{folder, perennial};
use crate::server::{Serving, send_body};

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
const API: &str = "http://a.example/api";
const TIME: &str = "20260102030405";

/// Method, media type and body of a request, and the body of its response.
const EXCHANGES: [(&str, &str, &str, &str); 6] = [
    ("GET", "", "", "got"),
    ("POST", FORM, "name=M%C3%BCller+%26+Co&page=1", "form 1"),
    ("POST", FORM, "name=M%C3%BCller+%26+Co&page=2", "form 2"),
    ("POST", JSON, r#"{"query": {"id": 7, "tags": ["a", "b"]}}"#, "json"),
    ("PUT", JSON, r#"{"query": {"id": 7, "tags": ["a", "b"]}}"#, "put"),
    ("DELETE", "", "", "deleted"),
];

/// Some tools write the request before its response.
fn warc(is_request_first: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::Gzip(6)).unwrap();
    let mut ids = RecordIds::new(3);
    for (at, (method, content_type, body, answer)) in EXCHANGES.iter().enumerate() {
        let time = Timestamp::parse(TIME).unwrap();
        let (id, request_id) = (ids.next_id(), ids.next_id());
        let head =
            format!("{method} /api HTTP/1.1\r\nHost: a.example\r\nContent-Type: {content_type}\r\n\r\n");
        let request =
            NewRecord::request(request_id, time, API, head.as_bytes(), body.as_bytes()).concurrent_to(id);
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
        let response = NewRecord::response(id, time, API, head, answer.as_bytes());
        let records = if is_request_first(at) { [request, response] } else { [response, request] };
        records.iter().for_each(|record| drop(out.write(record).unwrap()));
    }
    out.into_inner()
}

fn check(root: &Path) {
    let serving = Serving::start(&[root], &[]);
    for (method, content_type, body, expected) in EXCHANGES {
        let fields = [("Content-Type", content_type)];
        for (host, modifier) in [(&serving.main, "id_"), (&serving.replay, "mp_")] {
            let path = format!("/web/{TIME}{modifier}/{API}");
            let answer = send_body(host, method, &path, &fields, body);
            assert_eq!(answer.status, 200, "{method} {body}: {}", answer.text());
            assert!(answer.text().contains(expected), "{method} {body}: {}", answer.text());
        }
    }
    let path = format!("/web/{TIME}id_/{API}");
    let post = |body: &str| send_body(&serving.main, "POST", &path, &[("Content-Type", FORM)], body);
    for (method, content_type, body) in [("POST", FORM, "page=3"), ("POST", JSON, "{}"), ("PATCH", "", "")] {
        let answer = send_body(&serving.main, method, &path, &[("Content-Type", content_type)], body);
        assert_eq!(
            (answer.status, answer.field("x-perennial-problem")),
            (404, "not-archived"),
            "{method} {body}"
        );
    }
    // Scripts add numbers to their requests.
    let fuzzy = post("page=2&name=M%C3%BCller+%26+Co&_=123456");
    assert_eq!((fuzzy.text().as_str(), fuzzy.field("x-perennial-fuzzy")), ("form 2", API));
    // As pywb and its clients write it.
    let path = format!("/web/{TIME}id_/{API}?__wb_method=POST&name=M%C3%BCller%20%26%20Co&page=1");
    assert_eq!(serving.get(&path).text(), "form 1");
    let answer = serving.get(&format!("/web/timemap/link/{API}"));
    assert_eq!(answer.text().matches("memento\"").count(), 1, "only GET: {}", answer.text());
    assert_eq!(send_body(&serving.main, "PUT", "/changes", &[], "x").status, 405);
}

fn index(root: &Path) -> String {
    let file = root.join("index.cdxj");
    perennial(root, ["export", "--format", "cdxj", "--force", "-o", file.to_str().unwrap()]).ok();
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn posts_are_replayed_after_import_rebuild_and_export() {
    let (dir, root) = folder();
    let file = dir.path().join("posts.warc.gz");
    std::fs::write(&file, warc(|at| at % 2 == 1)).unwrap();
    perennial(&root, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    perennial(&root, ["verify"]).ok();
    check(&root);
    let lines = index(&root);
    for expected in [
        r#"example,a)/api 20260102030405 {"url": "http://a.example/api", "mime": "text/html""#,
        "example,a)/api?%20co&__wb_method=post&name=m%c3%bcller%20&page=1 20260102030405",
        r#""method": "POST", "requestBody": "name=M\u00fcller & Co&page=1"}"#,
        r#""method": "PUT", "requestBody": "id=7&tags=a&tags.2_=b"}"#,
        r#""method": "DELETE"}"#,
    ] {
        assert!(lines.contains(expected), "{expected}: {lines}");
    }
    perennial(&root, ["verify", "--rebuild"]).ok();
    assert_eq!(index(&root), lines);
    let imported = dir.path().join("lines.cdxj");
    std::fs::write(&imported, &lines).unwrap();
    let report = perennial(&root, ["--json".as_ref(), "import".as_ref(), imported.as_os_str()]).ok().json();
    assert_eq!(report["indexes"][0]["n_confirmed"], EXCHANGES.len(), "{report}");
    for format in ["wacz", "warc"] {
        let exported = dir.path().join(format!("all.{format}"));
        perennial(&root, ["export", "--format", format, "-o", exported.to_str().unwrap()]).ok();
        let again = dir.path().join(format!("again-{format}"));
        perennial(&again, ["import".as_ref(), "--create".as_ref(), exported.as_os_str()]).ok();
        check(&again);
    }
}

/// Their index of the same records has the same keys and fields.
#[test]
#[cfg_attr(not(feature = "interop"), ignore = "needs Python tools: run with --features interop")]
fn cdxj_indexer_writes_the_same_lines() {
    let (dir, root) = folder();
    let file = dir.path().join("posts.warc.gz");
    std::fs::write(&file, warc(|_| false)).unwrap();
    perennial(&root, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    let theirs = crate::program::ran(
        crate::interop::tool("cdxj-indexer").args(["--sort", "--post-append"]).arg(&file),
    );
    let theirs = theirs.ok().stdout;
    let fields = |line: &&str| {
        let (key, json) = line.split_once('{').unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&format!("{{{json}")).unwrap();
        // The name of the method and an empty body are written differently; DELETE is not handled at all.
        json.as_object_mut().unwrap().retain(|name, value| name != "filename" && value != "");
        format!("{key} {json}")
    };
    let is_handled = |line: &&str| !line.contains("elete");
    let ours = index(&root);
    let mut ours: Vec<String> =
        ours.lines().filter(|line| !line.contains("DELETE")).map(|line| fields(&line)).collect();
    let mut theirs: Vec<String> = theirs.lines().filter(is_handled).map(|line| fields(&line)).collect();
    // It indexes the response to DELETE like one to GET.
    theirs.retain(|line| ours.contains(line));
    ours.sort();
    theirs.sort();
    assert_eq!(theirs, ours);
}

#[cfg(feature = "interop")]
mod in_a_browser {
    use crate::browser::{Serving, Viewer};
    use crate::crawled::Archive;
    use crate::web::{Reply, Web, html, status};

    const PAGE: &str = "<title>posts</title><body><div id=app></div><form id=form method=post action=/form><input name=q value='a b'></form><script>
        const show = (text) => { document.getElementById('app').append(text + ';') };
        const json = {method: 'POST', headers: {'Content-Type': 'application/json', 'X-Requested-With': 'test'}, body: JSON.stringify({id: 7})};
        fetch('/api', json).then((answer) => answer.text()).then(show);
        fetch(new Request('/api', {method: 'PUT', body: new URLSearchParams({a: 'b c'})})).then((answer) => answer.text()).then(show);
        const request = new XMLHttpRequest(); request.open('POST', '/api'); request.onload = () => show(request.responseText);
        const form = new FormData(); form.append('field', 'value'); request.send(form);
        </script>";

    #[test]
    fn a_page_that_posts_is_captured_and_replayed() {
        let web = Web::serve(|request| match request.path.as_str() {
            "/" => html(PAGE),
            "/api" => {
                let kind =
                    request.field("content-type").unwrap_or_default().split(';').next().unwrap().to_string();
                let script = request.field("x-requested-with").unwrap_or("none");
                let text = format!("{} {kind} {script} {}", request.method, request.body.len());
                Reply::Page(200, vec![("Content-Type", "text/plain".into())], text.into())
            }
            _ => status(404),
        });
        let archive = Archive::new();
        archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "chromium"]);
        archive.ok(&["run", "--once", "--delay", "0"]);
        archive.verify();
        let sent: Vec<_> = web.requests().into_iter().filter(|request| request.path == "/api").collect();
        assert_eq!(sent.len(), 3, "{sent:?}");
        let serving = Serving::start(&archive);
        let host = |origin: &str| origin.trim_start_matches("http://").to_string();
        let mut viewer =
            Viewer::start(&[host(&serving.main), host(&serving.replay), web.address.to_string()]);
        let n_requests = web.requests().len();
        viewer.visit(&format!("{}/web/2mp_/{}", serving.main, web.url("/")));
        viewer.until(true, "document.getElementById('app')?.textContent.split(';').length === 4");
        let shown = viewer.inside("document.getElementById('app').textContent");
        for expected in [
            "POST application/json test 8",
            "PUT application/x-www-form-urlencoded none 5",
            "POST multipart/form-data none",
        ] {
            assert!(shown.as_str().unwrap().contains(expected), "{shown}");
        }
        assert_eq!(web.requests().len(), n_requests, "the live site was asked");
        assert_eq!(viewer.escaped(), Vec::<String>::new());
    }
}
