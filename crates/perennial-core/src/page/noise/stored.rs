//! A noise history <-> the bytes that the state of a page stores.

use super::history::NoiseHistory;

/// First byte of the stored form.
const FORMAT: u8 = 1;

/// A stored history is unreadable.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("noise history, byte {offset}: {reason}; delete it, it is relearned")]
pub struct NoiseError {
    /// Position of the error in bytes.
    pub offset: usize,
    pub reason: &'static str,
}

impl NoiseHistory {
    /// The stored form. It has at most six kilobytes, and a few dozen bytes for a quiet page.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.n_visits.to_le_bytes());
        for n in [self.changing.len(), self.vanished.len(), self.words.len()] {
            bytes.extend((n as u16).to_le_bytes());
        }
        for (id, n_changes) in &self.changing {
            bytes.extend(id.to_le_bytes());
            bytes.extend(n_changes.to_le_bytes());
        }
        for hash in self.vanished.iter().chain(&self.words) {
            bytes.extend(hash.to_le_bytes());
        }
        bytes
    }

    /// Reads the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Result<NoiseHistory, NoiseError> {
        let mut input = ByteReader { bytes, offset: 0 };
        if input.take::<1>()? != [FORMAT] {
            return Err(NoiseError { offset: 0, reason: "unknown format" });
        }
        let n_visits = u32::from_le_bytes(input.take()?);
        let mut lengths = [0; 3];
        for length in &mut lengths {
            *length = u16::from_le_bytes(input.take()?);
        }
        let mut history = NoiseHistory { n_visits, ..NoiseHistory::default() };
        for _ in 0..lengths[0] {
            history.changing.push((u64::from_le_bytes(input.take()?), u16::from_le_bytes(input.take()?)));
        }
        for _ in 0..lengths[1] {
            history.vanished.push_back(u32::from_le_bytes(input.take()?));
        }
        for _ in 0..lengths[2] {
            history.words.push_back(u32::from_le_bytes(input.take()?));
        }
        Ok(history)
    }
}

struct ByteReader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl ByteReader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NoiseError> {
        let found = self.bytes.get(self.offset..self.offset + N).and_then(|bytes| bytes.try_into().ok());
        let taken = found.ok_or(NoiseError { offset: self.offset, reason: "truncated" })?;
        self.offset += N;
        Ok(taken)
    }
}
