//! Pages that need scripts: with a real Chromium, without one, and with one that hangs. They are built with the
//! feature `interop`. Then a machine without a browser fails them and does not skip them silently.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::crawled::Archive;
use crate::program::folder;
use crate::web::{Reply, Web, WebRequest, html, status};

const SHELL: &str = "<title>App</title><body><div id=app></div><script src=/app.js></script>";
const SCRIPT: &str = "fetch('/data.json').then(r => r.json()).then(d => { \
    document.getElementById('app').innerHTML = '<p>' + d.text + '</p><a href=/drawn-link>more</a>' })";

fn app(request: &WebRequest) -> Reply {
    let typed = |mime: &str, body: &str| {
        Reply::Page(200, vec![("Content-Type", mime.to_string())], body.as_bytes().to_vec())
    };
    match request.path.as_str() {
        "/" => html(SHELL),
        "/app.js" => typed("text/javascript", SCRIPT),
        "/data.json" => typed("application/json", "{\"text\": \"words that a script drew\"}"),
        "/drawn-link" => html("<p>a plain page that only a drawn link leads to</p>"),
        _ => status(404),
    }
}

/// Crawls the app once. Returns the program's output.
fn crawl(archive: &Archive, browser: Option<&Path>) -> String {
    let mut command = archive.command(&["run", "--once", "--delay", "0"]);
    if let Some(path) = browser {
        command.env("PERENNIAL_CHROMIUM", path);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    archive.verify();
    said
}

fn captured(archive: &Archive) -> String {
    let index = archive.root.join("all.cdxj");
    archive.ok(&["export", "--format", "cdxj", "-o", index.to_str().unwrap(), "--force"]);
    std::fs::read_to_string(index).unwrap()
}

#[test]
fn a_shell_is_rendered_with_all_its_requests() {
    let web = Web::serve(app);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    crawl(&archive, None);
    let index = captured(&archive);
    for path in ["/app.js", "/data.json", "/drawn-link"] {
        assert!(index.contains(&format!("\"{}\"", web.url(path))), "{path}: {index}");
    }
    assert!(index.contains(&format!("\"urn:dom:{}\"", web.url("/"))), "{index}");
}

/// The browser follows redirects, sends what scripts post, and requests an icon once for all pages.
#[test]
fn the_requests_of_pages_are_those_of_a_browser() {
    let typed = |mime: &str, body: &str| {
        Reply::Page(200, vec![("Content-Type", mime.to_string())], body.as_bytes().to_vec())
    };
    let web = Web::serve(move |request| match request.path.as_str() {
        "/moved.js" => Reply::Page(302, vec![("Location", "/deep/far.js".into())], Vec::new()),
        "/deep/far.js" => typed(
            "text/javascript",
            "import('./near.js').then((near) => { document.getElementById('app').innerHTML = near.html })",
        ),
        "/deep/near.js" => typed(
            "text/javascript",
            "export const html = '<p>words from behind a redirect</p><a href=/2>2</a> <a href=/3>3</a>'; fetch('/api', {method: 'POST', body: 'a=b'}).catch(() => 0)",
        ),
        "/" | "/2" | "/3" => {
            html("<title>App</title><body><div id=app></div><script type=module src=/moved.js></script>")
        }
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "chromium"]);
    crawl(&archive, None);
    let index = captured(&archive);
    for path in ["/moved.js", "/deep/far.js", "/deep/near.js", "/2", "/3"] {
        assert!(index.contains(&format!("\"{}\"", web.url(path))), "{path}: {index}");
    }
    let n_requests = |path: &str| web.requests().iter().filter(|request| request.path == path).count();
    assert_eq!(n_requests("/2"), 1);
    let posted: Vec<WebRequest> =
        web.requests().into_iter().filter(|request| request.path == "/api").collect();
    assert!(!posted.is_empty());
    assert!(posted.iter().all(|request| request.method == "POST" && request.body == b"a=b"), "{posted:?}");
    assert!(index.contains("api?__wb_method=post&__wb_post_data="), "{index}");
    assert!(n_requests("/favicon.ico") <= 1, "{}", n_requests("/favicon.ico"));
}

/// The visible page counts: the shell never changes, but the text that its script inserts does.
#[test]
fn changes_are_those_of_the_rendered_page() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => {
            let fields = vec![("Content-Type", "text/html".to_string()), ("ETag", "\"shell\"".into())];
            let is_known = request.field("if-none-match").is_some();
            Reply::Page(if is_known { 304 } else { 200 }, fields, SHELL.as_bytes().to_vec())
        }
        "/data.json" => {
            let text =
                ["The pool is open", "The pool is closed for repairs until May", "The pool is open again"];
            let body = format!("{{\"text\": {:?}}}", text[request.n_before.min(2)]);
            Reply::Page(200, vec![("Content-Type", "application/json".into())], body.into_bytes())
        }
        _ => app(request),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "chromium"]);
    archive.lapse("1h", "4h");
    let changes = archive.json(&["changes", &web.url("/")]);
    let changes = changes.as_array().unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(changes[0]["importance"].as_f64().unwrap() > 0.1, "{changes:?}");
    let text = archive.ok(&["changes", &web.url("/")]);
    assert!(text.contains("closed for repairs until May"), "{text}");
    let at = |change: &serde_json::Value, field: &str| {
        let time: String = change[field].as_str().unwrap().chars().filter(char::is_ascii_digit).collect();
        format!("{}@{time}", web.url("/"))
    };
    let diff = archive.json(&["diff", &at(&changes[0], "before"), &at(&changes[0], "after")]);
    assert!(diff["importance"].as_f64().unwrap() > 0.1, "{diff}");
    let before = archive.json(&["changes"]);
    archive.ok(&["verify", "--rebuild"]);
    archive.ok(&["analyse"]);
    assert_eq!(archive.json(&["changes"]), before);
}

#[test]
fn a_missing_browser_gives_a_warning_with_a_hint() {
    let web = Web::serve(app);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    let said = crawl(&archive, Some(Path::new("/nowhere/chromium")));
    assert!(said.contains("apt install chromium"), "{said}");
    let index = captured(&archive);
    assert!(index.contains(&format!("\"{}\"", web.url("/"))) && !index.contains("urn:dom:"), "{index}");
}

#[test]
fn a_browser_that_hangs_or_crashes_is_given_up() {
    for script in ["#!/bin/sh\nexec sleep 600\n", "#!/bin/sh\nexit 3\n"] {
        let web = Web::serve(|request| match request.path.as_str() {
            "/" => html(&format!("<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a><a href=/4>4</a>{SHELL}")),
            "/1" | "/2" | "/3" | "/4" => html(SHELL),
            _ => status(404),
        });
        let archive = Archive::new();
        archive.append_settings("\n[crawl]\nbrowser_timeout_secs = 1.0\n");
        archive.ok(&["add", &web.url("/"), "--allow-private"]);
        let browser = archive.root.join("browser");
        std::fs::write(&browser, script).unwrap();
        std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
        let said = crawl(&archive, Some(&browser));
        assert!(said.contains("pages that need scripts are captured without running them"), "{said}");
        for path in ["/", "/1", "/2", "/3", "/4"] {
            assert_eq!(web.n_requests(path), 1, "{path}");
        }
    }
}

/// In the demonstration all changes are known.
#[test]
fn a_rendered_site_is_as_complete_as_the_others() {
    let (_dir, archive) = folder();
    let demo = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["demo", "--days", "2", "--json", "--dir"])
        .arg(&archive)
        .env_remove("PERENNIAL_ARCHIVE")
        .output()
        .unwrap();
    assert!(demo.status.success(), "{}", String::from_utf8_lossy(&demo.stderr));
    let result: serde_json::Value = serde_json::from_slice(&demo.stdout).unwrap();
    let rendered = result["sites"].as_array().unwrap().iter().find(|site| site["site"] == "harbour").unwrap();
    let pooled = |of: &serde_json::Value| of["completeness_pooled"].as_f64().unwrap();
    // Two runs differ by a few points on so few pages. If only shells were compared, such a site would have no
    // change.
    assert!(pooled(rendered) > pooled(&result) - 0.1, "{rendered} of {}", pooled(&result));
}
