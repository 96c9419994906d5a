#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
# tier: long sockets XROCE_PORT=sockets
#
# A server of one thread (cm_silent.c), and peers with addresses that answer no ARP or neighbour
# discovery, or stop to answer: no call of the server waits for them, and its other peers connect.
# And a peer that asks for more connections than an address may have half open. A verb waits for
# such an address once.
. "$(dirname "$0")/lib/case.sh"
netns_pair
export LD_LIBRARY_PATH=$BUILD/lib
PORT=7480 HALF_OPEN=384
SILENT=${IP4_B%.*}.77 SILENT6=fd77::77

said() { grep -qx "$2" "$WORK/$1.out"; }
asked() { grep -c '^asked by' "$WORK/server.out"; }
counted() { in_a "$XROCE" stat | awk -v name="drop_$1" '$4 == name { n += $5 } END { print n + 0 }'; }
has_counted() { [ "$(counted "$1")" -ge "$2" ]; }
forgets() { ! in_a ip neigh show "$1" | grep -q lladdr; }
# forget ADDRESS: A does not know the neighbour.
forget() {
	in_a ip neigh flush to "$1"
	wait_until 5 forgets "$1" || fail "the kernel has the neighbour still"
}

# B can send from the address. arp_ignore 0: it answers ARP for it, as a host does; 1: it does not.
in_b ip addr add "$SILENT/32" dev lo
arp_ignore() { in_b sysctl -qw "net.ipv4.conf.all.arp_ignore=$1"; }
# The same of IPv6: neighbour discovery answers for the interface's own addresses alone. B keeps A's
# MAC, or its question would show A the MAC of the silent address.
in_b ip -6 neigh replace $IP6_A lladdr $MAC_A dev $IF_B nud permanent
nd_ignore() {
	in_b ip -6 addr flush to "$SILENT6"
	case $1 in
	0) in_b ip -6 addr add "$SILENT6/128" dev $IF_B nodad ;;
	1) in_b ip -6 addr add "$SILENT6/128" dev lo nodad ;;
	esac
}

# serve [--at ADDRESS] CASE [PEER]
serve() {
	local at=$IP4_A
	[ "$1" != --at ] || { at=$2; shift 2; }
	start server a timeout 60 "$TOOLS/cm_silent" "$at" "$@"
	server=$child
	wait_until 20 said server listening || { fail "nobody listens"; show server; }
}
# calls ADDRESS [TIMES [SERVER]]
calls() { in_b timeout 20 "$TOOLS/mad_peer" "$1" "${3:-$IP4_A}" calls $PORT "${2:-1}" >/dev/null || fail "no call"; }
connects() {
	start client b timeout 20 "$TOOLS/cm_silent" $IP4_A connects
	finish "$child" 25 || { fail "the client ended with $?"; show client; show server; }
}

# The request is not seen, and counted once the kernel has given up.
silent() {
	arp_ignore 1
	serve serves
	calls "$SILENT"
	connects
	! said server "asked by $SILENT" || fail "the server has a request that it cannot answer"
	need_equal "requests" "$(asked)" 1
	wait_until 10 has_counted mad_silent 1 || fail "the silent address is not counted"
	stop "$server"
}

# falls_silent OWN SILENT COMMAND: the address answered when its request came, and does not when it
# is accepted. That takes less than a second. COMMAND 1 makes it silent.
falls_silent() {
	"$3" 0
	serve --at "$1" holds
	calls "$2" 1 "$1"
	wait_until 10 said server "asked by $2" || { fail "the server is not asked"; show server; }
	"$3" 1
	forget "$2"
	# of `timeout`, the program is the child
	pkill -USR1 -P "$server"
	wait_until 20 said server accepted || { fail "it is not accepted"; show server; }
	stop "$server"
}

# The address answers after the request came: the request waits for that.
answers_late() {
	arp_ignore 1
	serve serves
	in_a ip neigh flush to "$SILENT"
	calls "$SILENT"
	arp_ignore 0
	wait_until 10 said server "asked by $SILENT" || { fail "the request is lost"; show server; }
	wait_until 10 said server accepted || { fail "it is not accepted"; show server; }
	stop "$server"
}

half_open() {
	arp_ignore 0
	serve serves $IP4_B
	# the way back is known before the others come: at most 256 wait for that
	calls "$SILENT"
	wait_until 10 said server "asked by $SILENT" || { fail "the server is not asked"; show server; }
	calls "$SILENT" 512
	wait_until 20 has_counted mad_half_open 1 || fail "no request is counted"
	connects
	need_equal "requests" "$(asked)" $((HALF_OPEN + 1))
	stop "$server"
}

waits_alone() {
	arp_ignore 1
	in_a ip neigh flush to "$SILENT"
	start maker a timeout 20 "$TOOLS/cm_silent" $IP4_A makes "$SILENT"
	finish "$child" 25 || { fail "it ended with $?"; show maker; }
}

# waits_once OWN SILENT OTHER HONEST: verbs wait once, also with a QP, and a neighbour that answers
# is found meanwhile.
waits_once() {
	arp_ignore 1
	nd_ignore 1
	forget "$2"
	forget "$4"
	start maker a timeout 20 "$TOOLS/cm_silent" "$1" repeats "$2" "$3" "$4"
	finish "$child" 25 || { fail "it ended with $?"; show maker; }
}

run_case silent silent
run_case falls_silent_v4 falls_silent $IP4_A "$SILENT" arp_ignore
run_case falls_silent_v6 falls_silent $IP6_A $SILENT6 nd_ignore
run_case answers_late answers_late
run_case half_open half_open
run_case waits_alone waits_alone
run_case waits_once_v4 waits_once $IP4_A "$SILENT" "${IP4_B%.*}.78" $IP4_B
run_case waits_once_v6 waits_once $IP6_A $SILENT6 fd77::78 $IP6_B
finish_cases
