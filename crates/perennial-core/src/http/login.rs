//! A login as recorded with the developer tools of a browser (Recorder, exported as JSON) -> steps to repeat.

use serde_json::Value;

/// Steps of one recording.
const MAX_STEPS: usize = 200;

/// One step of a login. Texts are secret.
#[derive(Clone, PartialEq, Eq)]
pub enum LoginStep {
    Open(String),
    Type {
        selector: String,
        text: String,
    },
    Click {
        selector: String,
    },
    /// Waits for an element.
    Wait {
        selector: String,
    },
}

impl std::fmt::Debug for LoginStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoginStep::Open(url) => write!(f, "open {url}"),
            LoginStep::Type { selector, .. } => write!(f, "type into {selector}"),
            LoginStep::Click { selector } => write!(f, "click {selector}"),
            LoginStep::Wait { selector } => write!(f, "wait for {selector}"),
        }
    }
}

/// Reads a recording. Steps without an effect on a login, such as the size of the window, are left out. An error does not
/// quote the recording, which is secret.
pub fn parse_recording(json: &str) -> Result<Vec<LoginStep>, String> {
    let recording: Value =
        serde_json::from_str(json).map_err(|error| format!("line {}: it is not JSON", error.line()))?;
    let steps = recording["steps"].as_array().ok_or("it has no `steps`")?;
    if steps.len() > MAX_STEPS {
        return Err(format!("it has more than {MAX_STEPS} steps"));
    }
    let mut found = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let selector = || {
            let alternatives = step["selectors"].as_array().into_iter().flatten();
            let plain = alternatives.filter_map(css_selector).next();
            plain.ok_or_else(|| {
                format!("step {}: it has no CSS selector; record it with CSS selectors", at + 1)
            })
        };
        let text = |key: &str| {
            let text = step[key].as_str().map(str::to_string);
            text.ok_or_else(|| format!("step {}: `{key}` is missing", at + 1))
        };
        match step["type"].as_str().unwrap_or_default() {
            "navigate" => found.push(LoginStep::Open(text("url")?)),
            "change" => found.push(LoginStep::Type { selector: selector()?, text: text("value")? }),
            "click" | "doubleClick" => found.push(LoginStep::Click { selector: selector()? }),
            "waitForElement" => found.push(LoginStep::Wait { selector: selector()? }),
            "setViewport"
            | "keyDown"
            | "keyUp"
            | "hover"
            | "scroll"
            | "emulateNetworkConditions"
            | "close" => {}
            other => {
                let known = "navigate, change, click and waitForElement are repeated";
                return Err(format!("step {}: unknown type {}; {known}", at + 1, other.escape_debug()));
            }
        }
    }
    match found.first() {
        Some(LoginStep::Open(_)) => Ok(found),
        _ => Err("its first step does not open a page".to_string()),
    }
}

/// A selector of one element without shadow roots. The recorder writes several kinds.
fn css_selector(alternative: &Value) -> Option<String> {
    let parts: Vec<&str> = match alternative {
        Value::String(selector) => vec![selector],
        Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let &[selector] = &parts[..] else { return None };
    let is_other = ["aria/", "xpath/", "text/", "pierce/"].iter().any(|kind| selector.starts_with(kind));
    (!is_other && !selector.is_empty()).then(|| selector.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_read() {
        let json = r##"{"title": "log in", "steps": [
            {"type": "setViewport", "width": 1200},
            {"type": "navigate", "url": "https://a.example/login"},
            {"type": "change", "value": "s3cret", "selectors": [["aria/Password"], ["#password"], ["xpath///*[@id=\"password\"]"]]},
            {"type": "click", "selectors": ["button"]},
            {"type": "waitForElement", "selectors": [[".shadow", "a"], ["#out"]]}]}"##;
        let steps = parse_recording(json).unwrap();
        let selector = |selector: &str| selector.to_string();
        assert_eq!(
            steps,
            [
                LoginStep::Open("https://a.example/login".into()),
                LoginStep::Type { selector: selector("#password"), text: "s3cret".into() },
                LoginStep::Click { selector: selector("button") },
                LoginStep::Wait { selector: selector("#out") },
            ]
        );
        assert!(!format!("{steps:?}").contains("s3cret"));
    }

    #[test]
    fn errors_name_the_step_and_no_secret() {
        for (json, expected) in [
            ("{\"steps\": s3cret}", "line 1"),
            ("{}", "no `steps`"),
            (r#"{"steps": [{"type": "click", "selectors": ["a"]}]}"#, "does not open"),
            (
                r#"{"steps": [{"type": "navigate", "url": "x"}, {"type": "change", "value": "s3cret"}]}"#,
                "step 2",
            ),
            (r#"{"steps": [{"type": "customStep"}]}"#, "unknown type customStep"),
        ] {
            let error = parse_recording(json).unwrap_err();
            assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
        }
    }
}
