#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Builds everything and runs every test: check.sh [BUILD]. Each step's output is kept in BUILD/check/NAME.log and printed
# when the step failed. The last line is `N passed, N failed, N skipped`; the exit status is 0 only if nothing failed and something
# passed. A program that crashes, hangs, or reports fewer results than it announced counts as failed.
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$top" || exit 1
BUILD=${1:-build}
MAKE=${MAKE:-make}
jobs=$(nproc 2>/dev/null || echo 2)
logs=$BUILD/check
# What bounds one program, in seconds. A hanging test is a failed test.
bound=${XROCE_TEST_TIMEOUT:-300}

passed=0 failed=0 skipped=0
failures=()
rm -rf "$logs" && mkdir -p "$logs" || exit 1

# The variables of an outer make must not change what the inner ones build.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES SAN
# A warning is an error here, in what the tests themselves build as well.
export WERROR=1
export LC_ALL=C

# tally NAME PASSED FAILED SKIPPED EXIT-STATUS
tally() {
	local name=$1 p=$2 f=$3 s=$4 rc=$5 note=
	if [ "$f" -eq 0 ] && [ "$rc" -ne 0 ]; then
		f=1
		note=" (exit status $rc)"
	elif [ $((p + f + s)) -eq 0 ]; then
		f=1
		note=" (printed no result)"
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	if [ "$f" -gt 0 ]; then
		failures+=("$name$note")
		sed 's/^/    /' "$logs/$name.log"
		echo "FAILED $name: $p passed, $f failed, $s skipped$note"
	else
		echo "passed $name: $p passed, $s skipped"
		grep -E '^skip ' "$logs/$name.log" | sed 's/^/    /'
	fi
}

run() { timeout --kill-after=10 "$bound" "$@" </dev/null; }
count() { grep -cE "$1" "$2"; }

# A step that either works or does not: one result.
step() {
	local name=$1 rc
	shift
	run "$@" >"$logs/$name.log" 2>&1
	rc=$?
	tally "$name" $((rc == 0)) $((rc != 0)) 0 $rc
	return $rc
}

# A cmocka program announces how many tests it runs, prints a line for each, and names the failed ones again in a summary.
cmocka() {
	local name=$1 log=$logs/$1.log rc p f s announced
	shift
	CMOCKA_MESSAGE_OUTPUT=STDOUT run "$@" >"$log" 2>&1
	rc=$?
	read -r p f s announced < <(awk '
		/^\[==========\] .*Running [0-9]+ test/ { match($0, /Running [0-9]+/); n += substr($0, RSTART + 8, RLENGTH - 8); body = 1 }
		/^\[==========\] .*test\(s\) run/ { body = 0 }
		body && /^\[       OK \]/ { p++ }
		body && /^\[  FAILED  \]/ { f++ }
		body && /^\[  SKIPPED \]/ { s++ }
		END { print p + 0, f + 0, s + 0, n + 0 }' "$log")
	if [ $((p + f + s)) -lt "$announced" ]; then
		echo "$((p + f + s)) of $announced tests reported a result" >>"$log"
		f=$((f + 1))
	fi
	tally "$name" "$p" "$f" "$s" $rc
}

# A shell test prints `ok NAME`, `not ok NAME` or `skip NAME reason`.
shell_test() {
	local name=$1 log=$logs/$1.log rc
	shift
	run "$@" >"$log" 2>&1
	rc=$?
	tally "$name" "$(count '^ok ' "$log")" "$(count '^not ok ' "$log")" "$(count '^skip ' "$log")" $rc
}

# programs KIND BUILD: the built test programs of a kind, by their sources.
cmocka_kind() {
	local kind=$1 build=$2 tag=$3 src base
	for src in tests/"$kind"/test_*.c; do
		[ -e "$src" ] || continue
		base=$(basename "$src" .c)
		if [ -x "$build/tests/$kind/$base" ]; then
			cmocka "$kind-$base$tag" "$build/tests/$kind/$base"
		else
			echo "$build/tests/$kind/$base was not built" >"$logs/$kind-$base$tag.log"
			tally "$kind-$base$tag" 0 1 0 1
		fi
	done
}

summary() {
	local f
	trap - EXIT
	if [ ${#failures[@]} -gt 0 ]; then
		echo "failed steps (output in $logs):"
		for f in "${failures[@]}"; do
			echo "    $f"
		done
	fi
	echo "$passed passed, $failed failed, $skipped skipped" | tee "$logs/count"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
	exit
}
trap 'failed=$((failed + 1)); failures+=("interrupted"); summary' EXIT
trap 'exit 130' INT TERM HUP

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=detect_leaks=1:abort_on_error=0

step includes scripts/check-includes.sh
step licences scripts/check-licences.sh
step mutations tests/mutate.sh -c
step mutations-verbs tests/mutate-verbs.sh -c
step build "$MAKE" --no-print-directory -j"$jobs" BUILD="$BUILD" all || summary
step build-tests "$MAKE" --no-print-directory -k -j"$jobs" BUILD="$BUILD" tests
step build-fuzzers "$MAKE" --no-print-directory -k -j"$jobs" BUILD="$BUILD" fuzzers
step build-sanitized "$MAKE" --no-print-directory -k -j"$jobs" BUILD="$BUILD-san" SAN=1 unit-tests sim-tests

for t in tests/verbs/*.sh tests/ship/*.sh; do
	[ -e "$t" ] && shell_test "$(basename "$(dirname "$t")")-$(basename "$t" .sh)" bash "$t" "$BUILD"
done
cmocka_kind unit "$BUILD" ""
cmocka_kind sim "$BUILD" ""
cmocka_kind portsim "$BUILD" ""
# Again on devices of three engines, but for the longest ones, of which test_random has such devices anyway.
for src in tests/sim/test_*.c; do
	base=$(basename "$src" .c)
	case $base in test_masks16 | test_random) ;; *) XROCE_SIM_ENGINES=3 cmocka "sim-$base-engines" "$BUILD/tests/sim/$base" ;; esac
done
cmocka_kind unit "$BUILD-san" -san
cmocka_kind sim "$BUILD-san" -san
step fuzz-packet scripts/fuzz.sh "$BUILD" packet "${XROCE_FUZZ_SECONDS:-20}"
step fuzz-segments scripts/fuzz.sh "$BUILD" segments "${XROCE_FUZZ_SECONDS:-15}"
step fuzz-engine scripts/fuzz.sh "$BUILD" engine "${XROCE_FUZZ_SECONDS:-40}"
cmocka_kind bpf "$BUILD" ""
cmocka_kind port "$BUILD" ""
for t in tests/port/*.sh tests/netns/*.sh; do
	[ -e "$t" ] && shell_test "$(basename "$(dirname "$t")")-$(basename "$t" .sh)" bash "$t" "$BUILD"
done
# What all interfaces but veth have: these again in native mode (tests/netns/paths*.sh have both, and XROCE_TX beside).
for t in data pingpong loss wake events event_ways bursts; do
	XROCE_XDP=native shell_test "netns-$t-native" bash "tests/netns/$t.sh" "$BUILD"
done
# And with two receive queues, each with a shard.
for t in data loss wake events crash tags port_events bursts memory; do
	XROCE_TEST_QUEUES=2 shell_test "netns-$t-shards" bash "tests/netns/$t.sh" "$BUILD"
done
XROCE_TEST_QUEUES=2 shell_test netns-lost-shards bash tests/netns/lost.sh "$BUILD"
# Against an implementation that is not ours.
shell_test vm-rxe bash tests/vm/rxe.sh "$BUILD"
# A figure to look at, never a limit.
if "$MAKE" --no-print-directory BUILD="$BUILD" "$BUILD/tests/bench/engine" >"$logs/bench-instructions.log" 2>&1; then
	timeout 60 scripts/bench-instructions.sh "$BUILD" 2>&1 | sed 's/^/info /'
fi
summary
