#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Completion vectors on an interface with two receive queues: a CQ's vector chooses the shard in
# which its QP starts, and so the thread that raises its events; XDP wakes the thread of the
# packet's queue. Each queue has a thread, on its configured CPU, and all of them sleep while idle.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500 2

# vector PID N FIELD: a field of the process's xroce_vector
vector() { bpftool map lookup id "$(map_id "$1" xroce_vector)" key "$2" 0 0 0 | field "$3"; }
# threads PID: the names of the workers.
threads() { cat "/proc/$1/task/"*/comm | grep '^xroce/' | sort | tr '\n' ' '; }
# A thread that has not run yet has another name.
both_threads() { [ "$(threads "$1")" = "xroce/$IF_A xroce/$IF_A/1 xroce/watch " ]; }
said() { grep -qE "$2" "$WORK/$1.out"; }
said_or_gone() { said "$1" "$2" || is_gone_or_zombie "$3"; }
# cpus PID THREAD: the CPUs on which it may run
cpus() {
	local t
	for t in "/proc/$1/task/"*; do
		[ "$(cat "$t/comm")" = "$2" ] && sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "$t/status"
	done
}
# switches PID: context switches of all threads of the library
switches() {
	local t
	for t in "/proc/$1/task/"*; do
		grep -q '^xroce/' "$t/comm" && sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "$t/status"
	done | awk '{ n += $1 } END { print n }'
}

# run_vector N EVENTS: runs vector_events on vector N, until EVENTS events arrived; pid in $child
run_vector() {
	start_on vector a "$TOOLS/vector_events" $DEV_A "$1" "$2"
	wait_until 30 said_or_gone vector "^vector_events: $2," "$child"
	said vector "^vector_events: $2," || { fail "vector_events does not end"; show vector; stop "$child"; return 1; }
}

raised_by() {
	local v=$1
	run_vector "$v" 50 || return
	wait_until 10 both_threads "$child" || fail "the threads are '$(threads "$child")'"
	need_least "events raised by vector $v's thread" "$(vector "$child" "$v" events)" 50
	need_equal "events raised by the other's" "$(vector "$child" $((1 - v)) events)" 0
	stop "$child"
}

# On CPUs 1 and 0, in this order. A machine with one CPU has no choice.
pinned() {
	[ "$(nproc)" -ge 2 ] || { skip_reason="one CPU"; return 77; }
	XROCE_VECTOR_CPUS=1,0 run_vector 1 50 || return
	wait_until 10 both_threads "$child" || fail "a thread does not start"
	need_equal "vector 0's CPUs" "$(cpus "$child" xroce/$IF_A)" 1
	need_equal "vector 1's CPUs" "$(cpus "$child" xroce/$IF_A/1)" 0
	stop "$child"
}

# Without events no thread wakes; the last event's work is over when two readings are equal.
asleep() { local n; n=$(switches "$1"); read -r -t 0.3 <>"$WORK/quiet"; [ "$n" = "$(switches "$1")" ]; }
idle() {
	run_vector 1 50 || return
	wait_until 10 asleep "$child" || fail "the threads do not fall asleep"
	stop "$child"
}

# The application sleeps, and packets arrive on both queues, as the senders' ports determine: each
# queue's thread takes them.
engine_has() { [ "$(bpftool map dump id "$(map_id "$1" xroce_eng_stat)" | field rx_packets)" = "$2" ]; }
queue_packets() { in_a ethtool -S $IF_A | awk -v want="rx_queue_$1_xdp_packets:" '$1 == want { print $2 }'; }
both_queues() {
	local port qpn before
	before=$(queue_packets 1)
	run_vector 1 0 || return
	qpn=$(sed -n 's/^vector_events: .*QP //p' "$WORK/vector.out")
	for port in {50001..50016}; do
		in_b "$TOOLS/tagged" -i $IF_B -s $MAC_B -d $MAC_A -f $IP4_B -t $IP4_A -q "$qpn" -k 1 -p "$port" || fail "tagged failed"
	done
	wait_until 10 engine_has "$child" 16 || fail "packets lie in a queue that nobody watches"
	need_least "packets by queue 1" "$(($(queue_packets 1) - before))" 1
	stop "$child"
}

# Over a real path, CQs on both vectors: no wake-up is lost.
stress() {
	local hops=${XROCE_WAKE_HOPS:-10000}
	gids_for v4 || return
	client_server 18620 100 "$TOOLS/cq_notify_stress" -d $DEV_A -g "$gid_a" -n "$hops" -s 3 -- \
		"$TOOLS/cq_notify_stress" -d $DEV_B -g "$gid_b" -n "$hops" -s 3 $IP4_A || return
	need_line server "^cq_notify_stress: seed 3: [0-9]+ events for [0-9]+ completions"
}

run_long_case raised_by_vector_0 raised_by 0
run_case raised_by_vector_1 raised_by 1
run_case pinned pinned
run_case idle idle
run_case both_queues both_queues
run_long_case stress stress
finish_cases
