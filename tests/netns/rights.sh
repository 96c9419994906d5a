#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Rights of regions, memory windows and QPs between two hosts (rights.c): every combination against
# every operation, with regions on demand and with relaxed ordering too. tests/verbs has the rights
# of one process, and the refused binds.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# need_both WHAT TRIED ALLOWED: both ends say so.
need_both() {
	need_line server "^$1: $2 tried, $3 allowed\$"
	need_line client "^$1: $2 tried, $3 allowed\$"
}

rights() {
	gids_for "$1" || return
	client_server 18650 120 "$TOOLS/rights" $DEV_A "$gid_a" -- "$TOOLS/rights" $DEV_B "$gid_b" $IP4_A || return
	# 3 kinds, 20 valid regions (16 with local write, 4 without), 16 QPs, 7 operations. Of the
	# 20, 8 have the WRITE right, with and without immediate, and for ATOMIC WRITE; 8 have the
	# right for both atomics; 10 for READ, and 10 for FLUSH; half of the 16 QPs have it
	need_both rights $((3 * 20 * 16 * 7)) $((3 * (3 * 8 + 2 * 8 + 10 + 10) * 8))
	# 2 types, 2 regions, 8 windows; 4 have an operation's right, and none the FLUSH right
	need_both windows $((2 * 2 * 8 * 16 * 7)) $((2 * 2 * 6 * 4 * 8))
}
run_case rights_v4 rights v4
run_case rights_v6 rights v6
finish_cases
