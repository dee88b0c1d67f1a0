//! Notices: every matching change is sent at least once, those of a page in order, and nothing else is sent.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::http::Request;
use perennial_archive::Archive as Library;
use perennial_archive::store::CapturePlace;
use perennial_core::rng::Rng;
use perennial_server::{Options, Origin, Origins, Server, router};
use serde_json::Value;
use tokio_rustls::rustls::{ServerConnection, StreamOwned};

use crate::crawled::Archive;
use crate::program::{localhost_tls, testdata};
use crate::wait::{dawdle, found_within, wait_until};
use crate::web::{Reply, Web, WebRequest, html, status};

/// A receiver of HTTP posts.
struct Post {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<(String, Value)>>>,
}

/// The response to the nth request: a status, or none.
type Answer = dyn Fn(usize) -> Option<u16> + Send + Sync;

impl Post {
    fn open(answer: impl Fn(usize) -> Option<u16> + Send + Sync + 'static) -> Post {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer): (_, Arc<Answer>) = (taken.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let (kept, answer) = (kept.clone(), answer.clone());
                std::thread::spawn(move || take(stream, number, &*answer, &kept));
            }
        });
        Post { address, taken }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn at(&self, path: &str) -> Vec<Value> {
        let taken = self.taken.lock().unwrap();
        taken.iter().filter(|(at, _)| at == path).map(|(_, body)| body.clone()).collect()
    }
}

/// Reads one request. A complete request counts as received, whatever the response.
fn take(
    stream: TcpStream,
    number: usize,
    answer: &Answer,
    taken: &Mutex<Vec<(String, Value)>>,
) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut n_bytes = 0;
    let mut token = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => n_bytes = value.parse().unwrap(),
            Some(("Authorization", value)) => token = Some(value.to_owned()),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; n_bytes];
    reader.read_exact(&mut body).ok()?;
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    if let Some(token) = token {
        body["token"] = token.into();
    }
    let status = answer(number);
    // Half of the unanswered requests are read anyway.
    if status.is_some_and(|status| status < 300) || status.is_none() && number.is_multiple_of(2) {
        taken.lock().unwrap().push((path, body));
    }
    // Long enough that some kills hit in between.
    dawdle(Duration::from_millis(20));
    let mut stream = reader.into_inner();
    if let Some(status) = status {
        // Too long for any client.
        let long = "x".repeat(100_000);
        let _ = stream
            .write_all(format!("HTTP/1.1 {status} So\r\nContent-Length: 99999999\r\n\r\n{long}").as_bytes());
    }
    Some(())
}

fn words(number: usize) -> String {
    const WORDS: [&str; 16] = [
        "amber", "birch", "cedar", "dahlia", "elder", "fennel", "ginger", "hazel", "iris", "juniper", "kale",
        "lilac", "maple", "nettle", "olive", "poppy",
    ];
    // A part that never has new words becomes noise.
    let letter = |place: u32| char::from(b'a' + (number / 26_usize.pow(place) % 26) as u8);
    let new: String = (0..3).map(letter).collect();
    format!(
        "{} and {} by the {} {new}",
        WORDS[number % 16],
        WORDS[(number / 3) % 16],
        WORDS[(number * 7 + 3) % 16]
    )
}

const N_PAGES: usize = 5;

/// Pages that change at each visit. One of them is gone now and then.
fn garden(request: &WebRequest) -> Reply {
    let n = request.n_before;
    match request.path.strip_prefix("/p").map(str::parse::<usize>) {
        None if request.path == "/" => {
            let links: String =
                (0..N_PAGES).map(|page| format!("<a href=/p{page}>Bed number {page}</a> ")).collect();
            html(&format!(
                "<title>Garden</title><h1>Garden</h1><p>All beds of the garden, each with a page.</p>{links}"
            ))
        }
        Some(Ok(4)) if n % 5 == 3 => status(404),
        Some(Ok(page)) if page < N_PAGES => html(&format!(
            "<title>Bed</title><h1>A bed of the garden</h1><p>The gardener planted {} on this day.</p><p>Then came {}.</p>",
            words(n * 5 + page),
            words(n * 3 + 2 * page + 1)
        )),
        _ => status(404),
    }
}

/// The changes in `changes` that are not noise, as URL and time.
fn listed(archive: &Archive) -> Vec<(String, String)> {
    let changes = archive.json(&["changes"]);
    // A change of clocks and counters alone is listed as long as they are new, but nobody is notified of it.
    let is_news = |operation: &Value| {
        operation["noise"].as_f64().is_none_or(|noise| noise < 0.5) && operation["advertisement"] == false
    };
    let is_sent = |change: &&Value| {
        let operations = change["operations"].as_array().unwrap();
        change["noise"] == false && (operations.is_empty() || operations.iter().any(is_news))
    };
    changes.as_array().unwrap().iter().filter(is_sent).map(key).collect()
}

fn key(value: &Value) -> (String, String) {
    (value["url"].as_str().unwrap().to_owned(), value["after"].as_str().unwrap().to_owned())
}

/// The notices of a page are in order. Only the last one may be repeated.
fn assert_order(taken: &[Value]) {
    let mut last: HashMap<String, String> = HashMap::new();
    for notice in taken {
        let (url, after) = key(notice);
        if let Some(before) = last.insert(url.clone(), after.clone()) {
            assert!(after >= before, "{url}: {after} came after {before}");
        }
    }
}

/// The observations whose bytes contain a word that the previous observation lacks, and those that are ambiguous. A
/// page that is fetched again after a kill, in the same second of the virtual clock, has two captures of one time.
fn appeared(archive: &Archive, word: &str) -> [HashSet<(String, String)>; 2] {
    let library = Library::open(&archive.root).unwrap();
    let store = library.store().unwrap();
    let (mut found, mut unclear) = (HashSet::new(), HashSet::new());
    for page in store.pages_analysed_after(CapturePlace { time: None, number: None }).unwrap() {
        let url = store.page_url(page).unwrap();
        let captures = store.page_captures(page).unwrap();
        let has = |at: usize| {
            let document = library.document(&store, &captures[at]).unwrap().unwrap();
            String::from_utf8_lossy(&document.bytes).contains(word)
        };
        let is_alias =
            |at: usize| captures.iter().filter(|other| other.time == captures[at].time).count() > 1;
        for (at, capture) in captures.iter().enumerate().skip(1) {
            let observation = (url.clone(), capture.time.to_rfc3339());
            if is_alias(at) || is_alias(at - 1) {
                unclear.insert(observation);
            } else if has(at) && !has(at - 1) {
                found.insert(observation);
            }
        }
    }
    [found, unclear]
}

#[test]
fn killed_at_random_every_notice_arrives_in_order_and_none_is_invented() {
    let web = Web::serve(garden);
    // Now and then a notice is rejected or unanswered. Then the rule pauses and its notices wait.
    let mut rng = Rng::new(11);
    let fates: Vec<u32> = (0..4096).map(|_| rng.below(48) as u32).collect();
    let post = Post::open(move |number| match fates[number % fates.len()] {
        // Crawls are killed while they send these.
        _ if number < 40 => Some(200),
        0 => None,
        1 => Some(503),
        2 => Some(400),
        _ => Some(200),
    });
    let archive = Archive::new();
    archive.append_settings(&format!(
        "[[notify]]\nname = \"all\"\nto = \"webhook:{}\"\n[[notify]]\nname = \"amber\"\nto = \"webhook:{}\"\nappears = \"amber\"\n",
        post.url("/all"),
        post.url("/amber")
    ));
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    let crawl = ["run", "--no-serve", "--time-lapse", "max", "--start", "2026-01-01", "--delay", "0"];
    let policy = ["--strategy", "fixed-interval", "--interval", "1h", "--time-limit", "60d"];
    let args = [&crawl[..], &policy[..]].concat();
    for kill in 0..10 {
        let (n_requests, n_taken) = (web.requests().len(), post.taken.lock().unwrap().len());
        let wanted = (4 + rng.below(20), rng.below(12));
        let mut child = archive.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lives = || assert!(child.try_wait().unwrap().is_none(), "crawl {kill} ended");
        wait_until("the crawl's requests", || {
            lives();
            web.requests().len() >= n_requests + wanted.0
        });
        // None may arrive, because the rule may be paused.
        let _ = found_within(Duration::from_secs(2), || {
            lives();
            (post.taken.lock().unwrap().len() >= n_taken + wanted.1).then_some(())
        });
        dawdle(Duration::from_micros(rng.bits() % 30_000));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(post.at("/all").len() > 5, "crawls reported only {} changes", post.at("/all").len());
    archive.ok(&["analyse"]);
    let mut n_rounds = 0;
    while !archive.run(&["notify", "send"]).status.success() {
        n_rounds += 1;
        assert!(n_rounds < 300, "{}", archive.ok(&["notify", "list"]));
    }
    let (listed, all) = (listed(&archive), post.at("/all"));
    assert!(listed.len() > 30, "{} changes only", listed.len());
    assert_order(&all);
    assert_order(&post.at("/amber"));
    let reported: HashSet<(String, String)> = all.iter().map(key).collect();
    let wanted: HashSet<(String, String)> = listed.into_iter().collect();
    let differing: Vec<_> = reported.symmetric_difference(&wanted).collect();
    assert!(differing.is_empty(), "reported or listed, but not both: {differing:?}");
    let kinds: HashSet<&str> = all.iter().map(|notice| notice["kind"].as_str().unwrap()).collect();
    assert!(kinds.is_superset(&HashSet::from(["edited", "vanished", "returned"])), "{kinds:?}");
    let amber: HashSet<(String, String)> = post.at("/amber").iter().map(key).collect();
    let [expected, unclear] = appeared(&archive, "amber");
    let wrong: Vec<_> =
        amber.symmetric_difference(&expected).filter(|observation| !unclear.contains(observation)).collect();
    assert!(
        wrong.is_empty() && expected.len() > 10,
        "reported {} and not {}: {wrong:?}",
        amber.len(),
        expected.len()
    );
    let ids: HashSet<&str> = all.iter().map(|notice| notice["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), reported.len(), "what is sent again has the same number");
    println!(
        "{} notices of {} changes, {} of them again, {n_rounds} rounds",
        all.len(),
        reported.len(),
        all.len() - reported.len()
    );
    archive.verify();
}

/// Replaces a mail server's usual response to a line.
pub(crate) type Instead = fn(&str) -> Option<&'static [u8]>;

/// A mail server that requires a password. Returns the text of each mail.
pub(crate) fn mail_server(is_encrypted: bool, instead: Instead) -> (u16, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut said = Vec::new();
            let connection = ServerConnection::new(localhost_tls()).unwrap();
            if is_encrypted {
                let mut stream = StreamOwned::new(connection, stream);
                stream.write_all(b"220 mail.example\r\n").unwrap();
                talk(&mut stream, &mut said, instead);
            } else {
                stream.write_all(b"220 mail.example\r\n").unwrap();
                talk(&mut stream, &mut said, instead);
                if said.last().is_some_and(|line| line == "STARTTLS") {
                    talk(&mut StreamOwned::new(connection, stream), &mut said, instead);
                }
            }
            let _ = sender.send(said);
        }
    });
    (port, receiver)
}

/// Runs an SMTP dialogue until the client starts TLS or disconnects.
fn talk(stream: &mut (impl Read + Write), said: &mut Vec<String>, instead: Instead) {
    let mut is_data = false;
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) if byte[0] != b'\n' => {
                line.push(byte[0]);
                continue;
            }
            Ok(1) => {}
            _ => return,
        }
        let text = String::from_utf8(std::mem::take(&mut line)).unwrap().trim_end_matches('\r').to_owned();
        said.push(text.clone());
        if is_data && text != "." {
            continue;
        }
        let answer: &[u8] = match text.split(' ').next().unwrap() {
            "EHLO" => b"250-mail.example\r\n250-AUTH LOGIN\r\n250 STARTTLS\r\n",
            "STARTTLS" => b"220 go\r\n",
            "AUTH" => b"334 VXNlcm5hbWU6\r\n",
            "QUIT" => b"221 bye\r\n",
            "DATA" => b"354 go on\r\n",
            "bWU=" => b"334 UGFzc3dvcmQ6\r\n",
            "c2VjcmV0" => b"235 welcome\r\n",
            _ => b"250 yes\r\n",
        };
        is_data = text == "DATA";
        // The client may have disconnected.
        let _ = stream.write_all(instead(&text).unwrap_or(answer));
        let _ = stream.flush();
        if text == "STARTTLS" || text == "QUIT" {
            return;
        }
    }
}

#[test]
fn a_test_notice_reaches_every_kind_of_receiver() {
    let post = Post::open(|_| Some(200));
    let (port, mails) = mail_server(false, |_| None);
    let archive = Archive::new();
    let (out, script) = (archive.root.join("told.json"), archive.root.join("tell.sh"));
    std::fs::write(&script, "cat > told.json\n").unwrap();
    std::fs::write(archive.root.join("secret"), "secret\n").unwrap();
    let rule = |name: &str, to: &str| {
        format!("[[notify]]\nname = \"{name}\"\nto = \"{to}\"\ntoken_file = \"secret\"\n")
    };
    let rules = [
        rule("w", &format!("webhook:{}", post.url("/w"))),
        rule("s", &format!("slack:{}", post.url("/s"))),
        rule("n", &format!("ntfy:{}", post.url("/topic"))),
        rule("a", &format!("apprise:{}", post.url("/a"))),
        rule("c", "command:sh tell.sh"),
        rule("e", "email:you@example.org"),
    ];
    archive.append_settings(&rules.concat());
    let path = archive.root.join("perennial.toml");
    let text = std::fs::read_to_string(&path).unwrap().replacen(
        "\n[smtp]\n",
        &format!("\n[smtp]\nserver = \"localhost:{port}\"\nuser = \"me\"\npassword_file = \"secret\"\nfrom = \"me@example.org\"\n"),
        1,
    );
    std::fs::write(&path, text).unwrap();
    archive.append_settings(&format!("[crawl]\ntls_roots = {:?}\n", testdata("tls/authority.pem")));
    let tried = archive.json(&["notify", "test"]);
    assert!(tried.as_array().unwrap().iter().all(|tried| tried["is_taken"] == true), "{tried}");
    let only = |path: &str| post.at(path).pop().unwrap_or_else(|| panic!("nothing at {path}"));
    assert_eq!(
        (only("/w")["rule"].as_str(), only("/w")["token"].as_str()),
        (Some("w"), Some("Bearer secret"))
    );
    assert_eq!(only("/w")["changes"][0]["after"], "the text after");
    assert!(only("/s")["text"].as_str().unwrap().starts_with("edited: Test: notices of this rule"));
    assert_eq!(only("/")["topic"], "topic");
    assert_eq!((only("/a")["type"].as_str(), only("/a")["format"].as_str()), (Some("info"), Some("text")));
    let reported: Value = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    assert_eq!(reported["rule"], "c");
    let mail = mails.recv_timeout(Duration::from_secs(20)).unwrap();
    let at = |wanted: &str| {
        mail.iter().position(|line| line.starts_with(wanted)).unwrap_or_else(|| panic!("{wanted}: {mail:?}"))
    };
    assert!(at("STARTTLS") < at("AUTH LOGIN"), "no password before TLS");
    assert!(
        at("AUTH LOGIN") < at("MAIL FROM:<me@example.org>") && at("RCPT TO:<you@example.org>") < at("DATA")
    );
    assert!(at("Subject: =?utf-8?B?") > at("DATA"));

    // Without TLS no password and no notice is sent.
    let text = std::fs::read_to_string(&path).unwrap().replacen("tls_roots", "# tls_roots", 1);
    std::fs::write(&path, text).unwrap();
    let failed = archive.run(&["notify", "test", "e"]);
    assert_eq!(failed.status.code(), Some(1));
    let mail = mails.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(!mail.iter().any(|line| line.starts_with("AUTH")), "{mail:?}");
    let none = archive.run(&["notify", "test", "nobody"]);
    assert!(
        String::from_utf8_lossy(&none.stderr)
            .contains("no rule has this name; the rules are w, s, n, a, c, e")
    );
}

/// Sends a test mail. Returns the lines that the server received, and the error.
fn trial(settings: &str, (port, mails): (u16, Receiver<Vec<String>>)) -> (Vec<String>, String) {
    let archive = Archive::new();
    std::fs::write(archive.root.join("secret"), "secret\n").unwrap();
    archive.append_settings("[[notify]]\nname = \"e\"\nto = \"email:you@example.org\"\n");
    let path = archive.root.join("perennial.toml");
    let table = format!("\n[smtp]\nserver = \"localhost:{port}\"\nfrom = \"me@example.org\"\n{settings}\n");
    let text = std::fs::read_to_string(&path).unwrap().replacen("\n[smtp]\n", &table, 1);
    std::fs::write(&path, text).unwrap();
    archive.append_settings(&format!("[crawl]\ntls_roots = {:?}\n", testdata("tls/authority.pem")));
    let output = archive.run(&["--json", "notify", "test"]);
    let tried: Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = tried[0]["error"].as_str().unwrap_or_default().to_owned();
    (mails.recv_timeout(Duration::from_secs(20)).unwrap(), error)
}

#[test]
fn mail_works_over_every_kind_of_connection() {
    const LOGIN: &str = "user = \"me\"\npassword_file = \"secret\"\n";
    let plain: Instead = |line| line.starts_with("EHLO").then_some(b"250-mail.example\r\n250 AUTH PLAIN\r\n");
    let (said, error) = trial(&format!("security = \"tls\"\n{LOGIN}"), mail_server(true, |_| None));
    assert!(error.is_empty() && said.iter().any(|line| line == "AUTH LOGIN"), "{error} {said:?}");
    let welcome: Instead = |line| match line.split_at_checked(5)?.0 {
        "EHLO " => Some(b"250-mail.example\r\n250 AUTH PLAIN\r\n"),
        "AUTH " => Some(b"235 welcome\r\n"),
        _ => None,
    };
    let (said, error) = trial(&format!("security = \"tls\"\n{LOGIN}"), mail_server(true, welcome));
    assert!(error.is_empty() && said.iter().any(|line| line == "AUTH PLAIN AG1lAHNlY3JldA=="), "{said:?}");
    let (said, error) = trial(&format!("security = \"none\"\n{LOGIN}"), mail_server(false, |_| None));
    assert!(error.is_empty() && said.iter().any(|line| line.starts_with("RCPT")), "{error}");
    assert!(!said.iter().any(|line| line.starts_with("AUTH")), "no password without TLS: {said:?}");
    let (said, error) = trial(LOGIN, mail_server(false, plain));
    assert!(error.contains("mail is sent over TLS only: set security below [smtp]"), "{error}");
    assert!(!said.iter().any(|line| line.starts_with("AUTH") || line.starts_with("MAIL")), "{said:?}");
}

#[test]
fn a_rejected_mail_reports_the_reason() {
    let (_, error) = trial(
        "security = \"none\"",
        mail_server(false, |line| line.starts_with("RCPT").then_some(b"550-no such\r\n550 \x1b[31muser\r\n")),
    );
    assert!(
        error.contains("the mail server responded with 550 no such") && !error.contains('\x1b'),
        "{error}"
    );
    let (said, error) = trial(
        "user = \"me\"\npassword_file = \"secret\"",
        mail_server(false, |line| (line == "c2VjcmV0").then_some(b"535 wrong\r\n")),
    );
    assert!(error.contains("cannot log in as me") && error.contains("535 wrong"), "{error}");
    assert!(!said.iter().any(|line| line.starts_with("MAIL")), "{said:?}");
    // A response that is injected before TLS starts is not accepted.
    let (said, error) = trial(
        "",
        mail_server(false, |line| {
            (line == "STARTTLS")
                .then_some(b"220 go\r\n250 mail\r\n250 yes\r\n250 yes\r\n354 go\r\n250 taken\r\n")
        }),
    );
    assert!(error.contains("TLS with localhost failed"), "{error} {said:?}");
}

/// The price changes at visits 3 and 6, everything else at each visit.
fn shop(request: &WebRequest) -> Reply {
    let price = ["nine", "eight", "seven"][(request.n_before / 3).min(2)];
    html(&format!(
        "<title>Shop <!channel></title><h1>Lamps</h1><p id=price>The lamp costs {price} crowns.</p>\
         <p>Today in the window: {}.</p><script>let x = {};</script>",
        words(request.n_before * 3),
        request.n_before
    ))
}

#[test]
fn watch_reports_changes_of_the_selected_part_only() {
    let (web, post) = (Web::serve(shop), Post::open(|_| Some(204)));
    let archive = Archive::new();
    let url = web.url("/lamps");
    let target = format!("webhook:{}", post.url("/lamps"));
    let said = archive.ok(&[
        "watch",
        &url,
        "--selector",
        "#price",
        "--notify",
        &target,
        "--allow-private",
        "--name",
        "lamps",
    ]);
    assert!(
        said.contains("rule `lamps` notifies webhook:")
            && said.contains("notify test")
            && said.contains(" run"),
        "{said}"
    );
    let again =
        archive.json(&["watch", &url, "--selector", "#price", "--notify", &target, "--name", "lamps"]);
    assert_eq!(
        (again["is_new"].as_bool(), archive.json(&["notify", "list"]).as_array().unwrap().len()),
        (Some(false), 1)
    );
    archive.lapse("1h", "8h");
    let reported = post.at("/lamps");
    let lines: Vec<String> =
        reported.iter().map(|notice| notice["changes"][0]["after"].as_str().unwrap().to_owned()).collect();
    assert_eq!(lines, ["The lamp costs eight crowns.", "The lamp costs seven crowns."]);
    assert_eq!(reported[0]["n_changes"], 1);
    let rows = archive.json(&["notify", "list"]);
    assert_eq!((rows[0]["n_sent"].as_u64(), rows[0]["n_waiting"].as_u64()), (Some(2), Some(0)));

    // A new rule does not cover earlier changes.
    archive
        .append_settings(&format!("[[notify]]\nname = \"late\"\nto = \"webhook:{}\"\n", post.url("/late")));
    archive.ok(&["notify", "send"]);
    assert_eq!(post.at("/late"), Vec::<Value>::new());
    // A rebuilt state does not send notices again.
    archive.ok(&["verify", "--rebuild"]);
    archive.ok(&["analyse"]);
    archive.ok(&["notify", "send"]);
    assert_eq!((post.at("/late").len(), post.at("/lamps").len()), (0, 2));

    let options = Options::on_loopback("127.0.0.1:0".parse().unwrap());
    let origins = Origins { main: "http://127.0.0.1:1".into(), replay: "http://127.0.0.1:2".into() };
    let server = Server::new(vec![Library::open(&archive.root).unwrap()], options, origins).unwrap();
    let get = |path: &str| {
        let request = Request::get(path).header("Host", "127.0.0.1:1").body(()).unwrap();
        let response = router::route(&server, Origin::Main, &request.into_parts().0);
        let response = response.unwrap_or_else(|problem| problem.into_response(false));
        let status = response.status().as_u16();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        (
            status,
            String::from_utf8(runtime.block_on(response.into_body().collect()).unwrap().to_bytes().to_vec())
                .unwrap(),
        )
    };
    let entries = |path: &str| get(path).1.matches("<entry>").count();
    assert_eq!(
        entries("/changes.atom"),
        archive.json(&["changes"]).as_array().unwrap().iter().filter(|c| c["noise"] == false).count()
    );
    assert_eq!(entries("/changes.atom?selector=%23price"), 2);
    assert_eq!(entries("/changes.atom?appears=eight"), 1);
    assert_eq!(entries("/changes.atom?vanishes=/eig.t/"), 1);
    assert_eq!(entries("/changes.atom?kind=vanished"), 0);
    assert_eq!(entries("/changes.atom?site=elsewhere.example"), 0);
    let (status, feed) = get("/changes.atom?selector=%23price");
    assert!(status == 200 && feed.contains("=&gt; &quot;The lamp costs seven crowns.&quot;&#10;"), "{feed}");
    assert!(!feed.contains("<!channel>") && feed.contains("http://127.0.0.1:1/web/diff/"), "{feed}");
    assert_eq!(get("/changes.atom?least=2").0, 400);
}

#[test]
fn pinning_and_ignoring_report_their_effect() {
    let web = Web::serve(shop);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/lamps"), "--scope", "page", "--allow-private", "--renderer", "layout"]);
    archive.lapse("1h", "8h");
    let changes = archive.json(&["changes"]);
    let n_edits = changes.as_array().unwrap().iter().filter(|change| change["noise"] == false).count();
    let site = web.address.to_string();
    let reported =
        archive.json(&["part", "pin", &site, "--selector", "#price", "--importance", "0.6", "--dry-run"]);
    assert_eq!(
        (reported["n_changes"].as_u64(), reported["n_touching"].as_u64()),
        (Some(n_edits as u64), Some(2)),
        "{reported}"
    );
    assert_eq!(
        (reported["n_inside"].as_u64(), reported["is_written"].as_bool()),
        (Some(0), Some(false)),
        "{reported}"
    );
    assert_eq!(archive.json(&["list"])[0]["pin"].as_array().unwrap().len(), 0);
    let whole = archive.json(&["part", "ignore", &web.url("/lamps"), "--selector", "body", "--dry-run"]);
    assert_eq!(
        whole["n_inside"].as_u64(),
        Some(n_edits as u64),
        "everything is inside of the whole: {whole}"
    );
    archive.ok(&["part", "pin", &site, "--selector", "#price", "--importance", "0.6"]);
    let said = archive.ok(&["part", "ignore", &site, "--selector", "h1"]);
    assert!(said.contains("0 touched the part") && said.contains("written for http://127.0.0.1"), "{said}");
    let settings = std::fs::read_to_string(archive.root.join("perennial.toml")).unwrap();
    assert!(
        settings.contains("pin = [{ selector = \"#price\", importance = 0.6 }]\nignore = [\"h1\"]"),
        "{settings}"
    );
    let unknown = archive.run(&["part", "pin", "nowhere.example", "--selector", "p"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("`perennial list` shows the sites that are"));
}

#[test]
fn a_broken_outbox_or_a_dead_receiver_does_not_delay_a_crawl() {
    let web = Web::serve(garden);
    let archive = Archive::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    archive.append_settings(&format!("[[notify]]\nname = \"dead\"\nto = \"webhook:http://{closed}/\"\n"));
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("1h", "5h");
    let rows = archive.json(&["notify", "list"]);
    assert_eq!(rows[0]["n_waiting"].as_u64(), Some(listed(&archive).len() as u64), "{rows}");
    assert!(rows[0]["error"].as_str().unwrap().contains("cannot connect"), "{rows}");
    let n_requests = web.requests().len();
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(archive.root.join(format!("outbox.db{suffix}")));
    }
    std::fs::write(archive.root.join("outbox.db"), "no database at all, but a text").unwrap();
    archive.lapse("1h", "5h");
    assert!(web.requests().len() > n_requests + 5, "the crawl went on");
}

/// The first change of a watched part is sent, also if it looks like an advertisement or a clock. Noise by the page's
/// history is silent.
#[test]
fn a_watched_part_is_silent_only_if_its_history_shows_noise() {
    let web = Web::serve(|request| {
        let n = request.n_before.min(3);
        let price = if n < 3 { 10 } else { 12 };
        let prose = "<p>The two ferries of the town run from the old quay to the island and back again.</p>"
            .repeat(4);
        html(&format!(
            "<title>Ferries</title><main><h1>Ferries</h1>{prose}<p id=clock>14:0{n}</p></main>
            <aside id=offer><a href=/ads/pass>Pass {price}</a></aside>"
        ))
    });
    let (post, archive) = (Post::open(|_| Some(204)), Archive::new());
    for part in ["offer", "clock"] {
        let (selector, target) = (format!("#{part}"), format!("webhook:{}", post.url(&format!("/{part}"))));
        let watch = ["watch", &web.url("/"), "--selector", &selector, "--notify", &target, "--allow-private"];
        archive.ok(&[&watch[..], &["--name", part, "--every", "1h"]].concat());
    }
    archive.lapse("1h", "6h");
    let said = |part: &str| {
        let notices = post.at(&format!("/{part}"));
        let lines = notices.iter().map(|notice| notice["changes"][0]["after"].as_str().unwrap().to_owned());
        lines.collect::<Vec<_>>()
    };
    assert_eq!(said("offer"), ["Pass 12"]);
    assert_eq!(said("clock"), ["14:01"], "the first change, and no later one");
}
