//! `[[notify]]` <-> rules for notices; `[smtp]` -> the mail server.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use perennial_core::notice::{ChangeCondition, ChangeKind, OperationFilter, PageFilter, Wording};
use perennial_core::url::canonical;
use toml_edit::{Array, Item, Table, value};
use url::Url;

use super::reader::TableReader;
use super::site::parse_selector;
use super::write::{replace, tables};
use super::{edit, parse_choice};

/// `[[notify]]`: which changes are reported, and to which receiver.
#[derive(Debug, Clone)]
pub struct NotifyRule {
    /// The name of the rule. Sent notices are recorded under it.
    pub name: String,
    /// The receiver of its notices.
    pub to: NoticeReceiver,
    /// The changes that it reports.
    pub condition: ChangeCondition,
    /// Visits in a row without a page, or without the selected part, after which it says so; 0 for never.
    pub failures: u32,
    /// The URL of `perennial serve`, for links in notices.
    pub link: Option<Url>,
    /// A file with a bearer token on its first line, relative to the archive's folder.
    pub token_file: Option<PathBuf>,
}

/// `failures` of a rule without it. One failure is often gone at the next visit.
pub const DEFAULT_FAILURES: u32 = 3;

/// The receiver of notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeReceiver {
    /// A URL that receives each notice.
    Web(WebFormat, Url),
    /// A program with its arguments. It receives each notice on standard input.
    Command(Vec<String>),
    /// An e-mail address.
    Email(String),
}

/// The format of a notice sent to a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebFormat {
    /// The notice as JSON.
    Webhook,
    /// The format of incoming webhooks of Slack, Mattermost and others.
    Slack,
    /// The format of ntfy. The last part of the URL's path is the topic.
    Ntfy,
    /// The format of an Apprise server.
    Apprise,
}

impl WebFormat {
    const NAMES: [(&'static str, WebFormat); 4] = [
        ("webhook", WebFormat::Webhook),
        ("slack", WebFormat::Slack),
        ("ntfy", WebFormat::Ntfy),
        ("apprise", WebFormat::Apprise),
    ];
}

/// The valid forms of a receiver.
const RECEIVER_HINT: &str = "write webhook:, slack:, ntfy: or apprise: and an address such as https://hooks.example/x, \
    email:you@example.org, or command: and a program with its arguments";

impl NoticeReceiver {
    /// The kind of receiver in a word. Its URL may contain a secret.
    pub fn kind(&self) -> &'static str {
        match self {
            NoticeReceiver::Web(WebFormat::Webhook, _) => "webhook",
            NoticeReceiver::Web(WebFormat::Slack, _) => "Slack",
            NoticeReceiver::Web(WebFormat::Ntfy, _) => "ntfy",
            NoticeReceiver::Web(WebFormat::Apprise, _) => "Apprise",
            NoticeReceiver::Command(_) => "program",
            NoticeReceiver::Email(_) => "e-mail",
        }
    }
}

impl FromStr for NoticeReceiver {
    type Err = String;

    fn from_str(text: &str) -> Result<NoticeReceiver, String> {
        let hint = || RECEIVER_HINT.to_owned();
        let (kind, rest) = text.split_once(':').ok_or_else(hint)?;
        match kind {
            "http" | "https" => {
                parse_web(text).map(|url| NoticeReceiver::Web(WebFormat::Webhook, url)).ok_or_else(hint)
            }
            "command" => {
                let words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
                (!words.is_empty()).then_some(NoticeReceiver::Command(words)).ok_or_else(hint)
            }
            "email" | "mailto" => parse_mailbox(rest).map(NoticeReceiver::Email),
            _ => {
                let shape = parse_choice(kind, &WebFormat::NAMES).map_err(|_| hint())?;
                let url = parse_web(rest).ok_or_else(hint)?;
                match shape == WebFormat::Ntfy && ntfy_topic(&url).is_none() {
                    true => Err("name the topic, as in ntfy:https://ntfy.example/my-topic".to_owned()),
                    false => Ok(NoticeReceiver::Web(shape, url)),
                }
            }
        }
    }
}

impl fmt::Display for NoticeReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoticeReceiver::Web(shape, url) => {
                let name =
                    WebFormat::NAMES.iter().find(|(_, named)| named == shape).map_or("", |(name, _)| name);
                write!(f, "{name}:{url}")
            }
            NoticeReceiver::Command(words) => write!(f, "command:{}", words.join(" ")),
            NoticeReceiver::Email(address) => write!(f, "email:{address}"),
        }
    }
}

/// The topic in a URL of ntfy: the last part of its path.
pub fn ntfy_topic(url: &Url) -> Option<&str> {
    url.path_segments()?.next_back().filter(|topic| !topic.is_empty())
}

fn parse_web(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// An e-mail address that needs no quoting in an SMTP command.
pub fn parse_mailbox(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !"<>()[],;:\\\"".contains(c);
    let is_address = text.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && !host.is_empty() && !host.contains('@') && text.chars().all(is_plain)
    });
    let is_address = is_address && text.len() <= 254;
    is_address.then(|| text.to_owned()).ok_or_else(|| "write an address such as you@example.org".to_owned())
}

/// The host of a site, or the URL of a page.
pub fn parse_place(text: &str) -> Result<PageFilter, String> {
    if text.contains("://") {
        let url = canonical::parse(text).ok_or("write a page as https://example.org/prices")?;
        return Ok(PageFilter::Page(url.into()));
    }
    let is_host = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '/');
    let hint = || {
        "write the host of a site, such as example.org, or a page as https://example.org/prices".to_owned()
    };
    is_host.then(|| PageFilter::Site(text.to_ascii_lowercase())).ok_or_else(hint)
}

pub fn parse_name(text: &str) -> Result<String, String> {
    let is_name = !text.trim().is_empty() && text.len() <= 200 && !text.contains(char::is_control);
    is_name.then(|| text.trim().to_owned()).ok_or_else(|| "write a few words, such as \"prices\"".to_owned())
}

impl NotifyRule {
    pub fn new(name: String, to: NoticeReceiver, condition: ChangeCondition) -> NotifyRule {
        NotifyRule { name, to, condition, failures: DEFAULT_FAILURES, link: None, token_file: None }
    }

    /// One rule per receiver; the second and later ones have a number in their names.
    pub fn for_receivers(
        name: &str,
        receivers: &[NoticeReceiver],
        condition: &ChangeCondition,
        failures: u32,
    ) -> Vec<NotifyRule> {
        let rule = |(number, to): (usize, &NoticeReceiver)| {
            let name = if number == 0 { name.to_owned() } else { format!("{name} {}", number + 1) };
            NotifyRule { failures, ..NotifyRule::new(name, to.clone(), condition.clone()) }
        };
        receivers.iter().enumerate().map(rule).collect()
    }

    /// Reads each `[[notify]]` of the file.
    pub(super) fn read_all(reader: &mut TableReader<'_, '_>) -> Vec<NotifyRule> {
        let mut known = HashSet::new();
        reader.tables("notify", "[[notify]]", |reader| {
            let rule = NotifyRule::read(reader)?;
            if !known.insert(rule.name.clone()) {
                reader.refuse("name", "another [[notify]] has it: choose another name");
            }
            Some(rule)
        })
    }

    /// `None` if name or receiver is missing or wrong, which is noted as a mistake.
    fn read(reader: &mut TableReader<'_, '_>) -> Option<NotifyRule> {
        if !reader.has("name") {
            reader.lacks("[[notify]] needs a name, such as name = \"prices\"");
        }
        if !reader.has("to") {
            reader.lacks("[[notify]] needs to, such as to = \"email:you@example.org\"");
        }
        let name = reader.parsed("name", parse_name);
        let to = reader.parsed("to", str::parse);
        let condition = ChangeCondition {
            place: reader.parsed("place", parse_place).unwrap_or_default(),
            selector: reader.parsed("selector", parse_selector),
            min_importance: reader.number("min_importance", 0.0..=1.0).unwrap_or_default(),
            kinds: reader.list("kinds", str::parse::<ChangeKind>),
            appears: reader.parsed("appears", str::parse::<Wording>),
            vanishes: reader.parsed("vanishes", str::parse::<Wording>),
            operations: OperationFilter {
                op: reader.parsed("op", str::parse),
                element: reader.parsed("element", str::parse),
                block: reader.parsed("block", str::parse),
                text: reader.parsed("text", str::parse),
            },
            with_noise: false,
        };
        let failures = reader.whole("failures", 0..=1000).unwrap_or(DEFAULT_FAILURES);
        let link = reader.parsed("link", |text| {
            parse_web(text).ok_or_else(|| {
                "write where `perennial serve` answers, such as http://localhost:8080/".to_owned()
            })
        });
        let token_file = reader.text("token_file").map(PathBuf::from);
        Some(NotifyRule { name: name?, to: to?, condition, failures, link, token_file })
    }
}

/// `[smtp]`: the server that accepts our e-mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmtpTable {
    /// `host:port`; `None`: no e-mail can be sent.
    pub server: Option<(String, u16)>,
    /// How the connection is protected.
    pub security: SmtpSecurity,
    /// The sender; empty: the first recipient.
    pub from: String,
    /// The user name; empty: no login.
    pub user: String,
    /// A file with the password on its first line, relative to the archive's folder.
    pub password_file: Option<PathBuf>,
}

/// How a connection to a mail server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SmtpSecurity {
    /// Plain first, then TLS. If the server refuses TLS, nothing is sent.
    #[default]
    StartTls,
    Tls,
    /// No protection, only for a server on this machine or in your own network. No password is sent.
    None,
}

impl SmtpTable {
    pub(super) fn read(reader: &mut TableReader<'_, '_>) -> SmtpTable {
        const CHOICES: [(&str, SmtpSecurity); 3] =
            [("starttls", SmtpSecurity::StartTls), ("tls", SmtpSecurity::Tls), ("none", SmtpSecurity::None)];
        SmtpTable {
            server: reader.parsed("server", parse_server),
            security: reader.parsed("security", |text| parse_choice(text, &CHOICES)).unwrap_or_default(),
            from: reader
                .parsed("from", |text| match text {
                    "" => Ok(String::new()),
                    text => parse_mailbox(text),
                })
                .unwrap_or_default(),
            user: reader.text("user").unwrap_or_default(),
            password_file: reader.text("password_file").map(PathBuf::from),
        }
    }
}

fn parse_server(text: &str) -> Result<(String, u16), String> {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "587"));
    let is_host = !host.is_empty() && host.chars().all(|c| c.is_ascii_graphic() && c != '/' && c != '@');
    match port.parse() {
        Ok(port) if is_host => Ok((host.to_owned(), port)),
        _ => Err("write host and port, such as mail.example.org:587".to_owned()),
    }
}

/// Writes a rule into perennial.toml. A rule with the same name is replaced in its place; it keeps its link and its token if the receiver
/// stays the same.
pub fn put_rule(path: &Path, rule: &NotifyRule) -> anyhow::Result<()> {
    edit(path, |document, settings| {
        let tables = tables(document, "notify")?;
        let found = tables.iter().position(|table| has_name(table, &rule.name));
        match found.and_then(|at| tables.get_mut(at)) {
            Some(before) => {
                let known = settings.notify.iter().find(|known| known.name == rule.name);
                let mut rule = rule.clone();
                if let Some(known) = known.filter(|known| known.to == rule.to) {
                    rule.link = rule.link.or_else(|| known.link.clone());
                    rule.token_file = rule.token_file.or_else(|| known.token_file.clone());
                }
                replace(before, &known.map(to_toml).unwrap_or_default(), &to_toml(&rule));
            }
            None => tables.push(to_toml(rule)),
        }
        Ok(())
    })
}

/// Removes the rule with this name from perennial.toml.
pub fn remove_rule(path: &Path, name: &str) -> anyhow::Result<()> {
    edit(path, |document, _| {
        tables(document, "notify")?.retain(|table| !has_name(table, name));
        Ok(())
    })
}

fn has_name(table: &Table, name: &str) -> bool {
    table.get("name").and_then(Item::as_str).is_some_and(|known| known.trim() == name)
}

fn to_toml(rule: &NotifyRule) -> Table {
    let mut table = Table::new();
    let mut put = |key: &str, text: Option<String>| {
        if let Some(text) = text {
            table[key] = value(text);
        }
    };
    let condition = &rule.condition;
    put("name", Some(rule.name.clone()));
    put("to", Some(rule.to.to_string()));
    put("place", Some(condition.place.name().to_owned()).filter(|place| !place.is_empty()));
    put("selector", condition.selector.as_ref().map(ToString::to_string));
    put("appears", condition.appears.as_ref().map(ToString::to_string));
    put("vanishes", condition.vanishes.as_ref().map(ToString::to_string));
    let operations = &condition.operations;
    put("op", operations.op.map(|op| op.name().to_owned()));
    put("element", operations.element.map(|element| element.name().to_owned()));
    put("block", operations.block.as_ref().map(ToString::to_string));
    put("text", operations.text.as_ref().map(ToString::to_string));
    put("link", rule.link.as_ref().map(ToString::to_string));
    put("token_file", rule.token_file.as_ref().map(|file| file.display().to_string()));
    if condition.min_importance > 0.0 {
        table["min_importance"] = value(condition.min_importance);
    }
    if rule.failures != DEFAULT_FAILURES {
        table["failures"] = value(i64::from(rule.failures));
    }
    if !condition.kinds.is_empty() {
        table["kinds"] = value(condition.kinds.iter().map(|kind| kind.name()).collect::<Array>());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn targets_are_written_as_they_are_read() {
        for text in [
            "webhook:https://hooks.example/x?y=1",
            "slack:https://hooks.example/services/a",
            "ntfy:http://127.0.0.1:90/topic",
            "apprise:https://apprise.example/notify/key",
            "command:/usr/bin/tell --loud",
            "email:a.b+c@example.org",
        ] {
            assert_eq!(text.parse::<NoticeReceiver>().unwrap().to_string(), text);
        }
        assert_eq!("https://a.org/".parse::<NoticeReceiver>().unwrap().to_string(), "webhook:https://a.org/");
        for text in [
            "",
            "slack:",
            "slack:ftp://x/",
            "ntfy:https://ntfy.example/",
            "command: ",
            "email:x",
            "email:a@b\r\nX: y",
            "x:y",
        ] {
            assert!(text.parse::<NoticeReceiver>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rule_that_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perennial.toml");
        std::fs::write(&path, crate::settings::TEMPLATE).unwrap();
        let rule = NotifyRule {
            name: "prices \"x\"".into(),
            to: "slack:https://hooks.example/a".parse().unwrap(),
            condition: ChangeCondition {
                place: parse_place("https://example.org/p").unwrap(),
                selector: Some(parse_selector("#a > .b").unwrap()),
                min_importance: 0.25,
                kinds: vec![ChangeKind::Edited, ChangeKind::New],
                appears: Some("/a\"b/".parse().unwrap()),
                vanishes: Some("\"in stock\"".parse().unwrap()),
                operations: OperationFilter {
                    op: Some("insert".parse().unwrap()),
                    element: Some("link".parse().unwrap()),
                    block: Some("nav".parse().unwrap()),
                    text: Some("ferry".parse().unwrap()),
                },
                with_noise: false,
            },
            failures: 7,
            link: Some(Url::parse("http://localhost:8080/").unwrap()),
            token_file: Some("token".into()),
        };
        put_rule(&path, &rule).unwrap();
        put_rule(&path, &rule).unwrap();
        let read = Settings::load(&path).unwrap().notify;
        assert_eq!(read.len(), 1, "the one of the same name was replaced");
        assert_eq!(format!("{:?}", read[0]), format!("{rule:?}"));
    }
}
