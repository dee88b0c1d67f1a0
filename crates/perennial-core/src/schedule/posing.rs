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
    /// By site: what it costs that a page of weight 1 is torn until the next picture; 0 where no pictures are taken.
    pub(super) torn: Vec<f32>,
    /// Pages that were not seen since then are part of every picture.
    pub(super) old: u32,
}

impl Posing {
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
        let (mut torn, mut gain) = ([0.0f32; CHUNK], [0.0f32; CHUNK]);
        let (torn, gain) = (&mut torn[..range.len()], &mut gain[..range.len()]);
        for (torn, site) in torn.iter_mut().zip(&pages.site[range.clone()]) {
            *torn = self.torn.get(*site as usize).copied().unwrap_or(0.0);
        }
        let loads = &pages.load[range.clone()];
        let omega = pages.weight[range.clone()].iter().zip(&pages.importance[range.clone()]);
        let omega = omega.zip(&pages.picture[range.clone()]);
        for (((gain, torn), load), omega) in gain.iter_mut().zip(&*torn).zip(loads).zip(omega) {
            *gain = torn * omega_from(omega) * one_minus_exp(*load);
        }
        let known = pages.urgency[range.clone()].iter().zip(loads).zip(&pages.seen_at[range]);
        for (((poses, torn), gain), ((urgency, load), seen_at)) in
            poses.iter_mut().zip(&*torn).zip(&*gain).zip(known)
        {
            let is_worth = u32::from(*load >= LEAST_LOAD) & u32::from(urgency + gain >= self.price);
            *poses = (is_worth | u32::from(*seen_at <= self.old)) & u32::from(*torn > 0.0);
        }
    }
}
