#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The runner of the checks counts what happened: programs that fail, crash, hang or say nothing are
# failures, and so is one that reports less than it announced. runner.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

logs=$work/logs
part=first
mkdir "$logs" && : >"$logs/results"
unset XROCE_TEST_AGAIN
. scripts/check-run.sh

# judged CHECK... WANT: the counts after this check alone.
judged() {
	local want=${*: -1}

	: >"$logs/results"
	"${@:1:$#-1}" >/dev/null
	[ "$(counts)" = "$want" ] || { note "$(counts), not $want"; return 1; }
}
# says TEXT [STATUS]: a program.
says() { printf '#!/bin/sh\ncat <<END\n%s\nEND\nexit %s\n' "$1" "${2:-0}" >"$work/program" && chmod +x "$work/program"; }

runner__step_is_one_result() {
	judged step a true "1 passed, 0 failed, 0 skipped" &&
		judged step a false "0 passed, 1 failed, 0 skipped" &&
		bound=1 judged step a sleep 100 "0 passed, 1 failed, 0 skipped"
}

runner__shell_test_counts_lines() {
	says $'ok one\nok two\nskip three reason'
	judged shell_test a "$work/program" "2 passed, 0 failed, 1 skipped" || return
	says $'ok one\nnot ok two' 1
	judged shell_test a "$work/program" "1 passed, 1 failed, 0 skipped" || return
	says $'ok one' 3
	judged shell_test a "$work/program" "1 passed, 1 failed, 0 skipped" || return
	says $'nothing'
	judged shell_test a "$work/program" "0 passed, 1 failed, 0 skipped"
}

runner__cmocka_reports_what_it_announced() {
	says $'[==========] Running 2 test(s).\n[       OK ] a\n[       OK ] b\n[==========] 2 test(s) run.'
	judged cmocka a "$work/program" "2 passed, 0 failed, 0 skipped" || return
	says $'[==========] Running 2 test(s).\n[       OK ] a' 139
	judged cmocka a "$work/program" "1 passed, 1 failed, 0 skipped" || return
	says $'[==========] Running 2 test(s).\n[  FAILED  ] a\n[  SKIPPED ] b
[==========] 2 test(s) run.\n[  FAILED  ] a' 1
	judged cmocka a "$work/program" "0 passed, 1 failed, 1 skipped" || return
	judged cmocka a "$work/not-built" "0 passed, 1 failed, 0 skipped"
}

# In parts with interfaces, if that is allowed, and no more of them.
runner__runs_again_what_failed() {
	local once="[ -e $work/ran ] && echo ok a && exit 0; : >$work/ran; echo not ok a; exit 1"

	: >"$logs/again"
	rm -f "$work/ran"
	single=first XROCE_TEST_AGAIN=1 judged shell_test a sh -c "$once" \
		"1 passed, 0 failed, 0 skipped" && grep -qx a "$logs/again" || return
	rm -f "$work/ran"
	single=first XROCE_TEST_AGAIN=1 judged shell_test b sh -c "$once" \
		"0 passed, 1 failed, 0 skipped" || return
	: >"$logs/again"
	rm -f "$work/ran"
	single=other XROCE_TEST_AGAIN=1 judged shell_test a sh -c "$once" \
		"0 passed, 1 failed, 0 skipped" || return
	[ ! -s "$logs/again" ]
}

runner__pool_loses_no_result() {
	local i

	: >"$logs/results"
	for i in 1 2 3 4 5 6 7 8 9; do
		pool step "p$i" test "$i" -ne 5
	done >/dev/null
	part=second
	pool step other true >/dev/null
	pool_drain
	[ "$(counts first)" = "8 passed, 1 failed, 0 skipped" ] &&
		[ "$(counts second)" = "1 passed, 0 failed, 0 skipped" ] &&
		[ "$(counts)" = "9 passed, 1 failed, 0 skipped" ]
}

runner__closes_with_the_sum() {
	: >"$logs/results"
	step good true >/dev/null
	(summary first) >"$work/good" || show good || return
	[ "$(tail -n 1 "$work/good")" = "1 passed, 0 failed, 0 skipped" ] || show good || return
	part=second
	step bad false >/dev/null
	! (summary first second) >"$work/bad" || show bad || return
	grep -qx 'first    1 passed, 0 failed, 0 skipped' "$work/bad" && grep -q '^    bad' "$work/bad" &&
		[ "$(tail -n 1 "$work/bad")" = "1 passed, 1 failed, 0 skipped" ] || show bad || return
	: >"$logs/results"
	! (summary first) >"$work/none" # nothing passed
}

run_cases
