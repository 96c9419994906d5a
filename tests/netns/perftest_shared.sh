#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# perftest between two processes of one interface, of a user without privileges: each tool with each
# transport, and with its ways of completion, directions, numbers of queue pairs and sizes.
# shared.sh and shared_far.sh have some of them over the wire.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/perftest.sh"

# between FAMILY TOOL SIZE ITERATIONS [OPTION...]
between() {
	local family=$1 tool=$2 size=$3 n=$4 sized=(-s "$3")
	shift 4
	case $tool in ib_atomic_*) sized=() ;; esac
	gids_once "$family" || return
	with_quick_clock between_two 18515 \
		"${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A --share always -- \
		"$tool" -d $DEV_A -x "$gid_a" "${sized[@]}" -n "$n" -F "$@" || return
	has_results client "$size" "$n"
}

serve a $IF_A || { cat "$WORK/case.notes"; exit 1; }
core_cases=(
	send_bw_65536 write_bw_1000 read_lat_64 send_lat_64_uc send_lat_1024_ud atomic_bw_8_add
	send_bw_64_events write_bw_64_qps read_bw_64_both
)
perftest_cases two "" between
finish_cases
