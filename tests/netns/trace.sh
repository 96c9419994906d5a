#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# xroce trace: a line for each event that the process counts, and for each packet; filters; the
# events of a dead peer; observers in a time namespace.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_chain 4500
start cable p "$TOOLS/impair" -s 7 -l 30 -u 10 -r 10 pa pb
wait_until 5 grep -q forwarding "$WORK/cable.out" || netns_die "no forwarder"

# trace NAME OPTION...: on A, in the background, its pid in $child; returns once it observes.
trace() {
	local name=$1
	shift
	start "$name" a "$XROCE" trace "$@" $IF_A
	wait_until 10 grep -q waiting "$WORK/$name.out" || fail "$name does not begin"
}
traced() {
	kill -INT "$2" 2>/dev/null
	finish "$2" 20 || { fail "$1 ends with $?"; show "$1"; }
	need_no_line "$1" 'records were lost'
}
lines() { grep -cE -- "$2" "$WORK/$1.out"; }

# Over a lossy cable: the number of lines equals each counter of the process that has an event.
events_are_counted() {
	local all errors field
	gids_once v4 || return
	trace all --json
	all=$child
	trace errors -e -j
	errors=$child
	keep=1 client_server 18600 60 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t rc -m 1024 -n 60 -s 3 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t rc -m 1024 -n 60 -s 3 $IP4_A || return
	traced all "$all"
	traced errors "$errors"
	for field in tx_retransmitted timeouts rto_probes duplicate_requests tx_sequence_naks rx_sequence_naks tx_rnr_naks rx_rnr_naks implied_naks rx_writes rx_reads rx_atomics; do
		need_equal "events $field" "$(lines all "\"event\":\"$field\"")" "$(kept server xroce_eng_stat $field)"
	done
	need_least "retransmissions" "$(lines all '"event":"tx_retransmitted"')" 1
	need_equal "packets received" "$(lines all '"kind":"received"')" "$(kept server xroce_eng_stat rx_packets)"
	need_equal "packets sent" "$(lines all '"kind":"sent"')" "$(($(kept server xroce_eng_stat tx_packets) - $(kept server xroce_eng_stat flow_answers)))"
	need_equal "retransmissions among errors" "$(lines errors '"event":"tx_retransmitted"')" "$(kept server xroce_eng_stat tx_retransmitted)"
	need_equal "NAKs sent among errors" "$(lines errors '"kind":"sent".*NAK: PSN sequence')" "$(lines all '"kind":"sent".*NAK: PSN sequence')"
	need_no_line errors '"syndrome":"ACK"|"event":"rx_writes"|RC SEND'
	python3 -c "import json, sys; [json.loads(line) for line in open('$WORK/all.out') if line.startswith('{')]" || fail "a line is no JSON"
	drop_maps server
}

filters() {
	local reads events out
	gids_once v4 || return
	trace reads -O read
	reads=$child
	trace out -Q out -c 5
	out=$child
	trace events --events
	events=$child
	client_server 18600 60 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t rc -m 1024 -n 10 -s 3 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t rc -m 1024 -n 10 -s 3 $IP4_A || return
	finish "$out" 10 || fail "-c ends with $?"
	traced reads "$reads"
	traced events "$events"
	need_equal "sent packets" "$(lines out ' > ')" 5
	need_equal "lines beside them" "$(lines out ' QP 0x[0-9a-f]+ [<*]')" 0
	need_line reads ' < RC READ_REQUEST .* R_Key 0x'
	need_equal "packets that are no READs" "$(grep -E ' QP 0x[0-9a-f]+ [<>*]' "$WORK/reads.out" | grep -vcE ' RC READ_')" 0
	need_line events ' \* state RTS$'
	need_equal "packets among events" "$(lines events ' QP 0x[0-9a-f]+ [<>]')" 0
}

# A peer that is killed: time-outs, the error with its reason, the state.
dead_peer() {
	local watch server client
	gids_once v4 || return
	trace dead -e
	watch=$child
	start_on server b ib_send_bw -d $DEV_B -x "$gid_b" -s 1024 -n 100000000 -F
	server=$child
	wait_until 10 listens_or_gone b 18515 "$server"
	start_on client a ib_send_bw -d $DEV_A -x "$gid_a" -s 1024 -n 100000000 -F $IP4_B
	client=$child
	# some packet is always unacknowledged
	wait_until 20 grep -q 'event\|request retransmitted' "$WORK/dead.out"
	kill -9 "$server"
	finish "$server" 5
	wait_until 30 is_gone_or_zombie "$client" || fail "the sender does not end"
	finish "$client" 1
	traced dead "$watch"
	need_line dead ' \* time-out; '
	need_line dead ' \* error RETRY_EXC_ERR: retry_cnt time-outs without an answer \(3\)$'
	need_line dead ' \* state ERR$'
}

# waiting NS IFINDEX: the queue length at the socket of the broker that owns the interface.
waiting() { in_ns "$1" ss -Hxl | awk -v name="@xroce/$2" '$5 == name { print $3; found = 1 } END { exit !found }'; }

# A broker that can make nothing in /run/xroce.
cat >"$WORK/hidden" <<'END'
#!/bin/sh
mount --bind "$1" /run/xroce && mount -o remount,bind,ro /run/xroce || exit 1
shift
exec "$@"
END
chmod 755 "$WORK/hidden"
HIDDEN=(unshare -m --propagation private "$WORK/hidden" "$WORK/empty")
mkdir -p "$WORK/empty" /run/xroce

# leaves_nothing SHARE [WORD...]: trace asks at the socket of the broker's name if there is none in
# /run/xroce, and its connections do not stay in the queue.
leaves_nothing() {
	local server
	gids_once v4 || return
	start server b "${@:2}" "$XROCE" run --dev $IF_B --share "$1" -- ibv_rc_pingpong -d $DEV_B -g "$gid_b" -n 100000000
	server=$child
	wait_until 10 listens_or_gone b 18515 "$server"
	ifindex=$(ip -n $NS_B -o link show dev $IF_B | cut -d: -f1)
	waiting b "$ifindex" >/dev/null || { fail "no such socket"; stop "$server"; return; }
	in_b timeout 20 "$XROCE" trace -E -D 1 >"$WORK/once.out" 2>&1 || fail "trace ends with $?"
	wait_until 5 none_waits || fail "connections wait: $(waiting b "$ifindex")"
	stop "$server"
}
none_waits() { [ "$(waiting b "$ifindex")" = 0 ]; }

# trace_ahead NAME SECONDS: runs trace where CLOCK_MONOTONIC is SECONDS ahead of the other
# processes'.
trace_ahead() {
	start "$1" a unshare --time --monotonic "$2" "$XROCE" trace --json -c 20 $IF_A
	wait_until 10 grep -q waiting "$WORK/$1.out" || fail "$1 does not begin"
}

# A time namespace changes neither the events nor their times.
time_namespaces() {
	local before ahead behind name first
	[ "$(readlink /proc/self/ns/time)" != "$(unshare --time readlink /proc/self/ns/time)" ] || {
		skip_reason="no time namespaces"
		return 77
	}
	gids_once v4 || return
	trace_ahead ahead 100000
	ahead=$child
	trace_ahead behind -100
	behind=$child
	before=$EPOCHSECONDS
	client_server 18600 60 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t rc -m 1024 -n 10 -s 3 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t rc -m 1024 -n 10 -s 3 $IP4_A || return
	finish_at_most "$ahead" 10 || fail "trace that is ahead ends with $?"
	finish_at_most "$behind" 10 || fail "trace that is behind ends with $?"
	for name in ahead behind; do
		need_equal "lines $name" "$(lines $name '^\{')" 20
		first=$(sed -nE 's/^\{.*"time_ns":([0-9]+)[0-9]{9}\b.*/\1/p' "$WORK/$name.out" | head -n 1)
		[ "${first:-0}" -ge $((before - 1)) ] && [ "$first" -le "$EPOCHSECONDS" ] ||
			fail "$name: time ${first:-none}, not $before or a little later"
	done
}

run_long_case events_are_counted events_are_counted
run_case filters filters
run_case dead_peer dead_peer
run_case time_namespaces time_namespaces
if [ -z "${XROCE_TEST_BROKER:-}" ]; then
	run_long_case leaves_nothing_never leaves_nothing never "${HIDDEN[@]}"
	run_long_case leaves_nothing leaves_nothing auto "${HIDDEN[@]}"
fi
finish_cases
