//! Two texts that differ in numbers -> whether the change is news (docs/papers.md, Advertisements and noise).
//!
//! A price, a limit, a date of validity or a number of victims is news. A number of visitors, a clock or "3 minutes
//! ago" is not. The number itself does not distinguish them, but the words next to it do: a currency, a unit, a label.
//! The nearest such word decides. If there is none, the page's history decides (`noise`).

/// The kind of a change of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberChange {
    /// Words other than numbers changed, or nothing did.
    Words,
    /// Only numbers changed, and one of them is news: a price, a limit, a count that matters.
    News,
    /// Only numbers changed, and none of them is news: clocks, counters, timestamps.
    Passing,
    /// Only numbers changed, and nothing shows what they mean.
    Unclear,
}

/// Number of words on each side of a number that may show its meaning.
const REACH: usize = 3;
/// Longer texts are compared without classifying their numbers.
const MAX_WORDS: usize = 2_000;

/// Classifies the change of a text.
pub fn classify(before: &str, after: &str) -> NumberChange {
    let old: Vec<&str> = before.split_whitespace().take(MAX_WORDS + 1).collect();
    let new: Vec<&str> = after.split_whitespace().take(MAX_WORDS + 1).collect();
    if old.len() > MAX_WORDS || new.len() > MAX_WORDS || before == after {
        return NumberChange::Words;
    }
    let n_first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let n_shared = old.len().min(new.len()) - n_first;
    let ends = old.iter().rev().zip(new.iter().rev()).take(n_shared);
    let n_last = ends.take_while(|(old, new)| old == new).count();
    let (gone, come) = (&old[n_first..old.len() - n_last], &new[n_first..new.len() - n_last]);
    // With several changes, unchanged words between them are in both lists.
    let is_changed = |word: &str, others: &[&str]| !others.contains(&word);
    let mut changed = come.iter().filter(|word| is_changed(word, gone));
    if !changed.all(|word| is_number_word(word))
        || !gone.iter().filter(|word| is_changed(word, come)).all(|word| is_number_word(word))
    {
        return NumberChange::Words;
    }
    let places = (n_first..new.len() - n_last).filter(|&at| is_changed(new[at], gone));
    match classify_all(places.map(|at| classify_number(&new, at))) {
        // A change from or to zero is news: sold out, or first one available.
        NumberChange::Unclear if gone.iter().chain(come).any(|word| bare(word) == "0") => NumberChange::News,
        digit => digit,
    }
}

/// Whether a text contains only a time, an age or a counter.
pub fn is_passing(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().take(9).collect();
    let has_number = words.iter().any(|word| has_digit(word));
    let mut all = words.iter().map(|word| bare(word));
    let is_part = |word: &String| {
        word.is_empty() || has_digit(word) || is_passing_word(word) || is_time_word(word) || is_filler(word)
    };
    if words.is_empty() || words.len() > 8 || !has_number || !all.all(|word| is_part(&word)) {
        return false;
    }
    let places = (0..words.len()).filter(|&at| has_digit(words[at]));
    classify_all(places.map(|at| classify_number(&words, at))) == NumberChange::Passing
}

fn classify_all(signs: impl Iterator<Item = NumberChange>) -> NumberChange {
    let (mut n, mut n_passing, mut is_news) = (0, 0, false);
    for sign in signs {
        n += 1;
        n_passing += usize::from(sign == NumberChange::Passing);
        is_news |= sign == NumberChange::News;
    }
    match (is_news, n > 0 && n_passing == n) {
        (true, _) => NumberChange::News,
        (_, true) => NumberChange::Passing,
        _ => NumberChange::Unclear,
    }
}

/// Classifies a number by the words around it, nearest first.
fn classify_number(words: &[&str], at: usize) -> NumberChange {
    let own = words[at];
    if has_currency(own) || own.contains('%') {
        return NumberChange::News;
    }
    // French for "3 minutes ago"; the single words have other meanings elsewhere.
    if at >= 3 && words[at - 3..at].iter().map(|word| bare(word)).eq(["il", "y", "a"]) {
        return NumberChange::Passing;
    }
    let is_clock = is_clock(own);
    for distance in 1..=REACH {
        let (before, after) = (at.checked_sub(distance), at.checked_add(distance));
        // Units and counted things follow a number, labels precede it.
        for (near, is_behind) in [(after, true), (before, false)] {
            let Some(near) = near.and_then(|near| words.get(near)) else { continue };
            if has_currency(near) {
                return NumberChange::News;
            }
            let word = bare(near);
            // "Hours: 9 to 17" is a label, but "9 hours" is a duration, and the word after it decides.
            if is_behind && is_time_word(&word) {
                continue;
            }
            if is_passing_word(&word) {
                return NumberChange::Passing;
            }
            if is_news_word(&word) && !(is_clock && is_short_unit(&word)) {
                return NumberChange::News;
            }
        }
    }
    match (is_clock, is_version(own)) {
        (true, _) => NumberChange::Passing,
        (_, true) => NumberChange::News,
        _ => NumberChange::Unclear,
    }
}

/// A version number: three or more numbers separated by points that are not a date.
fn is_version(word: &str) -> bool {
    let word = word.trim_start_matches(['v', 'V', '(', '[']).trim_end_matches([',', ';', ')', ']', '.']);
    let parts: Vec<&str> = word.split('.').collect();
    let is_date =
        parts.len() == 3 && matches!(parts[2].len(), 2 | 4) && parts[0].len() <= 2 && parts[1].len() <= 2;
    parts.len() >= 3
        && parts
            .iter()
            .all(|part| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
        && !is_date
}

/// Whether a word is a number, a date, a time or part of one.
fn is_number_word(word: &str) -> bool {
    has_digit(word) || {
        let word = bare(word);
        word.is_empty() || is_time_word(&word)
    }
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The word in lower case without punctuation.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric() && c != '°' && c != '%' && c != '©').to_lowercase()
}

fn has_currency(word: &str) -> bool {
    word.contains(['€', '$', '£', '¥', '₹', '₽', '₩', '₺']) || is_one_of(&bare(word), CURRENCIES)
}

const CURRENCIES: &str =
    "eur usd gbp chf jpy cny inr pln sek euro euros dollar dollars pounds cent cents franken yen";

fn is_one_of(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// A time of day: 9:05, 21:30:07.
fn is_clock(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let parts: Vec<&str> = word.split(':').collect();
    (2..=3).contains(&parts.len())
        && parts
            .iter()
            .all(|part| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Words of counters and timestamps, whose numbers nobody reads.
fn is_passing_word(word: &str) -> bool {
    is_one_of(word, PASSING)
}

const PASSING: &str = "views view visitors visitor visits visit besucher aufrufe abrufe zugriffe visites vues visitas likes \
    like shares share geteilt followers follower abonnenten abonnés subscribers comments comment kommentare \
    kommentar commentaires comentarios replies reply antworten online clicks klicks hits reads leser gelesen \
    readers rated loaded geladen gefällt stars forks retweets tweets reactions reaktionen ratings reviews bewertungen downloads upvotes points \
    ago vor hace fa geleden updated update modified generated rendered retrieved accessed crawled printed \
    changed geändert aktualisiert stand actualisé copyright © uptime served cached built published posted \
    veröffentlicht publié today heute now jetzt uhr gmt utc";

/// Words of numbers that matter: units, important counts, labels of limits and validity.
fn is_news_word(word: &str) -> bool {
    let is_compound =
        || IMPORTANT_ENDINGS.split(' ').any(|end| word.len() > end.len() && word.ends_with(end));
    is_short_unit(word) || is_one_of(word, IMPORTANT_WORDS) || is_compound()
}

/// Endings of German compounds with the same meaning.
const IMPORTANT_ENDINGS: &str =
    "opfer preis preise kosten gebühr gebühren steuer frist grenzwert lohn zins zinsen";

const IMPORTANT_WORDS: &str = "percent prozent km/h kmh mph knots kwh °c °f celsius fahrenheit million millions millionen billion \
    billions milliarden people persons personen menschen dead killed died deaths tote toten todesfälle \
    toll fatalities casualties population einwohner mortes muertes morti heridos blessés feriti \
    victims opfer morts muertos injured wounded verletzte verletzten missing vermisste cases fälle \
    infections arrested seats sitze jobs stellen price prices preis preise prix precio cost costs kosten fee \
    fees gebühr gebühren rate rates limit limits grenzwert maximum minimum max min dose dosage dosis speed \
    version release score tax steuer interest zins zinsen temperature temperatur salary gehalt valid gültig \
    until till bis expires expiry deadline frist due effective from ab starts start begins beginn beginnt \
    ends opens open opening closes geöffnet öffnungszeiten hours age capacity votes stimmen \
    goals tore magnitude stärke level pegel least mindestens höchstens phone telephone tel telefon";

fn is_short_unit(word: &str) -> bool {
    is_one_of(word, UNITS)
}

const UNITS: &str = "km cm mm kg mg µg ml kw mw gw mb gb tb mhz ghz m² m2 ppm mio mrd";

/// Names of days and months, and other words of times.
fn is_time_word(word: &str) -> bool {
    is_one_of(word, TIMES)
}

const TIMES: &str = "jan feb mar mär apr jun jul aug sep oct okt nov dec dez mon tue wed thu fri sat sun min sek january \
    february march april may june july august september october november december januar februar märz mai \
    juni juli oktober dezember monday tuesday wednesday thursday friday saturday sunday montag dienstag \
    mittwoch donnerstag freitag samstag sonnabend sonntag second seconds minute minutes hour hours day days \
    week weeks month months year years sekunde sekunden minuten stunde stunden tag tage tagen woche wochen \
    monat monate monaten jahr jahre jahren am pm uhr gmt utc yesterday gestern sept";

/// Words between the parts of a timestamp.
fn is_filler(word: &str) -> bool {
    is_one_of(word, FILLERS)
}

const FILLERS: &str = "last on at the um am von zuletzt letzte in times mal a an by of";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_limits_and_victims_are_news() {
        for (before, after) in [
            ("€ 19.99 incl. VAT", "€ 24.99 incl. VAT"),
            ("Price: 1,299 USD", "Price: 1,399 USD"),
            ("The limit is 50 km/h in all streets", "The limit is 30 km/h in all streets"),
            ("At least 12 people died", "At least 17 people died"),
            ("Zwölf Häuser, 3 Tote", "Zwölf Häuser, 5 Tote"),
            ("Valid until 31 March 2026", "Valid until 30 June 2026"),
            ("Unemployment rose to 5.1%", "Unemployment rose to 5.4%"),
            ("Maximum dose 20 mg a day", "Maximum dose 10 mg a day"),
            ("We are open 9:00 to 17:00", "We are open 10:00 to 17:00"),
            ("Version 2.4.1", "Version 2.4.2"),
            ("Tides 9.1.0 (current)", "Tides 9.2.0 (current)"),
            ("Death toll rises to 41", "Death toll rises to 230"),
            ("Zahl der Todesopfer steigt auf 41", "Zahl der Todesopfer steigt auf 230"),
            ("Abgabefrist 1.5.2026", "Abgabefrist 15.6.2026"),
            ("Members must be at least 16 years old", "Members must be at least 18 years old"),
            ("Hours: 9 to 17", "Hours: 10 to 14"),
        ] {
            assert_eq!(classify(before, after), NumberChange::News, "{before}");
        }
    }

    #[test]
    fn clocks_counters_and_timestamps_are_not_news() {
        for (before, after) in [
            ("1,204 views", "1,377 views"),
            ("Visitors today: 17", "Visitors today: 32"),
            ("3 minutes ago", "12 minutes ago"),
            ("vor 3 Minuten", "vor 1 Stunde"),
            ("3 hours ago", "5 hours ago"),
            ("il y a 3 minutes", "il y a 14 minutes"),
            ("Seite geladen in 12 ms", "Seite geladen in 34 ms"),
            ("18 Gefällt mir", "19 Gefällt mir"),
            ("Rated 4.1 by 201 readers", "Rated 4.2 by 207 readers"),
            ("14:05", "14:35"),
            ("Last updated 12 November 2026, 10:15", "Last updated 13 November 2026, 09:40"),
            ("Kommentare (12)", "Kommentare (14)"),
            ("Copyright 2025 The Harbour Post", "Copyright 2026 The Harbour Post"),
            ("Page generated in 0.031 seconds", "Page generated in 0.027 seconds"),
        ] {
            assert_eq!(classify(before, after), NumberChange::Passing, "{before}");
        }
        for text in ["3 minutes ago", "14:05", "12 comments", "1,204 views", "vor 5 Minuten"] {
            assert!(is_passing(text), "{text}");
        }
        for text in [
            "Price 12 EUR",
            "12 dead",
            "minutes",
            "",
            "Chapter 12",
            "two comments on 3 ideas of mine that matter",
        ] {
            assert!(!is_passing(text), "{text}");
        }
    }

    #[test]
    fn bare_numbers_are_unclear() {
        assert_eq!(classify("12 ships in port", "12 boats in port"), NumberChange::Words);
        assert_eq!(classify("same", "same"), NumberChange::Words);
        assert_eq!(classify("Chapter 12", "Chapter 13"), NumberChange::Unclear);
        assert_eq!(classify("", "12"), NumberChange::Unclear);
        assert_eq!(classify("12 in stock", "9 in stock"), NumberChange::Unclear);
    }

    #[test]
    fn none_is_more_than_a_number() {
        assert_eq!(classify("3 in stock", "0 in stock"), NumberChange::News);
        assert_eq!(classify("Noch 0 auf Lager", "Noch 40 auf Lager"), NumberChange::News);
        assert_eq!(classify("0 comments", "1 comments"), NumberChange::Passing);
    }
}
