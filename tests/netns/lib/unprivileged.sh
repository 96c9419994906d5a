# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Unprivileged programs on interfaces that brokers share: a copy of the build that this user may
# read, the words before a command, and brokers. Sourced after case.sh and the topology.

OWN=$WORK/own
NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
chmod 755 "$WORK"
mkdir -p "$OWN/bin" "$OWN/lib" "$OWN/home"
install -m 755 "$XROCE" "$OWN/bin/xroce"
install -m 755 "$BUILD"/lib/lib*.so* "$OWN/lib/"
chown 65534:65534 "$OWN/home"

# broker_answers NS IFACE [PID]: there is a broker, or it is that process.
broker_answers() { in_ns "$1" "$XROCE" list "$2" | grep -q "broker *pid ${3:-}"; }
# A broker releases the interface's name last.
has_no_broker() { ! in_ns "$1" "$XROCE" list "$2" | grep -qE '^  (broker|in use) '; }

# serve NS IFACE...: starts a broker, and waits until each interface of it answers; its pid is in
# $broker. It ends with the test, and gets serve_options. An earlier on-demand broker is waited for:
# it exits a second after its last client.
serve_options=()
serve() {
	local ns=$1 i port=()
	shift
	has_bpf_maps || port=(--port sockets)
	for i in "$@"; do
		wait_until 10 has_no_broker "$ns" "$i" || { fail "$i has a broker"; return 1; }
	done
	start "broker_$1" "$ns" "$XROCE" serve "${port[@]}" "${serve_options[@]}" "$@"
	broker=$child
	for i in "$@"; do
		wait_until 10 broker_answers "$ns" "$i" "$broker " || { fail "no broker on $i"; show "broker_$1"; return 1; }
	done
}

# between_two PORT COMMAND...: runs a server on A, which listens on that TCP port, and the same as a
# client with A's address appended; both must exit with 0 in time. Output is the output of `client`.
between_two() {
	local port=$1 server rc
	shift
	start server a "$@"
	server=$child
	wait_until 10 listens_or_gone a "$port" "$server"
	start client a "$@" $IP4_A
	finish "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; stop "$server"; show server; return 1; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	return 0
}
