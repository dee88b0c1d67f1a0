//! Shadow prices -> the pages that a sweep of their site would include now.
//!
//! Every slot that may start a sweep checks every page, so the loops check many pages at once without branches.

use super::pages::PageColumns;
use super::sites::omega_from;
use crate::pattern::mixture::one_minus_exp;

/// A sweep leaves out a page that has changed with a probability below 5 %, because its last capture is still valid.
/// This is the number of changes, -ln(1 - 0.05).
const LEAST_CHANGES: f32 = 0.051_293_3;
/// Pages that are tested together.
const RUN: usize = 32;
/// Pages per pass, so intermediate results stay in the first-level cache.
const CHUNK: usize = 512;

/// The criteria for including a page in a sweep.
pub(super) struct SweepSelection {
    pub(super) shadow_price: f32,
    /// By site: the cost per hour of an incoherent page of weight 1, which is 0 for sites that are not swept, and the
    /// usual hours between two sweeps.
    pub(super) sites: Vec<SiteSweepCost>,
    /// The end of the slot.
    pub(super) now: u32,
    /// Every sweep includes the pages last seen before this.
    pub(super) old: u32,
}

/// See [`SweepSelection::sites`].
#[derive(Clone, Copy, Default)]
pub(super) struct SiteSweepCost {
    pub(super) hour: f32,
    pub(super) gap_hours: f32,
}

/// The cost of incoherence of a page of weight 1 that sweeps have left out. If it changed once since its last
/// capture, that capture does not match the captures of other pages. If it changed often, an earlier visit helps
/// little, because it would miss other versions.
#[inline]
fn overdue(site: SiteSweepCost, age_hours: f32, expected_changes: f32) -> f32 {
    site.hour
        * (age_hours - site.gap_hours).max(0.0)
        * expected_changes
        * (1.0 - one_minus_exp(expected_changes))
}

impl SweepSelection {
    /// The gain of including a page because it was last seen longer ago than the usual gap between sweeps.
    pub(super) fn overdue(&self, pages: &PageColumns, at: usize) -> f32 {
        let site = self.sites.get(pages.site[at] as usize).copied().unwrap_or_default();
        let omega = omega_from(((&pages.weight[at], &pages.importance[at]), &pages.sweep_flags[at]));
        omega * overdue(site, self.age_hours(pages.seen_at[at]), pages.expected_changes[at])
    }

    #[inline]
    fn age_hours(&self, seen_at: u32) -> f32 {
        self.now.saturating_sub(seen_at) as f32 / 3600.0
    }

    /// Calls `each` with the pages that have probably changed and are worth a visit, and with those last seen long
    /// ago.
    pub(super) fn for_each(&self, pages: &PageColumns, mut each: impl FnMut(usize)) {
        let mut is_included = [0u32; CHUNK];
        for start in (0..pages.len()).step_by(CHUNK) {
            let range = start..(start + CHUNK).min(pages.len());
            let is_included = &mut is_included[..range.len()];
            self.judge(pages, range, is_included);
            // Most runs contain no such page. One sum per run finds that without a branch per page.
            for (run, is_included) in is_included.chunks(RUN).enumerate() {
                if is_included.iter().sum::<u32>() > 0 {
                    let selection =
                        is_included.iter().enumerate().filter(|(_, is_included)| **is_included != 0);
                    selection.for_each(|(place, _)| each(start + run * RUN + place));
                }
            }
        }
    }

    /// The same for the pages of a few sites.
    pub(super) fn for_each_of(
        &self,
        pages: &PageColumns,
        is_wanted: impl Fn(u32) -> bool,
        mut each: impl FnMut(usize),
    ) {
        for (at, _) in pages.site.iter().enumerate().filter(|(_, site)| is_wanted(**site)) {
            let mut is_included = [0];
            self.judge(pages, at..at + 1, &mut is_included);
            if is_included != [0] {
                each(at);
            }
        }
    }

    /// Sets `is_included` to 1 for the pages of a range that a sweep would include, else to 0. The loops have no branches,
    /// so the compiler vectorises them.
    fn judge(&self, pages: &PageColumns, range: std::ops::Range<usize>, is_included: &mut [u32]) {
        let (mut sites, mut gain) = ([SiteSweepCost::default(); CHUNK], [0.0f32; CHUNK]);
        let (sites, gain) = (&mut sites[..range.len()], &mut gain[..range.len()]);
        for (known, site) in sites.iter_mut().zip(&pages.site[range.clone()]) {
            *known = self.sites.get(*site as usize).copied().unwrap_or_default();
        }
        let loads = &pages.expected_changes[range.clone()];
        let seen_at = &pages.seen_at[range.clone()];
        let omega = pages.weight[range.clone()].iter().zip(&pages.importance[range.clone()]);
        let omega = omega.zip(&pages.sweep_flags[range.clone()]);
        for ((((gain, site), expected_changes), omega), seen_at) in
            gain.iter_mut().zip(&*sites).zip(loads).zip(omega).zip(seen_at)
        {
            let until_next = site.hour * site.gap_hours * one_minus_exp(*expected_changes);
            *gain = omega_from(omega)
                * (until_next + overdue(*site, self.age_hours(*seen_at), *expected_changes));
        }
        let known = pages.urgency[range.clone()].iter().zip(loads).zip(seen_at);
        for (((is_included, site), gain), ((urgency, expected_changes), seen_at)) in
            is_included.iter_mut().zip(&*sites).zip(&*gain).zip(known)
        {
            let is_worth = u32::from(*expected_changes >= LEAST_CHANGES)
                & u32::from(urgency + gain >= self.shadow_price);
            *is_included = (is_worth | u32::from(*seen_at <= self.old)) & u32::from(site.hour > 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::url::PageId;

    const NOW: u32 = 1_000 * 3600;

    fn selection(shadow_price: f32) -> SweepSelection {
        let site = |hour, gap_hours| SiteSweepCost { hour, gap_hours };
        SweepSelection {
            shadow_price,
            sites: vec![site(0.1, 10.0), site(0.0, 5.0), site(0.02, 30.0)],
            now: NOW,
            old: NOW - 168 * 3600,
        }
    }

    /// Pages given as site, hours since the last capture, changes since then, gain.
    fn pages(all: &[(u32, u32, f32, f32)]) -> PageColumns {
        let mut pages = PageColumns::default();
        for (number, (site, age, expected_changes, urgency)) in (0..).zip(all) {
            let (at, _) = pages.insert(PageId(number));
            (pages.site[at], pages.seen_at[at]) = (*site, NOW - age * 3600);
            (pages.expected_changes[at], pages.urgency[at]) = (*expected_changes, *urgency);
            (pages.weight[at], pages.importance[at], pages.sweep_flags[at]) =
                (2.0, 0.25, crate::schedule::pages::CHANGED);
        }
        pages
    }

    #[test]
    fn a_page_left_out_of_sweeps_gains_more_the_older_its_capture_is() {
        let overdue =
            |age, expected_changes| selection(1.0).overdue(&pages(&[(0, age, expected_changes, 0.0)]), 0);
        assert_eq!([overdue(3, 0.5), overdue(10, 0.5)], [0.0; 2]);
        assert!(overdue(40, 0.5) > 1.9 * overdue(25, 0.5));
        // With many changes since the last capture, it is incoherent whenever it is visited.
        assert!(overdue(40, 8.0) < 0.01 * overdue(40, 1.0));
        // The second site is not swept.
        assert_eq!(selection(1.0).overdue(&pages(&[(1, 40, 0.5, 0.0)]), 0), 0.0);
    }

    proptest! {
        #[test]
        fn judging_many_pages_equals_judging_each(
            all in prop::collection::vec((0u32..4, 0u32..200, 0.0f32..3.0, 0.0f32..1.0), 0..1200),
            shadow_price in 0.0f32..1.0,
        ) {
            let (selection, pages) = (selection(shadow_price), pages(&all));
            let mut found = Vec::new();
            selection.for_each(&pages, |at| found.push(at));
            let is_part = |at: &usize| {
                let Some(site) = selection.sites.get(pages.site[*at] as usize) else { return false };
                let incoherence = site.hour * 0.5 * site.gap_hours * one_minus_exp(pages.expected_changes[*at]);
                let worth = pages.urgency[*at] + incoherence + selection.overdue(&pages, *at);
                let is_near = (worth - shadow_price).abs() < 1e-4;
                let is_worth = pages.expected_changes[*at] >= LEAST_CHANGES && (worth >= shadow_price || is_near && found.contains(at));
                site.hour > 0.0 && (is_worth || pages.seen_at[*at] <= selection.old)
            };
            let plainly: Vec<usize> = (0..pages.len()).filter(is_part).collect();
            prop_assert_eq!(&found, &plainly);
            let mut of_first = Vec::new();
            selection.for_each_of(&pages, |site| site == 0, |at| of_first.push(at));
            found.retain(|at| pages.site[*at] == 0);
            prop_assert_eq!(of_first, found);
        }
    }
}
