#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# A broker on demand (XROCE_SHARE=always): started by the first process that may, for all that come,
# until the last of them has exited.
. "$(dirname "$0")/lib/case.sh"

netns_pair 4500
index_a=$(ip -n $NS_A -o link show $IF_A | cut -d: -f1)
SOCKET=/run/xroce/$(stat -L -c %i /run/netns/$NS_A)-$index_a.sock
mkdir "$WORK/open" && cp "$XROCE" "$WORK/open" && chmod a+x "$WORK" "$WORK/open" || exit 1

shared() { in_a env XROCE_SHARE=always "$XROCE" run --dev $IF_A -- "$@"; }
socket_is_there() { [ -S "$SOCKET" ]; }
# A broker releases the interface's name last.
nothing_left() {
	xdp_off $NS_A $IF_A && ! socket_is_there && [ -z "$(ip -n $NS_A -o link show type tun)" ] &&
		! in_a "$XROCE" list $IF_A | grep -q '^  in use '
}
brokers() { in_a "$XROCE" list | grep -c '^  broker '; }

first_of_two() {
	start server a env XROCE_SHARE=always "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -n 100
	server_pid=$child
	wait_until 10 listens_or_gone a 18515 "$server_pid"
	need_equal "brokers" "$(brokers)" 1
	shared timeout 30 ibv_rc_pingpong -d $DEV_A -g 0 -n 100 $IP4_A >"$WORK/client.out" 2>&1 || { fail "the client ends with $?"; show client; }
	finish "$server_pid" 30 || { fail "the server ends with $?"; show server; }
	wait_until 10 nothing_left
	nothing_left || fail "the broker stays"
}

broker_pid() { in_a "$XROCE" list | sed -n 's/^  broker  *pid \([0-9]*\) .*/\1/p'; }
# Not `client    none`: a client that was admitted, whose exit ends the broker a second later.
has_client() { in_a "$XROCE" list | grep -q '^  client  *[0-9]'; }

# A reader of the program's output gets the end of file when the program exits, not when the broker
# does.
nothing_inherited() {
	local pid
	exec 7<"$XROCE"
	start server a env XROCE_SHARE=always "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0
	exec 7<&-
	server_pid=$child
	wait_until 10 has_client || fail "it is no client of a broker"
	pid=$(broker_pid)
	ls -l "/proc/$pid/fd" >"$WORK/ls.out" 2>&1
	need_line ls ' 0 -> /dev/null$'
	need_line ls ' 1 -> /dev/null$'
	need_line ls ' 2 -> /dev/null$'
	need_no_line ls " -> $XROCE\$"
	stop "$server_pid"
	wait_until 10 nothing_left
	nothing_left || fail "the broker stays"
}

# Repeated listing of its clients does not keep it alive.
nothing_left_of_the_listed() { in_a "$XROCE" list >/dev/null; nothing_left; }
listed() {
	start server a env XROCE_SHARE=always "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0
	server_pid=$child
	wait_until 10 has_client || fail "it is no client of a broker"
	stop "$server_pid"
	wait_until 10 nothing_left_of_the_listed || fail "the broker stays"
}

# A process that may not start a broker names the users that can.
nobody_may() {
	in_a setpriv --reuid 65534 --regid 65534 --clear-groups \
		env XROCE_PORT=xdp XROCE_SHARE=always LD_LIBRARY_PATH="$BUILD/lib" timeout 10 ibv_rc_pingpong -d $DEV_A -g 0 >"$WORK/nobody.out" 2>&1 && fail "it works"
	need_line nobody "no broker on $IF_A; as root, run .xroce serve $IF_A."
	nothing_left || fail "something is there"
}

in_background() {
	in_a timeout 10 "$XROCE" serve --background $IF_A >"$WORK/background.out" 2>&1 || { fail "it ends with $?"; show background; }
	socket_is_there || fail "it returned before it listens"
	in_a timeout 10 "$XROCE" serve --background $IF_A >"$WORK/second.out" 2>&1 && fail "there are two"
	need_line second 'is already the broker of this interface'
	in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 || { fail "stop ends with $?"; show stop; }
	nothing_left || fail "something is left"
}

run_case first_of_two first_of_two
run_case nothing_inherited nothing_inherited
run_case listed listed
run_case nobody_may nobody_may
run_case in_background in_background
finish_cases
