#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Unmodified UCX between two hosts, after `xroce run --` and without any variable: it chooses this
# device, over RC; and over UD, when configured. ucx_perftest's tests of the upper level, sizes to
# 64 MiB, one pair of processes and two at once. Data is not checked here, but by io_demo
# (cm_ucx.sh) and MPI (mpi.sh). ucx_shared.sh has all tests between processes of one interface.
#
# XROCE_UCX_ALL=1: every test, size, transport and number of processes; tens of minutes.
. "$(dirname "$0")/lib/case.sh"
command -v ucx_perftest >/dev/null || skip_all "ucx_perftest is not installed (package ucx-utils)"
netns_pair 4500
. "$(dirname "$0")/lib/hosts.sh"
MIB=1048576

# ucx PAIRS TRANSPORT TEST MESSAGES BYTES: a server on A and a client on B each
ucx() {
	local pairs=$1 tl=$2 test=$3 n=$4 size=$5 i servers=() clients=() chosen=() qps=RC
	[ "$tl" = rc ] || chosen=(env UCX_TLS=ud_verbs) qps=UD
	for ((i = 0; i < pairs; i++)); do
		on_host "server$i" a "${chosen[@]}" ucx_perftest -p $((13337 + i))
		servers+=("$child")
	done
	for ((i = 0; i < pairs; i++)); do
		wait_until 20 listens_or_gone a $((13337 + i)) "${servers[i]}"
		on_host "client$i" b "${chosen[@]}" ucx_perftest $IP4_A -p $((13337 + i)) -t "$test" -n "$n" \
			-w 1 -s "$size"
		clients+=("$child")
	done
	for ((i = 0; i < pairs; i++)); do
		finish "${clients[i]}" 120 || { fail "client $i ended with $?"; show "client$i"; }
		finish "${servers[i]}" 20 || { fail "server $i ended with $?"; show "server$i"; }
		need_line "client$i" "^Final: +$n " || return
		need_counted "client$i" "$qps" 1 && need_counted "server$i" "$qps" 1 || return
		used "$tl" "$test" "$n" "$size" "$i"
	done
}

# used TRANSPORT TEST MESSAGES BYTES PAIR: the named operation was used. A long message is fetched
# from its sender by READ; atomics of the upper level are UCX's own, as plain verbs have no swap. UD
# has neither.
used() {
	local at=$5 packets=$(($3 * $4 / 4096))
	[ "$1" = rc ] ||
		need_equal "WRITEs and READs over UD" "$(counted "server$at" WRITE)$(counted "server$at" READ)" 00
	[ "$1-$2" != rc-ucp_put_bw ] || need_counted "server$at" WRITE "$3"
	[ "$1-$2" != rc-ucp_get ] || [ "$4" -lt $MIB ] || need_counted "server$at" READ "$3"
	[ "$1-$2" != rc-tag_bw ] || [ "$4" -lt $MIB ] || need_counted "client$at" READ "$3"
	case $2 in
	ucp_get) need_counted "client$at" in "$packets" ;;
	*) need_counted "server$at" in "$packets" ;;
	esac
}

sized=(tag_lat tag_bw tag_sync_lat tag_sync_bw ucp_put_lat ucp_put_bw ucp_get stream_bw stream_lat
	ucp_am_lat ucp_am_bw)
# PAIRS TRANSPORT TEST MESSAGES BYTES
few() {
	cat <<END
1 rc tag_lat 100 8
1 rc tag_bw 3 $((64 * MIB))
1 rc tag_sync_bw 5 $MIB
1 rc ucp_put_bw 3 $((64 * MIB))
1 rc ucp_get 3 $((64 * MIB))
1 rc stream_bw 5 $MIB
1 rc ucp_am_bw 3 $((64 * MIB))
1 rc ucp_fadd 100 8
1 rc ucp_cswap 100 8
2 rc tag_bw 5 $MIB
2 rc ucp_put_bw 3 $((16 * MIB))
1 ud tag_lat 100 8
1 ud tag_bw 5 $MIB
1 ud tag_bw 1 $((16 * MIB))
1 ud ucp_put_bw 5 65536
1 ud ucp_get 5 65536
1 ud ucp_am_bw 20 65536
1 ud ucp_swap 100 8
2 ud tag_bw 20 65536
END
}
all() {
	local pairs tl test size
	for pairs in 1 2; do
		for tl in rc ud; do
			for test in "${sized[@]}"; do
				for size in 8 4096 65536 $MIB $((64 * MIB)); do
					echo $pairs $tl "$test" $((size > 65536 ? 3 : 50)) $size
				done
			done
			for test in ucp_add ucp_fadd ucp_swap ucp_cswap; do
				echo $pairs $tl $test 100 8
			done
		done
	done
}

core_cases=(rc_tag_sync_bw_1048576_2 ud_ucp_am_bw_65536_2)
list=few
[ -z "${XROCE_UCX_ALL:-}" ] || list=all core_cases=()
while read -r pairs tl test n size; do
	tier_case "${tl}_${test}_${size}_$((2 * pairs))" \
		ucx "$pairs" "$tl" "$test" "$n" "$size"
done < <($list)
finish_cases
