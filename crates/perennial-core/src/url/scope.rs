//! A seed and its limits -> whether a URL belongs to it.

use std::fmt;
use std::str::FromStr;

use regex::Regex;
use url::Url;

/// How far a seed reaches, by the names of Browsertrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ScopeKind {
    /// The seed alone.
    Page,
    /// Everything below the seed's last slash.
    Prefix,
    /// Everything on the seed's host, with or without `www.`.
    #[default]
    Host,
    /// The seed's host and every host below it.
    Domain,
}

impl ScopeKind {
    /// All kinds, the narrowest first.
    pub const ALL: [ScopeKind; 4] = [ScopeKind::Page, ScopeKind::Prefix, ScopeKind::Host, ScopeKind::Domain];

    /// The name in perennial.toml and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ScopeKind::Page => "page",
            ScopeKind::Prefix => "prefix",
            ScopeKind::Host => "host",
            ScopeKind::Domain => "domain",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("choose page, prefix, host or domain")]
pub struct ScopeError;

impl FromStr for ScopeKind {
    type Err = ScopeError;

    fn from_str(name: &str) -> Result<ScopeKind, ScopeError> {
        ScopeKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or(ScopeError)
    }
}

impl fmt::Display for ScopeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The URLs of one seed.
#[derive(Clone, Debug)]
pub struct Scope {
    pub kind: ScopeKind,
    pub seed: Url,
    /// If not empty, a URL must match one of these.
    pub include: Vec<Regex>,
    /// URLs that match one of these are left out.
    pub exclude: Vec<Regex>,
    /// The maximum number of links from the seed; by default only the crawler's limit applies.
    pub max_depth: Option<u32>,
}

impl Scope {
    /// Whether `url`, found `depth` links from the seed, belongs to it. The seed always does.
    pub fn contains(&self, url: &Url, depth: u32) -> bool {
        if *url == self.seed {
            return true;
        }
        self.max_depth.is_none_or(|max| depth <= max) && self.reaches(url) && self.is_chosen(url)
    }

    fn reaches(&self, url: &Url) -> bool {
        match self.kind {
            ScopeKind::Page => false,
            ScopeKind::Prefix => self.same_place(url) && url.path().starts_with(directory(self.seed.path())),
            ScopeKind::Host => self.same_place(url),
            ScopeKind::Domain => {
                let (host, domain) = (bare_host(url), bare_host(&self.seed));
                host == domain || host.strip_suffix(domain).is_some_and(|sub| sub.ends_with('.'))
            }
        }
    }

    /// Whether two URLs have the same host, with any scheme. An explicit port must match, so two servers on one
    /// machine remain separate.
    fn same_place(&self, url: &Url) -> bool {
        bare_host(url) == bare_host(&self.seed) && url.port() == self.seed.port()
    }

    fn is_chosen(&self, url: &Url) -> bool {
        let matches = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(url.as_str()));
        (self.include.is_empty() || matches(&self.include)) && !matches(&self.exclude)
    }
}

/// The host without a leading `www.`.
pub fn bare_host(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.strip_prefix("www.").unwrap_or(host)
}

fn directory(path: &str) -> &str {
    path.rfind('/').map_or("/", |slash| &path[..=slash])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(kind: ScopeKind, seed: &str) -> Scope {
        let seed = Url::parse(seed).unwrap();
        Scope { kind, seed, include: Vec::new(), exclude: Vec::new(), max_depth: None }
    }

    fn contains(scope: &Scope, url: &str) -> bool {
        scope.contains(&Url::parse(url).unwrap(), 1)
    }

    #[test]
    fn each_kind_reaches_further() {
        let seed = "https://e.org/news/index.html";
        let reach: Vec<usize> = ScopeKind::ALL
            .into_iter()
            .map(|kind| {
                let scope = scope(kind, seed);
                let urls = [
                    seed,
                    "http://www.e.org/news/1",
                    "https://e.org/shop",
                    "https://sub.e.org/",
                    "https://xe.org/",
                ];
                urls.iter().filter(|url| contains(&scope, url)).count()
            })
            .collect();
        assert_eq!(reach, [1, 2, 3, 4]);
    }

    #[test]
    fn rules_and_depth_narrow_but_never_lose_the_seed() {
        let mut narrow = scope(ScopeKind::Host, "https://e.org/");
        narrow.include = vec![Regex::new("/news/").unwrap()];
        narrow.exclude = vec![Regex::new(r"\.pdf$").unwrap()];
        narrow.max_depth = Some(2);
        assert!(contains(&narrow, "https://e.org/"));
        assert!(contains(&narrow, "https://e.org/news/a"));
        assert!(!contains(&narrow, "https://e.org/news/a.pdf"));
        assert!(!contains(&narrow, "https://e.org/other"));
        assert!(!narrow.contains(&Url::parse("https://e.org/news/a").unwrap(), 3));
    }

    #[test]
    fn two_ports_are_two_hosts() {
        let one = scope(ScopeKind::Host, "http://127.0.0.1:8080/");
        assert!(!contains(&one, "http://127.0.0.1:8081/"));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in ScopeKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("hosts".parse::<ScopeKind>(), Err(ScopeError));
    }
}
