//! Names of files and folders -> small numbers.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// All names, concatenated in one string.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    text: String,
    ends: Vec<u32>,
    /// Hash of a name -> its number. If two names have the same hash, the later one uses the next free hash. The hash
    /// has a key and 64 bits, so nobody can cause that often.
    by_hash: HashMap<u64, u32>,
}

impl Labels {
    /// The number of a name, which is added if it is new.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        let mut slot = hash(name);
        loop {
            match self.by_hash.get(&slot) {
                Some(&number) if self.name(number) == name => return number,
                Some(_) => slot = slot.wrapping_add(1),
                None => break,
            }
        }
        let number = self.ends.len() as u32;
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
        self.by_hash.insert(slot, number);
        number
    }

    /// The number of a known name.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let mut slot = hash(name);
        loop {
            let number = *self.by_hash.get(&slot)?;
            if self.name(number) == name {
                return Some(number);
            }
            slot = slot.wrapping_add(1);
        }
    }

    pub(super) fn name(&self, number: u32) -> &str {
        let at = number as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.text.capacity() + 4 * self.ends.capacity() + 17 * self.by_hash.capacity()
    }
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let mut labels = Labels::default();
        let numbers = ["news", "", "a", "news", "", "b"].map(|name| labels.number(name));
        assert_eq!(numbers, [0, 1, 2, 0, 1, 3]);
        assert_eq!((labels.name(0), labels.name(1), labels.name(3)), ("news", "", "b"));
        assert_eq!((labels.find("a"), labels.find("c")), (Some(2), None));
    }
}
