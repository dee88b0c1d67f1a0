//! Acts in a page before its capture as a reader would: dismisses dialogs, plays media, opens more content, scrolls.
//!
//! Each step runs a script of ours once. Then virtual time passes, but not while requests are pending. Each step
//! therefore begins on an idle page. Steps, time and requests are bounded, and the page cannot navigate away.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cdp::BrowserError;
use crate::chromium::{BrowserPage, BrowserTab, LoadEnd, RequestHandler};

const SCRIPT: &str = include_str!("behaviors.js");
/// Steps of one page.
const MAX_STEPS: usize = 60;
/// Steps without an effect after which a page is done. Content may arrive late.
const MAX_IDLE_STEPS: usize = 2;
/// Virtual time after each step.
const STEP: Duration = Duration::from_millis(1000);
/// Clicks that open more content.
const MAX_OPENED: usize = 20;
const MAX_ACTIONS: usize = 100;
const MAX_ACTION_CHARS: usize = 200;

/// Classes and ids of a page -> selectors.
pub type FindAnnoyances<'a> = dyn Fn(&[String], &[String]) -> Vec<String> + 'a;

/// The actions of a reader in a page.
pub struct Behaviors<'a> {
    /// `dismiss`, `autoplay`, `load-more`, `autoscroll`.
    pub kinds: &'a [&'a str],
    /// Limit for all steps of a page.
    pub time: Duration,
    /// The selectors of annoyances on a page with these classes and ids.
    pub annoyances: &'a FindAnnoyances<'a>,
}

impl BrowserTab<'_> {
    /// Acts in a loaded page. Returns what was done, in words.
    pub(crate) fn behave(
        &mut self,
        page: &BrowserPage<'_>,
        answers: &RequestHandler,
        behaviors: &Behaviors<'_>,
    ) -> Result<Vec<String>, BrowserError> {
        let end = Instant::now() + behaviors.time;
        let (mut actions, mut selectors) = (Vec::new(), Vec::new());
        let (mut n_screens, mut n_idle) = (0, 0);
        self.is_held = true;
        let world = self.isolated_world()?;
        for step in 0..MAX_STEPS {
            let given = json!({"kinds": behaviors.kinds, "selectors": selectors, "max_opened": MAX_OPENED});
            let Some(done) = self.evaluate_in(world, &format!("({SCRIPT})({given})"))? else { break };
            let new: Vec<String> = texts(&done["actions"]);
            let has_scrolled = done["has_scrolled"] == true;
            n_screens += usize::from(has_scrolled);
            n_idle = if new.is_empty() && !has_scrolled { n_idle + 1 } else { 0 };
            actions.extend(new);
            let found = (behaviors.annoyances)(&texts(&done["classes"]), &texts(&done["ids"]));
            let is_news = step == 0 && !found.is_empty();
            selectors = found;
            if n_idle >= MAX_IDLE_STEPS && !is_news || Instant::now() >= end || actions.len() >= MAX_ACTIONS {
                break;
            }
            self.draw()?;
            self.grant(STEP)?;
            if self.pump(page, answers, false)? != LoadEnd::Whole {
                break;
            }
        }
        if n_screens > 0 {
            actions.push(format!("autoscroll: {n_screens} screens"));
        }
        Ok(actions.iter().take(MAX_ACTIONS).map(|action| one_line(action)).collect())
    }
}

impl BrowserTab<'_> {
    /// Makes the browser draw, without which it reports neither scrolling nor what has come into view.
    fn draw(&mut self) -> Result<(), BrowserError> {
        let session = self.session.clone();
        let clip = json!({"x": 0, "y": 0, "width": 1, "height": 1, "scale": 1});
        self.post(&session, "Page.captureScreenshot", json!({"format": "jpeg", "clip": clip}))
    }
}

fn texts(values: &Value) -> Vec<String> {
    values.as_array().into_iter().flatten().filter_map(|value| Some(value.as_str()?.to_string())).collect()
}

/// Words of a page in a log and in a record must not contain line ends.
fn one_line(action: &str) -> String {
    action.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_ACTION_CHARS).collect()
}
