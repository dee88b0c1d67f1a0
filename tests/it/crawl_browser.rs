//! Pages that scripts draw: with a real Chromium, with none, and with one that hangs.
//! Built with the feature `interop`, so that a machine without a browser fails loudly when asked to run them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::crawled::Archive;
use crate::web::{Asked, Reply, Web, html, status};

const SHELL: &str = "<title>App</title><body><div id=app></div><script src=/app.js></script>";
const SCRIPT: &str = "fetch('/data.json').then(r => r.json()).then(d => { \
    document.getElementById('app').innerHTML = '<p>' + d.text + '</p><a href=/drawn-link>more</a>' })";

fn app(asked: &Asked) -> Reply {
    let typed = |mime: &str, body: &str| {
        Reply::Page(200, vec![("Content-Type", mime.to_string())], body.as_bytes().to_vec())
    };
    match asked.path.as_str() {
        "/" => html(SHELL),
        "/app.js" => typed("text/javascript", SCRIPT),
        "/data.json" => typed("application/json", "{\"text\": \"words that a script drew\"}"),
        "/drawn-link" => html("<p>a plain page that only a drawn link leads to</p>"),
        _ => status(404),
    }
}

/// Crawls the app once; what the program said.
fn crawl(archive: &Archive, browser: Option<&Path>) -> String {
    let mut command = archive.command(&["crawl", "--once", "--delay", "0"]);
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
fn a_shell_is_drawn_and_everything_it_asked_for_is_captured() {
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

#[test]
fn a_missing_browser_costs_a_warning_that_names_the_cure() {
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
        let web = Web::serve(|asked| match asked.path.as_str() {
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
        assert!(said.contains("without their scripts' work"), "{said}");
        for path in ["/", "/1", "/2", "/3", "/4"] {
            assert_eq!(web.n_asked(path), 1, "{path}");
        }
    }
}
