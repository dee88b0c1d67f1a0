//! Captures and what analysis made of them -> the looks from which patterns and schedules are learned.
//!
//! Works for any archive, also one that another crawler filled: every two captures of a page in a row are a look. Where
//! a capture was analysed its importance counts; where it was not, another digest counts as a change of middling
//! importance, and the report says so.

use perennial_core::importance::Importance;
use perennial_core::page::{PageId, SiteId};
use perennial_core::rank::{LinkGraph, page_weight};
use perennial_core::schedule::{PageInfo, ScheduleConfig, Scheduler, VisitOutcome};
use perennial_core::series::SeenChange;
use perennial_core::time::{LocalClock, Span, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::archive::Archive;
use crate::crawl::frontier::Ending;
use crate::settings::Seed;
use crate::store::Store;

/// The rank of a page that no link leads to, beside a mean of 1.
const UNLINKED: f32 = 0.15;

/// What a change counts for when nobody has looked at what changed.
const NOT_ANALYSED: f64 = 0.3;

/// One page's looks, oldest first.
#[derive(Clone, Debug)]
pub struct PageHistory {
    /// Which page.
    pub page: PageId,
    /// Its site.
    pub site: SiteId,
    /// Its address.
    pub url: String,
    /// The first capture.
    pub first: Timestamp,
    /// The last capture.
    pub last: Timestamp,
    /// Each capture after the first, compared with the one before.
    pub looks: Vec<SeenChange>,
    /// Looks at captures that were not analysed yet.
    pub n_not_analysed: usize,
}

/// Which pages' histories are told.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// Everything that was captured: stylesheets and pictures too.
    All,
    /// All that people read.
    Pages,
    /// The pages of this host, or the page with this address.
    Of(&'a str),
}

/// The histories of all pages, of one site's, or of one page, with captures before `until`. A host without a port stands
/// for that host on any port.
pub fn histories(store: &Store, only: Option<&str>, until: Timestamp) -> anyhow::Result<Vec<PageHistory>> {
    let mut histories = Vec::new();
    let which = only.map_or(Which::Pages, Which::Of);
    each_history(store.connection(), which, until, |history| histories.push(history))?;
    Ok(histories)
}

/// Calls `each` with one page's history after the other, so that no more than one is in memory.
pub fn each_history(
    connection: &Connection,
    which: Which<'_>,
    until: Timestamp,
    mut each: impl FnMut(PageHistory),
) -> anyhow::Result<()> {
    let filter = match which {
        Which::All => "?2 IS NULL",
        Which::Pages => "?2 IS NULL AND p.mime LIKE 'text/html%'",
        Which::Of(_) => {
            "(p.url = ?2 OR (s.host = ?2 OR substr(s.host, 1, length(?2) + 1) = ?2 || ':') AND p.mime LIKE 'text/html%')"
        }
    };
    let only = if let Which::Of(only) = which { Some(only) } else { None };
    let mut statement = connection.prepare(&format!(
        "SELECT c.page, p.site, p.url, c.time, c.digest, o.importance, o.is_noise
         FROM captures c JOIN pages p ON p.id = c.page JOIN sites s ON s.id = p.site
         LEFT JOIN observations o ON o.page = c.page AND o.time = c.time
         WHERE (c.kind IN (0, 1) OR c.kind = 3 AND c.mime = 'application/x-vi-delta+xml') AND c.time < ?1
           AND (c.status IS NULL OR c.status IN (200, 304)) AND {filter}
         ORDER BY c.page, c.time"
    ))?;
    let mut rows = statement.query(params![until.as_millis(), only])?;
    let mut current: Option<PageHistory> = None;
    let mut digest_before = String::new();
    while let Some(row) = rows.next()? {
        let page = PageId(row.get(0)?);
        let digest: String = row.get(4)?;
        if let Some(done) = current.take_if(|history| history.page != page) {
            each(done);
        }
        match &mut current {
            Some(history) => history.add(row, digest == digest_before)?,
            None => current = Some(PageHistory::begin(row)?),
        }
        digest_before = digest;
    }
    current.into_iter().for_each(each);
    Ok(())
}

impl PageHistory {
    fn begin(row: &Row<'_>) -> rusqlite::Result<PageHistory> {
        let time = Timestamp::from_millis(row.get(3)?);
        Ok(PageHistory {
            page: PageId(row.get(0)?),
            site: SiteId(row.get(1)?),
            url: row.get(2)?,
            first: time,
            last: time,
            looks: Vec::new(),
            n_not_analysed: 0,
        })
    }

    fn add(&mut self, row: &Row<'_>, has_same_payload: bool) -> rusqlite::Result<()> {
        let time = Timestamp::from_millis(row.get(3)?);
        if time <= self.last {
            return Ok(());
        }
        let (analysed, is_noise): (Option<f64>, Option<bool>) = (row.get(5)?, row.get(6)?);
        let importance = match analysed {
            Some(_) if is_noise == Some(true) => 0.0,
            Some(importance) => importance,
            None if has_same_payload => 0.0,
            None => NOT_ANALYSED,
        };
        self.n_not_analysed += usize::from(analysed.is_none() && !has_same_payload);
        self.looks.push(SeenChange { from: self.last, to: time, importance: Importance::new(importance) });
        self.last = time;
        Ok(())
    }

    /// Tells a scheduler that knows the page all that was seen of it after the first capture.
    pub fn tell(&self, scheduler: &mut Scheduler) {
        for look in &self.looks {
            scheduler.record(self.page, outcome_of(look.importance), look.to);
        }
    }
}

/// Less than this is no reason to come back: a counter that a first look cannot tell from news, a rotated banner.
const TRIFLE: f64 = 0.005;

/// What a scheduler is told of a look: a change that is worth next to nothing is none, or how often it happens would
/// count, and that it is worth nothing would be forgotten.
pub fn outcome_of(importance: Importance) -> VisitOutcome {
    match importance.get() < TRIFLE {
        true => VisitOutcome::Unchanged,
        false => VisitOutcome::Changed(importance),
    }
}

/// Tells the scheduler of a crawl everything that was seen before `now` of the pages it knows, then how the last visits
/// ended that left no capture to compare. Nothing learned is stored twice: rates and patterns are a function of what was
/// seen, and telling it again takes a second a million.
pub fn replay(connection: &Connection, scheduler: &mut Scheduler, now: Timestamp) -> anyhow::Result<()> {
    each_history(connection, Which::All, now + Span::from_millis(1), |history| {
        scheduler.record(history.page, VisitOutcome::Changed(Importance::FULL), history.first);
        history.tell(scheduler);
    })?;
    let mut statement = connection.prepare(
        "SELECT page, visited, ending FROM crawl_pages WHERE kind = 0 AND visited IS NOT NULL AND (ending > 1
           OR page NOT IN (SELECT page FROM captures WHERE kind IN (0, 1) AND (status IS NULL OR status IN (200, 304))))",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let outcome = match Ending::from_code(row.get(2)?) {
            Ending::Changed | Ending::Unchanged => VisitOutcome::Unchanged,
            Ending::Gone => VisitOutcome::Gone,
            Ending::Failed => VisitOutcome::Failed { retry_at: None },
        };
        scheduler.record(PageId(row.get(0)?), outcome, Timestamp::from_millis(row.get(1)?));
    }
    scheduler.learn_now(now);
    Ok(())
}

/// A scheduler that knows what the archive knows, ready to rank at `now`.
pub fn scheduler_of(
    store: &Store,
    histories: &[PageHistory],
    followed: &Followed,
    config: ScheduleConfig,
    now: Timestamp,
) -> anyhow::Result<Scheduler> {
    let ranks = page_ranks(store, &[])?;
    let start = histories.iter().map(|history| history.first).min().unwrap_or(now);
    let mut scheduler = Scheduler::new(config, 0, start);
    let sum: f32 = histories.iter().map(|history| rank_of(&ranks, history.page)).sum();
    let mean = (sum / histories.len().max(1) as f32).max(1e-9);
    for history in histories {
        let weight = followed.weight_of(&history.url, rank_of(&ranks, history.page) / mean);
        let clock = followed
            .clock_of(&history.url)
            .map(|clock| scheduler.add_clock(clock.clone()))
            .unwrap_or_default();
        let info = PageInfo { weight, clock, ..PageInfo::of_site(history.site) };
        scheduler.add_seen_page(history.page, info, history.first);
        history.tell(&mut scheduler);
    }
    scheduler.learn_now(now);
    Ok(scheduler)
}

/// What the user said of the sites that are followed.
#[derive(Clone, Default)]
pub struct Followed(Vec<FollowedSite>);

#[derive(Clone)]
struct FollowedSite {
    url: String,
    /// Scheme, host and port.
    origin: String,
    weight: f64,
    clock: LocalClock,
}

/// Scheme, host and port of an address.
fn origin_of(url: &str) -> Option<String> {
    url::Url::parse(url).ok().map(|url| url[..url::Position::BeforePath].to_owned())
}

impl Followed {
    /// From the archive's settings.
    pub fn of(archive: &Archive) -> Followed {
        let site = |seed: &Seed| FollowedSite {
            origin: seed.scope.seed[..url::Position::BeforePath].to_owned(),
            weight: seed.weight,
            clock: seed.clock.as_deref().cloned().unwrap_or_else(LocalClock::utc),
            url: seed.scope.seed.to_string(),
        };
        Followed(archive.settings().seeds.iter().map(site).collect())
    }

    /// The site of the page's origin whose address begins most like the page's.
    fn site_of(&self, url: &str) -> Option<&FollowedSite> {
        let origin = origin_of(url)?;
        let n_alike = |site: &&FollowedSite| {
            let pairs = site.url.bytes().zip(url.bytes());
            pairs.take_while(|(of_site, of_page)| of_site == of_page).count()
        };
        self.0.iter().filter(|site| site.origin == origin).max_by_key(n_alike)
    }

    /// omega(P) of a page with this PageRank.
    pub fn weight_of(&self, url: &str, page_rank: f32) -> f32 {
        page_weight(page_rank, self.site_of(url).map_or(1.0, |site| site.weight as f32))
    }

    /// The clock by which a page's people live, where the user named one that is not UTC.
    pub fn clock_of(&self, url: &str) -> Option<&LocalClock> {
        self.site_of(url).map(|site| &site.clock).filter(|clock| clock.zone() != "UTC")
    }
}

/// The rank of a page, the least there is where no link leads to it.
pub fn rank_of(ranks: &[f32], page: PageId) -> f32 {
    ranks.get(page.0 as usize).copied().unwrap_or(UNLINKED)
}

/// Why nothing was found under a name, and what there is.
pub fn not_found(store: &Store, name: &str) -> anyhow::Error {
    const MOST: usize = 5;
    let listed = || -> rusqlite::Result<Vec<String>> {
        let sql = "SELECT DISTINCT s.host FROM sites s JOIN pages p ON p.site = s.id ORDER BY s.host";
        store.connection().prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    };
    let hosts = listed().unwrap_or_default();
    let more = match hosts.len().saturating_sub(MOST) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let there = match hosts.is_empty() {
        true => "it is empty, `perennial crawl` or `perennial import` fills it".to_owned(),
        false => format!("it has {}{more}", hosts.into_iter().take(MOST).collect::<Vec<_>>().join(", ")),
    };
    anyhow::anyhow!("no captured page or site `{name}` in this archive: {there}")
}

/// PageRank by page number, over the links between captured pages. `start` may hold earlier ranks. Links to addresses
/// that were never captured lead out of what is known and are left out, as PageRank's authors do with dangling links: a
/// rotating advertisement on every page would else take half of what a page with one other link has to give.
pub fn page_ranks(store: &Store, start: &[f32]) -> anyhow::Result<Vec<f32>> {
    let captured = captured_pages(store)?;
    let mut statement = store.connection().prepare("SELECT page, targets FROM links")?;
    let mut rows = statement.query([])?;
    let mut links: Vec<(u32, u32)> = Vec::new();
    let mut n_pages = 0;
    while let Some(row) = rows.next()? {
        let source: u32 = row.get(0)?;
        let targets: Vec<u8> = row.get(1)?;
        for target in crate::store::decode_targets(&targets) {
            if !captured.get(target as usize).is_some_and(|is_captured| *is_captured) {
                continue;
            }
            n_pages = n_pages.max(source.max(target) as usize + 1);
            links.push((source, target));
        }
    }
    Ok(LinkGraph::from_links(n_pages, links).page_rank(start))
}

/// Which pages were captured, by page number.
fn captured_pages(store: &Store) -> anyhow::Result<Vec<bool>> {
    let mut statement = store.connection().prepare("SELECT id FROM pages WHERE first_seen IS NOT NULL")?;
    let mut rows = statement.query([])?;
    let mut captured = Vec::new();
    while let Some(row) = rows.next()? {
        let page = row.get::<_, u32>(0)? as usize;
        if page >= captured.len() {
            captured.resize(page + 1, false);
        }
        captured[page] = true;
    }
    Ok(captured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::encode_targets;

    #[test]
    fn links_out_of_the_archive_take_nothing_from_those_within() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_write(&dir.path().join("state.db")).unwrap();
        let ranks_with = |targets_of_leaf: &[u32]| {
            let connection = store.connection();
            let rows = "DELETE FROM links; DELETE FROM pages; DELETE FROM sites;
                 INSERT INTO sites (id, host) VALUES (1, 'a.example');
                 INSERT INTO pages (id, url, surt, site, first_seen) VALUES
                     (1, 'http://a.example/', '', 1, 0), (2, 'http://a.example/leaf', '', 1, 0),
                     (3, 'http://a.example/never-captured', '', 1, NULL);";
            connection.execute_batch(rows).unwrap();
            for (page, targets) in [(1, &[2][..]), (2, targets_of_leaf)] {
                let targets = encode_targets(&mut targets.to_vec());
                let row = rusqlite::params![page, targets];
                connection
                    .execute("INSERT INTO links (page, time, targets) VALUES (?1, 0, ?2)", row)
                    .unwrap();
            }
            page_ranks(&store, &[]).unwrap()
        };
        let alone = ranks_with(&[1]);
        assert_eq!(ranks_with(&[1, 3])[1..3], alone[1..3]);
    }
}
