#!/bin/sh
# An engineer who puts a model into an image: compiled ahead, read-only, bounded, watched.
# Runs in an empty folder with the installed command alone: sh engineer.sh
set -eu

# What is installed, and where things are kept.
tailwise --version
tailwise info --json >versions.json

# Compile ahead into a folder of the image.
export NUMBA_CACHE_DIR="${NUMBA_CACHE_DIR:-$PWD/compiled}"
tailwise warm centroid >warmed.txt
grep "compiled code is kept in $NUMBA_CACHE_DIR" warmed.txt
kept=$(find "$NUMBA_CACHE_DIR" -name '*.nbc' | wc -l)
test "$kept" -gt 0

python3 - <<'END'
import json

with open("rows.jsonl", "w") as file:
    for i in range(60):
        fish = i % 2
        row = {"text": f"{'cod trawler quota' if fish else 'iron furnace mill'} {i % 7}", "labels": ["fish" if fish else "steel"]}
        file.write(json.dumps(row) + "\n")
END

# The first run does not compile any more.
tailwise train rows.jsonl -o model --model centroid --jobs 1 --json >trained.json 2>messages.txt
if grep -q 'compiling for this machine' messages.txt; then exit 1; fi

# Results on standard output, messages elsewhere; a reader that leaves early is no error.
tailwise suggest model "a trawler at sea" --json --quiet | python3 -c 'import json, sys; assert json.load(sys.stdin)[0]["id"] == "fish"'
tailwise predict model rows.jsonl --quiet >all.txt
test "$(wc -l <all.txt)" = 60
(tailwise predict model rows.jsonl --quiet; echo $? >status.txt) | head -1 >first.txt
test "$(cat status.txt)" = 0

# Nor does judging, nor anything before it.
tailwise evaluate model rows.jsonl --quiet >judged.txt
test "$(find "$NUMBA_CACHE_DIR" -name '*.nbc' | wc -l)" = "$kept"

# Statuses are those of the help.
status() { set +e; "$@" >/dev/null 2>said.txt; got=$?; set -e; echo "$got: $(tail -1 said.txt)"; }
status tailwise suggest nowhere text
test "$got" = 4
status tailwise train nothing.jsonl -o other
test "$got" = 3
status tailwise train rows.jsonl
test "$got" = 2
status tailwise predict model rows.jsonl -o /proc/labels.csv
test "$got" = 7

# Terminals of any encoding.
PYTHONIOENCODING=ascii tailwise info model >/dev/null

# A model is replaced whole while others load it.
tailwise train rows.jsonl -o model --model centroid --overwrite --quiet &
for i in 1 2 3; do tailwise suggest model cod --quiet >/dev/null; done
wait
echo "the engineer is served"
