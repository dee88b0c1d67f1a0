//! Intervals that the budget, the budget of a site or the pauses between fetches do not allow -> what will happen, in
//! words.

use std::collections::{BTreeMap, HashMap};

use perennial_core::schedule::units::{write_budget, write_span};
use perennial_core::schedule::{Budget, Every};
use perennial_core::time::Span;
use perennial_core::url::SiteId;

use super::FollowedSites;
use perennial_archive::store::{PageKind, Store};

const HOUR: Span = Span::from_hours(1);
/// A need that exceeds what is allowed by less than this is rounding.
const SLACK: f64 = 1.001;

/// What a host or a budget has to bear.
#[derive(Default)]
struct Need {
    per_hour: f64,
    n_pages: u64,
    /// The shortest interval.
    shortest: Option<Span>,
}

impl Need {
    fn add(&mut self, every: &Every) {
        self.per_hour += 1.0 / every.interval.as_hours_f64();
        self.n_pages += 1;
        self.shortest = Some(self.shortest.map_or(every.interval, |shortest| shortest.min(every.interval)));
    }
}

/// The conflicts of all followed pages, one sentence each. `delay` is the least pause between two fetches from a host.
pub fn conflicts(
    store: &Store,
    followed: &FollowedSites,
    budget: Option<Budget>,
    delay: Span,
) -> anyhow::Result<Vec<String>> {
    let seeds = followed.seeds();
    let (mut all, mut hosts, mut of_seeds) = (Need::default(), BTreeMap::new(), HashMap::new());
    let mut add = |url: &str, host: String, seed: i64, is_new: bool| {
        if !is_new && !followed.has_seed(seed) {
            return;
        }
        if let Some(every) = followed.visit_interval(url) {
            all.add(&every);
            hosts.entry(host).or_insert_with(Need::default).add(&every);
            of_seeds.entry(seed).or_insert_with(Need::default).add(&every);
        }
    };
    let mut known = std::collections::HashSet::new();
    let mut names: HashMap<SiteId, String> = HashMap::new();
    store.each_frontier_page(|page| {
        if page.kind == PageKind::Page {
            let host = names
                .entry(page.site)
                .or_insert_with(|| perennial_archive::store::parse_site_name(&page.url));
            add(&page.url, host.clone(), page.seed, false);
            known.insert(page.url);
        }
    })?;
    // Sites that no crawl has seen yet.
    for seed in seeds.iter().filter(|seed| !seed.paused && !known.contains(seed.scope.seed.as_str())) {
        let url = seed.scope.seed.as_str();
        add(url, perennial_archive::store::parse_site_name(url), 0, true);
    }
    let mut sentences = Vec::new();
    sentences.extend(budget.and_then(|budget| over_budget("the budget", budget, &all)));
    for (number, seed) in seeds.iter_numbered() {
        let (Some(budget), Some(need)) = (seed.allowance.visits, of_seeds.get(&number)) else { continue };
        sentences.extend(over_budget(&format!("the budget of {}", seed.scope.seed), budget, need));
    }
    sentences.extend(hosts.iter().filter_map(|(host, need)| too_fast(host, need, delay)));
    Ok(sentences)
}

fn over_budget(name: &str, budget: Budget, need: &Need) -> Option<String> {
    let allowed = budget.visits_in(HOUR);
    (need.per_hour > SLACK * allowed).then(|| {
        format!(
            "{} with `every` need {:.0} visits per hour, and {name} ({}) allows {allowed:.0}: they will be visited about {:.1} times \
             less often; raise the budget or the intervals",
            pages(need.n_pages),
            need.per_hour,
            write_budget(budget),
            need.per_hour / allowed
        )
    })
}

fn too_fast(host: &str, need: &Need, delay: Span) -> Option<String> {
    let allowed = 3_600_000.0 / (delay.as_millis().max(1) as f64);
    (need.per_hour > SLACK * allowed).then(|| {
        let slowest = Span::from_secs((need.n_pages as f64 * delay.as_millis() as f64 / 1000.0).ceil() as i64);
        let shortest = need.shortest.map(write_span).unwrap_or_default();
        format!(
            "{host}: {} every {shortest} need {:.0} fetches per hour, and the pause of {} between two fetches allows {allowed:.0}: each \
             page will be visited about every {} at best",
            pages(need.n_pages),
            need.per_hour,
            write_span(delay),
            write_span(slowest)
        )
    })
}

fn pages(n: u64) -> String {
    if n == 1 { "1 page".to_owned() } else { format!("{n} pages") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(n_pages: u64, secs: i64) -> Need {
        let mut need = Need::default();
        (0..n_pages).for_each(|_| need.add(&Every { interval: Span::from_secs(secs), hours: None }));
        need
    }

    #[test]
    fn what_a_budget_does_not_allow_is_said_with_what_will_happen() {
        let budget = Budget::per_hour(100.0);
        assert_eq!(over_budget("the budget", budget, &need(8, 300)), None);
        let said = over_budget("the budget", budget, &need(20, 300)).unwrap();
        assert!(
            said.starts_with(
                "20 pages with `every` need 240 visits per hour, and the budget (100/1h) allows 100"
            ),
            "{said}"
        );
        assert!(said.contains("2.4 times less often"), "{said}");
    }

    #[test]
    fn what_politeness_does_not_allow_is_said_with_what_will_happen() {
        let delay = Span::from_secs(3);
        assert_eq!(too_fast("a.org", &need(100, 300), delay), None);
        let said = too_fast("a.org", &need(200, 300), delay).unwrap();
        assert!(said.ends_with("each page will be visited about every 10m at best"), "{said}");
        assert!(too_fast("a.org", &need(1, 60), Span::from_secs(600)).unwrap().contains("about every 10m"));
    }
}
