#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Bulk data in datagrams, on a path that loses nothing: all of it arrives, from one queue pair to
# one or to many, also when the receiver stands still meanwhile; and it leaves in batches, also
# when the program keeps its CQ armed while it polls it, as UCX does.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
PORT=18530

# The server's and the client's counters say the same: what left has arrived, and nothing of it
# was dropped.
nothing_is_lost() {
	local from=$1 to=$2 taken
	taken=$(($(kept "$to" xroce_eng_stat rx_packets) - $(kept "$to" xroce_eng_stat loopback_packets)))
	need_equal "packets that $to took" "$taken" "$(kept "$from" xroce_eng_stat tx_packets)"
	need_equal "datagrams to $to that found no receive" "$(kept "$to" xroce_eng_drop no_receive)" 0
	need_equal "frames to $to lost in its ring" "$(kept "$to" xroce_sock rx_ring_full)" 0
	need_equal "frames to $to lost for want of a buffer" "$(kept "$to" xroce_sock rx_dropped)" 0
}

# Packets that came with others in one frame.
in_batches() { kept server xroce_rx super_segments; }
has_batches() { local n; n=$(in_batches) && [ "$n" -ge "$1" ]; }
has_batches_or_gone() { has_batches "$1" || is_gone_or_zombie "$2"; }

# many BATCHED OPTION...: until BATCHED packets came with others in one frame. A sender that finds
# no processor when it has posted sends packets one by one for a while.
many() {
	local batched=$1 server client
	shift
	gids_once v4 || return
	: >"$WORK/go"
	start_on server a "$TOOLS/ud_bulk" -g "$gid_a" -k "$WORK/go" "$@" $DEV_A
	server=$child
	wait_until 10 listens_or_gone a $PORT "$server" || { fail "the server does not listen"; show server; return; }
	drop_maps server
	keep_maps "$server" server || { fail "the server has no maps of ours"; show server; return; }
	start_on client b "$TOOLS/ud_bulk" -g "$gid_b" -k "$WORK/go" "$@" $DEV_B $IP4_A
	client=$child
	wait_until 10 has_batches_or_gone "$batched" "$client"
	rm -f "$WORK/go"
	finish "$client" 120 || { fail "the client ended with $?"; show client; stop "$server"; show server; return; }
	finish "$server" 20 || { fail "the server ended with $?"; show server; return; }
	need_equal "datagrams that found no receive" "$(kept server xroce_eng_drop no_receive)" 0
	need_equal "frames lost in the ring" "$(($(kept server xroce_sock rx_ring_full) + $(kept server xroce_sock rx_dropped)))" 0
	need_least "packets in batches" "$(in_batches)" "$batched"
	need_least "times that the server said what it can take" "$(kept server xroce_eng_stat flow_answers)" 1
}

# start_ucx NAME NS ARG...
start_ucx() {
	local name=$1 ns=$2 dev=$IF_A gid=$gid_a
	shift 2
	[ "$ns" = b ] && dev=$IF_B && gid=$gid_b
	start_on "$name" "$ns" env UCX_TLS=ud_verbs UCX_NET_DEVICES=xroce_$dev:1 UCX_IB_GID_INDEX="$gid" \
		UCX_WARN_UNUSED_ENV_VARS=n ucx_perftest "$@"
}

has_maps() { map_id "$1" xroce_eng_drop; }
# keep_meanwhile PID TAG: of a process that runs, which is stopped for a moment
keep_meanwhile() {
	local rc
	kill -STOP "$1" && keep_maps "$1" "$2"
	rc=$?
	kill -CONT "$1"
	return $rc
}

# ucx TEST BYTES MESSAGES: UCX's own window is wider than one of ours
ucx() {
	local server client
	gids_once v4 || return
	start_ucx server b -t "$1" -s "$2" -n "$3"
	server=$child
	wait_until 10 listens b 13337 || { fail "the server does not listen"; show server; return; }
	start_ucx client a -t "$1" -s "$2" -n "$3" $IP4_B
	client=$child
	drop_maps server
	drop_maps client
	wait_until 10 has_maps "$server" && wait_until 10 has_maps "$client" &&
		keep_meanwhile "$server" server && keep_meanwhile "$client" client ||
		fail "the maps are gone"
	finish "$client" 120 || { fail "the client ended with $?"; show client; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	need_line client "^Final: +$3 " || return
	nothing_is_lost client server
	nothing_is_lost server client
	need_least "packets in batches" "$(in_batches)" 2
}

core_cases=(one_armed several)
tier_case one many 2000
tier_case one_armed many 2000 -a
tier_case one_small many 2000 -a -s 64
tier_case one_drawn many 0 -r
tier_case one_stopped many 0 -r -z 20
# all datagrams under way to each of them are in one ring
tier_case several many 0 -r -q 32 -n 1500 -z 20
tier_case several_in_turn many 0 -q 8 -b 1 -n 4000 -z 20
if command -v ucx_perftest >/dev/null; then
	run_case ucx_64k ucx tag_bw 65536 3000
	run_long_case ucx_64 ucx tag_bw 64 100000
	run_long_case ucx_put ucx ucp_put_bw 65536 3000
	run_long_case ucx_am ucx ucp_am_bw 65536 3000
	run_long_case ucx_64m ucx tag_bw 67108864 5
else
	for name in ucx_64 ucx_64k ucx_put ucx_am ucx_64m; do
		echo "skip $name ucx_perftest is not installed (package ucx-utils)"
	done
fi
finish_cases
