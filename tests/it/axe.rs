//! axe-core checks a page in the browser for accessibility: contrast, labels, landmarks, order.

use sha2::{Digest, Sha256};

use crate::browser::Viewer;

/// `vendor/README.md` contains its version, source and licence.
const SCRIPT: &str = include_str!("vendor/axe-core/axe.min.js");

/// The serious and critical findings of axe on the displayed page: rule and element. Captured pages in frames are
/// excluded because we did not write them.
pub(crate) fn grave_findings(viewer: &mut Viewer) -> Vec<String> {
    viewer.outside(&format!("{SCRIPT}; 'loaded'"));
    let found = viewer.outside(
        "axe.run(document, {resultTypes: ['violations'], iframes: false}).then(({violations, passes}) => JSON.stringify(
           [passes.length, violations.filter(({impact}) => impact == 'serious' || impact == 'critical').flatMap(({id, nodes}) =>
             nodes.map(({html, failureSummary}) => id + ': ' + html.slice(0, 200) + ' ' + failureSummary.slice(0, 300)))]))",
    );
    let read = serde_json::from_str::<(usize, Vec<String>)>(found.as_str().unwrap_or_default());
    let (n_passed, found) = read.unwrap_or_else(|_| panic!("axe found {found}"));
    assert!(n_passed > 0, "axe looked at nothing");
    found
}

#[test]
fn the_vendored_script_is_the_one_that_is_named() {
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(SCRIPT));
    assert!(include_str!("vendor/README.md").contains(&digest), "{digest}");
}
