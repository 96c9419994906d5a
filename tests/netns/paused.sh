#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# A process that does not run for longer than its time-outs does not take its own silence for its
# peer's. The pause of 2 s is the subject of the test; no other wait is timed.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

gids_for v4 || netns_die "no GID"

survives_its_own_silence() {
	keep=1 client_server 18633 60 "$TOOLS/paused" -d $DEV_A -g "$gid_a" -- \
		"$TOOLS/paused" -d $DEV_B -g "$gid_b" $IP4_A || return
	need_line client '^paused: 3 rounds$'
	# it asked for nothing twice
	need_equal "repeated requests" "$(kept server xroce_eng_stat duplicate_requests)" 0
	drop_maps server
}

run_case survives_its_own_silence survives_its_own_silence
finish_cases
