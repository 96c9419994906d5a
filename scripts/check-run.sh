# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# How a check is run and counted; scripts/check.sh, which sources this, says which there are. Each
# check's output is kept in $logs/NAME.log and printed if it failed. A program that crashes, hangs,
# or reports fewer results than it announced counts as failed.
#
#   step NAME COMMAND...         one result: the exit status
#   cmocka NAME PROGRAM...       a result for each test of a cmocka program
#   shell_test NAME COMMAND...   one for each line `ok NAME`, `not ok NAME` or `skip NAME reason`
#
# and with `pool` before them they run beside others, as many as there are processors. Results of
# all are lines in $logs/results: part, check, passed, failed, skipped, why, seconds. $part is the
# part that they belong to, $single the parts with interfaces.
#
# With XROCE_TEST_AGAIN=N in the environment, up to N of the tests that failed in the parts with
# interfaces are run once more, and what counts is the second run: for a machine that does other
# things meanwhile, where one late answer among 5,000 is no finding. Each is listed at the end, and
# the first output kept in $logs/NAME.first.log. A developer's `make check` does not do so.

# What bounds one program, in seconds. A hanging test is a failed test; one that has many cases may
# take long on a machine that does other things, and bounds what it waits for itself.
bound=${XROCE_TEST_TIMEOUT:-900}
jobs=$(nproc 2>/dev/null || echo 2)

# tally NAME PASSED FAILED SKIPPED EXIT-STATUS START
tally() {
	local name=$1 p=$2 f=$3 s=$4 rc=$5 took=$((SECONDS - $6)) note=

	if [ "$f" -eq 0 ] && [ "$rc" -ne 0 ]; then
		f=1
		note=" (exit status $rc)"
	elif [ $((p + f + s)) -eq 0 ]; then
		f=1
		note=" (printed no result)"
	fi
	{
		flock 9
		printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$part" "$name" "$p" "$f" "$s" "$note" $took >&9
		if [ "$f" -gt 0 ]; then
			sed 's/^/    /' "$logs/$name.log"
			echo "FAILED $name: $p passed, $f failed, $s skipped$note, $took s"
		else
			echo "passed $name: $p passed, $s skipped, $took s"
			grep -E '^skip ' "$logs/$name.log" | sed 's/^/    /'
		fi
	} 9>>"$logs/results"
}

run() { timeout --kill-after=10 "$bound" "$@" </dev/null; }
count() { grep -cE "$1" "$2"; }

# attempt NAME COMMAND...: into $logs/NAME.log, again if that is allowed; its exit status
attempt() {
	local name=$1 log=$logs/$1.log rc

	shift
	run "$@" >"$log" 2>&1
	rc=$?
	{ [ $rc -ne 0 ] || grep -q '^not ok ' "$log"; } && may_again "$name" || return $rc
	sed 's/^/    /' "$log"
	echo "again  $name"
	mv "$log" "$logs/$name.first.log"
	run "$@" >"$log" 2>&1
}
may_again() {
	case " ${single:-} " in *" $part "*) ;; *) return 1 ;; esac
	[ "$(wc -l <"$logs/again")" -lt "${XROCE_TEST_AGAIN:-0}" ] && echo "$1" >>"$logs/again"
}

step() {
	local name=$1 rc start=$SECONDS

	shift
	run "$@" >"$logs/$name.log" 2>&1
	rc=$?
	tally "$name" $((rc == 0)) $((rc != 0)) 0 $rc $start
	return $rc
}

# A cmocka program announces how many tests it runs, prints a line for each, and names the failed
# ones again in a summary.
cmocka() {
	local name=$1 log=$logs/$1.log rc p f s announced start=$SECONDS

	shift
	CMOCKA_MESSAGE_OUTPUT=STDOUT attempt "$name" "$@"
	rc=$?
	read -r p f s announced < <(awk '
		/^\[==========\] .*Running [0-9]+ test/ {
			match($0, /Running [0-9]+/)
			n += substr($0, RSTART + 8, RLENGTH - 8)
			body = 1
		}
		/^\[==========\] .*test\(s\) run/ { body = 0 }
		body && /^\[       OK \]/ { p++ }
		body && /^\[  FAILED  \]/ { f++ }
		body && /^\[  SKIPPED \]/ { s++ }
		END { print p + 0, f + 0, s + 0, n + 0 }' "$log")
	if [ $((p + f + s)) -lt "$announced" ]; then
		echo "$((p + f + s)) of $announced tests reported a result" >>"$log"
		f=$((f + 1))
	fi
	tally "$name" "$p" "$f" "$s" $rc $start
}

shell_test() {
	local name=$1 log=$logs/$1.log rc start=$SECONDS

	shift
	attempt "$name" "$@"
	rc=$?
	tally "$name" "$(count '^ok ' "$log")" "$(count '^not ok ' "$log")" \
		"$(count '^skip ' "$log")" $rc $start
}

# pool CHECK...: in the background, when a processor is free. pool_drain: when all are done.
pool() {
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n
	done
	("$@") &
}
pool_drain() { wait; }

# built NAME TARGET...: what the part's checks need. Returns 1 if it cannot be had. On a machine
# that does other things a compiler may take long.
built() {
	local name=$1 bound=$((3 * bound))

	shift
	step "$name" "$MAKE" --no-print-directory -k -j"$jobs" BUILD="$BUILD" "$@"
}

# counts [PART]: "N passed, N failed, N skipped" of one part or of all.
counts() {
	awk -F '\t' -v part="${1:-}" '
		part == "" || $1 == part { p += $3; f += $4; s += $5 }
		END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$logs/results"
}

# The last words: each part's count, what failed, and the sum as the last line.
summary() {
	local p

	trap - EXIT
	if [ $# -gt 1 ]; then
		for p in "$@"; do
			printf '%-8s %s\n' "$p" "$(counts "$p")"
		done
	fi
	if awk -F '\t' '$4 > 0 { exit 1 }' "$logs/results"; then
		:
	else
		echo "failed checks (output in $logs):"
		awk -F '\t' '$4 > 0 { print "    " $2 $6 }' "$logs/results"
	fi
	if [ -s "$logs/again" ]; then
		echo "run twice, having failed at first (output in $logs/NAME.first.log):"
		sed 's/^/    /' "$logs/again"
	fi
	counts | tee "$logs/count"
	grep -qE '^[1-9][0-9]* passed, 0 failed' "$logs/count"
	exit
}
