#!/usr/bin/env bash
# Looks for inputs that break a reader, with libFuzzer under asan and ubsan (clang 14).
#
#   ./fuzz.sh                  every target of tests/fuzz/targets for ten minutes of CPU time, two at a time
#   ./fuzz.sh 1                for a minute each
#   ./fuzz.sh 5 run journal    these targets only
#
# A find is whatever a reader may not do (tests/fuzz/fuzz.hpp), more than 20 s of its own time or more than 2 GB. Finds go to
# build/fuzz/finds/TARGET with the log beside them; inputs that reach new code are kept in build/fuzz/corpus for
# the next time. Prints a table; exits with 1 if there is a find. A find that is mended belongs into
# tests/fuzz/corpus/TARGET: ctest -R fuzz repeats what is there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;; esac
minutes=${1:-10}
shift || true
all=$(cd tests/fuzz/targets && ls -- *.cpp | sed 's/\.cpp$//')
targets=${*:-$all}
[[ $minutes =~ ^[0-9]+$ && $minutes -gt 0 ]] || { echo "fuzz.sh: expected minutes, not '$minutes'" >&2; exit 2; }
for target in $targets; do
  grep -qxF -- "$target" <<<"$all" || { echo "fuzz.sh: no target '$target'; there are:" $all >&2; exit 2; }
done

./setup.sh tests fuzz
export finds=$root/build/fuzz/finds seconds=$((minutes * 60))
rm -rf "$finds"
mkdir -p "$finds"
scratch=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)" mllmsim-fuzz-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch
# Arrow is not instrumented: what it and we both put into a vector would be taken for an overflow.
export ASAN_OPTIONS=detect_container_overflow=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# libFuzzer's limit is wall time, and the machine may do other things: whether the inputs that TARGET took too long for take
# less than 20 s of its own time when they are tried again.
only_waited() {
  local input found=1
  for input in "$finds/$1"/timeout-*; do
    [ -e "$input" ] || continue
    (ulimit -t 20; build/fuzz/bin/fuzz "--target=$1" -timeout=86400 "$input" >/dev/null 2>&1) || return 1
    rm "$input"
    found=0
  done
  return "$found"
}

# fuzz_one TARGET: leaves finds/TARGET.log. Time is the target's own, whatever else the machine does.
fuzz_one() {
  local pid used last left=$seconds
  mkdir -p "build/fuzz/corpus/$1" "$finds/$1"
  while [ "$left" -gt 0 ]; do
    nice -n 19 build/fuzz/bin/fuzz "--target=$1" -timeout=20 -rss_limit_mb=2048 \
      -malloc_limit_mb=1024 -max_len=20000 -dict=tests/fuzz/words.dict -print_final_stats=1 -reload=0 \
      -artifact_prefix="$finds/$1/" "build/fuzz/corpus/$1" "tests/fuzz/corpus/$1" >>"$finds/$1.log" 2>&1 &
    pid=$!
    last=1
    while used=$(ps -o cputimes= -p "$pid") && [ "$used" -lt "$left" ]; do last=$((used + 1)); sleep 1; done
    kill -USR1 "$pid" 2>/dev/null || true  # libFuzzer ends after the input it is at
    wait "$pid" && return
    if ! only_waited "$1"; then  # also if it ended without an input
      touch "$finds/$1/failed"
      return
    fi
    left=$((left - last))
  done
}
export -f fuzz_one only_waited
printf '%s\n' $targets | xargs -P 2 -I {} bash -c 'fuzz_one {}'

printf '%-16s %12s %9s %6s\n' target executions coverage finds
status=0
for target in $targets; do
  log=$finds/$target.log
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | awk '{ all += $1 } END { if (NR) print all }')
  coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d ' ' -f 2)
  count=$(find "$finds/$target" -type f ! -name failed ! -name 'slow-unit-*' | wc -l)
  [ -e "$finds/$target/failed" ] && { status=1; [ "$count" -gt 0 ] || count=1; }
  printf '%-16s %12s %9s %6s\n' "$target" "${runs:-?}" "${coverage:-?}" "$count"
done
[ $status -eq 0 ] || echo "fuzz.sh: finds and logs are in $finds" >&2
exit $status
