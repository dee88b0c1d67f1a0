//! Title and description of a feed item, or of a page -> the grams that locate its article (P-FEED 4.1).

use std::collections::HashSet;

/// Words of a context that are read. Titles and descriptions are shorter, but a feed may contain a whole article.
const MAX_WORDS: usize = 2_000;

/// Sequences of words in lower case, including stop words, within the title or within the description.
#[derive(Default, Debug)]
pub struct Grams {
    n: usize,
    hashes: HashSet<u64>,
}

impl Grams {
    pub fn new(parts: &[&str], n: usize) -> Grams {
        let mut hashes = HashSet::new();
        for part in parts {
            let words: Vec<u64> = word_hashes(part).take(MAX_WORDS).collect();
            hashes.extend(words.windows(n).map(gram_hash));
        }
        Grams { n, hashes }
    }

    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The grams of this context in a text, in order and with repetitions.
    pub fn found_in(&self, text: &str) -> Vec<u64> {
        if self.is_empty() {
            return Vec::new();
        }
        let words: Vec<u64> = word_hashes(text).collect();
        words.windows(self.n).map(gram_hash).filter(|gram| self.hashes.contains(gram)).collect()
    }
}

fn gram_hash(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
    })
}

/// Hashes of the words of a text in lower case. A word is a run of letters and digits.
pub fn word_hashes(text: &str) -> impl Iterator<Item = u64> {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    let mut characters = text.chars();
    std::iter::from_fn(move || {
        let mut hash = START;
        for c in characters.by_ref() {
            if c.is_ascii_alphanumeric() {
                hash = (hash ^ u64::from(c.to_ascii_lowercase() as u32)).wrapping_mul(0x0100_0000_01b3);
            } else if !c.is_ascii() && c.is_alphanumeric() {
                for small in c.to_lowercase() {
                    hash = (hash ^ u64::from(small as u32)).wrapping_mul(0x0100_0000_01b3);
                }
            } else if hash != START {
                break;
            }
        }
        (hash != START).then_some(hash)
    })
}
