#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long shared XROCE_TEST_BROKER=1
#
# Receive-side fields of extended CQs over a real path: the VLAN tag as it was on the wire, the
# service level (the tag's priority; without a tag the upper three bits of the traffic class; of a
# datagram 2 for IPv4 and 1 for IPv6), and a flow tag that tells senders apart. The frames come from
# a packet socket (tagged.c).
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

PEER_QPN=0x4711 QKEY=0x1234567

# The packets, a line each: options of `tagged`, then the expected values.
packets() {
	cat <<-END
		-T a07b -c 0x60 -p 50001|sl 5, vlan 0xa07b
		-T 6000 -p 50001|sl 3, vlan 0x6000
		-T 4007,c001 -p 50001|sl 6, vlan 0xc001
		-T 0fff -c 0xff -p 50001|sl 0, vlan 0x0fff
		-T f001 -p 50001|sl 7, vlan 0xf001
		-c 0xb8 -p 50002|sl 5, vlan 0x0000
		-c 0x1c -p 50001|sl 0, vlan 0x0000
	END
}

said() { grep -qE "$2" "$WORK/$1.out"; }
said_or_gone() { said "$1" "$2" || is_gone_or_zombie "$3"; }

# start_fields TRANSPORT FAMILY COUNT: the program, until it receives: $child, $qpn; and $from and
# $to of the packets.
start_fields() {
	from=$IP4_B to=$IP4_A
	gids_for "$2" || return
	[ "$2" = v4 ] || { from=$IP6_B to=$IP6_A; }
	if [ "$1" = ud ]; then
		start_on fields a "$TOOLS/fields" $DEV_A "$gid_a" "$3" ud $QKEY
	else
		start_on fields a "$TOOLS/fields" $DEV_A "$gid_a" "$3" rc "$from" $PEER_QPN
	fi
	wait_until 10 said_or_gone fields '^qpn ' "$child"
	qpn=$(sed -n 's/^qpn //p' "$WORK/fields.out")
}

# fields TRANSPORT FAMILY
fields() {
	local transport=$1 from to qpn i=0 options want how flows l3=2
	[ "$2" = v4 ] || l3=1
	start_fields "$transport" "$2" "$(packets | wc -l)" || return
	while IFS='|' read -r options want; do
		if [ "$transport" = ud ]; then how="-k $QKEY"; else how="-P $i"; fi
		# shellcheck disable=SC2086
		in_b "$TOOLS/tagged" -i $IF_B -s $MAC_B -d $MAC_A -f "$from" -t "$to" -q "$qpn" $options $how || fail "tagged failed: $options"
		wait_until 10 said_or_gone fields "^received $i:" "$child"
		# of a datagram: what its addresses are, as adapters say it
		[ "$transport" = rc ] || want="sl $l3,${want#*,}"
		need_line fields "^received $i: $want, flow 0x[0-9a-f]{8}, at [0-9]+\$" || break
		i=$((i + 1))
	done < <(packets)
	finish "$child" 10 || { fail "fields ended with $?"; show fields; return; }
	# Two senders' ports, two tags.
	flows=$(sed -n 's/^received .*flow \([^,]*\),.*/\1/p' "$WORK/fields.out" | sort | uniq -c | awk '{ print $1 }' | sort -n | tr '\n' ' ')
	need_equal "packets by flow tag" "$flows" "1 6 "
}

# The program sleeps through the packets, each of which XDP sees between two looks at the clock: its
# times are XDP's, not the engine's.
xdp_has() { [ "$(counter "$1" xroce_rx redirected)" = "$2" ]; }
is_stopped() { grep -q '^State:[[:space:]]*T' "/proc/$1/status"; }
times() {
	local transport=$1 from to qpn i how begin=() end=() at
	start_fields "$transport" v4 4 || return
	kill -STOP "$child"
	wait_until 10 is_stopped "$child" || fail "the program does not stop"
	for i in 0 1 2 3; do
		if [ "$transport" = ud ]; then how="-k $QKEY"; else how="-P $i"; fi
		begin+=("$(date +%s%N)")
		# shellcheck disable=SC2086
		in_b "$TOOLS/tagged" -i $IF_B -s $MAC_B -d $MAC_A -f "$from" -t "$to" -q "$qpn" $how || fail "tagged failed"
		wait_until 10 xdp_has "$child" $((i + 1)) || fail "XDP did not see packet $i"
		end+=("$(date +%s%N)")
	done
	kill -CONT "$child"
	finish "$child" 10 || { fail "fields ended with $?"; show fields; return; }
	for i in 0 1 2 3; do
		at=$(sed -n "s/^received $i: .*, at //p" "$WORK/fields.out")
		# within a millisecond of the system's clock
		need_least "packet $i's time" "$at" $((begin[i] - 1000000))
		need_least "the end of packet $i's window" $((end[i] + 1000000)) "$at"
	done
}

core_cases=(ud_v4 ud_times rc_v6)
for t in ud rc; do
	tier_case ${t}_v4 fields $t v4
	tier_case ${t}_v6 fields $t v6
	tier_case ${t}_times times $t
done
finish_cases
