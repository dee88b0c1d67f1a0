//! Tests of rewritten pages, which the archive's own parser reads again.

use perennial_core::text::charset::Charset;
use perennial_core::text::dom::Dom;
use proptest::prelude::*;
use url::Url;

use super::*;

fn options() -> PageOptions {
    PageOptions {
        place: RewritePlace {
            root: "/web/".into(),
            time: "2020".into(),
            base: Url::parse("http://a.example/d/").unwrap(),
            charset: Charset::default(),
        },
        injection: None,
        is_outermost: true,
        n_nested: 0,
    }
}

fn check(html: &str, expected: &str) {
    assert_eq!(rewrite_page(html, options()).unwrap(), expected, "{html}");
}

const TO: &str = "/web/2020mp_/http://a.example";

#[test]
fn every_element_requests_in_its_form() {
    let to = |modifier: &str, path: &str| format!("/web/2020{modifier}/http://a.example{path}");
    for (html, expected) in [
        ("<img src=/x>", format!("<img src=\"{}\">", to("im_", "/x"))),
        ("<script src=x></script>", format!("<script src=\"{}\"></script>", to("js_", "/d/x"))),
        ("<iframe src=x></iframe>", format!("<iframe src=\"{}\"></iframe>", to("if_", "/d/x"))),
        ("<frame src=x>", format!("<frame src=\"{}\">", to("fr_", "/d/x"))),
        ("<link rel=stylesheet href=x>", format!("<link rel=stylesheet href=\"{}\">", to("cs_", "/d/x"))),
        (
            "<link rel=preload as=image href=x>",
            format!("<link rel=preload as=image href=\"{}\">", to("im_", "/d/x")),
        ),
        (
            "<video poster=x src=y>",
            format!("<video poster=\"{}\" src=\"{}\">", to("im_", "/d/x"), to("oe_", "/d/y")),
        ),
        ("<object data=x>", format!("<object data=\"{}\">", to("oe_", "/d/x"))),
        ("<form action=x>", format!("<form action=\"{}\">", to("mp_", "/d/x"))),
        ("<svg><use xlink:href=x#y />", format!("<svg><use xlink:href=\"{}\" />", to("im_", "/d/x#y"))),
        ("<svg><use href='#y'/>", "<svg><use href='#y'/>".to_string()),
        ("<param name=movie value=x>", format!("<param name=movie value=\"{}\">", to("oe_", "/d/x"))),
        ("<a ping=/p href=#x>", "<a href=#x>".to_string()),
    ] {
        check(html, &expected);
    }
}

#[test]
fn character_references_are_read_and_written() {
    check("<a href='/x?a=1&amp;b=2'>", &format!("<a href=\"{TO}/x?a=1&amp;b=2\">"));
    check("<a href='&#104;ttp&colon;//b.example/'>", "<a href=\"/web/2020mp_/http://b.example/\">");
    check("<a href=\"java&#x0a;script:x\">", "<a href=\"java&#x0a;script:x\">");
}

#[test]
fn a_base_counts_for_what_comes_behind_it() {
    check(
        "<img src=x><base href=http://b.example/e/><img src=x><base href=http://c.example/>",
        "<img src=\"/web/2020im_/http://a.example/d/x\"><base href=\"/web/2020mp_/http://b.example/e/\">\
         <img src=\"/web/2020im_/http://b.example/e/x\"><base href=\"/web/2020mp_/http://c.example/\">",
    );
}

#[test]
fn what_stands_for_headers_is_disarmed() {
    check("<meta http-equiv=Content-Security-Policy content=x>", "<meta content=x>");
    check("<meta http-equiv=set-cookie content=a=b>", "<meta content=a=b>");
    check(
        "<meta http-equiv=refresh content='0;url=/x'>",
        &format!("<meta http-equiv=refresh content=\"0; url={TO}/x\">"),
    );
    check("<meta name=referrer content=never>", "<meta content=never>");
    check("<a target=_blank href=#>", "<a target=\"perennial_page\" href=#>");
}

#[test]
fn styles_scripts_and_documents_within_are_rewritten() {
    check(
        "<style>a{b:url(/x)}</style><p style=\"b:url('/x')\">",
        "<style>a{b:url(\"/web/2020oe_/http://a.example/x\")}</style>\
         <p style=\"b:url(&quot;/web/2020oe_/http://a.example/x&quot;)\">",
    );
    check("<script>a.location</script>", "<script>a.__perennial_location</script>");
    check(
        "<script type=text/template><a href=/x></script>",
        "<script type=text/template><a href=/x></script>",
    );
    check(
        "<iframe srcdoc='<a href=/x>'></iframe>",
        &format!("<iframe srcdoc=\"&lt;a href=&quot;{TO}/x&quot;>\"></iframe>"),
    );
    check(
        "<noscript><img src=/x></noscript>",
        "<noscript><img src=\"/web/2020im_/http://a.example/x\"></noscript>",
    );
    check(
        "<a onclick=\"location='/x'\">",
        "<a onclick=\"let location=(self.__perennial||self).location;location.href='/x'\">",
    );
}

#[test]
fn our_script_comes_first() {
    let injection = Some(Injection { markup: "<!--ours-->".into() });
    let with =
        |html: &str| rewrite_page(html, PageOptions { injection: injection.clone(), ..options() }).unwrap();
    assert_eq!(
        with("<!doctype html><html><head><script>1</script>"),
        "<!doctype html><html><head><!--ours--><script>1</script>"
    );
    assert_eq!(with("<script>1</script><head>"), "<!--ours--><script>1</script><head>");
    assert_eq!(with("<title>x</title>"), "<!--ours--><title>x</title>");
}

/// Whether a URL may occur in a replay.
fn is_held(value: &str) -> bool {
    let value = value.trim_matches(|c: char| c <= ' ');
    let lower: String =
        value.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect::<String>().to_lowercase();
    value.is_empty()
        || value.starts_with('#')
        || value.starts_with("/web/2020")
        || ["javascript:", "data:", "blob:", "about:", "mailto:", "tel:", "sms:", "xmpp:"]
            .iter()
            .any(|s| lower.starts_with(s))
}

/// The URLs of a page that may not occur in a replay.
fn loose(html: &str) -> Vec<String> {
    const NAMES: [&str; 9] =
        ["href", "src", "action", "formaction", "poster", "background", "data", "longdesc", "cite"];
    let dom = Dom::parse(html);
    let mut found = Vec::new();
    for node in &dom.nodes {
        for name in NAMES {
            let is_url = name != "data" || node.tag() == "object";
            if let Some(value) = node.attribute(name).filter(|value| is_url && !is_held(value)) {
                found.push(format!("{} {name}={value}", node.tag()));
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No page keeps a URL that points elsewhere. SVG and MathML are excluded: in some nestings the rewriter reads text where browsers
    /// read tags, and only the policy limits that.
    #[test]
    fn no_url_is_left(pieces in proptest::collection::vec(prop::sample::select(vec![
        "<a href=", "<img src=", "<img/src=", "<IMG SRC =", "<a x='>' href=", "<p>", "</p>", "<table>",
        "<tr>", "<select>", "<option>", "<!--", "-->", "<!--><", "http://evil.example/", "//evil.example/", "\"", "'", ">", " ", "/",
        "\n", "=", "&#104;ttp://evil.example", "\thttp://evil.example", "HTTP:\\\\evil.example", "<base href=", "<form action=",
        "<script>", "</script>", "<style>", "</style>", "<textarea>", "</textarea>", "<title>", "</title>", "<iframe src=",
        "</iframe>", "<template>", "</template>", "href=", "SRC=", "\0", "`",
    ]), 0..30)) {
        let html = pieces.concat();
        // Strict rewriting refuses markup that browsers read differently; in a replay the policy limits it.
        if let Ok(rewritten) = rewrite_page_strictly(&html, options()) {
            let found = loose(&rewritten);
            prop_assert!(found.is_empty(), "{html:?} -> {rewritten:?}: {found:?}");
        }
    }

    /// The result does not depend on how the page is split into chunks.
    #[test]
    fn pieces_do_not_matter(cuts in proptest::collection::vec(1usize..40, 1..20)) {
        let html = "<!doctype html><html><head><base href=/e/><style>a{b:url(x)}</style></head><body><a href='y&amp;z'>é</a>\
                    <script>location.href; x = '</' + 'p>';</script><img srcset='a 1x, b 2x'></body></html>";
        let whole = rewrite_page(html, options()).unwrap();
        let mut rewriter = PageRewriter::new(options(), AsciiCompatibleEncoding::utf_8(), false);
        let (mut out, mut rest) = (Vec::new(), html.as_bytes());
        for cut in cuts.iter().cycle() {
            let (piece, behind) = rest.split_at((*cut).min(rest.len()));
            out.extend(rewriter.write(piece).unwrap());
            rest = behind;
            if rest.is_empty() { break }
        }
        out.extend(rewriter.end().unwrap());
        prop_assert_eq!(String::from_utf8(out).unwrap(), whole);
    }
}
