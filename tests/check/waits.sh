#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The statuses of the waits that the tests in namespaces share (scripts/netns.sh). waits.sh [BUILD]
. "$(dirname "$0")/../ship/lib/case.sh"

# returns STATUS COMMAND...: what the commands return to a script that has sourced netns.sh.
# `is_third` succeeds from its third call on.
returns() {
	local want=$1 rc
	shift
	bash -c '. scripts/netns.sh
		n=0
		is_third() { [ $((++n)) -ge 3 ]; }
		eval "$1"' bash "$*" >"$work/out" 2>&1
	rc=$?
	[ $rc -eq "$want" ] || { note "$*: $rc, not $want"; show out; }
}

waits__condition_that_comes_later() {
	returns 0 wait_until 5 is_third && returns 0 wait_at_most 5 is_third
}

waits__condition_that_never_comes() {
	returns 1 'netns_last=$SECONDS; wait_until 5 false' && returns 1 wait_at_most 0 false
}

waits__status_of_a_child() {
	local finish
	for finish in finish finish_at_most; do
		returns 3 "(sleep 0.2; exit 3) & $finish \$! 5" &&
			returns 0 "sleep 0.2 & $finish \$! 5" || return
	done
}

waits__child_that_does_not_exit() {
	returns 124 'netns_last=$SECONDS; sleep 100 & finish $! 5' &&
		returns 124 'sleep 100 & finish_at_most $! 0'
}

run_cases
