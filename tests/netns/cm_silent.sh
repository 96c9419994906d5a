#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# A server of one thread (cm_silent.c), and peers with addresses that answer no ARP, or stop to
# answer: no call of the server waits for them, and its other peers connect. And a peer that asks
# for more connections than an address may have half open.
. "$(dirname "$0")/lib/case.sh"
netns_pair
export LD_LIBRARY_PATH=$BUILD/lib
PORT=7480 SILENT=${IP4_B%.*}.77 HALF_OPEN=384

said() { grep -qx "$2" "$WORK/$1.out"; }
asked() { grep -c '^asked by' "$WORK/server.out"; }
counted() { in_a "$XROCE" stat | awk -v name="drop_$1" '$4 == name { n += $5 } END { print n + 0 }'; }
has_counted() { [ "$(counted "$1")" -ge "$2" ]; }
forgets() { ! in_a ip neigh show "$SILENT" | grep -q lladdr; }

# B can send from the address. arp_ignore 0: it answers ARP for it, as a host does; 1: it does not.
in_b ip addr add "$SILENT/32" dev lo
arp_ignore() { in_b sysctl -qw "net.ipv4.conf.all.arp_ignore=$1"; }

serve() {
	start server a timeout 60 "$TOOLS/cm_silent" $IP4_A "$@"
	server=$child
	wait_until 20 said server listening || { fail "nobody listens"; show server; }
}
calls() { in_b timeout 20 "$TOOLS/mad_peer" "$1" $IP4_A calls $PORT "${2:-1}" >/dev/null || fail "no call"; }
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

# It answered when its request came, and does not when it is accepted.
falls_silent() {
	arp_ignore 0
	serve holds
	calls "$SILENT"
	wait_until 10 said server "asked by $SILENT" || { fail "the server is not asked"; show server; }
	arp_ignore 1
	in_a ip neigh flush to "$SILENT"
	wait_until 5 forgets || fail "the kernel has the neighbour still"
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

run_case silent silent
run_case falls_silent falls_silent
run_case answers_late answers_late
run_case half_open half_open
run_case waits_alone waits_alone
finish_cases
