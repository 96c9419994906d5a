#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Rights of regions and QPs between two hosts (rights.c): every combination against every operation,
# with regions on demand and with relaxed ordering too. tests/verbs has those of one process, with
# memory windows.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

rights() {
	gids_for "$1" || return
	client_server 18650 120 "$TOOLS/rights" $DEV_A "$gid_a" -- "$TOOLS/rights" $DEV_B "$gid_b" $IP4_A || return
	# 3 kinds, 10 regions that may be, 8 QPs, 4 operations; of the 10, 4, 5, 4 and 4 have the
	# right that an operation needs, and of the 8 QPs half
	need_line server '^rights: 960 tried, 204 allowed$'
	need_line client '^rights: 960 tried, 204 allowed$'
}
run_case rights_v4 rights v4
run_case rights_v6 rights v6
finish_cases
