#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# What shared.sh has, with both ends of the wire shared: unmodified programs of a user without any
# privilege on A's interface and on B's.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/perf.sh"
. "$here/tests/netns/lib/perftest.sh"
. "$here/tests/netns/lib/exchange.sh"

serve a $IF_A && serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
core_cases=(
	far_rc_events_v6 far_ud far_srq_large
	far_send_bw_65536 far_read_lat_64 far_atomic_bw_8 far_send_bw_4096_qps
)
pingpong_cases far user user b
perftest_cases far far_ measure user user b
finish_cases
