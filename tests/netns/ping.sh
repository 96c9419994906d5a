#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long sockets XROCE_CASES=core XROCE_PORT=sockets
#
# xroce ping: present and absent responders, losses, sizes and the path MTU, its exit codes, and its
# JSON. Between the ends lies a cable that loses selected packets.
. "$(dirname "$0")/lib/case.sh"
netns_chain 4500
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/cm.sh"
. "$here/tests/netns/lib/cable.sh"

# ping_from STATUS NS OPTION...: it exits with STATUS; its output is the output of `ping`.
ping_from() {
	local want=$1 ns=$2 rc
	shift 2
	start ping "$ns" "$XROCE" ping "$@"
	finish "$child" 30
	rc=$?
	[ $rc -eq "$want" ] || { fail "xroce ping $* ends with $rc, not $want"; show ping; }
}

# answers WORD...: a server on A, by that command; its pid is in $server.
answers() {
	start server a "$@"
	server=$child
	wait_until 20 grep -q '^xroce ping: answering on' "$WORK/server.out" && return
	stop "$server"
	fail "no server: $*"
	show server
	return 1
}
server_ends() {
	kill "$server"
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
}

by_server() {
	cm_family "$1"
	answers "$XROCE" ping --server --dev $IF_A || return
	ping_from 0 b -c 4 -i 0.05 $server_ip
	need_line ping '^256 bytes from .*: seq=4 time=[0-9.]+ ms$'
	need_line ping '^4 sent, 4 received, 0% loss, '
	need_line ping '^rtt min/avg/max/mdev = [0-9.]+/[0-9.]+/[0-9.]+/[0-9.]+ ms$'
	need_line ping '^path MTU 4096: datagrams of that size returned, and the interface \(MTU 4500\)'
	ping_from 0 b --quiet -c 20 -i 0.01 -s 4096 $server_ip
	need_line ping '^20 sent, 20 received, 0% loss, '
	need_no_line ping 'seq='
	ping_from 0 b --quiet -c 2 -i 0.01 -s 24 $server_ip
	server_ends
	# as many as there were, and the tries of sizes
	need_line server '^[4-9] answered, 0 others refused, [34][0-9] datagrams echoed$'
}

# A program of rdma_cm answers for its process, as the kernel's connection manager does.
by_rdma_cm() {
	cm_place=between
	cm_family "$1"
	cm_serve rping -s -a "$server_ip" || return
	ping_from 0 b -c 3 -i 0.05 $server_ip
	need_line ping '^3 sent, 3 received, 0% loss, '
	need_line ping '^path MTU 4096 at most, because of the MTU of the interface \(4500\) and of the route \(4500\)'
	ping_from 2 b -c 3 -s 64 $server_ip
	need_line ping "does not run 'xroce ping --server', which -s needs"
	stop "$cm_server"
}

# Nothing, a program of verbs alone: no answer, and no error.
by_nobody() {
	local one
	ping_from 1 b -c 2 -i 0.05 -W 0.2 $IP4_A
	need_line ping '^2 sent, 0 received, 100% loss, '
	need_line ping '^no answer: '
	ping_from 1 b -c 2 -s 64 $IP4_A
	need_line ping '^xroce ping: no answer from '
	start_on one a ibv_rc_pingpong -d $DEV_A -g 0
	one=$child
	wait_until 10 listens_or_gone a 18515 "$one"
	ping_from 1 b -c 2 -i 0.05 -W 0.2 $IP4_A
	stop "$one"
}

# Two that ping each other answer each other, and one answers itself.
each_other() {
	local first
	start first a "$XROCE" ping -c 100000 -i 0.02 --quiet $IP4_B
	first=$child
	wait_until 10 grep -q '^xroce ping ' "$WORK/first.out"
	ping_from 0 b -c 3 -i 0.05 $IP4_A
	kill -INT "$first"
	finish "$first" 10 || { fail "the first ended with $?"; show first; }
	need_line first '^[0-9]+ sent, [1-9][0-9]* received, '
	ping_from 0 b -c 3 -i 0.05 $IP4_B
	need_line ping '^3 sent, 3 received, 0% loss, '
}

# interrupted OPTION...: a client that ^C ends after its first answer.
interrupted() {
	start ping b "$XROCE" ping -c 1000 -i 0.05 "$@" $IP4_A
	sleep 1
	kill -INT "$child"
	finish "$child" 10 || { fail "an interrupted client ends with $?"; show ping; }
}
# ^C ends the client before it measures the path MTU, which the result says.
by_interrupt() {
	answers "$XROCE" ping --server --dev $IF_A || return
	interrupted
	need_line ping '^path MTU from 256 to 4096: the measurement was interrupted$'
	interrupted --json
	json_has 'd["received"] and not d["path_mtu"]["is_measured"] and d["path_mtu"]["found"] is None'
	server_ends
}

# A loopback address is reached over lo, without --dev.
itself() {
	local address
	for address in 127.0.0.1 ::1; do
		ping_from 0 a -c 2 -i 0.05 $address
		need_line ping '^2 sent, 2 received, 0% loss, '
	done
}

# A broker's interface: the server and a client there are of a user without privileges.
by_broker() {
	serve a $IF_A || return
	answers "${NOBODY[@]}" "$OWN/bin/xroce" ping --server --dev $IF_A || return
	ping_from 0 b -c 3 -i 0.05 $IP4_A
	need_line ping '^3 sent, 3 received, 0% loss, '
	need_line ping '^path MTU 4096: '
	# and from one of its clients to another
	start ping a "${NOBODY[@]}" "$OWN/bin/xroce" ping -c 3 -i 0.05 $IP4_A
	finish "$child" 20 || fail "within: $?"
	need_line ping '^3 sent, 3 received, 0% loss, '
	# a second server is refused, the first goes on
	start second a "${NOBODY[@]}" "$OWN/bin/xroce" ping --server --dev $IF_A
	finish "$child" 20
	need_equal "the second server's status" $? 2
	need_line second "another 'xroce ping --server' is running"
	server_ends
	stop "$broker"
}

# A broker without clients answers itself, and rejects connections at once.
by_broker_alone() {
	local beside
	cm_place=between
	cm_family "$1"
	serve a $IF_A || return
	ping_from 0 b -c 3 -i 0.05 "$server_ip"
	need_line ping '^3 sent, 3 received, 0% loss, '
	ping_from 2 b -c 1 -s 64 "$server_ip"
	need_line ping "does not run 'xroce ping --server', which -s needs"
	cm_start refused client rping -c -a "$server_ip" -C 1
	finish_at_most "$child" 5
	need_line refused 'RDMA_CM_EVENT_REJECTED'
	# also with a program of plain verbs running
	start beside a "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0
	beside=$child
	wait_until 10 listens_or_gone a 18515 "$beside"
	ping_from 0 b -c 3 -i 0.05 "$server_ip"
	need_line ping '^3 sent, 3 received, 0% loss, '
	stop "$beside"
	stop "$broker"
}

# The cable drops the first request and the answer to the second: MADs 0 and 2.
losses() {
	answers "$XROCE" ping --server --dev $IF_A || return
	cable_with -m 5
	ping_from 0 b -c 8 -i 0.1 $IP4_A
	need_no_line ping 'seq=[12] '
	need_line ping 'seq=3 '
	need_line ping '^8 sent, 6 received, 25% loss, '
	# a repetition is distinguished from an answer
	cable_with -u 1000
	ping_from 0 b -c 5 -i 0.05 $IP4_A
	need_line ping 'DUP!'
	need_line ping '^5 sent, 5 received, [1-9][0-9]* duplicates, 0% loss, '
	cable_with
	server_ends
}

# A way that is narrower than the client's own interface.
narrow() {
	ip -n $NS_A link set $IF_A mtu 1500
	answers "$XROCE" ping --server --dev $IF_A &&
		ping_from 0 b -c 2 -i 0.05 $IP4_A &&
		need_line ping '^path MTU 1024: datagrams of that size returned, larger ones did not$'
	server_ends
	ip -n $NS_A link set $IF_A mtu 4500
	ip -n $NS_B link set $IF_B mtu 1500
	ping_from 2 b -c 2 -s 1025 $IP4_A
	need_line ping 'a datagram can have at most 1024 bytes'
	ip -n $NS_B link set $IF_B mtu 4500
}

# json_has EXPRESSION: of the document d in `ping`.
json_has() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$WORK/ping.out" "$1" || { fail "JSON has not: $1"; show ping; }
}
json() {
	answers "$XROCE" ping --server --dev $IF_A || return
	ping_from 0 b --json -c 50 -i 0.005 $IP4_A
	json_has 'd["peer"] == "10.77.0.1" and d["from"] == "10.77.0.2" and d["interface"] == "vb"'
	json_has 'd["sent"] == 50 and d["received"] == 50 and d["loss_percent"] == 0'
	json_has 'd["answered_by"] == "xroce ping --server" and d["bytes"] == 256'
	json_has '0 < d["rtt_ns"]["min"] <= d["rtt_ns"]["p50"] <= d["rtt_ns"]["p99"] <= d["rtt_ns"]["max"]'
	json_has 'd["rtt_ns"]["min"] <= d["rtt_ns"]["avg"] <= d["rtt_ns"]["max"]'
	json_has 'd["path_mtu"] == dict(found=4096, is_measured=True, at_most=4096, interface_mtu=4500, route_mtu=4500)'
	server_ends
	ping_from 1 b --json -c 2 -i 0.005 -W 0.1 $IP4_A
	json_has 'd["received"] == 0 and d["path_mtu"]["found"] is None and "rtt_ns" not in d'
	json_of_failure 2 no.such.host.invalid 'd["from"] is None and d["interface"] is None'
	json_of_failure 2 198.51.100.1 'd["from"] is None and d["interface"] is None'
	json_of_failure 1 10.77.0.99 'd["from"] == "10.77.0.2" and d["interface"] == "vb"'
}
# json_of_failure STATUS PEER EXPRESSION: also without a message sent there is a document.
json_of_failure() {
	in_ns b "$XROCE" ping --json -c 1 "$2" >"$WORK/ping.out" 2>"$WORK/ping.err"
	need_equal "the status for $2" $? "$1"
	json_has "d['peer'] == '$2' and d['sent'] == 0 and d['received'] == 0 and d['loss_percent'] is None"
	json_has "$3"
}

errors() {
	local words
	while read -ra words; do
		ping_from 2 b "${words[@]}"
		need_line ping '^xroce ping: '
	done <<-END
		-c 0 $IP4_A
		-c -1 $IP4_A
		-c x $IP4_A
		-i 0.0001 $IP4_A
		-i nan $IP4_A
		-i 1e3 $IP4_A
		-W inf $IP4_A
		-s 23 $IP4_A
		-s 4097 $IP4_A
		-x $IP4_A
		-c
		$IP4_A $IP4_B
		--server $IP4_A
		--dev nosuch $IP4_A
		198.51.100.1
		-6 $IP4_A
		no.such.host.invalid
	END
	ping_from 2 b
	# no neighbour
	ping_from 1 b -c 1 10.77.0.99
	need_line ping '^xroce ping: cannot reach 10.77.0.99 through vb: '
	ping_from 1 b -D 0.3 $IP4_A
	# without privileges, without a broker, and by XDP alone
	XROCE_PORT=xdp start ping b "${NOBODY[@]}" "$OWN/bin/xroce" ping -c 1 $IP4_A
	finish "$child" 20
	need_equal "an unprivileged user's status" $? 2
	need_line ping '^xroce ping: cannot create QP 1 on vb: '
}

# Killed at any time: nothing of it stays on the interface.
killed() {
	answers "$XROCE" ping --server --dev $IF_A || return
	start first b "$XROCE" ping -i 0.01 --quiet $IP4_A
	wait_until 10 grep -q '^xroce ping ' "$WORK/first.out"
	kill -9 "$child" "$server"
	finish "$child" 5
	finish "$server" 5
	wait_until 10 is_detached a $IF_A || fail "XDP stays on A"
	wait_until 10 is_detached b $IF_B || fail "XDP stays on B"
}
is_detached() { ! ip -n "$([ "$1" = a ] && echo $NS_A || echo $NS_B)" link show "$2" | grep -q xdp; }

cable_with
run_case by_server_v4 by_server v4
run_case by_rdma_cm_v6 by_rdma_cm v6
run_case by_broker_alone_v4 by_broker_alone v4
run_long_case by_broker_alone_v6 by_broker_alone v6
run_case by_interrupt by_interrupt
run_case itself itself
run_long_case by_server_v6 by_server v6
run_long_case by_rdma_cm_v4 by_rdma_cm v4
run_long_case by_nobody by_nobody
run_long_case each_other each_other
run_long_case by_broker by_broker
run_long_case losses losses
run_long_case narrow narrow
run_long_case json json
run_long_case errors errors
run_case killed killed
finish_cases
