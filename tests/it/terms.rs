//! The new terms of a span are those that appeared in it and were absent before.

use perennial_core::memento::replay_url::escape;

use crate::crawled::Archive;
use crate::dashboard_pages::TestDashboard;
use crate::web::{Reply, Web, WebRequest, html, status};

/// Pages with the same text and different numbers at every visit. From the eighth visit on they also have new text.
fn site(request: &WebRequest) -> Reply {
    let n = request.n_before;
    let page = request.path.strip_prefix("/p").and_then(|number| number.parse::<usize>().ok());
    match (request.path.as_str(), page) {
        ("/", _) => {
            let links: String = (0..6).map(|page| format!("<a href=/p{page}>Ward {page}</a> ")).collect();
            html(&format!("<title>Wards</title><h1>Wards</h1>{links}"))
        }
        (_, Some(page)) if page < 6 => {
            let usual: String = (0..8)
                .map(|line| format!("<p>Street {line} of ward {page} was swept on day {n} by the town.</p>"))
                .collect();
            let new =
                format!("<p>The tram depot &lt;script&gt; in ward {page} caught fire, says the brigade.</p>");
            html(&format!(
                "<title>Ward</title><h1>Ward</h1>{usual}{}",
                if n >= 8 { new } else { String::new() }
            ))
        }
        _ => status(404),
    }
}

#[test]
fn exactly_the_new_terms_of_a_span_are_listed() {
    let (web, archive) = (Web::serve(site), Archive::new());
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "72h");
    let terms = |args: &[&str]| {
        let found = archive.json(&[&["article", "terms"], args].concat());
        let reported = found["terms"].as_array().unwrap().iter();
        reported
            .map(|term| (term["term"].as_str().unwrap().to_owned(), term["n_before"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    // The presence starts at the first observation with the words.
    let said = archive.json(&["search", "tram depot"]);
    let first_times =
        said["pages"].as_array().unwrap().iter().map(|page| page["presence"][0]["first"].as_str().unwrap());
    let came = first_times.min().unwrap().to_owned();
    let span = ["--since", came.as_str()];
    let found = terms(&span);
    let names: Vec<&str> = found.iter().map(|(term, _)| term.as_str()).collect();
    assert!(names.contains(&"tram depot") && names.contains(&"caught fire"), "{found:?}");
    assert!(found.iter().all(|(_, n_before)| *n_before == 0), "{found:?}");
    for usual in ["street", "swept", "ward", "town", "Street", "Ward"] {
        assert!(!names.contains(&usual), "{usual} was always said: {found:?}");
    }
    let host = web.url("/").trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert_eq!(terms(&[&span[..], &["--site", &host]].concat()), found, "there is one site");
    assert_eq!(terms(&["--since", "2026-01-01T12:00:00Z", "--until", &came]), [], "nothing was new then");
    assert_eq!(terms(&["--since", "2025-01-01"]), [], "a site without earlier captures has no news");
    assert_eq!(terms(&[&span[..], &["--limit", "1"]].concat()).len(), 1);
    let text = archive.ok(&[&["article", "terms"], &span[..]].concat());
    assert!(text.contains("new  tram depot"), "{text}");
    assert!(!archive.run(&["article", "terms", "--site", "nowhere.example"]).status.success());

    let face = TestDashboard::of(&archive);
    let (status, page, _) = face.get(&format!("/terms?since={}", escape(span[1])));
    assert!(status == 200 && page.contains("/search?q=tram%20depot&amp;phrase=1"), "{page}");
    assert!(!page.contains("<script") && page.contains("aria-current"), "{page}");
    let (_, wrong, _) = face.get("/terms?since=x");
    assert!(wrong.contains("class=\"alert\""), "{wrong}");
    assert_eq!(face.get("/api/terms?since=x").0, 400);
}

/// From the eighth visit on an article has new text, and its comments have new words.
fn article_with_comments(request: &WebRequest) -> Reply {
    if request.path != "/" {
        return status(404);
    }
    let usual: String = (0..8)
        .map(|line| format!("<p>Street {line} of the town was swept on Monday by the council.</p>"))
        .collect();
    // A term occurs in at least two passages.
    let (news, said) = match request.n_before >= 8 {
        true => (
            "<p>The tram depot caught fire, says the brigade.</p><p>Nobody was in the tram depot.</p>",
            ["What a scandalous balderdash that is!", "More scandalous balderdash I never read."],
        ),
        false => ("", ["A good report of what happened here.", "I like it as well."]),
    };
    let comments: String =
        said.iter().map(|said| format!("<li class=comment><article><p>{said}</p></article></li>")).collect();
    html(&format!(
        "<title>Town</title><main><h1>Town</h1>{usual}{news}</main>
         <section id=comments><h2>2 comments</h2><ol>{comments}</ol></section>"
    ))
}

#[test]
fn words_of_comments_are_not_terms() {
    let (web, archive) = (Web::serve(article_with_comments), Archive::new());
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "72h");
    let said = archive.json(&["search", "tram depot"]);
    let came = said["pages"][0]["presence"][0]["first"].as_str().unwrap().to_owned();
    let found = archive.json(&["article", "terms", "--since", &came]);
    let names: Vec<&str> =
        found["terms"].as_array().unwrap().iter().map(|term| term["term"].as_str().unwrap()).collect();
    assert!(names.contains(&"tram depot"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.contains("balderdash") || name.contains("scandalous")),
        "{names:?}"
    );
    assert_eq!(archive.json(&["search", "balderdash"])["pages"].as_array().unwrap().len(), 1);
}

/// An article without a change, and one more comment at each visit. No name says what the list is.
fn article_with_more_comments(request: &WebRequest) -> Reply {
    if request.path != "/" {
        return status(404);
    }
    let article: String = (0..8)
        .map(|line| {
            format!(
                "<p>Straße {line} der Stadt wurde am Montag vom Rat gekehrt, und alle freuten sich sehr.</p>"
            )
        })
        .collect();
    let said: String = (0..=request.n_before)
        .map(|n| {
            let word = ["Kokolores", "Mumpitz", "Larifari", "Firlefanz"][n % 4];
            format!("<li class=q7><b>Uwe {n}</b> <time>{}. Mai 2026</time><p>Das ist {word} und bleibt {word}, Folge {n}.</p></li>", n + 1)
        })
        .collect();
    html(&format!(
        "<title>Stadt</title><main><h1>Stadt</h1>{article}<section class=kommentare><ul class=z>{said}</ul>
         <form><textarea name=t></textarea></form></section></main>"
    ))
}

#[test]
fn an_article_has_the_comments_of_all_captures_in_one_version() {
    let (web, archive) = (Web::serve(article_with_more_comments), Archive::new());
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "36h");
    let article = archive.json(&["article", "show", &web.url("/")]);
    let comments = article["comments"].to_string();
    assert_eq!(article["versions"].as_array().unwrap().len(), 1, "{article}");
    for n in 0..4 {
        assert!(comments.contains(&format!("Folge {n}.")), "{comments}");
    }
    // Neither are its words terms of the article.
    let found = archive.json(&["article", "terms", "--since", "2026-01-01T07:00:00Z"]);
    let names = found["terms"].to_string();
    assert!(!names.contains("Mumpitz") && !names.contains("Firlefanz"), "{names}");
}
