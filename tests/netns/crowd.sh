#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long sockets XROCE_CASES=core XROCE_PORT=sockets
#
# Many short-lived processes that come to an interface at the same moment, as the first and as later
# ones: the first exits while others are being admitted. All must succeed. XROCE_CROWD,
# XROCE_CROWD_ROUNDS: how many, and how many times.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
install -m 755 "$TOOLS/cm_crowd" "$OWN/bin"

CROWD=${XROCE_CROWD:-16}
ROUNDS=${XROCE_CROWD_ROUNDS:-5}
index_a=$(ip -n $NS_A -o link show $IF_A | cut -d: -f1)
SOCKET=/run/xroce/$(stat -L -c %i /run/netns/$NS_A)-$index_a.sock

# A server on B, which has that interface alone, unless it is by UDP sockets; its pid in $server.
begin_server() {
	local share=never
	has_bpf_maps || share=auto
	start server b "$XROCE" run --dev $IF_B --share $share -- "$OWN/bin/cm_crowd" serve $IP4_B
	server=$child
	wait_until 20 grep -q '^ready' "$WORK/server.out" || { fail "no server"; show server; }
}

nothing_is_left() { xdp_off $NS_A $IF_A && [ ! -e "$SOCKET" ]; }

# crowds ROUNDS WORDS...: WORDS stand before the command
crowds() {
	local round i rc pids rounds=$1
	shift
	begin_server || return
	for ((round = 1; round <= rounds; round++)); do
		pids=()
		for ((i = 0; i < CROWD; i++)); do
			start crowd$i a "$@" "$OWN/bin/xroce" run --dev $IF_A -- \
				"$OWN/bin/cm_crowd" connect $IP4_B 1 1 10
			pids+=("$child")
		done
		for ((i = 0; i < CROWD; i++)); do
			finish "${pids[i]}" 100
			rc=$?
			[ $rc -eq 0 ] || { fail "round $round: number $i of $CROWD ended with $rc"; show crowd$i; }
			need_no_line crowd$i '^xroce: '
		done
		[ ! -s "$WORK/case.notes" ] || break
	done
	is_gone_or_zombie "$server" && { fail "the server has ended"; show server; }
	stop "$server"
}

# No broker except the ones started on demand; the last one exits and leaves nothing.
crowd_of_root() {
	crowds "$1"
	wait_until 20 nothing_is_left || fail "left: $(ls "$SOCKET" 2>&1)"
}

# `xroce serve` while the broker of a crowd ends
serve_after_crowd() {
	local i
	begin_server || return
	for ((i = 0; i < 2; i++)); do
		start crowd$i a "$OWN/bin/xroce" run --dev $IF_A -- "$OWN/bin/cm_crowd" connect $IP4_B 1 1 10
		crowd[i]=$child
	done
	for ((i = 0; i < 2; i++)); do
		finish "${crowd[i]}" 60 || { fail "number $i ended with $?"; show crowd$i; }
	done
	stop "$server"
	wait_until 20 closed || fail "the path stays"
	serve a $IF_A || return
	stop "$broker"
}
closed() { [ ! -e "$SOCKET" ]; }

crowd_of_user() {
	serve a $IF_A || return
	crowds $ROUNDS "${NOBODY[@]}"
	stop "$broker"
}

# connect_often NS DEVICE: 16 threads of one process, 20 connections each, to one server
connect_often() {
	begin_server || return
	start often "$1" "$XROCE" run --dev "$2" -- "$OWN/bin/cm_crowd" connect $IP4_B 16 20 10
	finish "$child" 130 || { fail "the client ended with $?"; show often; }
	need_line often '^cm_crowd: 320 connections$'
	is_gone_or_zombie "$server" && { fail "the server has ended"; show server; }
	stop "$server"
}

run_case connect_often_between connect_often a $IF_A
run_case crowd_root_once crowd_of_root 1
run_long_case crowd_root crowd_of_root $ROUNDS
run_long_case crowd_then_serve serve_after_crowd
run_long_case crowd_user crowd_of_user
finish_cases
