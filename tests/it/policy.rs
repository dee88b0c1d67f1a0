//! The simulator, the plan and the crawl use one scheduler: they make the same visits, page by page and hour by hour.

use std::collections::{HashMap, HashSet};

use perennial_archive::Archive as Opened;
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::schedule::{Budget, VisitOutcome};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use perennial_engine::learn::{self, FollowedSites};
use perennial_lab::drive::drive;

use crate::crawled::Archive;
use crate::web::{Web, html, status};

const N_PAGES: u64 = 12;

/// Page n changes at every (n + 1)th request, the front page never.
fn steady() -> Web {
    serve(N_PAGES, |page, n_before| n_before / (page + 1))
}

/// A site of `n_pages`. The version of a page depends on its number and on the requests before.
fn serve(n_pages: u64, version: impl Fn(u64, u64) -> u64 + Send + Sync + 'static) -> Web {
    Web::serve(move |request| match request.path.as_str() {
        "/" => {
            let links: String =
                (0..n_pages).map(|page| format!("<a href=/d{}/p{page}>{page}</a> ", page % 2)).collect();
            html(&format!("<h1>front</h1>{links}"))
        }
        path => match path.rsplit_once("/p").and_then(|(_, number)| number.parse::<u64>().ok()) {
            Some(page) if page < n_pages => {
                html(&format!("<p>page {page}: {}</p>", version(page, request.n_before as u64)))
            }
            _ => status(404),
        },
    })
}

const LAPSE: [&str; 9] =
    ["run", "--no-serve", "--no-analysis", "--time-lapse", "max", "--start", "2026-01-01", "--delay", "0"];
/// Goals, each with a budget: daily savings, and hourly visits.
const WANTED: [(&str, f64, i64); 2] = [("balanced", 48.0, 24), ("importance", 2.0, 1)];

fn crawl(archive: &Archive, more: &[&str], code: i32) {
    archive.ended(&[&LAPSE[..], more].concat(), code);
}

/// The visits of pages after the first `skipped`, by URL and hour.
fn visits(archive: &Archive, skipped: usize) -> Vec<(String, String)> {
    let log = archive.log();
    let pages = log.iter().filter(|line| line["kind"] == "page").skip(skipped);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    pages.map(|line| (text(&line["url"]), text(&line["time"])[.."2026-01-01T00".len()].to_owned())).collect()
}

/// An archive with one visit of every page.
fn seen_once(web: &Web) -> Archive {
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.ok(&[&LAPSE[..], &["--once"]].concat());
    archive
}

#[test]
fn a_simulation_makes_the_visits_of_a_crawl() {
    for (goal, n_visits, hours) in WANTED {
        are_simulated(goal, Budget { visits: n_visits, period: Span::from_hours(hours) });
    }
}

fn are_simulated(goal: &str, budget: Budget) {
    let web = steady();
    let archive = seen_once(&web);
    archive.append_settings(&format!("\n[crawl]\ngoal = \"{goal}\"\n"));
    let n_first = visits(&archive, 0).len();
    assert_eq!(n_first as u64, N_PAGES + 1);
    // The crawl's scheduler, driven by the simulator.
    let opened = Opened::open(&archive.root).unwrap();
    let store = opened.store().unwrap();
    let followed = FollowedSites::load(&opened, &store).unwrap();
    let start = store.last_visit().unwrap().unwrap();
    let config = learn::schedule_config(&opened.settings().crawl, Some(budget));
    let mut scheduler = learn::scheduler(&store, &followed, config, 0, start).unwrap();
    scheduler.set_spent(n_first as u64, start);
    let url_of = |page: PageId| store.page_url(page).unwrap();
    let mut n_visits: HashMap<String, u64> = HashMap::new();
    let mut simulated: Vec<(String, String)> = Vec::new();
    // The first visits have used up an hourly budget. A daily budget has some left.
    let begin = if budget.period == Span::from_hours(1) { start + budget.period } else { start };
    let end = start + Span::from_hours(72);
    let visit = |page: PageId, now: Timestamp| {
        let url = url_of(page);
        simulated.push((url.clone(), now.to_rfc3339()[.."2026-01-01T00".len()].to_owned()));
        let n_visits_of_page = n_visits.entry(url.clone()).or_insert(1);
        *n_visits_of_page += 1;
        let number = url.rsplit_once("/p").and_then(|(_, number)| number.parse::<u64>().ok());
        let is_changed = number
            .is_some_and(|page| (*n_visits_of_page - 1) / (page + 1) != (*n_visits_of_page - 2) / (page + 1));
        VisitOutcome::from(if is_changed { ChangeStatus::unknown() } else { ChangeStatus::Unchanged })
    };
    drive(&mut scheduler, begin, end, |_, _| {}, visit);
    drop(store);
    let budget = format!("{}/{}h", budget.visits, budget.period.as_hours_f64());
    crawl(&archive, &["--budget", &budget, "--time-limit", "72h"], 15);
    let crawled = visits(&archive, n_first);
    assert!(crawled.len() > 80, "{} visits", crawled.len());
    let n = crawled.len().min(simulated.len());
    assert!(crawled.len().abs_diff(simulated.len()) <= 2, "{} {}", crawled.len(), simulated.len());
    assert_eq!(crawled[..n], simulated[..n], "{goal}");
}

/// The next visits in the plan, those that the crawl then makes, by URL, and the planned reasons.
fn planned_and_made(web: &Web, settings: &str, n: usize) -> [Vec<String>; 3] {
    let archive = seen_once(web);
    archive.append_settings(settings);
    crawl(&archive, &["--time-limit", "100h"], 15);
    let n_before = visits(&archive, 0).len();
    let last = archive.log().last().map(|line| line["time"].as_str().unwrap().to_owned()).unwrap();
    let plan = archive.json(&["plan", "next", "--visits", &n.to_string(), "--at", &last]);
    let column = |name: &str| -> Vec<String> {
        plan.as_array().unwrap().iter().map(|entry| entry[name].as_str().unwrap().to_owned()).collect()
    };
    crawl(&archive, &["--limit", &n.to_string()], 0);
    let made = visits(&archive, n_before).into_iter().map(|(url, _)| url).collect();
    [column("url"), made, column("reason")]
}

#[test]
fn the_planned_visits_are_those_of_the_crawl() {
    // Pages change at each of their first requests and then remain the same. The visits therefore find what the plan
    // expects: nothing.
    let web = serve(30, |page, n_before| n_before.min(4 + page % 3));
    let [planned, made, reasons] =
        planned_and_made(&web, "\n[crawl]\ngoal = \"balanced\"\nbudget = \"150/1d\"\n", 40);
    assert_eq!(planned.len(), 40);
    assert_eq!(planned, made, "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("sweep of ")), "{reasons:?}");
}

#[test]
fn goals_are_settings_of_all_sites_and_of_one() {
    let archive = Archive::new();
    archive.ok(&["add", "https://a.example/", "--goal", "coherent", "--holidays", "2026-12-25"]);
    let rows = archive.json(&["list"]);
    assert_eq!(
        (rows[0]["goal"].as_str(), rows[0]["holidays"][0].as_str()),
        (Some("coherent"), Some("2026-12-25"))
    );
    archive.append_settings("\n[crawl]\ngoal = \"everything\"\n");
    let refused = archive.run(&["list"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && message.contains("every-page") && message.contains("line"),
        "{message}"
    );
}

/// A new archive knows one page of a site, and begins in the middle of an hour. A minute has room for 41 pages that are
/// a second apart.
#[test]
fn a_new_site_is_captured_whole_in_its_first_minute() {
    let web = serve(40, |_, _| 1);
    for budget in ["100/1h", "2400/1d"] {
        let archive = Archive::new();
        archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
        let run =
            ["run", "--no-serve", "--no-analysis", "--time-lapse", "max", "--start", "2026-01-01T11:31:00Z"];
        archive
            .ended(&[&run[..], &["--delay", "1s", "--budget", budget, "--time-limit", "60s"]].concat(), 15);
        let seen: HashSet<String> = visits(&archive, 0).into_iter().map(|(url, _)| url).collect();
        assert_eq!(seen.len(), 41, "{budget}: {seen:?}");
    }
}
