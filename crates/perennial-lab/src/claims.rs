//! Checks which findings of P-PATTERN 9 and P-QUALITY 7 hold in a world (docs/papers.md, The papers' world).

use crate::experiment::{BudgetResult, StrategyResult};

/// A finding of a paper, and whether the results confirm it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The paper and its figure.
    pub source: &'static str,
    /// The finding.
    pub says: &'static str,
    pub verdict: ClaimVerdict,
    /// The numbers behind the verdict.
    pub because: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The finding holds at every budget.
    Holds,
    /// The finding holds at some budgets.
    InPart,
    /// There is a lead at some budgets, but it is never as large as in the paper.
    ByLess,
    /// The finding holds at no budget.
    Fails,
    /// The results lack a strategy of the finding.
    NotRun,
}

impl ClaimVerdict {
    fn from_cases(cases: impl IntoIterator<Item = bool>) -> ClaimVerdict {
        let (mut n, mut n_holding) = (0, 0);
        for holds in cases {
            n += 1;
            n_holding += usize::from(holds);
        }
        match n_holding {
            _ if n == 0 => ClaimVerdict::NotRun,
            0 => ClaimVerdict::Fails,
            all if all == n => ClaimVerdict::Holds,
            _ => ClaimVerdict::InPart,
        }
    }

    /// The verdict as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::InPart => "holds in part",
            ClaimVerdict::ByLess => "leads by less",
            ClaimVerdict::Fails => "does not hold",
            ClaimVerdict::NotRun => "not run",
        }
    }
}

/// The number of a result to which a claim refers.
type ResultMeasure = fn(&StrategyResult) -> f64;

fn pooled(outcome: &StrategyResult) -> f64 {
    outcome.completeness_pooled
}

fn by_page(outcome: &StrategyResult) -> f64 {
    outcome.completeness_weighted
}

fn by_site(outcome: &StrategyResult) -> f64 {
    outcome.completeness_by_site
}

fn count(outcome: &StrategyResult) -> f64 {
    outcome.completeness_count
}

fn coherence(outcome: &StrategyResult) -> f64 {
    outcome.coherence_weighted
}

fn coherence_of_changed(outcome: &StrategyResult) -> f64 {
    outcome.coherence_of_changed
}

const RIVALS: [&str; 4] = ["relevance", "frequency", "sharc", "coherence"];

fn value(line: &BudgetResult, strategy: &str, measure: ResultMeasure) -> Option<f64> {
    line.results.iter().find(|outcome| outcome.strategy == strategy).map(measure)
}

/// The relative lead of `better` over the best of `others`, at each budget at which all ran.
fn relative_leads(
    lines: &[BudgetResult],
    better: &str,
    others: &[&str],
    measure: ResultMeasure,
) -> Vec<(f64, f64)> {
    let lead = |line: &BudgetResult| {
        let rivals: Option<Vec<f64>> = others.iter().map(|other| value(line, other, measure)).collect();
        let best = rivals?.into_iter().fold(f64::NEG_INFINITY, f64::max);
        Some((line.budget, value(line, better, measure)? / best.max(1e-9) - 1.0))
    };
    lines.iter().filter_map(lead).collect()
}

/// A claim that one strategy leads others by a share of their measure. With 0 it claims that the strategy does not fall
/// behind.
fn lead_claim(
    (source, says): (&'static str, &'static str),
    lines: &[BudgetResult],
    (better, others): (&str, &[&str]),
    (measure, claimed): (ResultMeasure, f64),
) -> Claim {
    let leads = relative_leads(lines, better, others, measure);
    let verdict = match ClaimVerdict::from_cases(leads.iter().map(|(_, lead)| *lead >= claimed)) {
        ClaimVerdict::Fails if leads.iter().any(|(_, lead)| *lead > 0.0) => ClaimVerdict::ByLess,
        verdict => verdict,
    };
    Claim { source, says, verdict, because: format_leads(&leads) }
}

fn format_leads(leads: &[(f64, f64)]) -> String {
    let words: Vec<String> = leads
        .iter()
        .map(|(budget, lead)| format!("{:+.1} % at M = {:.0} %", lead * 100.0, budget * 100.0))
        .collect();
    if words.is_empty() { "not run".to_owned() } else { words.join(", ") }
}

/// Checks the findings of P-PATTERN 9 and P-QUALITY 7 on the results of one world. P-QUALITY measures completeness by
/// Definitions 5.13 and 5.14, P-PATTERN by the sum over all versions. A finding with a number holds if the lead is as
/// large.
pub fn check_claims(lines: &[BudgetResult]) -> Vec<Claim> {
    let papers =
        ["relevance", "frequency", "sharc", "coherence", "importance", "pattern", "importance-pattern"];
    vec![
        lead_claim(
            (
                "P-PATTERN Fig. 8",
                "Pattern captures more versions than Relevance, SHARC, Coherence and Frequency, by around 10 % with few resources",
            ),
            lines,
            ("pattern", &RIVALS),
            (count, 0.1),
        ),
        lead_claim(
            (
                "P-PATTERN Fig. 9",
                "the pattern strategy with importance captures more weight than they do, by around 20 %",
            ),
            lines,
            ("importance-pattern", &RIVALS),
            (pooled, 0.2),
        ),
        lead_claim(
            (
                "P-QUALITY Fig. 7",
                "Importance-Pattern improves weighted completeness by around 20 % over Relevance, SHARC, Coherence and Frequency",
            ),
            lines,
            ("importance-pattern", &RIVALS),
            (by_page, 0.2),
        ),
        lead_claim(
            ("P-QUALITY Fig. 7", "the same by Definition 5.14, the mean over sites"),
            lines,
            ("importance-pattern", &RIVALS),
            (by_site, 0.2),
        ),
        lead_claim(
            ("P-QUALITY Fig. 7", "Importance-Pattern is about 5 % better than Importance"),
            lines,
            ("importance-pattern", &["importance"]),
            (by_page, 0.05),
        ),
        lead_claim(
            ("P-QUALITY Fig. 7", "the same by Definition 5.14"),
            lines,
            ("importance-pattern", &["importance"]),
            (by_site, 0.05),
        ),
        never_complete_claim(lines),
        lead_claim(
            (
                "P-QUALITY Fig. 8",
                "Importance-Pattern has the highest weighted coherence, around 10 % above SHARC, Coherence and Relevance",
            ),
            lines,
            ("importance-pattern", &["sharc", "coherence", "relevance"]),
            (coherence, 0.1),
        ),
        lead_claim(
            (
                "P-QUALITY Fig. 8",
                "the same without the versions before any known change, each of which weighs 1",
            ),
            lines,
            ("importance-pattern", &["sharc", "coherence", "relevance"]),
            (coherence_of_changed, 0.1),
        ),
        least_coherent_claim(lines),
        lead_claim(
            ("ours", "expected gain captures more weight than every strategy of the papers"),
            lines,
            ("expected-gain", &papers),
            (pooled, 0.0),
        ),
        lead_claim(
            ("ours", "expected gain is first by Definition 5.13 as well"),
            lines,
            ("expected-gain", &papers),
            (by_page, 0.0),
        ),
        lead_claim(
            ("ours", "expected gain is at least as coherent as Importance-Pattern"),
            lines,
            ("expected-gain", &["importance-pattern"]),
            (coherence, 0.0),
        ),
    ]
}

/// Checks the claim of P-QUALITY 7 about a world with significantly different patterns of pages.
pub fn check_unlike_claim(lines: &[BudgetResult]) -> Claim {
    lead_claim(
        (
            "P-QUALITY 7",
            "Importance-Pattern is more than 10 % better than Importance where the patterns of pages are significantly different",
        ),
        lines,
        ("importance-pattern", &["importance"]),
        (by_page, 0.1),
    )
}

fn never_complete_claim(lines: &[BudgetResult]) -> Claim {
    let best = lines.iter().flat_map(|line| &line.results).map(pooled).fold(0.0, f64::max);
    Claim {
        source: "P-QUALITY Fig. 7",
        says: "100 % is never reached, even with all resources",
        verdict: ClaimVerdict::from_cases((best > 0.0).then_some(best < 1.0)),
        because: format!("the highest value is {:.1} %", best * 100.0),
    }
}

fn least_coherent_claim(lines: &[BudgetResult]) -> Claim {
    let gap = |line: &BudgetResult| {
        let others = line.results.iter().filter(|outcome| outcome.strategy != "frequency").map(coherence);
        let lowest = others.fold(f64::INFINITY, f64::min);
        Some((line.budget, value(line, "frequency", coherence)? / lowest.max(1e-9) - 1.0))
            .filter(|_| lowest.is_finite())
    };
    let gaps: Vec<(f64, f64)> = lines.iter().filter_map(gap).collect();
    Claim {
        source: "P-QUALITY Fig. 8",
        says: "Frequency has the lowest coherence",
        verdict: ClaimVerdict::from_cases(gaps.iter().map(|(_, gap)| *gap <= 0.0)),
        because: format!("against the lowest of the others: {}", format_leads(&gaps)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::CompletenessBounds;

    fn outcome(strategy: &str, pooled: f64) -> StrategyResult {
        StrategyResult {
            strategy: strategy.to_owned(),
            learned: false,
            completeness_pooled: pooled,
            completeness_weighted: pooled,
            completeness_by_site: pooled,
            completeness_count: pooled,
            coherence_weighted: pooled,
            coherence_of_changed: pooled,
            coherence_max_weight: pooled,
            freshness: pooled,
            blur: 0.0,
            share_of_clairvoyant: Some(pooled),
        }
    }

    fn line(results: Vec<StrategyResult>) -> BudgetResult {
        BudgetResult {
            world: "w".to_owned(),
            budget: 0.1,
            slot_minutes: 60.0,
            seed: 1,
            results,
            bounds: Some(CompletenessBounds { clairvoyant: 1.0, pattern_known: 1.0 }),
        }
    }

    #[test]
    fn a_missing_strategy_has_no_verdict() {
        let claims = check_claims(&[line(vec![outcome("pattern", 0.5)])]);
        assert_eq!(claims[0].verdict, ClaimVerdict::NotRun);
        assert!(claims[0].because.contains("not run"));
    }

    #[test]
    fn a_lead_holds_and_a_loss_does_not() {
        let mut all: Vec<StrategyResult> = RIVALS.iter().map(|name| outcome(name, 0.3)).collect();
        all.push(outcome("pattern", 0.4));
        assert_eq!(check_claims(&[line(all.clone())])[0].verdict, ClaimVerdict::Holds);
        all[1].completeness_count = 0.5;
        let claim = check_claims(&[line(all.clone())])[0].clone();
        assert_eq!(claim.verdict, ClaimVerdict::Fails);
        assert!(claim.because.contains("-20.0 % at M = 10 %"), "{}", claim.because);
        // The paper found a lead of ten percent, not three.
        all[1].completeness_count = 0.39;
        assert_eq!(check_claims(&[line(all)])[0].verdict, ClaimVerdict::ByLess);
    }
}
