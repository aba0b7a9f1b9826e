#!/usr/bin/env bash
# run.sh BUILD_DIRECTORY [SECONDS] [TARGET...]: every fuzz target, or those, for SECONDS each, from the kept corpus and what earlier runs
# found; then the canary, which must crash. Exit 1 and the crashing input's path when a target fails: it is kept as
# tests/fuzz/corpus/TARGET/found-WHAT with the fix.
set -euo pipefail
build=$(readlink -f "$1")
seconds=${2:-20}
shift $(($# < 2 ? $# : 2))
kept=$(dirname "$(readlink -f "$0")")/corpus
programs=$build/tests/fuzz
corpus=$build/corpus
findings=$build/findings
mkdir -p "$corpus" "$findings"

failed=0
for program in "$programs"/fuzz_*; do
  name=$(basename "$program")
  name=${name#fuzz_}
  [ -x "$program" ] && [ -f "$program" ] || continue
  [ "$name" != canary ] || continue
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  mkdir -p "$corpus/$name"
  log=$findings/$name.log
  if "$program" -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$findings/$name-" "$corpus/$name" "$kept/$name" >"$log" 2>&1; then
    echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
  else
    failed=1
    echo "fuzz $name: FAILED"
    tail -n 40 "$log"
  fi
done

mkdir -p "$corpus/canary"
if "$programs/fuzz_canary" -max_total_time=60 -max_len=64 -artifact_prefix="$findings/canary-" "$corpus/canary" >"$findings/canary.log" 2>&1; then
  failed=1
  echo "fuzz canary: NOT FOUND: this fuzzing proves nothing"
else
  echo "fuzz canary: found, as it must be"
fi
exit $failed
