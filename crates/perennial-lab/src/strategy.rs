//! The strategies that a simulation compares: those of the crawler, and baselines (docs/papers.md, Strategies).

use std::fmt;
use std::str::FromStr;

use perennial_core::schedule::Strategy;

/// A strategy that a simulation can run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SimulatedStrategy {
    /// A strategy of the crawler's own scheduler.
    Crawler(Strategy),
    /// A strategy of the papers, or of other crawlers.
    Baseline(BaselineStrategy),
}

/// The strategies of P-QUALITY 7, and the adaptive interval of other crawlers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BaselineStrategy {
    /// The interval grows by half after a visit without a change and halves after one with a change.
    AdaptiveInterval,
    /// Visits all pages in rounds, the most important first (Cho, Garcia-Molina, Page).
    Relevance,
    /// Gives each page the visits that maximise freshness under a Poisson model. Pages that change too fast get none
    /// (Cho, Garcia-Molina).
    Frequency,
    /// Visits whole sites in rounds, the pages that change most in the middle of a round (Denev et al.).
    Sharc,
    /// Visits whole sites in rounds, the pages that change least first (Spaniol et al.).
    Coherence,
    /// Urgency is omega(P) * mean importance * age (P-QUALITY 7).
    Importance,
    /// Urgency is omega(P) * rate of change in this period * age (P-QUALITY 6, 7).
    Pattern,
    /// Urgency is omega(P) * omega_k * age (P-PATTERN 8.1).
    ImportancePattern,
}

impl BaselineStrategy {
    const ALL: [BaselineStrategy; 8] = [
        BaselineStrategy::AdaptiveInterval,
        BaselineStrategy::Relevance,
        BaselineStrategy::Frequency,
        BaselineStrategy::Sharc,
        BaselineStrategy::Coherence,
        BaselineStrategy::Importance,
        BaselineStrategy::Pattern,
        BaselineStrategy::ImportancePattern,
    ];

    const fn name(self) -> &'static str {
        match self {
            BaselineStrategy::AdaptiveInterval => "adaptive-interval",
            BaselineStrategy::Relevance => "relevance",
            BaselineStrategy::Frequency => "frequency",
            BaselineStrategy::Sharc => "sharc",
            BaselineStrategy::Coherence => "coherence",
            BaselineStrategy::Importance => "importance",
            BaselineStrategy::Pattern => "pattern",
            BaselineStrategy::ImportancePattern => "importance-pattern",
        }
    }
}

impl SimulatedStrategy {
    /// The default of the crawler.
    pub const EXPECTED_GAIN: SimulatedStrategy = SimulatedStrategy::Crawler(Strategy::ExpectedGain);
    /// Visits every page after the same interval.
    pub const FIXED_INTERVAL: SimulatedStrategy = SimulatedStrategy::Crawler(Strategy::FixedInterval);
    /// The best strategy of the papers.
    pub const IMPORTANCE_PATTERN: SimulatedStrategy =
        SimulatedStrategy::Baseline(BaselineStrategy::ImportancePattern);

    /// All strategies, those of the crawler first.
    pub fn all() -> impl Iterator<Item = SimulatedStrategy> {
        let crawler = Strategy::ALL.into_iter().map(SimulatedStrategy::Crawler);
        crawler.chain(BaselineStrategy::ALL.into_iter().map(SimulatedStrategy::Baseline))
    }

    fn names() -> String {
        SimulatedStrategy::all().map(SimulatedStrategy::name).collect::<Vec<_>>().join(", ")
    }

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            SimulatedStrategy::Crawler(strategy) => strategy.name(),
            SimulatedStrategy::Baseline(strategy) => strategy.name(),
        }
    }
}

impl From<Strategy> for SimulatedStrategy {
    fn from(strategy: Strategy) -> SimulatedStrategy {
        SimulatedStrategy::Crawler(strategy)
    }
}

impl From<BaselineStrategy> for SimulatedStrategy {
    fn from(strategy: BaselineStrategy) -> SimulatedStrategy {
        SimulatedStrategy::Baseline(strategy)
    }
}

impl fmt::Display for SimulatedStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a strategy: choose one of {}", SimulatedStrategy::names())]
pub struct SimulatedStrategyError {
    name: String,
}

impl FromStr for SimulatedStrategy {
    type Err = SimulatedStrategyError;
    fn from_str(text: &str) -> Result<SimulatedStrategy, SimulatedStrategyError> {
        let name = text.trim().to_ascii_lowercase().replace('_', "-");
        SimulatedStrategy::all()
            .find(|strategy| strategy.name() == name)
            .ok_or_else(|| SimulatedStrategyError { name: text.chars().take(40).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for strategy in SimulatedStrategy::all() {
            assert_eq!(strategy.to_string().parse::<SimulatedStrategy>().unwrap(), strategy);
        }
        assert!("best".parse::<SimulatedStrategy>().unwrap_err().to_string().contains("expected-gain"));
    }
}
