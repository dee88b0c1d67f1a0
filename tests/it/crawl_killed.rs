//! SIGKILL at random moments: in the end every page is there, the archive is sound, little was fetched twice.

use std::time::{Duration, Instant};

use crate::crawled::Archive;
use crate::web::{Asked, Reply, Web, html, status};

const N_PAGES: usize = 500;
const N_CONNECTIONS: usize = 2;

/// Every page can be reached from the first, by a tree and by links across.
fn site(asked: &Asked) -> Reply {
    match asked.path.trim_start_matches("/p").parse::<usize>() {
        Ok(n) if n < N_PAGES => {
            let links: String = (0..6)
                .map(|k| if k < 4 { n * 4 + k + 1 } else { (n * 7 + k * 31) % N_PAGES })
                .filter(|&to| to < N_PAGES)
                .map(|to| format!("<a href=/p{to}>{to}</a>"))
                .collect();
            std::thread::sleep(Duration::from_millis(1));
            html(&format!("page {n} {links}"))
        }
        _ => status(404),
    }
}

#[test]
fn fifty_kills_lose_nothing() {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/p0"), "--allow-private"]);
    let n_pages_asked = || web.asked().iter().filter(|asked| asked.path.starts_with("/p")).count();
    let connections = N_CONNECTIONS.to_string();
    let args = ["crawl", "--once", "--delay", "0", "--connections", &connections];
    let mut chance = 7u64;
    let mut next = |below: u64| {
        chance = chance.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (chance >> 33) % below
    };
    let mut n_kills = 0;
    while n_kills < 60 {
        let kill_at = n_pages_asked() + 1 + next(10) as usize;
        let pause = Duration::from_micros(next(4000));
        let mut child = archive.spawn(&args);
        let started = Instant::now();
        while n_pages_asked() < kill_at && child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(60), "the crawl stands still");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(pause);
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        n_kills += 1;
    }
    assert!(n_kills >= 50, "only {n_kills} kills before the crawl was done");
    archive.ok(&args);
    for n in 0..N_PAGES {
        assert!(web.n_asked(&format!("/p{n}")) >= 1, "page {n} was lost");
    }
    let rows = archive.json(&["list"]);
    assert_eq!((rows[0]["n_pages"].as_u64(), rows[0]["n_visited"].as_u64()), (Some(500), Some(500)));
    let n_twice = n_pages_asked() - N_PAGES;
    assert!(n_twice <= n_kills * N_CONNECTIONS, "{n_twice} fetched again after {n_kills} kills");
    archive.verify();
}
