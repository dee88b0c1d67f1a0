//! SIGKILL at random moments: in the end every page is captured, the archive is consistent, and little was fetched
//! twice.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perennial_core::rng::Rng;

use crate::crawled::Archive;
use crate::wait::{dawdle, wait_until};
use crate::web::{Reply, Web, WebRequest, html, status};

const N_PAGES: usize = 500;
const N_CONNECTIONS: usize = 2;
const N_KILLS: usize = 60;

/// How many more pages the site serves. Further requests wait forever. Even on a slow machine, no crawl gets further
/// than the test wants before it is killed.
type Allowance = Arc<AtomicUsize>;

/// Every page is reachable from the first, by a tree and by cross links.
fn site(request: &WebRequest, allowance: &Allowance) -> Reply {
    match request.path.trim_start_matches("/p").parse::<usize>() {
        Ok(n) if n < N_PAGES => {
            let take = |left: usize| left.checked_sub(1);
            if allowance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                return Reply::Silence;
            }
            let links: String = (0..6)
                .map(|k| if k < 4 { n * 4 + k + 1 } else { (n * 7 + k * 31) % N_PAGES })
                .filter(|&to| to < N_PAGES)
                .map(|to| format!("<a href=/p{to}>{to}</a>"))
                .collect();
            html(&format!("page {n} {links}"))
        }
        _ => status(404),
    }
}

#[test]
fn sixty_kills_lose_nothing() {
    let allowance = Allowance::default();
    let web = Web::serve({
        let allowance = allowance.clone();
        move |request| site(request, &allowance)
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/p0"), "--allow-private"]);
    let connections = N_CONNECTIONS.to_string();
    let args = ["run", "--once", "--delay", "0", "--connections", &connections];
    let mut rng = Rng::new(7);
    let mut n_answered = 0;
    for kill in 0..N_KILLS {
        // With none allowed, the kill hits while the archive is opened and repaired.
        let n_allowed = rng.below(13);
        let pause = Duration::from_micros(rng.bits() % if n_allowed == 0 { 40_000 } else { 4000 });
        allowance.store(n_allowed, Ordering::Relaxed);
        let mut child = archive.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the requests that are allowed", || {
            if let Some(status) = child.try_wait().unwrap() {
                let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
                panic!("crawl {kill} ended before it was killed: {status}: {said}");
            }
            allowance.load(Ordering::Relaxed) == 0
        });
        dawdle(pause);
        child.kill().unwrap();
        child.wait().unwrap();
        n_answered += n_allowed;
    }
    let allowed_at_last = 2 * N_PAGES;
    allowance.store(allowed_at_last, Ordering::Relaxed);
    archive.ok(&args);
    n_answered += allowed_at_last - allowance.load(Ordering::Relaxed);
    for n in 0..N_PAGES {
        assert!(web.n_requests(&format!("/p{n}")) >= 1, "page {n} was lost");
    }
    let rows = archive.json(&["list"]);
    assert_eq!((rows[0]["n_pages"].as_u64(), rows[0]["n_visited"].as_u64()), (Some(500), Some(500)));
    let n_twice = n_answered - N_PAGES;
    println!("{n_twice} of {n_answered} fetched again");
    assert!(n_twice <= N_KILLS * N_CONNECTIONS, "{n_twice} fetched again after {N_KILLS} kills");
    archive.verify();
}
