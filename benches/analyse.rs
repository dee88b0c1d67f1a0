//! How many captures of the living web one core analyses per second, from the stored bytes to the updated pattern. They
//! are read, laid out by the embedded engine, segmented, compared, weighed, stored and recorded in the scheduler.
//!
//! cargo bench -p perennial --features interop --bench analyse

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use perennial::demo::LivingWeb;
use perennial_archive::{Archive, ArchiveWriter, Exchange, ExchangeBody};
use perennial_core::page::importance::Importance;
use perennial_core::schedule::{PageInfo, ScheduleConfig, Scheduler, VisitOutcome};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use perennial_engine::analyse::{AdFilters, Analyst, analyse_backlog};
use perennial_engine::learn;

/// The number of captured versions of each page.
const N_VERSIONS: usize = 12;
/// The number of captures of each page that repeat the previous payload.
const N_SAME: usize = 12;

fn main() -> anyhow::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("render-worker") {
        perennial_render::worker::serve(perennial_render::worker::WorkerLimits::default())?;
        return Ok(());
    }
    let dir = std::env::temp_dir().join(format!("perennial-bench-{}", std::process::id()));
    let archive = Archive::create(&dir)?;
    let measured = measure(&archive);
    std::fs::remove_dir_all(&dir)?;
    measured
}

fn measure(archive: &Archive) -> anyhow::Result<()> {
    let web = LivingWeb::new(1, Timestamp::parse("2026-03-02")?, 14);
    let one_core = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let analyst = Arc::new(Analyst::new(AdFilters::load(None::<&Path>)?)?);
    let mut writer = ArchiveWriter::open(archive)?;
    let (urls, n_bytes) = capture(&mut writer, &web)?;
    let mut n_before = 0;
    for what in ["changed", "unchanged"] {
        if what == "unchanged" {
            capture_again(&mut writer, &web, &urls)?;
        }
        let began = Instant::now();
        let stop = AtomicBool::new(false);
        let done = one_core.install(|| {
            analyse_backlog(archive, writer.store_mut(), &analyst, archive.horizon(), &stop, &|_| ())
        })?;
        let analysed = began.elapsed();
        let (observations, learned) = record_all(archive, web.end + Span::from_hours(48))?;
        let n_new = (observations - n_before).max(1) as f64;
        n_before = observations;
        let secs = analysed.as_secs_f64() + learned.as_secs_f64() * n_new / observations.max(1) as f64;
        let rate = done.n_captures as f64 / secs;
        println!(
            "{what}: {} captures in {secs:.2} s on one core: {rate:.0} a second; {} of them changed, {} layouts by \
             the engine",
            done.n_captures,
            done.n_changed,
            analyst.n_layouts()
        );
    }
    println!(
        "{} pages, {:.1} kB a capture",
        urls.len(),
        n_bytes as f64 / 1e3 / (urls.len() * N_VERSIONS) as f64
    );
    Ok(())
}

/// Records every observation in a scheduler, one by one, as a crawl does.
fn record_all(archive: &Archive, until: Timestamp) -> anyhow::Result<(usize, Duration)> {
    let histories = learn::histories(&archive.store()?, None, until)?;
    let began = Instant::now();
    let start = histories.iter().map(|history| history.first).min().unwrap_or(until);
    let mut scheduler = Scheduler::new(ScheduleConfig::default(), 0, start);
    for history in &histories {
        scheduler.add_seen_page(history.page, PageInfo::for_site(history.site), history.first);
        for observation in &history.observations {
            let outcome = match observation.importance {
                Importance::NONE => VisitOutcome::Unchanged,
                importance => VisitOutcome::Changed(importance),
            };
            scheduler.record(history.page, outcome, observation.to);
        }
    }
    std::hint::black_box(scheduler.belief(PageId(0)));
    Ok((histories.iter().map(|history| history.observations.len()).sum(), began.elapsed()))
}

fn append(
    writer: &mut ArchiveWriter,
    url: &str,
    time: Timestamp,
    mime: &str,
    body: &[u8],
) -> anyhow::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n", body.len());
    writer.append(Exchange {
        url,
        time,
        ip: None,
        request_head: b"",
        request_body: b"",
        response_head: head.as_bytes(),
        body: ExchangeBody::Bytes(body),
        truncated: None,
        metadata: &[],
        derived: &[],
        links: None,
    })?;
    Ok(())
}

/// Captures each page after each of its first changes, if it changes often enough.
fn capture(writer: &mut ArchiveWriter, web: &LivingWeb) -> anyhow::Result<(Vec<(usize, String)>, usize)> {
    let (mut urls, mut n_bytes) = (Vec::new(), 0);
    for site in &web.sites {
        let style = format!("http://{}.localhost/style.css", site.name);
        append(writer, &style, web.start, "text/css", perennial::demo::STYLE.as_bytes())?;
    }
    for (page, living) in web.pages.iter().enumerate() {
        if living.changes.len() < N_VERSIONS {
            continue;
        }
        let url = format!("http://{}.localhost{}", web.sites[living.site].name, living.path);
        for change in &living.changes[..N_VERSIONS] {
            let html = web.html(page, change.at.as_millis().unsigned_abs(), change.at);
            n_bytes += html.len();
            append(writer, &url, change.at, "text/html; charset=utf-8", html.as_bytes())?;
        }
        urls.push((page, url));
    }
    writer.commit()?;
    Ok((urls, n_bytes))
}

fn capture_again(
    writer: &mut ArchiveWriter,
    web: &LivingWeb,
    urls: &[(usize, String)],
) -> anyhow::Result<()> {
    for (page, url) in urls {
        let last = web.pages[*page].changes[N_VERSIONS - 1].at;
        let html = web.html(*page, last.as_millis().unsigned_abs(), last);
        for hour in 1..=N_SAME {
            let time = last + Span::from_hours(hour as i64);
            append(writer, url, time, "text/html; charset=utf-8", html.as_bytes())?;
        }
    }
    writer.commit()?;
    Ok(())
}
