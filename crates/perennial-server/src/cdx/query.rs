//! Parses and bounds the parameters of a CDX query.

use perennial_core::memento::replay_url::{QueryParameters, earliest_time, latest_time, unescape};
use perennial_core::time::Timestamp;
use perennial_warc::cdxj::CdxjLine;
use perennial_warc::surt::{KeyRange, MatchType, surt};
use regex::{Regex, RegexBuilder};

use super::output::{self, CdxFormat, Dialect};
use super::{BLOCK_LINES, MAX_ROWS};

/// Filters per query.
const MAX_FILTERS: usize = 16;
const MAX_REGEX_BYTES: usize = 256 << 10;

/// The order of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As in the index.
    Ascending,
    /// The last rows, in the order of the index.
    Last,
    /// The last rows, latest first.
    Descending,
    /// Nearest to an instant first.
    Closest(Timestamp),
}

pub struct CdxQuery {
    pub range: KeyRange,
    pub dialect: Dialect,
    pub output: CdxFormat,
    /// `None`: all fields.
    pub fields: Option<Vec<String>>,
    pub order: Order,
    /// The most rows.
    pub limit: usize,
    /// Rows to skip.
    pub n_skipped: usize,
    /// Collapses adjacent rows whose field is equal up to a length.
    pub collapse: Option<(String, usize)>,
    /// Only the number of pages is requested.
    pub counts_pages: bool,
    /// The requested page.
    pub page: Option<usize>,
    /// Lines per page.
    pub page_lines: usize,
    /// A resume key is requested.
    pub shows_resume_key: bool,
    /// Where to continue.
    pub resume: Option<ResumePoint>,
    /// The key, if the query is for one URL.
    exact_key: Option<String>,
    from: Option<String>,
    to: Option<String>,
    filters: Vec<Filter>,
}

impl CdxQuery {
    /// Parses a query; `url` is the URL in the path, if there is one.
    pub fn parse(query: &QueryParameters, url: Option<&str>, dialect: Dialect) -> Result<CdxQuery, String> {
        let url = url.or_else(|| query.get("url")).filter(|url| !url.is_empty());
        let url = url.ok_or("url: missing parameter; add ?url=https://example.org/")?;
        let limit: i64 = number(query, "limit")?.unwrap_or(MAX_ROWS as i64);
        let order = order_of(query, limit)?;
        refuse_unsupported(query)?;
        let exact = KeyRange::of(url, MatchType::Exact);
        let range = range_of(url, query.get("matchType"))?;
        let page_lines = BLOCK_LINES * number(query, "pageSize")?.unwrap_or(1).clamp(1, 30) as usize;
        let page = number(query, "page")?;
        let mut cdx = CdxQuery {
            exact_key: (range == exact).then(|| surt(url)),
            range,
            dialect,
            output: CdxFormat::parse(query.get("output"), dialect)?,
            fields: fields_of(query, dialect)?,
            order,
            limit: (limit.unsigned_abs() as usize).min(MAX_ROWS),
            n_skipped: number(query, "offset")?.unwrap_or(0).max(0) as usize,
            collapse: collapse_of(query, dialect)?,
            counts_pages: query.is_on("showNumPages"),
            page_lines,
            shows_resume_key: query.is_on("showResumeKey"),
            resume: query
                .get("resumeKey")
                .filter(|key| !key.is_empty())
                .map(ResumePoint::read)
                .transpose()?,
            page: page.map(|page| page.max(0) as usize),
            from: digits(query, &["from", "from_ts"], earliest_time),
            to: digits(query, &["to"], latest_time),
            filters: filters_of(query, dialect)?,
        };
        if let Some(page) = cdx.page {
            cdx.n_skipped = page_lines.saturating_mul(page);
            cdx.limit = cdx.limit.min(page_lines);
        }
        Ok(cdx)
    }

    /// The lines from the start of the query, or from where it continues.
    pub fn start(&self) -> KeyRange {
        let mut range = self.range.clone();
        if let Some(resume) = &self.resume {
            let start = format!("{} {}", resume.key, resume.timestamp).into_bytes();
            range.start = range.start.max(start);
        }
        range
    }

    /// Key, instant and number of captures, if only those of one URL nearest to an instant are requested. Filters and collapsing may
    /// need more lines.
    pub fn nearest(&self) -> Option<(&str, Timestamp, usize)> {
        let is_plain = self.filters.is_empty() && self.collapse.is_none() && self.n_skipped == 0;
        let is_plain = is_plain && self.from.is_none() && self.to.is_none() && self.resume.is_none();
        match self.order {
            Order::Closest(at) if is_plain => Some((self.exact_key.as_deref()?, at, self.limit)),
            _ => None,
        }
    }

    /// Whether a line matches time and filters.
    pub fn is_wanted(&self, line: &CdxjLine) -> bool {
        self.from.as_ref().is_none_or(|from| line.timestamp >= *from)
            && self.to.as_ref().is_none_or(|to| line.timestamp <= *to)
            && self.filters.iter().all(|filter| filter.passes(line))
    }
}

fn number(query: &QueryParameters, name: &str) -> Result<Option<i64>, String> {
    let Some(text) = query.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{name}={text}: write a number"))
}

fn digits(query: &QueryParameters, names: &[&str], fill: fn(&str) -> Timestamp) -> Option<String> {
    let text = names.iter().find_map(|name| query.get(name)).filter(|text| !text.is_empty())?;
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    Some(fill(&digits).to_digits14())
}

fn order_of(query: &QueryParameters, limit: i64) -> Result<Order, String> {
    let closest = query.get("closest").filter(|text| !text.is_empty());
    match (query.get("sort").unwrap_or_default(), closest) {
        (_, Some(time)) => Ok(Order::Closest(latest_time(time))),
        ("closest", None) => Err("sort=closest requires closest=<time>".to_string()),
        ("reverse", None) => Ok(Order::Descending),
        _ if query.is_on("reverse") => Ok(Order::Descending),
        _ if limit < 0 => Ok(Order::Last),
        _ => Ok(Order::Ascending),
    }
}

/// `*.example.org` is a domain, `example.org/a*` a prefix, `*` everything.
fn range_of(url: &str, matching: Option<&str>) -> Result<KeyRange, String> {
    let (url, matching) = match matching.filter(|matching| !matching.is_empty()) {
        Some("exact") => (url, MatchType::Exact),
        Some("prefix") => (url.strip_suffix('*').unwrap_or(url), MatchType::Prefix),
        Some("host") => (url, MatchType::Host),
        Some("domain") => (url.strip_prefix("*.").unwrap_or(url), MatchType::Domain),
        Some("range") | Some(_) => return Err("matchType: write exact, prefix, host or domain".to_string()),
        None if url == "*" => return Ok(KeyRange { start: Vec::new(), end: vec![0xff] }),
        None => match (url.strip_prefix("*."), url.strip_suffix('*')) {
            (Some(domain), _) => (domain.trim_end_matches(['*', '/']), MatchType::Domain),
            (None, Some(prefix)) => (prefix, MatchType::Prefix),
            (None, None) => (url, MatchType::Exact),
        },
    };
    match surt(url).is_empty() {
        true => Err("url: empty".to_string()),
        false => Ok(KeyRange::of(url, matching)),
    }
}

fn fields_of(query: &QueryParameters, dialect: Dialect) -> Result<Option<Vec<String>>, String> {
    let list = query.get("fields").or_else(|| query.get("fl")).filter(|list| !list.is_empty());
    let Some(list) = list else { return Ok(None) };
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty()).take(32);
    names.map(|name| known_field(name, dialect)).collect::<Result<_, _>>().map(Some)
}

/// A field by its name, or by its column in the Internet Archive's dialect.
fn known_field(name: &str, dialect: Dialect) -> Result<String, String> {
    let column = name.parse::<usize>().ok().filter(|_| dialect == Dialect::Wayback);
    let name = column.and_then(|column| output::WAYBACK_FIELDS.get(column).copied()).unwrap_or(name);
    match output::is_known(name) {
        true => Ok(name.to_string()),
        false => Err(format!("{name}: unknown field; write {}", output::fields(dialect).join(", "))),
    }
}

/// Unsupported parameters that would change the rows. They are an error, because a client would misread the result.
fn refuse_unsupported(query: &QueryParameters) -> Result<(), String> {
    let unsupported = ["showDupeCount", "showSkipCount", "showUniqCount", "lastSkipTimestamp"];
    match unsupported.into_iter().find(|name| query.get(name).is_some() && query.is_on(name)) {
        Some(name) => Err(format!("{name}: not supported; collapse=digest lists each payload once")),
        None => Ok(()),
    }
}

/// `digest`, `timestamp:10`; pywb's `collapseTime=10`.
fn collapse_of(query: &QueryParameters, dialect: Dialect) -> Result<Option<(String, usize)>, String> {
    if let Some(length) = number(query, "collapseTime")? {
        return Ok(Some(("timestamp".to_string(), length.max(0) as usize)));
    }
    let Some(text) = query.get("collapse").filter(|text| !text.is_empty()) else { return Ok(None) };
    let (field, length) = text.split_once(':').unwrap_or((text, ""));
    let length = match length {
        "" => usize::MAX,
        length => length.parse().map_err(|_| format!("collapse={text}: write a number after the colon"))?,
    };
    Ok(Some((known_field(field, dialect)?, length)))
}

/// A condition on a field.
struct Filter {
    field: String,
    is_inverted: bool,
    rule: Rule,
}

enum Rule {
    Equals(String),
    Contains(String),
    Matches(Regex),
}

impl Filter {
    fn passes(&self, line: &CdxjLine) -> bool {
        let value = output::find_field(line, &self.field).unwrap_or_default();
        let fits = match &self.rule {
            Rule::Equals(text) => value == text.as_str(),
            Rule::Contains(text) => value.contains(text.as_str()),
            Rule::Matches(regex) => regex.is_match(&value),
        };
        fits != self.is_inverted
    }
}

fn filters_of(query: &QueryParameters, dialect: Dialect) -> Result<Vec<Filter>, String> {
    query.all("filter").take(MAX_FILTERS).map(|text| filter_of(text, dialect)).collect()
}

/// `[!][=~]field:text`. Without an operator, pywb searches for the text; the Internet Archive matches the whole field with an expression.
fn filter_of(text: &str, dialect: Dialect) -> Result<Filter, String> {
    let (is_inverted, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let (sign, rest) = match rest.chars().next() {
        Some(sign @ ('=' | '~')) => (Some(sign), &rest[1..]),
        _ => (None, rest),
    };
    let (field, value) = rest
        .split_once(':')
        .ok_or_else(|| format!("filter={text}: expected a colon, as in filter=status:200"))?;
    let rule = match (sign, dialect) {
        (Some('='), _) => Rule::Equals(value.to_string()),
        (None, Dialect::Pywb) => Rule::Contains(value.to_string()),
        // Python's `match` matches from the start; Java's `matches` matches everything.
        (_, Dialect::Pywb) => Rule::Matches(expression(&format!("^(?:{value})"))?),
        (_, Dialect::Wayback) => Rule::Matches(expression(&format!("^(?:{value})$"))?),
    };
    Ok(Filter { field: known_field(field, dialect)?, is_inverted, rule })
}

fn expression(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).dfa_size_limit(MAX_REGEX_BYTES).build();
    built.map_err(|_| format!("{text}: invalid or too large regular expression"))
}

/// The end of the previous response.
pub struct ResumePoint {
    key: String,
    timestamp: String,
    n_given: usize,
}

impl ResumePoint {
    /// Reads a key as it was sent, or escaped once more: some clients escape the escaped key of a response.
    fn read(text: &str) -> Result<ResumePoint, String> {
        let found = ResumePoint::parse(text).or_else(|| ResumePoint::parse(&unescape(text, true)));
        found.ok_or_else(|| format!("resumeKey={text}: not a key of this server; start again without it"))
    }

    fn parse(text: &str) -> Option<ResumePoint> {
        let mut words = text.rsplitn(3, ' ');
        let (n_given, timestamp, key) = (words.next()?, words.next()?, words.next()?);
        let is_time = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
        Some(ResumePoint {
            key: key.to_string(),
            timestamp: is_time.then(|| timestamp.to_string())?,
            n_given: n_given.parse().ok()?,
        })
    }

    /// Whether a line, the `n_here`-th with its key and time, was in the previous response.
    pub(super) fn is_before(&self, line: &CdxjLine, n_here: usize) -> bool {
        line.key == self.key && line.timestamp == self.timestamp && n_here <= self.n_given
    }
}
