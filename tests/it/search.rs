//! Search over the versions of pages: when a sentence appeared and when it vanished, compared with the WARC files.

use perennial_archive::Archive as Library;
use perennial_archive::store::{Store, Texts};
use perennial_core::rng::Rng;
use perennial_core::search::TextQuery;
use perennial_core::time::Timestamp;
use perennial_engine::search::{SearchQuery, find_pages};
use serde_json::Value;

use crate::crawled::Archive;
use crate::web::{Reply, Web, WebRequest, html, status};

const N_PAGES: u64 = 6;
const N_SENTENCES: u64 = 60;

/// Numbers are written as words, so sentences differ by more than a number.
fn sentence(page: u64, number: u64) -> String {
    const ONES: [&str; 12] = [
        "amber", "birch", "cedar", "dahlia", "elder", "fennel", "ginger", "hazel", "iris", "juniper", "kale",
        "lilac",
    ];
    let (place, kind, thing) = (ONES[page as usize], ONES[number as usize / 12], ONES[number as usize % 12]);
    format!("In {place} garden the {kind} {thing} was planted by hand.")
}

/// At which requests of its page a sentence is present.
fn is_there(page: u64, number: u64, request: u64) -> bool {
    let mut rng = Rng::from_parts(&[page, number]);
    let (begin, length) = (rng.below(10) as u64, 1 + rng.below(12) as u64);
    // Some come back.
    let comes_back = rng.below(3) == 0 && request >= begin + length + 3;
    (begin..begin + length).contains(&request) || comes_back
}

fn site(request: &WebRequest) -> Reply {
    let page = request.path.strip_prefix("/p").and_then(|number| number.parse::<u64>().ok());
    match (request.path.as_str(), page) {
        ("/", _) => {
            let links: String =
                (0..N_PAGES).map(|page| format!("<a href=/p{page}>Garden {page}</a> ")).collect();
            html(&format!("<title>Gardens</title><h1>Gardens</h1>{links}"))
        }
        // The last page vanishes for a while.
        (_, Some(page)) if page == N_PAGES - 1 && (6..9).contains(&request.n_before) => status(404),
        (_, Some(page)) if page < N_PAGES => {
            let there = (0..N_SENTENCES).filter(|&number| is_there(page, number, request.n_before as u64));
            let text: String = there.map(|number| format!("<p>{}</p>", sentence(page, number))).collect();
            html(&format!("<title>Garden</title><h1>A garden</h1><p>Words that always stay here.</p>{text}"))
        }
        _ => status(404),
    }
}

fn crawled() -> (Web, Archive) {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "5d");
    (web, archive)
}

type PresenceTimes = Vec<[Option<Timestamp>; 4]>;

/// The observations of a page in the WARC files, each with its bytes.
fn observations_at(archive: &Archive, url: &str) -> Vec<(Timestamp, String)> {
    let library = Library::open(&archive.root).unwrap();
    let store = library.store().unwrap();
    let page = store.page(url).unwrap().unwrap();
    let captures = store.page_captures(page.id).unwrap().into_iter();
    captures
        .map(|capture| {
            let payload = library.document(&store, &capture).unwrap().unwrap();
            (capture.time, String::from_utf8_lossy(&payload.bytes).into_owned())
        })
        .collect()
}

/// When a text is present by these bytes: the first and last observation of each run that contains it, and the
/// observations around the run.
fn presence_by_bytes(observations: &[(Timestamp, String)], text: &str) -> PresenceTimes {
    let observations: Vec<(Timestamp, bool)> =
        observations.iter().map(|(time, html)| (*time, html.contains(text))).collect();
    let mut presences = Vec::new();
    for (at, &(time, has)) in observations.iter().enumerate() {
        if has && (at == 0 || !observations[at - 1].1) {
            let end =
                observations[at..].iter().position(|observation| !observation.1).map(|length| at + length);
            let last = end.map_or(observations.len(), |end| end) - 1;
            let before = at.checked_sub(1).map(|before| observations[before].0);
            presences.push([
                before,
                Some(time),
                Some(observations[last].0),
                end.map(|end| observations[end].0),
            ]);
        }
    }
    presences
}

fn presence_by_search(archive: &Archive, url: &str, text: &str) -> PresenceTimes {
    let found = archive.json(&["search", &format!("\"{text}\""), "--page", url]);
    let time = |value: &Value| value.as_str().map(|text| Timestamp::parse(text).unwrap());
    let pages = found["pages"].as_array().unwrap();
    let presences = pages.iter().flat_map(|page| page["presence"].as_array().unwrap());
    presences
        .map(|presence| ["absent_until", "first", "last", "gone"].map(|name| time(&presence[name])))
        .collect()
}

/// The same without a process per query.
fn presence_by_library(store: &Store, texts: &Texts, url: &str, text: &str) -> PresenceTimes {
    let search = SearchQuery { url: Some(url), limit: 10, ..SearchQuery::default() };
    let query = TextQuery::parse(&format!("\"{text}\"")).unwrap();
    let found = find_pages(store, texts, &query, &search).unwrap().hits;
    let presences = found.into_iter().flat_map(|hit| hit.presences);
    presences
        .map(|presence| [presence.absent_until, Some(presence.first), Some(presence.last), presence.gone])
        .collect()
}

#[test]
fn every_sentence_is_found_exactly_while_it_was_present() {
    let (web, archive) = crawled();
    let library = Library::open(&archive.root).unwrap();
    let (store, texts) =
        (library.store().unwrap(), Texts::open_read(&library.texts_path()).unwrap().unwrap());
    let mut n_presences = 0;
    for page in 0..N_PAGES {
        let url = web.url(&format!("/p{page}"));
        let observations = observations_at(&archive, &url);
        for number in 0..N_SENTENCES {
            let text = sentence(page, number);
            let expected = presence_by_bytes(&observations, &text);
            n_presences += expected.len();
            assert_eq!(presence_by_library(&store, &texts, &url, &text), expected, "{text}");
            if number % 12 == 0 {
                assert_eq!(presence_by_search(&archive, &url, &text), expected, "{text}");
            }
        }
    }
    assert!(n_presences > 300, "{n_presences} stays only");
    let sizes = archive.json(&["status", "--texts"])["texts"].clone();
    let size = |name: &str| sizes[name].as_u64().unwrap();
    assert!(size("n_presences") >= n_presences as u64 && size("n_texts") >= N_PAGES * N_SENTENCES, "{sizes}");
    assert!((1..size("n_texts")).contains(&size("n_important_texts")), "{sizes}");
    assert!(archive.ok(&["status", "--texts"]).contains("--important searches"));

    // The index is rebuilt from the archive.
    archive.ok(&["verify", "--rebuild"]);
    let gone = archive.run(&["search", "garden"]);
    assert!(
        !gone.status.success() && String::from_utf8_lossy(&gone.stderr).contains("perennial analyse"),
        "{gone:?}"
    );
    archive.ok(&["analyse"]);
    let (url, text) = (web.url("/p2"), sentence(2, 3));
    assert_eq!(
        presence_by_search(&archive, &url, &text),
        presence_by_bytes(&observations_at(&archive, &url), &text)
    );
}

#[test]
fn queries_are_parsed_and_results_are_readable() {
    let (web, archive) = crawled();
    let pages = |args: &[&str]| {
        let found = archive.json(&[&["search"], args].concat());
        let mut urls: Vec<String> = found["pages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|page| page["url"].as_str().unwrap().into())
            .collect();
        urls.sort();
        urls
    };
    let gardens: Vec<String> = (0..N_PAGES).map(|page| web.url(&format!("/p{page}"))).collect();
    assert_eq!(pages(&["always stay here"]), gardens);
    assert_eq!(pages(&["ALWAYS", "here"]), gardens);
    assert_eq!(pages(&["alw*", "--site", web.url("/")[7..].trim_end_matches('/')]), gardens);
    assert_eq!(pages(&["\"here always\""]), Vec::<String>::new());
    assert_eq!(pages(&["planted -\"amber garden\" -birch -cedar -dahlia -elder"]), gardens[5..]);
    let is_gone = |number: &u64| {
        (1..9).any(|request| is_there(2, *number, request))
            && !(14..40).any(|request| is_there(2, *number, request))
    };
    let gone = (0..N_SENTENCES).find(is_gone).map(|number| format!("\"{}\"", sentence(2, number))).unwrap();
    assert_eq!(pages(&[&gone, "--vanished", "--limit", "1"]), gardens[2..3]);
    assert_eq!(pages(&["\"words that always\"", "--vanished"]), Vec::<String>::new());
    assert_eq!(pages(&["\"words that always\"", "--since", "2027-01-01"]), Vec::<String>::new());
    let text = archive.ok(&["search", "\"always stay\""]);
    assert!(
        text.contains("main: Words that [always stay] here.") && text.contains("still present at"),
        "{text}"
    );
    for (args, hint) in [
        (["search", "--", "-only"], "at least one word without a leading -"),
        (["search", "--", "!!!"], "no word to search for"),
    ] {
        let refused = archive.run(&args);
        assert!(
            !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains(hint),
            "{refused:?}"
        );
    }
    let nowhere = archive.run(&["search", "x", "--site", "nowhere.example"]);
    assert!(
        !nowhere.status.success() && String::from_utf8_lossy(&nowhere.stderr).contains("it contains"),
        "{nowhere:?}"
    );
}
