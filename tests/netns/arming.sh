#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# A readable channel has an event, however it is read, and an arming lasts until a completion:
# arming.c.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

PEER_QPN=0x4711

# One wake-up a round, by XDP: a thread that waits in poll(2) is woken for each armed completion,
# and for nothing else.
unsignaled() {
	gids_for "$2" || return
	keep=1 client_server 18622 60 "$TOOLS/arming" unsignaled "$1" $DEV_A "$gid_a" 20 -- \
		"$TOOLS/arming" unsignaled "$1" $DEV_B "$gid_b" 20 $IP4_A || return
	need_line server '^arming: 20 rounds$'
	need_equal "xroce_rx.cq_wakeups" "$(kept server xroce_rx cq_wakeups)" 20
	drop_maps server
}

said_or_gone() { grep -qE "$2" "$WORK/$1.out" || is_gone_or_zombie "$3"; }

# tell QPN PSN: one SEND to the program, from a peer that is none
tell() { in_b "$TOOLS/tagged" -i $IF_B -s $MAC_B -d $MAC_A -f $IP4_B -t $IP4_A -q "$1" -P "$2" || fail "tagged failed"; }

stray() {
	local qpn
	gids_for v4 || return
	start_on stray a "$TOOLS/arming" stray "$1" $DEV_A "$gid_a" $IP4_B $PEER_QPN
	wait_until 10 said_or_gone stray '^qpn ' "$child"
	qpn=$(sed -n 's/^qpn //p' "$WORK/stray.out")
	tell "$qpn" 9 && wait_until 20 said_or_gone stray '^extra event$' "$child"
	tell "$qpn" 10
	finish "$child" 20 || { fail "arming ended with $?"; show stray; return; }
	need_line stray '^message$'
}

run_case unsignaled_blocking unsignaled blocking v4
run_case unsignaled_nonblocking unsignaled nonblocking v4
run_case unsignaled_v6 unsignaled blocking v6
run_case stray_blocking stray blocking
run_case stray_nonblocking stray nonblocking
finish_cases
