#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Super-packets (XROCE_TX=gso) that the kernel has to cut are RoCEv2 packets like any others after
# it: a bystander on the wire checks each, UDP checksum included, which a single frame does without.
. "$(dirname "$0")/lib/case.sh"
netns_chain 4500

# all_right TRANSPORT PATH-MTU ROUNDS
all_right() {
	local t=$1 mtu=$2 rounds=$3 cable watch
	start cable p "$TOOLS/impair" pa pb
	cable=$child
	start watch p "$TOOLS/segments" pa
	watch=$child
	wait_until 5 grep -q forwarding "$WORK/cable.out" && wait_until 5 grep -q watching "$WORK/watch.out" || fail "no forwarder, or no bystander"
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "no path from A to B"
	gids_for v4 || return
	drop_maps server
	XROCE_TX=gso keep=1 client_server 18600 60 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t "$t" -m "$mtu" -n "$rounds" -s 9 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t "$t" -m "$mtu" -n "$rounds" -s 9 $IP4_A || return
	need_line server "^vdata: $t .* bytes right"
	need_line client "^vdata: $t .* bytes right"
	need_equal "frames that left otherwise" $(($(kept server xroce_eng_stat tx_packets) - $(kept server xroce_eng_stat tx_gso))) 0
	kill "$watch"
	finish "$watch" 5 || fail "the bystander ends with $?"
	need_line watch '^saw [0-9]{3,} packets, [0-9]{2,} of them cut, 0 wrong$'
	stop "$cable"
}

run_case rc_256 all_right rc 256 40
run_long_case ud_256 all_right ud 256 40
run_long_case rc_1024 all_right rc 1024 40
run_long_case ud_1024 all_right ud 1024 40
run_long_case rc_4096 all_right rc 4096 40
run_case ud_4096 all_right ud 4096 40
finish_cases
