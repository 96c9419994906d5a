#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# MADs from QP 1 to QP 1 of processes that have their interfaces alone: within one process, and
# between two namespaces, both ways at once.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# within FAMILY ADDRESS
within() {
	local gid
	gids_for "$1" || return
	gid=$gid_a
	on_a "$TOOLS/mads" -s 0x01064000 -c "0x01064000@$2" -n 300 -f $DEV_A "$gid" >"$WORK/within.out" 2>&1 ||
		{ fail "it ended with $?"; show within; }
	need_line within '^place 0x[1-9a-f]'
	need_line within '^service 0x1064000: bound$'
	need_line within '^asked 300, repeated 0, served 300$'
}

serving() { grep -q ready "$WORK/$1.out"; }

# between FAMILY ADDRESS-A ADDRESS-B: each serves what the other asks for.
between() {
	local server
	gids_for "$1" || return
	start_on server a "$TOOLS/mads" -w -s "0x01064000@$2" $DEV_A "$gid_a"
	server=$child
	wait_until 10 serving server || { fail "no server"; show server; return; }
	on_b "$TOOLS/mads" -s 0x01114001 -c "0x01064000@$2" -n 1000 $DEV_B "$gid_b" >"$WORK/client.out" 2>&1 ||
		{ fail "the client ended with $?"; show client; }
	need_line client '^asked 1000, repeated [0-9]+, served 0$'
	stop "$server"
	need_line server '^asked 0, repeated 0, served 1[0-9]{3}$'
}

run_case within_v4 within v4 $IP4_A
run_case within_v6 within v6 $IP6_A
run_case between_v4 between v4 $IP4_A
run_case between_v6 between v6 $IP6_A
finish_cases
