#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# librpma, persistent memory by RDMA, which connects by librdmacm: a program on it (rpma/data.c)
# writes, flushes, reads, sends, and knows each byte; several connections after each other; a
# client that is killed.
. "$(dirname "$0")/lib/case.sh"
[ -e /usr/include/librpma.h ] || skip_all "librpma is not installed (package librpma-dev)"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/cm.sh"
. "$here/tests/netns/lib/counted.sh"
export XROCE_COUNTERS=1
gcc -O2 -w -o "$OWN/data" "$here/tests/netns/rpma/data.c" -lrpma -libverbs ||
	{ echo "not ok data.c cannot be compiled"; exit 1; }
DATA=$OWN/data

# data ROUNDS CONNECTIONS [srq]
data() {
	local rounds=$1 connections=$2 i
	cm_serve "$DATA" serve "$server_ip" 7204 "$connections" ${3:-} || return
	for ((i = 0; i < connections; i++)); do
		cm_start client client "$DATA" ask "$server_ip" 7204 "$rounds"
		cm_end client "$child" 60 || { stop "$cm_server"; show server; return; }
		need_line client "^client ok: $rounds rounds"
	done
	cm_end server "$cm_server" 20
	need_line server "^server ok: $connections connections"
	# of each round and size a WRITE at least, a flush by a READ, and a READ
	need_counted server WRITE $((connections * rounds * 8))
	need_counted server READ $((connections * rounds * 16))
}

# The broker notifies the server of a killed client, and the server serves the next one.
killed() {
	cm_serve "$DATA" serve "$server_ip" 7204 2 || return
	cm_start leaver client "$DATA" leave "$server_ip" 7204
	wait_at_most 10 grep -q '^connected' "$WORK/leaver.out" || fail "no connection"
	kill -9 "$child"
	finish "$child" 5
	wait_at_most 30 grep -q '^left' "$WORK/server.out" ||
		{ fail "the server was not told"; stop "$cm_server"; show server; return; }
	cm_start client client "$DATA" ask "$server_ip" 7204 2
	cm_end client "$child" 60 || show server
	cm_end server "$cm_server" 20
	need_line server '^left: Connection (closed|lost)' && need_line server '^server ok: 2'
}

cm_case "between within user" v4 data data 5 2
cm_case between v6 data data 5 2
cm_case between v4 srq data 5 2 srq
cm_case user v4 killed killed
cm_run
finish_cases
