#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# If super-packets do not get through, frames leave alone before a connection fails, and that is
# reported once; but a rule that drops single frames as well is not circumvented. Interfaces that
# hand packets to others get none by default.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# data COMMAND...: the server, run by COMMAND, on A; its counters are kept. The way out of A is XDP
# redirection only if B has native XDP, so here it is the sockets.
data() {
	gids_for v4 || return
	keep=1 client_server 18600 60 "$@" "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t "$transport" -m 1024 -n 60 -s 21 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t "$transport" -m 1024 -n 60 -s 21 $IP4_A || return
	need_line server "^vdata: $transport .* bytes right"
}

said() { need_equal "lines that say so" "$(grep -c "^xroce: $IF_A: sending without UDP segmentation offload, .*: the interface $1 super-packets" "$WORK/server.out")" "$2"; }

# drops MATCH...: the kernel drops such packets of RoCEv2 on their way out of A.
drops() {
	in_a nft -f - <<-EOF
		table netdev drops {
			chain out {
				type filter hook egress device "$IF_A" priority 0;
				udp dport 4791 $* counter drop
			}
		}
	EOF
}
drops_no_more() {
	dropped=$(in_a nft list table netdev drops | sed -nE 's/.*counter packets ([0-9]+).*/\1/p')
	in_a nft delete table netdev drops
}
drops_supers() { drops meta length '>' 2100; }

# The kernel takes none: after a moment, and a few tries, all leave alone, and none goes round what
# drops them.
refused() {
	local gso sends xsk
	drops_supers
	data env || return
	drops_no_more
	gso=$(kept server xroce_eng_stat tx_gso) sends=$(kept server xroce_eng_stat tx_gso_sends)
	xsk=$(kept server xroce_eng_stat tx_xsk)
	need_equal "packets that left through the packet socket" "$sends" "$gso"
	[ $((gso + xsk)) = "$(kept server xroce_eng_stat tx_packets)" ] && [ $((10 * xsk)) -lt "$gso" ] ||
		fail "$xsk frames left by AF_XDP, $gso through the packet socket"
	need_least "times that super-packets were given up" "$(kept server xroce_eng_stat tx_gave_up)" 1
	[ "$dropped" -le 50 ] || fail "$dropped packets were tried"
	said refuses 1
}
quiet() {
	drops_supers
	XROCE_QUIET=1 data env && said refuses 0
	drops_no_more
}

# sends_long TIMEOUT COMMAND...: RDMA WRITEs both ways, the server run by COMMAND.
sends_long() {
	local bw=(ib_write_bw -s 65536 -u "$1" -D 60 -b -F)
	shift
	gids_for v4 || return
	start_on server a "$@" "${bw[@]}" -d $DEV_A -x "$gid_a"
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start_on client b "${bw[@]}" -d $DEV_B -x "$gid_b" $IP4_A
	client=$child
	wait_until 30 supers_leave 1000 || fail "no super-packets"
}
stat_of_a() { in_a "$XROCE" stat --json --dev $IF_A 2>/dev/null | sed -nE "s/.*\"$1\": ([0-9]+).*/\1/p"; }
# Frames that have left, less packets: 0 without super-packets, or while there are no counters.
in_supers() {
	local gso sends
	gso=$(stat_of_a tx_gso) sends=$(stat_of_a tx_gso_sends)
	echo $((${gso:-0} - ${sends:-0}))
}
supers_leave() { [ "$(in_supers)" -ge "$1" ]; }
loses() { [ "$(stat_of_a tx_lost)" -ge 16 ]; }
names_the_rule() {
	need_equal "lines that say so" "$(grep -c "^xroce: $IF_A: the kernel drops sent frames; check for rules" "$WORK/server.out")" 1
	said '.*' 0
}

# ruled MATCH COMMAND...: a rule that drops all, or all long frames, is obeyed: the connection ends,
# and the dropping rule is reported.
ruled() {
	local match=$1
	shift
	sends_long 14 "$@" || return
	# shellcheck disable=SC2086 # words
	drops $match
	finish_at_most "$server" 40 && fail "the server goes on"
	finish_at_most "$client" 40 && fail "the client goes on"
	drops_no_more
	need_line server 'status transport retry counter exceeded|Completion with error'
	names_the_rule
}

# After the rule is deleted super-packets leave at once, as before.
ruled_for_a_while() {
	local before
	sends_long 17 "$@" || return
	drops
	wait_until 5 loses
	drops_no_more
	before=$(in_supers)
	wait_at_most 5 supers_leave $((before + 1000)) || fail "no super-packets once the rule has gone"
	[ "$dropped" -le 400 ] || fail "$dropped packets were tried"
	names_the_rule
	stop "$client"
	stop "$server"
}

# An interface that takes them does not lose them by this.
taken() {
	data env || return
	need_least "frames that left as super-packets" "$(kept server xroce_eng_stat tx_gso)" 100
	need_equal "times that super-packets were given up" "$(kept server xroce_eng_stat tx_gave_up)" 0
	said '.*' 0
}

# `xroce list` shows it while the program runs.
listed() {
	gids_for v4 || return
	drops_supers
	start_on server a ib_write_bw -d $DEV_A -x "$gid_a" -s 65536 -D 60 -b -F
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start_on client b ib_write_bw -d $DEV_B -x "$gid_b" -s 65536 -D 60 -b -F $IP4_A
	client=$child
	wait_until 30 is_listed || { fail "xroce list does not show it"; in_a "$XROCE" list >"$WORK/list.out"; show list; show server; show client; }
	stop "$client"
	stop "$server"
	drops_no_more
}
is_listed() { in_a "$XROCE" list $IF_A | grep -q 'super-packets given up [1-9]'; }

# sends_by KIND: an interface of that kind, by default and with XROCE_TX=gso.
sends_by() {
	in_a "$XROCE" list "$1" | grep -q 'sends by .*UDP super-packets' && fail "$1 sends super-packets by default"
	XROCE_TX=gso in_a "$XROCE" list "$1" | grep -q 'sends by .*UDP super-packets' || fail "$1 sends none if told to"
}
stacked() {
	local kind
	ip -n $NS_A link add mv0 link $IF_A type macvlan mode bridge && ip -n $NS_A link add br0 type bridge && ip -n $NS_A link set mv0 up ||
		{ fail "cannot make a macvlan and a bridge"; return; }
	for kind in mv0 br0; do
		sends_by $kind
	done
	ip -n $NS_A link add bo0 type bond 2>/dev/null && sends_by bo0
	ip -n $NS_A link add link $IF_A name vl0 type vlan id 5 2>/dev/null && sends_by vl0
	in_a "$XROCE" list $IF_A | grep -q 'sends by .*UDP super-packets' || fail "a veth sends none by default"
}

# And data passes a macvlan, in its own namespace.
macvlan_data() {
	local gid_m server
	drop_maps server
	netns_add $NS_P
	ip -n $NS_A link set mv0 netns $NS_P && ip -n $NS_P link set mv0 up && ip -n $NS_P addr add 10.77.0.3/24 dev mv0 ||
		{ fail "cannot set up a macvlan"; return; }
	wait_until 10 in_p ping -q -c 1 -W 1 $IP4_B || { fail "no path from the macvlan to B"; return; }
	gids_for v4 || return
	gid_m=$(in_p "$XROCE" list mv0 | awk '$3 == "::ffff:10.77.0.3" { print $2; exit }')
	[ -n "$gid_m" ] || { fail "no GID of the macvlan"; return; }
	start server p "$XROCE" run --dev mv0 -- "$TOOLS/vdata" -d xroce_mv0 -g "$gid_m" -m 1024 -n 30 -s 22
	server=$child
	wait_until 10 listens_or_gone p 18600 "$server"
	keep_maps "$server" server || fail "the server has no maps of ours"
	start_on client b "$TOOLS/vdata" -d $DEV_B -g "$gid_b" -m 1024 -n 30 -s 22 10.77.0.3
	finish "$child" 60 || { fail "vdata ends with $?"; show client; }
	finish "$server" 10 || { fail "vdata ends with $?"; show server; }
	need_line server '^vdata: rc .* bytes right'
	need_equal "frames that left as super-packets" "$(kept server xroce_eng_stat tx_gso)" 0
	drop_maps server
}

core_cases=(taken_ud refused_rc ruled ruled_long ruled_for_a_while listed stacked macvlan_data)
for transport in rc uc ud; do
	tier_case taken_$transport taken
	# a refused datagram is lost, and so is its round: only reliable transports can be judged
	[ $transport != rc ] || tier_case refused_$transport refused
done
transport=rc
tier_case ruled ruled "" env
tier_case ruled_gso ruled "" env XROCE_TX=gso
tier_case ruled_long ruled "meta length > 1000" env
tier_case ruled_for_a_while ruled_for_a_while env
tier_case ruled_for_a_while_gso ruled_for_a_while env XROCE_TX=gso
tier_case quiet quiet
tier_case listed listed
tier_case stacked stacked
tier_case macvlan_data macvlan_data
finish_cases
