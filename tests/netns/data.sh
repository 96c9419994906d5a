#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long native XROCE_XDP=native
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long shared XROCE_TEST_BROKER=1
# tier: long sockets XROCE_PORT=sockets
#
# Data of every kind, every byte and completion judged (vdata.c): RC, UC, UD; two processes and
# loopback to the same GID; polling and events; memory that pages on demand.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# data TRANSPORT FAMILY MTU ROUNDS SEED [OPTION...]
data() {
	local t=$1 family=$2 mtu=$3 rounds=$4 seed=$5
	shift 5
	gids_once "$family" || return
	keep=1 client_server 18600 90 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t "$t" -m "$mtu" -n "$rounds" -s "$seed" "$@" -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t "$t" -m "$mtu" -n "$rounds" -s "$seed" "$@" $IP4_A || return
	need_line server "^vdata: $t seed $seed side 0: [0-9]+ messages, [0-9]+ bytes right"
	need_line client "^vdata: $t seed $seed side 1: [0-9]+ messages, [0-9]+ bytes right"
	has_bpf_maps || return 0
	need_least "packets by xroce_rx" "$(kept_packets server)" "$rounds"
	need_equal "packets with a wrong ICRC" "$(kept server xroce_eng_drop icrc)" 0
	drop_maps server
}

tx_packets() { ip -n $NS_A -s -o link show $IF_A | sed -n 's/.*TX: [^\\]*\\ *[0-9]* *\([0-9]*\).*/\1/p'; }

# Both sides in one process, over the interface's own GID: none of it may appear on the wire (except
# the kernel's own IPv6 packets).
loopback() {
	local t=$1 family=$2 rounds=$3 before after
	shift 3
	gids_once "$family" || return
	before=$(tx_packets)
	start_on loop a "$TOOLS/vdata" -L -d $DEV_A -g "$gid_a" -t "$t" -m 4096 -n "$rounds" -s 11 "$@"
	finish "$child" 60 || { fail "vdata -L ends with $?"; show loop; }
	after=$(tx_packets)
	need_line loop "^vdata: $t seed 11 side 0: [0-9]+ messages, [0-9]+ bytes right"
	need_line loop "^vdata: $t seed 11 side 1: [0-9]+ messages, [0-9]+ bytes right"
	[ -n "$before" ] && [ $((after - before)) -lt "$rounds" ] || fail "$((after - before)) packets went out on $IF_A"
}

# Each transport, family, way of waiting and kind of memory once; the rest are their combinations.
core_cases=(rc_1024_v4 uc_4096_v6 ud_256_one_cq_v4 rc_events_v6 ud_events_one_cq_v6)
core_cases+=(uc_loopback_v4 rc_loopback_events_v6 rc_on_demand_v4 uc_whole_space_v4)
for family in v4 v6; do
	for t in rc uc ud; do
		tier_case ${t}_1024_$family data $t $family 1024 150 1
		tier_case ${t}_4096_$family data $t $family 4096 150 2
		tier_case ${t}_256_one_cq_$family data $t $family 256 60 3 -o -x 20000
		tier_case ${t}_events_$family data $t $family 1024 150 4 -e
		tier_case ${t}_events_one_cq_$family data $t $family 4096 100 5 -e -o
		tier_case ${t}_loopback_$family loopback $t $family 100
		tier_case ${t}_loopback_events_$family loopback $t $family 60 -e
		tier_case ${t}_on_demand_$family data $t $family 1024 60 6 -D
		tier_case ${t}_whole_space_$family data $t $family 4096 60 7 -A
	done
done
finish_cases
