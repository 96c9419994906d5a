#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Programs on librdmacm that take their time to answer, and what their peer reads on the wire
# (mad_peer.c, which is no device): a MRA as soon as it repeats itself, the bytes of ECE; and the
# end of a program that has the interface alone.
. "$(dirname "$0")/lib/case.sh"
netns_pair
export LD_LIBRARY_PATH=$BUILD/lib

said() { grep -qx "$2" "$WORK/$1.out"; }

# delayed WHAT PEER-CASE [PORT]: the program does it on SIGUSR1, after its peer got an MRA.
delayed() {
	local program peer
	if [ "$1" = accepts ]; then
		start program a timeout 60 "$TOOLS/cm_slow" $IP4_A "$1"
		program=$child
		wait_until 20 said program listening || { fail "nobody listens"; show program; }
	fi
	start peer b "$TOOLS/mad_peer" $IP4_B $IP4_A "${@:2}"
	peer=$child
	wait_until 5 said peer ready || { fail "no peer"; show peer; }
	if [ "$1" = establishes ]; then
		start program a timeout 60 "$TOOLS/cm_slow" $IP4_B "$1"
		program=$child
	fi
	wait_until 25 said peer delayed || { fail "its peer was not told to wait"; show peer; show program; }
	# of `timeout`, the program is the child
	pkill -USR1 -P "$program"
	finish "$program" 30 || { fail "the program ended with $?"; show program; }
	finish "$peer" 30 || { fail "its peer ended with $?"; show peer; }
}

# A program with a request pending calls exit(3) and destroys nothing: its peer is notified. (One
# that is
# connected: cm_api.sh.)
leaves() {
	local program peer
	start program a timeout 60 "$TOOLS/cm_slow" $IP4_A hesitates
	program=$child
	wait_until 20 said program listening || { fail "nobody listens"; show program; }
	start peer b "$TOOLS/mad_peer" $IP4_B $IP4_A waits 7480
	peer=$child
	wait_until 25 said program asked || { fail "it is not asked"; show program; show peer; }
	wait_until 25 said peer asked || { fail "its peer has no answer"; show peer; }
	pkill -USR1 -P "$program"
	finish "$program" 30 || { fail "the program ended with $?"; show program; }
	finish "$peer" 30 || { fail "its peer was not told"; show peer; }
}

run_case accepts delayed accepts asks 7480
run_case establishes delayed establishes answers
run_case leaves leaves
finish_cases
