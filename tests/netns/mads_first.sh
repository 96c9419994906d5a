#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# A process that has its interface to itself exchanges MADs with a host elsewhere while others come
# and go: its QP 1 and its services are one client's of several then. No other process may take its
# services, or get its MADs.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/first.sh"
install -m 755 "$TOOLS/mads" "$OWN/bin"

TIMES=${XROCE_FIRST_TIMES:-5}
# Endless. A join or an exit takes many times as long: there are MADs under way each time.
MADS=(-n 1000000000 -i 2000)

# mads NAME NS WORDS... -- ARGUMENT...: starts a ready one; its pid in $child
mads() {
	local name=$1 ns=$2 dev=$DEV_A gid=$gid_a
	shift 2
	[ "$ns" = b ] && dev=$DEV_B gid=$gid_b
	start "$name" "$ns" "${words[@]}" "$OWN/bin/mads" "$@" $dev "$gid"
	wait_until 40 said_or_gone "$name" '^ready' "$child"
	said "$name" '^ready' || { fail "$name does not begin"; show "$name"; return 1; }
}
exchanged() {
	kill -USR1 "${!1}" 2>/dev/null
	sed -n 's/^at //p' "$WORK/$1.out" | tail -n 1
}
has_exchanged() { [ "$(exchanged "$1")" -ge "$2" ]; }
# both ends go on
flows() {
	local side n
	for side in first peer; do
		is_gone_or_zombie "${!side}" && { fail "$side has ended"; show "$side"; return 1; }
		wait_until 10 has_exchanged $side 1 || { fail "$side says nothing"; show $side; return 1; }
		n=$(exchanged $side)
		wait_until 30 has_exchanged $side $((n + 100)) || { fail "$side stands still"; show $side; return 1; }
	done
}

# Each time a user's process finds the first's services taken, has its own service, and queries all
# three; a second one queries it.
guests() {
	by_user $IF_A auto
	mads guest a -w -s 0x01064000 -s "0x01064001@$IP4_A" -s 0x01064002 || return
	guest=$child
	need_equal "what a guest is told" "$(sed -n 's/^service .*: //p' "$WORK/guest.out" | tr '\n' ' ')" \
		"EADDRINUSE EADDRINUSE bound "
	asks "0x01064000@$IP4_A" && asks "0x01064001@$IP4_A" && asks "0x01064002@$IP4_A" &&
		asks "0x01064003@$IP4_B"
	flows
	kill -s "$1" "$guest"
	finish "$guest" 20
	[ "$1" = KILL ] || need_line guest '^asked 0, repeated 0, served [1-9]'
}
asks() {
	by_user $IF_A auto
	start third a "${words[@]}" "$OWN/bin/mads" -c "$1" -n 50 $DEV_A "$gid_a"
	finish "$child" 60 || { fail "who asked $1 ended with $?"; show third; return 1; }
	need_line third '^asked 50, '
}

# The first's communication ids are those of its client number, which the broker shows.
has_its_place() {
	local number
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	number=$(sed -n "s/^  client  *\([0-9]*\): pid $first .* by its AF_XDP sockets;.*/\1/p" "$WORK/list.out")
	[ -n "$number" ] || { fail "the first is not listed"; show list; return 1; }
	need_line first "^place $(printf '%#x' $((number + 1)))\$"
}

# come_and_go FAMILY TIMES
come_and_go() {
	local i
	gids_for "$1" || return
	rm -f "$OWN/how"
	: >"$OWN/started"
	by_root $IF_A auto
	mads first a -w -s 0x01064000 -s "0x01064001@$IP4_A" -c "0x01064003@$IP4_B" "${MADS[@]}" \
		-g "$OWN/go" || return
	first=$child
	by_root $IF_B never
	mads peer b -w -s 0x01064003 -c "0x01064001@$IP4_A" "${MADS[@]}" || return
	peer=$child
	: >"$OWN/go"
	has_its_place
	flows || return
	for ((i = 1; i <= $2; i++)); do
		guests $([ $((i % 2)) = 0 ] && echo KILL || echo TERM) || { fail "the ${i}th time"; return; }
		alone_again
		flows || return
	done
	rm -f "$OWN/go"
	kill "$first" "$peer"
	finish "$first" 10 || { fail "the first ended with $?"; show first; }
	finish "$peer" 10 || { fail "the peer ended with $?"; show peer; }
	need_line first '^asked [1-9][0-9]*, '
	need_no_line first '^xroce: '
	nothing_left
}

# The broker is killed: the first and its guest lose the device. The next first gets the services of
# both, in spite of the dead broker's socket.
broker_dies() {
	local b side
	gids_for v4 || return
	: >"$OWN/started"
	by_root $IF_A auto
	mads first a -w -s 0x01064000 -s "0x01064001@$IP4_A" -c "0x01064003@$IP4_B" "${MADS[@]}" || return
	first=$child
	by_root $IF_B never
	mads peer b -w -s 0x01064003 -c "0x01064001@$IP4_A" "${MADS[@]}" || return
	peer=$child
	by_user $IF_A auto
	mads guest a -w -s 0x01064002 || return
	guest=$child
	flows || return
	b=$(brokers)
	need_equal "brokers" "$(wc -w <<<"$b")" 1
	# shellcheck disable=SC2086 # several, if there were
	kill -9 $b
	for side in first guest; do
		finish "${!side}" 10
		need_equal "how $side ends" $? 1
		need_line $side 'a work request ends with Work Request Flushed Error'
	done
	# it may have missed the first already
	kill "$peer" 2>/dev/null
	finish "$peer" 10
	wait_until 10 runs_nothing || fail "left: $(what_is_there)"
	[ -S "$SOCKET" ] || fail "no socket is left: what is tried here?"
	come_and_go v4 1
}

first_case come_and_go_once come_and_go v4 1
first_long_case come_and_go come_and_go v4 "$TIMES"
first_long_case broker_dies broker_dies
finish_cases
