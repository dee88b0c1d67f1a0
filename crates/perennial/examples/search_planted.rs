//! Searches an archive of the living web for sentences whose times are known.
//!
//! ```text
//! perennial demo --dir DIR --no-browser
//! cargo run --release --example search_planted -- DIR 2000
//! ```
//!
//! The example rebuilds the web of the demonstration from its seed, so it knows when each sentence of each page
//! appeared and vanished. It takes N sentences that did, and compares the intervals from search with two references:
//!
//! - the captures' own bytes, read from the WARC files in order: the intervals must be equal;
//! - the truth: the sentence must have appeared after the last observation without it, and not after the first with
//!   it. The same applies to its end.

use std::collections::BTreeMap;
use std::path::Path;

use perennial::demo::LivingWeb;
use perennial_archive::Archive;
use perennial_archive::store::{Store, Texts};
use perennial_core::search::{PassagePresence, TextQuery};
use perennial_core::time::{Span, Timestamp};
use perennial_engine::search::{SearchQuery, find_pages};

const SEED: u64 = 1;
const START: &str = "2026-03-02";
const DAYS: u32 = 14;
/// Captures have whole seconds.
const ROUNDING: Span = Span::from_secs(2);

/// The sentences of a page's paragraphs without markup, as in its HTML.
fn sentences(html: &str) -> Vec<&str> {
    let paragraphs =
        html.split("<p>").skip(1).filter_map(|rest| rest.split_once("</p>")).map(|(text, _)| text);
    let plain = paragraphs.filter(|text| !text.contains(['<', '&']));
    let mut found: Vec<&str> = plain
        .flat_map(|text| text.split(". "))
        .filter(|text| (5..=30).contains(&text.split_whitespace().count()))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The true intervals in which a page contained each of its sentences.
fn truth_of(web: &LivingWeb, page: usize) -> BTreeMap<String, Vec<(Timestamp, Timestamp)>> {
    let never = web.end + Span::from_hours(24 * 365);
    // A page that closes with its site loses all its sentences.
    let end = web.sites[web.pages[page].site].dies_at.unwrap_or(never);
    let changes = web.pages[page].changes.iter().map(|change| change.at);
    let changes: Vec<Timestamp> = changes.filter(|at| *at < end).collect();
    let mut truth: BTreeMap<String, Vec<(Timestamp, Timestamp)>> = BTreeMap::new();
    for (number, at) in std::iter::once(web.start).chain(changes.iter().copied()).enumerate() {
        let until = changes.get(number).copied().unwrap_or(end);
        // Differences between two requests at one instant are noise, not planted sentences.
        let (one, other) = (web.html(page, 0, at), web.html(page, 1, at));
        let again = sentences(&other);
        for text in sentences(&one).into_iter().filter(|text| again.contains(text)) {
            let presences = truth.entry(text.to_owned()).or_default();
            match presences.last_mut() {
                Some(last) if last.1 == at => last.1 = until,
                _ => presences.push((at, until)),
            }
        }
    }
    truth.retain(|_, presences| presences.len() > 1 || presences[0].0 > web.start || presences[0].1 < never);
    truth
}

/// The presences of a text according to the WARC files.
fn presence_by_bytes(observations: &[(Timestamp, String)], text: &str) -> Vec<PassagePresence> {
    let mut presences: Vec<PassagePresence> = Vec::new();
    let mut before: Option<(Timestamp, bool)> = None;
    for (time, html) in observations {
        let has = html.contains(text);
        let had = before.is_some_and(|(_, had)| had);
        match (had, has, presences.last_mut()) {
            (false, true, _) => presences.push(PassagePresence {
                absent_until: before.map(|(time, _)| time),
                first: *time,
                last: *time,
                gone: None,
            }),
            (true, true, Some(presence)) => presence.last = *time,
            (true, false, Some(presence)) => presence.gone = Some(*time),
            _ => {}
        }
        before = Some((*time, has));
    }
    presences
}

fn read_observations(
    archive: &Archive,
    store: &Store,
    url: &str,
) -> anyhow::Result<Vec<(Timestamp, String)>> {
    let Some(page) = store.page(url)? else { return Ok(Vec::new()) };
    let mut observations = Vec::new();
    for capture in store.observed_captures(page.id, None, Timestamp::MAX)? {
        let payload = archive.document(store, &capture)?;
        let is_page = capture.status.is_some_and(|status| status < 300 || status == 304);
        let html =
            payload.filter(|_| is_page).map(|payload| String::from_utf8_lossy(&payload.bytes).into_owned());
        observations.push((capture.time, html.unwrap_or_default()));
    }
    Ok(observations)
}

/// Whether a presence agrees with the truth as closely as the observations allow.
fn is_true(presence: &PassagePresence, truth: &[(Timestamp, Timestamp)]) -> bool {
    let began = truth.iter().any(|(from, until)| {
        *from <= presence.first + ROUNDING
            && presence.first < *until + ROUNDING
            && presence.absent_until.is_none_or(|absent| absent < *from + ROUNDING)
    });
    let ended = presence.gone.is_none_or(|gone| {
        truth.iter().any(|(_, until)| presence.last < *until + ROUNDING && *until <= gone + ROUNDING)
    });
    began && ended
}

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir =
        args.first().ok_or_else(|| anyhow::anyhow!("give the folder of `perennial demo --no-browser`"))?;
    let n_wanted: usize = args.get(1).and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let archive = Archive::open(Path::new(dir))?;
    let store = archive.store()?;
    let texts = Texts::open_read(&archive.texts_path())?.ok_or_else(|| anyhow::anyhow!("no text index"))?;
    let web = LivingWeb::new(SEED, Timestamp::parse(START)?, DAYS);
    let hosts: Vec<String> = store.sites()?.into_iter().map(|site| site.host).collect();
    let mut planted = Vec::new();
    for (number, page) in web.pages.iter().enumerate() {
        let name = web.sites[page.site].name;
        let Some(host) = hosts.iter().find(|host| host.starts_with(&format!("{name}.localhost"))) else {
            continue;
        };
        let url = format!("http://{host}{}", page.path);
        planted.extend(truth_of(&web, number).into_iter().map(|(text, truth)| (url.clone(), text, truth)));
    }
    // The sample is spread evenly over all pages.
    let step = (planted.len() / n_wanted).max(1);
    let (mut n, mut n_seen, mut n_presences, mut n_exact, mut n_true) = (0, 0, 0, 0, 0);
    let mut known: (String, Vec<(Timestamp, String)>) = Default::default();
    for (url, text, truth) in planted.iter().step_by(step).take(n_wanted) {
        if known.0 != *url {
            known = (url.clone(), read_observations(&archive, &store, url)?);
        }
        let expected = presence_by_bytes(&known.1, text);
        let query = TextQuery::parse(&format!("\"{text}\""))?;
        let search = SearchQuery { url: Some(url), limit: 1, ..SearchQuery::default() };
        let found = find_pages(&store, &texts, &query, &search)?.hits;
        let presences = found.into_iter().next().map(|hit| hit.presences).unwrap_or_default();
        n += 1;
        n_seen += usize::from(!expected.is_empty());
        n_presences += expected.len();
        n_exact += usize::from(presences == expected);
        for presence in &presences {
            match is_true(presence, truth) {
                true => n_true += 1,
                false => println!("{url}\n  {text}\n  found {presence:?}\n  truly {truth:?}"),
            }
        }
        if presences != expected {
            println!("{url}\n  {text}\n  found    {presences:?}\n  expected {expected:?}");
        }
    }
    println!(
        "{n} sentences of {} that appeared or vanished; captures showed {n_seen} of them, in {n_presences} stays",
        planted.len()
    );
    println!(
        "{n_exact} of {n} found exactly as the WARC files have them; {n_true} of {n_presences} stays lie around the truth"
    );
    anyhow::ensure!(n_exact == n, "search and the WARC files differ");
    Ok(())
}
