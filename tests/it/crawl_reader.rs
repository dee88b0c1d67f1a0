//! The browser acts in a page before its capture, as a reader would.

use crate::crawled::Archive;
use crate::web::{Reply, Web, WebRequest, html, status};

const PAGE: &str = "<title>News</title><style>body { margin: 0 } .part { height: 900px } .modal { position: fixed; inset: 0; background: #fff }</style>
<body style='overflow: hidden'><h1>Front page</h1>
<div id=onetrust-banner-sdk class=modal><p>We value your privacy</p><button id=yes>Accept all</button><button id=no>Reject all</button></div>
<div class=paywall-nag><p>Subscribe!</p></div>
<video src=/film.webm></video>
<div id=list><div class=part>part 1</div></div><button id=more type=button>Load more</button><a href=/elsewhere>Show more offers</a>
<script>
const list = document.getElementById('list');
const add = (path) => fetch(path).then((answer) => answer.text()).then((text) => { list.insertAdjacentHTML('beforeend', text) });
no.onclick = () => { document.getElementById('onetrust-banner-sdk').remove(); add('/refused') };
yes.onclick = () => { add('/accepted') };
let n_more = 0;
more.onclick = () => { add('/more/' + ++n_more); if (n_more === 3) more.remove() };
let n_scrolled = 0;
addEventListener('scroll', () => { if (scrollY + innerHeight > document.documentElement.scrollHeight - 50 && n_scrolled < 4) add('/scrolled/' + ++n_scrolled) });
</script>";

fn site(request: &WebRequest) -> Reply {
    match request.path.as_str() {
        "/" => html(PAGE),
        "/film.webm" => {
            Reply::Page(200, vec![("Content-Type", "video/webm".into())], vec![0x1a, 0x45, 0xdf, 0xa3])
        }
        path if path.starts_with("/more/") || path.starts_with("/scrolled/") || path == "/refused" => {
            html(&format!("<div class=part>text of {path}</div>"))
        }
        _ => status(404),
    }
}

fn archive(web: &Web, behaviors: &str) -> Archive {
    let archive = Archive::new();
    archive.append_settings(&format!(
        "\n[[site]]\nurl = \"{}\"\nscope = \"page\"\nallow_private = true\nrenderer = \"chromium\"\nbehaviors = [{behaviors}]\n",
        web.url("/")
    ));
    let list = archive.root.join("my-cookies.txt");
    std::fs::write(&list, "! Title: My cookie list\n##.paywall-nag\n").unwrap();
    archive.ok(&["filters", "update", list.to_str().unwrap()]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    archive.verify();
    archive
}

/// All records of the archive, decompressed.
fn records(archive: &Archive) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(archive.root.join("warc")).unwrap() {
        let file = std::fs::File::open(entry.unwrap().path()).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(file), &mut bytes).unwrap();
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    text
}

fn actions(archive: &Archive, url: &str) -> Vec<String> {
    let log = archive.log();
    let visit = log.iter().find(|line| line["url"] == url && line["kind"] == "page").unwrap();
    visit["actions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|action| action.as_str().unwrap().to_string())
        .collect()
}

#[test]
fn a_page_is_captured_as_a_reader_sees_it_at_its_end() {
    let web = Web::serve(site);
    let archive = archive(&web, "\"dismiss\", \"autoplay\", \"load-more\", \"autoscroll\"");
    for path in ["/refused", "/film.webm", "/more/1", "/more/3", "/scrolled/1", "/scrolled/4"] {
        assert!(web.n_requests(path) > 0, "{path}: {:?}", actions(&archive, &web.url("/")));
    }
    assert_eq!((web.n_requests("/accepted"), web.n_requests("/elsewhere")), (0, 0));
    let actions = actions(&archive, &web.url("/"));
    let records = records(&archive);
    for expected in [
        "dismiss: clicked \"Reject all\" in #onetrust-banner-sdk",
        "dismiss: removed .paywall-nag",
        "autoplay: video",
        "load-more: clicked \"Load more\"",
        "autoscroll: ",
    ] {
        assert!(actions.iter().any(|action| action.starts_with(expected)), "{expected}: {actions:?}");
        assert!(records.contains(&format!("behavior: {expected}")), "{expected}");
    }
    let dom = records.split("WARC-Target-URI: urn:dom:").nth(1).unwrap();
    for text in ["text of /more/3", "text of /scrolled/4", "text of /refused"] {
        assert!(dom.contains(text), "{text}");
    }
    assert!(!dom.contains("We value your privacy") && !dom.contains("Subscribe!"));
}

#[test]
fn nothing_is_done_without_the_setting() {
    let web = Web::serve(site);
    let archive = archive(&web, "");
    for path in ["/refused", "/more/1", "/scrolled/1"] {
        assert_eq!(web.n_requests(path), 0, "{path}");
    }
    assert_eq!(actions(&archive, &web.url("/")), Vec::<String>::new());
    assert!(records(&archive).contains("We value your privacy"));
}

/// A page that grows forever, with a button that opens a different page.
#[test]
fn pages_without_an_end_and_pages_that_leave_are_bounded() {
    let web = Web::serve(|request| {
        match request.path.as_str() {
        "/" => html(
            "<body><p>start</p><div id=list></div><button type=button id=more>More</button><a href='#' role=button id=away>View all</a><script>
            const grow = () => { fetch('/grow?' + Math.random()); list.insertAdjacentHTML('beforeend', '<div style=\"height: 3000px\">grown</div>') };
            grow(); more.onclick = grow; addEventListener('scroll', grow);
            away.onclick = () => { location.href = '/away' };
            </script>",
        ),
        _ => html("<p>another page"),
    }
    });
    let archive = archive(&web, "\"load-more\", \"autoscroll\"");
    assert!(web.requests().len() <= 310, "{}", web.requests().len());
    assert_eq!(web.n_requests("/away"), 0);
    assert!(records(&archive).contains("grown"));
    assert!(actions(&archive, &web.url("/")).len() < 60);
}
