#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long san XROCE_CASE=@(udp4|tagged|fragments_by_address|events_*|without_*|with_*)
# tier: long tsan XROCE_CASE=@(udp4|tagged|fragments_by_address|events_*|without_*)
# tier: long tsan_broker XROCE_CASE=with_a_broker XROCE_TEST_BROKER=1
#
# Receive side scaling: the frames of a raw packet QP in the work queues of its table, each exactly
# in the queue that the hash of its headers selects, by polling and by events. On two receive
# queues: the work queues are one engine's, and frames of the other queue are handed to it.
. "$(dirname "$0")/lib/case.sh"
netns_pair 1500 2
RSS=$TOOLS/raw_rss

is_ready() { grep -q '^ready' "$WORK/receiver.out"; }

# spread RECEIVED OPTION...: from B's packet socket to A's QP. RECEIVED: "COUNT in WQS", of work
# queues that got any.
spread() {
	local want=$1 common=() own=()
	shift
	split_words own common "$@"
	start_on receiver a "$RSS" recv $DEV_A "${own[@]}" "${common[@]}"
	local receiver=$child
	wait_until 20 is_ready || { stop "$receiver"; fail "the receiver is not ready"; show receiver; return; }
	drop_maps receiver
	keep_maps "$receiver" receiver || fail "the receiver has no maps of ours"
	start sender b "$RSS" send $IF_B "${common[@]}"
	finish "$child" 30 || { fail "the sender failed"; show sender; }
	finish "$receiver" 30 || { fail "the receiver failed"; show receiver; return 1; }
	need_line receiver "^received $want\$"
}

run_case udp4 spread '200 in 4' --
run_case udp6 spread '200 in 4' -- -k udp6
run_case tcp4 spread '200 in 4' -- -k tcp4
run_long_case tcp6 spread '200 in 4' -- -k tcp6
run_case tagged spread '200 in 4' -- -k vlan
# fields: 0x3 both IPv4 addresses, 0x4 an IPv6 source, 0x80 a UDP destination port
run_case addresses spread '200 in 4' -F 0x3 --
run_long_case one_address spread '200 in 4' -F 0x4 -- -k udp6
run_case one_port spread '200 in 4' -F 0x80 --
run_case fragments_by_address spread '200 in 4' -- -k frag
# a frame with none of the fields goes to the first one
run_case no_ip spread '200 in 1' -- -k eth
run_long_case other_protocol spread '200 in 1' -F 0x30 -- -k udp4
run_case one_in_all_places spread '200 in 1' -w 1 -t 4 --
run_case three_in_sixteen_places spread '200 in 3' -w 3 -t 4 --
run_long_case a_cq_for_each spread '200 in 4' -c 4 --

# XDP wakes for one CQ, which it knows; among several it cannot choose.
woken() {
	spread '200 in 4' -e -c "$1" --
	local by_xdp
	by_xdp=$(kept receiver xroce_rx cq_wakeups)
	[ $((by_xdp > 0)) = "$2" ] || fail "XDP has woken a CQ $by_xdp times"
}
run_case events_of_one_cq woken 1 1
run_case events_of_each woken 4 0
run_long_case events_of_sixteen spread '400 in 16' -e -w 16 -t 6 -c 16 -- -n 400
# one is in ERR: the others go on
run_case without_the_second spread '[0-9]+ in 3' -b -- -n 300

# refused_as WHAT COMMAND...: what making a work queue, a table and a QP with it says.
refused_as() {
	local want=$1
	shift
	start_on refused a "$@" "$RSS" refused $DEV_A
	finish "$child" 30
	need_line refused "^$want\$"
}
run_case without_privilege refused_as EPERM setpriv --bounding-set=-net_raw --inh-caps=-net_raw
run_long_case alone_again refused_as 'made made'
# last, as the broker stays a while
run_case with_a_broker refused_as EOPNOTSUPP env XROCE_SHARE=always
finish_cases
