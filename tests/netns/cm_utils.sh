#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long sockets XROCE_CASES=core XROCE_PORT=sockets
#
# Debian's rdmacm-utils, unmodified, that connect queue pairs: rping, ucmatose, rdma_server and its
# kin, cmtime.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"

# try_rping [OPTION...]: 20 pings of random sizes, whose data the client checks.
try_rping() {
	cm_pair 60 rping -s -v -a "$server_ip" -C 20 "$@" -- rping -c -v -V -a "$server_ip" -C 20 "$@" || return
	[ "$(grep -c '^ping data: rdma-ping-' "$WORK/client.out")" -eq 20 ] || { fail "not 20 pings"; show client; }
}

# Without a listener at that port the client gets an error.
try_rping_refused() {
	local rc
	[ "$cm_place" != between ] || cm_serve rping -s -P -a "$server_ip" || return
	cm_start client client rping -c -d -a "$server_ip" -p 9999 -C 1
	finish "$child" 30
	rc=$?
	[ "$cm_place" != between ] || stop "$cm_server"
	[ $rc -ne 0 ] && [ $rc -ne 124 ] || fail "rping ended with $rc"
	need_line client 'RDMA_CM_EVENT_REJECTED, error (8|28)$'
}

# try_ucmatose CONNECTIONS [OPTION...]
try_ucmatose() {
	local n=$1
	shift
	cm_pair 120 ucmatose -f $family_word -b "$any_ip" -c "$n" "$@" -- ucmatose -f $family_word -s "$server_ip" -c "$n" "$@" || return
	need_line client '^return status 0$' && need_line server '^return status 0$'
}

try_server_client() {
	cm_pair 30 rdma_server -s "$server_ip" -- rdma_client -s "$server_ip" || return
	need_line server '^rdma_server: end 0$' && need_line client '^rdma_client: end 0$'
}

# Sixteen servers, and their clients at once. (One server, rping -s -P, takes requests that come
# close together for one.)
try_rping_crowd() {
	local i servers=() clients=()
	for ((i = 0; i < 16; i++)); do
		cm_serve rping -s -v -a "$server_ip" -p $((7200 + i)) -C 20 || return
		servers+=("$cm_server")
	done
	for ((i = 0; i < 16; i++)); do
		cm_start client$i client rping -c -v -V -a "$server_ip" -p $((7200 + i)) -C 20
		clients+=("$child")
	done
	for ((i = 0; i < 16; i++)); do
		cm_end client$i "${clients[i]}" 60
		cm_end server "${servers[i]}" 20
		need_equal "pings of client $i" "$(grep -c '^ping data: rdma-ping-' "$WORK/client$i.out")" 20
	done
}

# The server listens on any IPv4 address. try_xserver TYPE: r RC, x XRC
try_xserver() {
	cm_pair 30 rdma_xserver -c $1 -- rdma_xclient -c $1 -s "$server_ip" || return
	need_line server '^rdma_xserver: end 0$' && need_line client '^rdma_xclient: end 0$'
}

# cmtime prints a line a phase, rdma-core 56's with six numbers. Of 65 one end, here the server,
# controls both by TCP.
CONTROL_PORT=7471
try_cmtime() {
	local phase control=(-C "$server_ip" -p $CONTROL_PORT)
	if cmtime -h 2>&1 | grep -q controller; then
		cm_start server server cmtime "${control[@]}" -L -b "$server_ip" -c "$1"
		cm_server=$child
		wait_until 20 listens_or_gone a $CONTROL_PORT "$cm_server"
		cm_start client client cmtime "${control[@]}" -b "$client_ip" -c "$1"
	else
		cm_serve cmtime -b "$server_ip" -c "$1" || return
		cm_start client client cmtime -s "$server_ip" -c "$1"
	fi
	cm_end client "$child" 120
	stop "$cm_server"
	for phase in 'create id' 'resolve addr' 'resolve route' 'create qp' '(cm )?connect' disconnect \
		'destroy( id)?'; do
		need_line client "^$phase *:?( +[0-9.]+){4,6}\$" || return
	done
}

# The same with the server at the other end of the cable.
try_cmtime_back() {
	local server
	start server b "$XROCE" run --dev $IF_B -- cmtime -b $IP4_B -c "$1"
	server=$child
	cm_wait_listening "$server" b || { fail "the server does not listen"; show server; }
	start client a "$XROCE" run --dev $IF_A -- cmtime -s $IP4_B -c "$1"
	cm_end client "$child" 120
	stop "$server"
	need_line client '^disconnect *:? +[0-9.]+'
}

cm_everywhere rping try_rping
cm_case user v4 rping_crowd try_rping_crowd
cm_everywhere rping_own_qp try_rping -q -S 4000
cm_everywhere rping_refused try_rping_refused
cm_everywhere ucmatose try_ucmatose 10
cm_everywhere ucmatose_migrate try_ucmatose 10 -m
cm_everywhere server_client try_server_client
cm_case "between within user" v4 xserver try_xserver r
cm_case "between within user" v4 xserver_xrc try_xserver x
cm_case "between within" v4 ucmatose_1000 try_ucmatose 1000 -C 1
cm_case "between within" v4 cmtime try_cmtime 1000
cm_case between v4 cmtime_back try_cmtime_back 1000
core_cases=(
	rping_between_v4 rping_own_qp_within_v6 rping_refused_user_v4 ucmatose_between_v6
	ucmatose_migrate_user_v6 server_client_within_v4 xserver_xrc_between_v4
)
cm_run
finish_cases
