//! Formats a notice for webhooks, Slack, ntfy, Apprise and mail, without I/O.
//!
//! The text of captured pages is untrusted. JSON is serialised, Slack text is escaped in plain-text blocks, and mail
//! is encoded as a whole. So no title can add a field, a link or a mention.

use data_encoding::BASE64;
use perennial_core::time::Timestamp;
use serde_json::{Value, json};
use url::Url;

use super::notice::Notice;
use perennial_archive::settings::WebFormat;
use perennial_archive::settings::notify::ntfy_topic;

/// The limits of a Slack block and an ntfy message are about this.
const MAX_BODY_BYTES: usize = 2_900;

/// The URL and the body of the request.
pub(super) fn http_request(shape: WebFormat, url: &Url, notice: &Notice) -> (Url, Value) {
    let (title, body) = (notice_title(notice), notice_text(notice));
    match shape {
        WebFormat::Webhook => (url.clone(), json!(notice)),
        WebFormat::Slack => (url.clone(), slack(&title, &body)),
        WebFormat::Apprise => {
            let text = json!({ "title": title, "body": body, "type": "info", "format": "text" });
            (url.clone(), text)
        }
        WebFormat::Ntfy => {
            let topic = ntfy_topic(url).unwrap_or_default().to_owned();
            let mut server = url.clone();
            if let Ok(mut path) = server.path_segments_mut() {
                path.pop();
            }
            let mut text = json!({ "topic": topic, "title": title, "message": body });
            text["click"] = json!(notice.link.as_ref().unwrap_or(&notice.url));
            (server, text)
        }
    }
}

fn slack(title: &str, body: &str) -> Value {
    let block = |text: &str| json!({ "type": "section", "text": { "type": "plain_text", "text": text, "emoji": false } });
    json!({
        // Mattermost and Rocket.Chat show only this.
        "text": slack_escaped(&format!("{title}\n{body}")),
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": [block(title), block(body)],
    })
}

/// Slack reads text in angle brackets as a link or a mention.
fn slack_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn notice_title(notice: &Notice) -> String {
    let name = notice.title.as_deref().unwrap_or(&notice.url);
    format!("{}: {name}", notice.kind)
}

pub(super) fn notice_text(notice: &Notice) -> String {
    let mut body = String::new();
    let mut put = |line: &str| {
        if body.len() + line.len() < MAX_BODY_BYTES {
            body.push_str(line);
            body.push('\n');
        }
    };
    put(&notice.url);
    if let (Some(before), Some(title)) = (&notice.title_before, &notice.title) {
        put(&format!("\"{before}\" => \"{title}\""));
    }
    notice.event.iter().for_each(|event| put(event));
    if let Some(headlines) = &notice.headlines {
        put(headlines);
    }
    for line in &notice.changes {
        put(&line.text());
    }
    if notice.n_changes > notice.changes.len() {
        put(&format!("and {} more", notice.n_changes - notice.changes.len()));
    }
    let part = notice.part.as_ref().map(|part| format!(" in the {}", part_name(part))).unwrap_or_default();
    put(&format!("{}{part}, importance {:.2}", size(notice.importance), notice.importance));
    put(&format!("seen {}, rule {}", notice.after, notice.rule));
    notice.link.iter().for_each(|link| put(link));
    body
}

/// The size of a change in words.
fn size(importance: f64) -> &'static str {
    match importance {
        _ if importance >= 0.3 => "a large change",
        _ if importance >= 0.1 => "a medium change",
        _ => "a small change",
    }
}

fn part_name(part: &str) -> &str {
    match part {
        "main" => "main text",
        "navigation" => "menu",
        other => other,
    }
}

/// A complete e-mail with CRLF line ends.
pub(super) fn mail_message(notice: &Notice, from: &str, to: &str, now: Timestamp) -> String {
    let subject = encoded_words(&notice_title(notice));
    let host = from.split_once('@').map_or("localhost", |(_, host)| host);
    let mut mail = format!(
        "From: Perennial <{from}>\r\nTo: <{to}>\r\nSubject: {subject}\r\nDate: {}\r\nMessage-ID: <{}@{host}>\r\n\
         Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n",
        mail_date(now),
        notice.id
    );
    let encoded = BASE64.encode(notice_text(notice).as_bytes());
    for line in encoded.as_bytes().chunks(76) {
        mail.push_str(&String::from_utf8_lossy(line));
        mail.push_str("\r\n");
    }
    mail
}

/// RFC 2047: encodes text as base64 words that fit a line.
fn encoded_words(text: &str) -> String {
    const MAX_BYTES: usize = 42;
    let mut words: Vec<String> = Vec::new();
    let mut part = String::new();
    for character in text.chars() {
        if part.len() + character.len_utf8() > MAX_BYTES {
            words.push(std::mem::take(&mut part));
        }
        part.push(character);
    }
    words.push(part);
    let encoded = words.iter().map(|word| format!("=?utf-8?B?{}?=", BASE64.encode(word.as_bytes())));
    encoded.collect::<Vec<_>>().join("\r\n ")
}

/// RFC 5322, in UTC.
fn mail_date(now: Timestamp) -> String {
    // An HTTP date differs only in its zone, GMT.
    perennial_core::memento::date::write(now).replace("GMT", "+0000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notice::NoticeLine;
    use proptest::prelude::*;

    fn notice(title: &str, words: &str) -> Notice {
        let trial = Notice::sample("r", Timestamp::from_secs(0));
        let line = NoticeLine { op: "insert".into(), before: None, after: Some(words.into()) };
        Notice { title: Some(title.into()), changes: vec![line], link: Some("http://a/x".into()), ..trial }
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn slack_mentions_nobody() {
        let (_, text) = http_request(
            WebFormat::Slack,
            &url("https://h.example/"),
            &notice("<!channel> & <https://evil|x>", "*b*"),
        );
        let message = text["text"].as_str().unwrap();
        assert!(message.starts_with("edited: &lt;!channel&gt; &amp; &lt;https://evil|x&gt;\n"), "{message}");
        assert_eq!(text["blocks"][1]["text"]["type"], "plain_text");
    }

    #[test]
    fn ntfy_gets_its_topic_at_its_root() {
        let (server, text) =
            http_request(WebFormat::Ntfy, &url("https://ntfy.example/sub/news"), &notice("T", "w"));
        assert_eq!((server.as_str(), text["topic"].as_str()), ("https://ntfy.example/sub", Some("news")));
        assert_eq!(text["click"], "http://a/x");
        let (server, _) = http_request(WebFormat::Ntfy, &url("https://ntfy.example/news"), &notice("T", "w"));
        assert_eq!(server.as_str(), "https://ntfy.example/");
    }

    #[test]
    fn a_mail_has_a_head_and_a_body() {
        let mail = mail_message(
            &notice("Brücke\r\nBcc: x@y", "w"),
            "a@b.org",
            "c@d.org",
            Timestamp::from_secs(784_111_777),
        );
        let (head, body) = mail.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\nDate: Sun, 06 Nov 1994 08:49:37 +0000\r\n"), "{head}");
        assert!(!head.contains("Bcc"), "{head}");
        let text = String::from_utf8(BASE64.decode(body.replace("\r\n", "").as_bytes()).unwrap()).unwrap();
        assert!(text.starts_with("https://example.org/\n+ w\n"), "{text}");
    }

    proptest! {
        /// No page can change the fields of a mail's head. Its lines remain short and plain.
        #[test]
        fn no_title_adds_to_the_head_of_a_mail(title in "\\PC{0,200}|[\\r\\n:a-z]{0,60}") {
            let mail = mail_message(&notice(&title, &title), "a@b", "c@d", Timestamp::from_secs(0));
            let head = mail.split("\r\n\r\n").next().unwrap();
            let fields = head.split("\r\n").filter(|line| !line.starts_with(' ')).count();
            prop_assert_eq!(fields, 9);
            prop_assert!(mail.is_ascii() && mail.split("\r\n").all(|line| line.len() <= 78 && !line.contains(['\r', '\n'])));
        }
    }
}
