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
	local server
	gids_for v4 || return
	start_on server a ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 100000000 -s 64
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start_on client b ibv_rc_pingpong -d $DEV_B -g "$gid_b" -n 100000000 -s 64 $IP4_A
	wait_until 20 has_polled || fail "no traffic"
	# counters of 0 are left out
	need_no_line stat ' xdp_cq_wakeups '
	stop "$child"
	stop "$server"
}
# Reads the counters of A. Returns whether 1000 packets have arrived.
has_polled() {
	in_a "$XROCE" stat --dev $IF_A >"$WORK/stat.out" 2>&1
	[ "$(awk '$4 == "rx_packets" { print $5 }' "$WORK/stat.out")" -ge 1000 ] 2>/dev/null
}

core_cases=(rc_sleeps_v6 ud_sleeps)
for t in rc uc ud; do
	tier_case ${t}_sleeps sleeps $t v4
done
tier_case rc_sleeps_v6 sleeps rc v6
run_case not_woken_when_polling not_woken_when_polling
finish_cases
