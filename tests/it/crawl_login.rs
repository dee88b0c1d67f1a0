//! Sites behind a login: cookies, fields, HTTP authentication and recorded steps, which nobody but the site gets to know.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::crawled::Archive;
use crate::server::Serving;
use crate::web::{Reply, Web, WebRequest, html, status};

const PASSWORD: &str = "open-sesame-7291";
const SESSION: &str = "session-5f2c881e";
const KEY: &str = "key-99d1a0";
/// Base64 of `reader:open-sesame-7291`.
const BASIC: &str = "cmVhZGVyOm9wZW4tc2VzYW1lLTcyOTE=";
const COOKIE: &str = "cookie-of-a-file-31337";

const FORM: &str = "<title>Log in</title><form method=post action=/session><input id=user name=user><input id=password type=password name=password><button>Log in</button></form>";

/// `/members` needs the session of the form, `/basic` HTTP authentication and a field, `/file` a cookie.
fn site(request: &WebRequest) -> Reply {
    let has = |field: &str, value: &str| request.field(field).is_some_and(|found| found.contains(value));
    match request.path.as_str() {
        "/" => html("<a href=/members>m</a> <a href=/basic>b</a> <a href=/file>f</a> <a href=/app>a</a>"),
        "/login" => html(FORM),
        "/session" => {
            let form = String::from_utf8_lossy(&request.body).into_owned();
            let is_right = request.method == "POST" && form == format!("user=reader&password={PASSWORD}");
            let to = if is_right { "/members" } else { "/login" };
            let fields = vec![
                ("Location", to.to_string()),
                ("Set-Cookie", format!("sid={SESSION}; Path=/; HttpOnly")),
            ];
            Reply::Page(303, if is_right { fields } else { fields[..1].to_vec() }, Vec::new())
        }
        "/members" if has("cookie", SESSION) => html("<p id=in>words for members"),
        "/basic" if has("authorization", BASIC) && has("x-key", KEY) => html("<p>words behind HTTP"),
        "/file" if has("cookie", COOKIE) => html("<p>words behind a cookie"),
        "/app" => html(
            "<body><div id=app></div><script>fetch('/data').then((a) => a.text()).then((t) => { app.textContent = t })</script>",
        ),
        "/data" if has("cookie", SESSION) && has("x-key", KEY) => {
            Reply::Page(200, vec![("Content-Type", "text/plain".into())], b"data of a member".to_vec())
        }
        "/members" | "/basic" | "/file" | "/data" => status(401),
        _ => status(404),
    }
}

fn write_secret(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// An archive, and the folder of its secrets.
fn archive(web: &Web, password: &str, more: &str) -> (tempfile::TempDir, Archive) {
    let secrets = tempfile::tempdir().unwrap();
    let file = secrets.path().join("site.toml");
    let host = web.address.ip();
    write_secret(
        &secrets.path().join("cookies.txt"),
        &format!("{host}\tFALSE\t/\tFALSE\t0\tkept\t{COOKIE}\n"),
    );
    let recording = serde_json::json!({"title": "log in", "steps": [
        {"type": "setViewport", "width": 800, "height": 600},
        {"type": "navigate", "url": web.url("/login")},
        {"type": "change", "value": "reader", "selectors": [["aria/User"], ["#user"]]},
        {"type": "change", "value": password, "selectors": [["#password"]]},
        {"type": "click", "selectors": [["form > button"]]},
        {"type": "waitForElement", "selectors": [["#in"]]},
    ]});
    write_secret(&secrets.path().join("login.json"), &recording.to_string());
    write_secret(
        &file,
        &format!(
            "{more}user = \"reader\"\npassword = \"{PASSWORD}\"\ncookies = \"cookies.txt\"\nrecording = \"login.json\"\n[headers]\nX-Key = \"{KEY}\"\n"
        ),
    );
    let archive = Archive::new();
    archive.append_settings(&format!(
        "\n[[site]]\nurl = \"{}\"\nallow_private = true\nlogin = \"{}\"\n",
        web.url("/"),
        file.display()
    ));
    (secrets, archive)
}

/// All bytes of an archive's folder, with those of compressed files decompressed.
fn all_bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(all_bytes(&path));
            continue;
        }
        let Ok(content) = std::fs::read(&path) else { continue };
        let mut plain = Vec::new();
        let _ = std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&content[..]), &mut plain);
        bytes.extend(plain);
        bytes.extend(content);
    }
    bytes
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn pages_behind_a_login_are_captured_without_the_secrets() {
    let web = Web::serve(site);
    let (_secrets, archive) = archive(&web, PASSWORD, "");
    let run = archive.run(&["run", "--once", "--delay", "0"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    archive.verify();
    let export = archive.root.join("export.wacz");
    archive.ok(&["export", "--format", "wacz", "-o", export.to_str().unwrap()]);
    let bytes = all_bytes(&archive.root);
    for words in ["words for members", "words behind HTTP", "words behind a cookie", "data of a member"] {
        assert!(contains(&bytes, words), "{words}");
    }
    let said = [run.stdout, run.stderr].concat();
    let serving = Serving::start(&[&archive.root], &[]);
    let mut shown = Vec::new();
    let page = web.url("/members");
    for path in ["/", "/sites", "/api/sites", "/plan", "/status", "/api/home", "/metrics", "/changes"] {
        shown.extend(serving.get(path).body);
    }
    for path in [format!("/page/{page}"), format!("/web/2id_/{page}"), format!("/cdx?url={page}")] {
        shown.extend(serving.get(&path).body);
    }
    for secret in [PASSWORD, SESSION, KEY, BASIC, COOKIE] {
        assert!(!contains(&bytes, secret), "{secret} is in the archive's folder");
        assert!(!contains(&said, secret), "{secret} was printed");
        assert!(!contains(&shown, secret), "{secret} is served");
    }
    assert_eq!(web.n_requests("/session"), 1, "one login for all pages");
}

#[test]
fn secrets_are_recorded_only_on_request() {
    let web = Web::serve(site);
    let (_secrets, archive) = archive(&web, PASSWORD, "record = true\n");
    archive.ok(&["run", "--once", "--delay", "0"]);
    let bytes = all_bytes(&archive.root.join("warc"));
    for secret in [SESSION, KEY, BASIC, COOKIE] {
        assert!(contains(&bytes, secret), "{secret}");
    }
    assert!(!contains(&bytes, PASSWORD), "the login itself is never archived");
}

/// A different site and a different host get nothing.
#[test]
fn secrets_are_sent_to_their_site_only() {
    let other = Web::serve(|_| html("<p>other"));
    let link = other.url("/x");
    let web = Web::serve(move |request| match request.path.as_str() {
        "/" => html(&format!("<img src='{link}'><a href='/login'>l</a>")),
        _ => site(request),
    });
    let (_secrets, archive) = archive(&web, PASSWORD, "");
    archive.ok(&["add", &other.url("/"), "--allow-private"]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    assert!(other.requests().len() > 1);
    for request in other.requests() {
        for name in ["authorization", "x-key"] {
            assert_eq!(request.field(name), None, "{request:?}");
        }
        // Cookies belong to a host with all its ports.
        let is_same_host = other.address.ip() == web.address.ip();
        assert!(is_same_host || request.field("cookie").is_none(), "{request:?}");
    }
}

#[test]
fn a_failed_login_is_reported_and_nothing_is_captured() {
    let web = Web::serve(site);
    let (_secrets, archive) = archive(&web, "wrong-password-123", "");
    let run = archive.run(&["run", "--once", "--delay", "0"]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    let log = archive.log();
    let failed = log.iter().find(|line| line["error"] == "login").unwrap_or_else(|| panic!("{said} {log:?}"));
    let detail = failed["detail"].as_str().unwrap();
    assert!(
        detail.contains("nothing on the page matches `#in`") && !detail.contains("wrong-password"),
        "{detail}"
    );
    assert_eq!(web.n_requests("/members"), 0);
}

#[test]
fn a_secret_that_others_may_read_stops_the_crawl() {
    let web = Web::serve(site);
    let (secrets, archive) = archive(&web, PASSWORD, "");
    let file = secrets.path().join("site.toml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let run = archive.run(&["run", "--once", "--delay", "0"]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(!run.status.success() && said.contains("chmod 600") && !said.contains(PASSWORD), "{said}");
    assert!(web.requests().is_empty());
}
