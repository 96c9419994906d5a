#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long native XROCE_XDP=native
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long shared XROCE_TEST_BROKER=1
#
# No wake-up is lost: cq_notify_stress.c, and the two examples of ibv_get_cq_event(3) as they are
# (cq_example.c), over a real path.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

stress() {
	local family=$1 hops=$2 seed=$3
	gids_for "$family" || return
	keep=1 client_server 18620 100 "$TOOLS/cq_notify_stress" -d $DEV_A -g "$gid_a" -n "$hops" -s "$seed" -- \
		"$TOOLS/cq_notify_stress" -d $DEV_B -g "$gid_b" -n "$hops" -s "$seed" $IP4_A || return
	need_line server "^cq_notify_stress: seed $seed: [0-9]+ events for [0-9]+ completions"
	grep '^cq_notify_stress' "$WORK/server.out" "$WORK/client.out" | sed 's/.*cq_notify_stress/#/'
	# Readable means that there is an event.
	awk '/^cq_notify_stress/ && $11 { exit 1 }' "$WORK/server.out" "$WORK/client.out" ||
		fail "the descriptor was readable without an event"
	# The scheduler decides the number: threads that are awake already are not woken. arming.sh
	# counts the required ones.
	need_least "xroce_rx.cq_wakeups" "$(kept server xroce_rx cq_wakeups)" 1
	drop_maps server
}

example() {
	gids_for v4 || return
	client_server 18621 60 "$TOOLS/cq_example" "$1" $DEV_A "$gid_a" 2000 -- "$TOOLS/cq_example" "$1" $DEV_B "$gid_b" 2000 $IP4_A || return
	need_line server '^cq_example: 2000 messages$'
}

run_case example_blocking example blocking
run_long_case example_nonblocking example nonblocking
run_case stress_v6 stress v6 2000 2
run_long_case stress_v4 stress v4 "${XROCE_WAKE_HOPS:-40000}" 1
finish_cases
