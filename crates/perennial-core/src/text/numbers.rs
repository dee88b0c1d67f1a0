//! Two texts that differ in numbers -> whether the change is news (docs/papers.md, Advertisements and noise).
//!
//! A number in a sentence, with a currency, a unit or a label is news, and so is a date with any other word. A text that
//! is only a time stamp, a clock or a counter is not ([`super::stamps`]). If neither is clear, the page's history
//! decides (`noise`).

use super::stamps::{
    PassingKind, bare, clauses, goes_back, has_digit, is_clock, is_date_or_clock, is_filler, is_time_word,
    is_unit_of_time, passing, passing_at, split_words,
};

/// The kind of a change of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberChange {
    /// Words other than numbers changed, or nothing did.
    Words,
    /// Only numbers changed, and one of them is news: a price, a limit, a deadline, a count that matters.
    News,
    /// Only clocks, counters or time stamps changed.
    Passing(PassingKind),
    /// Only numbers changed, and nothing shows what they mean.
    Unclear,
}

/// Number of words on each side of a number that may show its meaning.
const REACH: usize = 3;
/// Number of words that make a clause with a number a sentence: of all words, and of those apart from times and fillers.
const MIN_SENTENCE_WORDS: usize = 5;
const MIN_OTHER_WORDS: usize = 3;
/// Longer texts are compared without classifying their numbers.
const MAX_WORDS: usize = 2_000;

/// Classifies the change of a text.
pub fn classify(before: &str, after: &str) -> NumberChange {
    let old: Vec<&str> = split_words(before).take(MAX_WORDS + 1).collect();
    let new: Vec<&str> = split_words(after).take(MAX_WORDS + 1).collect();
    if old.len() > MAX_WORDS || new.len() > MAX_WORDS || before == after {
        return NumberChange::Words;
    }
    if let Some((_, kind)) = passing(before).zip(passing(after)) {
        let is_stamp = kind == PassingKind::Stamp && !goes_back(before, after);
        return if is_stamp || kind != PassingKind::Stamp {
            NumberChange::Passing(kind)
        } else {
            NumberChange::News
        };
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

fn classify_all(signs: impl Iterator<Item = NumberChange>) -> NumberChange {
    let (mut all, mut is_clear) = (None, true);
    for sign in signs {
        match sign {
            NumberChange::News => return NumberChange::News,
            NumberChange::Passing(kind) => all = all.or(Some(kind)),
            _ => is_clear = false,
        }
    }
    all.filter(|_| is_clear).map_or(NumberChange::Unclear, NumberChange::Passing)
}

/// Classifies a number by the clause that contains it, and by the words around it.
fn classify_number(words: &[&str], at: usize) -> NumberChange {
    let own = words[at];
    if has_currency(own) || own.contains('%') {
        return NumberChange::News;
    }
    if let Some(kind) = passing_at(words, at) {
        return NumberChange::Passing(kind);
    }
    if has_news_word_near(words, at) || is_version(own) || is_span(words, at) {
        return NumberChange::News;
    }
    let (n_words, n_others) = count_words(words, at);
    let is_sentence = n_others >= MIN_OTHER_WORDS || n_words >= MIN_SENTENCE_WORDS;
    match n_others > 0 && (is_sentence || is_in_date(words, at) || is_duration(words, at)) {
        true => NumberChange::News,
        false => NumberChange::Unclear,
    }
}

/// Whether a currency, a unit or a label is near.
fn has_news_word_near(words: &[&str], at: usize) -> bool {
    let is_clock = is_clock(words[at]);
    let near = words[at.saturating_sub(REACH)..words.len().min(at + REACH + 1)].iter().enumerate();
    let is_news = |word: &str| {
        let own = bare(word);
        has_currency(word) || is_news_word(&own) && !(is_clock && is_short_unit(&own))
    };
    near.filter(|(place, _)| *place != at.min(REACH)).any(|(_, word)| is_news(word))
}

/// Whether the word is an end of a span of times: 9:00–17:00, "9:00 - 17:00".
fn is_span(words: &[&str], at: usize) -> bool {
    let is_end = |word: &str| is_clock(word) || has_digit(word) && is_date_or_clock(word);
    let is_dash = |at: usize| words.get(at).is_some_and(|word| matches!(*word, "-" | "–" | "—"));
    let near = |at: Option<usize>| at.and_then(|at| words.get(at)).is_some_and(|word| is_end(word));
    words[at].split(['–', '—', '-']).filter(|part| is_clock(part)).count() > 1
        || is_end(words[at])
            && (is_dash(at + 1) && near(Some(at + 2)) || at > 0 && is_dash(at - 1) && near(at.checked_sub(2)))
}

/// Whether the word is a date or a time of day, or next to the name of a month or day.
fn is_in_date(words: &[&str], at: usize) -> bool {
    // Spanish: "24 de noviembre".
    words[at.saturating_sub(2)..words.len().min(at + 3)].iter().any(|word| is_date_or_clock(word))
}

/// Whether the number counts hours, days or weeks, as in "30 days".
fn is_duration(words: &[&str], at: usize) -> bool {
    words.get(at + 1).is_some_and(|next| is_unit_of_time(&bare(next)))
}

/// The number of words in the clause of a number, and of those that are neither numbers, times nor fillers.
fn count_words(words: &[&str], at: usize) -> (usize, usize) {
    let mut from = 0;
    let clause = clauses(words).find(|clause| {
        from += clause.len();
        at < from
    });
    let own = clause.unwrap_or_default().iter().map(|word| bare(word));
    let is_word = |word: &String| word.contains(char::is_alphabetic) && !has_digit(word);
    let own: Vec<String> = own.filter(is_word).collect();
    (own.len(), own.iter().filter(|word| !is_time_word(word) && !is_filler(word)).count())
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
        // Shorter names of days are also other words.
        word.is_empty() || word.len() > 2 && is_time_word(&word) || is_one_of(&word, NUMERALS)
    }
}

const NUMERALS: &str = "two three four five six seven eight nine ten eleven twelve fourteen fifteen eighteen twenty thirty \
    forty fifty sixty ninety hundred zwei drei vier fünf sechs sieben acht neun zehn elf zwölf vierzehn fünfzehn \
    zwanzig dreißig sechzig neunzig hundert deux trois quatre cinq sept huit neuf dix onze douze quatorze quinze vingt \
    trente soixante cent dos tres cuatro cinco seis siete ocho nueve diez doce catorce quince veinte treinta sesenta \
    cien due tre quattro cinque sei sette otto nove dieci dodici quindici venti trenta";

fn has_currency(word: &str) -> bool {
    word.contains(['€', '$', '£', '¥', '₹', '₽', '₩', '₺']) || is_one_of(&bare(word), CURRENCIES)
}

const CURRENCIES: &str =
    "eur usd gbp chf jpy cny inr pln sek euro euros dollar dollars pounds cents franken francs yen";

fn is_one_of(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// Words of numbers that matter: units, important counts, labels of limits and validity.
pub(super) fn is_news_word(word: &str) -> bool {
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
            ("Cancel within 30 days", "Cancel within 14 days"),
            ("hearing on 24 November", "hearing on 27 November"),
            ("One tablet every 6 hours", "One tablet every 4 hours"),
            ("Applications close on 2026-12-01", "Applications close on 2026-11-20"),
            ("Return it within thirty days", "Return it within fourteen days"),
            ("The market is on Tuesdays", "The market is on Thursdays"),
            ("The council has 47 members in all", "The council has 45 members in all"),
            ("1 December 2026", "20 November 2026"),
            ("9:00–17:00", "10:00–16:00"),
            ("9:00 - 17:00", "9:00 - 16:00"),
            ("Updated today. Apply within 30 days.", "Updated today. Apply within 14 days."),
            ("Vous pouvez résilier sous 30 jours", "Vous pouvez résilier sous 14 jours"),
            ("Una pastilla cada 6 horas", "Una pastilla cada 4 horas"),
            ("Widerspruch innerhalb von 4 Wochen", "Widerspruch innerhalb von 2 Wochen"),
            ("Wednesday concert 12 November", "Wednesday concert 19 November"),
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
            ("17 people are looking at this", "23 people are looking at this"),
            ("just now", "2 minutes ago"),
            ("The shop is closed. Updated 3 hours ago.", "The shop is closed. Updated 5 hours ago."),
            ("as of 19 February 2024", "as of 13 March 2024"),
            ("1 December 2026", "2 December 2026"),
        ] {
            assert!(matches!(classify(before, after), NumberChange::Passing(_)), "{before}");
        }
    }

    #[test]
    fn bare_numbers_are_unclear() {
        assert_eq!(classify("12 ships in port", "12 boats in port"), NumberChange::Words);
        assert_eq!(classify("same", "same"), NumberChange::Words);
        assert_eq!(classify("Chapter 12", "Chapter 13"), NumberChange::Unclear);
        assert_eq!(classify("", "12"), NumberChange::Unclear);
        assert_eq!(classify("You may enter", "You can enter"), NumberChange::Words);
        assert_eq!(classify("12 in stock", "9 in stock"), NumberChange::Unclear);
    }

    #[test]
    fn none_is_more_than_a_number() {
        assert_eq!(classify("3 in stock", "0 in stock"), NumberChange::News);
        assert_eq!(classify("Noch 0 auf Lager", "Noch 40 auf Lager"), NumberChange::News);
        assert_eq!(classify("0 comments", "1 comments"), NumberChange::Passing(PassingKind::Counter));
    }
}
