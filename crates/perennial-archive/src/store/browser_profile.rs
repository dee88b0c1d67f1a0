//! The cookies in a profile folder of Firefox.

use std::fs;
use std::path::Path;

use anyhow::Context;
use perennial_core::http::cookies::{Cookie, CookieJar};
use perennial_core::time::Timestamp;
use rusqlite::Connection;

/// Expiry times above this are in milliseconds, as newer versions of Firefox store them.
const MAX_SECONDS: i64 = 100_000_000_000;

/// Reads the cookies that Firefox stored. Those of the session are not among them.
pub fn firefox_cookies(profile: &Path) -> anyhow::Result<CookieJar> {
    let context = || format!("cannot read the cookies of {}", profile.display());
    // A copy, because a running Firefox locks the file.
    let copy = tempfile::tempdir().with_context(context)?;
    for name in ["cookies.sqlite", "cookies.sqlite-wal"] {
        if profile.join(name).is_file() {
            fs::copy(profile.join(name), copy.path().join(name)).with_context(context)?;
        }
    }
    let connection = Connection::open(copy.path().join("cookies.sqlite")).with_context(context)?;
    let sql = "SELECT name, value, host, path, isSecure, expiry FROM moz_cookies";
    let mut jar = CookieJar::default();
    let mut statement = connection.prepare(sql).with_context(context)?;
    let mut rows = statement.query([]).with_context(context)?;
    while let Some(row) = rows.next().with_context(context)? {
        let (host, expiry): (String, i64) = (row.get(2)?, row.get(5)?);
        let expires = match expiry {
            ..=MAX_SECONDS => Timestamp::from_secs(expiry),
            _ => Timestamp::from_millis(expiry),
        };
        jar.put(Cookie {
            name: row.get(0)?,
            value: row.get(1)?,
            domain: host.trim_start_matches('.').to_ascii_lowercase(),
            has_subdomains: host.starts_with('.'),
            path: row.get(3)?,
            is_secure: row.get(4)?,
            expires: (expiry > 0).then_some(expires),
        });
    }
    Ok(jar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_of_firefox_are_read() {
        let profile = tempfile::tempdir().unwrap();
        let connection = Connection::open(profile.path().join("cookies.sqlite")).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE moz_cookies (id INTEGER PRIMARY KEY, name TEXT, value TEXT, host TEXT, path TEXT,
                    expiry INTEGER, isSecure INTEGER);
                INSERT INTO moz_cookies VALUES (1, 'sid', 's3cret', '.a.example', '/', 4102444800, 0);
                INSERT INTO moz_cookies VALUES (2, 'old', 'x', 'a.example', '/', 1000, 0);
                INSERT INTO moz_cookies VALUES (3, 'new', 'y', 'a.example', '/', 4102444800000, 0);",
            )
            .unwrap();
        let jar = firefox_cookies(profile.path()).unwrap();
        let url = url::Url::parse("http://a.example/").unwrap();
        let field = jar.field(&url, Timestamp::from_secs(2_000_000_000));
        assert_eq!(field.as_deref(), Some("sid=s3cret; new=y"));
    }
}
