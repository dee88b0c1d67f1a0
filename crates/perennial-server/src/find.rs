//! Finds the capture to show for a URL and an instant, and what is known about it at that instant.

use std::cmp::Ordering;

use perennial_core::http::response::ResponseKind;
use perennial_core::memento::{self, PartObservation, TemporalCoherence};
use perennial_core::time::Timestamp;
use perennial_warc::http::HttpHead;
use perennial_warc::surt::surt;
use url::Url;

use super::range::CapturedRange;
use perennial_archive::store::{Capture, url_hash};
use perennial_archive::{OpenRecord, Snapshot};

/// Captures on each side of the instant that are tried, because some may contain nothing to show.
const N_AROUND: usize = 8;

/// Captures on each side of the instant that may be parts of one file.
const N_PARTS: usize = 64;

/// The capture to show.
pub struct CaptureMatch {
    /// The observation; its time is the memento's.
    pub capture: Capture,
    /// The capture whose record contains the payload.
    pub payload_capture: Capture,
    /// That record.
    pub record: OpenRecord,
    /// The head of the observation itself, if it has one.
    pub head: HttpHead,
    /// What is known about the capture at the instant.
    pub state: TemporalCoherence,
    pub previous: Option<Timestamp>,
    pub next: Option<Timestamp>,
    /// The first and the last capture of the URL.
    pub span: (Timestamp, Timestamp),
}

/// Why there is nothing to show.
pub enum NoCapture {
    NotArchived,
    /// Captured at this instant, but no record contains the payload.
    NotHeld(Timestamp),
    /// The record is unreadable.
    Damaged(anyhow::Error),
    /// The archive is unreadable.
    Failed(anyhow::Error),
}

/// With `closest`, only the distance in time counts. A redirect of a URL to itself is skipped, because browsers would follow it forever.
pub fn find(snapshot: &Snapshot, url: &str, at: Timestamp, closest: bool) -> Result<CaptureMatch, NoCapture> {
    find_among_all(snapshot, url, at, closest, false)
}

/// Finds redirects of a URL to itself as well, for clients that want what was captured.
pub fn find_as_captured(
    snapshot: &Snapshot,
    url: &str,
    at: Timestamp,
    closest: bool,
) -> Result<CaptureMatch, NoCapture> {
    find_among_all(snapshot, url, at, closest, true)
}

fn find_among_all(
    snapshot: &Snapshot,
    url: &str,
    at: Timestamp,
    closest: bool,
    with_loops: bool,
) -> Result<CaptureMatch, NoCapture> {
    let key = surt(url);
    let mut around = snapshot.store().captures_around(&key, at, N_AROUND).map_err(NoCapture::Failed)?;
    // Of captures in the same second, prefer that of the exact URL to that of an alias with a different scheme.
    around.sort_by_cached_key(|capture| (capture.time.as_secs(), capture.url != url, capture.id));
    let mut observations = observations_around(snapshot, &around, at);
    let mut last = NoCapture::NotArchived;
    // Each round finds a capture or excludes one.
    for _ in 0..observations.len() {
        let choice =
            if closest { memento::closest(&observations, at) } else { memento::choose(&observations, at) };
        let Some(choice) = choice else { break };
        let capture = &around[choice.index];
        match open(snapshot, capture) {
            Ok((_, _, head)) if !with_loops && leads_to_itself(&head, capture, &key) => {}
            Ok((payload_capture, record, head)) => {
                let (previous, next) = beside(&around, capture);
                let span = snapshot.store().key_span(&key).map_err(NoCapture::Failed)?;
                let span = span.unwrap_or((capture.time, capture.time));
                let (capture, state) = (capture.clone(), choice.state);
                return Ok(CaptureMatch {
                    capture,
                    payload_capture,
                    record,
                    head,
                    state,
                    previous,
                    next,
                    span,
                });
            }
            // A damaged record is reported; showing a different capture would hide the damage.
            Err(lost @ (NoCapture::Damaged(_) | NoCapture::Failed(_))) => return Err(lost),
            Err(lost) => last = lost,
        }
        observations[choice.index].is_held = false;
    }
    Err(last)
}

/// Replaces a capture of a part by one of the whole, or else by one of a part that has the requested bytes: players request a file
/// piece by piece.
pub fn with_bytes(
    snapshot: &Snapshot,
    found: CaptureMatch,
    at: Timestamp,
    range: Option<&str>,
) -> CaptureMatch {
    if CapturedRange::of(&found.head).is_none_or(CapturedRange::is_whole) {
        return found;
    }
    let Ok(mut around) = snapshot.store().captures_around(&surt(&found.capture.url), at, N_PARTS) else {
        return found;
    };
    around.retain(|capture| matches!(capture.status, Some(200 | 206)));
    around.sort_by_key(|capture| (capture.status, capture.time.as_millis().abs_diff(at.as_millis())));
    for capture in around {
        let Ok((payload_capture, record, head)) = open(snapshot, &capture) else { continue };
        let has_bytes = match CapturedRange::of(&head) {
            None => true,
            Some(part) => part.is_whole() || range.is_some_and(|range| part.slice(range).is_some()),
        };
        if has_bytes {
            let state = match capture.time.cmp(&at) {
                _ if capture.id == found.capture.id => found.state,
                Ordering::Greater => TemporalCoherence::PossiblyViolative,
                _ => TemporalCoherence::PossiblyCoherent,
            };
            return CaptureMatch { capture, payload_capture, record, head, state, ..found };
        }
    }
    found
}

/// The neighbours of a capture in other seconds.
fn beside(around: &[Capture], capture: &Capture) -> (Option<Timestamp>, Option<Timestamp>) {
    let second = capture.time.as_secs();
    let previous = around.iter().rev().map(|other| other.time).find(|time| time.as_secs() < second);
    let next = around.iter().map(|other| other.time).find(|time| time.as_secs() > second);
    (previous, next)
}

/// What the captures show about the instant. Last-Modified is read only if it can decide: for the first capture after the instant,
/// if nothing else shows what was valid.
fn observations_around(snapshot: &Snapshot, around: &[Capture], at: Timestamp) -> Vec<PartObservation> {
    let observation = |capture: &Capture| PartObservation {
        time: whole_second(capture.time),
        content: url_hash(&capture.identity.to_string()),
        modified: None,
        is_held: true,
    };
    let mut observations: Vec<PartObservation> = around.iter().map(observation).collect();
    let next = observations.partition_point(|observation| observation.time <= at);
    let before = next.checked_sub(1).map(|index| observations[index]);
    let is_known = before.is_some_and(|before| {
        before.time == at || observations.get(next).is_some_and(|next| next.content == before.content)
    });
    if next < observations.len() && !is_known {
        observations[next].modified = last_modified(snapshot, &around[next]);
    }
    observations
}

/// URLs have seconds, captures may have milliseconds: a capture is the memento of its second.
fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_secs(time.as_secs())
}

fn last_modified(snapshot: &Snapshot, capture: &Capture) -> Option<Timestamp> {
    let record = snapshot.archive().open_record(capture).ok()?;
    perennial_core::memento::date::parse(&record.head.get("Last-Modified")?)
}

/// The record with the payload of a capture, and the head of its response. A revisit has its own head, because a different server
/// or URL may have sent the same bytes. The head of a 304 does not describe the payload.
fn open(snapshot: &Snapshot, capture: &Capture) -> Result<(Capture, OpenRecord, HttpHead), NoCapture> {
    let archive = snapshot.archive();
    let payload_capture = archive.payload_capture(snapshot.store(), capture).map_err(NoCapture::Failed)?;
    let Some(payload_capture) = payload_capture else { return Err(NoCapture::NotHeld(capture.time)) };
    let record = archive.open_record(&payload_capture).map_err(NoCapture::Damaged)?;
    let own = match payload_capture.id == capture.id || capture.status == Some(304) {
        true => None,
        false => Some(archive.open_record(capture).map_err(NoCapture::Damaged)?.head),
    };
    let head = own.filter(|head| head.status().is_some()).unwrap_or_else(|| record.head.clone());
    Ok((payload_capture, record, head))
}

/// Whether a redirect targets a URL with the same key, as from http to https, which would loop.
fn leads_to_itself(head: &HttpHead, capture: &Capture, key: &str) -> bool {
    if capture.response_kind != Some(ResponseKind::Redirect) {
        return false;
    }
    let target =
        head.get("Location").and_then(|location| Url::parse(&capture.url).ok()?.join(&location).ok());
    target.is_some_and(|target| surt(target.as_str()) == key)
}
