#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Programs of librdmacm on a shared interface: unprivileged processes that connect to each other, to
# the other end of the cable and from there, each with its own QP 1 and communication ids; port
# numbers among them; and the exit of processes.
. "$(dirname "$0")/lib/case.sh"
command -v rping >/dev/null || skip_all "rping is not installed (rdmacm-utils)"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/exchange.sh"
. "$here/tests/netns/lib/cm.sh"

PORT=7174

# rping_server NAME WHO NS ADDRESS [OPTION...]; its pid is in $pid.
rping_server() {
	local name=$1 ns=$3 address=$4
	program "$2" "$ns"
	shift 4
	start "$name" "$ns" "${words[@]}" rping -s -a "$address" -p $PORT "$@"
	pid=$child
}
# rping_listens NAME [NS]
rping_listens() {
	cm_wait_listening "$pid" "${2:-a}" && return
	fail "$1 does not listen"
	show "$1"
}

# rping_client NAME WHO NS ADDRESS [OPTION...]: to its end.
rping_client() {
	local name=$1 ns=$3 address=$4
	program "$2" "$ns"
	shift 4
	start "$name" "$ns" "${words[@]}" rping -c -a "$address" -p $PORT "$@"
	cm_end "$name" "$child" 30
}

# ping SERVER-WHO SERVER-NS CLIENT-WHO CLIENT-NS ADDRESS
ping() {
	rping_server server "$1" "$2" "$5" -v -V -C 50
	rping_listens server "$2" || return
	rping_client client "$3" "$4" "$5" -v -V -C 50
	cm_end server "$pid" 10
	need_equal "lines of the server" "$(grep -c 'server ping data: rdma-ping-' "$WORK/server.out")" 50
	need_equal "lines of the client" "$(grep -c 'ping data: rdma-ping-' "$WORK/client.out")" 50
}

# refused NAME ADDRESS PORT: a server that cannot have it.
refused() {
	program user a
	start "$1" a "${words[@]}" rping -s -a "$2" -p "$3"
	finish "$child" 10 && fail "$1 has it"
	need_line "$1" "$4"
}

ports() {
	local first
	rping_server one user a $IP4_A -P
	first=$pid
	rping_listens one || return
	refused same $IP4_A $PORT 'rdma_bind_addr: Address already in use|Cannot assign|already in use'
	refused any 0.0.0.0 $PORT 'already in use|Cannot assign'
	refused low $IP4_A 80 'Permission denied'
	# another address is another's
	rping_server other user a $IP6_A -P
	rping_listens other && rping_client client6 user a $IP6_A -V -C 5
	stop "$pid"
	rping_client client4 user a $IP4_A -V -C 5
	kill -9 "$first"
	finish "$first" 5
	rping_server next user a $IP4_A -V -C 5
	rping_listens next || return
	rping_client client user b $IP4_A -V -C 5
	finish "$pid" 10 || { fail "the next one ended with $?"; show next; }
}

# xroce list: what a process listens to, while it does. need_listed ADDRESS-AND-PORT
need_listed() {
	in_a "$XROCE" list $IF_A | grep -qxF "  listens   pid $pid (rping): TCP port $1" ||
		fail "not listed: port $1"
}
nobody_listed() { ! cm_listens any; }
# listed WHO: two at once, if they share the interface, then one at any address.
listed() {
	local first=
	rping_server four "$1" a $IP4_A -P
	rping_listens four || return
	need_listed "$PORT at $IP4_A"
	if [ "$1" = user ]; then
		first=$pid
		rping_server six "$1" a $IP6_A -P
		rping_listens six || return
		need_listed "$PORT at $IP6_A"
		pid=$first need_listed "$PORT at $IP4_A"
		stop "$first"
	fi
	stop "$pid"
	wait_until 10 nobody_listed || fail "somebody listens"
	rping_server any "$1" a 0.0.0.0 -P -p 7199
	rping_listens any || return
	need_listed "7199 at any IPv4 address"
	stop "$pid"
}

# Without a listener one of the others rejects at once.
nobody_listens() {
	local before=$SECONDS
	rping_server other user a $IP4_A -P
	rping_listens other || return
	program user b
	start asks b "${words[@]}" rping -c -a $IP4_A -p 7199 -C 1
	finish "$child" 20 && fail "it is connected"
	need_line asks 'RDMA_CM_EVENT_REJECTED, error 8'
	program user a
	start asks a "${words[@]}" rping -c -a $IP4_A -p 7199 -C 1
	finish "$child" 20 && fail "it is connected"
	need_line asks 'RDMA_CM_EVENT_REJECTED, error 8'
	[ $((SECONDS - before)) -lt 20 ] || fail "it took $((SECONDS - before)) s"
	stop "$pid"
}

run_long_case cm_shared_listed_alone listed alone
serve a $IF_A
brokers=$broker
run_case cm_shared_within_v4 ping user a user a $IP4_A
run_long_case cm_shared_to_it_v4 ping user a alone b $IP4_A
run_case cm_shared_from_it_v4 ping alone b user a $IP4_B
run_long_case cm_shared_within_v6 ping user a user a $IP6_A
run_case cm_shared_to_it_v6 ping user a alone b $IP6_A
run_long_case cm_shared_from_it_v6 ping alone b user a $IP6_B
serve b $IF_B
run_case cm_shared_both ping user a user b $IP4_A
run_case cm_shared_ports ports
run_long_case cm_shared_listed listed user
run_long_case cm_shared_nobody_listens nobody_listens
stop "$brokers"
stop "$broker"
finish_cases
