#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Other traffic crosses an interface that we are attached to as if we were not there.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

gids_for v4 || netns_die "no GID"
# A server that waits for its client has its queue pair, so XDP is attached for as long as it runs.
start_on sit_a a ibv_rc_pingpong -d $DEV_A -g "$gid_a"
sit_a=$child
start_on sit_b b ibv_rc_pingpong -d $DEV_B -g "$gid_b"
sit_b=$child

attached() {
	wait_until 10 xdp_on $NS_A $IF_A || { fail "XDP is not attached on $IF_A"; show sit_a; }
	wait_until 10 xdp_on $NS_B $IF_B || { fail "XDP is not attached on $IF_B"; show sit_b; }
}

# All of 50 answers, of the size asked: 8000 bytes do not fit the MTU and are fragments.
pings() {
	local size
	for size in 0 56 1400 4000 8000; do
		in_b ping -q -n -c 50 -i 0.002 -W 2 -s $size "$1" >"$WORK/ping.out" 2>&1 || fail "ping -s $size to $1 fails"
		need_line ping '50 packets transmitted, 50 received'
	done
}

# traffic KIND HOST
traffic() {
	local rc
	start traffic_server a "$TOOLS/traffic" "$1" 5000
	wait_until 5 bound_or_gone "$1" "$child"
	in_b timeout 30 "$TOOLS/traffic" "$1" 5000 "$2" >"$WORK/traffic_client.out" 2>&1 || { fail "the client ends with $?"; show traffic_client; }
	finish "$child" 10
	rc=$?
	[ $rc -eq 0 ] || { fail "the server ends with $rc"; show traffic_server; }
	need_line traffic_server ' right$'
}
bound_or_gone() { in_a ss -Hln --"$1" 'sport = :5000' | grep -q . || is_gone_or_zombie "$2"; }

neighbours() {
	in_b ip neigh flush dev $IF_B
	in_b ping -q -c 1 -W 2 $IP4_A >/dev/null || fail "no answer over IPv4 after forgetting the neighbours"
	in_b ping -q -c 1 -W 2 $IP6_A >/dev/null || fail "no answer over IPv6 after forgetting the neighbours"
}

# A packet to port 4791 of an address that is no GID of ours is not ours: the machine may have it
# (here it bounces: no one listens).
foreign_roce() {
	local before after
	before=$(counter "$sit_a" xroce_rx passed)
	in_b "$TOOLS/replay" -i $IF_B -D $MAC_A -4 $IP4_B,10.77.0.99 -6 $IP6_B,fd77::99 -c none "$GOLDEN"/v4-ud-send.pcap "$GOLDEN"/v6-ud-send.pcap \
		>"$WORK/replay.out" 2>&1 || { fail "replay ends with $?"; show replay; }
	after=$(counter "$sit_a" xroce_rx passed)
	need_equal "xroce_rx.passed" "$after" $((before + 4))
}

still_attached() {
	xdp_on $NS_A $IF_A || fail "XDP is no longer attached on $IF_A"
	need_equal "xroce_rx.redirected" "$(counter "$sit_a" xroce_rx redirected)" 0
	need_equal "xroce_rx.dropped" "$(counter "$sit_a" xroce_rx dropped)" 0
}

run_case attached attached
run_case ping_v4 pings $IP4_A
run_case ping_v6 pings $IP6_A
run_case tcp_v4 traffic tcp $IP4_A
run_long_case tcp_v6 traffic tcp $IP6_A
run_long_case udp_v4 traffic udp $IP4_A
run_case udp_v6 traffic udp $IP6_A
run_case neighbours neighbours
run_case foreign_roce_passes foreign_roce
run_case still_attached still_attached
stop "$sit_a"
stop "$sit_b"
finish_cases
