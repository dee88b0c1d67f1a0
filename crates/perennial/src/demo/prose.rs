//! A seed -> headlines and paragraphs that read like a newspaper's, so that a diff of the living web has
//! real words to compare.

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

/// A stream of choices; the same seed makes the same choices (SplitMix64).
pub(super) struct Choices(u64);

impl Choices {
    /// Starts a stream for one thing: mix whatever names it into `parts`.
    pub(super) fn of(parts: &[u64]) -> Choices {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        for part in parts {
            state = mix(state ^ part);
        }
        Choices(state)
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % (n.max(1) as u64)) as usize
    }

    /// Evenly in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }
}

fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// "Auditors delay the night train as costs rise".
pub(super) fn headline(choices: &mut Choices) -> String {
    let text = format!(
        "{} in {} {} {}",
        choices.pick(&ACTORS),
        choices.pick(&PLACES),
        choices.pick(&VERBS),
        choices.pick(&TOPICS)
    );
    capitalise(&text)
}

/// One sentence of about twenty words.
pub(super) fn sentence(choices: &mut Choices) -> String {
    let first = headline(choices);
    let tail = choices.pick(&TAILS);
    let second = match choices.below(4) {
        0 => format!(", while {} {} {}", choices.pick(&ACTORS), choices.pick(&VERBS), choices.pick(&TOPICS)),
        1 => format!(", a spokesperson for {} said", choices.pick(&PLACES)),
        2 => format!(", {} percent more than last year", 2 + choices.below(90)),
        _ => String::new(),
    };
    format!("{first} {tail}{second}.")
}

/// Three to five sentences.
pub(super) fn paragraph(choices: &mut Choices) -> String {
    let n_sentences = 3 + choices.below(3);
    (0..n_sentences).map(|_| sentence(choices)).collect::<Vec<_>>().join(" ")
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
        let text = |seed| paragraph(&mut Choices::of(&[seed, 7]));
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }
}
