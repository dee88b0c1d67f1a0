//! The crawler never exceeds its budgets: visits per period and bytes per day, for all sites and for one.

use std::collections::BTreeMap;

use crate::crawled::Archive;
use crate::web::{Web, html, status};

/// Pages that change at every request, so any policy would visit them as often as it can.
fn restless(n_pages: usize) -> Web {
    Web::serve(move |request| match request.path.as_str() {
        "/" => {
            let links: String =
                (0..n_pages).map(|page| format!("<a href=/p{page}>page {page}</a> ")).collect();
            html(&format!("<h1>front {}</h1>{links}", request.n_before))
        }
        path if path.starts_with("/p") => {
            let words = "news of the hour ".repeat(300);
            html(&format!("<p>{path} has {words} for the {}th time</p>", request.n_before))
        }
        _ => status(404),
    })
}

/// The same with visible changes: every response contains different words.
fn changing_site(n_pages: usize) -> Web {
    let word = |n: usize| -> String {
        let letters =
            (0..6).map(|at| (b'a' + (n.wrapping_mul(2_654_435_761) >> (5 * at)) as u8 % 26) as char);
        letters.collect()
    };
    Web::serve(move |request| match request.path.as_str() {
        "/" => {
            let links = (0..n_pages).map(|page| format!("<a href=/p{page}>page {page}</a> "));
            html(&format!("<h1>front</h1>{}", links.collect::<String>()))
        }
        path if path.starts_with("/p") => {
            let words: Vec<String> = (0..700).map(|n| word(n + 700 * request.n_before)).collect();
            html(&format!("<p>{path}: {}</p>", words.join(" ")))
        }
        _ => status(404),
    })
}

/// Sums a field of the log, grouped by the first characters of the time. Counts lines if no field is given.
fn sums(archive: &Archive, of: &str, n_letters: usize, field: Option<&str>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in archive.log() {
        let is_counted = field.is_some() || line["kind"] == "page";
        if is_counted && line["url"].as_str().unwrap().starts_with(of) {
            let time = line["time"].as_str().unwrap()[..n_letters].to_owned();
            *sums.entry(time).or_default() += field.map_or(1, |field| line[field].as_u64().unwrap());
        }
    }
    sums
}

const HOUR: usize = "2026-01-01T00".len();
const DAY: usize = "2026-01-01".len();
const LAPSE: [&str; 8] =
    ["run", "--no-serve", "--time-lapse", "max", "--start", "2026-01-01", "--delay", "0"];

fn crawl(archive: &Archive, more: &[&str]) {
    let args: Vec<&str> = LAPSE.iter().chain(more).copied().collect();
    archive.ended(&args, 15);
}

#[test]
fn visits_stay_within_the_budget_of_all_sites_and_of_each() {
    let (small, large) = (restless(20), restless(20));
    let archive = Archive::new();
    archive.ok(&["add", &small.url("/"), "--allow-private", "--budget", "4/1h"]);
    archive.ok(&["add", &large.url("/"), "--allow-private"]);
    crawl(&archive, &["--time-limit", "8h", "--budget", "15/1h"]);
    let (of_small, of_all) = (sums(&archive, &small.url("/"), HOUR, None), sums(&archive, "", HOUR, None));
    assert!(of_small.values().all(|&n| n <= 4), "{of_small:?}");
    assert!(of_all.values().all(|&n| n <= 15), "{of_all:?}");
    assert!(of_small.values().sum::<u64>() >= 24, "the small site gets its share: {of_small:?}");
    assert!(of_all.values().sum::<u64>() >= 80, "the budget is used: {of_all:?}");
    archive.verify();
}

#[test]
fn bytes_of_a_day_stay_within_the_budget() {
    let web = changing_site(20);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    crawl(&archive, &["--time-limit", "5d", "--bytes-per-day", "400kB"]);
    let days = sums(&archive, "", DAY, Some("body_bytes"));
    assert!(days.values().all(|&bytes| bytes <= 400_000), "{days:?}");
    let last = days.values().last().copied().unwrap_or_default();
    assert!(last >= 300_000, "once sizes and habits of pages are known, a day's bytes are used: {days:?}");
}

#[test]
fn a_restart_does_not_renew_the_budget() {
    let web = restless(20);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.append_settings("\n[crawl]\nbudget = \"6/1h\"\n");
    for _ in 0..4 {
        crawl(&archive, &["--time-limit", "12m"]);
    }
    let hours = sums(&archive, "", HOUR, None);
    assert!(hours.values().all(|&n| n <= 6), "{hours:?}");
}
