//! Any bytes as a history of a site are read or rejected without a panic. Rules can be mined from the result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_lab::rules::{PageRanking, Protocol, SkipPlan, evaluate_plan, parse_history};

fuzz_target!(|data: &[u8]| {
    let Ok(history) = parse_history("site", data) else { return };
    let protocol = Protocol { train: 3, windows: 3, ..Protocol::default() };
    for plan in [SkipPlan::NearTuned, SkipPlan::Static, SkipPlan::Ranked(PageRanking::Combined), SkipPlan::Oracle] {
        let outcome = evaluate_plan(&history, &protocol, plan);
        assert!((0.0..=1.0).contains(&outcome.mean.change_recall));
        assert!((0.0..=1.0).contains(&outcome.mean.bypass));
    }
});
