#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long shared XROCE_TEST_BROKER=1
#
# Tag matching between two hosts (tags.c): eager messages, expected and not, messages without a tag,
# rendezvous by the device and by the application.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# tags FAMILY MTU ROUNDS SEED [OPTION...]
tags() {
	local family=$1 mtu=$2 rounds=$3 seed=$4
	shift 4
	gids_for "$family" || return
	keep=1 client_server 18610 90 "$TOOLS/tags" -d $DEV_A -g "$gid_a" -m "$mtu" -n "$rounds" -s "$seed" "$@" -- \
		"$TOOLS/tags" -d $DEV_B -g "$gid_b" -m "$mtu" -n "$rounds" -s "$seed" "$@" $IP4_A || return
	need_line server "^tags: seed $seed side 0: [0-9]+ matched, [0-9]+ unexpected, [0-9]+ without a tag, [1-9][0-9]* fetched"
	need_line client "^tags: seed $seed side 1: [0-9]+ matched, [0-9]+ unexpected, [0-9]+ without a tag, [1-9][0-9]* fetched"
	# it was the wire that carried them
	need_least "packets by xroce_rx" "$(kept_packets server)" "$rounds"
	drop_maps server
}

core_cases=(tags_256_v6 tags_events_v4)
for family in v4 v6; do
	tier_case tags_256_$family tags $family 256 60 1
	tier_case tags_1024_$family tags $family 1024 100 2
	tier_case tags_4096_$family tags $family 4096 100 3
	tier_case tags_events_$family tags $family 1024 100 4 -e
done
finish_cases
