#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Commands that run on, while they or a broker are stopped for a time, interfaces come, or there are
# more objects than they can show: rates, totals and counts stay true, and gaps are reported.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"

# pause_for SECONDS
pause_for() { read -r -t "$1" <>"$WORK/quiet"; }
# lines_more NAME N: its output has N lines more than $lines
lines_more() { [ "$(wc -l <"$WORK/$1.out")" -ge $((lines + $2)) ]; }
# of_lines NAME EXPRESSION: of its lines, each a document, a Python expression of the list d.
of_lines() {
	python3 -c 'import json, sys
d = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{") and line.endswith("\n")]
print(eval(sys.argv[2]))' "$WORK/$1.out" "$2" 2>&1
}

# pingpong PORT NS: an endless one, the server on A; pids in $server and $client.
pingpong() {
	local ns=$2 dev=$IF_A
	[ "$ns" = a ] || dev=$IF_B
	start server a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -n 100000000 -p "$1"
	server=$child
	wait_until 10 listens_or_gone a "$1" "$server"
	start client "$ns" "$XROCE" run --dev "$dev" -- ibv_rc_pingpong -d "xroce_$dev" -g 0 -n 100000000 -p "$1" $IP4_A
	client=$child
	wait_until 10 has_received 1000 || { fail "no traffic"; show server; show client; return 1; }
}
# has_received N: waits until the server has received N packets
has_received() {
	in_a "$XROCE" stat --json --pid "$server" >"$WORK/received.json" 2>/dev/null &&
		python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["ports"][0]["counters"]["rx_packets"] < int(sys.argv[2]))' "$WORK/received.json" "$1"
}
end_pingpong() { kill -CONT "$server" "$client"; stop "$client"; stop "$server"; }

# The broker is silent for some rounds: nothing moves meanwhile, so nothing may have a rate when it
# answers again, and no total may be more than before.
answers_again() { tail -n 1 "$WORK/top.out" | grep -q '"silent":false'; }
silent_broker() {
	local stat top lines
	serve a $IF_A || return
	pingpong 18530 a || return
	kill -STOP "$server" "$client"
	start stat a "$XROCE" stat --json -i 0.3
	stat=$child
	start top a "$XROCE" top --json -i 0.3
	top=$child
	lines=0
	wait_until 10 lines_more stat 3
	wait_until 10 lines_more top 3
	kill -STOP "$broker"
	lines=$(wc -l <"$WORK/top.out")
	# the query in progress, if any, and a query that timed out
	wait_until 20 lines_more top 2
	kill -CONT "$broker"
	# top asks the broker again after a pause
	wait_until 10 answers_again || fail "top shows the broker as silent"
	lines=$(wc -l <"$WORK/top.out")
	wait_until 10 lines_more top 3
	lines=$(wc -l <"$WORK/stat.out")
	wait_until 10 lines_more stat 3
	kill -INT "$top"
	finish_at_most "$top" 10 || { fail "top ends with $?"; show top; }
	kill -TERM "$stat"
	finish_at_most "$stat" 10
	need_equal "rounds of stat that saw nobody" "$(of_lines stat 'min(len(d["ports"]) for d in d) < 3')" True
	need_equal "rates of stat" "$(of_lines stat 'max(p["per_second"]["rx_packets"] for d in d for p in d["ports"] if "per_second" in p)')" 0.0
	need_equal "processes of top, and its broker" "$(of_lines top '{len(d["processes"]) for d in d}')" '{3}'
	need_equal "rates of top" "$(of_lines top 'max(r["rx_packets_per_second"] or 0.0 for d in d for v in ("qps", "processes", "interfaces") for r in d[v])')" 0.0
	need_equal "totals of the interface" "$(of_lines top 'len({r["rx_packets"] for d in d for r in d["interfaces"] if r["dev"] == "va"})')" 1
	end_pingpong
	stop "$broker"
}

# A broker that gets no processor for a moment as a trace begins: the trace waits for it, and says
# nothing.
late_broker() {
	local trace
	serve a $IF_A || return
	pingpong 18533 a || return
	kill -STOP "$broker"
	start trace a "$XROCE" trace -D 3 -p "$server"
	trace=$child
	pause_for 0.8
	kill -CONT "$broker"
	finish_at_most "$trace" 15 || fail "trace ends with $?"
	need_no_line trace '^xroce trace: (cannot|no process)'
	need_least "packets of the trace" "$(grep -c ' RC ' "$WORK/trace.out")" 100
	end_pingpong
	stop "$broker"
}

# A broker that is stopped, and whose queue is full of unread requests: all its observers end in
# time.
full_queue() {
	local top
	serve a $IF_A || return
	start top a "$XROCE" top --json -i 0.1
	top=$child
	wait_until 10 grep -q . "$WORK/top.out"
	kill -STOP "$broker"
	in_a python3 -c 'import glob, os, socket, sys
path = "/run/xroce/%d-%s.sock" % (os.stat("/proc/self/ns/net").st_ino, sys.argv[1])
kept = []
while True:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.setblocking(False)
    try:
        s.connect(path)
    except BlockingIOError:
        break
    kept.append(s)
print("full after", len(kept))' "$(ip -n $NS_A -o link show dev $IF_A | cut -d: -f1)" >"$WORK/full.out" 2>&1
	need_line full '^full after [1-9]'
	in_a timeout 10 "$XROCE" trace -D 1 >"$WORK/late.out" 2>&1 || fail "trace -D 1 ends with $?"
	need_line late 'the broker does not answer'
	# one round that waits, and another that it may be at
	kill -INT "$top"
	finish_at_most "$top" 12
	# a broker that does not answer is a failure
	need_equal "status of top" $? 1
	kill -CONT "$broker"
	stop "$broker"
}

# add_interface: vx, in A
add_interface() {
	ip -n $NS_A link add vx address 02:00:00:77:00:05 type veth peer name vy
	ip -n $NS_A link set vy up
	ip -n $NS_A link set vx up
	ip -n $NS_A addr add 10.78.0.1/24 dev vx
}

# An interface that comes later, and another one of its name.
new_interfaces() {
	local all one time lines
	start all a "$XROCE" stat --json -i 0.1
	all=$child
	wait_until 10 grep -q . "$WORK/all.out"
	for time in 1 2; do
		add_interface
		if [ $time = 1 ]; then
			start one a "$XROCE" top --json -i 0.1 --dev vx
			one=$child
		fi
		start waits a "$XROCE" run --dev vx -- ibv_rc_pingpong -d xroce_vx -g 0 -p 18533
		waits=$child
		wait_until 10 listens_or_gone a 18533 "$waits"
		wait_at_most 5 grep -q "\"dev\":\"vx\",\"pid\":$waits," "$WORK/all.out" || fail "stat does not see it, time $time"
		wait_at_most 5 grep -q "\"dev\":\"vx\",\"pid\":$waits," "$WORK/one.out" || fail "top --dev does not see it, time $time"
		stop "$waits"
		ip -n $NS_A link del vx
		lines=$(wc -l <"$WORK/one.out")
		wait_until 10 lines_more one 2
		is_gone_or_zombie "$all" && { fail "stat has ended"; show all; }
		is_gone_or_zombie "$one" && { fail "top has ended"; show one; }
	done
	kill -TERM "$all" "$one"
	finish_at_most "$all" 10
	finish_at_most "$one" 10
}

# waits_alone: a process on A that does nothing, in $idle
waits_alone() {
	start idle a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18540
	idle=$child
	wait_until 10 listens_or_gone a 18540 "$idle"
}
# stranger: a packet to no QP of A, at which XDP sees that a lease is over
stranger() {
	in_b python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(bytes([4, 0x40, 0xff, 0xff, 0, 0, 0x12, 0x34, 0, 0, 0, 0]) + bytes(20), ('$IP4_A', 4791))
"
}
# listens_to PATTERN: the word that has a bit for each place that is in use
listens_to() { bpftool -j map dump id "$(map_id "$idle" .data.trace)" 2>/dev/null | grep -qE "\"listening\":$1\\b"; }

# Stopped for longer than its lease: that is reported, at that place, and once; and if others have
# all places by then, that too. A command without a place from the beginning reports that alone.
stopped_observers() {
	local trace capture others=() i
	waits_alone
	start trace a "$XROCE" trace $IF_A
	trace=$child
	start capture a "$XROCE" capture -w "$WORK/captured" $IF_A
	capture=$child
	wait_until 10 listens_to 12 || fail "the two do not look"
	kill -STOP "$trace" "$capture"
	pause_for 2.2
	stranger
	wait_until 5 listens_to 0 || fail "the leases go on"
	kill -CONT "$trace"
	wait_at_most 5 grep -q '^xroce trace: the command was stopped for longer than 2 s' "$WORK/trace.out" || fail "trace does not say where it was stopped"
	kill -INT "$trace"
	finish_at_most "$trace" 10 || fail "trace ends with $?"
	need_line trace '^xroce trace: the command was stopped 1 times for longer than 2 s'
	# the capture's place can be taken now
	pause_for 2
	for i in 1 2 3 4; do
		start "other$i" a "$XROCE" trace $IF_A
		others+=("$child")
	done
	wait_until 10 listens_to 15 || fail "the four do not look"
	kill -CONT "$capture"
	wait_at_most 5 grep -q 'all trace slots' "$WORK/capture.out" || fail "capture does not say that it is out"
	start fifth a "$XROCE" trace $IF_A
	i=$child
	wait_at_most 3 grep -q 'all trace slots of the process are in use' "$WORK/fifth.out" || fail "a fifth does not say why it sees nothing"
	need_no_line fifth 'no process uses'
	stop "$i"
	for i in "${others[@]}"; do stop "$i"; done
	wait_at_most 5 listens_to '[1248]' || fail "capture does not come back to a place"
	kill -INT "$capture"
	finish_at_most "$capture" 10 || fail "capture ends with $?"
	need_line capture '^xroce capture: the command was stopped 1 times for longer than 2 s'
	stop "$idle"
}

# Packets after the time of -d are not in the file, however late it reads them.
duration() {
	local capture began last
	pingpong 18534 b || return
	began=$(date +%s%N)
	start capture a "$XROCE" capture -w "$WORK/timed" -D 2 --snaplen 64 --buffer 64 $IF_A
	capture=$child
	pause_for 1.2
	kill -STOP "$capture"
	pause_for 1.6
	kill -CONT "$capture"
	finish_at_most "$capture" 10 || { fail "capture ends with $?"; show capture; }
	last=$(python3 -c 'import struct, sys
data, at, last = open(sys.argv[1], "rb").read(), 0, 0
while at < len(data):
    kind, size = struct.unpack_from("=II", data, at)
    if kind == 6:
        high, low = struct.unpack_from("=II", data, at + 12)
        last = max(last, high << 32 | low)
    at += size
print((last - int(sys.argv[2])) // 1000000)' "$WORK/timed" "$began")
	need_least "the last packet's ms" "$last" 1300
	need_least "the last packet's ms before 2.4 s" $((2400 - last)) 0
	end_pingpong
}

# The reader has closed the pipe: they end, though there is nothing to be written.
nobody_reads() {
	local pid words what
	waits_alone
	for what in trace "capture -w -"; do
		read -ra words <<<"$what"
		mkfifo "$WORK/pipe"
		# no function: that would be a shell's pid
		nsenter --net=/run/netns/$NS_A "$XROCE" "${words[@]}" $IF_A >"$WORK/pipe" 2>"$WORK/unread.out" &
		pid=$!
		netns_children+=("$pid")
		exec 9<"$WORK/pipe"
		wait_until 10 listens_to 8 || fail "$what does not look"
		exec 9<&-
		finish_at_most "$pid" 5 || fail "$what ends with $?"
		rm "$WORK/pipe"
	done
	stop "$idle"
}

# More objects than the maps have room for: the output is incomplete, and that is reported.
many_objects() {
	local many what
	start many a "$XROCE" run --dev $IF_A -- "$TOOLS/many_objects" $DEV_A 600
	many=$child
	wait_until 30 grep -q '^ready' "$WORK/many.out" || { fail "no objects"; show many; }
	for what in qp cq mr; do
		in_a "$XROCE" $what --json >"$WORK/$what.json" 2>"$WORK/$what.out" || fail "$what ends with $?"
		need_line $what "^xroce $what: $IF_A: pid $many \\(many_objects\\): only 512 ${what}s .*of the process are visible; it may have more"
	done
	in_a "$XROCE" srq --json >/dev/null 2>"$WORK/srq.out"
	need_line srq ': only 128 srqs of the process are visible'
	need_equal "QPs, and those with a state" "$(python3 -c 'import json, sys
qps = json.load(open(sys.argv[1]))["qps"]
print(len(qps), sum(q["state"] is not None for q in qps))' "$WORK/qp.json")" '600 512'
	stop "$many"
}

# An interface whose name has bytes that a terminal obeys or that are not UTF-8: none is printed.
odd_names() {
	local odd=$'a\e"\\\xff\xc2\x9b' what words
	ip -n $NS_A link add "$odd" type veth peer name vy
	ip -n $NS_A link set vy up
	ip -n $NS_A link set "$odd" up
	ip -n $NS_A addr add 10.78.0.1/24 dev "$odd"
	start many a "$XROCE" run --dev "$odd" -- "$TOOLS/many_objects" "xroce_$odd" 1
	many=$child
	wait_until 30 grep -q '^ready' "$WORK/many.out" || { fail "no objects"; show many; }
	for what in list doctor clients stat qp cq srq mr explain 'top -b -c 1 -i 0.1' 'export -1' 'ping -c 1 10.78.0.1' \
		'trace -D 1' "capture -w $WORK/odd -D 1"; do
		read -ra words <<<"$what"
		in_a timeout 20 "$XROCE" "${words[@]}" >"$WORK/odd.out" 2>&1
		[ -s "$WORK/odd.out" ] || [[ $what = trace* ]] || fail "xroce $what prints nothing"
		# U+FFFD is what export has for it
		! sed 's/\xef\xbf\xbd//g' "$WORK/odd.out" | grep -qP '[^\t\x20-\x7e]' || { fail "xroce $what prints what the name has"; show odd; }
	done
	for what in 'list -j' 'doctor -j' 'clients -j' 'stat -j' 'qp -j' 'cq -j' 'mr -j' 'explain -j' 'top -j -c 1 -i 0.1'; do
		read -ra words <<<"$what"
		in_a timeout 20 "$XROCE" "${words[@]}" 2>/dev/null | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "xroce $what is no JSON"
	done
	stop "$many"
	ip -n $NS_A link del "$odd"
}

run_long_case silent_broker silent_broker
run_case late_broker late_broker
run_long_case full_queue full_queue
run_case new_interfaces new_interfaces
run_case stopped_observers stopped_observers
run_long_case duration duration
run_case nobody_reads nobody_reads
run_case many_objects many_objects
run_long_case odd_names odd_names
finish_cases
