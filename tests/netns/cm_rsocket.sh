#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long sockets XROCE_CASES=core XROCE_PORT=sockets
#
# rsockets by the programs of rdmacm-utils: streams in each of their modes, mapped buffers, files,
# datagrams; between two namespaces and within one; and programs that know nothing of rsockets, by
# the preload library.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/cm.sh"

for program in rstream riostream rcopy udpong; do
	command -v $program >/dev/null || { echo "skip cm_rsocket no $program (rdmacm-utils)"; exit 0; }
done
netns_pair 4500

# The client's host: "b", or "a" like the server.
client_on() {
	local where=$1
	shift
	if [ "$where" = b ]; then on_b "$@"; else on_a "$@"; fi
}

# ask WHERE SECONDS SERVER COMMAND...: a client, once the server listens.
ask() {
	local where=$1 seconds=$2 server=$3
	shift 3
	cm_wait_listening "$server" || { echo "# nobody listens" >"$WORK/client.out"; return 1; }
	client_on "$where" timeout "$seconds" "$@" >"$WORK/client.out" 2>&1
}

# both PROGRAM WHERE ADDRESS OPTION...: the same options at both ends.
both() {
	local program=$1 where=$2 address=$3
	shift 3
	start_on server a "$program" "$@" -b "$address"
	local server=$child
	ask "$where" 90 "$server" "$program" -s "$address" "$@" ||
		{ fail "the client ended with $?"; show client; show server; }
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
	need_line client ' [0-9.]+s +[0-9.]+ '
}

rcopy_file() {
	local where=$1 address=$2
	head -c 3000000 /dev/urandom >"$WORK/from"
	rm -f "$WORK/to"
	start_on server a rcopy -p 7427
	local server=$child
	ask "$where" 40 "$server" rcopy "$WORK/from" "$address:$WORK/to" -p 7427 ||
		{ fail "the client ended with $?"; show client; }
	cmp "$WORK/from" "$WORK/to" 2>>"$WORK/case.notes" || fail "another file arrived"
	stop "$server"
}

datagrams() {
	local where=$1 address=$2
	shift 2
	start_on server a udpong -b "$address"
	local server=$child
	wait_until 10 in_a sh -c 'ss -Huln sport = :7174 | grep -q .' || fail "no server"
	client_on "$where" timeout 90 udpong -s "$address" "$@" >"$WORK/client.out" 2>&1 ||
		{ fail "the client ended with $?"; show client; show server; }
	need_line client ' [0-9.]+s +[0-9.]+ '
	stop "$server"
}

run_case stream_b both rstream b $IP4_A -T b -T v -S 10000 -C 100
run_case stream_v6_a both rstream a $IP6_A -T v -S 10000 -C 100
run_case mapped_b both riostream b $IP4_A -T v -S 10000 -C 20
run_case file_b rcopy_file b $IP4_A
run_case datagrams_a datagrams a $IP4_A -S 1000 -C 1000
run_long_case stream_b_a both rstream a $IP4_A -T b -T v -S 10000 -C 100
run_long_case stream_v6_b both rstream b $IP6_A -T v -S 10000 -C 100
run_long_case mapped_a both riostream a $IP4_A -T v -S 10000 -C 20
run_long_case file_a rcopy_file a $IP4_A
run_long_case datagrams_b datagrams b $IP4_A -S 1000 -C 1000
for where in b a; do
	for mode in a n r; do
		run_long_case stream_${mode}_$where both rstream $where $IP4_A -T $mode -T v -S 10000 -C 100
	done
	run_long_case stream_large_$where both rstream $where $IP4_A -T v -S 3000000 -C 4
	run_long_case stream_small_buffer_$where both rstream $where $IP4_A -T v -B 5000 -S 300000 -C 2
	run_long_case stream_no_inline_$where both rstream $where $IP4_A -T v -i 0 -S 300000 -C 4
	run_long_case stream_keepalive_$where both rstream $where $IP4_A -k 1 -S 1000 -C 100
	run_long_case datagrams_v6_$where datagrams $where $IP6_A -S 1000 -C 1000
done
# Without -C the programs exchange 100,000 messages of a size, both ends in a loop that never
# sleeps: minutes, on a machine that does other things.
stream_sizes() {
	local size
	for size in 64 192 1024 6144 65536 1048576; do
		both rstream b $IP4_A -T v -S $size -C 20
		[ ! -s "$WORK/case.notes" ] || return
	done
}
datagram_sizes() {
	local size
	for size in 64 128 192 256 384 512 768 1024 1536; do
		datagrams b $IP4_A -S $size -C 50
		datagrams b $IP4_A -T e -S $size -C 50
		[ ! -s "$WORK/case.notes" ] || return
	done
}
run_long_case stream_all_sizes stream_sizes
run_long_case datagrams_all_sizes datagram_sizes
finish_cases
