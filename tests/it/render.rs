//! The layout engine in worker processes of the real executable.

use std::io::Read;
use std::process::Command;
use std::time::Duration;

use perennial_core::page::segment::{SegmentConfig, Selector, segment};
use perennial_core::text::dom::Dom;
use perennial_render::resource::nothing;
use perennial_render::{
    CapturedResource, Fallback, LayoutEngine, PageLimits, WorkerCommand, WorkerPool, structural,
};
use perennial_warc::{WarcItem, WarcReader};
use proptest::prelude::*;

use crate::program::{folder, perennial, sample_file};

fn command(arguments: &[&str]) -> WorkerCommand {
    WorkerCommand {
        program: env!("CARGO_BIN_EXE_perennial").into(),
        arguments: arguments.iter().map(Into::into).collect(),
    }
}

fn pool() -> WorkerPool {
    WorkerPool::new(command(&["render-worker"]), PageLimits::default())
}

#[test]
fn a_worker_gives_the_same_layout_as_the_engine() {
    let html = "<link rel=stylesheet href=/a.css><body><div id=side>left</div><div id=main>right</div><img src=i.png>";
    let lookup = |url: &str| match url {
        "http://a.example/a.css" => Some(CapturedResource {
            status: 200,
            content_type: "text/css".into(),
            body: b"@import 'b.css'; #side{float:left;width:200px}".to_vec(),
        }),
        "http://a.example/b.css" => Some(CapturedResource {
            status: 200,
            content_type: "text/css".into(),
            body: b"#main{margin-left:300px}".to_vec(),
        }),
        _ => None,
    };
    let rendered = pool().layout(html, "http://a.example/", &lookup);
    assert_eq!(rendered.fallback, None);
    assert_eq!(rendered.layout, LayoutEngine::new().layout(html, "http://a.example/", &lookup));
    let place = |text: &str| rendered.layout.nodes.iter().find(|node| node.text == text).unwrap().rect;
    assert!(place("left").x < 200.0 && place("right").x >= 300.0, "the imported stylesheet holds too");
    assert!((place("left").y - place("right").y).abs() < 5.0);
}

#[test]
fn a_worker_that_cannot_start_or_ends_costs_the_layout_only() {
    let missing = WorkerCommand { program: "/nonexistent/perennial".into(), arguments: Vec::new() };
    let rendered =
        WorkerPool::new(missing, PageLimits::default()).layout("<p>text", "http://a.example/", &nothing);
    assert!(matches!(rendered.fallback, Some(Fallback::NotStarted(_))));
    let pool = WorkerPool::new(command(&["--version"]), PageLimits::default());
    let rendered = pool.layout("<p>text", "http://a.example/", &nothing);
    assert_eq!(rendered.fallback, Some(Fallback::Crashed));
    assert_eq!(rendered.layout.engine, structural::ENGINE);
    assert!(rendered.layout.nodes.iter().any(|node| node.text == "text" && node.is_visible));
    assert_eq!((pool.n_pages(), pool.n_fallbacks()), (1, 1));
}

#[test]
fn a_worker_that_hangs_is_ended() {
    let hanging = WorkerCommand { program: "/bin/sleep".into(), arguments: vec!["600".into()] };
    let pool =
        WorkerPool::new(hanging, PageLimits { time: Duration::from_millis(200), ..PageLimits::default() });
    let rendered = pool.layout(&"<p>text".repeat(100_000), "http://a.example/", &nothing);
    assert_eq!(rendered.fallback, Some(Fallback::TimedOut));
    assert!(rendered.layout.nodes.len() > 100_000);
}

#[test]
fn a_worker_without_memory_costs_the_layout_only() {
    let pool = WorkerPool::new(command(&["render-worker", "--memory", "250000000"]), PageLimits::default());
    let large = "<div class=a style='float:left;width:10%'><b>word</b> <i>word</i></div>".repeat(60_000);
    let rendered = pool.layout(&large, "http://a.example/", &nothing);
    assert_eq!(rendered.fallback, Some(Fallback::Crashed));
    let rendered = pool.layout("<p>next", "http://a.example/", &nothing);
    assert_eq!(rendered.fallback, None, "the next page has a worker of its own");
}

#[test]
fn hostile_nesting_is_laid_out() {
    for open in ["<div>", "<b>", "<table><tr><td>", "<div style='display:flex'>", "<span>", "<ul><li>"] {
        let html = format!("{}deep inside{}", open.repeat(20_000), "<p>after");
        let rendered = pool().layout(&html, "http://a.example/", &nothing);
        assert_eq!(rendered.fallback, None, "{open}");
        assert!(rendered.layout.nodes.iter().any(|node| node.text.contains("deep inside")), "{open}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Every page gets a layout with parents before children and finite boxes.
    #[test]
    fn any_page_has_a_layout(
        html in "(<(div|p|span|table|tr|td|li|b|a href=x|img src=a|select|svg|style|button|input|textarea|iframe|math)( style='(display:(flex|grid|table|inline|none|contents|table-cell|inline-block)|float:left|position:(absolute|fixed)|width:[0-9]{1,7}px|columns:3|transform:rotate\\(9deg\\))')?>|</(div|p|b|table|a|style)>|[a-z ]{0,12}|\\PC{0,3}){0,50}",
    ) {
        static POOL: std::sync::LazyLock<WorkerPool> = std::sync::LazyLock::new(pool);
        let rendered = POOL.layout(&html, "http://a.example/", &nothing);
        for (index, node) in rendered.layout.nodes.iter().enumerate() {
            prop_assert!(node.parent.is_none_or(|parent| (parent as usize) < index));
            prop_assert!([node.rect.x, node.rect.y, node.rect.w, node.rect.h].iter().all(|side| side.is_finite()));
        }
    }
}

#[test]
fn segment_writes_every_format_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    std::fs::write(
        &page,
        "<title>t</title><h1>Headline here</h1><p>Words of the story.<p><a href=/x>a link</a>",
    )
    .unwrap();
    let run = |format: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_perennial"))
            .args(["lab", "segment", "--url", "http://a.example/dir/", "--format", format])
            .arg(&page)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let xml = String::from_utf8(run("vixml")).unwrap();
    let tree = perennial_core::page::segment::vixml::read(&xml).unwrap();
    assert_eq!(tree.url, "http://a.example/dir/");
    assert!(tree.engine.contains("blitz"), "{}", tree.engine);
    assert!(tree.leaves().any(|leaf| leaf.links.iter().any(|link| link.url == "http://a.example/x")));
    let json: serde_json::Value = serde_json::from_slice(&run("json")).unwrap();
    assert!(json.to_string().contains("Words of the story."));
    assert!(run("svg").starts_with(b"<svg"));
}

#[test]
fn selectors_count_the_children_of_an_element_as_browsers_do() {
    let html = "<body><script>1</script><style>p{}</style><p>one</p><template><p>x</template><meta name=a><p>two</p>\
        <noscript>y</noscript><p>three</p>";
    let ignored = vec![Selector::parse("body > p:nth-child(6), body > :last-child").unwrap()];
    let config = SegmentConfig { ignored, ..SegmentConfig::default() };
    let dom = Dom::parse(html);
    let by_tags = structural::layout(&dom, "http://a.example/");
    for layout in [pool().layout(html, "http://a.example/", &nothing).layout, by_tags] {
        let tree = segment(&layout, &config);
        let words: Vec<String> = tree.leaves().flat_map(|leaf| leaf.read()).map(Into::into).collect();
        assert_eq!(words, ["one"], "{}", tree.engine);
    }
}

#[test]
fn segment_identifies_the_page() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_perennial")).args(["lab", "segment", "nowhere"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("neither a file nor a URL"));
}

#[test]
fn every_capture_is_segmented_once_and_its_blocks_are_exported() {
    let (dir, archive) = folder();
    let file = sample_file(dir.path(), "a");
    perennial(&archive, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    let first = perennial(&archive, ["--json", "analyse"]).ok().json();
    assert_eq!((&first["n_failed"], &first["n_fallbacks"]), (&0.into(), &0.into()), "{first}");
    let again = perennial(&archive, ["--json", "analyse"]).ok().json();
    assert_eq!(again["n_captures"], 0, "finished work is not repeated");
    let exported = dir.path().join("blocks.warc.gz");
    let output = exported.to_str().unwrap();
    let report =
        perennial(&archive, ["--json", "export", "--format", "warc", "--trees", "-o", output]).ok().json();
    assert!(report["n_trees"].as_u64() >= Some(3), "two versions of one page and one of another: {report}");
    let mut records = WarcReader::new(std::fs::File::open(&exported).unwrap());
    let mut n_trees = 0;
    while let Some(item) = records.next_item().unwrap() {
        let WarcItem::Record(mut record) = item else { continue };
        let is_tree =
            record.header().target_uri().is_some_and(|uri| uri.starts_with("urn:vixml:http://a.example/"));
        if is_tree {
            let mut xml = String::new();
            record.read_to_string(&mut xml).unwrap();
            assert!(perennial_core::page::segment::vixml::read(&xml).unwrap().engine.contains("blitz"));
            n_trees += 1;
        }
    }
    assert_eq!(report["n_trees"], n_trees);
}

#[test]
fn an_archived_page_is_segmented_as_it_was() {
    let (dir, archive) = folder();
    let file = sample_file(dir.path(), "a");
    perennial(&archive, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    let words = |page: &str| perennial(&archive, ["lab", "segment", page]).ok().stdout;
    assert!(words("http://a.example/@2024-03-01").contains("a one"));
    assert!(words("http://a.example/@").contains("a two"));
    let missing = perennial(&archive, ["lab", "segment", "http://a.example/nowhere@"]);
    assert!(missing.code != 0 && missing.stderr.contains("no capture of"), "{}", missing.stderr);
}
