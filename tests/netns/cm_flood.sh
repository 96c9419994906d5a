#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# needs: processors
#
# 20,000 MADs of the connection manager that send a request and are silent then (mad_flood.c), from
# one address and from many, with or without answers to ARP, and a process that is stopped with
# requests pending. Clients of other addresses, and of other processes, connect without delay
# (cm_beside.c). The same with an rsocket that listens.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS/cm_beside" "$OWN/bin"
PORT=7495 OTHER_PORT=7496 FIRST_MS=10000 MOST_MS=3000 FLOOD=20000
# ARP is answered for the first, by B, and not for the second.
ANSWERING=10.77.64.1 SILENT=10.78.0.1
in_a ip route add 10.77.64.0/18 dev $IF_A src $IP4_A
in_a ip route add 10.78.0.0/16 dev $IF_A src $IP4_A
in_b ip route add local 10.77.64.0/18 dev lo

kind=
said() { grep -qE "^$2" "$WORK/$1.out"; }
said_or_gone() { said "$1" "$2" || is_gone_or_zombie "$3"; }
hears() {
	wait_until 30 said_or_gone "$1" "$3" "$2"
	said "$1" "$3" || { fail "$1 does not say '$3'"; show "$1"; return 1; }
}

# beside NAME NS ARGUMENT...: starts cm_beside, as a user if there is a broker; its pid is in $child
beside() {
	local name=$1 ns=$2
	shift 2
	if [ "$ns" = a ] && [ -n "$broker" ]; then
		start "$name" a env LD_LIBRARY_PATH="$OWN/lib" "${NOBODY[@]}" "$OWN/bin/cm_beside" "$@"
	else
		start "$name" "$ns" env LD_LIBRARY_PATH="$BUILD/lib" "$TOOLS/cm_beside" "$@"
	fi
}
server_on() {
	beside "server$1" a ${kind}serve $IP4_A "$1"
	server=$child
	hears "server$1" "$server" ready
}

# flood FIRST ADDRESSES KIND [PER-SECOND]
flood() {
	in_b "$TOOLS/mad_flood" $IF_B $MAC_B $MAC_A "$1" "$2" $IP4_A $PORT "$3" $FLOOD "${@:4}" \
		>"$WORK/flood.out" 2>&1 || { fail "no flood"; show flood; }
}

# flooded FIRST ADDRESSES KIND [PER-SECOND]: a client connects from before the flood on
flooded() {
	local client
	server_on $PORT || return
	beside client b ${kind}connect $IP4_A $PORT 4 $MOST_MS $FIRST_MS
	client=$child
	hears client "$client" connected || return
	flood "$@"
	finish "$client" 40 || {
		fail "the client ended with $?"
		show client
		in_a "$XROCE" stat | awk '/drop/ && $NF != 0' >"$WORK/drops.out"
		show drops
	}
	kill "$server"
	finish "$server" 10 || { fail "the server ended with $?"; }
	[ ! -s "$WORK/case.notes" ] || { show "server$PORT"; show flood; }
}

# The same of rsockets, whose listener answers as many as its backlog allows.
flooded_rsocket() {
	kind=rsocket-
	flooded "$@"
	kind=
}

# A server is stopped, and asked by many; another one of the interface has clients meanwhile; then
# the first one goes on, and has clients again.
stopped() {
	local one other client
	server_on $PORT || return
	one=$server
	server_on $OTHER_PORT || return
	other=$server
	kill -STOP "$one"
	flood $ANSWERING "$1" req
	beside client b connect $IP4_A $OTHER_PORT 3 $MOST_MS
	client=$child
	finish "$client" 40 || { fail "the other one's client ended with $?"; show client; }
	kill -CONT "$one"
	beside client b connect $IP4_A $PORT 3 8000
	finish "$child" 40 || { fail "its client ended with $?"; show client; }
	for server in $one $other; do
		kill "$server"
		finish "$server" 10 || fail "a server ended with $?"
	done
	[ ! -s "$WORK/case.notes" ] || { show "server$PORT"; show "server$OTHER_PORT"; }
}

# A broker that has no process with a QP 1 refuses for all; processes come meanwhile.
nobody() {
	local server flood i
	start far b env LD_LIBRARY_PATH="$BUILD/lib" "$TOOLS/cm_beside" serve $IP4_B $PORT
	server=$child
	hears far "$server" ready || return
	start flood b "$TOOLS/mad_flood" $IF_B $MAC_B $MAC_A $ANSWERING 64 $IP4_A $PORT req $FLOOD 5000
	flood=$child
	for i in 1 2 3 4; do
		beside client a connect $IP4_B $PORT 0 $MOST_MS
		finish "$child" 40 || { fail "client $i ended with $?"; show client; }
	done
	finish "$flood" 20 || fail "no flood"
	kill "$server"
	finish "$server" 10 || fail "the server ended with $?"
}

all_of() {
	run_case "one_$1" flooded $ANSWERING 1 req
	run_long_case "leaves_$1" flooded $ANSWERING 1 leaves
	run_long_case "many_$1" flooded $ANSWERING 8 req 5000
	run_long_case "many_at_once_$1" flooded $ANSWERING 2 req
	run_long_case "silent_$1" flooded $SILENT 200 req 5000
	run_long_case "silent_thousands_$1" flooded $SILENT 5000 req
	run_long_case "datagrams_$1" flooded $ANSWERING 8 sidr 5000
	case $1 in
	alone) run_case rsocket_alone flooded_rsocket $ANSWERING 1 rsocket ;;
	*) run_long_case "rsocket_$1" flooded_rsocket $ANSWERING 1 rsocket ;;
	esac
	run_long_case "rsocket_many_$1" flooded_rsocket $ANSWERING 3 rsocket 5000
	run_long_case "others_$1" flooded $ANSWERING 64 others
}
broker=
all_of alone
serve a $IF_A || { cat "$WORK/case.notes"; exit 1; }
all_of broker
run_case nobody nobody
run_case stopped stopped 1
run_long_case stopped_many stopped 8
stop "$broker"
finish_cases
