#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long shards XROCE_TEST_QUEUES=2
#
# However a program ends, nothing of ours stays: no program on the hook, no map, no program in the
# kernel, and the next one can start.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

gids_for v4 || netns_die "no GID"

# ids_of KIND: of both programs and of their brokers, as bpf_left takes them
ids_of() {
	local pid
	for pid in "$server" "$client" $(brokers a) $(brokers b); do
		bpf_ids "$pid" "$1"
	done | sort -nu | sed "s/^/$1 /"
}
brokers() { in_$1 "$XROCE" list | sed -n 's/^  broker *pid \([0-9]*\) .*/\1/p'; }

# leaves_nothing SIGNAL: both ends of a running exchange are ended by it.
leaves_nothing() {
	local server client maps progs links left
	start_on server a ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 100000000
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start_on client b ibv_rc_pingpong -d $DEV_B -g "$gid_b" -n 100000000 $IP4_A
	client=$child
	wait_until 10 packets_flow "$server" || { fail "no packets flow"; show server; show client; }
	xdp_on $NS_A $IF_A || fail "XDP is not attached on $IF_A"
	xdp_on $NS_B $IF_B || fail "XDP is not attached on $IF_B"
	mapfile -t maps < <(ids_of map)
	mapfile -t progs < <(ids_of prog)
	mapfile -t links < <(ids_of link)
	need_least "number of maps" ${#maps[@]} 10
	# the brokers' too; including the transmit path's, on a TAP device in a separate namespace
	need_least "number of programs" ${#progs[@]} 6
	need_least "number of links" ${#links[@]} 4
	grep -q '^iff:' "/proc/$server/fdinfo/"* || fail "the server has no TAP device"
	in_a ip -o link show | grep -q ': xroce[0-9]' && fail "the TAP device is in sight"
	kill -"$1" "$server" "$client"
	finish "$server" 5
	finish "$client" 5
	wait_until 5 xdp_off $NS_A $IF_A || fail "XDP stays on $IF_A"
	wait_until 5 xdp_off $NS_B $IF_B || fail "XDP stays on $IF_B"
	left=$("$TOOLS/bpf_left" 20 "${maps[@]}" "${progs[@]}" "${links[@]}") || fail "it stays: $left"
}

packets_flow() { local n; n=$(counter "$1" xroce_rx redirected) && [ "$n" -gt 1000 ]; }

starts_again() {
	client_server 18515 30 ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 100 -- ibv_rc_pingpong -d $DEV_B -g "$gid_b" -n 100 $IP4_A
	xdp_off $NS_A $IF_A || fail "XDP stays on $IF_A after an orderly end"
	xdp_off $NS_B $IF_B || fail "XDP stays on $IF_B after an orderly end"
}

# The peer of a killed process must not wait for ever: its retries run out, and it reports that. It
# always has something to send: a peer that only waits to receive learns nothing, as with an
# adapter.
peer_notices() {
	local server client rc
	start_on server a ib_send_bw -d $DEV_A -x "$gid_a" -F -n 10000000
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start_on client b ib_send_bw -d $DEV_B -x "$gid_b" -F -n 10000000 $IP4_A
	client=$child
	wait_until 10 packets_flow "$server" || { fail "no packets flow"; show server; show client; }
	kill -9 "$server"
	finish "$server" 5
	finish "$client" 30
	rc=$?
	# 124: it was still running
	[ $rc -ne 0 ] && [ $rc -ne 124 ] || fail "exit status of the client is $rc"
	# IBV_WC_RETRY_EXC_ERR is 12.
	need_line client 'Failed status 12:'
}

run_case leaves_nothing_kill leaves_nothing KILL
run_case starts_again_after_kill starts_again
run_long_case leaves_nothing_term leaves_nothing TERM
run_long_case starts_again_after_term starts_again
run_case peer_notices peer_notices
finish_cases
