//! Requests timestamps of the manifest from the server that the user configured. A failure is noted, shown by `status` and
//! `doctor`, and requested again later. It never stops a command.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use perennial_fetch::FetchRequest;
use perennial_warc::payload::{DecodingLimits, decode};
use tokio::runtime::Runtime;
use url::Url;

use crate::notify::receiver_client;
use perennial_archive::timestamp::{MAX_RESPONSE_BYTES, TimestampFailure, TimestampRequest};
use perennial_archive::{Archive, now, random_seed};

/// How often a crawl looks for new entries of the manifest.
const PERIOD: Duration = Duration::from_secs(60);

/// Requests timestamps beside a crawl.
pub struct Timestamper {
    ending: Sender<()>,
    thread: JoinHandle<()>,
}

impl Timestamper {
    /// Starts the thread; `None` without a server.
    pub fn start(archive: &Archive) -> anyhow::Result<Option<Timestamper>> {
        if archive.settings().archive.timestamp_server.is_none() {
            return Ok(None);
        }
        let (archive, (ending, ended)) = (archive.clone(), channel());
        let thread = std::thread::Builder::new().name("timestamps".into()).spawn(move || {
            while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                // The failure is noted in the archive.
                let _ = request_timestamp(&archive, false);
            }
        })?;
        Ok(Some(Timestamper { ending, thread }))
    }

    /// Ends the thread.
    pub fn finish(self) {
        drop(self.ending);
        // It has nothing to return, and a panic in it must not end the crawl.
        let _ = self.thread.join();
    }
}

/// Requests a timestamp of the last entry of the manifest, if it has none. After a failure it waits, unless `is_urgent`.
/// An error is noted in the archive, and returned in words.
pub fn request_timestamp(archive: &Archive, is_urgent: bool) -> Result<(), String> {
    let Some(server) = &archive.settings().archive.timestamp_server else { return Ok(()) };
    let is_pausing = || TimestampFailure::load(archive).is_some_and(|failure| failure.is_pausing(now()));
    if !is_urgent && is_pausing() {
        return Ok(());
    }
    let words = |error: anyhow::Error| format!("{error:#}");
    let Some(request) = TimestampRequest::due(archive, random_seed() as u64).map_err(words)? else {
        return Ok(());
    };
    let stored = send(archive, server, &request).and_then(|response| {
        request.check(&response)?;
        request.store(archive, &response).map_err(words)
    });
    stored.map_err(|error| {
        let error = format!("{server}: {error}");
        // If the folder cannot be written, that is what the user must know.
        match TimestampFailure::note(archive, &error, now()) {
            Ok(()) => error,
            Err(noting) => format!("{error}; {noting:#}"),
        }
    })
}

fn send(archive: &Archive, server: &Url, request: &TimestampRequest) -> Result<Vec<u8>, String> {
    let client = receiver_client(archive).map_err(|error| format!("{error:#}"))?;
    let runtime: Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    // The user names the server, so it may be on this machine.
    let posted = FetchRequest::get(server, &[], true);
    let body = request.to_der();
    let exchange = client.post_bytes(&posted, "application/timestamp-query", &body, MAX_RESPONSE_BYTES);
    let mut response = runtime.block_on(exchange).map_err(|error| error.to_string())?;
    match response.status() {
        200 => {}
        status => return Err(format!("the server responded with {status}")),
    }
    let bytes = response.body.prefix(MAX_RESPONSE_BYTES as usize).map_err(|error| error.to_string())?;
    let limits = DecodingLimits { max_bytes: MAX_RESPONSE_BYTES, ..DecodingLimits::default() };
    Ok(decode(&response.head, &*bytes, limits).bytes)
}
