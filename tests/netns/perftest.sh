#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Unmodified perftest over RC: bandwidth and latency of SEND, WRITE and READ, 64 bytes and 64 KiB, both address families. What it
# measures is not judged; that it ends, reports all its iterations, and that the packets came through XDP, is.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# perf TOOL FAMILY SIZE ITERATIONS: server on A. What the server receives is data (send, write) or READ requests.
perf() {
	local tool=$1 family=$2 size=$3 n=$4 least=$4 columns
	gids_for "$family" || return
	# The server makes its maps when the client has called, and is held for a moment then: -u 18 lets a retry wait for a second.
	keep=1 client_server 18515 90 "$tool" -d $DEV_A -x "$gid_a" -s "$size" -n "$n" -u 18 -F -- \
		"$tool" -d $DEV_B -x "$gid_b" -s "$size" -n "$n" -u 18 -F $IP4_A || return
	# Bandwidth: bytes, iterations, peak, average, rate; latency: bytes, iterations, min, max, typical, average, ...
	columns=$(awk -v s="$size" -v n="$n" '$1 == s && $2 == n { print NF, $4 + 0 }' "$WORK/client.out")
	read -r fields value <<<"${columns:-0 0}"
	[ "$fields" -ge 5 ] || { fail "no line of results"; show client; }
	awk -v v="$value" 'BEGIN { exit !(v > 0) }' || { fail "the result is $value"; show client; }
	case $tool in ib_send_* | ib_write_*) [ "$size" -gt 4096 ] && least=$((n * (size / 4096))) ;; esac
	need_least "xroce_rx.redirected" "$(kept server xroce_rx redirected)" "$least"
	need_equal "packets with a wrong ICRC" "$(kept server xroce_eng_drop icrc)" 0
	drop_maps server
}

for family in v4 v6; do
	for what in send_bw write_bw read_bw send_lat write_lat read_lat; do
		run_case ${what}_64_$family perf ib_$what $family 64 2000
		run_case ${what}_65536_$family perf ib_$what $family 65536 200
	done
done
finish_cases
