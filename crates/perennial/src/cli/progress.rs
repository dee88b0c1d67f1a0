//! Progress of a crawl in one line, and its summary at the end.

use std::io::{IsTerminal, Write};

use indicatif::{DecimalBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use perennial_core::text::untrusted::{shorten, terminal_safe};
use perennial_core::time::Timestamp;
use perennial_core::url::canonical::without_scheme;

use super::Context;
use super::analyse::print_lost_words;
use perennial_crawler::clock::Clock;
use perennial_crawler::{CrawlEvent, CrawlStatus, ExpectedVisit, VisitCounts};

/// The progress line, shown if standard error is a terminal.
pub(super) struct Progress {
    pub(super) bar: ProgressBar,
}

impl Progress {
    pub(super) fn new() -> Progress {
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        });
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {wide_msg}") {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// Prints an event on its own line: above the progress line on a terminal, else with its time.
    pub(super) fn tell(&self, event: &CrawlEvent) {
        let time = Clock::real().now().to_rfc3339();
        let shown = match self.bar.is_hidden() {
            true => time,
            false => time.get(11..19).unwrap_or_default().to_owned(),
        };
        // The reader may be gone, for example a closed pipe. The crawl goes on.
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stderr(), "{}", terminal_safe(&format!("{shown} {event}")));
        });
    }

    pub(super) fn show(&self, status: &CrawlStatus) {
        self.bar.tick();
        let width = terminal_width().saturating_sub(PREFIX_WIDTH);
        self.bar.set_message(progress_line(status, Clock::real().now(), width));
    }

    pub(super) fn warn(&self, context: &Context, text: &str) {
        self.bar.suspend(|| context.note(text));
    }
}

/// Columns of spinner and elapsed time before the message.
const PREFIX_WIDTH: usize = 12;

/// Columns of the terminal on standard error; 80 if unknown.
fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0).unwrap_or(80)
}

/// The progress of a crawl in one line of at most `width` columns; the least important parts are omitted first.
fn progress_line(status: &CrawlStatus, now: Timestamp, width: usize) -> String {
    let VisitCounts { n_visits, n_new, n_changed, n_unchanged, n_failed, .. } = status.pages;
    let doing = match &status.awaited {
        Some(awaited) => idle_words(awaited, now),
        None => format!("{} due, {} in flight", status.n_waiting, status.n_active),
    };
    let pages = format!("{n_visits} pages, {} subresources", status.subresources.n_visits);
    let mut ended = format!("{n_new} new, {n_changed} changed, {n_unchanged} same, {n_failed} failed");
    for (n, what) in rare_endings(&status.pages).into_iter().filter(|(n, _)| *n > 0) {
        ended.push_str(&format!(", {n} {what}"));
    }
    let bytes = DecimalBytes(status.body_bytes).to_string();
    let mut parts = vec![doing, pages, ended, bytes];
    match status.errors_by_host.len() {
        0 => {}
        1 => parts.push("1 failing host".to_owned()),
        n => parts.push(format!("{n} failing hosts")),
    }
    let length = |parts: &[String]| parts.join(" | ").chars().count();
    while parts.len() > 1 && length(&parts) > width {
        parts.pop();
    }
    shorten(&parts.join(" | "), width).into_owned()
}

/// Results that many crawls do not have.
fn rare_endings(counts: &VisitCounts) -> [(u64, &'static str); 4] {
    let VisitCounts { n_gone, n_missing, n_refused, n_redirected, .. } = *counts;
    [(n_gone, "gone"), (n_missing, "missing"), (n_refused, "refused"), (n_redirected, "redirected")]
}

/// As in "idle, next visit at 14:05:30 UTC (example.org/news: last seen 2026-11-17 13:05)".
fn idle_words(awaited: &ExpectedVisit, now: Timestamp) -> String {
    let text = awaited.at.to_rfc3339();
    let (day, time) = (text.get(..10).unwrap_or_default(), text.get(11..19).unwrap_or_default());
    let is_today = now.to_rfc3339().starts_with(day);
    let at = if is_today { format!("{time} UTC") } else { format!("{day} {time} UTC") };
    let place = shorten(without_scheme(&awaited.url), MOST_URL);
    terminal_safe(&format!("idle, next visit at {at} ({place}: {})", awaited.reason)).into_owned()
}

/// Columns of a URL in the progress line.
const MOST_URL: usize = 60;

pub(super) fn print_summary(out: &mut dyn Write, status: &CrawlStatus) -> std::io::Result<()> {
    let words = |endings: &VisitCounts| {
        let VisitCounts { n_new, n_changed, n_unchanged, n_failed, .. } = endings;
        let usual = format!("{n_new} new, {n_changed} changed, {n_unchanged} unchanged, {n_failed} failed");
        let rare = rare_endings(endings).into_iter().filter(|(n, _)| *n > 0);
        rare.fold(usual, |text, (n, what)| format!("{text}, {n} {what}"))
    };
    writeln!(
        out,
        "{} of pages, {} known: {}",
        visits(status.pages.n_visits),
        status.n_known,
        words(&status.pages)
    )?;
    if status.feeds.n_visits > 0 {
        writeln!(
            out,
            "{} polls of feeds: {}; {} new items",
            status.feeds.n_visits,
            words(&status.feeds),
            status.n_items
        )?;
    }
    if status.subresources.n_visits > 0 {
        writeln!(
            out,
            "{} of subresources and sitemaps: {}",
            visits(status.subresources.n_visits),
            words(&status.subresources)
        )?;
    }
    writeln!(
        out,
        "{} received, {} stored",
        DecimalBytes(status.body_bytes),
        DecimalBytes(status.stored_bytes)
    )?;
    if status.n_unread > 0 {
        writeln!(
            out,
            "{} documents were archived but only partly read: see `unread` in crawl.log",
            status.n_unread
        )?;
    }
    print_lost_words(out, status.n_lost_words)?;
    if status.n_given_up > 0 {
        writeln!(out, "{} pages were skipped because their hosts did not respond", status.n_given_up)?;
    }
    for (error, n_visits) in &status.errors {
        writeln!(out, "  {error}: {n_visits}")?;
    }
    print_hints(out, status)
}

fn visits(n: u64) -> String {
    if n == 1 { "1 visit".to_owned() } else { format!("{n} visits") }
}

/// Prints the commands that show failures, if there are any.
fn print_hints(out: &mut dyn Write, status: &CrawlStatus) -> std::io::Result<()> {
    let since = status.began.as_ref().map(|began| format!(" --since {began}")).unwrap_or_default();
    let hints = [
        (!status.errors.is_empty(), "--errors", "lists the hosts with errors"),
        (status.all.n_failed > 0, "--outcome failed", "the visits that failed"),
        (status.all.n_missing > 0, "--outcome missing", "dead links"),
    ];
    let hints: Vec<String> = hints
        .into_iter()
        .filter(|(is_there, ..)| *is_there)
        .map(|(_, option, what)| format!("`perennial log {option}{since}` {what}"))
        .collect();
    match hints.is_empty() {
        true => Ok(()),
        false => writeln!(out, "{}", hints.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn an_idle_crawl_shows_the_next_visit() {
        let reason = "last seen 2026-11-17 13:05".to_owned();
        let url = "https://example.org/news".to_owned();
        let awaited = ExpectedVisit { at: at("2026-11-17T14:05:00Z"), url, reason };
        let status = CrawlStatus { awaited: Some(awaited), ..CrawlStatus::default() };
        let line = progress_line(&status, at("2026-11-17T13:20:00Z"), 200);
        assert!(
            line.starts_with(
                "idle, next visit at 14:05:00 UTC (example.org/news: last seen 2026-11-17 13:05) | "
            ),
            "{line}"
        );
        let line = progress_line(&status, at("2026-11-16T13:20:00Z"), 200);
        assert!(line.starts_with("idle, next visit at 2026-11-17 14:05:00 UTC ("), "{line}");
    }

    #[test]
    fn the_progress_line_fits_every_terminal() {
        let pages = VisitCounts {
            n_visits: 1_234_567,
            n_changed: 1_000_000,
            n_redirected: 3,
            ..VisitCounts::default()
        };
        let status = CrawlStatus { pages, n_waiting: 77, body_bytes: 1 << 40, ..CrawlStatus::default() };
        for width in 0..200 {
            let line = progress_line(&status, at("2026-11-17"), width);
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert_eq!(progress_line(&status, at("2026-11-17"), 22), "77 due, 0 in flight");
        let whole = progress_line(&status, at("2026-11-17"), 200);
        assert!(whole.contains("1234567 pages, 0 subresources") && whole.contains("3 redirected"), "{whole}");
    }
}
