#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Both interfaces in one network namespace: the destination is an address of the kernel's own, and
# is reached by the wire all the same.
. "$(dirname "$0")/lib/case.sh"
NS_B=$NS_A
netns_add $NS_A

# veth_ends A B: the ends of one cable.
veth_ends() { ip -n $NS_A link add "$1" mtu 4500 type veth peer name "$2" mtu 4500; }
# macvlans A B: two on one parent.
macvlans() {
	ip -n $NS_A link add pa mtu 4500 type veth peer name pb mtu 4500 &&
		ip -n $NS_A link set pa up && ip -n $NS_A link set pb up &&
		ip -n $NS_A link add "$1" link pa type macvlan mode bridge &&
		ip -n $NS_A link add "$2" link pa type macvlan mode bridge
}

# between KIND: two interfaces of that kind, with the addresses of A and B.
between() {
	"$1" $IF_A $IF_B || return 1
	netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
	netns_host $NS_A $IF_B $MAC_B $IP4_B $IP6_B
	netns_wait_ready
}

# on_the_wire FAMILY TRANSPORT: data both ways, none of it by the loopback.
on_the_wire() {
	gids_for "$1" || return
	keep=1 client_server 18600 60 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t "$2" -m 1024 -n 20 -s 7 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t "$2" -m 1024 -n 20 -s 7 $IP4_A || return
	need_line server "^vdata: $2 .* bytes right"
	need_line client "^vdata: $2 .* bytes right"
	need_equal "packets to itself" "$(kept server xroce_eng_stat loopback_packets)" 0
	need_least "packets by XDP" "$(kept_packets server)" 20
}

# all_ways KIND: the core has each family and each transport once on each kind.
all_ways() {
	local family transport
	for family in v4 v6; do
		for transport in rc ud; do
			case $1-$family-$transport in
			veth-v4-rc | veth-v6-ud | macvlan-v4-ud | macvlan-v6-rc)
				run_case "$1_${family}_$transport" on_the_wire $family $transport ;;
			*) run_long_case "$1_${family}_$transport" on_the_wire $family $transport ;;
			esac
		done
	done
}

between veth_ends || netns_die "cannot make a veth pair"
all_ways veth
ip -n $NS_A link del $IF_A
if between macvlans 2>/dev/null; then
	all_ways macvlan
else
	echo "skip macvlan this kernel has none"
fi
finish_cases
