//! A seed -> headlines and paragraphs that read like a newspaper's. They give diffs of the living web real words to
//! compare.

use perennial_core::rng::Rng;

const PLACES: [&str; 24] = [
    "Harbour district",
    "North Valley",
    "Eastbridge",
    "the old town",
    "Kestrel Island",
    "the university",
    "Lindenfeld",
    "Port Amsel",
    "the river quarter",
    "Saltmarsh",
    "Upper Ferrow",
    "the regional court",
    "Marlow Heath",
    "the airport",
    "Stonegate",
    "the teaching hospital",
    "Westmoor",
    "the fish market",
    "Greywater",
    "the central station",
    "Oakhurst",
    "the botanical garden",
    "Pinefield",
    "the national archive",
];
const ACTORS: [&str; 24] = [
    "council",
    "teachers",
    "engineers",
    "the mayor",
    "researchers",
    "a citizens' group",
    "the transport ministry",
    "farmers",
    "the fire service",
    "doctors",
    "the orchestra",
    "auditors",
    "dock workers",
    "the water board",
    "shopkeepers",
    "the opposition",
    "pupils",
    "the housing agency",
    "volunteers",
    "the energy regulator",
    "librarians",
    "the football club",
    "judges",
    "the weather service",
];
const VERBS: [&str; 24] = [
    "approves",
    "delays",
    "questions",
    "publishes",
    "rejects",
    "celebrates",
    "investigates",
    "doubles",
    "cancels",
    "restores",
    "warns about",
    "agrees on",
    "withdraws",
    "opens",
    "defends",
    "postpones",
    "presents",
    "revises",
    "halts",
    "welcomes",
    "disputes",
    "funds",
    "reviews",
    "abandons",
];
const TOPICS: [&str; 24] = [
    "the new tram line",
    "a flood barrier",
    "school meals",
    "the harvest forecast",
    "wage talks",
    "a bridge repair",
    "hospital waiting times",
    "the night train",
    "rent limits",
    "a solar park",
    "the museum extension",
    "water prices",
    "the budget",
    "cycle lanes",
    "a vaccine trial",
    "the ferry timetable",
    "broadband plans",
    "the recycling contract",
    "fishing quotas",
    "the concert season",
    "a data leak",
    "the heat plan",
    "land reform",
    "the harbour sale",
];
const TAILS: [&str; 24] = [
    "after months of talks",
    "despite protests",
    "for the third time",
    "ahead of the vote",
    "as costs rise",
    "in a close decision",
    "before winter",
    "following a report",
    "with immediate effect",
    "amid doubts",
    "to general surprise",
    "until next spring",
    "under new rules",
    "at a public meeting",
    "without debate",
    "because of staff shortages",
    "for the first time since 1987",
    "on advice of experts",
    "in two stages",
    "after a court ruling",
    "while neighbours object",
    "as trains stand still",
    "to save energy",
    "in spite of the weather",
];

fn pick(rng: &mut Rng, words: &[&'static str]) -> &'static str {
    words[rng.below(words.len())]
}

/// For example "Auditors delay the night train as costs rise".
pub(super) fn headline(rng: &mut Rng) -> String {
    let text = format!(
        "{} in {} {} {}",
        pick(rng, &ACTORS),
        pick(rng, &PLACES),
        pick(rng, &VERBS),
        pick(rng, &TOPICS)
    );
    capitalise(&text)
}

/// A sentence of about twenty words.
pub(super) fn sentence(rng: &mut Rng) -> String {
    let first = headline(rng);
    let tail = pick(rng, &TAILS);
    let second = match rng.below(4) {
        0 => format!(", while {} {} {}", pick(rng, &ACTORS), pick(rng, &VERBS), pick(rng, &TOPICS)),
        1 => format!(", a spokesperson for {} said", pick(rng, &PLACES)),
        2 => format!(", {} percent more than last year", 2 + rng.below(90)),
        _ => String::new(),
    };
    format!("{first} {tail}{second}.")
}

/// A paragraph of three to five sentences.
pub(super) fn paragraph(rng: &mut Rng) -> String {
    let n_sentences = 3 + rng.below(3);
    (0..n_sentences).map(|_| sentence(rng)).collect::<Vec<_>>().join(" ")
}

fn capitalise(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_words_other_seed_other_words() {
        let text = |seed| paragraph(&mut Rng::from_parts(&[seed, 7]));
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }
}
