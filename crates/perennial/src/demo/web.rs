//! A seed and a duration -> the living web: sites, pages, their patterns, and every change with its time and amount.
//! `truth` computes the importance of a change.

use jiff::civil::Weekday;
use perennial_core::rng::Rng;
use perennial_core::time::{LocalClock, Span, Timestamp};
use perennial_core::url::SiteId;
use perennial_lab::world::{Change as WorldChange, World, WorldPage};

use super::template::{self, ServedPage};
use super::truth::Truth;

/// The kind of a page, which decides its template and the effect of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LivingKind {
    /// A list of teasers: front page, section, blog home. A change puts new items on top.
    List,
    /// Running text: article, post, document. A change edits sentences or paragraphs.
    Text,
    /// A product for sale. A change is a new price or description.
    Product,
    /// Text that never changes, with rotating advertisements and a counter around it.
    Still,
}

/// One true change of a page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LivingChange {
    /// When the change happened.
    pub at: Timestamp,
    /// How much of the page changed; see [`Amount`].
    pub amount: Amount,
}

/// The extent of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// One item of a list, one sentence of a text.
    Small,
    /// Two items, one paragraph.
    Medium,
    /// Five items, three paragraphs.
    Large,
}

/// A page of the living web.
#[derive(Clone, Debug)]
pub struct LivingPage {
    /// Position in [`LivingWeb::sites`].
    pub site: usize,
    /// Path below the site's host, with the leading slash.
    pub path: String,
    /// Headline of the page.
    pub title: String,
    /// Template and behaviour.
    pub kind: LivingKind,
    /// Changes per hour by local hour, on workdays and at weekends.
    pub rates: [[f64; 24]; 2],
    /// Every change, in order of time.
    pub changes: Vec<LivingChange>,
    /// Turn of the page if two directories of its site alternate. It changes only on days of its turn.
    pub turn: Option<u8>,
    /// Pages that this page always links to, as positions in [`LivingWeb::pages`].
    pub links: Vec<usize>,
}

/// A site of the living web.
#[derive(Clone, Debug)]
pub struct LivingSite {
    /// First label of the site's host: `courier` is served as `courier.localhost`.
    pub name: &'static str,
    /// Title in the header of its pages.
    pub title: &'static str,
    /// Time zone of its editors.
    pub timezone: &'static str,
    /// The user's weight of the site's pages.
    pub weight: f64,
    /// When the site closes. From then on every response is 410.
    pub dies_at: Option<Timestamp>,
    /// Whether a script fetches the content of the site's pages, which are empty before.
    pub is_rendered: bool,
}

/// Several sites with some hundreds of pages that change by known patterns.
#[derive(Clone, Debug)]
pub struct LivingWeb {
    /// Seed of the random numbers.
    pub seed: u64,
    /// The first instant.
    pub start: Timestamp,
    /// The last instant.
    pub end: Timestamp,
    /// All sites.
    pub sites: Vec<LivingSite>,
    /// All pages. Those of one site are adjacent.
    pub pages: Vec<LivingPage>,
    /// Whether style sheets and pictures change too.
    pub subresources_change: bool,
}

impl LivingPage {
    /// Number of changes until `now`, which is the version number that a visitor sees.
    pub fn version_at(&self, now: Timestamp) -> usize {
        self.changes.partition_point(|change| change.at <= now)
    }
}

impl LivingWeb {
    /// The web of the demonstration: ten sites with about three hundred pages.
    pub fn new(seed: u64, start: Timestamp, days: u32) -> LivingWeb {
        LivingWeb::build(seed, start, days, false)
    }

    /// The same web and a site that only a browser can render.
    pub fn with_rendered_site(seed: u64, start: Timestamp, days: u32) -> LivingWeb {
        LivingWeb::build(seed, start, days, true)
    }

    fn build(seed: u64, start: Timestamp, days: u32, has_rendered_site: bool) -> LivingWeb {
        let end = start + Span::from_hours(24 * i64::from(days));
        let dies_at = start + Span::from_hours(24 * i64::from(days) * 2 / 3);
        let mut web = Builder { seed, sites: Vec::new(), pages: Vec::new() };
        web.newspaper("courier", "The Daily Courier", "Europe/Berlin", 6, 36, 1.0);
        web.newspaper("gazette", "Evening Gazette", "Europe/Berlin", 4, 20, 0.45);
        web.newspaper("tidings", "Southern Tidings", "Pacific/Auckland", 4, 20, 0.6);
        web.blog("gardener", "The Patient Gardener", "Europe/Paris", 14, 20);
        web.blog("ferrymen", "Notes of a Ferryman", "America/New_York", 14, 7);
        web.shop("bazaar", "Bazaar of Good Things", "Europe/Berlin", 48);
        web.documents("handbook", "Handbook of the Archive", "Europe/London", 42);
        web.still("almanac", "The Old Almanac", "Europe/Berlin", 40);
        web.newspaper("meteor", "Meteor Magazine", "Europe/Berlin", 2, 10, 0.5);
        if let Some(site) = web.sites.last_mut() {
            site.dies_at = Some(dies_at);
        }
        web.stages("theatre", "The Two Stages", "Europe/Berlin", 12);
        if has_rendered_site {
            web.harbour("harbour", "Harbour Board", "Europe/Lisbon", 5);
        }
        for (name, weight) in [("courier", 4.0), ("gazette", 2.0), ("tidings", 2.0)] {
            web.sites.iter_mut().filter(|site| site.name == name).for_each(|site| site.weight = weight);
        }
        let Builder { seed, sites, mut pages } = web;
        for (index, page) in pages.iter_mut().enumerate() {
            let site = &sites[page.site];
            page.changes = draw_changes(seed, index, page, site, start, site.dies_at.unwrap_or(end).min(end));
        }
        LivingWeb { seed, start, end, sites, pages, subresources_change: false }
    }

    /// The same web in the simulator's form: pages, their weights, and their changes with importance.
    pub fn world(&self, truth: &Truth) -> World {
        let pages = self.pages.iter().zip(&truth.importance).zip(&truth.weights).map(
            |((page, importance), &weight)| {
                let changes = page.changes.iter().zip(importance);
                WorldPage {
                    name: format!("{}{}", self.sites[page.site].name, page.path),
                    site: SiteId(page.site as u32),
                    weight,
                    changes: changes
                        .map(|(change, &importance)| WorldChange { at: change.at, importance })
                        .collect(),
                    truth: None,
                }
            },
        );
        let sites = self.sites.iter().map(|site| site.name.to_owned()).collect();
        let mut world = World::from_pages("living", sites, pages.collect());
        (world.start, world.end) = (self.start, self.end);
        let zone = |site: &LivingSite| LocalClock::from_zone(site.timezone).unwrap_or(LocalClock::utc());
        world.clocks = self.sites.iter().map(zone).collect();
        world
    }

    /// The HTML of a page at an instant; `rng` decides its noise.
    pub fn html(&self, page: usize, rng: u64, now: Timestamp) -> String {
        template::html(&ServedPage::at(self, page, rng, now))
    }

    /// Whether the page with this number changes only by noise.
    pub fn is_noise_only(&self, page: usize) -> bool {
        self.pages[page].kind == LivingKind::Still
    }
}

/// The hours in which people publish: a day with peaks, as shares of a day's changes that sum to 1.
fn shape(peaks: &[(f64, f64)]) -> [f64; 24] {
    let mut hours = [0.0; 24];
    for (hour, value) in hours.iter_mut().enumerate() {
        *value = 0.004;
        for (centre, width) in peaks {
            let distance = (hour as f64 - centre).rem_euclid(24.0);
            let distance = distance.min(24.0 - distance);
            *value += (-0.5 * (distance / width).powi(2)).exp();
        }
    }
    let sum: f64 = hours.iter().sum();
    hours.map(|value| value / sum)
}

fn rates(hours: [f64; 24], workday: f64, weekend: f64) -> [[f64; 24]; 2] {
    [hours.map(|share| share * workday), hours.map(|share| share * weekend)]
}

struct Builder {
    seed: u64,
    sites: Vec<LivingSite>,
    pages: Vec<LivingPage>,
}

impl Builder {
    fn site(&mut self, name: &'static str, title: &'static str, timezone: &'static str) -> usize {
        self.sites.push(LivingSite { name, title, timezone, weight: 1.0, dies_at: None, is_rendered: false });
        self.sites.len() - 1
    }

    fn page(&mut self, path: String, kind: LivingKind, rates: [[f64; 24]; 2]) -> usize {
        let site = self.sites.len() - 1;
        let mut choices = Rng::from_parts(&[self.seed, self.pages.len() as u64, 1]);
        let title = super::prose::headline(&mut choices);
        self.pages.push(LivingPage {
            site,
            path,
            title,
            kind,
            rates,
            changes: Vec::new(),
            turn: None,
            links: Vec::new(),
        });
        self.pages.len() - 1
    }

    fn scale(&self) -> f64 {
        let mut choices = Rng::from_parts(&[self.seed, self.pages.len() as u64, 2]);
        // Pages of one kind differ in activity: a log-normal spread around 1, as on real sites.
        let normal: f64 = (0..12).map(|_| choices.unit()).sum::<f64>() - 6.0;
        (0.7 * normal).exp()
    }

    fn newspaper(
        &mut self,
        name: &'static str,
        title: &'static str,
        timezone: &'static str,
        n_sections: usize,
        n_articles: usize,
        activity: f64,
    ) {
        self.site(name, title, timezone);
        let day = shape(&[(8.0, 1.5), (12.5, 2.0), (18.0, 2.0)]);
        let home = self.page("/".into(), LivingKind::List, rates(day, 26.0 * activity, 14.0 * activity));
        let names = ["politics", "economy", "culture", "sport", "science", "local"];
        let mut sections = Vec::new();
        for section in names.iter().take(n_sections) {
            let peak = 7.0 + (self.pages.len() * 5 % 13) as f64;
            let factor = activity * self.scale();
            let hours = shape(&[(peak, 1.3)]);
            sections.push(self.page(
                format!("/{section}/"),
                LivingKind::List,
                rates(hours, 9.0 * factor, 4.0 * factor),
            ));
        }
        let mut articles = Vec::new();
        for number in 0..n_articles {
            let section = names[number % n_sections];
            let factor = activity * self.scale();
            let hours = shape(&[(9.0 + (number % 9) as f64, 1.0)]);
            let path = format!("/{section}/story-{number}.html");
            articles.push(self.page(path, LivingKind::Text, rates(hours, 1.1 * factor, 0.4 * factor)));
        }
        self.pages[home].links = sections.iter().chain(articles.iter().take(6)).copied().collect();
        for (number, &section) in sections.iter().enumerate() {
            self.pages[section].links =
                articles.iter().skip(number).step_by(n_sections).chain([&home]).copied().collect();
        }
        for (number, &article) in articles.iter().enumerate() {
            self.pages[article].links = vec![home, sections[number % n_sections]];
        }
    }

    fn blog(
        &mut self,
        name: &'static str,
        title: &'static str,
        timezone: &'static str,
        n_posts: usize,
        hour: usize,
    ) {
        self.site(name, title, timezone);
        let home = self.page("/".into(), LivingKind::List, rates(shape(&[(hour as f64, 0.8)]), 1.8, 2.6));
        for number in 0..n_posts {
            let factor = self.scale();
            let path = format!("/posts/{number}/");
            let post = self.page(
                path,
                LivingKind::Text,
                rates(shape(&[(hour as f64, 1.2)]), 0.25 * factor, 0.35 * factor),
            );
            self.pages[post].links = vec![home];
            self.pages[home].links.push(post);
        }
    }

    fn shop(&mut self, name: &'static str, title: &'static str, timezone: &'static str, n_products: usize) {
        self.site(name, title, timezone);
        let home = self.page("/".into(), LivingKind::List, rates(shape(&[(10.0, 1.0)]), 3.0, 1.0));
        for number in 0..n_products {
            let factor = self.scale();
            let shelf = ["tools", "lamps", "seeds", "books"][number % 4];
            let path = format!("/{shelf}/item-{number}");
            let page =
                self.page(path, LivingKind::Product, rates(shape(&[(2.0, 0.8)]), 0.8 * factor, 0.8 * factor));
            self.pages[page].links = vec![home];
            self.pages[home].links.push(page);
        }
    }

    fn documents(
        &mut self,
        name: &'static str,
        title: &'static str,
        timezone: &'static str,
        n_documents: usize,
    ) {
        self.site(name, title, timezone);
        let home = self.page("/".into(), LivingKind::Text, rates(shape(&[(15.0, 3.0)]), 0.1, 0.0));
        for number in 0..n_documents {
            let part = ["guide", "reference", "history"][number % 3];
            // Only the guide is edited. The other directories do not change for months.
            let rate = if part == "guide" { 0.12 * self.scale() } else { 0.008 };
            let path = format!("/{part}/chapter-{number}.html");
            let page = self.page(path, LivingKind::Text, rates(shape(&[(15.0, 3.0)]), rate, 0.0));
            self.pages[page].links = vec![home];
            self.pages[home].links.push(page);
        }
    }

    /// Two directories of which only one changes on a given day, as an example of a rule of a site's evolution.
    fn stages(&mut self, name: &'static str, title: &'static str, timezone: &'static str, n_pages: usize) {
        self.site(name, title, timezone);
        let home = self.page("/".into(), LivingKind::Text, [[0.0; 24]; 2]);
        for (turn, stage) in [(0, "matinee"), (1, "evening")] {
            for number in 0..n_pages {
                let rate = 0.8 * self.scale();
                let path = format!("/{stage}/play-{number}.html");
                let page = self.page(path, LivingKind::Text, rates(shape(&[(10.0, 2.0)]), rate, rate));
                self.pages[page].turn = Some(turn);
                self.pages[page].links = vec![home];
                self.pages[home].links.push(page);
            }
        }
    }

    /// Few pages, because a browser takes longer than a plain request: arrivals, and one page per quay.
    fn harbour(&mut self, name: &'static str, title: &'static str, timezone: &'static str, n_quays: usize) {
        let site = self.site(name, title, timezone);
        self.sites[site].is_rendered = true;
        let home =
            self.page("/".into(), LivingKind::List, rates(shape(&[(6.0, 1.0), (17.0, 1.0)]), 5.0, 3.0));
        for number in 0..n_quays {
            let hours = shape(&[(6.0 + number as f64, 1.0)]);
            let page = self.page(format!("/quays/{number}"), LivingKind::Text, rates(hours, 1.2, 0.6));
            self.pages[page].links = vec![home];
            self.pages[home].links.push(page);
        }
    }

    fn still(&mut self, name: &'static str, title: &'static str, timezone: &'static str, n_pages: usize) {
        self.site(name, title, timezone);
        let home = self.page("/".into(), LivingKind::Still, [[0.0; 24]; 2]);
        for number in 0..n_pages {
            let page = self.page(format!("/year/{}.html", 1850 + number), LivingKind::Still, [[0.0; 24]; 2]);
            self.pages[page].links = vec![home];
            self.pages[home].links.push(page);
        }
    }
}

/// Draws changes from an inhomogeneous Poisson process in the site's local time, by thinning.
fn draw_changes(
    seed: u64,
    index: usize,
    page: &LivingPage,
    site: &LivingSite,
    start: Timestamp,
    end: Timestamp,
) -> Vec<LivingChange> {
    let zone = jiff::tz::TimeZone::get(site.timezone).unwrap_or(jiff::tz::TimeZone::UTC);
    let highest = page.rates.iter().flatten().copied().fold(0.0, f64::max);
    let mut choices = Rng::from_parts(&[seed, index as u64, 3]);
    let mut changes = Vec::new();
    if highest <= 0.0 {
        return changes;
    }
    let mut at = start;
    loop {
        let hours = -(1.0 - choices.unit()).ln() / highest;
        at = at + Span::from_millis((hours * 3.6e6) as i64 + 1);
        if at >= end {
            return changes;
        }
        let local = at.to_jiff().to_zoned(zone.clone());
        let is_weekend = matches!(local.weekday(), Weekday::Saturday | Weekday::Sunday);
        let rate = page.rates[usize::from(is_weekend)][usize::from(local.hour().unsigned_abs())];
        if choices.unit() * highest < rate {
            // The day is in UTC, so it is the same for the whole site and for the scheduler.
            let day = at.as_millis().div_euclid(86_400_000) as u64;
            let turn = Rng::from_parts(&[seed, page.site as u64, day, 4]).below(2);
            if page.turn.is_some_and(|of_page| usize::from(of_page) != turn) {
                continue;
            }
            let amount = match choices.below(10) {
                0..=4 => Amount::Small,
                5..=7 => Amount::Medium,
                _ => Amount::Large,
            };
            changes.push(LivingChange { at, amount });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> LivingWeb {
        LivingWeb::new(1, Timestamp::parse("2026-03-02").unwrap(), 14)
    }

    #[test]
    fn changes_follow_the_pattern() {
        let web = web();
        assert!((250..400).contains(&web.pages.len()), "{} pages", web.pages.len());
        let home = &web.pages[0];
        let expected: f64 =
            10.0 * home.rates[0].iter().sum::<f64>() + 4.0 * home.rates[1].iter().sum::<f64>();
        let seen = home.changes.len() as f64;
        assert!(
            (seen - expected).abs() < 4.0 * expected.sqrt(),
            "{seen} changes where {expected} were expected"
        );
        assert!(home.changes.is_sorted_by_key(|change| change.at));
    }

    #[test]
    fn still_pages_never_change_and_the_dead_stay_dead() {
        let web = web();
        let dying = web.sites.iter().position(|site| site.dies_at.is_some()).unwrap();
        let dies_at = web.sites[dying].dies_at.unwrap();
        for (index, page) in web.pages.iter().enumerate() {
            assert!(!web.is_noise_only(index) || page.changes.is_empty());
            assert!(page.site != dying || page.changes.iter().all(|change| change.at < dies_at));
        }
    }

    #[test]
    fn two_directories_never_change_on_the_same_day() {
        let web = web();
        let days = |turn: u8| -> std::collections::BTreeSet<i64> {
            let pages = web.pages.iter().filter(|page| page.turn == Some(turn));
            pages.flat_map(|page| &page.changes).map(|change| change.at.as_millis() / 86_400_000).collect()
        };
        let (matinee, evening) = (days(0), days(1));
        assert!(matinee.len() >= 3 && evening.len() >= 3, "{matinee:?} {evening:?}");
        assert!(matinee.is_disjoint(&evening));
    }

    #[test]
    fn every_page_is_linked() {
        let web = web();
        let linked: std::collections::BTreeSet<usize> =
            web.pages.iter().flat_map(|page| page.links.iter().copied()).collect();
        for (index, page) in web.pages.iter().enumerate() {
            assert!(page.path == "/" || linked.contains(&index), "{} is not linked", page.path);
        }
    }
}
