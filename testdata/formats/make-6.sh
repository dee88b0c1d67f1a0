#!/usr/bin/env bash
# Makes the fixtures of schemas 5 and 6 from that of schema 4: make-6.sh PROGRAM, a perennial whose schema is 6 (built from
# commit a34fdf1). Needs python3 and zstd.
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")"
archive=$(mktemp -d)/archive
cp -r archive "$archive"
zstd -q -d schema-4.db.zst -o "$archive/state.db"
"$program" --archive "$archive" analyse
python3 - "$archive/state.db" <<'PY'
import sqlite3, sys, shutil
def save(version):
    state.execute(f"PRAGMA user_version = {version}"); state.commit()
    state.execute("VACUUM"); state.commit()
    shutil.copy(sys.argv[1], f"schema-{version}.db")
state = sqlite3.connect(sys.argv[1])
state.execute("PRAGMA journal_mode = DELETE")
assert state.execute("PRAGMA user_version").fetchone() == (6,)
save(6)
# What step 6 added is taken away again.
for column in ["pages DROP COLUMN kind", "known DROP COLUMN shown_identity", "known DROP COLUMN shown_time"]:
    state.execute(f"ALTER TABLE {column}")
save(5)
PY
for number in 5 6; do zstd -q -f -19 --rm "schema-$number.db" -o "schema-$number.db.zst"; done
