#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# qperf, whose queue pairs librdmacm connects with -cm1: all its RC tests, the only ones with that
# option; one server for all, as qperf is used. It resolves IPv4 addresses only.
. "$(dirname "$0")/lib/case.sh"
command -v qperf >/dev/null || skip_all "qperf is not installed"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"
QPERF_PORT=19765
tests=(rc_{bi_bw,bw,lat} rc_rdma_{read,write}_{bw,lat} rc_rdma_write_poll_lat
	rc_{compare_swap,fetch_add}_mr ver_rc_{compare_swap,fetch_add})

# run_qperf TEST...
run_qperf() {
	cm_start server server qperf
	local server=$child
	wait_until 10 listens_by a $QPERF_PORT "$server" || fail "no server"
	cm_start client client qperf -cm1 -t 1 "$server_ip" "$@"
	cm_end client "$child" 120 || show server
	stop "$server"
}

# A value, and one above 0.
has_value() {
	grep -A 1 "^$1:\$" "$WORK/client.out" | grep -qE '^    (bw|latency|msg_rate) +=  *[0-9.]*[1-9]' && return
	fail "no result of $1"
	show client
}

# Each test takes a second; the core has two.
cm_family v4
core_cases=(qperf_two rc_bi_bw_two ver_rc_fetch_add_two)
tier_case qperf_two run_qperf rc_bi_bw ver_rc_fetch_add
for test in rc_bi_bw ver_rc_fetch_add; do
	tier_case ${test}_two has_value $test
done
for place in between within user; do
	cm_place $place || netns_die "no broker"
	cm_family v4
	tier_case qperf_$place run_qperf "${tests[@]}"
	for test in "${tests[@]}"; do
		tier_case ${test}_$place has_value $test
	done
done
finish_cases
