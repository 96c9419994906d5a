#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Single frames that look like super-packets, from a stranger and in the peer's name, at a busy
# queue pair: XDP judges them by the first packet, and if that packet's ICRC is wrong the engine
# drops the rest.
. "$(dirname "$0")/lib/case.sh"
netns_pair 9000

gids_for v4 || netns_die "no GID"
STRANGER=10.77.0.99
FRAMES=400 SEGMENTS=60

begin() {
	start_on server a ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 100000000
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start_on client b ibv_rc_pingpong -d $DEV_B -g "$gid_b" -n 100000000 $IP4_A
	client=$child
	wait_until 10 packets_flow 1000 || { fail "no packets flow"; show server; show client; return; }
	qpn=$(bpftool map dump id "$(map_id "$server" xroce_qp)" | field qpn)
	need_least QPN "$qpn" 2
}
packets_flow() { local n; n=$(counter "$server" xroce_eng_stat rx_packets) && [ "$n" -gt "$1" ]; }
unharmed() {
	local n
	n=$(counter "$server" xroce_eng_stat rx_packets) || fail "the server's maps are gone"
	wait_until 10 packets_flow $((n + 1000)) || { fail "the exchange has stopped"; show server; show client; }
}
tx_dropped() { in_b awk -v dev=$IF_B: '$1 == dev { print $13 }' /proc/net/dev; }
reaches() { [ "$(counter "$server" "$1" "$2")" -ge "$3" ]; }

# attack MAP FIELD EACH OPTION...: the field moves by EACH for each frame that the interface has
# taken, and no further.
attack() {
	local map=$1 name=$2 each=$3 before lost want
	shift 3
	before=$(counter "$server" "$map" "$name") && lost=$(tx_dropped) ||
		{ fail "no such counter"; return; }
	in_b "$TOOLS/supers" -i $IF_B -D $MAC_A -T $IP4_A -q "$qpn" -n $FRAMES "$@" >"$WORK/supers.out" 2>&1 ||
		{ fail "supers ends with $?"; show supers; return; }
	# what the veth had no room for, of the pingpong or of these: seldom any
	want=$((before + (FRAMES - $(tx_dropped) + lost) * each))
	wait_until 10 reaches "$map" "$name" "$want"
	need_least "$map $name" "$(counter "$server" "$map" "$name")" "$want"
	[ "$(counter "$server" "$map" "$name")" -le $((before + FRAMES * each)) ] || fail "$name: more than were sent"
	unharmed
}

# As one packet is: dropped in XDP, a frame for a frame.
stranger() {
	local icrc
	icrc=$(counter "$server" xroce_eng_drop icrc)
	attack xroce_drop peer 1 -S $STRANGER "$@"
	need_equal "packets that came to the engine" "$(counter "$server" xroce_eng_drop icrc)" "$icrc"
	need_equal "rx_dropped of the QP" "$(counter "$server" xroce_qp rx_dropped)" "$(counter "$server" xroce_rx dropped)"
}

# The packets after the first are right: without it they would reach the queue pair.
in_peers_name() { attack xroce_eng_drop icrc $SEGMENTS -S $IP4_B -s $SEGMENTS -w; }

run_case begin begin
run_case stranger_plain stranger -w -l 4096
run_case stranger_super stranger -s $SEGMENTS
run_case stranger_long_segments stranger -s 3 -l 2048
run_case in_the_peers_name in_peers_name
stop "$client"
stop "$server"
finish_cases
