//! An archived page that tries to perform admin actions. Its script tries every way to reach the dashboard, in a
//! browser with a logged-in admin. The tests need the feature `interop`, so a machine without a browser fails them
//! loudly.

use crate::admin::{AdminServer, audit_log, settings};
use crate::browser::Viewer;
use crate::crawled::Archive;
use crate::replay_attacks::push_record;
use crate::wait::wait_for;

const PAGE: &str = "http://archived.example/acting";

/// The script of the hostile page. It tries each way with the functions of the replayed page, and with the unmodified
/// functions of a clean frame. `got` contains whatever it could read of the dashboard.
const SCRIPT: &str = r#"
window.got = []; window.n_tried = 0;
const leaving = [];
const main = 'MAIN', act = new URLSearchParams({action: 'pause', url: 'https://a.example/'});
const json = JSON.stringify({action: 'pause', url: 'https://a.example/'});
const record = (name) => (text) => { if (/name="form" value="|"n_captures"|"followed"/.test(String(text))) window.got.push(name + ': ' + text) };
const attempt = (name, way) => {
  window.n_tried += 1;
  try { Promise.resolve(way()).then(record(name), () => 0) } catch (error) {}
};
const text = (answer) => answer.text();
for (const [kind, view] of [['own', window], ['clean', document.getElementById('clean').contentWindow]]) {
  for (const credentials of ['include', 'same-origin', 'omit']) {
    for (const path of ['/sites', '/api/sites', '/api/audit', '/']) {
      attempt(`${kind} reads ${path} ${credentials}`, () => view.fetch(main + path, {credentials}).then(text));
      attempt(`${kind} reads ${path} ${credentials} unseen`, () => view.fetch(main + path, {credentials, mode: 'no-cors'}).then(text));
    }
    for (const [path, body, type] of [['/admin', act, 'application/x-www-form-urlencoded'], ['/api/admin', json, 'text/plain'],
        ['/api/admin', json, 'application/json'], ['/logout', act, 'application/x-www-form-urlencoded']])
      for (const mode of ['cors', 'no-cors'])
        attempt(`${kind} posts to ${path}`, () => view.fetch(main + path, {method: 'POST', credentials, mode, body, headers: {'Content-Type': type}}).then(text));
  }
  attempt(kind + ' asks the old way', () => new Promise((done) => {
    const request = new view.XMLHttpRequest();
    request.withCredentials = true;
    request.open('GET', main + '/sites');
    request.onload = () => done(request.responseText);
    request.send();
  }));
  attempt(kind + ' beacon', () => view.navigator.sendBeacon(main + '/admin', act));
  attempt(kind + ' window', () => { const opened = view.open(main + '/login'); return opened && opened.document.documentElement.outerHTML });
  attempt(kind + ' frame', () => new Promise((done) => {
    const frame = view.document.createElement('iframe');
    view.Element.prototype.setAttribute.call(frame, 'src', main + '/sites');
    frame.onload = () => { try { done(frame.contentDocument.documentElement.outerHTML) } catch (error) { done('') } };
    document.documentElement.append(frame);
  }));
  for (const [path, target] of [['/admin', 'hidden'], ['/login', 'hidden'], ['/logout', 'hidden'], ['/admin', '_top']])
    attempt(`${kind} form to ${path} in ${target}`, () => {
      const form = view.document.createElement('form');
      const set = (name, value) => view.Element.prototype.setAttribute.call(form, name, value);
      set('method', 'post'); set('action', main + path); set('target', target);
      for (const [name, value] of act) {
        const field = view.document.createElement('input');
        field.name = name; field.value = value;
        form.append(field);
      }
      document.documentElement.append(form);
      const submit = () => view.HTMLFormElement.prototype.submit.call(form);
      if (target == '_top') leaving.push(submit); else setTimeout(submit, 0);
    });
}
setTimeout(() => { document.title = 'done' }, 300);
// These may lead the page away, so they come when the test has read the rest.
window.leave = () => { leaving.forEach((submit) => submit()); setTimeout(() => { document.title = 'over' }, 300) };
"#;

fn warc(main: &str) -> Vec<u8> {
    let page = format!(
        "<title>trying</title><body><iframe id=clean></iframe><iframe name=hidden></iframe><script>{}</script>",
        SCRIPT.replace("MAIN", main)
    );
    let mut warc = Vec::new();
    push_record(&mut warc, PAGE, "200 OK", "Content-Type: text/html; charset=utf-8", &page);
    warc
}

/// How many ways a page tried and what it read, once its title is `so_far`. The count is 0 if the script did not run,
/// or if its own form left the page.
fn tried(viewer: &mut Viewer, is_inside: bool, so_far: &str) -> (usize, Vec<String>) {
    let report = "JSON.stringify([document.title, window.n_tried || 0, window.got || []])";
    wait_for("the end of what the page tries", || {
        let value = if is_inside { viewer.inside(report) } else { viewer.outside(report) };
        let (title, n_tried, got): (String, _, _) = serde_json::from_str(value.as_str()?).ok()?;
        (title == so_far || n_tried == 0).then_some((n_tried, got))
    })
}

/// Lets a page try everything. Returns the number of tries and what it read.
fn try_all(viewer: &mut Viewer, is_inside: bool) -> (usize, Vec<String>) {
    let (n_tried, mut got) = tried(viewer, is_inside, "done");
    if n_tried > 0 {
        let leave = "leave(); 'left'";
        if is_inside {
            viewer.inside(leave)
        } else {
            viewer.outside(leave)
        };
        got.extend(tried(viewer, is_inside, "over").1);
    }
    (n_tried, got)
}

#[test]
fn an_archived_script_cannot_act_for_a_logged_in_admin() {
    let archive = Archive::new();
    archive.ok(&["add", "https://a.example/"]);
    let served = AdminServer::of(&archive);
    let main = format!("http://{}", served.main);
    let file = archive.root.join("acting.warc");
    std::fs::write(&file, warc(&main)).unwrap();
    archive.ok(&["import", file.to_str().unwrap()]);
    let (before, actions_before) = (settings(&archive), audit_log(&archive));
    let mut viewer = Viewer::start(&[served.main.clone(), served.replay.clone()]);
    viewer.visit(&format!("{main}/login?key={}", served.key));
    viewer.outside("document.querySelector('main form button, form button').click(); 'clicked'");
    let is_admin = "document.querySelector('form[action=\"/admin\"] input[name=form]') !== null";
    viewer.until(false, "location.pathname !== '/login' && document.readyState == 'complete'");
    viewer.visit(&format!("{main}/sites"));
    viewer.until(false, is_admin);

    // In the banner's frame, as people see it, the script runs and reads nothing.
    viewer.visit(&format!("{main}/web/20260102030405/{PAGE}"));
    viewer.until(true, "document.title == 'done'");
    let (n_tried, got) = try_all(&mut viewer, true);
    assert!(n_tried > 80 && got.is_empty(), "{n_tried} {got:?}");
    // As captured and without the banner, on the dashboard's origin and on that of archived pages.
    for (origin, form) in
        [(&served.main, "id_"), (&served.main, "mp_"), (&served.replay, "id_"), (&served.replay, "mp_")]
    {
        viewer.visit(&format!("http://{origin}/web/20260102030405{form}/{PAGE}"));
        for is_inside in [false, true] {
            let (_, got) = try_all(&mut viewer, is_inside);
            assert!(got.is_empty(), "{origin} {form}: {got:?}");
        }
    }
    assert_eq!(settings(&archive), before);
    assert_eq!(audit_log(&archive), actions_before);
    // The admin remains logged in, so one button of the dashboard can do what the script could not.
    viewer.visit(&format!("{main}/sites"));
    viewer.until(false, is_admin);
    viewer.outside("document.querySelector('button[value=pause], input[name=act][value=pause]').closest('form').querySelector('button').click(); 'clicked'");
    viewer.until(false, "document.readyState == 'complete' && document.body.innerText.includes('paused')");
    assert!(settings(&archive).contains("paused = true"));
    assert_eq!(viewer.escaped(), Vec::<String>::new());
}
