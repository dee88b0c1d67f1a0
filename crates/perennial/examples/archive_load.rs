//! Measures the speed and memory of adding captures to an archive: synthetic pages -> WARC, state, index.
//!
//! `cargo run --release --example archive_load -- DIR N_PAGES [LINKS_PER_PAGE]`; DIR must not exist yet.

use std::time::Instant;

use perennial_archive::{Archive, ArchiveWriter, Exchange, ExchangeBody};
use perennial_core::time::{Span, Timestamp};

/// Number of captures per commit.
const PER_COMMIT: u64 = 2_000;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(dir), Some(n_pages)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: archive_load DIR N_PAGES [LINKS_PER_PAGE]");
    };
    let n_pages: u64 = n_pages.parse()?;
    let n_links: u64 = args.next().map_or(Ok(30), |n| n.parse())?;
    let archive = Archive::create(dir.as_ref())?;
    let mut writer = ArchiveWriter::open(&archive)?;
    let start = Instant::now();
    for n in 0..n_pages {
        append(&mut writer, n, n_pages, n_links)?;
        if (n + 1).is_multiple_of(PER_COMMIT) {
            writer.commit()?;
        }
        if (n + 1).is_multiple_of(n_pages.div_ceil(10)) {
            report(n + 1, start);
        }
    }
    writer.commit()?;
    report(n_pages, start);
    let closing = Instant::now();
    writer.close()?;
    println!("closing with the index: {:.1} s", closing.elapsed().as_secs_f64());
    let counting = Instant::now();
    let counts = archive.store()?.counts(archive.horizon())?;
    println!("counting {} captures: {:.2} s", counts.n_captures, counting.elapsed().as_secs_f64());
    Ok(())
}

fn append(writer: &mut ArchiveWriter, n: u64, n_pages: u64, n_links: u64) -> anyhow::Result<()> {
    let site = |n: u64| format!("http://site{}.example/dir{}/page{n}", n % 500, n % 7_919 / 500);
    let mut body = format!("<!doctype html><title>Page {n}</title><h1>Page {n}</h1>");
    for link in 0..n_links {
        // Most links are to nearby pages, and some to any page.
        let target =
            if link % 5 == 0 { (n * 31 + link * 7_907) % n_pages } else { (n + 500 * link) % n_pages };
        body.push_str(&format!(
            "<p>Some words about page {target}: <a href=\"{}\">see there</a></p>\n",
            site(target)
        ));
    }
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
    writer.append(Exchange {
        url: &site(n),
        time: Timestamp::from_secs(1_700_000_000) + Span::from_secs(n as i64),
        ip: None,
        request_head: b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
        request_body: b"",
        response_head: head.as_bytes(),
        body: ExchangeBody::Bytes(body.as_bytes()),
        truncated: None,
        metadata: &[],
        derived: &[],
        links: None,
    })?;
    Ok(())
}

fn report(n: u64, start: Instant) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory =
        status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("").trim_start_matches("VmHWM:");
    let seconds = start.elapsed().as_secs_f64();
    println!("{n} captures, {:.0}/s, peak memory {}", n as f64 / seconds, memory.trim());
}
