//! axe-core looks at a page in the browser, as people with screen readers and weak eyes would: contrast, labels, landmarks, order.
//!
//! It is fetched from npm by the first test that needs it (`target/interop-npm`), as the Python tools are from PyPI.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::viewer::Viewer;

const PACKAGE: &str = "axe-core@4.14.0";

/// The text of the script.
fn script() -> &'static str {
    static SCRIPT: OnceLock<String> = OnceLock::new();
    SCRIPT.get_or_init(|| fetch().unwrap_or_else(|why| panic!("{why}")))
}

fn fetch() -> Result<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/interop-npm").join(PACKAGE);
    let file = folder.join("axe.min.js");
    if let Ok(text) = fs::read_to_string(&file) {
        return Ok(text);
    }
    let cure = "install npm and tar, allow npm to reach its registry, or run without --features interop";
    let run = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(format!("{command:?} failed: {}\n{cure}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("{command:?} failed: {error}\n{cure}")),
    };
    // In a folder of its own, so that a test that is killed meanwhile leaves nothing half done behind.
    let fetched = tempfile::tempdir().map_err(|error| error.to_string())?;
    let name = run(Command::new("npm").args(["pack", "--silent", PACKAGE]).current_dir(fetched.path()))?;
    let name = String::from_utf8_lossy(&name);
    let name = name.lines().last().unwrap_or_default().trim();
    run(Command::new("tar").args(["xzf", name]).current_dir(fetched.path()))?;
    let text = fs::read_to_string(fetched.path().join("package/axe.min.js"));
    let text = text.map_err(|error| format!("{PACKAGE}: {error}"))?;
    let kept = fs::create_dir_all(&folder).and_then(|()| {
        let part = folder.join(format!("axe.{}.part", std::process::id()));
        fs::write(&part, &text)?;
        fs::rename(part, &file)
    });
    kept.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(text)
}

/// What axe calls serious or critical on the page that the viewer shows: the rule, and where. Captured pages within it are not ours.
pub(crate) fn grave_findings(viewer: &mut Viewer) -> Vec<String> {
    viewer.outside(&format!("{}; 'loaded'", script()));
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
