#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
# tier: long shards XROCE_TEST_QUEUES=2
#
# Asynchronous events of the port and of the device, while ip(8) changes the interface:
# port_events.c. What each case leaves is looked at here.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
# Its IPv6 addresses go with the link, and would be a GID_CHANGE more.
nsenter --net=/run/netns/$NS_A sh -c "echo 1 > /proc/sys/net/ipv6/conf/$IF_A/disable_ipv6"

events() {
	on_a timeout --kill-after=5 60 "$TOOLS/port_events" "$1" $DEV_A $IF_A $NS_B $IF_B >"$WORK/events.out" 2>&1 ||
		{ fail "port_events $1 ended with $?"; show events; return; }
	need_line events "^port_events: $1\$"
	[ "$2" = gone ] || wait_until 5 xdp_off $NS_A $IF_A || fail "XDP is still attached"
}

again() {
	ip link add $IF_A mtu 4500 netns $NS_A type veth peer name $IF_B mtu 4500 netns $NS_B || netns_die "cannot make a veth pair"
	netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
	netns_host $NS_B $IF_B $MAC_B $IP4_B $IP6_B
	netns_wait_ready
}

run_case link_down_and_up events link there
nsenter --net=/run/netns/$NS_A sh -c "echo 0 > /proc/sys/net/ipv6/conf/$IF_A/disable_ipv6"
run_case gid_change events gid there
run_case device_fatal events fatal gone
again
run_case device_fatal_under_traffic events churn gone
finish_cases
