#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long native XROCE_XDP=native XROCE_WORDS_JOBS=60
# tier: long shards XROCE_TEST_QUEUES=2 XROCE_WORDS_JOBS=60
# tier: long shared XROCE_TEST_BROKER=1 XROCE_WORDS_JOBS=60
# tier: long sockets XROCE_PORT=sockets XROCE_WORDS_JOBS=60
#
# The cases of words.sh, over a cable that loses, repeats and reorders packets: packets in the
# reorder buffer, retransmissions; and duplicates change nothing.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/cable.sh"
netns_chain 4500
jobs=${XROCE_WORDS_JOBS:-10}
seed=${XROCE_WORDS_SEED:-1}
did="^words: $jobs jobs"

bad_cable() {
	cable_with -s "$seed" -l 20 -u 100 -r 200
	gids_once v4 || return
	client_server 18660 100 "$TOOLS/words" -l -d $DEV_A -g "$gid_a" -n "$jobs" -s "$seed" "$@" -- \
		"$TOOLS/words" -l -d $DEV_B -g "$gid_b" -n "$jobs" -s "$seed" "$@" $IP4_A || return
	need_line server "$did"
	need_line client "$did"
	cable_did dropped duplicated reordered
}

run_case bad_cable bad_cable
run_long_case bad_cable_thread bad_cable -t
finish_cases
