//! Sends the pending notices of the outbox. Each rule has its own thread, so an unresponsive receiver does not delay
//! others.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use perennial_core::notice::pause_secs;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use serde::Serialize;

use super::deliver::{DeliveryFailure, Notifier};
use super::notice::Notice;
use super::notice_maker::{NoticeMaker, open_outbox};
use crate::background::{PageFollower, join};
use perennial_archive::settings::NotifyRule;
use perennial_archive::store::{Outbox, PendingNotice};
use perennial_archive::{Archive, now};

/// Pages per commit.
const MAX_PAGES: usize = 32;
/// At the end of a crawl, no delivery is started after this time. The next start sends the rest.
const MAX_END: Duration = Duration::from_secs(10);
/// An idle sender checks the outbox again after this time.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// The notices sent for one rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SendReport {
    pub rule: String,
    /// Acknowledged notices.
    pub n_sent: u64,
    /// The error of the last failed notice, if any.
    pub error: Option<String>,
}

/// The outcome of a notice during a crawl.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    pub rule: String,
    /// What happened to which page.
    pub headline: String,
    /// Why the receiver did not accept it.
    pub error: Option<String>,
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Delivery { rule, headline, error } = self;
        match error {
            None => write!(f, "notice sent by rule `{rule}`: {headline}"),
            Some(error) => write!(
                f,
                "notice not accepted, rule `{rule}`: {error}; it is sent again later, and `perennial notify test` tries the receiver"
            ),
        }
    }
}

/// Events of a crawl for the threads that send notices.
#[derive(Clone, PartialEq, Debug)]
pub enum WatchNews {
    /// New analyses of a page were committed.
    Analysed(PageId),
    /// A visit of a page showed no page.
    Unseen { url: String, at: Timestamp, reason: String },
}

/// Receives the deliveries of a crawl.
pub type DeliveryReport = Arc<dyn Fn(Delivery) + Send + Sync>;

struct RuleSender {
    rule: NotifyRule,
    outbox: Outbox,
    notifier: Notifier,
    report: Option<DeliveryReport>,
}

impl RuleSender {
    fn open(
        archive: &Archive,
        rule: &NotifyRule,
        report: Option<DeliveryReport>,
    ) -> anyhow::Result<RuleSender> {
        let outbox = Outbox::open_write(&archive.outbox_path())?;
        Ok(RuleSender { rule: rule.clone(), outbox, notifier: Notifier::new(archive)?, report })
    }

    /// Tries to send one notice.
    fn send(&mut self, waiting: &PendingNotice) -> anyhow::Result<Result<(), DeliveryFailure>> {
        let notice: Notice = serde_json::from_str(&waiting.body)?;
        let delivered = self.notifier.deliver(&self.rule, &notice);
        if let Some(report) = &self.report {
            let error = delivered.as_ref().err().map(|failure| failure.text.clone());
            report(Delivery { rule: self.rule.name.clone(), headline: notice.headline(), error });
        }
        match &delivered {
            Ok(()) => self.outbox.put_sent(&self.rule.name, waiting.id, now())?,
            Err(failure) => {
                let n_failures = match failure.is_refused {
                    true => waiting.n_tries,
                    false => self.outbox.n_failures(&self.rule.name)?,
                };
                let again = now() + Span::from_secs(pause_secs(n_failures + 1));
                let (name, text) = (&self.rule.name, &failure.text);
                self.outbox.put_failed(name, waiting.id, text, again, failure.is_refused)?;
            }
        }
        Ok(delivered)
    }

    /// Sends all due notices until `end` returns true.
    fn send_due(&mut self, end: impl Fn() -> bool) -> anyhow::Result<()> {
        while let Some(waiting) = self.outbox.next(&self.rule.name, now(), false, 0)? {
            if end() {
                break;
            }
            // The outbox contains the failure and the time of the next attempt.
            let _ = self.send(&waiting)?;
        }
        Ok(())
    }

    /// Sends notices when they are due, until the wakers are dropped.
    fn run(mut self, wake: &Receiver<()>) -> anyhow::Result<()> {
        loop {
            self.send_due(|| false)?;
            let due = self.outbox.next_due(&self.rule.name)?;
            let wait = due.map_or(MAX_IDLE, |due| {
                Duration::from_millis((due - now()).as_millis().max(1) as u64).min(MAX_IDLE)
            });
            match wake.recv_timeout(wait) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => while wake.try_recv().is_ok() {},
                Err(RecvTimeoutError::Disconnected) => {
                    let began = Instant::now();
                    return self.send_due(|| began.elapsed() > MAX_END);
                }
            }
        }
    }
}

/// Tries every pending notice once, including those with a retry time in the future. After a rejected notice, later
/// ones of the same page are not tried. The caller holds the archive's write lock.
pub fn send_all(archive: &Archive, mut progress: impl FnMut(u64)) -> anyhow::Result<Vec<SendReport>> {
    let mut all = Vec::new();
    for rule in &archive.settings().notify {
        let mut sender = RuleSender::open(archive, rule, None)?;
        let mut sent = SendReport { rule: rule.name.clone(), n_sent: 0, error: None };
        let mut after = 0;
        while let Some(waiting) = sender.outbox.next(&rule.name, now(), true, after)? {
            after = waiting.id;
            match sender.send(&waiting)? {
                Ok(()) => sent.n_sent += 1,
                Err(failure) => {
                    let is_away = !failure.is_refused;
                    sent.error = Some(failure.text);
                    if is_away {
                        break;
                    }
                }
            }
            progress(sent.n_sent);
        }
        all.push(sent);
    }
    Ok(all)
}

/// Starts the threads that store and send notices during a crawl; `None` without rules. One thread stores notices as analyses are
/// committed. One thread per rule sends them.
pub fn start_notifying(
    archive: &Archive,
    report: Option<DeliveryReport>,
) -> anyhow::Result<Option<PageFollower<WatchNews>>> {
    if archive.settings().notify.is_empty() {
        return Ok(None);
    }
    // Rules start before anything is captured, so they cover all that this crawl finds.
    open_outbox(archive)?;
    let archive = archive.clone();
    PageFollower::start("notices", move |news| make_and_send(&archive, report.as_ref(), news)).map(Some)
}

fn make_and_send(
    archive: &Archive,
    report: Option<&DeliveryReport>,
    news: &Receiver<WatchNews>,
) -> anyhow::Result<()> {
    let mut wakers = Vec::new();
    let mut threads = Vec::new();
    for rule in &archive.settings().notify {
        let sender = RuleSender::open(archive, rule, report.cloned())?;
        let (waker, wake) = channel();
        wakers.push(waker);
        let thread = std::thread::Builder::new().name("notices to send".into());
        threads.push(thread.spawn(move || sender.run(&wake))?);
    }
    let made = make_notices(archive, news, &wakers);
    // Senders end when their waker is dropped.
    drop(wakers);
    let sent = threads.into_iter().map(join).collect::<anyhow::Result<Vec<()>>>();
    made.and(sent.map(drop))
}

fn make_notices(archive: &Archive, news: &Receiver<WatchNews>, wakers: &[Sender<()>]) -> anyhow::Result<()> {
    let wake = || {
        for waker in wakers {
            // If a sender ended with an error, joining it returns the error.
            let _ = waker.send(());
        }
    };
    let mut maker = NoticeMaker::open(archive)?;
    maker.catch_up(|_, _| ())?;
    wake();
    while let Ok(first) = news.recv() {
        let (mut pages, mut n_notices) = (Vec::new(), 0);
        for message in std::iter::once(first).chain(news.try_iter().take(MAX_PAGES - 1)) {
            match message {
                WatchNews::Analysed(page) => pages.push(page),
                WatchNews::Unseen { url, at, reason } => n_notices += maker.note_unseen(&url, at, &reason)?,
            }
        }
        pages.sort_unstable();
        pages.dedup();
        n_notices += maker.process(&pages)?;
        if n_notices > 0 {
            wake();
        }
    }
    Ok(())
}
