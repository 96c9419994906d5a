#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# A peer that completes connections and then breaks the protocol's rules (rogue.c; its kinds are in
# rogue.h). Each request of ours ends with the status of the rule, a QP survives where it must, its
# memory is unchanged, and other QPs of the process are not disturbed (victim.c).
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

rogue() {
	local kinds server
	gids_for v4 || return
	kinds=$(grep -cE '^	X\(' "$here/tests/netns/rogue.h")
	start_on server a "$TOOLS/victim" -d $DEV_A -g "$gid_a"
	server=$child
	wait_until 10 listens_or_gone a 18662 "$server"
	start client b "$TOOLS/rogue" $IP4_B $IP4_A
	finish "$child" 120 || { fail "the peer ended with $?"; show client; }
	finish "$server" 10 || { fail "the victim ended with $?"; show server; }
	need_line server "^victim: $kinds kinds$"
}

run_case rogue rogue
finish_cases
