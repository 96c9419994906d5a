#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# librdmacm's calls and events (cm_calls.c), both families.
. "$(dirname "$0")/lib/case.sh"
netns_pair
export LD_LIBRARY_PATH=$BUILD/lib

calls() {
	start calls a timeout 30 "$TOOLS/cm_calls" "$1" "$2"
	finish "$child" 35 || { show calls; fail "it failed"; }
}

for c in fields rejected nobody_listens disconnected without_qp datagrams channels destroy_waits \
	many_at_once listener_goes synchronous forked; do
	run_case ${c}_v4 calls $IP4_A $c
done
for c in fields datagrams disconnected; do
	run_long_case ${c}_v6 calls $IP6_A $c
done

said() { grep -q "$2" "$WORK/$1.out"; }

# two SERVER CLIENT: cases of cm_calls.c, the server's in A, which says that it listens.
two() {
	local pid
	start server a timeout 30 "$TOOLS/cm_calls" $IP4_A "$1"
	pid=$child
	wait_until 10 said server listening || fail "nobody listens"
	start client b timeout 30 "$TOOLS/cm_calls" $IP4_A "$2"
	finish "$child" 35 || { show client; fail "$2 failed"; }
	finish "$pid" 35 || { show server; fail "$1 failed"; }
}
# A process that calls exit(3) while it is connected; another that rejects and exits at once.
run_case exits_v4 two is_left leaves
run_case refuses_v4 two refuses is_refused

# Ids that end at any time, from any thread.
stress() {
	start stress a timeout 100 "$TOOLS/cm_stress" $IP4_A 60 "$1"
	finish "$child" 110 || { show stress; fail "it failed, or stood still"; }
}
run_long_case stress_1 stress 1
run_long_case stress_2 stress 2

# COUNT connections at once from B to A, and their end.
hold() {
	local pid
	start server a "$TOOLS/cm_rate" serve $IP4_A
	pid=$child
	wait_until 10 said server listening || fail "nobody listens"
	start client b timeout 100 "$TOOLS/cm_rate" hold $IP4_A "$1"
	finish "$child" 110 || { show client; show server; fail "it failed"; }
	stop "$pid"
}
run_long_case hold_500 hold 500
finish_cases
