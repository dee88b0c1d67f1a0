//! P-NEAR 6, on histories of sites or on made sites.

use perennial_core::directory::{Alpha, SiteHistory, Subsumption, Thresholds};

use super::{Finding, Paper, Reproduction};
use crate::reproduce::judge::Interval;
use crate::rules::figure::{mining_cases, synthetic_sites};
use crate::rules::{PlanOutcome, Protocol, SkipPlan, evaluate_plan, n_broken};

/// A site with more broken versions is dropped, as in the paper.
const MOST_BROKEN: usize = 5;
/// The alpha of the paper's real sites is between 0.01 and 0.05.
const ALPHA: f64 = 0.01;

pub(super) fn reproduce(histories: &[SiteHistory], all: &mut Reproduction) {
    let is_made = histories.is_empty();
    let made = if is_made { synthetic_sites("5a") } else { Vec::new() };
    let sites: Vec<&SiteHistory> =
        histories.iter().chain(&made).filter(|history| n_broken(history) <= MOST_BROKEN).collect();
    all.findings.push(match is_made {
        true => Finding::untestable(
            (Paper::Near, "Table 2"),
            (TABLE_2, "BR .30 to .85, OP .99, OR .90 to .99, CR .65 to .87"),
            "the 154 sites are not public; give histories of sites with --history",
        ),
        false => table_2(&sites),
    });
    all.findings.extend(figure_5(&sites, is_made));
    all.findings.extend(subsumed());
    all.findings.extend(figure_6());
    let own = "the 154 sites are not public; `perennial lab rules mine --format svg` draws an own site";
    all.findings.push(Finding::untestable(
        (Paper::Near, "Fig. 1 and 4"),
        ("the size of five sites over 51 weeks", "curves"),
        own,
    ));
    all.findings.push(Finding::untestable(
        (Paper::Near, "Fig. 5c"),
        ("sites of regular domains, such as .gov, do better", "by domain"),
        "histories name no domains; `perennial lab rules figure 5c` groups by served sites and sources",
    ));
}

const TABLE_2: &str = "WARM skips a part of the pages with high precision and recall";

fn near(alpha: f64) -> Thresholds {
    Thresholds { alpha: Alpha::Fixed(alpha), ..Thresholds::default() }
}

/// The outcomes of the sites with a change to test.
fn outcomes(sites: &[&SiteHistory], protocol: &Protocol, plan: SkipPlan) -> Vec<PlanOutcome> {
    let all = sites.iter().map(|history| evaluate_plan(history, protocol, plan));
    all.filter(|outcome| outcome.n_windows > 0).collect()
}

fn describe(outcomes: &[PlanOutcome]) -> String {
    let mean = |value: fn(&PlanOutcome) -> f64| {
        outcomes.iter().map(value).sum::<f64>() / outcomes.len().max(1) as f64
    };
    format!(
        "BR {:.2}, OP {:.2}, OR {:.2}, CR {:.2} by eq. 5, {:.2} by eq. 9; {} sites",
        mean(|outcome| outcome.mean.bypass),
        mean(|outcome| outcome.mean.precision),
        mean(|outcome| outcome.mean.recall),
        mean(|outcome| outcome.mean.change_recall),
        mean(|outcome| outcome.mean.change_recall_9),
        outcomes.len()
    )
}

fn table_2(sites: &[&SiteHistory]) -> Finding {
    let found = outcomes(sites, &Protocol::default(), SkipPlan::Near(near(ALPHA)));
    let skipped: Vec<f64> = found.iter().map(|outcome| outcome.mean.bypass).collect();
    let shipped = outcomes(sites, &Protocol::default(), SkipPlan::Near(Thresholds::default()));
    Finding {
        in_condition: describe(&found),
        as_shipped: describe(&shipped),
        ..Finding::measured(
            (Paper::Near, "Table 2"),
            (TABLE_2, "BR .30 to .85 and a third over 102 sites, OP .99, OR .90 to .99, CR .65 to .87"),
            &skipped,
            Some(1.0 / 3.0),
        )
    }
}

fn figure_5(sites: &[&SiteHistory], is_made: bool) -> [Finding; 3] {
    let plan = SkipPlan::Near(near(ALPHA));
    let values = |protocol: Protocol, value: fn(&PlanOutcome) -> f64| -> Vec<f64> {
        outcomes(sites, &protocol, plan).iter().map(value).collect()
    };
    let differences = |a: Vec<f64>, b: Vec<f64>| -> Vec<f64> {
        if a.len() == b.len() { a.iter().zip(&b).map(|(a, b)| a - b).collect() } else { Vec::new() }
    };
    let at = |distance: usize| {
        values(Protocol { distance, ..Protocol::default() }, |outcome| outcome.mean.change_recall)
    };
    let training =
        |train: usize| values(Protocol { train, ..Protocol::default() }, |outcome| outcome.mean.bypass);
    let where_ = if is_made { "; made sites" } else { "" };
    let noted = |finding: Finding| Finding { reason: format!("{}{where_}", finding.reason), ..finding };

    let lost = differences(at(1), at(10));
    let claim = ("the change recall does not deteriorate from distance 1 to 10", "not obviously");
    let stable = Finding::measured((Paper::Near, "Fig. 5a"), claim, &lost, None);
    let skips = values(Protocol::default(), |outcome| outcome.mean.bypass);
    let does_skip = Interval::of(&skips).is_some_and(|interval| interval.low > 0.0);
    let stable = match stable.effect {
        Some(effect) if does_skip => Finding {
            verdict: effect.judge_constant(0.05),
            reason: "stable means that the interval is within five points of 0".to_owned(),
            ..stable
        },
        _ => Finding {
            verdict: super::Verdict::NotRepeated,
            reason: "nothing is skipped, so nothing can deteriorate".to_owned(),
            ..stable
        },
    };
    let claim = ("with more training less is skipped (5 to 20 versions)", "slightly");
    let less =
        Finding::measured((Paper::Near, "Fig. 5b"), claim, &differences(training(5), training(20)), None);
    let best: Vec<f64> =
        differences(values_of_best(sites), values(Protocol::default(), |outcome| outcome.mean.bypass));
    let claim =
        ("an alpha chosen per site from .01 to .05 skips more than one for all", "depends on the site");
    let tuned = Finding::measured((Paper::Near, "Fig. 5d"), claim, &best, None);
    [noted(stable), noted(less), noted(tuned)]
}

/// The highest bypass ratio of each site over the paper's alphas.
fn values_of_best(sites: &[&SiteHistory]) -> Vec<f64> {
    let all: Vec<Vec<f64>> = [0.01, 0.02, 0.03, 0.04, 0.05]
        .map(|alpha| {
            let found = outcomes(sites, &Protocol::default(), SkipPlan::Near(near(alpha)));
            found.iter().map(|outcome| outcome.mean.bypass).collect()
        })
        .to_vec();
    let n = all.first().map_or(0, Vec::len);
    (0..n).map(|at| all.iter().filter_map(|values| values.get(at)).copied().fold(0.0, f64::max)).collect()
}

/// BR of the subsumed rules relative to BR of the others, on random trees in which rules arise by chance.
fn subsumed() -> [Finding; 2] {
    let trees = synthetic_sites("5e");
    let near = Thresholds { beta: 0.1, theta: 0.5, ..Thresholds::default() };
    let ratios = |by: Subsumption| -> Vec<f64> {
        let ratio = |group: &[SiteHistory]| {
            let sites: Vec<&SiteHistory> = group.iter().collect();
            let sum = |plan: SkipPlan| -> f64 {
                outcomes(&sites, &Protocol::default(), plan).iter().map(|outcome| outcome.mean.bypass).sum()
            };
            sum(SkipPlan::NearSubsumed(near, by)) / sum(SkipPlan::Near(near)).max(1e-9)
        };
        trees.chunks(8).map(ratio).collect()
    };
    let finding = |item, claim, published, samples: &[f64], sign: f64| {
        let effects: Vec<f64> = samples.iter().map(|ratio| sign * (ratio - 1.0)).collect();
        let mean = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
        let finding = Finding::measured((Paper::Near, item), (claim, published), &effects, None);
        let reason = format!("{}; 40 random trees in 5 groups", finding.reason);
        Finding { in_condition: format!("BR1 / BR = {mean:.2}"), reason, ..finding }
    };
    let (by_rule, by_pattern) = (ratios(Subsumption::ByRule), ratios(Subsumption::ByPattern));
    [
        finding("Fig. 5e", "rules that rules subsume skip less", "BR1 / BR below 1", &by_rule, -1.0),
        finding("Fig. 5f", "rules that patterns subsume skip more", "BR1 / BR above 1", &by_pattern, 1.0),
    ]
}

/// The slope of time over size on a logarithmic scale, one sample per share of change.
fn figure_6() -> [Finding; 2] {
    let slopes = |figure: &str, factor: f64| -> (Vec<f64>, String) {
        let rows: Vec<_> = mining_cases(figure).iter().map(|case| case.time(figure)).collect();
        let time = |row: &crate::rules::figure::MiningTimeRow| (row.phase_1_ms + row.phase_2_ms).max(1e-3);
        let slope = |rows: &[crate::rules::figure::MiningTimeRow]| match (rows.first(), rows.last()) {
            (Some(first), Some(last)) => (time(last) / time(first)).ln() / factor.ln(),
            _ => f64::NAN,
        };
        let longest = rows.iter().map(time).fold(0.0, f64::max);
        (rows.chunks(rows.len().div_ceil(3).max(1)).map(slope).collect(), format!("{longest:.0} ms at most"))
    };
    let finding = |item, claim, published, (samples, longest): (Vec<f64>, String)| {
        let finding = Finding::measured((Paper::Near, item), (claim, published), &samples, None);
        let mean = finding.effect.map_or(f64::NAN, |effect| effect.mean);
        Finding { in_condition: format!("time grows with the power {mean:.2}; {longest}"), ..finding }
    };
    [
        finding(
            "Fig. 6a",
            "mining takes longer with more nodes (1,000 to 16,000)",
            "about 5 s for 16,000",
            slopes("6a", 16.0),
        ),
        finding(
            "Fig. 6b",
            "mining takes longer with more versions (50 to 800)",
            "about 70 s for 800",
            slopes("6b", 16.0),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    #[test]
    fn made_sites_test_what_they_can() {
        let mut all = Reproduction::default();
        reproduce(&[], &mut all);
        let of = |item: &str| all.findings.iter().find(|finding| finding.item == item).unwrap();
        assert_eq!(of("Table 2").verdict, Verdict::NotTestable);
        assert_eq!(of("Fig. 5c").verdict, Verdict::NotTestable);
        assert!(of("Fig. 5e").in_condition.starts_with("BR1 / BR = "));
        assert!(of("Fig. 6a").effect.is_some());
        for finding in &all.findings {
            let has_effect = finding.effect.is_some_and(|effect| effect.low > 0.0);
            let is_constant = finding.item == "Fig. 5a";
            assert!(is_constant || has_effect || finding.verdict != Verdict::Repeated, "{finding:?}");
        }
    }
}
