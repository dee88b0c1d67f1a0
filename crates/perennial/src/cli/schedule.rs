//! `perennial schedule`: the archive's looks -> what the crawl will do next, with the reason of each visit.

use std::collections::HashSet;
use std::io::{self, Write};

use anyhow::bail;
use perennial_core::amounts::parse_budget;
use perennial_core::feed::polling::PollLimits;
use perennial_core::page::PageId;
use perennial_core::schedule::{Budget, Goal, Ranked, Reason, ScheduleConfig, Scheduler, SkipRule, Strategy};
use perennial_core::time::{LocalClock, Span, Timestamp};
use perennial_core::verdict::shows_page;
use serde::Serialize;

use super::{Context, Exit, parse_time};
use crate::archive::{Archive, now};
use crate::learn::{self, Followed};
use crate::store::{LookOrder, OVERALL, Selection, Store};

/// How far ahead visits are foreseen.
const AHEAD: Span = Span::from_hours(24);
/// How far ahead where less than one visit a day is made.
const FAR_AHEAD: Span = Span::from_hours(30 * 24);
/// Addresses without a page that are listed for people; all of them are counted.
const MOST_PROBES: usize = 10;

const AFTER_HELP: &str = "\
Times are those of the plan: politeness, a slow host, budgets of single sites and what is found \
until then may delay a visit. \"change\" is the chance that the page has changed by then, \
\"importance\" what a visit is expected to find, from 0 to 1. Addresses without a page (dead links, \
redirects, pages that vanished) are looked at now and then within 2 % of the budget, and are \
listed apart. Directories that stand still, or that another directory excludes for the day, are \
skipped; 1 % of the budget looks whether that is still right.

--what-if counts the fetches of the next 24 hours (30 days where there would be less than one a \
day) and adds up the importance that they are expected to find.

Examples:
  perennial schedule
  perennial schedule --at 2026-11-16T09:00:00Z --top 50
  perennial schedule --budget 5000/1d --what-if
  perennial schedule --next 50 --json
  perennial schedule --strategy importance-pattern --json";

/// Shows what the crawl will do next, when and why.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Schedule {
    /// Where the plan begins, which uses only captures before it [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,

    /// How many pages to show, each with its next visit
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,

    /// Visits in a period, such as 200/1h; a number alone is visits an hour [default: `budget` of perennial.toml, else the
    /// archive's mean so far]
    #[arg(long, value_name = "N/PERIOD", value_parser = |text: &str| parse_budget(text, Span::from_hours(1)))]
    budget: Option<Budget>,

    /// Strategy that ranks the pages
    #[arg(long, default_value_t = Strategy::ExpectedGain, value_name = "NAME")]
    strategy: Strategy,

    /// Show the next N visits in order, a page as often as it comes, instead of the next visit of each page
    #[arg(long, value_name = "N", conflicts_with_all = ["top", "what_if"])]
    next: Option<usize>,

    /// What the visits serve: balanced, importance, every-page, coherent or count [default: the goals of perennial.toml]
    #[arg(long, value_name = "GOAL")]
    goal: Option<Goal>,

    /// Compare half the budget, the budget and twice the budget instead
    #[arg(long)]
    what_if: bool,
}

/// The next visit of a page.
#[derive(Serialize)]
struct NextVisit {
    url: String,
    /// When; none where it is later than the plan reaches, or nothing is known of it.
    at: Option<String>,
    urgency: f32,
    expected_importance: f64,
    expected_changes: f32,
    changes_per_day: f32,
    n_visits: u32,
    /// Whether the plan has the visit.
    planned: bool,
    /// Whether there is no page at the address, as far as is known.
    probe: bool,
    /// Whether it is a feed, which is polled beside the visits of pages.
    feed: bool,
    reason: String,
}

#[derive(Serialize)]
struct WhatIf {
    budget_per_hour: f64,
    /// The time whose fetches are counted.
    hours: f64,
    n_visits: usize,
    /// Of them, pages that were never captured.
    n_first: usize,
    /// Importance of the changes that the visits are expected to find.
    expected_importance: f64,
}

/// A budget, and where it is from.
struct Pace {
    budget: Budget,
    source: &'static str,
}

impl Schedule {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let mut followed = Followed::of(archive, store)?;
        if self.goal.is_some() {
            followed.forget_goals();
        }
        let at = self.at.unwrap_or_else(now);
        let pace = self.pace(archive, store, at)?;
        let scheduler = self.scheduler(archive, store, &followed, &pace, at)?;
        if self.what_if {
            let report = what_if(&scheduler, pace.budget, at)?;
            context.print(&report, |out| print_what_if(&report, &pace, out))?;
            return Ok(Exit::Done);
        }
        let described = Described { store, followed: &followed };
        if let Some(n) = self.next {
            let entries = described.next(&scheduler, at, n)?;
            context.print(&entries, |out| print_plan(&entries, 0, &pace, out))?;
            return Ok(Exit::Done);
        }
        let plan = Plan::of(&scheduler, at, self.top);
        let visits = plan.visits.iter().map(|(at, ranked)| described.entry(*at, ranked));
        let probes = plan.probes.iter().map(|(at, ranked)| described.entry(*at, ranked));
        let mut planned = visits.collect::<anyhow::Result<Vec<NextVisit>>>()?;
        planned.extend(described.polls(at)?);
        // What the plan does not reach comes last.
        planned.sort_by_key(|entry| (entry.at.is_none(), entry.at.clone()));
        planned.truncate(self.top);
        let probes = probes.collect::<anyhow::Result<Vec<NextVisit>>>()?;
        let entries: Vec<NextVisit> = planned.into_iter().chain(probes).collect();
        context.print(&entries, |out| print_plan(&entries, plan.n_probes, &pace, out))?;
        Ok(Exit::Done)
    }

    /// The scheduler as the crawl would have it at that instant.
    fn scheduler(
        &self,
        archive: &Archive,
        store: &Store,
        followed: &Followed,
        pace: &Pace,
        at: Timestamp,
    ) -> anyhow::Result<Scheduler> {
        let written = learn::schedule_config(&archive.settings().crawl, Some(pace.budget));
        let goal = self.goal.unwrap_or(written.goal);
        let config = ScheduleConfig { strategy: self.strategy, goal, ..written };
        let mut scheduler = learn::scheduler(store, followed, config, 0, at)?;
        let period = pace.budget.period.as_millis().max(1);
        let since = Timestamp::from_millis(at.as_millis().div_euclid(period).saturating_mul(period));
        scheduler.set_spent(store.spent(OVERALL, since)?.0, at);
        Ok(scheduler)
    }

    fn pace(&self, archive: &Archive, store: &Store, at: Timestamp) -> anyhow::Result<Pace> {
        let written = archive.settings().crawl.allowance.visits;
        Ok(match (self.budget, written) {
            (Some(budget), _) => Pace { budget, source: "--budget" },
            (None, Some(budget)) => Pace { budget, source: "perennial.toml" },
            (None, None) => Pace {
                budget: Budget::per_hour(looks_per_hour(store, at)?),
                source: "the archive's mean so far, as perennial.toml sets no budget",
            },
        })
    }
}

/// The pace of the archive so far, at least one visit an hour.
fn looks_per_hour(store: &Store, at: Timestamp) -> anyhow::Result<f64> {
    let (mut n_looks, mut first) = (0u64, at);
    store.looks(Selection::Pages, LookOrder::ByTime, at, |look| {
        n_looks += 1;
        first = first.min(look.time);
        Ok(())
    })?;
    Ok((n_looks as f64 / (at - first).as_hours_f64().max(1.0)).max(1.0))
}

/// The next visit of each page, soonest first, and then the pages whose visits come later than that.
struct Plan {
    visits: Vec<(Option<Timestamp>, Ranked)>,
    /// Addresses without a page.
    probes: Vec<(Option<Timestamp>, Ranked)>,
    n_probes: usize,
}

impl Plan {
    fn of(scheduler: &Scheduler, from: Timestamp, top: usize) -> Plan {
        let (mut visits, mut listed) = (Vec::new(), HashSet::<PageId>::new());
        let (probes, n_probes) = scheduler.waiting_probes(top);
        let are_probes: HashSet<PageId> = probes.iter().map(|(_, ranked)| ranked.page).collect();
        let n_pages = scheduler.n_pages() - n_probes;
        scheduler.foresee(from, from + AHEAD, |at, ranked| {
            let is_page = ranked.reason != Reason::Probe && !are_probes.contains(&ranked.page);
            if is_page && visits.len() < top && listed.insert(ranked.page) {
                visits.push((Some(at), ranked));
            }
            visits.len() < top.min(n_pages)
        });
        let n_ranked = top.saturating_add(listed.len()).min(scheduler.n_pages());
        let later = scheduler.ranking(from, n_ranked).into_iter();
        let later = later.filter(|ranked| {
            ranked.reason != Reason::Probe
                && !are_probes.contains(&ranked.page)
                && !listed.contains(&ranked.page)
        });
        let n_later = top - visits.len();
        visits.extend(later.take(n_later).map(|ranked| (None, ranked)));
        Plan { visits, probes, n_probes }
    }
}

/// Half the budget, the budget and twice the budget.
fn what_if(scheduler: &Scheduler, budget: Budget, at: Timestamp) -> anyhow::Result<Vec<WhatIf>> {
    if scheduler.n_pages() == 0 {
        bail!("--what-if cannot answer: no page is followed. `perennial add` follows a site");
    }
    if scheduler.n_histories() == 0 {
        bail!(
            "--what-if cannot answer: no page was looked at twice, so nothing is known of how pages change. Crawl for some days, \
             or import earlier captures with `perennial import`"
        );
    }
    let half = Budget { visits: budget.visits / 2.0, ..budget };
    let ahead = if half.visits_in(AHEAD) < 1.0 { FAR_AHEAD } else { AHEAD };
    let budgets = [0.5, 1.0, 2.0].map(|factor| Budget { visits: budget.visits * factor, ..budget });
    Ok(budgets.into_iter().map(|budget| expected_of(scheduler, budget, at, ahead)).collect())
}

fn expected_of(scheduler: &Scheduler, budget: Budget, at: Timestamp, ahead: Span) -> WhatIf {
    let mut scheduler = scheduler.clone();
    scheduler.set_budget(Some(budget));
    let mut answer = WhatIf {
        budget_per_hour: budget.visits_in(Span::from_hours(1)),
        hours: ahead.as_hours_f64(),
        n_visits: 0,
        n_first: 0,
        expected_importance: 0.0,
    };
    scheduler.foresee(at, at + ahead, |_, ranked| {
        answer.n_visits += 1;
        match ranked.reason {
            Reason::FirstCapture => answer.n_first += 1,
            Reason::Probe => {}
            _ => answer.expected_importance += ranked.expected.get(),
        }
        true
    });
    answer
}

/// What is needed to describe a visit to people.
struct Described<'a> {
    store: &'a Store,
    followed: &'a Followed,
}

impl Described<'_> {
    /// The next visits in order, as they are made if each finds its page as it was.
    fn next(&self, scheduler: &Scheduler, at: Timestamp, n: usize) -> anyhow::Result<Vec<NextVisit>> {
        let mut visits = Vec::new();
        scheduler.foresee(at, at + FAR_AHEAD, |at, ranked| {
            visits.push((at, ranked));
            visits.len() < n
        });
        visits.iter().map(|(at, ranked)| self.entry(Some(*at), ranked)).collect()
    }

    fn entry(&self, at: Option<Timestamp>, ranked: &Ranked) -> anyhow::Result<NextVisit> {
        let url = self.store.url_of(ranked.page)?;
        let probe = self.no_page(ranked)?;
        let reason = match (&probe, ranked.reason) {
            (Some(why), _) => why.clone(),
            (None, Reason::Skipped { rule, .. }) => format!("skipped by rule: {}", self.rule_in_words(rule)?),
            (None, Reason::DirectoryProbe { rule, .. }) => {
                format!("probe of a skipped directory: {}", self.rule_in_words(rule)?)
            }
            (None, Reason::Picture { n_pages, since }) => {
                let clock = self.followed.clock_of(&url);
                let (host, since) = (host_of(&url), in_local_words(since, clock.as_ref()));
                let hour =
                    at.map(|at| format!(" at {}", in_local_words(at, clock.as_ref()))).unwrap_or_default();
                format!("picture of {host}, {n_pages} pages{hour}; last seen {since}")
            }
            (None, _) => in_words(ranked, self.followed.clock_of(&url).as_ref()) + &self.item(ranked)?,
        };
        Ok(NextVisit {
            at: at.map(|at| at.to_rfc3339()),
            urgency: ranked.urgency,
            expected_importance: ranked.expected.get(),
            expected_changes: ranked.n_expected,
            changes_per_day: ranked.changes_per_day,
            n_visits: ranked.n_visits,
            planned: at.is_some() && probe.is_none(),
            probe: probe.is_some(),
            feed: false,
            reason,
            url,
        })
    }

    fn rule_in_words(&self, rule: SkipRule) -> anyhow::Result<String> {
        Ok(match rule {
            SkipRule::Still { n_looks } => format!("no page of its directory changed in {n_looks} looks"),
            SkipRule::Excluded { by } => {
                let url = self.store.url_of(by)?;
                let directory = url.rfind('/').map_or(url.as_str(), |slash| &url[..=slash]);
                format!("{directory} changed today, and its directory never changes on such a day")
            }
        })
    }

    /// The next poll of each feed that is followed.
    fn polls(&self, at: Timestamp) -> anyhow::Result<Vec<NextVisit>> {
        let mut polls = Vec::new();
        for feed in self.store.feeds_to_poll()? {
            if !feed.seed.is_some_and(|seed| self.followed.has_seed(seed)) {
                continue;
            }
            let publishing = learn::publishing(self.store, &feed)?;
            let last = feed.visited.unwrap_or(feed.last_read);
            let due = publishing.next_poll(last, &PollLimits::default()).max(at);
            let a_day = publishing.items_per_hour(at.max(last)).map(|rate| 24.0 * rate);
            polls.push(NextVisit {
                at: Some(due.to_rfc3339()),
                urgency: 0.0,
                expected_importance: 0.0,
                expected_changes: 0.0,
                changes_per_day: a_day.unwrap_or(0.0) as f32,
                n_visits: feed.n_reads as u32,
                planned: true,
                probe: false,
                feed: true,
                reason: match a_day {
                    Some(a_day) => format!("the feed is due, {a_day:.1} items a day"),
                    None => "the feed is due, too few dates for a rate".to_owned(),
                },
                url: feed.url,
            });
        }
        Ok(polls)
    }

    /// The item of a feed that causes the visit, if one does.
    fn item(&self, ranked: &Ranked) -> anyhow::Result<String> {
        if !matches!(ranked.reason, Reason::FirstCapture | Reason::Announced) {
            return Ok(String::new());
        }
        let item = self.store.item_of_page(ranked.page, None)?;
        Ok(item.map(|item| format!(", by the item \"{}\" of {}", item.title, item.feed)).unwrap_or_default())
    }

    /// Why there is no page, where there is none.
    fn no_page(&self, ranked: &Ranked) -> anyhow::Result<Option<String>> {
        if ranked.reason != Reason::Probe {
            return Ok(None);
        }
        let identity = self.store.target(ranked.page)?.and_then(|target| target.identity);
        let said = identity.as_deref().filter(|identity| !shows_page(identity)).unwrap_or_default();
        Ok(Some(match said.split_once(' ') {
            Some((status, to)) if status.starts_with('3') => format!("leads to {to}"),
            Some(("200", other)) => format!("is the same page as {other}"),
            _ if said.is_empty() && ranked.n_visits == 0 => {
                "never tried: links like this one lead nowhere".to_owned()
            }
            _ => "there was no page here".to_owned(),
        }))
    }
}

/// The reason as a sentence, in the site's own time.
fn in_words(ranked: &Ranked, clock: Option<&LocalClock>) -> String {
    let local = |at: Timestamp| in_local_words(at, clock);
    let habit = ranked.peak.map(|peak| format!(", usually updates {peak}")).unwrap_or_default();
    match ranked.reason {
        Reason::FirstCapture => "never captured".to_owned(),
        Reason::Announced => "announced as changed".to_owned(),
        Reason::Probe => "there was no page here".to_owned(),
        Reason::Retry { n_failures: 1 } => "failed once, to be tried again".to_owned(),
        Reason::Retry { n_failures } => format!("failed {n_failures} times in a row, to be tried again"),
        Reason::Skipped { since, .. } | Reason::DirectoryProbe { since, .. } => {
            format!("last seen {}, in a directory that is skipped", local(since))
        }
        Reason::Picture { n_pages, since } => {
            format!("picture of the site, {n_pages} pages; last seen {}", local(since))
        }
        Reason::Oldest { since } => format!("last seen {}, longer ago than most{habit}", local(since)),
        Reason::Urgent { since, .. } => format!("last seen {}{habit}", local(since)),
    }
}

/// The host of an address, for people.
fn host_of(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    after.split('/').next().unwrap_or(after)
}

/// An instant on the site's clock, with the zone's name where it is not UTC.
fn in_local_words(at: Timestamp, clock: Option<&LocalClock>) -> String {
    let utc = LocalClock::utc();
    let local = clock.unwrap_or(&utc).local(at);
    let minutes = local.millis_of_day / 60_000;
    let zone = clock.map(|clock| format!(" {}", clock.zone())).unwrap_or_default();
    format!("{} {:02}:{:02}{zone}", local.day.to_date(), minutes / 60, minutes % 60)
}

fn print_plan(entries: &[NextVisit], n_probes: usize, pace: &Pace, out: &mut dyn Write) -> io::Result<()> {
    if entries.is_empty() {
        return writeln!(
            out,
            "nothing to do: no page is followed. `perennial add https://example.org/` follows a site"
        );
    }
    writeln!(out, "Next visits, times in UTC, with {}:\n", in_pace_words(pace))?;
    writeln!(out, "{:<16} {:>7} {:>11}  page and reason", "when", "change", "importance")?;
    for entry in entries.iter().filter(|entry| !entry.probe) {
        let chance = 100.0 * -(-f64::from(entry.expected_changes)).exp_m1();
        let (change, worth) = match entry.n_visits {
            _ if entry.feed => ("-".to_owned(), "-".to_owned()),
            0 => ("-".to_owned(), "-".to_owned()),
            _ => (format!("{chance:.0} %"), format!("{:.3}", entry.expected_importance)),
        };
        writeln!(out, "{:<16} {change:>7} {worth:>11}  {}", when(entry, "later"), entry.url)?;
        writeln!(out, "{:38}{}", "", entry.reason)?;
    }
    if n_probes == 0 {
        return Ok(());
    }
    writeln!(out, "\nAlso looked at now and then, {n_probes} addresses without a page:\n")?;
    for entry in entries.iter().filter(|entry| entry.probe).take(MOST_PROBES) {
        writeln!(out, "{:<16} {}\n{:19}{}", when(entry, "some time"), entry.url, "", entry.reason)?;
    }
    match n_probes.saturating_sub(MOST_PROBES) {
        0 => Ok(()),
        n => writeln!(out, "... and {n} more"),
    }
}

/// The minute of a visit.
fn when(entry: &NextVisit, unknown: &str) -> String {
    let at = entry.at.as_deref().and_then(|at| Timestamp::parse(at).ok());
    at.map_or_else(|| unknown.to_owned(), |at| in_local_words(at, None))
}

fn in_pace_words(pace: &Pace) -> String {
    format!("{:.1} fetches an hour ({})", pace.budget.visits_in(Span::from_hours(1)), pace.source)
}

fn print_what_if(lines: &[WhatIf], pace: &Pace, out: &mut dyn Write) -> io::Result<()> {
    let hours = lines.first().map_or(0.0, |line| line.hours);
    writeln!(
        out,
        "The next {hours:.0} hours with half, all and twice of {}, as far as the pages keep to their habits:\n",
        in_pace_words(pace)
    )?;
    writeln!(
        out,
        "{:>16} {:>9} {:>15} {:>20}",
        "fetches an hour", "fetches", "first captures", "importance expected"
    )?;
    for line in lines {
        writeln!(
            out,
            "{:>16.1} {:>9} {:>15} {:>20.2}",
            line.budget_per_hour, line.n_visits, line.n_first, line.expected_importance
        )?;
    }
    Ok(())
}
