//! `perennial sql`: documented views of the state, which users query within limits.
//!
//! The tables of the state change with releases; the views do not (docs/sql.md). They are temporary views of a
//! read-only connection. SQLite calls an authorizer for every table and view in a statement. Statements may read the
//! views, and read tables only through views.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use perennial_core::time::Timestamp;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use super::Store;
use super::analyses::IS_CHANGE;

/// Instructions of SQLite's virtual machine between two checks of the clock: about a millisecond.
const STEPS_BETWEEN_CHECKS: i32 = 10_000;

/// The tables that the views read.
const SOURCES: [&str; 10] =
    ["sites", "pages", "captures", "versions", "files", "lessons", "known", "feeds", "items", "crawl_pages"];

/// A time of the state in RFC 3339.
macro_rules! time {
    ($column:literal) => {
        concat!("strftime('%Y-%m-%dT%H:%M:%SZ', ", $column, " / 1000, 'unixepoch')")
    };
}

struct SqlView {
    name: &'static str,
    /// Name and expression of each column.
    columns: &'static [(&'static str, &'static str)],
    from: &'static str,
}

const VIEWS: &[SqlView] = &[
    SqlView {
        name: "sites",
        columns: &[
            ("site", "s.host"),
            ("n_pages", "(SELECT count(*) FROM main.pages p WHERE p.site = s.id AND p.n_captures > 0)"),
            ("n_captures", "(SELECT coalesce(sum(p.n_captures), 0) FROM main.pages p WHERE p.site = s.id)"),
        ],
        from: "main.sites s",
    },
    SqlView {
        name: "pages",
        columns: &[
            ("url", "p.url"),
            ("site", "s.host"),
            (
                "kind",
                "CASE p.kind WHEN 0 THEN 'page' WHEN 1 THEN 'subresource' WHEN 2 THEN 'sitemap' WHEN -1 THEN 'feed' END",
            ),
            ("title", "k.title"),
            ("first_seen", time!("p.first_seen")),
            ("last_seen", time!("p.last_seen")),
            ("n_captures", "p.n_captures"),
            ("status", "p.status"),
            ("mime", "p.mime"),
            ("importance", "k.total"),
        ],
        from: "main.pages p JOIN main.sites s ON s.id = p.site LEFT JOIN main.known k ON k.page = p.id",
    },
    SqlView {
        name: "captures",
        columns: &[
            ("url", "p.url"),
            ("site", "s.host"),
            ("time", time!("c.time")),
            (
                "kind",
                "CASE c.kind WHEN 0 THEN 'response' WHEN 1 THEN 'revisit' WHEN 2 THEN 'resource' ELSE 'metadata' END",
            ),
            ("status", "c.status"),
            ("mime", "c.mime"),
            ("digest", "c.digest"),
            ("file", "f.name"),
            ("offset", "c.offset"),
            ("length", "c.length"),
        ],
        from: "main.captures c JOIN main.pages p ON p.id = c.page JOIN main.sites s ON s.id = p.site JOIN main.files f ON f.id = c.file",
    },
    SqlView {
        name: "versions",
        columns: &[
            ("url", "p.url"),
            ("site", "s.host"),
            ("digest", "v.digest"),
            ("first_time", time!("v.first_time")),
            ("last_time", time!("v.last_time")),
            ("n_captures", "v.n_captures"),
        ],
        from: "main.versions v JOIN main.pages p ON p.id = v.page JOIN main.sites s ON s.id = p.site",
    },
    SqlView {
        name: "observations",
        columns: &[
            ("url", "p.url"),
            ("site", "s.host"),
            ("time", time!("l.time")),
            ("before", time!("l.before")),
            ("change_status", CHANGE_STATUS),
            ("importance", "l.importance"),
            ("is_indexed", "l.is_indexed"),
        ],
        from: "main.lessons l JOIN main.pages p ON p.id = l.page JOIN main.sites s ON s.id = p.site",
    },
    SqlView {
        name: "changes",
        columns: &[
            ("url", "p.url"),
            ("site", "s.host"),
            ("time", time!("l.time")),
            ("before", time!("l.before")),
            ("kind", KIND),
            ("importance", "l.importance"),
            ("is_noise", "l.seen = 2"),
            ("n_operations", "l.n_operations"),
            ("title", "l.title"),
            ("title_before", "l.title_before"),
        ],
        from: "main.lessons l JOIN main.pages p ON p.id = l.page JOIN main.sites s ON s.id = p.site",
    },
    SqlView {
        name: "feeds",
        columns: &[
            ("url", "p.url"),
            ("format", "f.format"),
            ("title", "f.title"),
            ("channel", "f.channel"),
            ("first_read", time!("f.first_read")),
            ("last_read", time!("f.last_read")),
            ("n_items", "(SELECT count(*) FROM main.items i WHERE i.feed = f.page)"),
        ],
        from: "main.feeds f JOIN main.pages p ON p.id = f.page",
    },
    SqlView {
        name: "items",
        columns: &[
            ("feed", "p.url"),
            ("key", "i.key"),
            ("url", "q.url"),
            ("title", "i.title"),
            ("summary", "i.summary"),
            ("author", "i.author"),
            ("categories", "i.categories"),
            ("published", time!("i.published")),
            ("updated", time!("i.updated")),
            ("first_seen", time!("i.first_seen")),
            ("last_seen", time!("i.last_seen")),
            ("changed", time!("i.changed")),
        ],
        from: "main.items i JOIN main.pages p ON p.id = i.feed LEFT JOIN main.pages q ON q.id = i.page",
    },
    SqlView {
        name: "articles",
        columns: &[
            ("url", "q.url"),
            ("n_feeds", "count(DISTINCT i.feed)"),
            ("title", "max(i.title)"),
            ("published", time!("min(i.published)")),
            ("announced", time!("min(i.first_seen)")),
            ("n_captures", "q.n_captures"),
            ("n_versions", "(SELECT count(*) FROM main.versions v WHERE v.page = q.id)"),
        ],
        from: "main.items i JOIN main.pages q ON q.id = i.page",
    },
    SqlView {
        name: "visits",
        columns: &[
            ("url", "p.url"),
            ("site", "s.host"),
            (
                "kind",
                "CASE c.kind WHEN 0 THEN 'page' WHEN 1 THEN 'subresource' WHEN 2 THEN 'sitemap' WHEN -1 THEN 'feed' END",
            ),
            ("depth", "c.depth"),
            ("last_visit", time!("c.visited")),
            (
                "ending",
                "CASE c.ending WHEN 0 THEN 'changed' WHEN 1 THEN 'unchanged' WHEN 2 THEN 'failed' WHEN 3 THEN 'gone' WHEN 4 THEN 'redirected' WHEN 5 THEN 'new' WHEN 6 THEN 'missing' WHEN 7 THEN 'refused' END",
            ),
            ("n_failures", "c.n_failures"),
        ],
        from: "main.crawl_pages c JOIN main.pages p ON p.id = c.page JOIN main.sites s ON s.id = p.site",
    },
];

const CHANGE_STATUS: &str = "CASE l.seen WHEN 0 THEN 'first' WHEN 1 THEN 'same' WHEN 2 THEN 'noise' WHEN 3 THEN 'changed' WHEN 4 THEN 'unjudged'
    WHEN 5 THEN 'absent' WHEN 6 THEN 'vanished' WHEN 7 THEN 'redirected' WHEN 8 THEN 'returned' END";

const KIND: &str =
    "CASE WHEN l.seen = 0 THEN 'new' WHEN l.seen = 6 THEN 'vanished' WHEN l.seen = 7 THEN 'redirected'
    WHEN l.seen = 8 THEN 'returned' WHEN l.title_before IS NOT NULL THEN 'retitled' ELSE 'edited' END";

impl SqlView {
    fn sql(&self) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|(name, expression)| format!("{expression} AS {name}")).collect();
        let rest = match self.name {
            "changes" => format!(" WHERE {}", IS_CHANGE.replace("FROM pages", "FROM main.pages")),
            "pages" | "captures" => " WHERE p.n_captures > 0".to_owned(),
            "articles" => " GROUP BY q.id".to_owned(),
            _ => String::new(),
        };
        format!("CREATE TEMP VIEW {} AS SELECT {} FROM {}{rest};", self.name, columns.join(", "), self.from)
    }
}

/// Limits of one statement.
#[derive(Clone, Copy, Debug)]
pub struct SqlLimits {
    /// A statement is stopped after this time.
    pub time: Duration,
    /// Most rows that are read.
    pub max_rows: usize,
    /// Most bytes of all rows together. SQLite may use the same amount again.
    pub max_bytes: usize,
}

/// One value of a result.
#[derive(Clone, PartialEq, Debug)]
pub enum SqlValue {
    Null,
    Whole(i64),
    Number(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The result of a statement.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SqlRows {
    /// Names of the columns.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<SqlValue>>,
    /// Whether the limits cut off further rows.
    pub is_cut: bool,
}

/// The views with their columns, as docs/sql.md lists them.
pub fn sql_views() -> Vec<(&'static str, Vec<&'static str>)> {
    let names = |view: &SqlView| view.columns.iter().map(|(name, _)| *name).collect();
    VIEWS.iter().map(|view| (view.name, names(view))).collect()
}

/// Runs one statement on the views of a state.
pub fn query_views(state: &Path, sql: &str, limits: SqlLimits) -> anyhow::Result<SqlRows> {
    let mut store = Store::open_read(state)?;
    let connection = &mut store.connection;
    prepare(connection, limits)?;
    let deadline = Instant::now() + limits.time;
    connection.progress_handler(STEPS_BETWEEN_CHECKS, Some(move || Instant::now() > deadline))?;
    read(connection, sql, limits).map_err(|error| explain(error, limits))
}

/// Creates the views and forbids everything else.
fn prepare(connection: &mut Connection, limits: SqlLimits) -> anyhow::Result<()> {
    // The data that a statement sorts and groups counts towards the memory limit.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.execute_batch(&VIEWS.iter().map(SqlView::sql).collect::<String>())?;
    connection.pragma_update(None, "query_only", true)?;
    connection.query_row(&format!("PRAGMA hard_heap_limit = {}", limits.max_bytes), [], |_| Ok(()))?;
    connection.authorizer(Some(allowed))?;
    Ok(())
}

/// Allows a statement to read views, to read tables through views, and to call functions, except the one that loads
/// code.
fn allowed(context: AuthContext<'_>) -> Authorization {
    let is_view = |name: &str| VIEWS.iter().any(|view| view.name == name);
    let is_ours = match context.action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        // Counting rows reads none of their columns.
        AuthAction::Read { column_name: "", .. } => true,
        AuthAction::Read { table_name, .. } => match context.database_name {
            Some("temp") => is_view(table_name),
            // A statement may give one of its parts the name of a view. It then reads the same tables and no others.
            _ => SOURCES.contains(&table_name) && context.accessor.is_some_and(is_view),
        },
        _ => false,
    };
    if is_ours { Authorization::Allow } else { Authorization::Deny }
}

fn read(connection: &Connection, sql: &str, limits: SqlLimits) -> rusqlite::Result<SqlRows> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_names().map(str::to_owned).collect::<Vec<_>>();
    let mut result = SqlRows { columns, ..SqlRows::default() };
    let (mut rows, mut n_bytes) = (statement.query([])?, 0);
    while let Some(row) = rows.next()? {
        let cells = (0..result.columns.len())
            .map(|at| row.get_ref(at).map(cell))
            .collect::<rusqlite::Result<Vec<_>>>()?;
        n_bytes += cells.iter().map(SqlValue::n_bytes).sum::<usize>();
        if result.rows.len() == limits.max_rows || n_bytes > limits.max_bytes {
            result.is_cut = true;
            break;
        }
        result.rows.push(cells);
    }
    Ok(result)
}

fn cell(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Whole(number),
        ValueRef::Real(number) => SqlValue::Number(number),
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Bytes(bytes.to_vec()),
    }
}

impl SqlValue {
    fn n_bytes(&self) -> usize {
        16 + match self {
            SqlValue::Text(text) => text.len(),
            SqlValue::Bytes(bytes) => bytes.len(),
            _ => 0,
        }
    }
}

/// Adds a hint to the error.
/// Former views and their successors.
const RENAMED_VIEWS: [(&str, &str); 2] = [("looks", "observations"), ("objects", "articles")];

fn renamed_view(error: &rusqlite::Error) -> Option<(&'static str, &'static str)> {
    let message = error.to_string();
    RENAMED_VIEWS.into_iter().find(|(before, _)| message.contains(&format!("no such table: {before}")))
}

fn explain(error: rusqlite::Error, limits: SqlLimits) -> anyhow::Error {
    let views: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
    let hint = match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            format!("it took longer than {:?}: ask for less, or give it more with --time-limit", limits.time)
        }
        Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
            format!("only reading from the views {} is allowed: see docs/sql.md", views.join(", "))
        }
        Some(ErrorCode::OutOfMemory | ErrorCode::TooBig) => {
            "it needs more memory than it may have: ask for less".to_owned()
        }
        _ if matches!(error, rusqlite::Error::MultipleStatement) => "write one statement".to_owned(),
        _ if let Some((before, now)) = renamed_view(&error) => {
            format!("the view {before} was renamed: use {now}")
        }
        _ => format!("the views are {}: docs/sql.md lists their columns", views.join(", ")),
    };
    anyhow::Error::from(error).context(hint)
}

/// Calls `each` with the rows of a view that pass the filter, in order of time and URL; for exports.
pub fn each_view_row(
    state: &Path,
    view: &str,
    filter: &super::CaptureFilter,
    mut each: impl FnMut(&[SqlValue]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let found = VIEWS.iter().find(|found| found.name == view).context("no such view")?;
    let time = if view == "versions" { "first_time" } else { "time" };
    let limits = SqlLimits { time: Duration::MAX, max_rows: usize::MAX, max_bytes: 0 };
    let mut store = Store::open_read(state)?;
    let connection = &mut store.connection;
    prepare(connection, limits)?;
    let sql = format!(
        "SELECT * FROM {view} WHERE (?1 IS NULL OR site = ?1) AND (?2 IS NULL OR url = ?2)
           AND (?3 IS NULL OR {time} >= ?3) AND (?4 IS NULL OR {time} < ?4) ORDER BY {time}, url"
    );
    let mut statement = connection.prepare(&sql)?;
    let (since, until) = (filter.since.map(Timestamp::to_rfc3339), filter.until.map(Timestamp::to_rfc3339));
    let mut rows = statement.query(rusqlite::params![filter.site, filter.page, since, until])?;
    let n_columns = found.columns.len();
    while let Some(row) = rows.next()? {
        let cells =
            (0..n_columns).map(|at| row.get_ref(at).map(cell)).collect::<rusqlite::Result<Vec<_>>>()?;
        each(&cells)?;
    }
    Ok(())
}
