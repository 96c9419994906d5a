#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long native XROCE_XDP=native XROCE_CASES=core
#
# The five unmodified pingpongs between two namespaces: both address families, sleeping and polling,
# small and large, two path MTUs. All but the XRC one look at their buffers (-c); that every packet
# came by our XDP program, and none was refused, is seen in the counters.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/pinned_counters.sh"
netns_pair 4500

# Drops that may happen in a correct run: packets that arrive after the queue pair was destroyed,
# and answers to retransmissions.
harmless='qp_unknown|qp_state|psn_duplicate|unexpected_response'

# by_xdp PACKETS: at least PACKETS reached the server, and none was refused.
by_xdp() {
	local name bad=
	pinned_read server || return
	need_least "packets by xroce_rx" "$(pinned_value_packets)" "$1"
	for name in "${!pinned_value[@]}"; do
		[[ $name =~ ^xroce_(eng_)?drop\. && ${pinned_value[$name]} != 0 ]] || continue
		[[ ${name#*.} =~ ^($harmless)$ ]] || bad+=" ${name#*.} ${pinned_value[$name]}"
	done
	[ -z "$bad" ] || fail "packets were refused:$bad"
	drop_maps server
}

# pingpong TOOL FAMILY SIZE ITERATIONS PACKETS-A-MESSAGE [OPTION...]
pingpong() {
	local tool=$1 family=$2 size=$3 n=$4 packets=$5 bytes side
	shift 5
	gids_once "$family" || return
	keep=1 client_server 18515 60 "$tool" -d $DEV_A -g "$gid_a" -s "$size" -n "$n" -c "$@" -- \
		"$tool" -d $DEV_B -g "$gid_b" -s "$size" -n "$n" -c "$@" $IP4_A || return
	bytes=$((size * n * 2))
	for side in server client; do
		need_line $side "^$bytes bytes in "
		need_line $side "^$n iters in "
		need_no_line $side 'invalid data'
	done
	by_xdp $((n * packets)) || return
	need_least "xroce_rx.redirected_bytes" "${pinned_value[xroce_rx.redirected_bytes]:-}" $((bytes / 2))
	need_least "xroce_eng_stat.rx_packets" "${pinned_value[xroce_eng_stat.rx_packets]:-}" $((n * packets))
}

# xrc FAMILY SIZE ITERATIONS PACKETS-A-MESSAGE [OPTION...]: it says `success` and does not look at
# its buffers; -c is its number of clients.
xrc() {
	local family=$1 size=$2 n=$3 packets=$4 side
	shift 4
	gids_once "$family" || return
	keep=1 client_server 18515 60 ibv_xsrq_pingpong -d $DEV_A -g "$gid_a" -s "$size" -n "$n" -c 1 "$@" -- \
		ibv_xsrq_pingpong -d $DEV_B -g "$gid_b" -s "$size" -n "$n" "$@" $IP4_A || return
	for side in server client; do
		need_line $side "^success"
	done
	by_xdp $((n * packets))
}

# Each tool polling and with events; a message of 64 packets.
core_cases=(
	rc_1_1024_v4 rc_4096_1024_events_v6 uc_4096_4096_v6 uc_1_1024_events_v4
	srq_4096_1024_v4 srq_1_4096_events_v6 ud_2048_v6 ud_1_events_v4 xsrq_4096_v4
	xsrq_1_events_v6 rc_65536_1024_v6
)
for family in v4 v6; do
	for e in "" -e; do
		suffix=${e:+_events}_$family
		for mtu in 1024 4096; do
			for tool in rc uc srq; do
				n=100
				tier_case ${tool}_1_$mtu$suffix \
					pingpong ibv_${tool}_pingpong $family 1 $n 1 -m $mtu $e
				tier_case ${tool}_4096_$mtu$suffix \
					pingpong ibv_${tool}_pingpong $family 4096 $n $((4096 / mtu)) -m $mtu $e
				# UC has no retransmission: no more is in flight at once than one
				# exchange takes.
				tier_case ${tool}_65536_$mtu$suffix \
					pingpong ibv_${tool}_pingpong $family 65536 $((n / 4)) $((65536 / mtu)) -m $mtu $e
			done
		done
		for size in 1 4096 65536; do
			tier_case xsrq_$size$suffix xrc $family $size 100 $(((size + 1023) / 1024)) -m 1024 $e
		done
		for size in 1 2048; do
			tier_case ud_$size$suffix \
				pingpong ibv_ud_pingpong $family $size 100 1 $e
		done
		# The tool wants active_mtu for its message, which is 2048 where frames are
		# redirected.
		XROCE_TX=xsk tier_case ud_4096$suffix \
			pingpong ibv_ud_pingpong $family 4096 100 1 $e
	done
done
# Time stamps with the completions, and the extended posting API. Without -e: with -t the program
# fails if it gets an event whose completion it has polled before.
run_case rc_timestamps_v4 pingpong ibv_rc_pingpong v4 4096 100 4 -t
run_case rc_new_send_v4 pingpong ibv_rc_pingpong v4 4096 100 4 -N
# Memory that pages on demand, and brought by ibv_advise_mr(3) first.
run_case rc_on_demand_v4 pingpong ibv_rc_pingpong v4 4096 100 4 -o
run_long_case rc_prefetched_v4 pingpong ibv_rc_pingpong v4 4096 100 4 -o -P
finish_cases
