//! The scheduler's data about pages, in columns, so ranking all pages reads only a few of them. docs/papers.md
//! (Expected gain) defines the quantities.

use std::collections::HashMap;

use crate::url::PageId;

pub(super) const FRESH: u16 = 1;
/// Handed out; the driver has not reported the outcome.
pub(super) const PENDING: u16 = 2;
/// The last visit found no page. It is probed rarely.
pub(super) const ABSENT: u16 = 4;
/// Removed; another page can use its position.
pub(super) const VACANT: u16 = 8;
pub(super) const ANNOUNCED: u16 = 16;
/// Its rates were given, not learned.
pub(super) const KNOWN: u16 = 32;
/// In the queue of new pages.
pub(super) const QUEUED: u16 = 64;

/// In a skipped directory.
pub(super) const SKIPPED: u16 = 128;
/// Visited at an interval of its own, so nothing else chooses it.
pub(super) const PROMISED: u16 = 256;
/// Handed out, and the visit has started.
pub(super) const STARTED: u16 = 512;

/// Bit of [`PageColumns::sweep_flags`]: a visit outside a sweep found a change, so the captured page does not match
/// the others of its site.
pub(super) const INCOHERENT: u8 = 1;
/// Bit of [`PageColumns::sweep_flags`]: queued for a sweep of its site.
pub(super) const IN_SWEEP: u8 = 2;

/// Bit of [`PageColumns::sweep_flags`]: a change was observed.
pub(super) const CHANGED: u8 = 4;

pub(super) const NONE: u32 = u32::MAX;

/// One entry per page in every column; see [`PageColumns::BYTES_PER_PAGE`].
#[derive(Default, Clone)]
pub(super) struct PageColumns {
    pub id: Vec<PageId>,
    /// Index in the scheduler's list of sites.
    pub site: Vec<u32>,
    pub clock: Vec<u16>,
    pub flags: Vec<u16>,
    pub n_failures: Vec<u8>,
    /// omega(P).
    pub weight: Vec<f32>,
    /// The value of one unit of importance on this page to its goal.
    pub value: Vec<f32>,
    /// The part of the value that does not depend on the next change: see [`super::gain`].
    pub sure_value: Vec<f32>,
    /// r: expected importance of the last change since the visit.
    pub expected_importance: Vec<f32>,
    /// L: expected number of changes since the visit.
    pub expected_changes: Vec<f32>,
    /// The last capture, in seconds since the scheduler's base; 0 when there is none.
    pub seen_at: Vec<u32>,
    /// The second to which r and L were carried.
    pub carried_at: Vec<u32>,
    /// No visit before this second since the scheduler's base.
    pub not_before: Vec<u32>,
    /// Mean changes per hour.
    pub rate: Vec<f32>,
    pub importance: Vec<f32>,
    /// The row of relative rates and importances by bucket.
    pub row: Vec<u32>,
    /// The history, or [`NONE`].
    pub evidence: Vec<u32>,
    /// The group that supplies the initial rates of a new page.
    pub group: Vec<u32>,
    /// How much busier than usual the page was recently (C2).
    pub spell: Vec<f32>,
    /// The gain of a visit when the page was last placed.
    pub urgency: Vec<f32>,
    /// The page's state in sweeps of its site: [`INCOHERENT`], [`IN_SWEEP`], [`CHANGED`].
    pub sweep_flags: Vec<u8>,
    vacant: Vec<u32>,
    position: Vec<u32>,
    /// Positions of page numbers far beyond the others. The store numbers pages densely, so this stays empty.
    sparse: HashMap<u32, u32>,
}

impl PageColumns {
    /// Bytes of the columns and of the table from page number to position.
    pub(super) const BYTES_PER_PAGE: usize = 4 * 18 + 2 + 2 + 1 + 1;

    pub(super) fn len(&self) -> usize {
        self.id.len()
    }

    pub(super) fn n_present(&self) -> usize {
        self.id.len() - self.vacant.len()
    }

    pub(super) fn position(&self, page: PageId) -> Option<usize> {
        let found = match self.position.get(page.0 as usize) {
            Some(&found) => found,
            None => *self.sparse.get(&page.0)?,
        };
        (found != NONE).then_some(found as usize)
    }

    /// The page's position, which is new if it had none, and whether it is new.
    pub(super) fn insert(&mut self, page: PageId) -> (usize, bool) {
        if let Some(position) = self.position(page) {
            return (position, false);
        }
        let position = self.vacant.pop().unwrap_or_else(|| {
            self.push_blank();
            (self.id.len() - 1) as u32
        });
        self.blank(position as usize, page);
        self.set_position(page, position);
        (position as usize, true)
    }

    pub(super) fn remove(&mut self, page: PageId) -> Option<usize> {
        let position = self.position(page)?;
        self.set_position(page, NONE);
        self.flags[position] = VACANT;
        self.urgency[position] = 0.0;
        self.vacant.push(position as u32);
        Some(position)
    }

    pub(super) fn has(&self, position: usize, flags: u16) -> bool {
        self.flags[position] & flags != 0
    }

    fn set_position(&mut self, page: PageId, position: u32) {
        let id = page.0 as usize;
        if id < self.position.len() {
            self.position[id] = position;
        } else if id < 8 * self.id.len() + (1 << 16) {
            self.position.resize(id + 1, NONE);
            self.position[id] = position;
            if !self.sparse.is_empty() {
                self.absorb_strays();
            }
        } else if position == NONE {
            self.sparse.remove(&page.0);
        } else {
            self.sparse.insert(page.0, position);
        }
    }

    fn absorb_strays(&mut self) {
        let position = &mut self.position;
        self.sparse.retain(|&id, &mut at| match position.get_mut(id as usize) {
            Some(entry) => {
                *entry = at;
                false
            }
            None => true,
        });
    }

    fn push_blank(&mut self) {
        self.id.push(PageId(NONE));
        self.site.push(0);
        self.clock.push(0);
        self.flags.push(VACANT);
        self.n_failures.push(0);
        self.weight.push(1.0);
        self.value.push(1.0);
        self.sure_value.push(0.0);
        self.expected_importance.push(0.0);
        self.expected_changes.push(0.0);
        self.seen_at.push(0);
        self.carried_at.push(0);
        self.not_before.push(0);
        self.rate.push(0.0);
        self.importance.push(0.0);
        self.row.push(0);
        self.evidence.push(NONE);
        self.group.push(0);
        self.spell.push(1.0);
        self.urgency.push(0.0);
        self.sweep_flags.push(0);
    }

    fn blank(&mut self, at: usize, page: PageId) {
        self.id[at] = page;
        self.flags[at] = FRESH;
        self.n_failures[at] = 0;
        (self.expected_importance[at], self.expected_changes[at]) = (0.0, 0.0);
        (self.seen_at[at], self.carried_at[at], self.not_before[at]) = (0, 0, 0);
        (self.urgency[at], self.spell[at]) = (0.0, 1.0);
        (self.row[at], self.evidence[at], self.sweep_flags[at]) = (0, NONE, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_numbers_have_positions() {
        let mut pages = PageColumns::default();
        for id in [5, u32::MAX - 1, 0, 70_000] {
            assert!(pages.insert(PageId(id)).1);
        }
        assert_eq!(pages.insert(PageId(0)), (2, false));
        assert_eq!(pages.position(PageId(u32::MAX - 1)), Some(1));
        pages.remove(PageId(5));
        assert_eq!(pages.position(PageId(5)), None);
        assert_eq!(pages.insert(PageId(9)), (0, true));
        assert_eq!(pages.n_present(), 4);
    }
}
