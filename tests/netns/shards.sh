#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core XROCE_CASE=[bcgko]*
# tier: core sharing XROCE_CASES=core XROCE_CASE=[!bcgko]*
# tier: long long XROCE_CASES=long
#
# An interface with two receive queues has two shards, each with an engine: threads.c, which checks
# every byte, over all that threads may share, by every way that frames leave, over a bad cable,
# with threads that change CPUs so that packets come by the other queue. The counters say that both
# shards were at work, that packets were handed over and queue pairs moved. shards.sh BUILD;
# XROCE_SHARDS_ROUNDS=N repeats the cases over the pair N times.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/cable.sh"
[ "$(nproc)" -ge 2 ] || { echo "skip shards one CPU"; exit 0; }

# Frames that the server's sockets have taken, since the pair was made.
taken() { in_a ethtool -S $IF_A | awk '/rx_queue_[0-9]+_xdp_redirect:/ { n += $2 } END { print n + 0 }'; }

# threads_run SECONDS OPTION...: both ends; the server's counters are kept. Whatever a socket has
# taken, an engine has received, but for the last acknowledgements when the program ends: nothing is
# lost between the shards.
threads_run() {
	local bound=$1 before
	shift
	drop_maps server
	before=$(taken)
	keep=1 client_server 18640 "$bound" "$TOOLS/threads" -d $DEV_A -c "$@" -- "$TOOLS/threads" -d $DEV_B -c "$@" $IP4_A || return
	need_line client '^threads: .* QPs: [0-9]+ messages/s' || return
	need_line server '^threads: (received [1-9][0-9]* of|was the target of) [0-9]+ messages' || return
	need_equal "packets with a wrong ICRC" "$(kept server xroce_eng_drop icrc)" 0
	need_least "packets that an engine has received" "$(kept server xroce_eng_stat rx_packets)" $(($(taken) - before - 128))
}

of_shard() { kept_of server xroce_eng_stat "$1" "$2"; }
# Queue pairs of both shards received, and no others.
both_worked() {
	need_least "packets received by shard 0" "$(of_shard 0 rx_packets)" "$1"
	need_least "packets received by shard 1" "$(of_shard 1 rx_packets)" "$1"
	need_equal "packets received by shards that there are not" $(($(kept server xroce_eng_stat rx_packets) - $(of_shard 0 rx_packets) - $(of_shard 1 rx_packets))) 0
}

# data OPTION...: both ends send.
data() { threads_run 60 -b "$@" && drop_maps server; }

# A thread a CPU, which redirected frames turn into a queue.
by_cpu() {
	XROCE_TX=${way:-auto} threads_run 60 -b -p 0,1 "$@" || return
	both_worked 100
}

# Threads move between CPUs: their frames come by one queue, then by the other.
changing() {
	XROCE_TX=${way:-auto} threads_run 60 -b -p 0,1 -m 300 "$@" || return
	both_worked 100
	need_least "frames handed over" "$(kept server xroce_eng_stat rx_handed)" 1
	need_least "queue pairs moved" "$(kept server xroce_eng_stat qps_moved)" 1
}

# By one shard, however many queues.
one_shard() {
	XROCE_SHARDS=1 threads_run 60 -b -p 0,1 "$@" || return
	need_least "packets received by shard 0" "$(of_shard 0 rx_packets)" 100
	need_equal "packets received by the others" $(($(kept server xroce_eng_stat rx_packets) - $(of_shard 0 rx_packets))) 0
	need_equal "frames handed over" "$(kept server xroce_eng_stat rx_handed)" 0
	need_equal "queue pairs moved" "$(kept server xroce_eng_stat qps_moved)" 0
}

# The two ends need not have as many shards.
unlike() {
	drop_maps server
	XROCE_SHARDS=1 start_on server a "$TOOLS/threads" -d $DEV_A -b -c "$@"
	server=$child
	wait_until 10 listens_or_gone a 18640 "$server"
	start_on client b "$TOOLS/threads" -d $DEV_B -b -c "$@" $IP4_A
	finish "$child" 60 || { fail "the client ends with $?"; show client; }
	finish "$server" 10 || { fail "the server ends with $?"; show server; }
}

has_packets() { local n; n=$(counter "$1" xroce_eng_stat rx_packets) && [ "$n" -ge "$2" ]; }
# start_long OPTION...: both ends, for longer than any case lasts, with packets under way.
start_long() {
	start_on server a "$TOOLS/threads" -d $DEV_A -b -n 100000000 "$@"
	server=$child
	wait_until 10 listens_or_gone a 18640 "$server"
	start_on client b "$TOOLS/threads" -d $DEV_B -b -n 100000000 "$@" $IP4_A
	client=$child
	wait_until 10 has_packets "$server" 5000 || { fail "no packets flow"; show server; show client; }
}

# The process is gone, and all that it had.
killed() {
	local maps id
	start_long "$@"
	maps=$(bpf_ids "$server" map)
	kill -9 "$server"
	finish "$server" 5
	finish "$client" 40
	[ $? -ne 124 ] || fail "the client does not notice"
	wait_until 5 xdp_off $NS_A $IF_A && wait_until 5 xdp_off $NS_B $IF_B || fail "XDP is still attached"
	for id in $maps; do
		wait_until 5 no_map "$id" || fail "map $id stays"
	done
	data -T 2 -n 2000
}

# Both shards stop with it, and all queue pairs are in error. Last, as there is no pair any more.
gone() {
	start_long "$@"
	ip -n $NS_A link del $IF_A
	for pid in $server $client; do
		finish "$pid" 40
		[ $? -ne 124 ] || fail "an end does not notice"
	done
	# 5: IBV_WC_WR_FLUSH_ERR, and EIO
	grep -qE 'ended with status 5 |: -5$|Input/output error' "$WORK/server.out" || { fail "the server's queue pairs are not in error"; show server; }
}

# Each mechanism once, with two threads.
core_cases=(
	send_sleeping_2 write_2 read_2 add_2 ud_2 fork
	by_cpu_auto changing_cpu_auto one_shard one_shard_at_one_end
	killed gone
)
sharing() { tier_case "$1_own" "${@:2}"; tier_case "$1_one_cq" "${@:2}" -C; tier_case "$1_one_srq" "${@:2}" -R; tier_case "$1_one_cq_one_srq" "${@:2}" -C -R; }

over_the_pair() {
	local t op way
	for t in 2 4; do
		sharing send_$t data -T $t -o send -n $((20000 / t)) -s 200
		tier_case send_sleeping_$t data -T $t -n $((20000 / t)) -s 200 -e
		tier_case send_one_channel_$t data -T $t -n $((20000 / t)) -s 200 -E
		tier_case send_one_cq_sleeping_$t data -T $t -n $((20000 / t)) -s 200 -e -C -R
		for op in write read; do
			tier_case ${op}_$t data -T $t -o $op -n $((2000 / t)) -s 20000
			tier_case ${op}_one_cq_$t data -T $t -o $op -n $((2000 / t)) -s 20000 -C
			tier_case ${op}_sleeping_$t data -T $t -o $op -n $((2000 / t)) -s 20000 -e
		done
		tier_case add_$t data -T $t -o add -n $((20000 / t))
		tier_case add_sleeping_$t data -T $t -o add -n $((20000 / t)) -E
		tier_case ud_$t data -T $t -o ud -n $((10000 / t)) -s 1000
		tier_case uc_$t data -T $t -o uc -n $((10000 / t)) -s 5000 -R
	done
	tier_case many_qps data -T 4 -q 16 -n 1000 -s 300 -C -R
	tier_case fork data -T 2 -n 20000 -s 2000 -F 5
	tier_case fork_sleeping data -T 2 -n 20000 -s 2000 -F 5 -e
	for way in auto xsk tap live; do
		tier_case by_cpu_$way by_cpu -T 2 -q 2 -n 10000 -s 300 -e
	done
	for way in auto tap live; do
		tier_case changing_cpu_$way changing -T 2 -q 2 -n 10000 -s 300 -e
		tier_case changing_cpu_one_cq_one_srq_$way changing -T 4 -n 10000 -s 300 -e -C -R
		tier_case changing_cpu_read_$way changing -T 2 -o read -n 5000 -s 3000 -e
		tier_case changing_cpu_add_$way changing -T 2 -q 4 -o add -n 5000 -e
	done
	way=auto
	tier_case one_shard one_shard -T 2 -n 10000 -s 300 -e
	tier_case one_shard_at_one_end unlike -T 2 -q 2 -n 10000 -s 300 -e
}

netns_pair 4500 2
for ((round = 0; round < ${XROCE_SHARDS_ROUNDS:-1}; round++)); do
	over_the_pair
done
tier_case killed killed -T 2 -e
tier_case killed_polling killed -T 4 -C -R
tier_case gone gone -T 2 -e
finish_cases
