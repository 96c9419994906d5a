#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# loss.sh and perftest_bad_cable.sh on every way that frames can leave: RC over a bad cable, whose
# ends take redirected frames as they have GRO.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/cable.sh"
. "$(dirname "$0")/lib/paths.sh"
. "$(dirname "$0")/lib/perf.sh"
netns_chain 4500
in_p ethtool -K pa gro on >/dev/null && in_p ethtool -K pb gro on >/dev/null || netns_die "cannot switch GRO on"

# bad_cable WAY FAMILY SEED ROUNDS PATH-MTU
bad_cable() {
	local way=$1 family=$2 seed=$3 rounds=$4 mtu=$5
	cable_with -s "$seed" -l 10 -u 10 -r 10
	XROCE_TX=$way data_until "has_left_by $way" rc "$family" "$mtu" "$rounds" "$seed" || return
	left_by "$way"
	cable_did dropped duplicated reordered
}

# perf's options: TOOL SIZE ITERATIONS [OPTION...]
bad_cable_perf() {
	local way=$1
	shift
	cable_with -s 5 -l 10 -u 10 -r 10
	XROCE_TX=$way perf "$@" || return
	cable_did dropped duplicated reordered
}

core_cases=(tap_data_v4 live_data_v6 gso_data_v4 tap_read_bw live_atomic gso_events)
# Those two use AF_XDP alone, as their cable takes no redirected frames.
tier_case xsk_data_v4 bad_cable xsk v4 41 40 1024
for way in tap live gso; do
	tier_case ${way}_data_v4 bad_cable $way v4 41 40 1024
	tier_case ${way}_data_v6 bad_cable $way v6 42 30 2048
	for tool in send_bw write_bw read_bw; do
		tier_case ${way}_$tool bad_cable_perf $way ib_$tool 65536 100
	done
	tier_case ${way}_atomic bad_cable_perf $way ib_atomic_bw 8 300 -A FETCH_AND_ADD
	tier_case ${way}_events bad_cable_perf $way ib_send_bw 4096 1000 -e
done
finish_cases
