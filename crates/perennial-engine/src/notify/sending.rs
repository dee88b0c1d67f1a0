//! What waits in the outbox -> sent, by a thread a rule, so that a receiver that does not answer holds up no other.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use perennial_core::notice::pause_secs;
use perennial_core::time::Span;
use perennial_core::url::PageId;
use serde::Serialize;

use super::deliver::{DeliveryFailure, Notifier};
use super::notice::Notice;
use super::notice_maker::{NoticeMaker, open_outbox};
use crate::background::{PageFollower, join, next_pages};
use perennial_archive::settings::NotifyRule;
use perennial_archive::store::{Outbox, Waiting};
use perennial_archive::{Archive, now};

/// Pages that are taken in at a time.
const MAX_PAGES: usize = 32;
/// At the end of a crawl nothing more is begun after this; it is sent the next time.
const MAX_END: Duration = Duration::from_secs(10);
/// A sender that waits for nothing looks again after this.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// What one rule has sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SendReport {
    /// Its name.
    pub rule: String,
    /// Notices that were taken.
    pub n_sent: u64,
    /// Why the last one was not taken, if one was not.
    pub error: Option<String>,
}

/// Sends the notices of one rule.
struct RuleSender {
    rule: NotifyRule,
    outbox: Outbox,
    notifier: Notifier,
}

impl RuleSender {
    fn open(archive: &Archive, rule: &NotifyRule) -> anyhow::Result<RuleSender> {
        let outbox = Outbox::open_write(&archive.outbox_path())?;
        Ok(RuleSender { rule: rule.clone(), outbox, notifier: Notifier::new(archive)? })
    }

    /// Tries one notice.
    fn send(&mut self, waiting: &Waiting) -> anyhow::Result<Result<(), DeliveryFailure>> {
        let notice: Notice = serde_json::from_str(&waiting.body)?;
        let delivered = self.notifier.deliver(&self.rule, &notice);
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

    /// Sends what may be sent until `end` says that it is enough.
    fn send_due(&mut self, end: impl Fn() -> bool) -> anyhow::Result<()> {
        while let Some(waiting) = self.outbox.next(&self.rule.name, now(), false, 0)? {
            if end() {
                break;
            }
            // A failure is in the outbox, with the time of the next try.
            let _ = self.send(&waiting)?;
        }
        Ok(())
    }

    /// Sends whenever something is due, until nobody wakes it any more.
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

/// Tries everything that waits once, also what has a pause; of a page that is refused nothing later is tried. The caller holds the archive's write
/// lock.
pub fn send_all(archive: &Archive, mut progress: impl FnMut(u64)) -> anyhow::Result<Vec<SendReport>> {
    let mut all = Vec::new();
    for rule in &archive.settings().notify {
        let mut sender = RuleSender::open(archive, rule)?;
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

/// Starts the threads that store and send notices beside a crawl; `None` without rules. One thread stores notices as analyses are
/// committed. One thread per rule sends them.
pub fn start_notifying(archive: &Archive) -> anyhow::Result<Option<PageFollower>> {
    if archive.settings().notify.is_empty() {
        return Ok(None);
    }
    // Rules open_outbox before anything is captured, so that they cover all that this crawl finds.
    open_outbox(archive)?;
    let archive = archive.clone();
    PageFollower::start("notices", move |pages| make_and_send(&archive, pages)).map(Some)
}

fn make_and_send(archive: &Archive, pages: &Receiver<PageId>) -> anyhow::Result<()> {
    let mut wakers = Vec::new();
    let mut threads = Vec::new();
    for rule in &archive.settings().notify {
        let sender = RuleSender::open(archive, rule)?;
        let (waker, wake) = channel();
        wakers.push(waker);
        let thread = std::thread::Builder::new().name("notices to send".into());
        threads.push(thread.spawn(move || sender.run(&wake))?);
    }
    let made = make_notices(archive, pages, &wakers);
    // Senders end when nobody can wake them any more.
    drop(wakers);
    let sent = threads.into_iter().map(join).collect::<anyhow::Result<Vec<()>>>();
    made.and(sent.map(drop))
}

fn make_notices(archive: &Archive, pages: &Receiver<PageId>, wakers: &[Sender<()>]) -> anyhow::Result<()> {
    let wake = || {
        for waker in wakers {
            // A sender that has ended has an error, which is told at the end.
            let _ = waker.send(());
        }
    };
    let mut maker = NoticeMaker::open(archive)?;
    maker.catch_up(|_, _| ())?;
    wake();
    while let Some(pages) = next_pages(pages, MAX_PAGES) {
        if maker.process(&pages)? > 0 {
            wake();
        }
    }
    Ok(())
}
