//! Prices -> the pages that a picture of their site would show now.
//!
//! Every page is asked in every slot that may take a picture, so the question is put to many pages at once, without branches.

use super::pages::Pages;
use super::sites::omega_from;
use crate::pattern::mixture::one_minus_exp;

/// A page that has changed with a lower probability than 5 % is left out of a picture: it still shows what the last picture
/// shows. This is the number of changes, -ln(1 - 0.05).
const LEAST_LOAD: f32 = 0.051_293_3;
/// Pages that are looked at together.
const RUN: usize = 32;
/// Pages that are worked on at a time, so that intermediate results stay in the nearest cache.
const CHUNK: usize = 512;

/// Which pages would be part of a picture now.
pub(super) struct Posing {
    pub(super) price: f32,
    /// By site: what it costs an hour that a page of weight 1 is torn, which is 0 where no pictures are taken, and the usual hours between two
    /// pictures.
    pub(super) sites: Vec<TornSite>,
    /// The end of the slot.
    pub(super) now: u32,
    /// Pages that were not seen since then are part of every picture.
    pub(super) old: u32,
}

/// See [`Posing::sites`].
#[derive(Clone, Copy, Default)]
pub(super) struct TornSite {
    pub(super) hour: f32,
    pub(super) gap_hours: f32,
}

/// What a page of weight 1 that pictures have left out is torn, at the price of an hour. If it has changed once since it was seen, its
/// archived version does not belong to what was seen of other pages meanwhile. If it has changed often, being seen sooner would help
/// little: some other version of it would be missed.
#[inline]
fn overdue(site: TornSite, age_hours: f32, load: f32) -> f32 {
    site.hour * (age_hours - site.gap_hours).max(0.0) * load * (1.0 - one_minus_exp(load))
}

impl Posing {
    /// What a page gains for the picture of its site because it was not seen for longer than pictures usually are apart.
    pub(super) fn overdue(&self, pages: &Pages, at: usize) -> f32 {
        let site = self.sites.get(pages.site[at] as usize).copied().unwrap_or_default();
        let omega = omega_from(((&pages.weight[at], &pages.importance[at]), &pages.picture[at]));
        omega * overdue(site, self.age_hours(pages.seen_at[at]), pages.load[at])
    }

    #[inline]
    fn age_hours(&self, seen_at: u32) -> f32 {
        self.now.saturating_sub(seen_at) as f32 / 3600.0
    }

    /// Calls `each` with the pages that have probably changed and are worth it, and with those that were not seen for long.
    pub(super) fn for_each(&self, pages: &Pages, mut each: impl FnMut(usize)) {
        let mut poses = [0u32; CHUNK];
        for start in (0..pages.len()).step_by(CHUNK) {
            let range = start..(start + CHUNK).min(pages.len());
            let poses = &mut poses[..range.len()];
            self.judge(pages, range, poses);
            // Most runs have no such page, and that is found without a branch for each page.
            for (run, poses) in poses.chunks(RUN).enumerate() {
                if poses.iter().sum::<u32>() > 0 {
                    let posing = poses.iter().enumerate().filter(|(_, poses)| **poses != 0);
                    posing.for_each(|(place, _)| each(start + run * RUN + place));
                }
            }
        }
    }

    /// The same for pages of a few sites.
    pub(super) fn for_each_of(
        &self,
        pages: &Pages,
        is_wanted: impl Fn(u32) -> bool,
        mut each: impl FnMut(usize),
    ) {
        for (at, _) in pages.site.iter().enumerate().filter(|(_, site)| is_wanted(**site)) {
            let mut poses = [0];
            self.judge(pages, at..at + 1, &mut poses);
            if poses != [0] {
                each(at);
            }
        }
    }

    /// Sets `poses` to 1 for the pages of a range that would be part of a picture, else to 0. Loops without branches, which the
    /// compiler turns into vector instructions.
    fn judge(&self, pages: &Pages, range: std::ops::Range<usize>, poses: &mut [u32]) {
        let (mut sites, mut gain) = ([TornSite::default(); CHUNK], [0.0f32; CHUNK]);
        let (sites, gain) = (&mut sites[..range.len()], &mut gain[..range.len()]);
        for (known, site) in sites.iter_mut().zip(&pages.site[range.clone()]) {
            *known = self.sites.get(*site as usize).copied().unwrap_or_default();
        }
        let loads = &pages.load[range.clone()];
        let seen_at = &pages.seen_at[range.clone()];
        let omega = pages.weight[range.clone()].iter().zip(&pages.importance[range.clone()]);
        let omega = omega.zip(&pages.picture[range.clone()]);
        for ((((gain, site), load), omega), seen_at) in
            gain.iter_mut().zip(&*sites).zip(loads).zip(omega).zip(seen_at)
        {
            let until_next = site.hour * site.gap_hours * one_minus_exp(*load);
            *gain = omega_from(omega) * (until_next + overdue(*site, self.age_hours(*seen_at), *load));
        }
        let known = pages.urgency[range.clone()].iter().zip(loads).zip(seen_at);
        for (((poses, site), gain), ((urgency, load), seen_at)) in
            poses.iter_mut().zip(&*sites).zip(&*gain).zip(known)
        {
            let is_worth = u32::from(*load >= LEAST_LOAD) & u32::from(urgency + gain >= self.price);
            *poses = (is_worth | u32::from(*seen_at <= self.old)) & u32::from(site.hour > 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::url::PageId;

    const NOW: u32 = 1_000 * 3600;

    fn posing(price: f32) -> Posing {
        let site = |hour, gap_hours| TornSite { hour, gap_hours };
        Posing {
            price,
            sites: vec![site(0.1, 10.0), site(0.0, 5.0), site(0.02, 30.0)],
            now: NOW,
            old: NOW - 168 * 3600,
        }
    }

    /// Pages by site, hours since they were seen, changes since then, gain.
    fn pages(all: &[(u32, u32, f32, f32)]) -> Pages {
        let mut pages = Pages::default();
        for (number, (site, age, load, urgency)) in (0..).zip(all) {
            let (at, _) = pages.insert(PageId(number));
            (pages.site[at], pages.seen_at[at]) = (*site, NOW - age * 3600);
            (pages.load[at], pages.urgency[at]) = (*load, *urgency);
            (pages.weight[at], pages.importance[at], pages.picture[at]) =
                (2.0, 0.25, crate::schedule::pages::CHANGED);
        }
        pages
    }

    #[test]
    fn a_page_that_pictures_left_out_is_worth_more_the_longer_it_was_not_seen() {
        let overdue = |age, load| posing(1.0).overdue(&pages(&[(0, age, load, 0.0)]), 0);
        assert_eq!([overdue(3, 0.5), overdue(10, 0.5)], [0.0; 2]);
        assert!(overdue(40, 0.5) > 1.9 * overdue(25, 0.5));
        // With many changes since it was seen it is torn whenever it is seen.
        assert!(overdue(40, 8.0) < 0.01 * overdue(40, 1.0));
        // No picture is taken of the second site.
        assert_eq!(posing(1.0).overdue(&pages(&[(1, 40, 0.5, 0.0)]), 0), 0.0);
    }

    proptest! {
        #[test]
        fn many_pages_are_judged_as_each_alone(
            all in prop::collection::vec((0u32..4, 0u32..200, 0.0f32..3.0, 0.0f32..1.0), 0..1200),
            price in 0.0f32..1.0,
        ) {
            let (posing, pages) = (posing(price), pages(&all));
            let mut found = Vec::new();
            posing.for_each(&pages, |at| found.push(at));
            let is_part = |at: &usize| {
                let Some(site) = posing.sites.get(pages.site[*at] as usize) else { return false };
                let torn = site.hour * 0.5 * site.gap_hours * one_minus_exp(pages.load[*at]);
                let worth = pages.urgency[*at] + torn + posing.overdue(&pages, *at);
                let is_near = (worth - price).abs() < 1e-4;
                let is_worth = pages.load[*at] >= LEAST_LOAD && (worth >= price || is_near && found.contains(at));
                site.hour > 0.0 && (is_worth || pages.seen_at[*at] <= posing.old)
            };
            let plainly: Vec<usize> = (0..pages.len()).filter(is_part).collect();
            prop_assert_eq!(&found, &plainly);
            let mut of_first = Vec::new();
            posing.for_each_of(&pages, |site| site == 0, |at| of_first.push(at));
            found.retain(|at| pages.site[*at] == 0);
            prop_assert_eq!(of_first, found);
        }
    }
}
