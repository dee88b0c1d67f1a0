//! Snapshots of everything that users and programs read: the help of every command, every page of the server, the API,
//! feeds, notices.
//!
//! CONTRIBUTING.md explains how to accept a change.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use data_encoding::BASE64;
use perennial_archive::{Archive as Library, ArchiveWriter};
use regex::Regex;
use serde_json::Value;

use crate::admin::{AdminServer, Answered};
use crate::crawled::Archive;
use crate::outline::{self, Assets};
use crate::requests::{ADMIN_ACTIONS, DASHBOARD, EMPTY, OPERATED, SERVER, api_of, route_of};
use crate::server::{Answer, Serving, send_request};
use crate::sources::sources;
use crate::town::Town;
use crate::wait::wait_until;
use crate::web::WebRequest;

/// The snapshots of one folder.
struct Folder {
    path: PathBuf,
    names: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Folder {
    fn new(name: &str) -> Folder {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/snapshots");
        Folder { path: root.canonicalize().unwrap().join(name), names: BTreeSet::new(), wrong: Vec::new() }
    }

    /// Compares a text with its snapshot. A difference is printed at once and fails the test at its end, so one run
    /// shows all differences.
    fn check(&mut self, name: &str, text: &str) {
        assert!(self.names.insert(name.to_string()), "{name} is there twice");
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&self.path);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compared = settings
            .bind(|| catch_unwind(AssertUnwindSafe(|| insta::assert_snapshot!(name.to_string(), text))));
        if compared.is_err() {
            self.wrong.push(name.to_string());
        }
    }

    /// Snapshots that differ, and files without a test.
    fn complaints(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.path).unwrap().map(|file| file.unwrap().file_name());
        let stored = files.filter_map(|file| Some(file.to_str()?.strip_suffix(".snap")?.to_string()));
        let stale = stored.filter(|name| !self.names.contains(name));
        let path = self.path.display();
        let differ = self.wrong.iter().map(|name| format!("{path}/{name}.snap differs"));
        differ.chain(stale.map(|name| format!("{path}/{name}.snap: no test uses it; delete it"))).collect()
    }
}

fn assert_accepted(folders: &[&Folder]) {
    let complaints: Vec<String> = folders.iter().flat_map(|folder| folder.complaints()).collect();
    assert!(complaints.is_empty(), "CONTRIBUTING.md explains how to accept a change: {complaints:#?}");
}

/// The output of `perennial COMMAND --help` or `--help-all` on a terminal of 100 columns.
fn help(command: &[&str], option: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(command)
        .arg(option)
        .env("COLUMNS", "100")
        .env_remove("PERENNIAL_ARCHIVE")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The subcommands that the help of a command lists.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = lines.take_while(|line| !line.is_empty());
    // A long description continues on a second line, which is indented further.
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_string).collect()
}

/// The lines of one screen.
const MAX_HELP_LINES: usize = 45;

fn check_help(command: &[&str], folder: &mut Folder) {
    let text = help(command, "--help");
    let n_lines = text.lines().count();
    assert!(
        n_lines <= MAX_HELP_LINES,
        "the help of {command:?} has {n_lines} lines and does not fit one screen"
    );
    let has_example = text.contains("\nExamples:") || text.contains("\nExample:");
    assert!(has_example || command == ["render-worker"], "the help of {command:?} has no example");
    folder.check(&[&["perennial"], command].concat().join("-"), &text);
    for name in subcommands(&text) {
        check_help(&[command, &[name.as_str()]].concat(), folder);
    }
}

/// The commands that the groups of `perennial --help-all` list.
fn commands(help: &str) -> Vec<String> {
    let groups = help.split("\n\n").filter(|group| !group.contains("perennial ") && group.contains(":\n  "));
    let lines =
        groups.take_while(|group| !group.starts_with("Options:")).flat_map(|group| group.lines().skip(1));
    let names = lines.filter_map(|line| line.trim_start().split("  ").next());
    names.flat_map(|names| names.split(", ")).map(str::to_string).collect()
}

#[test]
fn help_of_every_command() {
    let mut folder = Folder::new("help");
    folder.check("perennial", &help(&[], "--help"));
    let all = help(&[], "--help-all");
    folder.check("perennial-help-all", &all);
    folder.check("perennial-run-help-all", &help(&["run"], "--help-all"));
    for name in commands(&all) {
        check_help(&[&name], &mut folder);
    }
    check_help(&["render-worker"], &mut folder);
    assert!(folder.names.len() > 50, "the list of commands was not understood: {:?}", folder.names);
    assert_accepted(&[&folder]);
}

/// Text that differs between runs -> a placeholder.
struct Redactions(Vec<(Regex, String)>);

impl Redactions {
    fn new(town: &Town) -> Redactions {
        let mut redactions = Redactions(Vec::new());
        redactions.literal(&town.archive.root.display().to_string(), "[archive]");
        redactions.literal(&town.web.address.to_string(), "[proxy]");
        // The archive's captures are from January 2026. Later times are those of the test.
        let later = r"(?:2026-(?:0[4-9]|1[0-2])|20(?:2[7-9]|[3-9]\d)-\d\d)-\d\d";
        redactions.pattern(&format!(r"{later}[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?"), "[now]");
        let later = r"(?:(?:Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) 2026|[A-Z][a-z]{2} (?:202[7-9]|20[3-9]\d))";
        redactions.pattern(&format!(r"\b\d{{1,2}} {later}, \d\d:\d\d"), "[now]");
        redactions.pattern(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} \+0000", "[now]");
        redactions.pattern(r"perennial_(looked|operator|admin)_\d+", "perennial_${1}_[port]");
        redactions.pattern(r"(perennial_looked_\S+=\d+\.\d+\.)\d+", "$1[now]");
        redactions.pattern(r"session [0-9a-f]{6}", "session [session]");
        redactions.pattern(r"(perennial/|v=)\d+\.\d+\.\d+", "$1[version]");
        // Records have random IDs, so their compressed lengths differ by a few bytes.
        redactions.pattern(r"perennial-\d{14}-\d{5}-[^\x22]*\.warc\.gz", "[warc file]");
        redactions.pattern(r#""(length|offset)": ?"\d+""#, "\"$1\":\"[bytes]\"");
        redactions.pattern(r"(?m)^(\S+\)/\S* \d{14} .*) \d+$", "$1 [bytes]");
        redactions.pattern(r"(perennial_warc_bytes\S* |.warc_bytes.: )\d+", "$1[bytes]");
        redactions.pattern(r#""\d+ kB""#, "[bytes]");
        // The number of retries depends on how long the crawl takes.
        redactions.pattern(r"(.n_failures.: )[1-9]\d*", "$1[number]");
        redactions.pattern(r"(perennial_server_requests_total) \d+", "$1 [number]");
        redactions
    }

    fn literal(&mut self, text: &str, word: &str) {
        self.pattern(&regex::escape(text), word);
    }

    fn pattern(&mut self, pattern: &str, word: &str) {
        self.0.push((Regex::new(pattern).unwrap(), word.to_string()));
    }

    fn apply(&self, text: &str) -> String {
        let replaced = |text: String, (pattern, word): &(Regex, String)| {
            pattern.replace_all(&text, word.as_str()).into_owned()
        };
        self.0.iter().fold(text.to_string(), replaced)
    }
}

/// Header fields that belong to the transport or differ with every response.
const LEFT_OUT: [&str; 5] = ["date", "content-length", "connection", "transfer-encoding", "keep-alive"];

/// Responses of servers -> snapshots.
struct Recorder {
    redactions: Redactions,
    assets: Assets,
    /// Requested paths.
    paths: BTreeSet<String>,
    /// Routes that pages link to.
    linked: BTreeSet<String>,
}

impl Recorder {
    fn hide(&mut self, main: &str, replay: &str) {
        self.redactions.literal(main, "[main]");
        self.redactions.literal(replay, "[replay]");
    }

    /// Compares the response to a request, given by its first line.
    fn check(&mut self, folder: &mut Folder, name: &str, request: &str, answer: &Answer) {
        let (method, path) = request.split_once(' ').unwrap();
        self.paths.insert(path.to_string());
        // Links of an archived page are not routes of the server.
        let is_archived = answer.fields.contains_key("x-archive-orig-content-type");
        if answer.field("content-type").starts_with("text/html") && !is_archived {
            self.linked.extend(targets(&answer.text()).iter().map(|path| route_of(path)));
        }
        folder.check(name, &self.redactions.apply(&format!("{method} {path}\n{}", self.shown(answer))));
    }

    /// A response with its head, in lines.
    fn shown(&self, answer: &Answer) -> String {
        let body = match answer.field("content-type").split(';').next().unwrap_or_default() {
            _ if answer.body.is_empty() => String::new(),
            "text/html" => outline::html(&answer.text(), &self.assets),
            "application/json" => outline::json(&answer.json()),
            "application/warc" | "application/wacz" => "[binary]".to_string(),
            _ => answer.text(),
        };
        let fields = answer.fields.iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()));
        let head: String = fields.map(|(name, value)| format!("{name}: {value}\n")).collect();
        format!("{}\n{head}\n{body}", answer.status)
    }
}

/// Targets of a page's links and forms on this server.
fn targets(page: &str) -> BTreeSet<String> {
    let attribute = Regex::new("(?:href|action|src)=\"(/[^\"]*)\"").unwrap();
    attribute.captures_iter(page).map(|found| found[1].to_string()).collect()
}

/// Waits for the part of the home page that a background thread of the server computes.
fn until_complete(serving: &Serving) {
    wait_until("the history of the quality", || {
        !serving.get("/api/home").json()["archive"]["past"].as_array().is_none_or(Vec::is_empty)
    });
}

/// The dashboard, the same pages as JSON, and everything else the server offers.
fn check_server(town: &Town, recorder: &mut Recorder) -> [Folder; 3] {
    let mut folders = ["dashboard", "api", "server"].map(Folder::new);
    let [pages, api, server] = &mut folders;
    let serving = Serving::start(&[&town.archive.root], &[]);
    recorder.hide(&serving.main, &serving.replay);
    until_complete(&serving);
    for (name, path) in DASHBOARD {
        recorder.check(pages, name, &format!("GET {path}"), &serving.get(path));
        let of_api = api_of(path);
        let data = serving.get(&of_api);
        recorder.check(api, name, &format!("GET {of_api}"), &data);
        if data.status == 200 {
            let separator = if path.contains('?') { '&' } else { '?' };
            let same = serving.get(&format!("{path}{separator}format=json"));
            let [same, data] = [same, data].map(|answer| recorder.redactions.apply(&recorder.shown(&answer)));
            assert_eq!(same, data, "{path}");
        }
    }
    for (name, path) in SERVER {
        // Only browsers get the banner; they send this field for a top-level page.
        let fields: &[_] = if name.starts_with("banner") { &[("Sec-Fetch-Dest", "document")] } else { &[] };
        recorder.check(server, name, &format!("GET {path}"), &serving.get_with(path, fields));
    }
    let style = serving.get("/cdx?url=http://town.localhost/style.css&output=json&limit=1").json();
    let record = format!("/record/{}", style["digest"].as_str().unwrap());
    recorder.check(server, "record", &format!("GET {record}"), &serving.get(&record));
    let described = serving.get("/api/openapi.json").json();
    for (path, _) in described["paths"].as_object().unwrap() {
        let is_read = described["paths"][path].get("get").is_some();
        let is_requested = recorder.paths.iter().any(|request| request.split('?').next() == Some(path));
        assert!(!is_read || is_requested, "{path} is in the OpenAPI description and has no snapshot");
    }
    for (name, method, fields) in [
        ("refused-method", "DELETE", [("Accept", "text/html")]),
        ("refused-method-json", "DELETE", [("Accept", "application/json")]),
        ("refused-host", "GET", [("Host", "evil.example")]),
    ] {
        recorder.check(
            server,
            name,
            &format!("{method} /sites"),
            &send_request(&serving.main, method, "/sites", &fields),
        );
    }
    drop(serving);
    let guarded = Serving::start(&[&town.archive.root], &["--token-file", &town.beside("token")]);
    recorder.hide(&guarded.main, &guarded.replay);
    recorder.check(server, "refused-token", "GET /", &guarded.get("/"));
    recorder.check(server, "refused-token-json", "GET /api/home", &guarded.get("/api/home"));
    folders
}

/// An archive without captures, alone and next to a second archive.
fn check_empty(town: &Town, recorder: &mut Recorder) -> Folder {
    let mut folder = Folder::new("empty");
    let empty = Archive::new();
    let serving = Serving::start(&[&empty.root], &[]);
    recorder.hide(&serving.main, &serving.replay);
    for path in EMPTY {
        let name = match path.trim_start_matches('/').split('?').next() {
            Some("") | None => "home",
            Some(name) => name,
        };
        recorder.check(&mut folder, name, &format!("GET {path}"), &serving.get(path));
        let of_api = api_of(path);
        recorder.check(&mut folder, &format!("{name}-api"), &format!("GET {of_api}"), &serving.get(&of_api));
    }
    drop(serving);
    let second = town.beside("second");
    town.archive.ok(&["init", &second]);
    let serving = Serving::start(&[&town.archive.root, Path::new(&second)], &[]);
    recorder.hide(&serving.main, &serving.replay);
    for (name, path) in [
        ("two-archives", "/"),
        ("two-archives-first", "/archive/sites"),
        ("two-archives-second", "/second/"),
        ("two-archives-metrics", "/metrics"),
    ] {
        recorder.check(&mut folder, name, &format!("GET {path}"), &serving.get(path));
    }
    folder
}

/// Pages with admin forms, admin actions, and pages while a process writes the archive.
fn check_operator(town: &Town, recorder: &mut Recorder) -> Folder {
    let mut folder = Folder::new("operator");
    let operated = AdminServer::of(&town.archive);
    recorder.hide(&operated.main, &operated.replay);
    recorder.redactions.literal(&operated.key, "[key]");
    let get = |path: &str, cookie: &str| send_request(&operated.main, "GET", path, &[("Cookie", cookie)]);
    recorder.check(&mut folder, "logged-out-sites", "GET /sites", &get("/sites", ""));
    recorder.check(&mut folder, "logged-out-login", "GET /login", &get("/login", ""));
    let with_key = format!("/login?key={}", operated.key);
    recorder.check(&mut folder, "login", &format!("GET {with_key}"), &get(&with_key, ""));
    let (cookie, form) = operated.log_in();
    recorder.redactions.literal(cookie.split_once('=').unwrap().1, "[session]");
    recorder.redactions.literal(&form, "[form]");
    for (name, path) in OPERATED {
        recorder.check(&mut folder, name, &format!("GET {path}"), &get(path, &cookie));
    }
    for (name, action) in ADMIN_ACTIONS {
        let request = format!("POST /api/admin {action}");
        recorder.check(&mut folder, name, &request, &answer_of(operated.action(action)));
    }
    for (name, path, fields) in [
        ("form-pause", "/admin", "act=pause&url=town.localhost&back=/site/town.localhost"),
        ("form-wrong", "/admin", "act=%3Cb%3E&url=town.localhost"),
        ("form-logout", "/logout", ""),
    ] {
        let done = operated.submit(path, &cookie, &format!("form={form}&{fields}"));
        recorder.check(&mut folder, name, &format!("POST {path} {fields}"), &answer_of(done));
    }
    drop(operated);
    let serving = Serving::start(&[&town.archive.root], &[]);
    recorder.hide(&serving.main, &serving.replay);
    let writer = ArchiveWriter::open(&Library::open(&town.archive.root).unwrap()).unwrap();
    until_complete(&serving);
    for (name, path) in [("writing-home", "/"), ("writing-schedule", "/plan"), ("writing-acts", "/audit")] {
        recorder.check(&mut folder, name, &format!("GET {path}"), &serving.get(path));
    }
    drop(writer);
    folder
}

fn answer_of(answered: Answered) -> Answer {
    let pair = |line: &str| {
        line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.trim_end().to_string()))
    };
    Answer {
        status: answered.status,
        fields: answered.head.lines().skip(1).filter_map(pair).collect(),
        body: answered.body.into_bytes(),
    }
}

/// The notices of every kind of receiver.
fn check_notices(town: &Town, recorder: &Recorder) -> Folder {
    let mut folder = Folder::new("notices");
    for (name, path) in [
        ("webhook", "/webhook"),
        ("webhook-part", "/part"),
        ("slack", "/slack"),
        ("ntfy", "/ntfy"),
        ("apprise", "/apprise"),
    ] {
        let mut posted = town.posted(path);
        // Notices are ordered per page only.
        posted.sort_by_key(|request| body_of(request)["url"].as_str().map(str::to_string));
        let posted: String = posted.iter().map(request_of).collect();
        assert!(!posted.is_empty(), "nothing was posted to {path}");
        folder.check(name, &recorder.redactions.apply(&posted));
    }
    let reported = std::fs::read_to_string(town.archive.root.join("told.json")).unwrap();
    let reported: Vec<Value> = reported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    folder.check("program", &outline::json(&reported.iter().cloned().collect()));
    // The rules `program` and `mail` have the same condition.
    let mails: String =
        reported.iter().map(|_| mail_of(&town.mail().expect("a mail for each notice"))).collect();
    folder.check("mail", &recorder.redactions.apply(&mails));
    let listed = town.archive.json(&["notify", "list"]);
    folder.check("list", &recorder.redactions.apply(&outline::json(&listed)));
    folder
}

fn body_of(request: &WebRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn request_of(request: &WebRequest) -> String {
    let mut fields: Vec<String> = request
        .fields
        .iter()
        .filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    fields.sort();
    format!("POST {}\n{}\n\n{}\n\n", request.path, fields.join("\n"), outline::json(&body_of(request)))
}

/// A mail as its reader sees it: without the SMTP dialogue, decoded.
fn mail_of(said: &[String]) -> String {
    let mail: Vec<&str> =
        said.iter().map(String::as_str).skip_while(|line| *line != "DATA").skip(1).collect();
    let mail: Vec<&str> = mail.into_iter().take_while(|line| *line != ".").collect();
    let end = mail.iter().position(|line| line.is_empty()).unwrap();
    let words = Regex::new(r"=\?utf-8\?B\?([^?]*)\?=").unwrap();
    let decoded = |text: &str| String::from_utf8(BASE64.decode(text.as_bytes()).unwrap()).unwrap();
    let head = mail[..end].join("\n").replace("\n ", "");
    let head = words.replace_all(&head, |found: &regex::Captures<'_>| decoded(&found[1]));
    let body = match head.contains("Content-Transfer-Encoding: base64") {
        true => decoded(&mail[end..].concat()),
        false => mail[end..].join("\n"),
    };
    format!("{head}\n\n{body}\n\n")
}

/// Paths in the source of the server's router.
fn routes_of_sources() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let routers = sources(&crates).into_iter().filter(|source| source.name.ends_with("/router.rs"));
    let path = Regex::new("^/[a-z]+(?:[./][a-z]+)*/?$").unwrap();
    routers.flat_map(|router| router.texts).filter(|text| path.is_match(text)).collect()
}

#[test]
fn pages_api_feeds_and_notices() {
    let town = Town::crawled();
    let mut recorder = Recorder {
        redactions: Redactions::new(&town),
        assets: Assets::default(),
        paths: BTreeSet::new(),
        linked: BTreeSet::new(),
    };
    let [pages, api, server] = check_server(&town, &mut recorder);
    let notices = check_notices(&town, &recorder);
    let empty = check_empty(&town, &mut recorder);
    let operator = check_operator(&town, &mut recorder);
    let mut assets = Folder::new("assets");
    for (name, text) in recorder.assets.into_all() {
        assets.check(&name, &text);
    }
    let request: BTreeSet<String> = recorder.paths.iter().map(|path| route_of(path)).collect();
    let missing: Vec<&String> = recorder.linked.difference(&request).collect();
    assert!(missing.is_empty(), "routes without a snapshot that pages link to: {missing:?}");
    let routed = routes_of_sources();
    assert!(routed.len() > 20, "the router's source was not found or not understood: {routed:?}");
    let is_requested = |route: &&String| recorder.paths.iter().any(|path| path.starts_with(route.as_str()));
    let missing: Vec<&String> = routed.iter().filter(|route| !is_requested(route)).collect();
    assert!(missing.is_empty(), "routes of the router without a snapshot: {missing:?}");
    assert_accepted(&[&pages, &api, &server, &notices, &empty, &operator, &assets]);
}
