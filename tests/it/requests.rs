//! Requests of the snapshots: every page of the server with its parameters, and requests that fail.

/// Pages of the dashboard. [`api_of`] gives the path of the same page as JSON.
pub(crate) const DASHBOARD: &[(&str, &str)] = &[
    ("home", "/"),
    ("home-week", "/?since=7d&least=0.01&order=importance"),
    ("home-site", "/?since=7d&least=0&site=press.localhost"),
    ("home-nothing", "/?site=nowhere.example"),
    ("home-wrong", "/?least=7"),
    ("changes", "/changes"),
    ("changes-noise", "/changes?noise=1&order=oldest&limit=12"),
    ("changes-importance", "/changes?order=importance&limit=5&kind=retitled"),
    ("changes-op", "/changes?op=update&least=0.01&appears=fifty"),
    (
        "changes-page",
        "/changes?page=http%3A%2F%2Ftown.localhost%2Flimits&kind=edited&since=2026-01-01&until=2026-01-03",
    ),
    ("changes-hostile", "/changes?text=%3Cscript%3E%22%27&site=%3Cscript%3E%22%27"),
    ("changes-wrong", "/changes?selector=%3Cscript%3E%22%27"),
    ("sites", "/sites"),
    ("site", "/site/town.localhost"),
    ("site-order", "/site/town.localhost?order=captures"),
    ("site-paused", "/site/press.localhost"),
    ("site-failing", "/site/fails.localhost"),
    ("site-imported", "/site/old.example"),
    ("site-unknown", "/site/nowhere.example%3Cb%3E"),
    ("page-listing", "/page?url=http%3A%2F%2Ftown.localhost%2F"),
    ("page-limits", "/page?url=http%3A%2F%2Ftown.localhost%2Flimits"),
    ("page-limits-all", "/page?url=http%3A%2F%2Ftown.localhost%2Flimits&show=all&until=2026010118"),
    ("page-article", "/page?url=http%3A%2F%2Ftown.localhost%2Ftown%2F1"),
    (
        "page-hostile",
        "/page?url=http%3A%2F%2Ftown.localhost%2Fit%27s%3Fa%3D1%26b%3D%2522%253E%253Cscript%253E",
    ),
    ("page-vanished", "/page?url=http%3A%2F%2Ftown.localhost%2Fgone"),
    ("page-returned", "/page?url=http%3A%2F%2Ftown.localhost%2Fback"),
    ("page-redirected", "/page?url=http%3A%2F%2Ftown.localhost%2Fmoved"),
    ("page-noise", "/page?url=http%3A%2F%2Ftown.localhost%2Fclock"),
    ("page-imported", "/page?url=http%3A%2F%2Fold.example%2F"),
    ("page-unknown", "/page?url=http%3A%2F%2Fnowhere.example%2F%3Cb%3E%22%27"),
    ("page-none", "/page"),
    ("schedule", "/plan"),
    ("schedule-site", "/plan?site=press.localhost"),
    ("schedule-why", "/plan?url=http%3A%2F%2Ftown.localhost%2Flimits"),
    ("schedule-why-paused", "/plan?url=http%3A%2F%2Fpress.localhost%2Fweekly"),
    ("schedule-why-failing", "/plan?url=http%3A%2F%2Ffails.localhost%2F"),
    ("schedule-why-imported", "/plan?url=http%3A%2F%2Fold.example%2F"),
    ("schedule-why-feed", "/plan?url=http%3A%2F%2Ftown.localhost%2Ffeed.xml"),
    ("schedule-why-unknown", "/plan?url=http%3A%2F%2Fnowhere.example%2F%3Cb%3E%22%27"),
    ("search", "/search?q=kilometres"),
    ("search-form", "/search"),
    ("search-phrase", "/search?q=must+not+drive&phrase=1&site=town.localhost&from=2026-01-01&to=2026-01-02"),
    ("search-vanished", "/search?q=river&vanished=1"),
    ("search-important", "/search?q=kilometres&important=1"),
    ("search-hostile", "/search?q=%3Cscript%3E+%22%27&site=%22%3E%3Cb%3E&from=%3Cb%3E"),
    ("search-wrong", "/search?q=-river"),
    ("terms", "/terms?since=2026-01-01T12:00:00Z"),
    ("terms-site", "/terms?since=2026-01-01T12:00:00Z&site=town.localhost"),
    ("terms-wrong", "/terms?since=%3Cb%3E"),
    ("articles", "/articles"),
    ("articles-site", "/articles?site=town.localhost&skip=1"),
    ("articles-wrong", "/articles?skip=x"),
    ("article", "/article?url=http%3A%2F%2Ftown.localhost%2Ftown%2F1"),
    ("article-hostile", "/article?url=http%3A%2F%2Ftown.localhost%2Ftown%2F3"),
    ("article-unknown", "/article?url=https://nowhere.example/"),
    ("article-none", "/article"),
    ("notices", "/notices"),
    (
        "notices-page",
        "/notices?place=http%3A%2F%2Ftown.localhost%2Fit%27s%3Fa%3D1%26b%3D%2522%253E%253Cscript%253E&least=0.2",
    ),
    ("notices-site", "/notices?place=town.localhost"),
    ("notices-wrong", "/notices?least=7"),
    ("pin", "/pin?url=http%3A%2F%2Ftown.localhost%2Flimits&selector=%23limit&importance=0.6"),
    ("pin-ignore", "/pin?url=http%3A%2F%2Ftown.localhost%2F&selector=h1&act=ignore"),
    ("pin-form", "/pin?url=http%3A%2F%2Ftown.localhost%2Flimits"),
    ("pin-wrong", "/pin?url=http%3A%2F%2Ftown.localhost%2F&selector=%3Cb%3E%22%27"),
    ("pin-none", "/pin"),
    ("acts", "/audit"),
];

/// The path of a page's JSON.
pub(crate) fn api_of(path: &str) -> String {
    let (name, query) = path.split_once('?').unwrap_or((path, ""));
    let (name, query) = match (name, name.strip_prefix("/site/")) {
        (_, Some(host)) => ("/site", format!("host={host}&{query}")),
        ("/", None) => ("/home", query.to_string()),
        _ => (name, query.to_string()),
    };
    match query.trim_end_matches('&') {
        "" => format!("/api{name}"),
        query => format!("/api{name}?{query}"),
    }
}

/// Paths outside the dashboard: calendars, comparisons, replay with its banner, feeds, Memento, CDX, errors.
pub(crate) const SERVER: &[(&str, &str)] = &[
    ("api-openapi", "/api/openapi.json"),
    ("api-diff", "/api/diff?before=20260101120000&after=20260102&url=http%3A%2F%2Ftown.localhost%2Flimits"),
    ("api-diff-wrong", "/api/diff"),
    ("api-wrong", "/api/nowhere"),
    ("former-schedule", "/schedule?site=press.localhost"),
    ("former-objects", "/objects"),
    ("former-object", "/object?url=http%3A%2F%2Ftown.localhost%2Ftown%2F1"),
    ("former-acts", "/acts"),
    ("former-api-schedule", "/api/schedule?site=press.localhost"),
    ("former-api-objects", "/api/objects"),
    ("former-api-object", "/api/object?url=http%3A%2F%2Ftown.localhost%2Ftown%2F1"),
    ("former-api-acts", "/api/acts"),
    ("page-in-path", "/page/http://town.localhost/it's?a=1&b=%22%3E%3Cscript%3E"),
    ("calendar", "/calendar"),
    ("calendar-page", "/web/*/http://town.localhost/limits"),
    ("calendar-year", "/web/2026*/http://town.localhost/limits"),
    ("calendar-day", "/web/20260102*/http://town.localhost/limits"),
    ("calendar-prefix", "/web/*/http://town.localhost/*"),
    ("calendar-search", "/web/?url=http%3A%2F%2Ftown.localhost%2Flimits"),
    ("calendar-unknown", "/web/*/http://nowhere.example/%3Cb%3E"),
    ("diff", "/web/diff/20260101120000/20260102000000/http://town.localhost/limits"),
    ("diff-listing", "/web/diff/20260101/20260103/http://town.localhost/"),
    ("diff-hostile", "/web/diff/20260101/20260103/http://town.localhost/it's?a=1&b=%22%3E%3Cscript%3E"),
    ("diff-last", "/web/changes/http://town.localhost/limits"),
    (
        "diff-closest",
        "/web/changes?url=http%3A%2F%2Ftown.localhost%2Flimits&before=1767225600&after=1767312000",
    ),
    ("diff-wrong", "/web/diff/x/2026/http://a.example/"),
    ("diff-nothing", "/web/diff/2024/2025/http://town.localhost/limits"),
    ("banner", "/web/20260101000000/http://town.localhost/"),
    ("banner-hostile", "/web/20260101000000/http://town.localhost/it's?a=1&b=%22%3E%3Cscript%3E"),
    ("banner-time", "/web/20260102/http://town.localhost/limits"),
    ("banner-vanished", "/web/20260103/http://town.localhost/gone"),
    ("own-banner", "/_perennial/banner?archive=archive&url=http%3A%2F%2Ftown.localhost%2F&at=20260102000000"),
    (
        "own-block",
        "/_perennial/block?archive=archive&url=http%3A%2F%2Ftown.localhost%2Flimits&at=20260102000000&text=Cars+on+the+ring+road+must+not+drive+faster+than+fifty+kilometres+an+hour",
    ),
    ("own-css", "/_perennial/banner.css"),
    ("own-script", "/_perennial/banner.js"),
    ("own-icon", "/_perennial/icon.svg"),
    ("replay", "/web/20260101000000mp_/http://town.localhost/"),
    ("replay-style", "/web/20260101000000cs_/http://town.localhost/style.css"),
    ("replay-unknown", "/web/2026/http://nowhere.example/%3Cb%3E"),
    ("replay-wrong", "/web/"),
    ("timegate", "/web/http://town.localhost/limits"),
    ("atom", "/changes.atom"),
    ("atom-page", "/changes.atom?place=http%3A%2F%2Ftown.localhost%2Flimits&least=0.01"),
    ("atom-wrong", "/changes.atom?kind=%3Cb%3E"),
    ("timemap-link", "/web/timemap/link/http://town.localhost/limits"),
    ("timemap-json", "/web/timemap/json/http://town.localhost/limits"),
    ("timemap-cdxj", "/web/timemap/cdxj/http://town.localhost/limits"),
    ("timemap-cdx", "/web/timemap/cdx/http://town.localhost/limits"),
    ("cdx", "/cdx?url=http://town.localhost/limits"),
    ("cdx-json", "/cdx?url=http://town.localhost/*&output=json&limit=5"),
    ("cdx-wayback", "/cdx/search/cdx?url=http://town.localhost/limits"),
    (
        "cdx-wayback-json",
        "/cdx/search/cdx?url=town.localhost&matchType=host&output=json&fl=timestamp,original,statuscode&limit=5",
    ),
    ("cdx-wrong", "/cdx"),
    ("available", "/wayback/available?url=http://town.localhost/limits&timestamp=20260102"),
    ("available-none", "/wayback/available?url=http://nowhere.example/"),
    ("record-wrong", "/record/nowhere"),
    ("wacz", "/wacz/limits.wacz?url=http%3A%2F%2Ftown.localhost%2Flimits"),
    ("wacz-wrong", "/wacz/limits.wacz"),
    ("status", "/status"),
    ("healthz", "/healthz"),
    ("metrics", "/metrics"),
    ("unknown", "/nowhere%3Cb%3E"),
];

/// Pages of an archive without captures.
pub(crate) const EMPTY: &[&str] = &[
    "/",
    "/changes",
    "/sites",
    "/plan",
    "/search?q=word",
    "/terms?since=2026-01-01",
    "/articles",
    "/notices",
    "/audit",
];

/// Pages with admin forms.
pub(crate) const OPERATED: &[(&str, &str)] = &[
    ("home", "/"),
    ("sites", "/sites"),
    ("site", "/site/town.localhost"),
    ("site-paused", "/site/press.localhost"),
    ("site-failing", "/site/fails.localhost"),
    ("site-imported", "/site/old.example"),
    ("page", "/page?url=http%3A%2F%2Ftown.localhost%2Flimits"),
    (
        "page-hostile",
        "/page?url=http%3A%2F%2Ftown.localhost%2Fit%27s%3Fa%3D1%26b%3D%2522%253E%253Cscript%253E",
    ),
    ("schedule", "/plan?url=http%3A%2F%2Ftown.localhost%2Flimits"),
    ("pin", "/pin?url=http%3A%2F%2Ftown.localhost%2Flimits&selector=%23limit"),
    ("pin-ignore", "/pin?url=http%3A%2F%2Ftown.localhost%2Flimits&selector=h1&act=ignore"),
    ("acts", "/audit"),
    ("notices", "/notices"),
    ("calendar", "/calendar"),
];

/// Admin actions as JSON, in this order.
pub(crate) const ADMIN_ACTIONS: &[(&str, &str)] = &[
    ("act-pause", r#"{"act":"pause","url":"town.localhost"}"#),
    ("act-resume", r#"{"act":"resume","url":"http://town.localhost/"}"#),
    (
        "act-set",
        r#"{"act":"set","url":"town.localhost","weight":3,"budget":"5/1h","bytes_per_day":"10MB","goal":"coherent"}"#,
    ),
    ("act-set-usual", r#"{"act":"set","url":"town.localhost","budget":null,"goal":""}"#),
    ("act-pin", r##"{"act":"pin","url":"town.localhost","selector":"#odd","importance":0.5}"##),
    ("act-ignore", r#"{"act":"ignore","url":"town.localhost","selector":"nav"}"#),
    ("act-release", r#"{"act":"release","url":"town.localhost","selector":"nav"}"#),
    ("act-retry", r#"{"act":"retry","url":"http://town.localhost/limits"}"#),
    ("act-add", r#"{"act":"add","url":"http://new.example/","scope":"page","weight":2}"#),
    ("act-remove", r#"{"act":"remove","url":"http://new.example/"}"#),
    ("act-remove-unknown", r#"{"act":"remove","url":"http://nowhere.example/<b>"}"#),
    ("act-unknown", r#"{"act":"<b>","url":"town.localhost"}"#),
    ("act-incomplete", r#"{"act":"pause"}"#),
    ("act-field", r#"{"act":"pause","url":"town.localhost","allow_private":"true"}"#),
    ("act-no-json", "act=pause"),
];

/// The part of a path that selects the handler.
pub(crate) fn route_of(path: &str) -> String {
    let path = path.split(['?', '#', ' ']).next().unwrap_or_default();
    // If a server has several archives, a path begins with the archive's name.
    let path = ["/archive", "/second"].iter().find_map(|name| path.strip_prefix(name)).unwrap_or(path);
    let mut parts = path.trim_start_matches('/').split('/');
    match (parts.next().unwrap_or_default(), parts.next()) {
        ("web", Some(time)) if time.contains('*') => "/web/*".to_string(),
        ("web", Some(time)) if time.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("/web/{}", time.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        (first @ ("web" | "api" | "_perennial"), Some(second)) => format!("/{first}/{second}"),
        (first, _) => format!("/{first}"),
    }
}
