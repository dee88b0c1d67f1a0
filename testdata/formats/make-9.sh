#!/usr/bin/env bash
# Makes the fixtures of schemas 7, 8 and 9 from that of schema 6: make-9.sh PROGRAM, a perennial whose schema is 9 (built from
# commit 7819af3). Needs python3 and zstd.
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")"
archive=$(mktemp -d)/archive
cp -r archive "$archive"
zstd -q -d schema-6.db.zst -o "$archive/state.db"
"$program" --archive "$archive" analyse
python3 - "$archive/state.db" <<'PY'
import sqlite3, sys, shutil
def save(version):
    state.execute(f"PRAGMA user_version = {version}"); state.commit()
    state.execute("VACUUM"); state.commit()
    shutil.copy(sys.argv[1], f"schema-{version}.db")
state = sqlite3.connect(sys.argv[1])
state.execute("PRAGMA journal_mode = DELETE")
assert state.execute("PRAGMA user_version").fetchone() == (9,)
# The folder has the index of schema 6; the next writer makes another.
state.execute("DELETE FROM runs")
save(9)
# What steps 9 and 8 added is taken away again.
for table in ["items", "feed_reads", "feeds"]:
    state.execute(f"DROP TABLE {table}")
save(8)
for column in ["known DROP COLUMN was_page", "known DROP COLUMN title", "lessons DROP COLUMN title",
               "lessons DROP COLUMN title_before", "pages DROP COLUMN linked_at", "pages DROP COLUMN linked_from"]:
    state.execute(f"ALTER TABLE {column}")
# Schema 7 had one word for a page that is not there.
state.execute("UPDATE lessons SET seen = 5, importance = 0 WHERE seen > 5")
save(7)
PY
for number in 7 8 9; do zstd -q -f -19 --rm "schema-$number.db" -o "schema-$number.db.zst"; done
