//! Queries for changes. `/changes`, `/api/changes` and `/changes.atom` use the same parameter names.

use perennial_core::memento::replay_url::escape;
use perennial_core::notice::{ChangeCondition, OperationFilter, PageFilter};
use perennial_core::schedule::units;
use perennial_core::time::Timestamp;

use perennial_archive::settings::notify::parse_place;
use perennial_archive::settings::site::parse_selector;
use perennial_archive::store::ChangeOrder;

/// A query for the changes of an archive.
#[derive(Clone, Debug, Default)]
pub struct ChangeQuery {
    pub condition: ChangeCondition,
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
    pub order: ChangeOrder,
}

/// Longest value of a parameter.
const MAX_VALUE_BYTES: usize = 2_000;

impl ChangeQuery {
    /// Parses a query. `given` returns the value of a parameter. Durations count back from `now`.
    pub fn read<'q>(given: impl Fn(&str) -> Option<&'q str>, now: Timestamp) -> Result<ChangeQuery, String> {
        let given = |key: &str| given(key).map(str::trim).filter(|text| !text.is_empty());
        fn parsed<T>(
            key: &str,
            text: Option<&str>,
            parse: impl Fn(&str) -> Result<T, String>,
        ) -> Result<Option<T>, String> {
            let Some(text) = text else { return Ok(None) };
            if text.len() > MAX_VALUE_BYTES {
                return Err(format!("{key}: longer than {MAX_VALUE_BYTES} bytes."));
            }
            parse(text).map(Some).map_err(|hint| format!("{key}: {}.", hint.trim_end_matches('.')))
        }
        let time = |text: &str| units::parse_time(text, now).map_err(|error| error.to_string());
        let place = given("page").or(given("site")).or(given("place"));
        let condition = ChangeCondition {
            place: parsed("site", place, parse_place)?.unwrap_or_default(),
            selector: parsed("selector", given("selector"), parse_selector)?,
            min_importance: parsed("least", given("least"), parse_share)?.unwrap_or_default(),
            kinds: parsed("kind", given("kind"), |kinds| kinds.split(',').map(str::parse).collect())?
                .unwrap_or_default(),
            appears: parsed("appears", given("appears"), str::parse)?,
            vanishes: parsed("vanishes", given("vanishes"), str::parse)?,
            operations: OperationFilter {
                op: parsed("op", given("op"), str::parse)?,
                element: parsed("element", given("element"), str::parse)?,
                block: parsed("block", given("block"), str::parse)?,
                text: parsed("text", given("text"), str::parse)?,
            },
            with_noise: given("noise").is_some_and(|value| matches!(value, "1" | "true" | "yes")),
        };
        Ok(ChangeQuery {
            condition,
            since: parsed("since", given("since"), time)?,
            until: parsed("until", given("until"), time)?,
            order: parsed("order", given("order"), parse_order)?.unwrap_or_default(),
        })
    }

    /// The parameters of this query, with their values.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let condition = &self.condition;
        let operations = &condition.operations;
        let kinds: Vec<&str> = condition.kinds.iter().map(|kind| kind.name()).collect();
        let (site, page) = match &condition.place {
            PageFilter::Anywhere => (None, None),
            PageFilter::Site(host) => (Some(host.clone()), None),
            PageFilter::Page(url) => (None, Some(url.clone())),
        };
        let all = [
            ("site", site),
            ("page", page),
            ("since", self.since.map(Timestamp::to_rfc3339)),
            ("until", self.until.map(Timestamp::to_rfc3339)),
            ("least", Some(condition.min_importance.to_string()).filter(|_| condition.min_importance > 0.0)),
            ("kind", Some(kinds.join(",")).filter(|kinds| !kinds.is_empty())),
            ("appears", condition.appears.as_ref().map(ToString::to_string)),
            ("vanishes", condition.vanishes.as_ref().map(ToString::to_string)),
            ("op", operations.op.map(|op| op.name().to_owned())),
            ("element", operations.element.map(|element| element.name().to_owned())),
            ("block", operations.block.as_ref().map(ToString::to_string)),
            ("text", operations.text.as_ref().map(ToString::to_string)),
            ("selector", condition.selector.as_ref().map(ToString::to_string)),
            ("noise", condition.with_noise.then(|| "1".to_owned())),
            ("order", (self.order != ChangeOrder::default()).then(|| order_name(self.order).to_owned())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// This query as a URL query string.
    pub fn query(&self) -> String {
        let pairs = self.parameters().into_iter().map(|(name, value)| format!("{name}={}", escape(&value)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".to_owned())
}

fn parse_order(text: &str) -> Result<ChangeOrder, String> {
    let all = [ChangeOrder::Latest, ChangeOrder::Oldest, ChangeOrder::Strongest];
    let found = all.into_iter().find(|order| order_name(*order) == text);
    found.ok_or_else(|| "choose latest, oldest or importance".to_owned())
}

fn order_name(order: ChangeOrder) -> &'static str {
    match order {
        ChangeOrder::Latest => "latest",
        ChangeOrder::Oldest => "oldest",
        ChangeOrder::Strongest => "importance",
    }
}

#[cfg(test)]
mod tests {
    use perennial_core::memento::replay_url::QueryParameters;

    use super::*;

    fn read(query: &str) -> Result<ChangeQuery, String> {
        let query = QueryParameters::parse(query);
        ChangeQuery::read(|name| query.get(name), Timestamp::from_secs(1_000_000))
    }

    #[test]
    fn a_query_is_written_as_it_is_read() {
        let all = "site=a.example&since=1970-01-02T00%3A00%3A00Z&until=1970-01-03T00%3A00%3A00Z&least=0.25&kind=edited,new\
                   &appears=%22limit%20value%22&vanishes=%2Fa%7Cb%2F&op=insert&element=headline&block=nav&text=ferry&selector=%23price\
                   &noise=1&order=importance";
        let query = read(all).unwrap();
        let again = query.query();
        assert_eq!(again, read(&again).unwrap().query());
        assert!(again.contains("element=item") && again.contains("kind=edited%2Cnew"), "{again}");
        assert_eq!(query.parameters().len(), 14);
        assert_eq!(read("").unwrap().query(), "");
        assert_eq!(read("since=1d").unwrap().since, Some(Timestamp::from_secs(1_000_000 - 86_400)));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for wrong in [
            "least=2",
            "kind=x",
            "op=x",
            "element=x",
            "block=x",
            "appears=-x",
            "text=%2F(%2F",
            "since=x",
            "order=x",
            "site=a/b",
        ] {
            let name = wrong.split('=').next().unwrap_or_default();
            let error = read(wrong).unwrap_err();
            assert!(error.starts_with(&format!("{name}: ")) && error.ends_with('.'), "{error}");
        }
        assert!(read(&format!("text={}", "a".repeat(3_000))).is_err());
    }
}
