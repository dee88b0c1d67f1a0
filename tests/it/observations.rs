//! The result of a visit is the same everywhere: in the log, the analyses, the patterns and the schedule, and after a
//! restart.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use perennial_archive::store::{
    Analysis, ChangeFilter, ChangeKey, ChangeOrder, ChangeRow, NewTree, Observation, ObservationOrder,
    ObservationSelection, PackedTree, Store,
};
use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::page::change_status::{ChangeStatus, PreviousResponse};
use perennial_core::page::segment::{BlockTree, Text};
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};
use proptest::prelude::*;
use rusqlite::{Connection, params};

use crate::crawled::Archive;
use crate::web::{Reply, Web, WebRequest, html, status};

fn of_type(mime: &str, body: String) -> Reply {
    Reply::Page(200, vec![("Content-Type", mime.to_string())], body.into_bytes())
}

/// Pages of every kind. In the second half of the visits `/leaving` is gone and `/pointer` redirects to a different
/// URL.
fn site(request: &WebRequest) -> Reply {
    let n = request.n_before;
    match request.path.as_str() {
        "/" => html(
            "<h1>All kinds of pages</h1><a href=/report>report</a><a href=/data>data</a><a href=/steady>steady</a>
             <a href=/pointer>pointer</a><a href=/x>x</a><a href=/leaving>leaving</a>",
        ),
        "/report" => of_type("application/pdf", format!("%PDF-1.7 edition {n}")),
        "/data" => of_type("application/json", format!("{{\"edition\": {}}}", n / 2)),
        "/steady" => Reply::Page(302, vec![("Location", "/".into())], Vec::new()),
        "/pointer" => {
            let to = if n < 3 { "/steady" } else { "/" };
            Reply::Page(302, vec![("Location", to.into())], Vec::new())
        }
        "/x" => of_type(
            "application/xhtml+xml",
            format!("<html xmlns='http://www.w3.org/1999/xhtml'><body><h1>News {n}</h1><p>Words that stay.</p></body></html>"),
        ),
        "/leaving" if n < 3 => html("<h1>Leaving soon</h1><p>Read it while it is there.</p>"),
        _ => status(404),
    }
}

const FIRST: i64 = 0;
const SAME: i64 = 1;
const NOISE: i64 = 2;
const CHANGED: i64 = 3;
const UNJUDGED: i64 = 4;
const ABSENT: i64 = 5;
const VANISHED: i64 = 6;
const REDIRECTED: i64 = 7;

#[test]
fn every_observation_has_an_analysis() {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "9d");
    let of = |path: &str| archive.seen(&web.url(path));
    assert_eq!(of("/")[0], FIRST);
    assert!(of("/")[1..].iter().all(|&seen| seen == SAME));
    // Every response is different, and its importance is unknown. In the end it counts as noise.
    let report = of("/report");
    assert!(report.len() >= 30 && report[1..5].iter().all(|&seen| seen == UNJUDGED), "{report:?}");
    assert!(report[5..].iter().all(|&seen| seen == NOISE), "{report:?}");
    assert_eq!(of("/data")[..5], [FIRST, SAME, CHANGED, SAME, CHANGED]);
    // A redirect is not a page. It is unchanged while its status and target are. It is visited after 1, 2 and 4 more
    // days.
    assert_eq!(of("/steady"), [ABSENT; 4]);
    assert_eq!(of("/pointer")[..4], [ABSENT, ABSENT, ABSENT, REDIRECTED]);
    assert_eq!(of("/leaving")[..4], [FIRST, SAME, SAME, VANISHED]);
    assert!(of("/leaving")[4..].iter().all(|&seen| seen == ABSENT));
    let lines = archive.log();
    let redirects: Vec<_> = lines.iter().filter(|line| line["url"] == web.url("/steady")).collect();
    assert!(redirects.iter().all(|line| line["outcome"] == "redirected"), "{redirects:?}");
}

#[test]
fn xhtml_and_documents_without_layout_are_in_patterns_and_schedule() {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("1h", "6h");
    let schedule = archive.ok(&["plan", "next", "--json", "--at", "2026-01-01T07:00:00Z", "--top", "100"]);
    let patterns = archive.ok(&["plan", "patterns", "--json", "--top", "100"]);
    for path in ["/x", "/report", "/data"] {
        let quoted = format!("{:?}", web.url(path));
        assert!(schedule.contains(&quoted), "{path} is not in {schedule}");
        assert!(patterns.contains(&quoted), "{path} is not in {patterns}");
    }
}

/// A restart in the middle with a rebuilt state gives the same analyses as an undisturbed crawl.
#[test]
fn a_restart_does_not_change_what_was_learned() {
    let analyses = |disturb: bool| {
        let web = Web::serve(site);
        let archive = Archive::new();
        archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
        archive.lapse("1h", "3h");
        if disturb {
            archive.ok(&["verify", "--rebuild"]);
        }
        archive.lapse("1h", "3h");
        let paths = ["/", "/report", "/data", "/steady", "/pointer", "/x", "/leaving"];
        paths.map(|path| archive.seen(&web.url(path)))
    };
    assert_eq!(analyses(true), analyses(false));
}

/// After an upgrade the last tree of a page is of an earlier engine, whose texts lacked the names of links.
#[test]
fn a_tree_of_an_earlier_engine_is_made_again_before_it_is_compared() {
    static IS_OUT: AtomicBool = AtomicBool::new(false);
    let web = Web::serve(|_| {
        let verb = if IS_OUT.load(Ordering::Relaxed) { "has resigned" } else { "stays in office" };
        html(&format!("<h1>News of the day</h1><p>The minister, <a href=/a>Anna Ahn</a>, {verb}."))
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("1h", "2h");
    let path = archive.path().join("state.db");
    let mut store = Store::open_write(&path).unwrap();
    let page = store.page(&web.url("/")).unwrap().unwrap().id;
    let state = store.page_state(page).unwrap().unwrap();
    let mut tree = state.read_tree().unwrap().unwrap().into_owned();
    let engine = std::mem::replace(&mut tree.engine, "perennial-render/0.0.9 cut/3".into());
    for block in &mut tree.blocks {
        block.texts = vec![Text::new("News of the day"), Text::new("The minister, , stays in office.")];
    }
    tree.seal();
    let time = state.tree.as_ref().unwrap().0;
    let analysis = Analysis {
        page,
        time,
        before: None,
        status: ChangeStatus::New,
        n_operations: 0,
        noise_of_operations: None,
        is_indexed: true,
        tree: Some(NewTree::following(PackedTree::of(&tree).unwrap(), None).unwrap()),
        remade_before: None,
        summary: None,
        title: None,
        title_before: None,
        items: Vec::new(),
    };
    store.write(|commit| commit.put_analysis(&analysis)).unwrap();
    assert_eq!(store.tree_at(page, time).unwrap().unwrap().engine, tree.engine);
    drop(store);
    IS_OUT.store(true, Ordering::Relaxed);
    archive.lapse("1h", "2h");
    let store = Store::open_write(&path).unwrap();
    let mut changes = Vec::new();
    let add = |row: ChangeRow| {
        changes.push((row.before, row.time, row.n_operations));
        Ok(())
    };
    let url = web.url("/");
    store.each_change(&ChangeFilter { url: Some(&url), ..ChangeFilter::default() }, add).unwrap();
    let changed: Vec<_> = changes.iter().filter(|(.., n_operations)| *n_operations > 0).collect();
    let [(Some(before), after, 1)] = changed[..] else { panic!("{changes:?}") };
    let [before, after] = [before, after].map(|time| store.tree_at(page, *time).unwrap().unwrap());
    assert_eq!([&before.engine, &after.engine], [&engine; 2]);
    let texts = |tree: &BlockTree| -> Vec<String> {
        tree.leaves().flat_map(|leaf| leaf.words().map(str::to_owned)).collect()
    };
    assert_eq!(texts(&before)[1], "The minister, Anna Ahn, stays in office.");
    assert_eq!(texts(&after)[1], "The minister, Anna Ahn, has resigned.");
}

/// A capture in the state: page, second, response if it is an observation, identity, and the status of its analysis.
type Row = (u32, i64, Option<i64>, u8, Option<i64>);

const N_PAGES: u32 = 4;

fn captures() -> impl Strategy<Value = Vec<Row>> {
    let answer =
        prop_oneof![6 => Just(Some(0)), 2 => Just(Some(1)), 4 => (2i64..5).prop_map(Some), 1 => Just(None)];
    let analysis = prop_oneof![4 => (0i64..9).prop_map(Some), 1 => Just(None)];
    // Some pages must have an analysis of every capture; the last page always does.
    let any = (1..N_PAGES, 0i64..40, answer, 0u8..3, analysis);
    let learned = (Just(N_PAGES), 0i64..40, Just(Some(0)), 0u8..3, (0i64..9).prop_map(Some));
    prop::collection::vec(prop_oneof![2 => any, 1 => learned], 0..60)
}

/// A state with these rows, written without the program.
fn state_of(rows: &[Row]) -> (tempfile::TempDir, Store, Vec<Row>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    drop(Store::open_write(&path).unwrap());
    let state = Connection::open(&path).unwrap();
    state
        .execute_batch(
            "PRAGMA foreign_keys = OFF; BEGIN; INSERT INTO sites VALUES (1, 'a.example'), (2, 'b.example');",
        )
        .unwrap();
    let mut kept = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        let (page, second, answer, identity, analysis) = *row;
        let is_again = kept.iter().any(|known: &Row| (known.0, known.1) == (page, second));
        if page == N_PAGES && is_again {
            continue;
        }
        kept.push(*row);
        let values = params![
            n as i64 + 1,
            page,
            second * 1000,
            answer,
            format!("sha1:{identity}"),
            identity_of(answer, identity)
        ];
        state
            .execute(
                "INSERT INTO captures (id, page, time, kind, digest, file, offset, length, group_offset, group_length, answer, identity)
                 VALUES (?1, ?2, ?3, 0, ?5, 1, ?1, 1, ?1, 1, ?4, ?6)",
                values,
            )
            .unwrap();
        // Only observations have analyses.
        if let (Some(0..4), Some(seen)) = (answer, analysis) {
            let sql = "INSERT OR IGNORE INTO lessons (page, time, seen, importance, n_operations, is_indexed) VALUES (?1, ?2, ?3, 0.5, 1, 1)";
            state.execute(sql, params![page, second * 1000, seen]).unwrap();
        }
    }
    for page in 1..=N_PAGES {
        let n = kept.iter().filter(|row| row.0 == page).count();
        let sql = "INSERT INTO pages (id, url, surt, site, n_captures, kind) VALUES (?1, ?2, ?2, ?3, ?4, 0)";
        state
            .execute(sql, params![page, format!("http://a.example/{page}"), 1 + page % 2, n as i64])
            .unwrap();
    }
    state.execute_batch("COMMIT").unwrap();
    drop(state);
    let store = Store::open_write(&path).unwrap();
    (dir, store, kept)
}

fn identity_of(answer: Option<i64>, identity: u8) -> String {
    match answer {
        Some(2) => format!("301 http://{identity}.example/"),
        Some(3) => "404".to_owned(),
        _ => format!("sha256:{identity}"),
    }
}

fn kind_of(answer: i64) -> ResponseKind {
    [ResponseKind::Content, ResponseKind::NotModified, ResponseKind::Redirect, ResponseKind::Gone]
        [answer as usize]
}

fn status_of(code: i64) -> ChangeStatus {
    let half = perennial_core::page::importance::Importance::new(0.5);
    [
        ChangeStatus::New,
        ChangeStatus::Unchanged,
        ChangeStatus::NoiseOnly,
        ChangeStatus::Changed(half),
        ChangeStatus::Unknown(half),
        ChangeStatus::Absent,
        ChangeStatus::Vanished,
        ChangeStatus::Redirected(half),
        ChangeStatus::Returned,
    ][code as usize]
}

/// The observations before an instant, computed by definition from one capture after the other.
fn plainly(rows: &[Row], until: i64) -> Vec<Observation> {
    let mut analyses: BTreeMap<(u32, i64), i64> = BTreeMap::new();
    for (page, second, answer, _, analysis) in rows {
        if let (Some(0..4), Some(seen)) = (answer, analysis) {
            analyses.entry((*page, *second)).or_insert(*seen);
        }
    }
    let mut observations = Vec::new();
    for page in 1..=N_PAGES {
        let mut of_page: Vec<&Row> = rows.iter().filter(|row| row.0 == page && row.1 < until).collect();
        of_page.retain(|row| matches!(row.2, Some(0..4)));
        of_page.sort_by_key(|row| row.1);
        of_page.dedup_by_key(|row| row.1);
        let (mut before, mut was_page) = (None::<Identity>, false);
        for (_, second, answer, identity, _) in of_page {
            let (answer, identity) = (answer.unwrap(), Identity::parse(&identity_of(*answer, *identity)));
            let analysis = analyses.get(&(page, *second));
            let between = ChangeStatus::between(
                before.as_ref().map(|identity| PreviousResponse { identity, was_page }),
                kind_of(answer),
                &identity,
            );
            observations.push(Observation {
                page: PageId(page),
                site: SiteId(1 + page % 2),
                time: Timestamp::from_secs(*second),
                status: analysis.map_or_else(|| between.unwrap(), |code| status_of(*code)),
                is_analysed: analysis.is_some(),
            });
            was_page |= answer <= 1;
            before = Some(identity);
        }
    }
    observations
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn observations_follow_the_rule_however_they_are_read(rows in captures(), until in 0i64..45) {
        let (_dir, store, rows) = state_of(&rows);
        let read = |selection, order| {
            let mut observations = Vec::new();
            store.observations(selection, order, Timestamp::from_secs(until), |observation| {
                observations.push(observation);
                Ok(())
            }).unwrap();
            observations
        };
        let plain = plainly(&rows, until);
        let only = |keep: &dyn Fn(&Observation) -> bool| plain.iter().filter(|observation| keep(observation)).cloned().collect::<Vec<_>>();
        prop_assert_eq!(read(ObservationSelection::Pages, ObservationOrder::ByPage), plain.clone());
        prop_assert_eq!(read(ObservationSelection::Of("a.example"), ObservationOrder::ByPage), only(&|observation| observation.site == SiteId(1)));
        prop_assert_eq!(read(ObservationSelection::Of("http://a.example/4"), ObservationOrder::ByPage), only(&|observation| observation.page == PageId(4)));
        let by_time = |mut observations: Vec<Observation>| {
            observations.sort_by_key(|observation| (observation.time, observation.page));
            observations
        };
        prop_assert_eq!(read(ObservationSelection::Pages, ObservationOrder::ByTime), by_time(plain.clone()));
        prop_assert_eq!(read(ObservationSelection::Of("a.example"), ObservationOrder::ByTime), by_time(only(&|observation| observation.site == SiteId(1))));
    }
}

#[test]
fn the_strongest_changes_come_in_the_same_order_by_the_index_and_by_sorting() {
    let (dir, store, _) = state_of(&[(1, 0, Some(0), 0, None)]);
    drop(store);
    let path = dir.path().join("state.db");
    let state = Connection::open(&path).unwrap();
    // More observations than are sorted at once, many of them equally important.
    state
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 14999)
             INSERT INTO lessons (page, time, seen, importance, n_operations, is_indexed)
             SELECT 1 + i % 4, 1000 * (i / 3 * 7919 % 5000) + i % 3, i % 9, (i * 31 % 7) / 7.0, i % 2, 1 FROM n WHERE true
             ON CONFLICT DO NOTHING;",
        )
        .unwrap();
    drop(state);
    let store = Store::open_write(&path).unwrap();
    for (since, until, least) in
        [(None, None, 0.0), (Some(100), Some(4_900), 0.0), (None, None, 0.4), (Some(4_000), None, 0.0)]
    {
        let filter = ChangeFilter {
            since: since.map(Timestamp::from_secs),
            until: until.map(Timestamp::from_secs),
            min_importance: least,
            ..ChangeFilter::default()
        };
        let mut expected = store.change_keys(&filter, ChangeOrder::Oldest, None, usize::MAX).unwrap();
        ChangeOrder::Strongest.arrange(&mut expected, None);
        assert!(expected.len() > 1_000);
        assert_eq!(store.is_sorted_by(&filter, ChangeOrder::Strongest).unwrap(), since != Some(4_000));
        let mut listed: Vec<ChangeKey> = Vec::new();
        loop {
            let more = store.change_keys(&filter, ChangeOrder::Strongest, listed.last(), 700).unwrap();
            let is_end = more.len() < 700;
            listed.extend(more);
            if is_end {
                break;
            }
        }
        assert!(listed == expected, "{since:?} {until:?} {least}: {} of {}", listed.len(), expected.len());
    }
}
