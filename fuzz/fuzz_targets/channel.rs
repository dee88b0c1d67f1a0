//! Any text as a channel page, and any text as a hub's request. The page is filled with items or left alone, none of
//! its scripts can run, and untrusted requests are rejected.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use perennial_lab::feeds::channel::{ChannelItem, ChannelPage};
use perennial_core::feed::websub::{HubSubscriptions, PushOutcome};
use perennial_core::text::dom::Dom;
use perennial_core::time::Timestamp;
use perennial_core::time::dates;
use perennial_core::url::PageId;
use url::Url;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let url = Url::parse("http://page.example/").unwrap();
    let known: HashSet<String> = ["1", "2", "3"].map(|name| format!("http://page.example/{name}")).into();
    let item = ChannelItem { title: "<script>".into(), note: "a note".into(), ..ChannelItem::default() };
    let dom = Dom::parse(&text);
    let items = [item.clone(), item];
    let page = ChannelPage {
        dom: &dom,
        url: &url,
        known: &known,
        items: &items,
        notice: "Inferred",
        style: &|_| Some(text.to_string()),
    };
    if let Some(html) = page.to_html() {
        assert!(html.matches("a note").count() >= 2);
        assert!(
            Dom::parse(&html).nodes.iter().all(|node| !matches!(node.tag(), "script" | "iframe" | "object"))
        );
    }
    let now = Timestamp::from_secs(1_790_000_000);
    let mut all = HubSubscriptions::new(url.clone());
    all.want(PageId(1), "http://page.example/feed", &url, "token", "a secret word", now);
    let (query, signature) = text.split_once('\n').unwrap_or((&text, ""));
    let _ = all.verify("token", query, now);
    assert!(!matches!(all.receive("token", Some(signature), data), PushOutcome::News(_)));
    let _ = (dates::parse_lenient(&text), dates::find(&text), dates::find_in_url(&text));
});
