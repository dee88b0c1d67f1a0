#!/usr/bin/env bash
# Makes the fixture of schema 10 from that of schema 9: make-10.sh PROGRAM, a perennial whose schema is 10 (built from
# commit f35cdc0). Needs python3 and zstd.
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")"
archive=$(mktemp -d)/archive
cp -r archive "$archive"
zstd -q -d schema-9.db.zst -o "$archive/state.db"
"$program" --archive "$archive" analyse
python3 - "$archive/state.db" <<'PY'
import sqlite3, sys
state = sqlite3.connect(sys.argv[1])
state.execute("PRAGMA journal_mode = DELETE")
assert state.execute("PRAGMA user_version").fetchone() == (10,)
# The folder has the index of schema 6; the next writer makes another.
state.execute("DELETE FROM runs"); state.commit()
state.execute("VACUUM")
PY
zstd -q -19 -f "$archive/state.db" -o schema-10.db.zst
