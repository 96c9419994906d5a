#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Raw packet QPs: whole frames, both ways, between two of them and with the kernel's packet sockets,
# every byte compared; the flow that takes a frame, frames that pass to the kernel, other processes
# on the interface at that time, and the cleanup after a killed process. perftest's raw_ethernet_*.
. "$(dirname "$0")/lib/case.sh"
netns_pair 1500
RAW=$TOOLS/raw

# is_ready NAME
is_ready() { grep -q '^ready' "$WORK/$1.out"; }

# receiver NS raw|wire [OPTION...]: started, and ready. Its pid is in $receiver.
receiver() {
	local ns=$1 way=$2 dev=$IF_A
	[ "$ns" = b ] && dev=$IF_B
	shift 2
	case $way in
	raw) start_on receiver "$ns" "$RAW" recv xroce_$dev "$@" ;;
	wire) start receiver "$ns" "$RAW" wire-recv $dev "$@" ;;
	esac
	receiver=$child
	wait_until 20 is_ready receiver || { stop "$receiver"; fail "the receiver is not ready"; show receiver; }
}

# sender NS raw|wire [OPTION...]: to its end.
sender() {
	local ns=$1 way=$2 dev=$IF_A
	[ "$ns" = b ] && dev=$IF_B
	shift 2
	case $way in
	raw) start_on sender "$ns" "$RAW" send xroce_$dev "$@" ;;
	wire) start sender "$ns" "$RAW" wire-send $dev "$@" ;;
	esac
	finish "$child" 30 || { fail "the sender failed"; show sender; }
}

# received COUNT
received() {
	finish "$receiver" 30 || { fail "the receiver failed"; show receiver; return 1; }
	need_line receiver "^received $1\$"
}

# exchange SENDER RECEIVER FLOW [OPTION...]: from B to A; options are both ends'.
exchange() {
	local from=$1 to=$2 flow=$3 only=()
	shift 3
	[ "$to" = raw ] && only=(-f "$flow" "${both[@]}")
	receiver a "$to" "$@" "${only[@]}" || return
	sender b "$from" "$@" || { stop "$receiver"; return; }
	received 100
}
both=()
run_case raw_to_raw exchange raw raw mac
run_case raw_to_wire exchange raw wire mac
run_case wire_to_raw exchange wire raw mac
run_long_case shortest exchange raw raw mac -k eth -l 14
run_long_case longest exchange raw raw mac -k udp4 -l 1514 -a
run_case longest_tagged exchange raw raw vlan -k vlan -l 1518 -a
run_long_case udp4 exchange wire raw udp4
run_case udp6 exchange wire raw udp6 -k udp6
run_case tcp exchange wire raw tcp -k tcp4
run_case source_network exchange wire raw src4
run_case vlan exchange wire raw vlan -k vlan
run_long_case vlan_to_wire exchange raw wire mac -k vlan
run_long_case any_ethertype exchange wire raw mac -k eth
run_case events exchange raw raw mac -e
run_case inline_wr_send exchange raw wire mac -i
run_long_case other_mac exchange wire raw mac -d 02:00:00:99:00:01
run_case multicast exchange wire raw mac -d 01:00:5e:01:02:03
run_case foreign_roce exchange wire raw mac -k roce
both=(-q 3)
run_case copies exchange wire raw mac
both=(-x)
run_long_case priority exchange wire raw mac
both=()

# defaults FLOW MAC: a default rule takes frames that no other flow takes.
defaults() {
	receiver a raw -f "$1" -d "$2" -k eth || return
	sender b wire -d "$2" -k eth -n 100 || { stop "$receiver"; return; }
	# others' frames (ND) may come between: so only that frames come is looked at
	finish "$receiver" 30
	need_line receiver '^(received 100|.*frame [0-9]+ )'
}
run_case all_default defaults all 02:00:00:99:00:02

# each way out leaves frames alone that look as if they could be joined
ways() {
	receiver a wire -k roce -l 500 -a || return
	XROCE_TX=$1 sender b raw -k roce -l 500 -a || { stop "$receiver"; return; }
	received 100
}
for way in xsk gso tap live; do
	run_case as_it_is_$way ways $way
done

# What the flow does not take is the kernel's: another port, another address, ping.
passes() {
	receiver a raw -f udp4 -p 5000 -z || return
	local raw=$receiver
	receiver a wire -p 5001 || { stop "$raw"; return; }
	sender b wire -p 5001
	received 100
	in_b ping -c 3 -i 0.2 -W 5 -q $IP4_A >"$WORK/ping.out" 2>&1 || { fail "no ping"; show ping; }
	kill -0 "$raw" 2>/dev/null || fail "the process with the flow has ended"
	stop "$raw"
}
run_case passes_to_the_kernel passes

# No other process gets the interface at that time, and its owner continues.
alone() {
	receiver a raw || return
	local first=$receiver
	start_on second a timeout 20 "$RAW" refused $DEV_A
	finish "$child" 30
	need_line second 'process [0-9]+ \(raw\)|EBUSY|in use'
	sender b raw
	receiver=$first received 100
}
run_case nobody_else alone

# refused_as WHAT COMMAND...: what making a raw packet QP says.
refused_as() {
	local want=$1
	shift
	start_on refused a "$@" "$RAW" refused $DEV_A
	finish "$child" 30
	need_line refused "^$want\$"
}
run_case without_privilege refused_as EPERM setpriv --bounding-set=-net_raw --inh-caps=-net_raw
run_case alone_again refused_as made

# kill -9 takes the program, the maps and the interface's membership with it.
killed() {
	receiver a raw -f all -z || return
	in_a ip -d link show $IF_A | grep -q 'prog/xdp\|xdpgeneric' || fail "no XDP program"
	in_a ip -d link show $IF_A | grep -q 'promiscuity [1-9]' || fail "not promiscuous"
	kill -9 "$receiver"
	finish "$receiver" 5
	wait_until 5 is_bare || fail "something is left: $(in_a ip -d link show $IF_A)"
}
is_bare() { ! in_a ip -d link show $IF_A | grep -q 'prog/xdp\|xdpgeneric\|promiscuity [1-9]'; }
run_case killed killed

# ticks PID: its processor time, in clock ticks. The name has no space or parenthesis.
ticks() {
	local stat
	read -r -a stat 2>/dev/null <"/proc/$1/stat" && echo $((stat[13] + stat[14]))
}
# uses_time PID TICKS: it has used more than that by now, or has ended.
uses_time() { is_gone_or_zombie "$1" || [ "$(ticks "$1")" -gt "$2" ]; }

# perftest RawEth: perf TOOL OPTION... The server waits for all that the client has sent: so few
# that each frame has its receive, and not before they are posted. The server prints its table's
# head before it posts them; then it polls, which takes processor time.
perf() {
	local tool=$1 at
	shift
	start_on server a stdbuf -oL "$tool" --server -d $DEV_A -B $MAC_A -E $MAC_B -F "$@"
	local server=$child
	wait_until 20 grep -q '^ #bytes' "$WORK/server.out" || { stop "$server"; fail "the server has no flow"; show server; return; }
	at=$(ticks "$server")
	wait_until 20 uses_time "$server" $((at + 10))
	start_on client b timeout 60 "$tool" --client -d $DEV_B -B $MAC_B -E $MAC_A -F "$@"
	finish "$child" 60 || { stop "$server"; fail "the client failed"; show client; show server; return; }
	finish "$server" 20 || { fail "the server failed"; show server; }
	need_line client '^ *[0-9]+ +[0-9]+ +[0-9.]+'
}
run_long_case perftest_bw perf raw_ethernet_bw -s 1000 -n 100
run_long_case perftest_lat perf raw_ethernet_lat -s 64 -n 100
# last, as the broker stays a while
run_long_case with_a_broker refused_as EOPNOTSUPP env XROCE_SHARE=always
finish_cases
