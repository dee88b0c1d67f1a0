#!/usr/bin/env bash
# Measures pages a second of Perennial, wget and scrapy on the same loopback site. All write gzipped WARC without
# politeness. A bare hyper client that keeps nothing runs beside them. Results are in experiments/crawl-speed.
#
#   benches/crawl.sh [PAGES] [RUNS]
#
# Needs wget (Debian) and a Python with scrapy and warcio: PYTHON=/path/to/python benches/crawl.sh
set -eu
cd "$(dirname "$0")/.."
pages=${1:-5000}; runs=${2:-3}; python=${PYTHON:-python3}; connections=${CONNECTIONS:-64}
# The same features as for the tests, so that nothing is built twice.
cargo build --release -q --workspace --bin perennial --example bench_site --example bare_hyper
work=$(mktemp -d); site_pid=
trap 'kill $site_pid 2>/dev/null; rm -rf "$work"' EXIT
target/release/examples/bench_site "$pages" > "$work/url" & site_pid=$!
while [ ! -s "$work/url" ]; do sleep 0.1; done
url=$(cat "$work/url")
rate() { # name seconds pages
  awk -v n="$1" -v s="$2" -v p="$3" 'BEGIN { printf "%-12s %8.2f s %8.0f pages/s  (%d pages)\n", n, s, p / s, p }'
}
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { print b - a }'; }
for run in $(seq "$runs"); do
  echo "run $run of $runs, $pages pages, $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
  target/release/examples/bare_hyper "$url" "$pages" 16
  rm -rf "$work/archive"
  target/release/perennial init "$work/archive" > /dev/null
  target/release/perennial --archive "$work/archive" add "$url" --allow-private > /dev/null
  start=$(now)
  target/release/perennial --archive "$work/archive" run --no-serve --once --no-analysis --delay 0 --connections "$connections" --json > "$work/out.json"
  rate perennial "$(since "$start")" "$(grep -o '"n_changed": [0-9]*' "$work/out.json" | grep -o '[0-9]*')"
  mkdir -p "$work/wget"; start=$(now)
  (cd "$work/wget" && wget -q -r -l inf --no-parent -e robots=off --warc-file=site --delete-after "$url" || true)
  rate wget "$(since "$start")" "$(zcat "$work/wget/site.warc.gz" | grep -ac '^WARC-Type: response')"
  rm -rf "$work/wget"; start=$(now)
  if "$python" -c 'import scrapy, warcio' 2> /dev/null; then
    "$python" benches/crawl_scrapy.py "$url" "$work/scrapy.warc.gz" 2> /dev/null
    rate scrapy "$(since "$start")" "$(zcat "$work/scrapy.warc.gz" | grep -ac '^WARC-Type: response')"
  else
    echo "scrapy       not measured: $python has no scrapy and warcio (pip install scrapy warcio)"
  fi
done
