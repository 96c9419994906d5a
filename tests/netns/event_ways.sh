#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long native XROCE_XDP=native
# tier: long shared XROCE_TEST_BROKER=1
#
# Completion events over a real path and within one process: exactly one where one is due, none
# where none is, for each operation and way of waiting (event_matrix.c); and 8 CQs on one channel
# that nothing but events keeps going (event_circle.c; XROCE_CIRCLE_MESSAGES=1000000 for long).
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
messages=${XROCE_CIRCLE_MESSAGES:-10000}

# Readable means that there is an event (docs/events.md).
never_without() {
	need_line "$1" "^$2:.* 0 readable without event\$"
}

matrix() {
	gids_for v4 || return
	client_server 18660 60 "$TOOLS/event_matrix" -d $DEV_A -g "$gid_a" -- \
		"$TOOLS/event_matrix" -d $DEV_B -g "$gid_b" $IP4_A || return
	for side in server client; do
		need_line $side '^event_matrix: [1-9][0-9]+ combinations'
		never_without $side event_matrix
	done
}

matrix_loopback() {
	gids_for v4 || return
	start_on loop a "$TOOLS/event_matrix" -L -d $DEV_A -g "$gid_a"
	finish "$child" 60 || { fail "ended with $?"; show loop; return; }
	need_equal "results" "$(grep -c '^event_matrix: [1-9][0-9]* combinations' "$WORK/loop.out")" 2
}

circle() {
	gids_for v4 || return
	client_server 18661 $((30 + messages / 1000)) \
		"$TOOLS/event_circle" -d $DEV_A -g "$gid_a" -n "$messages" "$@" -- \
		"$TOOLS/event_circle" -d $DEV_B -g "$gid_b" -n "$messages" "$@" $IP4_A || return
	for side in server client; do
		need_line $side "^event_circle: $((messages / 8 * 8)) messages"
		sed -n 's/^event_/# &/p' "$WORK/$side.out"
		never_without $side event_circle
	done
}

run_case matrix matrix
run_case matrix_loopback matrix_loopback
run_case circle_block circle -w block
run_case circle_signal circle -w signal
run_long_case circle_poll circle -w poll
run_long_case circle_edge circle -w edge
run_long_case circle_edge_solicited circle -w edge -s
finish_cases
