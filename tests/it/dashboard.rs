//! The pages about a page, a site and the schedule, the same data as JSON, and all of them in a real browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use perennial_core::memento::replay_url::escape;
use serde_json::Value;

#[cfg(feature = "interop")]
use crate::axe::grave_findings;
#[cfg(feature = "interop")]
use crate::browser::{Serving, Viewer};
use crate::crawled::Archive;
use crate::dashboard_pages::TestDashboard;
use crate::web::{Reply, Web, WebRequest, html, status};

const HOSTILE: &str = "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;";

/// A front page with ten headlines. The third visit sees the second headline rewritten. The fifth visit sees the ninth
/// replaced.
fn site(request: &WebRequest) -> Reply {
    let n = request.n_before;
    match request.path.as_str() {
        "/" => {
            let story = |number: usize| {
                let number = if number == 9 && n >= 4 { 11 } else { number };
                let title = match number {
                    2 if n >= 2 => "Council defends the harbour bridge against all critics".to_string(),
                    2 => "Council approves the harbour bridge against all critics".to_string(),
                    _ => format!("Story number {number} about the town and what its people said of it"),
                };
                format!(
                    "<li><h2><a href=/town/{number}>{title}</a></h2><p>What is known of it so far, in a line.</p></li>"
                )
            };
            let list: String = (1..=10).map(story).collect();
            html(&format!(
                "<title>Front {HOSTILE}</title><link rel=alternate type=application/rss+xml href=/feed.xml>\
                 <h1>The town today</h1><ul>{list}</ul><a href=/limits>Limits</a> <a href=/gone>Plan</a>"
            ))
        }
        "/feed.xml" => {
            let item = "<item><title>&lt;script&gt;One&lt;/script&gt;</title><link>/town/1</link><guid>1</guid></item>";
            let feed = format!(
                "<rss version=\"2.0\"><channel><title>Town</title><link>/</link>{item}</channel></rss>"
            );
            Reply::Page(200, vec![("Content-Type", "application/rss+xml".into())], feed.into_bytes())
        }
        "/limits" => {
            let limit = if n < 2 { "thirty" } else { "fifty" };
            html(&format!(
                "<title>Limits {HOSTILE}</title><h1>Limits</h1><p>Cars on the ring road must not drive faster than {limit} \
                 kilometres an hour, says the city, from Monday on and until further notice.</p>"
            ))
        }
        "/gone" if n < 2 => html("<title>Flood plan</title><p>What to do when the river rises.</p>"),
        path if path.starts_with("/town/") => {
            html(&format!("<title>Town</title><h1>{path}</h1><p>All that is known of it, in a sentence.</p>"))
        }
        _ => status(404),
    }
}

pub(crate) fn crawled() -> (Web, Archive) {
    let (web, archive) = (Web::serve(site), Archive::new());
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "36h");
    (web, archive)
}

pub(crate) fn host(web: &Web) -> String {
    web.url("/").trim_start_matches("http://").trim_end_matches('/').to_string()
}

#[test]
fn a_page_a_site_and_the_plan_are_shown_with_their_reasons() {
    let (web, archive) = crawled();
    let face = TestDashboard::of(&archive);
    let get = |path: &str| {
        let (status, page, policy) = face.get(path);
        assert_eq!(status, 200, "{path}: {page}");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("script-src"), "{policy}");
        assert!(!page.contains("<script"), "{path}: {page}");
        page
    };

    let home = get(&format!("/page/{}", web.url("/")));
    assert_eq!(home, get(&format!("/page?url={}", escape(&web.url("/")))));
    assert!(home.contains(&format!("<h1>Front {HOSTILE}</h1>")), "what a reader saw, escaped once: {home}");
    assert!(home.contains("Headlines over time") && home.contains("Retitled 1<"), "{home}");
    assert!(home.contains("<del>approves</del>") && home.contains("<ins>defends</ins>"), "{home}");
    assert!(home.contains("Added 1<") && home.contains("Removed 1<"), "{home}");
    let limits = get(&format!("/page?url={}", escape(&web.url("/limits"))));
    assert!(limits.contains("<del>thirty</del>") && limits.contains("indexed from importance"), "{limits}");
    assert!(limits.contains("Changes<") && limits.contains("Next visit"), "{limits}");
    assert!(limits.contains("/web/diff/") && limits.contains("Thumbnails"), "{limits}");
    // The thumbnails frame the changes, and the pattern chart shows the days behind it.
    assert!(limits.contains("class=\"heat series\"") && limits.contains("class=\"ch\""), "{limits}");
    assert!(limits.contains(&format!("href=\"/notices?place={}\"", escape(&web.url("/limits")))), "{limits}");
    let all = get(&format!("/page?url={}&show=all&until=2026010118", escape(&web.url("/limits"))));
    assert!(all.contains("aria-current=\"true\">All"), "{all}");

    let site = get(&format!("/site/{}", escape(&host(&web))));
    assert!(site.contains("class=\"heat\"") && site.contains("Coherence over time"), "{site}");
    assert!(site.contains("/town/") && site.contains("Feeds") && site.contains("/feed.xml"), "{site}");
    assert!(get("/sites").contains(&host(&web)));

    let plan = get("/plan");
    assert!(plan.contains("Next visit on") && plan.contains("/town/1"), "{plan}");
    let why = get(&format!("/plan?url={}", escape(&web.url("/limits"))));
    assert!(why.contains("Reasons") && why.contains("No crawl is running"), "{why}");
    assert!(get("/plan?url=https://nowhere.example/%3Cscript%3E").contains("does not know this URL"));
    // A URL is found in any form that people write.
    for request in [format!("{}/limits#x", host(&web)), web.url("/limits").replace("http:", "https:")] {
        assert_eq!(get(&format!("/page?url={}", escape(&request))), limits, "{request}");
        assert!(get(&format!("/plan?url={}", escape(&request))).contains("Reasons"), "{request}");
    }
    let strongest = get("/?since=7d&order=importance");
    assert!(strongest.contains("selected>most important first"), "{strongest}");
    let home = get("/?since=7d");
    for part in ["Budget", "Next visits", "Completeness", "Coherence", "Holdings", "Latest captures"] {
        assert!(home.contains(part), "{part}: {home}");
    }

    for (path, expected) in [
        ("/page/https://nowhere.example/", 404),
        ("/page", 400),
        ("/site/nowhere.example", 404),
        ("/api/page", 400),
        ("/?least=NaN", 400),
        ("/?since=x", 400),
        ("/?hours=24", 400),
        ("/?order=odd", 400),
        ("/api/nothing", 404),
        ("/api/diff?before=x&after=2026&url=http://a.example/", 400),
        ("/page?url=http://a.example/&until=99999999999999", 404),
    ] {
        assert_eq!(face.get(path).0, expected, "{path}");
    }
}

/// The first link of a page whose text begins with these words.
fn link(page: &str, words: &str) -> String {
    let is_it = |part: &&str| part.split_once('>').is_some_and(|(_, text)| text.starts_with(words));
    let found =
        page.split("href=\"").skip(1).find(is_it).unwrap_or_else(|| panic!("no link {words}: {page}"));
    found.split('"').next().unwrap().replace("&amp;", "&")
}

#[test]
fn three_tasks_take_three_clicks_from_home() {
    let (web, archive) = crawled();
    let face = TestDashboard::of(&archive);
    let get = |path: &str| {
        let (status, page, _) = face.get(path);
        assert_eq!(status, 200, "{path}: {page}");
        page
    };
    let home = get("/");

    // The most important change of yesterday: click its day, then compare the first change of the list.
    let day_before = link(&home, "Most important of the day before, 1 Jan 2026");
    let list = get(&day_before);
    let reported: Value = serde_json::from_str(&get(&format!("{day_before}&format=json"))).unwrap();
    let strength: Vec<f64> = reported["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["importance"].as_f64().unwrap())
        .collect();
    assert!(!strength.is_empty() && strength.is_sorted_by(|a, b| a >= b), "{reported}");
    assert!(reported["changes"][0]["after"].as_str().unwrap().starts_with("2026-01-01"), "{reported}");
    assert!(get(&link(&list, "Compare")).contains("<h1>"));

    // When a sentence vanished: search at the top of the page, and the row shows it.
    assert!(home.contains("action=\"/search\"") && home.contains("name=\"q\""), "{home}");
    let found = get(&format!("/search?q={}", escape("\"What to do when the river rises\"")));
    assert!(
        found.contains("on the page at the first capture, 1 Jan 2026")
            && found.contains("; removed between 1 Jan 2026"),
        "{found}"
    );

    // Why a page is not visited today: enter its URL on the plan, or follow the page's own link.
    let plan = get(&link(&home, "Plan"));
    assert!(plan.contains("Why is this page not visited?") && plan.contains("name=\"url\""), "{plan}");
    assert!(get(&format!("/plan?url={}", escape(&web.url("/limits")))).contains("Reasons"));
    let page = get(&format!("/page?url={}", escape(&web.url("/limits"))));
    assert!(get(&link(&page, "Why then?")).contains("Reasons"));
}

#[test]
fn an_empty_archive_says_what_to_do() {
    let archive = Archive::new();
    let face = TestDashboard::of(&archive);
    for (path, hint) in [
        ("/", "perennial run https://example.org/"),
        ("/sites", "perennial run https://example.org/"),
        ("/plan", "perennial add https://example.org/"),
        ("/calendar", "Captures of a URL"),
    ] {
        let (status, page, _) = face.get(path);
        assert!(status == 200 && page.contains(hint) && page.contains("aria-current"), "{path}: {page}");
    }
}

/// Why a value does not match a schema. Supports only the part of JSON Schema that our API description uses.
pub(crate) fn mismatch(value: &Value, schema: &Value, root: &Value, at: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = root.pointer(name.trim_start_matches('#'));
        return schema.map_or(Some(format!("{at}: no {name}")), |schema| mismatch(value, schema, root, at));
    }
    if let Some(choices) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        let wrong: Vec<String> =
            choices.iter().filter_map(|choice| mismatch(value, choice, root, at)).collect();
        return (wrong.len() + 1 != choices.len()).then(|| format!("{at}: not one of them: {wrong:?}"));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        kinds => kinds.as_array()?.iter().filter_map(Value::as_str).collect(),
    };
    let is_of = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    if !kinds.iter().any(is_of) {
        return Some(format!("{at}: {value} is not {kinds:?}"));
    }
    if let Some(values) = value.as_array() {
        let mut each = values.iter().enumerate();
        return each.find_map(|(n, value)| mismatch(value, &schema["items"], root, &format!("{at}[{n}]")));
    }
    let object = value.as_object()?;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !object.contains_key(*name)) {
        return Some(format!("{at}: {missing} is missing"));
    }
    object.iter().find_map(|(name, value)| match schema["properties"].get(name) {
        Some(schema) => mismatch(value, schema, root, &format!("{at}.{name}")),
        None => Some(format!("{at}: {name} is not described")),
    })
}

#[test]
fn programs_get_what_the_description_says() {
    let (web, archive) = crawled();
    let face = TestDashboard::of(&archive);
    let json = |path: &str| -> Value {
        let (status, text, _) = face.get(path);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    };
    let described = json("/api/openapi.json");
    let (home, limits) = (escape(&web.url("/")), escape(&web.url("/limits")));
    let request = [
        ("/api/home", "?since=7d&least=0.01".to_string()),
        ("/api/home", "?site=nowhere.example".to_string()),
        ("/api/changes", String::new()),
        ("/api/changes", "?site=nowhere.example&noise=1".to_string()),
        ("/api/page", format!("?url={home}")),
        ("/api/page", format!("?url={limits}&show=all")),
        ("/api/sites", String::new()),
        ("/api/site", format!("?host={}", escape(&host(&web)))),
        ("/api/plan", String::new()),
        ("/api/plan", format!("?url={limits}")),
        ("/api/diff", format!("?before=20260101&after=20270101&url={limits}")),
        ("/api/notices", format!("?place={home}&least=0.2")),
        ("/api/terms", "?since=1d".to_string()),
        ("/api/articles", String::new()),
        ("/api/articles", "?site=nowhere.example&skip=50".to_string()),
        ("/api/article", format!("?url={}", escape(&web.url("/town/1")))),
        ("/api/search", "?q=kilometres".to_string()),
        ("/api/search", "?q=kilometres&important=1".to_string()),
        ("/api/search", "?q=-kilometres".to_string()),
        ("/api/audit", String::new()),
        ("/api/pin", format!("?url={limits}&selector=p")),
    ];
    let paths = described["paths"].as_object().unwrap();
    // Admin actions are POST requests. The snapshots of `operator` cover them.
    for path in paths.iter().filter(|(_, described)| described.get("get").is_some()).map(|(path, _)| path) {
        assert!(request.iter().any(|(known, _)| known == path), "{path} is described and not asked here");
    }
    for (path, query) in &request {
        let schema = &paths[*path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let wrong = mismatch(&json(&format!("{path}{query}")), schema, &described, path);
        assert_eq!(wrong, None, "{path}{query}");
    }
    // The check itself can fail.
    let problem = serde_json::json!({"error": "a", "title": "b", "message": 3});
    let schema = &described["components"]["schemas"]["Problem"];
    assert!(mismatch(&problem, schema, &described, "").unwrap().contains(".message"));
    // `format=json` returns the same as the API.
    assert_eq!(json("/plan?format=json"), json("/api/plan"));
    let page = json(&format!("/api/page?url={limits}"));
    assert!(
        page["n_changes"].as_u64() >= Some(2) && page["versions"].as_array().unwrap().len() > 2,
        "{page}"
    );
    let found = json("/api/search?q=river&vanished=1");
    assert_eq!(found["n_pages"], 1, "{found}");

    let (status, metrics, _) = face.get("/metrics");
    assert_eq!(status, 200);
    let captures = metrics.lines().find(|line| line.starts_with("perennial_captures{")).unwrap();
    let counted = archive.json(&["status"])["n_captures"].as_u64().unwrap();
    assert_eq!(captures.rsplit(' ').next().unwrap(), counted.to_string(), "{metrics}");
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
    }
    assert_eq!(face.get("/healthz").1, "ok\n");
}

#[test]
fn each_value_is_the_same_on_all_pages() {
    let (web, archive) = crawled();
    let face = TestDashboard::of(&archive);
    let json = |path: &str| -> Value {
        let (status, text, _) = face.get(path);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    };
    let urls = |answer: &Value, list: &str| -> Vec<String> {
        let rows = answer[list].as_array().unwrap().iter();
        rows.map(|row| row["url"].as_str().unwrap().to_string()).collect()
    };

    // Which changes matter lately: home accepts the whole query language of the list of changes.
    let since = "since=7d&least=0.01";
    let home = json(&format!("/api/home?{since}"));
    for (query, path) in [("kind=vanished", "/gone"), ("appears=fifty", "/limits"), ("kind=new", "/town/11")]
    {
        let found = json(&format!("/api/home?{since}&{query}"));
        assert_eq!(urls(&found, "pages"), [web.url(path)], "{query}: {found}");
        let listed = json(&format!("/api/changes?least=0.01&{query}"));
        assert_eq!(urls(&listed, "changes"), urls(&found, "pages"), "{query}");
        // Home and the list report the same importance, also for a new page.
        assert_eq!(found["pages"][0]["importance"], listed["changes"][0]["importance"], "{query}");
    }
    assert_eq!(json(&format!("/api/home?{since}&kind=new"))["pages"][0]["importance"], 1.0);
    let oldest = json(&format!("/api/home?{since}&order=oldest"));
    let times: Vec<&str> =
        oldest["pages"].as_array().unwrap().iter().map(|page| page["time"].as_str().unwrap()).collect();
    assert!(times.len() > 2 && times.is_sorted(), "{times:?}");

    // How many pages a site has.
    let sites = json("/api/sites");
    let site = json(&format!("/api/site?host={}", escape(&host(&web))));
    let n_pages = site["n_pages"].as_u64().unwrap();
    assert_eq!(site["pages"].as_array().unwrap().len() as u64, n_pages);
    let info = archive.json(&["status"]);
    for other in [
        &sites["sites"][0]["n_pages"],
        &home["archive"]["n_pages"],
        &info["n_pages"],
        &info["sites"][0]["n_pages"],
    ] {
        assert_eq!(other.as_u64(), Some(n_pages), "{sites} {info}");
    }

    // Whether a version is indexed, and from which importance on.
    let mut kept = Vec::new();
    for url in [web.url("/"), web.url("/limits")] {
        let page = json(&format!("/api/page?url={}", escape(&url)));
        let edits = page["versions"].as_array().unwrap().iter();
        for edit in edits.filter(|edit| edit["event"].is_null() && edit["is_unchanged"] == false) {
            let digits = |key: &str| -> String {
                edit[key].as_str().unwrap().chars().filter(char::is_ascii_digit).take(14).collect()
            };
            let (_, compared, _) =
                face.get(&format!("/web/diff/{}/{}/{url}", digits("before"), digits("time")));
            assert_eq!(edit["is_indexed"], compared.contains("kept in the index"), "{edit}");
            kept.push(edit["is_indexed"] == true);
        }
        let patterns = archive.json(&["plan", "patterns", &url]);
        assert_eq!(patterns[0]["index_threshold"], page["index_threshold"], "{url}");
    }
    assert!(kept.contains(&true), "{kept:?}");
}

#[cfg(feature = "interop")]
#[test]
fn every_page_fits_every_window_and_loads_nothing_from_elsewhere() {
    let (web, archive) = crawled();
    let face = TestDashboard::of(&archive);
    let limits = escape(&web.url("/limits"));
    let (_, home, _) = face.get("/?since=7d&least=0.01");
    let compare =
        home.split("href=\"").find(|part| part.starts_with("/web/diff/") && part.contains("/limits"));
    let paths = [
        "/?since=7d&least=0.01".to_string(),
        format!("/page?url={}", escape(&web.url("/"))),
        format!("/page?url={limits}&show=all"),
        "/sites".to_string(),
        format!("/site/{}", escape(&host(&web))),
        "/plan".to_string(),
        format!("/plan?url={limits}"),
        "/search?q=kilometres".to_string(),
        "/search".to_string(),
        "/changes?op=update&least=0.01".to_string(),
        "/terms?since=1d".to_string(),
        "/articles".to_string(),
        format!("/article?url={limits}"),
        "/calendar".to_string(),
        format!("/notices?place={limits}&least=0.1"),
        format!("/web/*/{}", web.url("/")),
        compare.unwrap().split('"').next().unwrap().to_string(),
    ];
    let serving = Serving::start(&archive);
    let mut viewer = Viewer::start(&[serving.main.trim_start_matches("http://").to_string()]);
    let mut grave = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        for (width, is_dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
            viewer.size(width, 900, is_dark);
            viewer.visit(&format!("{}{path}", serving.main));
            // The load event may belong to the blank page before.
            viewer.until(false, "location.href != 'about:blank' && document.readyState == 'complete'");
            viewer.picture(&format!("dashboard-{number}-{width}-{}", if is_dark { "dark" } else { "light" }));
            let shown = viewer.outside(
                "JSON.stringify([document.documentElement.scrollWidth <= innerWidth, document.querySelectorAll('h1').length, \
                 getComputedStyle(document.documentElement).backgroundColor])",
            );
            let ground = if is_dark { "rgb(21, 23, 26)" } else { "rgb(255, 255, 255)" };
            assert_eq!(shown, format!("[true,1,\"{ground}\"]"), "{path} at {width}");
            assert!(viewer.errors.is_empty(), "{path}: {:?}", viewer.errors);
            let is_ours = |url: &&String| {
                url.starts_with(&serving.main) || url.starts_with("about:") || url.starts_with("data:")
            };
            let elsewhere: Vec<&String> = viewer.requested.iter().filter(|url| !is_ours(url)).collect();
            assert!(elsewhere.is_empty(), "{path}: {elsewhere:?}");
            let found = grave_findings(&mut viewer).into_iter();
            grave.extend(found.map(|finding| format!("{path} at {width}, dark {is_dark}: {finding}")));
        }
    }
    assert!(grave.is_empty(), "{}", grave.join("\n"));
    // A link restores the whole view: inline, without moves, the first change selected.
    let compare = compare.unwrap().split('"').next().unwrap();
    viewer.visit(&format!("{}{compare}#view=inline&show=noise&change=1", serving.main));
    viewer.until(
        false,
        "document.readyState == 'complete' && document.querySelector('.pd-list a[aria-current]') != null",
    );
    let shown = viewer.outside(
        "const after = document.querySelector('[name=pd-after]').contentDocument, gone = after.querySelector('pd-s'); \
         JSON.stringify([document.querySelector('#pd-inline').checked, document.querySelector('#pd-f-moves').checked, gone.textContent, \
         gone.getClientRects().length > 0, document.querySelector('.pd-here').hash])",
    );
    assert_eq!(shown, "[true,false,\"thirty\",true,\"#view=inline&show=noise&change=1\"]");
    // A shortcut key typed into the search field is only a letter.
    viewer.outside("document.querySelector('[type=search]').dispatchEvent(new KeyboardEvent('keydown', {key: 'o', bubbles: true})); 'typed'");
    assert_eq!(viewer.outside("String(document.querySelector('#pd-f-noise').checked)"), "true");
    // A handle stops only at versions.
    let snapped = viewer.outside(
        "const slider = document.querySelector('.pd-slider'), handle = slider.elements.before; \
         handle.value = Number(handle.min) + 60; handle.dispatchEvent(new Event('input')); \
         String(slider.dataset.times.split(' ').includes(handle.value))",
    );
    assert_eq!(snapped, "true");
    // The check itself can fail.
    viewer.outside("document.body.insertAdjacentHTML('beforeend', '<img src=data:,>'); 'added'");
    assert!(grave_findings(&mut viewer).iter().any(|finding| finding.starts_with("image-alt")));
    assert_eq!(viewer.escaped(), Vec::<String>::new());
}

#[test]
fn a_run_serves_the_dashboard_beside_its_crawl_and_says_where() {
    let (web, archive) = (Web::serve(site), Archive::new());
    let args = ["run", &web.url("/"), "--allow-private", "--listen", "127.0.0.1:0", "--budget", "60/1h"];
    let mut child = archive.spawn_with_stderr(&args);
    let mut heard = BufReader::new(child.stderr.take().unwrap()).lines();
    let href =
        heard.find_map(|line| Some(line.ok()?.split_once("the dashboard is at http://")?.1.to_string()));
    let href = href.unwrap();
    let mut stream = TcpStream::connect(href.trim_end_matches('/')).unwrap();
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    // While the crawl runs, home polls for what is being fetched.
    let mut stream = TcpStream::connect(href.trim_end_matches('/')).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut home = String::new();
    stream.read_to_string(&mut home).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(home.contains("connect-src 'self'; script-src 'sha256-"), "{home}");
    assert_eq!(home.matches("<script").count(), 1, "{home}");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
    archive.ended(&["run", &web.url("/"), "--listen", "0.0.0.0:0"], 1);
}

#[test]
fn what_feeds_announced_is_listed_and_shown_with_its_history() {
    let (web, archive) = crawled();
    let face = TestDashboard::of(&archive);
    let (status, list, _) = face.get("/articles");
    assert!(status == 200 && !list.contains("<script") && list.contains("1 article or post"), "{list}");
    let href = format!("/article?url={}", escape(&web.url("/town/1")));
    assert!(list.contains(&href), "{list}");
    let (status, page, policy) = face.get(&href);
    assert!(status == 200 && policy.starts_with("default-src 'none'") && !page.contains("<script"), "{page}");
    assert!(page.contains("Not edited") && page.contains("First seen"), "{page}");
    // Any archived page can be requested, as with `perennial article`.
    let (_, limits, _) = face.get(&format!("/article?url={}", escape(&web.url("/limits"))));
    assert!(limits.contains("<del>thirty</del>") && limits.contains("<ins>fifty</ins>"), "{limits}");
    let (_, shown, _) = face.get(&format!("/page?url={}", escape(&web.url("/limits"))));
    assert!(shown.contains(&format!("/article?url={}", escape(&web.url("/limits")))), "{shown}");
    for (path, expected) in [
        ("/article", 400),
        ("/article?url=https://nowhere.example/", 404),
        ("/articles?skip=x", 400),
        ("/articles?site=nowhere.example", 200),
    ] {
        assert_eq!(face.get(path).0, expected, "{path}");
    }
    let (_, site, _) = face.get(&format!("/site/{}", escape(&host(&web))));
    assert!(site.contains("/articles?site="), "{site}");
}
