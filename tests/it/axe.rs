//! axe-core looks at a page in the browser, as people with screen readers and weak eyes would: contrast, labels, landmarks, order.

use sha2::{Digest, Sha256};

use crate::browser::Viewer;

/// Its version, source and licence are in `vendor/README.md`.
const SCRIPT: &str = include_str!("vendor/axe-core/axe.min.js");

/// What axe calls serious or critical on the page that the viewer shows: the rule, and where. Captured pages within it are not ours.
pub(crate) fn grave_findings(viewer: &mut Viewer) -> Vec<String> {
    viewer.outside(&format!("{SCRIPT}; 'loaded'"));
    let found = viewer.outside(
        "axe.run(document, {resultTypes: ['violations'], iframes: false}).then(({violations, passes}) => JSON.stringify(
           [passes.length, violations.filter(({impact}) => impact == 'serious' || impact == 'critical').flatMap(({id, nodes}) =>
             nodes.map(({html, failureSummary}) => id + ': ' + html.slice(0, 200) + ' ' + failureSummary.slice(0, 300)))]))",
    );
    let read = serde_json::from_str::<(usize, Vec<String>)>(found.as_str().unwrap_or_default());
    let (n_passed, found) = read.unwrap_or_else(|_| panic!("axe said {found}"));
    assert!(n_passed > 0, "axe looked at nothing");
    found
}

#[test]
fn the_vendored_script_is_the_one_that_is_named() {
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(SCRIPT));
    assert!(include_str!("vendor/README.md").contains(&digest), "{digest}");
}
