#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long native XROCE_XDP=native
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long shared XROCE_TEST_BROKER=1
#
# RC over a bad cable: packets are lost, come twice, come in another order, and every byte and
# completion is right all the same. Exactly what each lost, duplicated or reordered packet leads to
# is in tests/sim: test_loss, test_masks16, test_recovery, test_duplicates, test_timeout,
# test_random; of tag matching in test_tag_rendezvous and test_tag_random. The ibv_*_pingpong
# programs are not for such a cable: one exits as soon as it has all data, also when its last ACK is
# lost and the other asks for it again. The two ends of vdata and of tags exit together, and those
# of a stream when the peer has everything.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/cable.sh"
netns_chain 4500

# data WHAT FAMILY SEED ROUNDS OPTION-OF-IMPAIR...: WHAT the cable must have done.
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

# A receiver that ends its own direction while the last data is under way, and the sender has
# closed. All of it arrives, on each of 8 streams.
stream() {
	local server
	cable_with -s "$1" -l 100
	start server a "$XROCE" run --rsockets --dev $IF_A -- python3 -c '
import socket, sys, time
listener = socket.create_server((sys.argv[1], 7475))
for i in range(8):
    s, _ = listener.accept()
    received = 0
    while received < 180000:
        received += len(s.recv(1 << 14))
    time.sleep(i / 500)
    s.shutdown(socket.SHUT_WR)
    while data := s.recv(1 << 16):
        received += len(data)
    assert received == 300000, received
    s.close()
print("complete")' $IP4_A
	server=$child
	wait_until 20 listens_by_rsocket || fail "nobody listens"
	start client b "$XROCE" run --rsockets --dev $IF_B -- python3 -c '
import socket, sys
for _ in range(8):
    s = socket.create_connection((sys.argv[1], 7475))
    s.sendall(bytes(300000))
    s.close()' $IP4_A
	finish "$server" 100 || { fail "the server ended with $?"; show server; }
	finish "$child" 20 || { fail "the client ended with $?"; show client; }
	need_line server '^complete$'
	cable_did dropped
}
listens_by_rsocket() { in_a "$XROCE" list $IF_A 2>&1 | grep -q 'bound to 1 service'; }

run_case data_everything_v4 data "dropped duplicated reordered" v4 22 40 -l 10 -u 10 -r 10
run_long_case data_everything_v6 data "dropped duplicated reordered" v6 22 40 -l 10 -u 10 -r 10
run_long_case data_clean data roce v4 23 60
run_long_case data_duplicates data duplicated v4 24 60 -u 50
run_long_case data_reordering data reordered v4 25 60 -r 20
for family in v4 v6; do
	run_long_case data_loss_1_percent_$family data dropped $family 21 60 -l 10
done
run_case tags_everything tags 31 60
run_long_case stream_ended_by_receiver stream 41
[ -z "$cable" ] || stop "$cable"
finish_cases
