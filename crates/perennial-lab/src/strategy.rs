//! The strategies that are compared: ours, those that crawlers use today, and those of P-QUALITY 7 (docs/papers.md,
//! Strategies).

use std::fmt;
use std::str::FromStr;

use perennial_core::schedule;

/// How pages are ranked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Strategy {
    /// Expected importance that a visit would earn, less what waiting would earn: the crawler's own.
    ExpectedGain,
    /// Visits every page after the same interval; the crawler has it too.
    FixedInterval,
    /// The interval grows by half when nothing changed and halves when something did.
    AdaptiveInterval,
    /// Visits all pages in rounds, the most important first (Cho, Garcia-Molina, Page).
    Relevance,
    /// Gives each page the visits that maximise freshness under a Poisson model; pages that change too fast get none
    /// (Cho, Garcia-Molina).
    Frequency,
    /// Visits whole sites in rounds, the pages that change most in the middle of a round (Denev et al.).
    Sharc,
    /// Visits whole sites in rounds, the pages that change least first (Spaniol et al.).
    Coherence,
    /// Urgency is omega(P) * mean importance * age (P-QUALITY 7).
    Importance,
    /// Urgency is the rate of change in this period * age (P-QUALITY 7).
    Pattern,
    /// Urgency is omega(P) * omega_k * age (P-PATTERN 8.1).
    ImportancePattern,
}

impl Strategy {
    /// All of them, ours first.
    pub const ALL: [Strategy; 10] = [
        Strategy::ExpectedGain,
        Strategy::FixedInterval,
        Strategy::AdaptiveInterval,
        Strategy::Relevance,
        Strategy::Frequency,
        Strategy::Sharc,
        Strategy::Coherence,
        Strategy::Importance,
        Strategy::Pattern,
        Strategy::ImportancePattern,
    ];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::ExpectedGain => schedule::Strategy::ExpectedGain.name(),
            Strategy::FixedInterval => schedule::Strategy::FixedInterval.name(),
            Strategy::AdaptiveInterval => "adaptive-interval",
            Strategy::Relevance => "relevance",
            Strategy::Frequency => "frequency",
            Strategy::Sharc => "sharc",
            Strategy::Coherence => "coherence",
            Strategy::Importance => "importance",
            Strategy::Pattern => "pattern",
            Strategy::ImportancePattern => "importance-pattern",
        }
    }

    /// The strategy of the crawler's own scheduler, if it has this one.
    pub const fn of_crawler(self) -> Option<schedule::Strategy> {
        match self {
            Strategy::ExpectedGain => Some(schedule::Strategy::ExpectedGain),
            Strategy::FixedInterval => Some(schedule::Strategy::FixedInterval),
            _ => None,
        }
    }
}

impl From<schedule::Strategy> for Strategy {
    fn from(strategy: schedule::Strategy) -> Strategy {
        match strategy {
            schedule::Strategy::ExpectedGain => Strategy::ExpectedGain,
            schedule::Strategy::FixedInterval => Strategy::FixedInterval,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no strategy of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a strategy: choose one of {}", Strategy::ALL.map(Strategy::name).join(", "))]
pub struct StrategyError {
    name: String,
}

impl FromStr for Strategy {
    type Err = StrategyError;
    fn from_str(text: &str) -> Result<Strategy, StrategyError> {
        let name = text.trim().to_ascii_lowercase().replace('_', "-");
        Strategy::ALL
            .into_iter()
            .find(|strategy| strategy.name() == name)
            .ok_or_else(|| StrategyError { name: text.chars().take(40).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse::<Strategy>().unwrap(), strategy);
        }
        assert!("best".parse::<Strategy>().unwrap_err().to_string().contains("expected-gain"));
    }
}
