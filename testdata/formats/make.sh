#!/usr/bin/env bash
# Makes the fixtures of this folder: make.sh PROGRAM, a perennial whose schema is 4 (built from commit 8e28394). Needs root
# (for a host name that is nobody's), python3, sqlite3 and zstd.
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")"
archive=$(mktemp -d)/archive
export program archive

python3 web.py & web=$!
trap 'kill $web' EXIT
sleep 1
unshare --uts bash -eu -c '
  hostname archive.example
  "$program" init "$archive"
  "$program" --archive "$archive" import ../sample.warc.gz
  "$program" --archive "$archive" add http://127.0.0.1:8137/ --allow-private --keep important
  "$program" --archive "$archive" crawl --time-lapse max --start 2026-05-01 --delay 0 \
    --strategy fixed-interval --interval 1h --time-limit 6h || [ $? = 15 ]'

rm -rf archive && mkdir archive
cp -r "$archive"/{perennial.toml,crawl.log,warc,index} archive/

# Each step of the schema up to 4 only added: what it added is taken away again.
state=$archive/state.db
version() { sqlite3 "$state" "PRAGMA user_version = $1; VACUUM"; zstd -q -f -19 "$state" -o "schema-$1.db.zst"; }
sqlite3 "$state" "PRAGMA journal_mode = DELETE" > /dev/null
[ "$(sqlite3 "$state" "PRAGMA user_version")" = 4 ]
version 4
sqlite3 "$state" "
  ALTER TABLE observations DROP COLUMN is_indexed; DROP TABLE crawl_spent;
  ALTER TABLE known DROP COLUMN first; ALTER TABLE known DROP COLUMN total; ALTER TABLE known DROP COLUMN gathered"
version 3
sqlite3 "$state" "DROP TABLE crawl_pages; DROP TABLE crawl_hosts; DROP TABLE crawl_passes; DROP TABLE crawl_seeds"
version 2

# What analysis stores, each in its own form, from the front page's last look.
blob() { sqlite3 "$state" "SELECT hex($1) FROM $2 JOIN pages ON id = page WHERE url = 'http://127.0.0.1:8137/' $3" | xxd -r -p; }
blob noise known "" > noise-1.bin
blob vixml trees "ORDER BY time DESC LIMIT 1" | zstd -q -d > tree.vixml
blob delta observations "AND delta IS NOT NULL ORDER BY time DESC LIMIT 1" | zstd -q -d > delta.videlta

sqlite3 "$state" "DROP TABLE observations; DROP TABLE trees; DROP TABLE known"
version 1
