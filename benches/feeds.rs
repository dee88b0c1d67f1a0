//! Feeds -> the time to read them and to plan their polls on one core, and the memory per feed.
//!
//! cargo bench -p perennial-core --bench feeds
//!
//! experiments/feeds contains the results.

use std::collections::BTreeSet;

use divan::{Bencher, black_box};
use perennial_core::feed::polling::{MAX_TIMES, PollLimits, PublishingHistory};
use perennial_core::feed::{self, PollHints};
use perennial_core::rng::Rng;
use perennial_core::time::{Span, Timestamp};

fn main() {
    divan::main();
}

fn start() -> Timestamp {
    Timestamp::from_secs(1_772_000_000 / 3600 * 3600)
}

/// Feeds with 20 items each. Some publish every few minutes, some once a month.
fn feeds(n_feeds: usize) -> Vec<PublishingHistory> {
    let mut rng = Rng::new(1);
    let one = |rng: &mut Rng| {
        let every_hours = 0.1 * 7200f64.powf(rng.unit());
        let times = (0..20)
            .map(|n| start() - Span::from_secs((3600.0 * every_hours * (f64::from(n) + rng.unit())) as i64));
        let times: Vec<Timestamp> = times.collect();
        let mut publishing = PublishingHistory::default();
        publishing.read(times, 20, 1, &PollHints::default(), start());
        publishing
    };
    (0..n_feeds).map(|_| one(&mut rng)).collect()
}

/// A day of a hundred thousand feeds: the queue returns every poll, which is planned again and put back. One poll in
/// three finds an item.
#[divan::bench(args = [100_000], sample_count = 5, sample_size = 1)]
fn plan_a_day(bencher: Bencher<'_, '_>, n_feeds: usize) {
    let n_bytes =
        size_of::<PublishingHistory>() + MAX_TIMES * size_of::<u32>() + 2 * size_of::<(Timestamp, u32)>();
    assert!(n_bytes < 500, "{n_bytes} bytes a feed");
    let limits = PollLimits::default();
    bencher.with_inputs(|| feeds(n_feeds)).bench_local_values(|mut feeds| {
        let due = |feed: &PublishingHistory, at: Timestamp| feed.next_poll(at, &limits);
        let mut queue: BTreeSet<(Timestamp, usize)> =
            feeds.iter().enumerate().map(|(n, feed)| (due(feed, start()), n)).collect();
        let mut n_polls = 0u64;
        while let Some((at, n)) = queue.pop_first().filter(|(at, _)| *at < start() + Span::from_hours(24)) {
            n_polls += 1;
            match n_polls % 3 {
                0 => feeds[n].read([at], 20, 1, &PollHints::default(), at),
                _ => feeds[n].unchanged(),
            }
            queue.insert((due(&feeds[n], at), n));
        }
        black_box(n_polls)
    });
}

/// A feed of 50 items with 1 kB of HTML each.
#[divan::bench]
fn read(bencher: Bencher<'_, '_>) {
    let text =
        "&lt;p&gt;Some words &lt;a href=&quot;x&quot;&gt;and a link&lt;/a&gt; of an article.&lt;/p&gt; "
            .repeat(10);
    let item = |n: u32| {
        format!(
            "<item><title>Headline {n}</title><link>http://e.org/{n}</link><guid>id-{n}</guid>\
             <pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate><description>{text}</description></item>"
        )
    };
    let items: String = (0..50).map(item).collect();
    let rss = format!("<rss version=\"2.0\"><channel><title>T</title>{items}</channel></rss>");
    bencher.counter(divan::counter::BytesCount::new(rss.len())).bench_local(|| {
        feed::parse(black_box(rss.as_bytes()), None, "http://e.org/").map(|feed| feed.items.len())
    });
}
