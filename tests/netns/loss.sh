#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
# tier: long native XROCE_XDP=native
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long shared XROCE_TEST_BROKER=1
#
# RC over a bad cable: packets are lost, come twice, come in another order, and every byte and
# completion is right all the same.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/cable.sh"
netns_chain 4500

# The server has all, and has gone, before the client has the ACK of its last message: that was
# lost, and nobody is there to send it again.
is_last_ack_lost() {
	grep -q "^$iters iters in " "$WORK/server.out" &&
		grep -q 'transport retry counter exceeded (12) for wr_id 2$' "$WORK/client.out"
}
pingpong() {
	local iters=$3
	again_if is_last_ack_lost pingpong_once "$@"
}
pingpong_once() {
	local what=$1 size=$2 n=$3
	shift 3
	cable_with "$@"
	gids_once v4 || return
	client_server 18515 120 ibv_rc_pingpong -d $DEV_A -g "$gid_a" -s "$size" -n "$n" -c -- \
		ibv_rc_pingpong -d $DEV_B -g "$gid_b" -s "$size" -n "$n" -c $IP4_A
	need_line client "^$((size * n * 2)) bytes in "
	need_no_line client 'invalid data'
	need_no_line server 'invalid data'
	cable_did $what
}

data() {
	local what=$1 family=$2 seed=$3 rounds=$4
	shift 4
	cable_with -s "$seed" "$@"
	gids_once $family || return
	client_server 18600 150 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -n "$rounds" -s "$seed" -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -n "$rounds" -s "$seed" $IP4_A
	need_line server '^vdata: rc .* bytes right'
	need_line client '^vdata: rc .* bytes right'
	cable_did $what
}

# Tag matching: nothing is matched twice, and rendezvous come through.
tags() {
	local seed=$1 rounds=$2
	cable_with -s "$seed" -l 10 -u 10 -r 10
	gids_once v4 || return
	client_server 18610 150 "$TOOLS/tags" -d $DEV_A -g "$gid_a" -n "$rounds" -s "$seed" -- \
		"$TOOLS/tags" -d $DEV_B -g "$gid_b" -n "$rounds" -s "$seed" $IP4_A
	need_line server '^tags: .* fetched by the device'
	need_line client '^tags: .* fetched by the device'
	cable_did dropped duplicated reordered
}

run_case pingpong_clean pingpong roce 4096 200
run_case pingpong_loss_1_percent pingpong dropped 4096 500 -s 1 -l 10
run_case pingpong_large_loss_1_percent pingpong dropped 65536 50 -s 2 -l 10
run_case pingpong_duplicates pingpong duplicated 4096 300 -s 3 -u 50
run_case pingpong_reordering pingpong reordered 4096 300 -s 4 -r 20
for family in v4 v6; do
	run_case data_loss_1_percent_$family data dropped $family 21 60 -l 10
	run_case data_everything_$family data "dropped duplicated reordered" $family 22 40 -l 10 -u 10 -r 10
done
run_case tags_everything tags 31 60
[ -z "$cable" ] || stop "$cable"
finish_cases
