//! The invariants of the state: each check lists the pages that violate it.

use super::Store;
use super::query::confirms_left_out;
use super::rows::Statements;

const CHECKS: &[(&str, &str)] = &[
    (
        "counts other captures than it has",
        "SELECT p.url FROM pages p LEFT JOIN (SELECT page, count(*) AS n FROM captures GROUP BY page) c
         ON c.page = p.id WHERE p.n_captures <> coalesce(c.n, 0)",
    ),
    (
        "has another first or last time than its captures",
        "SELECT p.url FROM pages p JOIN (SELECT page, min(time) AS a, max(time) AS b FROM captures GROUP BY page) c
         ON c.page = p.id WHERE p.first_seen <> c.a OR p.last_seen <> c.b",
    ),
    (
        "has versions that do not add up to its captures",
        concat!(
            "SELECT p.url FROM pages p JOIN (SELECT c.page, c.digest, coalesce(c.content, '') AS content, count(*) AS n
             FROM captures c WHERE c.kind < 3 AND NOT ",
            confirms_left_out!(),
            " GROUP BY c.page, c.digest, coalesce(c.content, '')) c ON c.page = p.id
             LEFT JOIN versions v ON v.page = c.page AND v.digest = c.digest AND v.content = c.content
             WHERE coalesce(v.n_captures, 0) <> c.n"
        ),
    ),
];

impl Store {
    /// The violations, in words.
    pub fn contradictions(&self) -> anyhow::Result<Vec<String>> {
        let words =
            |sql: &str| -> anyhow::Result<Vec<String>> { self.connection.rows(sql, [], |row| row.get(0)) };
        let mut found = words("PRAGMA quick_check(20)")?;
        found.retain(|line| line != "ok");
        for (what, sql) in CHECKS {
            found.extend(words(sql)?.into_iter().map(|url| format!("page {url} {what}")));
        }
        Ok(found)
    }
}
