//! An address and an instant -> the capture to show, and what is known of it at that instant.

use perennial_core::http::response::ResponseKind;
use perennial_core::memento::{self, PartObservation, TemporalCoherence};
use perennial_core::time::Timestamp;
use perennial_warc::http::HttpHead;
use perennial_warc::surt::surt;
use url::Url;

use perennial_archive::store::{Capture, url_hash};
use perennial_archive::{OpenRecord, Snapshot};

/// Captures of a page on each side of the instant that are looked at: more than one only where some show nothing.
const N_AROUND: usize = 8;

/// What is shown.
pub struct CaptureMatch {
    /// The look at the page: its time is that of the memento.
    pub capture: Capture,
    /// The capture whose record has the body.
    pub holder: Capture,
    /// That record, open.
    pub record: OpenRecord,
    /// What the server said: the head of the look itself, if it has one of its own.
    pub head: HttpHead,
    /// What is known of it at the instant.
    pub state: TemporalCoherence,
    /// The capture before it.
    pub previous: Option<Timestamp>,
    /// The capture behind it.
    pub next: Option<Timestamp>,
    /// The first and the last capture of the address.
    pub span: (Timestamp, Timestamp),
}

/// Why nothing is shown.
pub enum NoCapture {
    /// Nothing is captured under that address.
    NotArchived,
    /// It was seen at this instant, and no record holds it.
    NotHeld(Timestamp),
    /// The record cannot be read.
    Damaged(anyhow::Error),
    /// The archive cannot be asked.
    Failed(anyhow::Error),
}

/// Finds what to show; with `closest` by distance in time alone.
pub fn find(snapshot: &Snapshot, url: &str, at: Timestamp, closest: bool) -> Result<CaptureMatch, NoCapture> {
    let key = surt(url);
    let mut around = snapshot.store().captures_around(&key, at, N_AROUND).map_err(NoCapture::Failed)?;
    // Of captures in the same second, one of the very address is better than one of its twin with another scheme.
    around.sort_by_cached_key(|capture| (capture.time.as_secs(), capture.url != url, capture.id));
    let mut looks = looks_of(snapshot, &around, at);
    let mut last = NoCapture::NotArchived;
    // Each round shows something or takes one capture out.
    for _ in 0..looks.len() {
        let choice = if closest { memento::closest(&looks, at) } else { memento::choose(&looks, at) };
        let Some(choice) = choice else { break };
        let capture = &around[choice.index];
        match open(snapshot, capture) {
            Ok((_, _, head)) if leads_to_itself(&head, capture, &key) => {}
            Ok((holder, record, head)) => {
                let (previous, next) = beside(&around, capture);
                let span = snapshot.store().span_of_key(&key).map_err(NoCapture::Failed)?;
                let span = span.unwrap_or((capture.time, capture.time));
                let (capture, state) = (capture.clone(), choice.state);
                return Ok(CaptureMatch { capture, holder, record, head, state, previous, next, span });
            }
            // A damaged record is said, and nothing else is shown in its place.
            Err(lost @ (NoCapture::Damaged(_) | NoCapture::Failed(_))) => return Err(lost),
            Err(lost) => last = lost,
        }
        looks[choice.index].is_held = false;
    }
    Err(last)
}

/// The captures next to one, if they are at hand, in other seconds than it.
fn beside(around: &[Capture], capture: &Capture) -> (Option<Timestamp>, Option<Timestamp>) {
    let second = capture.time.as_secs();
    let previous = around.iter().rev().map(|other| other.time).find(|time| time.as_secs() < second);
    let next = around.iter().map(|other| other.time).find(|time| time.as_secs() > second);
    (previous, next)
}

/// What the captures say about the instant. Dates of modification are read where they can decide: of the first capture behind
/// the instant, and only if nothing else tells what was there.
fn looks_of(snapshot: &Snapshot, around: &[Capture], at: Timestamp) -> Vec<PartObservation> {
    let look = |capture: &Capture| PartObservation {
        time: second_of(capture.time),
        content: url_hash(&capture.identity.to_string()),
        modified: None,
        is_held: true,
    };
    let mut looks: Vec<PartObservation> = around.iter().map(look).collect();
    let next = looks.partition_point(|look| look.time <= at);
    let before = next.checked_sub(1).map(|index| looks[index]);
    let is_known = before.is_some_and(|before| {
        before.time == at || looks.get(next).is_some_and(|next| next.content == before.content)
    });
    if next < looks.len() && !is_known {
        looks[next].modified = last_modified(snapshot, &around[next]);
    }
    looks
}

/// Addresses have seconds, captures may have milliseconds: a capture is the memento of its second.
fn second_of(time: Timestamp) -> Timestamp {
    Timestamp::from_secs(time.as_secs())
}

fn last_modified(snapshot: &Snapshot, capture: &Capture) -> Option<Timestamp> {
    let record = snapshot.archive().open_record(capture).ok()?;
    perennial_core::memento::date::parse(&record.head.get("Last-Modified")?)
}

/// The record that holds what a capture showed, and what the server said with it. A revisit has a head of its own: another server,
/// or another address, may have sent the same bytes. A 304 says nothing about them.
fn open(snapshot: &Snapshot, capture: &Capture) -> Result<(Capture, OpenRecord, HttpHead), NoCapture> {
    let archive = snapshot.archive();
    let holder = archive.holder(snapshot.store(), capture).map_err(NoCapture::Failed)?;
    let Some(holder) = holder else { return Err(NoCapture::NotHeld(capture.time)) };
    let record = archive.open_record(&holder).map_err(NoCapture::Damaged)?;
    let own = match holder.id == capture.id || capture.status == Some(304) {
        true => None,
        false => Some(archive.open_record(capture).map_err(NoCapture::Damaged)?.head),
    };
    let head = own.filter(|head| head.status().is_some()).unwrap_or_else(|| record.head.clone());
    Ok((holder, record, head))
}

/// Whether a redirect leads to an address with its own key, as from http to https: there it would be met again.
fn leads_to_itself(head: &HttpHead, capture: &Capture, key: &str) -> bool {
    if capture.answer != Some(ResponseKind::Redirect) {
        return false;
    }
    let target =
        head.get("Location").and_then(|location| Url::parse(&capture.url).ok()?.join(&location).ok());
    target.is_some_and(|target| surt(target.as_str()) == key)
}
