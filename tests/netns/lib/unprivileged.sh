# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs of a user without any privilege on interfaces that brokers share: a copy of the build
# that this user may read, its words before a command, and brokers. Sourced behind case.sh, after
# the topology is made.

OWN=$WORK/own
NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
chmod 755 "$WORK"
mkdir -p "$OWN/bin" "$OWN/lib" "$OWN/home"
install -m 755 "$XROCE" "$OWN/bin/xroce"
install -m 755 "$BUILD"/lib/lib*.so* "$OWN/lib/"
chown 65534:65534 "$OWN/home"

# broker_answers NS IFACE [PID]: there is a broker, or it is that process.
broker_answers() { in_ns "$1" "$XROCE" list "$2" | grep -q "broker *pid ${3:-}"; }
# The last that a broker lets go of is the interface's name.
has_no_broker() { ! in_ns "$1" "$XROCE" list "$2" | grep -qE '^  (broker|in use) '; }

# serve NS IFACE...: a broker, once each interface of it answers; its pid is in $broker. It ends
# with the test, and has serve_options. One that was started by need is waited for: it ends a second
# after its last client.
serve_options=()
serve() {
	local ns=$1 i
	shift
	for i in "$@"; do
		wait_until 10 has_no_broker "$ns" "$i" || { fail "$i has a broker"; return 1; }
	done
	start "broker_$1" "$ns" "$XROCE" serve "${serve_options[@]}" "$@"
	broker=$child
	for i in "$@"; do
		wait_until 10 broker_answers "$ns" "$i" "$broker " || { fail "no broker on $i"; show "broker_$1"; return 1; }
	done
}

# between_two PORT COMMAND...: a server on A, which listens on that TCP port, and a client that is
# the same with A's address behind it; both must exit with 0 in time. Output is that of `client`.
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
