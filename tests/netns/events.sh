#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long native XROCE_XDP=native
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long sockets XROCE_PORT=sockets
#
# A thread that waits for a completion event sleeps: CPU time of the whole process against elapsed
# time, over a forced wait. arming.sh counts XDP's wake-ups.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

sleeps() {
	local t=$1 family=$2
	gids_for "$family" || return
	client_server 18600 30 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t "$t" -n 5 -e -w 400 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t "$t" -n 5 -e -w 400 $IP4_A || return
	need_line server '^slept [0-9]+ us, CPU time meanwhile [0-9]+ us$'
}

# While the application polls, nothing is woken.
not_woken_when_polling() {
	has_bpf_maps || { skip_reason='a port by UDP sockets has no maps that count after its end'; return 77; }
	gids_for v4 || return
	keep=1 client_server 18515 60 ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 1000 -s 64 -- \
		ibv_rc_pingpong -d $DEV_B -g "$gid_b" -n 1000 -s 64 $IP4_A || return
	need_equal "xroce_rx.cq_wakeups" "$(kept server xroce_rx cq_wakeups)" 0
	drop_maps server
}

core_cases=(rc_sleeps_v6 ud_sleeps)
for t in rc uc ud; do
	tier_case ${t}_sleeps sleeps $t v4
done
tier_case rc_sleeps_v6 sleeps rc v6
run_case not_woken_when_polling not_woken_when_polling
finish_cases
