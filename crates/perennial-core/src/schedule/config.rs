//! The scheduler's configuration: a strategy, a budget, a goal (docs/papers.md, Strategies).

use std::fmt;
use std::str::FromStr;

use crate::pattern::mixture::ObservedImportance;
use crate::time::Span;

/// How pages are ranked. The strategies of the papers are in `perennial-lab`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Strategy {
    /// By the expected importance that a visit would capture, minus what waiting would capture.
    #[default]
    ExpectedGain,
    /// By age: every page is visited after the same interval.
    FixedInterval,
}

impl Strategy {
    /// All strategies, the default first.
    pub const ALL: [Strategy; 2] = [Strategy::ExpectedGain, Strategy::FixedInterval];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::ExpectedGain => "expected-gain",
            Strategy::FixedInterval => "fixed-interval",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not a strategy of the crawler; choose expected-gain or fixed-interval (`perennial lab simulate` compares others)"
)]
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

/// What [`Strategy::ExpectedGain`] optimises for (docs/decisions/0037-goals-and-sweeps.md).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Goal {
    /// Important changes, every page, every version, and coherent sweeps of whole sites.
    #[default]
    Balanced,
    /// Captured importance over all importance, weighted by omega(P): pooled completeness.
    Importance,
    /// Mean over pages of each page's own share, weighted by omega(P): completeness by P-QUALITY Definition 5.13.
    EveryPage,
    /// Like balanced, but an incoherent site costs more.
    Coherent,
    /// Number of versions, regardless of their importance.
    Count,
}

impl Goal {
    /// All goals, the default first.
    pub const ALL: [Goal; 5] =
        [Goal::Balanced, Goal::Importance, Goal::EveryPage, Goal::Coherent, Goal::Count];

    /// The name in settings, on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Goal::Balanced => "balanced",
            Goal::Importance => "importance",
            Goal::EveryPage => "every-page",
            Goal::Coherent => "coherent",
            Goal::Count => "count",
        }
    }

    /// Whether whole sites are swept, so their captured pages are coherent.
    pub const fn sweeps_sites(self) -> bool {
        matches!(self, Goal::Balanced | Goal::Coherent)
    }

    /// The names of all goals for an error message.
    pub fn names() -> String {
        Goal::ALL.map(Goal::name).join(", ")
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a goal; choose one of {}", Goal::names())]
pub struct GoalError {
    name: String,
}

impl FromStr for Goal {
    type Err = GoalError;
    fn from_str(text: &str) -> Result<Goal, GoalError> {
        let name = text.trim().to_ascii_lowercase().replace('_', "-");
        let known = Goal::ALL.into_iter().find(|goal| goal.name() == name);
        known.ok_or_else(|| GoalError { name: text.chars().take(40).collect() })
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    pub visits: f64,
    pub period: Span,
}

impl Budget {
    /// A budget of so many visits per hour.
    pub fn per_hour(visits: f64) -> Budget {
        Budget { visits, period: Span::from_hours(1) }
    }

    /// The number of visits allowed in a span; never negative, never NaN.
    pub fn visits_in(self, span: Span) -> f64 {
        let hours = self.period.as_hours_f64();
        if hours <= 0.0 || !self.visits.is_finite() {
            return 0.0;
        }
        (self.visits * span.as_hours_f64() / hours).max(0.0)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct ScheduleConfig {
    pub strategy: Strategy,
    /// The number of visits allowed. Without a budget a page is visited whenever the visit is worth it.
    pub budget: Option<Budget>,
    /// Periods of a day in patterns (P-PATTERN: N_T), 1 to 120.
    pub n_periods: u16,
    /// The goal of [`Strategy::ExpectedGain`] on sites without their own goal.
    pub goal: Goal,
    /// Share of the budget reserved for the pages with the oldest captures. The default is 25 % for
    /// [`Strategy::ExpectedGain`] and 0 for [`Strategy::FixedInterval`].
    pub floor: Option<f32>,
    /// Whether quiet hours save visits for busy ones. The mean stays the same. Single visits take at most
    /// twice its share (C3); a sweep may use a day's savings. By default visits are saved if the budget covers a day
    /// or longer, because an hourly budget may be meant as a limit on every hour.
    pub varying_budget: Option<bool>,
    /// Whether to track busy and quiet spells of a page (C2).
    pub spells: bool,
    /// Whether to learn on which days of the week and of the month a page is busy.
    pub calendar: bool,
    /// Interval of [`Strategy::FixedInterval`]. The default is what the budget allows, or a day.
    pub interval: Option<Span>,
    /// The half-life of observations.
    pub half_life: Option<Span>,
    /// Without a budget, a page is visited when its expected importance reaches this.
    pub worth: f32,
    /// What the importance of an outcome measures.
    pub observed: ObservedImportance,
    /// Whether outcomes update the estimates; off if patterns are known.
    pub learn: bool,
    /// Whether to skip directories that never change, or that another directory excludes, apart from a few probes.
    pub directories: bool,
    /// Memory for page histories. The default is 16 MB or 20 bytes per page, whichever is more. The most valuable
    /// pages have a history.
    pub evidence_bytes: Option<usize>,
}

impl Default for ScheduleConfig {
    fn default() -> ScheduleConfig {
        ScheduleConfig {
            strategy: Strategy::ExpectedGain,
            budget: None,
            n_periods: 24,
            goal: Goal::default(),
            floor: None,
            varying_budget: None,
            spells: true,
            calendar: true,
            interval: None,
            half_life: Some(Span::from_hours(24 * 60)),
            worth: 0.1,
            observed: ObservedImportance::Difference,
            learn: true,
            directories: true,
            evidence_bytes: None,
        }
    }
}

impl ScheduleConfig {
    /// Whether quiet hours save visits for busy ones.
    pub fn saves_visits(&self) -> bool {
        let is_long = |budget: Budget| budget.period >= Span::from_hours(24);
        self.budget.is_some_and(|budget| self.varying_budget.unwrap_or_else(|| is_long(budget)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for goal in Goal::ALL {
            assert_eq!(goal.to_string().parse::<Goal>().unwrap(), goal);
        }
        assert!("all".parse::<Goal>().unwrap_err().to_string().contains("every-page"));
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse::<Strategy>().unwrap(), strategy);
        }
        assert!(
            "importance-pattern"
                .parse::<Strategy>()
                .unwrap_err()
                .to_string()
                .contains("perennial lab simulate")
        );
    }

    #[test]
    fn a_budget_of_a_day_varies_and_one_of_an_hour_does_not() {
        let of = |period, varying_budget| {
            let budget = Some(Budget { visits: 10.0, period });
            ScheduleConfig { budget, varying_budget, ..ScheduleConfig::default() }.saves_visits()
        };
        let (hour, day) = (Span::from_hours(1), Span::from_hours(24));
        assert_eq!([of(hour, None), of(day, None)], [false, true]);
        assert_eq!([of(hour, Some(true)), of(day, Some(false))], [true, false]);
        assert!(!ScheduleConfig { varying_budget: Some(true), ..ScheduleConfig::default() }.saves_visits());
    }

    #[test]
    fn odd_budgets_allow_nothing() {
        for visits in [f64::NAN, f64::INFINITY, -3.0] {
            assert_eq!(Budget { visits, period: Span::from_hours(1) }.visits_in(Span::from_hours(5)), 0.0);
        }
        assert_eq!(Budget { visits: 5.0, period: Span::ZERO }.visits_in(Span::from_hours(5)), 0.0);
        assert_eq!(Budget::per_hour(40.0).visits_in(Span::from_secs(900)), 10.0);
    }
}
