#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Unmodified perftest over RC: bandwidth and latency of SEND, WRITE and READ, 64 bytes and 64 KiB,
# both address families. What it measures is not judged; that it ends, reports all its iterations,
# and that the packets came through XDP, is.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/kept.sh"
netns_pair 4500

# perf TOOL FAMILY SIZE ITERATIONS [OPTION...]: server on A. What the server receives is data (send,
# write) or READ requests.
perf() {
	local tool=$1 family=$2 size=$3 n=$4 least=$4 columns fields value
	shift 4
	local sized=(-s "$size")
	# Atomics are of 8 bytes; perftest takes no size for them.
	case $tool in ib_atomic_*) sized=() ;; esac
	gids_once "$family" || return
	# The server makes its maps when the client has called, and is held for a moment then: -u 18
	# lets a retry wait for a second.
	keep=1 client_server 18515 90 "$tool" -d $DEV_A -x "$gid_a" "${sized[@]}" -n "$n" -u 18 -F "$@" -- \
		"$tool" -d $DEV_B -x "$gid_b" "${sized[@]}" -n "$n" -u 18 -F "$@" $IP4_A || return
	# Bandwidth: bytes, iterations, peak, average, rate; latency: bytes, iterations, min, max,
	# typical, average, ...
	columns=$(awk -v s="$size" -v n="$n" '$1 == s && $2 % n == 0 { print NF, $4 + 0 }' "$WORK/client.out")
	read -r fields value <<<"${columns:-0 0}"
	[ "$fields" -ge 5 ] || { fail "no line of results"; show client; }
	awk -v v="$value" 'BEGIN { exit !(v > 0) }' || { fail "the result is $value"; show client; }
	case $tool in ib_send_* | ib_write_*) [ "$size" -gt 4096 ] && least=$((n * (size / 4096))) ;; esac
	kept_read server || return
	need_least "packets by xroce_rx" "$(kept_value_packets)" "$least"
	need_equal "packets with a wrong ICRC" "${kept_value[xroce_eng_drop.icrc]:-none}" 0
	drop_maps server
}

for family in v4 v6; do
	for what in send_bw write_bw read_bw send_lat write_lat read_lat; do
		# one message at a time, of which the 100th is as the tenth
		n=500
		[[ $what == *_bw ]] || n=100
		run_case ${what}_64_$family perf ib_$what $family 64 $n
		run_case ${what}_65536_$family perf ib_$what $family 65536 $((n > 200 ? 200 : 50))
	done
done
# Other ways to the same: datagrams (one at a time: nothing sends again what is lost), no
# reliability, sleeping, shared receives, several queue pairs, both directions, lists, old API.
n=512
run_case send_lat_ud_v6 perf ib_send_lat v6 64 100 -c UD
run_case send_lat_uc perf ib_send_lat v4 64 100 -c UC
run_case write_lat_uc_v6 perf ib_write_lat v6 64 100 -c UC
run_case send_bw_events perf ib_send_bw v4 64 $n -e
run_case send_lat_events_v6 perf ib_send_lat v6 64 100 -e
run_case send_bw_srq perf ib_send_bw v4 64 $n --use-srq
# A multiple of 100, for which perftest asks one completion: else it counts the last one of a QP as
# 100, has all that it wants before the slowest QP is through, polls no more and waits for ever.
run_case write_bw_qps perf ib_write_bw v4 64 500 -q 4
run_case send_bw_both perf ib_send_bw v4 64 $n -b
run_case write_bw_both_v6 perf ib_write_bw v6 4096 $n -b
run_case read_bw_both perf ib_read_bw v4 4096 $n -b
run_case write_bw_list perf ib_write_bw v4 64 $n -l 8
run_case write_bw_old_post perf ib_write_bw v4 64 $n --use_old_post_send
run_case write_lat_inline perf ib_write_lat v4 64 100 -I 64
run_case atomic_fetch_add perf ib_atomic_lat v4 8 100 -A FETCH_AND_ADD
run_case atomic_cmp_swap_v6 perf ib_atomic_bw v6 8 $n -A CMP_AND_SWAP
finish_cases
