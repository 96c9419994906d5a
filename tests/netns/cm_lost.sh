#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long brokers XROCE_TEST_BROKER=1
#
# Connections of each kind, of which the cable loses one MAD after another (mad_cable.c), to which
# others forge answers, and over a bad cable: each ends as its row of cm_trials.h says.
. "$(dirname "$0")/lib/case.sh"
netns_chain
. "$(dirname "$0")/lib/cable.sh"
export LD_LIBRARY_PATH=$BUILD/lib

# trials SET SECONDS [PATIENCE [COUNT]]
trials() {
	start server a "$TOOLS/cm_trials" serve "$1" $IP4_A "${3:-1}" "${4:-1}"
	server=$child
	wait_until 20 grep -q '^ready' "$WORK/server.out" || { fail "nobody listens"; show server; }
	start client b "$TOOLS/cm_trials" connect "$1" $IP4_A "${3:-1}" "${4:-1}"
	finish "$child" "$2" || { fail "the client ended with $?"; show client; }
	kill "$server"
	finish "$server" "$2" || { fail "the server ended with $?"; show server; }
	need_no_line client '^bad'
	need_no_line server '^bad'
}
# by_cable WORD...: mad_cable with these options
by_cable() {
	[ -z "$cable" ] || stop "$cable"
	start cable p "$TOOLS/mad_cable" "$@" pa pb
	cable=$child
	wait_until 5 grep -q forwarding "$WORK/cable.out" || { fail "no cable"; show cable; }
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "no path from A to B"
}
cable_ends() {
	kill "$cable"
	finish "$cable" 5
	cable=
	need_line cable '^connections [1-9]'
}

# lost SET SECONDS COUNT [PATIENCE]
lost() {
	by_cable
	trials "$1" "$2" "${4:-1}" "$3"
	cable_ends
	need_no_line cable '^kept'
}
forged() {
	by_cable -f
	trials c 40
	cable_ends
	need_line cable ' forged [1-9]'
}
# A duplicate REP is answered by an MRA: if the RTU after it is lost the next REP comes after half a
# minute.
bad_cable() {
	cable_with -s "$1" -l 100 -u 200 -r 200
	trials c 240 12 10
	cable_did dropped duplicated reordered
}

run_case once lost c 30 4
run_case forged forged
run_long_case often lost l 150 1
run_long_case storm lost c 120 20 6
for seed in 1 2 3; do
	run_long_case bad_cable_$seed bad_cable $seed
done
finish_cases
