#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# A killed process leaves connections. A broker notifies their peers: raw peers that are no device
# and could not find out (mad_peer.c), processes of the same interface, and processes at the other
# end.
. "$(dirname "$0")/lib/case.sh"
netns_pair
. "$here/tests/netns/lib/unprivileged.sh"
PORT=7480

said() { grep -qx "$2" "$WORK/$1.out"; }

# slow NAME WHO NS ADDRESS CASE WORD: cm_slow, once it says the word; its pid is in $pid.
slow() {
	if [ "$2" = user ]; then
		start "$1" "$3" env LD_LIBRARY_PATH="$OWN/lib" "${NOBODY[@]}" "$OWN/bin/cm_slow" "$4" "$5"
	else
		start "$1" "$3" env LD_LIBRARY_PATH="$BUILD/lib" "$TOOLS/cm_slow" "$4" "$5"
	fi
	pid=$child
	wait_until 25 said "$1" "$6" || { fail "$1 does not say '$6'"; show "$1"; }
}
install -m 755 "$TOOLS/cm_slow" "$OWN/bin/cm_slow"

killed() { kill -9 "$1"; finish "$1" 5; }
# told NAME PID: it ends after the notification.
told() { finish "$2" 30 || { fail "$1 was not told"; show "$1"; }; }

# peer_of CASE WORD: mad_peer from B, once it says the word; its pid is in $peer.
peer_of() {
	start peer b "$TOOLS/mad_peer" $IP4_B $IP4_A "$1" $PORT
	peer=$child
	wait_until 25 said peer "$2" || { fail "its peer does not say '$2'"; show peer; }
}

# passive PROGRAM-CASE PEER-CASE PEER-WORD: the passive side dies.
passive() {
	slow program user a $IP4_A "$1" listening
	peer_of "$2" "$3"
	killed "$pid"
	told peer "$peer"
}

# active SERVER-NS ADDRESS: the active side dies, a process of A.
active() {
	local server
	slow server root "$1" "$2" is_left listening
	server=$pid
	slow client user a "$2" stays connected
	killed "$pid"
	told server "$server"
}

# Both ends are the broker's clients, and the passive side dies.
near() {
	local server
	slow server user a "$1" serves listening
	server=$pid
	slow client user a "$1" stays connected
	killed "$server"
	told client "$pid"
}

# The process that owned the interface before the broker dies, connected since.
first() {
	local server client
	slow server root a $IP4_A serves listening
	server=$pid
	slow client root a $IP4_A stays connected
	client=$pid
	peer_of stays connected
	killed "$server"
	told peer "$peer"
	told client "$client"
}

run_case first first
serve a $IF_A || exit 1
run_case connected passive serves stays connected
run_case asked passive hesitates waits asked
run_case near_v4 near $IP4_A
run_case near_v6 near $IP6_A
run_case active_near active a $IP4_A
run_case active_v4 active b $IP4_B
run_case active_v6 active b $IP6_B
finish_cases
