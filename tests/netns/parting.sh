#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long shared XROCE_TEST_BROKER=1
# tier: long sockets XROCE_PORT=sockets
#
# Packets that arrived before a QP fails, is reset or destroyed are taken, and answered, first
# (parting.c). Threads that wait while the program exits get nothing (exit_waiting.c). A process
# ends with its last thread (main_exits.c).
# parting.sh BUILD
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

parting() {
	local how
	gids_for v4 || return
	client_server 18670 100 "$TOOLS/parting" -d $DEV_A -g "$gid_a" -- "$TOOLS/parting" -d $DEV_B -g "$gid_b" $IP4_A || return
	for how in 'sender to ERR' 'receiver to ERR' 'receiver to RESET' 'receiver destroys'; do
		need_line client "^$how: 25 of 25$"
	done
}

exits_while_waiting() {
	local i
	for ((i = 0; i < 20; i++)); do
		start exits a "$XROCE" run --dev $IF_A -- "$TOOLS/exit_waiting" -d $DEV_A
		finish "$child" 20 || { fail "run $i ended with $?"; show exits; return; }
		need_line exits '^exits$'
	done
}

# The main thread calls pthread_exit(): the process ends with its last thread.
main_exits() {
	start exits a "$XROCE" run --dev $IF_A -- "$TOOLS/main_exits" -d $DEV_A
	finish "$child" 20 || { fail "it ended with $?"; show exits; return; }
	need_equal "what it says" "$(cat "$WORK/exits.out")" $'200 messages\nexit handler'
}

run_case parting parting
run_case exits_while_waiting exits_while_waiting
run_case main_exits main_exits
finish_cases
