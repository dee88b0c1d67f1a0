//! Admin actions from the dashboard: who may act, what an action changes, how a running crawl applies it, and what the
//! audit log contains. The pages of users without rights are tested too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::crawled::Archive;
use crate::dashboard::mismatch;
use crate::dashboard_pages::TestDashboard;
use crate::server::send_request;
use crate::wait::wait_until;
use crate::web::{Reply, Web, WebRequest, html, status};

/// A server with an admin. It ends with the test.
pub(crate) struct AdminServer {
    child: Child,
    pub(crate) main: String,
    pub(crate) replay: String,
    pub(crate) key: String,
    token: String,
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl AdminServer {
    pub(crate) fn of(archive: &Archive) -> AdminServer {
        let file = archive.root.with_file_name("operator");
        let mut command =
            archive.command(&["--json", "serve", "--listen", "127.0.0.1:0", "--admin-token-file"]);
        let mut child = command.arg(&file).stdout(Stdio::piped()).spawn().unwrap();
        let mut report = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            report.push_str(&line.unwrap());
            if report.ends_with('}') {
                break;
            }
        }
        let report: Value = serde_json::from_str(&report).unwrap();
        let text = |name: &str| report[name].as_str().unwrap().trim_start_matches("http://").to_owned();
        let key = text("admin_login").split_once("key=").unwrap().1.to_owned();
        let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        AdminServer { child, main: text("url"), replay: text("replay"), key, token }
    }

    /// Posts a body with these header fields to the main origin.
    fn post(&self, path: &str, fields: &[(&str, &str)], body: &str) -> Answered {
        post(&self.main, path, fields, body)
    }

    /// Posts a form as a dashboard page does.
    pub(crate) fn submit(&self, path: &str, cookie: &str, form: &str) -> Answered {
        let origin = format!("http://{}", self.main);
        let fields = [
            ("Origin", origin.as_str()),
            ("Sec-Fetch-Site", "same-origin"),
            ("Cookie", cookie),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.post(path, &fields, form)
    }

    /// Posts JSON as a program does.
    pub(crate) fn action(&self, json: &str) -> Answered {
        let bearer = format!("Bearer {}", self.token);
        self.post("/api/admin", &[("Authorization", &bearer), ("Content-Type", "application/json")], json)
    }

    /// Logs in with the key. Returns the session cookie and the token of the session's forms.
    pub(crate) fn log_in(&self) -> (String, String) {
        let answer = self.submit("/login", "", &format!("key={}", self.key));
        assert_eq!(answer.status, 303, "{}", answer.body);
        let set = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
        let cookie = set.split(';').next().unwrap().to_owned();
        let page = send_request(&self.main, "GET", "/sites", &[("Cookie", &cookie)]).text();
        let form = page.split("name=\"form\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        (cookie, form)
    }
}

fn post(host: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Answered {
    let mut stream = TcpStream::connect(host).unwrap();
    let has_host = fields.iter().any(|(name, _)| *name == "Host");
    let own = if has_host { String::new() } else { format!("Host: {host}\r\n") };
    let more: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\n{own}{more}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    // A server that refuses a body may close the connection early.
    let _ = stream.read_to_string(&mut answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Answered { status, head: head.to_owned(), body: body.to_owned() }
}

pub(crate) fn audit_log(archive: &Archive) -> Vec<String> {
    let lines = archive.json(&["log", "--audit"]);
    let words =
        |line: &Value| format!("{} {}", line["reason"].as_str().unwrap(), line["url"].as_str().unwrap());
    lines.as_array().unwrap().iter().map(words).collect()
}

pub(crate) fn settings(archive: &Archive) -> String {
    std::fs::read_to_string(archive.root.join("perennial.toml")).unwrap()
}

#[test]
fn no_action_without_authorisation() {
    let archive = Archive::new();
    archive.ok(&["add", "https://a.example/"]);
    let (before, actions_before) = (settings(&archive), audit_log(&archive));
    let served = AdminServer::of(&archive);
    let (cookie, form) = served.log_in();
    let ours = format!("http://{}", served.main);
    let beside = format!("http://{}", served.replay);
    let pause = format!("form={form}&act=pause&url=https%3A%2F%2Fa.example%2F");
    let bearer = format!("Bearer {}", served.token);
    let form_type = ("Content-Type", "application/x-www-form-urlencoded");
    let session = ("Cookie", cookie.as_str());
    let json = ("Content-Type", "application/json");
    let action = "{\"act\":\"pause\",\"url\":\"a.example\"}";
    for (what, path, fields, body, expected) in [
        ("no session", "/admin", vec![("Origin", ours.as_str()), form_type], pause.as_str(), 403),
        ("no origin", "/admin", vec![session, form_type], &pause, 403),
        // An archived page on the replay port. The browser considers it same-site and sends it our cookie.
        ("archived page", "/admin", vec![("Origin", beside.as_str()), session, form_type], &pause, 403),
        (
            "archived page, fetched",
            "/admin",
            vec![("Origin", ours.as_str()), ("Sec-Fetch-Site", "same-site"), session, form_type],
            &pause,
            403,
        ),
        ("another site", "/admin", vec![("Origin", "https://evil.example"), session, form_type], &pause, 403),
        ("sandboxed frame", "/admin", vec![("Origin", "null"), session, form_type], &pause, 403),
        (
            "no form",
            "/admin",
            vec![("Origin", ours.as_str()), session, form_type],
            "act=pause&url=a.example",
            403,
        ),
        (
            "text",
            "/admin",
            vec![("Origin", ours.as_str()), session, ("Content-Type", "text/plain")],
            &pause,
            400,
        ),
        ("no token", "/api/admin", vec![json], action, 403),
        ("wrong token", "/api/admin", vec![("Authorization", "Bearer 0000000000000000"), json], action, 403),
        ("cookie on the API", "/api/admin", vec![("Origin", ours.as_str()), session, json], action, 403),
        (
            "token from a page",
            "/api/admin",
            vec![("Authorization", bearer.as_str()), ("Origin", beside.as_str()), json],
            action,
            403,
        ),
        (
            "no JSON",
            "/api/admin",
            vec![("Authorization", bearer.as_str()), ("Content-Type", "text/plain")],
            action,
            400,
        ),
        ("elsewhere", "/sites", vec![("Origin", ours.as_str()), session, form_type], &pause, 405),
        (
            "two names",
            "/admin",
            vec![
                ("Host", served.main.as_str()),
                ("Host", "evil.example"),
                ("Origin", ours.as_str()),
                session,
                form_type,
            ],
            &pause,
            400,
        ),
    ] {
        let answer = served.post(path, &fields, body);
        assert_eq!(answer.status, expected, "{what}: {}", answer.body);
    }
    let long = format!("{pause}&x={}", "y".repeat(100_000));
    assert!(matches!(served.submit("/admin", &cookie, &long).status, 400 | 0), "a long body is not read");
    // A GET changes nothing, and the origin of archived content accepts no admin action.
    assert_eq!(send_request(&served.main, "GET", &format!("/admin?{pause}"), &[session]).status, 404);
    let at_replay = post(&served.replay, "/admin", &[("Origin", &beside), session, form_type], &pause);
    assert_eq!(at_replay.status, 405, "{}", at_replay.body);
    // A script of an archived page cannot read the token of a form.
    let read = send_request(&served.main, "GET", "/sites", &[session, ("Origin", &beside)]);
    assert_eq!(read.field("access-control-allow-origin"), "");
    assert!(read.field("content-security-policy").contains("frame-ancestors 'none'"));
    assert_eq!(settings(&archive), before);
    assert_eq!(audit_log(&archive), actions_before);
    // The same request succeeds if everything is right.
    assert_eq!(served.submit("/admin", &cookie, &pause).status, 303);
    assert!(settings(&archive).contains("paused = true"));
}

#[test]
fn a_key_begins_one_session_which_ends_on_logout() {
    let archive = Archive::new();
    archive.ok(&["add", "https://a.example/", "--weight", "2"]);
    let served = AdminServer::of(&archive);
    // Opening the login page with the key does not log in.
    let request = send_request(&served.main, "GET", &format!("/login?key={}", served.key), &[]);
    assert!(request.status == 200 && request.field("set-cookie").is_empty(), "{}", request.text());
    assert!(send_request(&served.main, "GET", "/sites", &[]).text().contains("Log in as admin"));
    let (cookie, form) = served.log_in();
    let again = served.submit("/login", "", &format!("key={}", served.key));
    assert_eq!(again.status, 403, "{}", again.body);

    let set = format!(
        "form={form}&act=set&url=https%3A%2F%2Fa.example%2F&weight=3&budget=10%2F1h&goal=balanced&back=%2Fsite%2Fa.example"
    );
    let done = served.submit("/admin", &cookie, &set);
    assert!(done.status == 303 && done.head.contains("location: /site/a.example"), "{}", done.head);
    let listed = archive.json(&["list"]);
    assert_eq!(listed[0]["weight"], 3.0);
    assert_eq!((listed[0]["budget"].as_str(), listed[0]["goal"].as_str()), (Some("10/1h"), Some("balanced")));
    let wrong = served.submit("/admin", &cookie, &format!("form={form}&act=set&url=a.example&weight=-1"));
    assert!(wrong.status == 400 && wrong.body.contains("weight: write a number"), "{}", wrong.body);
    let added = format!("form={form}&act=add&url=b.example%2Fnews%2F&scope=prefix&weight=1&budget=&goal=");
    assert_eq!(served.submit("/admin", &cookie, &added).status, 303);
    assert_eq!(archive.json(&["list"])[1]["scope"], "prefix");
    let log = archive.json(&["log", "--audit"]);
    let last = log.as_array().unwrap().last().unwrap();
    assert!(last["by"].as_str().unwrap().starts_with("dashboard, session "), "{last}");
    let text = archive.ok(&["log"]);
    assert!(text.contains("weight = 3.0 (was 2.0)") && text.contains("(command line"), "{text}");

    let out = served.submit("/logout", &cookie, &format!("form={form}"));
    assert_eq!(out.status, 303);
    assert_eq!(served.submit("/admin", &cookie, &set).status, 403, "the session is over");
}

#[test]
fn a_page_is_followed_and_its_notices_are_set_up_by_forms() {
    let receiver = Web::serve(|_| status(200));
    let archive = Archive::new();
    archive.append_settings("# mine\n");
    archive.ok(&["add", "https://a.example/", "--scope", "host"]);
    let served = AdminServer::of(&archive);
    let (cookie, form) = served.log_in();
    let get = |path: &str| send_request(&served.main, "GET", path, &[("Cookie", &cookie)]).text();
    // Nothing is captured yet, so home offers the form at once; without a session it does not.
    assert!(get("/").contains("<details class=\"follow\" open"));
    assert!(!send_request(&served.main, "GET", "/", &[]).text().contains("name=\"url\""));

    let secret = receiver.url("/secret-path").replace(':', "%3A");
    let watch = format!(
        "form={form}&act=watch&url=a.example%2Fprices&scope=page&every=5m&receiver=webhook&to={secret}&selector=%23prices&appears=sold&min_importance=&vanishes="
    );
    let done = served.submit("/admin", &cookie, &watch);
    assert_eq!(done.status, 303, "{}", done.body);
    assert!(done.head.contains("location: /page?url=https%3A%2F%2Fa.example%2Fprices"), "{}", done.head);
    let waiting = get("/page?url=https%3A%2F%2Fa.example%2Fprices");
    assert!(waiting.contains("Followed, not captured yet") && waiting.contains("perennial run"), "{waiting}");
    let text = settings(&archive);
    for expected in [
        "# mine",
        "[[page]]\nurl = \"https://a.example/prices\"\nevery = \"5m\"",
        "name = \"a.example/prices\"",
        "place = \"https://a.example/prices\"",
        "selector = \"#prices\"",
        "appears = \"sold\"",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }

    // A rule for all sites, its test, and its removal.
    let rule =
        format!("form={form}&act=notify&receiver=webhook&to={secret}&place=&name=all&min_importance=0.2");
    assert_eq!(served.submit("/admin", &cookie, &rule).status, 303);
    let notices = get("/notices");
    assert!(notices.contains("Send a test") && !notices.contains("secret-path"), "{notices}");
    let test = served.submit("/notices/test", &cookie, &format!("form={form}&name=all"));
    assert!(test.status == 200 && test.body.contains("accepted the test"), "{}", test.body);
    assert_eq!(receiver.n_requests("/secret-path"), 1);
    assert_eq!(served.submit("/notices/test", &cookie, "name=all").status, 403, "without the form's token");
    assert_eq!(served.submit("/notices/test", &cookie, &format!("form={form}&name=none")).status, 400);
    let remove = format!("form={form}&act=remove-rule&name=all");
    assert_eq!(served.submit("/admin", &cookie, &remove).status, 303);
    assert!(!settings(&archive).contains("name = \"all\""));
    assert!(settings(&archive).contains("name = \"a.example/prices\""));

    // A whole site with a rule for its host.
    let site =
        format!("form={form}&act=watch&url=b.example&scope=host&receiver=email&to=me%40b.example&every=");
    assert_eq!(served.submit("/admin", &cookie, &site).status, 303);
    let text = settings(&archive);
    assert!(text.contains("to = \"email:me@b.example\"") && text.contains("place = \"b.example\""), "{text}");

    // Programs are set on the machine only; a wrong field changes nothing.
    let before = settings(&archive);
    for (fields, expected) in [
        ("act=notify&to=command%3Atouch+x", "a program can only be set on the machine"),
        ("act=watch&url=a.example%2Fx&to=command%3Atouch+x", "a program can only be set on the machine"),
        ("act=notify&receiver=webhook&to=nowhere", "to: "),
        ("act=notify&receiver=webhook&to=", "`to` is missing"),
        ("act=notify&to=me%40a.example&min_importance=2", "min_importance: write a number from 0 to 1"),
        ("act=notify&to=me%40a.example&appears=%2F(%2F", "appears: "),
        ("act=watch&url=a.example&scope=all", "scope: "),
        ("act=remove-rule&name=none", "no rule is named"),
    ] {
        let answer = served.submit("/admin", &cookie, &format!("form={form}&{fields}"));
        assert!(matches!(answer.status, 400 | 409), "{fields}: {}", answer.status);
        assert!(answer.body.contains(expected), "{fields}: {}", answer.body);
    }
    assert_eq!(settings(&archive), before);
    let log = archive.ok(&["log", "--audit"]);
    assert!(log.contains("rule `all` for webhook") && !log.contains("secret-path"), "{log}");
}

#[test]
fn a_file_with_mistakes_is_not_touched_and_the_mistake_is_reported() {
    let archive = Archive::new();
    archive.ok(&["add", "https://a.example/"]);
    let served = AdminServer::of(&archive);
    let (cookie, form) = served.log_in();
    archive.append_settings("\n[[site]]\nurl = \"https://c.example/\"\nwieght = 2\n");
    let before = settings(&archive);
    let answer = served.submit("/admin", &cookie, &format!("form={form}&act=pause&url=a.example"));
    assert!(answer.status == 409 && answer.body.contains("did you mean `weight`?"), "{}", answer.body);
    assert_eq!(settings(&archive), before);
    let command = archive.run(&["pause", "a.example"]);
    assert!(!command.status.success() && settings(&archive) == before);
}

#[test]
fn a_server_without_an_operator_says_how_to_get_one() {
    let archive = Archive::new();
    archive.ok(&["add", "https://a.example/"]);
    let face = TestDashboard::of(&archive);
    let (_, sites, _) = face.get("/sites");
    assert!(sites.contains("perennial serve --admin") && !sites.contains("method=\"post\""), "{sites}");
    assert!(face.get("/login").1.contains("perennial serve --admin"));
}

#[test]
fn api_actions_match_the_description() {
    let archive = Archive::new();
    let served = AdminServer::of(&archive);
    let described = send_request(&served.main, "GET", "/api/openapi.json", &[]).json();
    let schema = |name: &str| described["components"]["schemas"][name].clone();
    for (action, expected) in [
        ("{\"act\":\"add\",\"url\":\"a.example\",\"weight\":2}", 200),
        ("{\"act\":\"pause\",\"url\":\"https://a.example/\"}", 200),
        ("{\"act\":\"retry\",\"url\":\"https://a.example/x\"}", 409),
        ("{\"act\":\"resume\",\"url\":\"a.example\"}", 200),
        ("{\"act\":\"retry\",\"url\":\"https://a.example/x\"}", 200),
        ("{\"act\":\"ignore\",\"url\":\"a.example\",\"selector\":\".ad\"}", 200),
        ("{\"act\":\"release\",\"url\":\"a.example\",\"selector\":\".ad\"}", 200),
        ("{\"act\":\"remove\",\"url\":\"nowhere.example\"}", 409),
        ("{\"act\":\"add\",\"url\":\"a.example\",\"allow_private\":\"true\"}", 400),
        ("{\"act\":\"fly\"}", 400),
        ("{\"act\":\"remove\",\"url\":\"a.example\"}", 200),
    ] {
        let answer = served.action(action);
        assert_eq!(answer.status, expected, "{action}: {}", answer.body);
        let value: Value = serde_json::from_str(&answer.body).unwrap();
        let name = if expected == 200 { "Done" } else { "Problem" };
        assert_eq!(mismatch(&value, &schema(name), &described, action), None);
    }
    let audit_page = send_request(&served.main, "GET", "/api/audit", &[]).json();
    assert_eq!(mismatch(&audit_page, &schema("Acts"), &described, "/api/audit"), None);
    assert_eq!(audit_page["n_actions"], 7, "{audit_page}");
    assert_eq!(audit_page["actions"][0]["who"], "admin's token");
    let page = send_request(&served.main, "GET", "/audit", &[]).text();
    assert!(page.contains("7 changes of settings") && page.contains("retry"), "{page}");
}

/// A crawl in real time and its output. It ends with the test.
struct Crawling {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Crawling {
    fn of(archive: &Archive) -> Crawling {
        let args = ["run", "--no-serve", "--delay", "0", "--budget", "36000/1h", "--allow-private"];
        let mut child = archive.spawn_with_stderr(&args);
        let said = Arc::new(Mutex::new(String::new()));
        let (heard, stderr) = (said.clone(), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                heard.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        Crawling { child, said }
    }

    fn n_said(&self, text: &str) -> usize {
        self.said.lock().unwrap().matches(text).count()
    }
}

impl Drop for Crawling {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn two_pages(request: &WebRequest) -> Reply {
    match request.path.as_str() {
        "/" => html(
            "<title>Front</title><h1>Front</h1><p>The first page of this site.</p><a href=/second>Second</a>",
        ),
        "/second" => html("<title>Second</title><h1>Second</h1><p>The other page of this site.</p>"),
        "/broken" => status(500),
        _ => status(404),
    }
}

#[test]
fn a_running_crawl_obeys() {
    const CHANGED: &str = "perennial.toml has changed";
    let (first, second) = (Web::serve(two_pages), Web::serve(two_pages));
    let archive = Archive::new();
    archive.ok(&["add", &first.url("/"), "--allow-private", "--renderer", "layout"]);
    let served = AdminServer::of(&archive);
    let crawl = Crawling::of(&archive);
    wait_until("the first visit", || first.n_requests("/second") > 0);
    assert_eq!(second.n_requests("/"), 0);

    // A site added during the crawl.
    archive.ok(&["add", &second.url("/"), "--allow-private", "--renderer", "layout"]);
    wait_until("a visit of the site that was added", || second.n_requests("/second") > 0);
    assert_eq!(crawl.n_said(CHANGED), 1);

    // The server pauses the site.
    let site = first.url("/");
    let paused = served.action(&format!("{{\"act\":\"pause\",\"url\":\"{site}\"}}"));
    assert_eq!(paused.status, 200, "{}", paused.body);
    wait_until("the crawl that goes on", || crawl.n_said(CHANGED) == 2);
    let n_before = (first.n_requests("/"), first.n_requests("/second"));
    assert!(archive.ok(&["list"]).contains(&format!("{site}  paused, ")));
    assert!(
        archive
            .json(&["plan", "next"])
            .as_array()
            .unwrap()
            .iter()
            .all(|visit| !visit["url"].as_str().unwrap().starts_with(&site))
    );
    let why = send_request(&served.main, "GET", &format!("/plan?url={site}"), &[]).text();
    assert!(why.contains("The site is paused."), "{why}");
    // A mistake in the settings stops nothing.
    let good = settings(&archive);
    archive.append_settings("\n[[site]]\nurl = \"https://c.example/\"\nwieght = 2\n");
    wait_until("the mistake is reported", || crawl.n_said("the crawl keeps its current settings") == 1);
    std::fs::write(archive.root.join("perennial.toml"), good).unwrap();
    assert_eq!(
        (first.n_requests("/"), first.n_requests("/second")),
        n_before,
        "a paused site is not visited"
    );

    // The site is resumed, and a visit of one page is requested.
    archive.ok(&["resume", &site]);
    archive.ok(&["visit", &first.url("/second")]);
    wait_until("the requested visit", || first.n_requests("/second") > n_before.1);
    wait_until("the visit in the log", || archive.ok(&["log", "-n", "500"]).contains("/second [requested]"));
    drop(crawl);
    let report = audit_log(&archive);
    let expected = [
        ("add", &site),
        ("add", &second.url("/")),
        ("pause", &site),
        ("resume", &site),
        ("retry", &first.url("/second")),
    ];
    assert_eq!(report, expected.map(|(action, url)| format!("{action} {url}")));
}

#[test]
fn a_part_is_pinned_after_it_was_shown_what_that_changes() {
    let web = Web::serve(|request| match (request.path.as_str(), request.n_before) {
        ("/", n) => html(&format!(
            "<title>Front</title><div id=main><h1>News</h1><p>The council met and spoke about the old bridge over the river.</p></div>\
             <aside class=weather><h2>Weather</h2><p>It is warm in the shade, and the wind comes from the {}.</p></aside>",
            ["north", "east and the hills behind it", "south", "west, where the sea is"][n % 4]
        )),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "4d");
    let site = web.url("/");
    let report = archive.json(&["part", "ignore", &site, "--selector", "aside.weather", "--dry-run"]);
    assert!(
        report["n_changes"].as_u64() >= Some(3) && report["n_touching"] == report["n_changes"],
        "{report}"
    );
    assert!(report["n_other"].as_u64() >= Some(1), "{report}");
    let (now, then) = (report["importance"].as_f64().unwrap(), report["importance_then"].as_f64().unwrap());
    assert!(then < now, "{report}");
    assert!(!report["strongest"].as_array().unwrap().is_empty(), "{report}");

    let served = AdminServer::of(&archive);
    let (cookie, form) = served.log_in();
    let get = |path: &str| send_request(&served.main, "GET", path, &[("Cookie", &cookie)]).text();
    // From the comparison, with the part around a change.
    let home = get("/?since=30d&least=0");
    let diff =
        home.split("href=\"").find(|part| part.starts_with("/web/diff/")).unwrap().split('"').next().unwrap();
    let compare = get(&diff.replace("&amp;", "&"));
    let pin = compare.split("class=\"pin\" href=\"").nth(1).unwrap_or_else(|| panic!("{compare}"));
    let pin = pin.split('"').next().unwrap().replace("&amp;", "&");
    assert!(pin.contains("selector=aside.weather"), "{pin}");
    let preview = get(&pin);
    assert!(
        preview.contains("would have had a different importance") && preview.contains(">Pin<"),
        "{preview}"
    );
    // Observations that are far apart: page and command know the same noise, and the page's heading excludes it.
    let heading = |page: &str| page.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap().to_owned();
    let (from, to) = ("20260103000000", "20260104230000");
    let far = get(&format!("/web/diff/{from}/{to}/{site}"));
    let at = |time: &str| format!("{site}@{time}");
    let report =
        archive.ok(&["diff", &at("2026-01-03T00:00:00Z"), &at("2026-01-04T23:00:00Z"), "--format", "html"]);
    assert_eq!(heading(&far), heading(&report));
    assert!(heading(&far).contains("noise") || heading(&far).starts_with("No change"), "{}", heading(&far));
    // By hand, without a script.
    let wrong = get(&format!("/pin?url={site}&selector=a:hover"));
    assert!(wrong.contains("this pseudo-class is not supported"), "{wrong}");
    let done = served.submit(
        "/admin",
        &cookie,
        &format!("form={form}&act=ignore&url={site}&selector=aside.weather&importance="),
    );
    assert_eq!(done.status, 303, "{}", done.body);
    assert_eq!(archive.json(&["list"])[0]["ignore"][0], "aside.weather");
    let host = served_host(&site);
    assert!(get(&format!("/site/{host}")).contains(">Undo<"));
}

fn served_host(url: &str) -> String {
    url.split('/').nth(2).unwrap().to_owned()
}

#[test]
fn untrusted_text_is_inert_and_pages_say_what_is_so() {
    let web = Web::serve(|request| match (request.path.as_str(), request.n_before) {
        ("/", n) => html(&format!(
            "<title>Front \u{202e}txt.exe {}</title><h1>Front</h1><p>Words of day {n}: the council speaks about {}.</p><a href=/gone>Plan</a>",
            "long ".repeat(200),
            ["bridges", "ferries", "roads"][n % 3]
        )),
        ("/gone", 0..2) => {
            html("<title>Flood plan</title><h1>Flood plan</h1><p>What to do when the river rises.</p>")
        }
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "1d");
    let face = TestDashboard::of(&archive);
    let host = served_host(&web.url("/"));
    for path in [
        "/?since=30d&least=0".to_owned(),
        format!("/page?url={}", web.url("/")),
        format!("/site/{host}"),
        "/search?q=council".to_owned(),
    ] {
        let (code, page, _) = face.get(&path);
        assert_eq!(code, 200, "{path}");
        assert!(!page.contains('\u{202e}'), "{path}: a mark of order stands in the page");
        let longest = page.split(['<', '>']).map(|text| text.matches("long ").count()).max();
        assert!(longest < Some(60), "{path}: a title of {longest:?} words");
    }
    assert!(face.get("/?since=30d&least=0").1.contains("<bdi>Front txt.exe"));
    let (_, gone, _) = face.get(&format!("/page?url={}", web.url("/gone")));
    assert!(gone.contains("<b>The page is gone</b>, between <time"), "{gone}");
    let changes = archive.json(&["changes", "--kind", "vanished"]);
    let time = changes[0]["after"].as_str().unwrap();
    assert!(gone.contains(&format!("</time> and <time datetime=\"{time}\">")), "{time}: {gone}");

    let served = crate::server::Serving::start(&[&archive.root], &[]);
    let missing = served.get_with("/nowhere", &[("Accept", "text/html")]);
    assert!(missing.status == 404 && missing.text().contains("<nav class=\"main\""), "{}", missing.text());
    let two = send_request(&served.main, "GET", "/", &[("Host", "localhost"), ("Host", "evil.example")]);
    assert_eq!(two.status, 400);
}
