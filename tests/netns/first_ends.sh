#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Processes that die while an interface becomes shared, or is shared: the broker, the first process,
# the others. XROCE_FIRST_TIMES: the number of times of death; 100 for a run by hand.
#
# tests/brokersim has deaths of clients and brokers at each of their steps, without a kernel. Here
# the core has one death of each during traffic.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/first.sh"

TIMES=${XROCE_FIRST_TIMES:-8}
guests_died=

# pause MS: the time before a death, not a wait for a condition
pause() { read -r -t "$(printf '0.%03d' "$1")" <>"$WORK/quiet"; }
moment() { echo $(($1 * $1 * 3 % 400)); }

# begin_guests: starts guests that may get any error; sets $guest and $third
begin_guests() {
	by_user $IF_A auto
	start third a "${words[@]}" "$OWN/bin/first_traffic" -d $DEV_A -p 18602 -x
	third=$child
	start guest a "${words[@]}" "$OWN/bin/first_traffic" -d $DEV_A -m 100000000 -x \
		$IP4_A:18600 $IP4_B:18601
	guest=$child
}
kill_guests() {
	guests_died=yes
	kill -9 "$guest" "$third" 2>/dev/null
	finish "$guest" 5
	finish "$third" 5
}
kill_brokers() {
	local p
	for p in $(brokers); do
		kill -"$1" "$p" 2>/dev/null
	done
}

# all_is_well [LINES]: new processes work, and the first and its peer have lost nothing.
all_is_well() {
	alone_again
	guests 30 && guests_end
	alone_again
	still_at_work
	nothing_was_lost
	end "$@"
}

# ---- the broker ----

# It dies before it does anything: the process that started it gets an error, the next one works.
broker_dies_at_once() {
	: >"$OWN/started"
	echo kill >"$OWN/how"
	by_root $IF_A auto
	start first a "${words[@]}" "$OWN/bin/first_traffic" -d $DEV_A -m 1 $IP4_A:18600
	finish "$child" 15 && fail "it works without a broker"
	rm -f "$OWN/how"
	need_equal "brokers started" "$(started)" 1
	nothing_left
	begin -x || return
	all_is_well
}

# has_lost SIDE STATUS: it ended because its device was lost.
has_lost() {
	[ "$2" = 3 ] || { fail "$1 ended with $2, not 3"; show "$1"; }
	need_line "$1" '^lost after [1-9]'
}
# loses SIDE: it has noticed that its device is lost.
loses() {
	local rc
	finish "${!1}" 20
	rc=$?
	has_lost "$1" $rc
}
broker_dies_soon() {
	local i
	for ((i = 0; i < TIMES; i++)); do
		begin -x || return
		begin_guests
		pause "$(moment $i)"
		kill_brokers KILL
		kill_guests
		loses first
		end_peer
		[ ! -s "$WORK/case.notes" ] || { fail "the ${i}th time"; return; }
		rm -f "$SOCKET" # a killed broker leaves it
	done
	begin -x || return
	all_is_well
}

# The third has no partner once the guest has exited; it may notice that first, and then it is done.
is_without_partner() { [ "$1" = third ] && grep -q ', 1 lost$' "$WORK/third.out"; }

# broker_ends HOW TIMES: under traffic of all, who learn that their device is lost.
broker_ends() {
	local i side rc
	for ((i = 0; i < $2; i++)); do
		begin -x || return
		guests 100000000 -x || return
		wait_until 20 has_more guest 300 || { fail "the guest stands still"; show guest; }
		wait_until 20 has_more third 0 || { fail "the third stands still"; show third; }
		case $1 in
		stop)
			in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 ||
				{ fail "stop ends with $?"; show stop; }
			;;
		*)
			# until they notice, they answer no peer
			guests_died=yes
			kill_brokers "$1"
			;;
		esac
		loses first
		for side in guest third; do
			finish "${!side}" 20
			rc=$?
			[ $rc -eq 0 ] && is_without_partner $side && continue
			has_lost $side $rc
		done
		rm -f "$GO"
		finish "$peer" 30 || { fail "the peer ended with $?"; show peer; }
		[ "$1" = stop ] || rm -f "$SOCKET"
		nothing_left
		[ ! -s "$WORK/case.notes" ] || { fail "the ${i}th time"; return; }
	done
	begin -x || return
	all_is_well
}

# A broker that does not answer: after 20 s the first loses its device.
broker_stops() {
	begin -x || return
	kill_brokers STOP
	finish "$first" 60
	has_lost first $?
	need_line first "^xroce: $IF_A: the broker has not answered for 20 s; this process has lost the device"
	kill_brokers KILL
	end_peer
	rm -f "$SOCKET"
	begin -x || return
	all_is_well
}

# Its client lives on without its device, and leaves the interface to others.
broker_killed_client_stays() {
	local idle
	by_root $IF_A auto
	start idle a "${words[@]}" ibv_rc_pingpong -d $DEV_A -g 0 -p 18700
	idle=$child
	wait_until 20 listens_or_gone a 18700 "$idle"
	kill_brokers KILL
	begin || return
	is_gone_or_zombie "$idle" && { fail "the idle client has ended"; show idle; }
	all_is_well
	stop "$idle"
}

# ---- the joining processes ----

guest_dies() {
	local i
	begin -x || return
	for ((i = 0; i < TIMES; i++)); do
		begin_guests
		pause "$(moment $i)"
		kill_guests
	done
	still_at_work
	all_is_well
}

# ---- the first ----

end_peer() {
	rm -f "$GO"
	finish "$peer" 30 || { fail "the peer ended with $?"; show peer; }
	wait_until 15 runs_nothing || fail "left: $(what_is_there)"
	all_forgotten
}

# first_ends HOW: the first exits alone; the next process finds the interface and the path free.
first_ends_alone() {
	begin -x || return
	remember
	kill -"$1" "$first"
	finish "$first" 20
	nothing_left
	end_peer
	begin -x || return
	guests 30 && guests_end
	end
}

# The first exits during traffic of all: the others only lose their connections with it.
first_ends() {
	begin -x || return
	guests 100000000 -x || return
	wait_until 20 has_more guest 300 || { fail "the guest stands still"; show guest; }
	remember
	kill -"$1" "$first"
	finish "$first" 20
	goes_on guest 1000
	is_gone_or_zombie "$third" && { fail "the third has ended"; show third; }
	by_user $IF_A auto
	start late a "${words[@]}" "$OWN/bin/first_traffic" -d $DEV_A -m 50 $IP4_A:18602 $IP4_B:18601
	finish "$child" 20 || { fail "one that comes then ended with $?"; show late; }
	kill "$guest" "$third"
	finish "$guest" 20 || { fail "the guest ended with $?"; show guest; }
	finish "$third" 20 || { fail "the third ended with $?"; show third; }
	nothing_left
	end_peer
}

# The broker gets the request to stop, and finds at that moment that the first has exited.
both_end() {
	begin -x || return
	# they stay, as the broker might otherwise be ending already
	guests 100000000 -x || return
	[ -n "$(brokers)" ] || { fail "no broker is left to end"; return; }
	remember
	kill_brokers STOP
	kill_brokers TERM
	kill -9 "$first"
	finish "$first" 20
	kill_brokers CONT
	kill_guests
	nothing_left
	end_peer
}

first_dies_soon() {
	local i
	for ((i = 0; i < TIMES; i++)); do
		begin -x || return
		remember
		begin_guests
		pause "$(moment $i)"
		kill -9 "$first"
		finish "$first" 5
		kill_guests
		end_peer
		[ ! -s "$WORK/case.notes" ] || { fail "the ${i}th time"; return; }
	done
	begin -x || return
	all_is_well
}

# The first is stopped before they start, and while they run. Packets to a stopped process wait.
first_stops() {
	begin || return
	kill -STOP "$first"
	begin_guests
	pause 300
	kill -CONT "$first"
	wait_until 20 has_more guest 300 || { fail "the guest stands still"; show guest; }
	kill -STOP "$first"
	pause 300
	wait_until 5 said_or_gone third '^ready' "$third"
	is_gone_or_zombie "$guest" && { fail "the guest has ended"; show guest; }
	kill -CONT "$first"
	still_at_work
	goes_on guest 300
	kill "$guest" "$third"
	finish "$guest" 20 || { fail "the guest ended with $?"; show guest; }
	finish "$third" 20 || { fail "the third ended with $?"; show third; }
	alone_again
	still_at_work
	end
}

first_long_case broker_dies_at_once broker_dies_at_once
first_long_case broker_dies_soon broker_dies_soon
first_case broker_is_killed broker_ends KILL 1
first_case broker_killed_client_stays broker_killed_client_stays
first_long_case broker_is_killed_thrice broker_ends KILL 3
first_long_case broker_is_told_to_end broker_ends stop 3
first_long_case broker_stops broker_stops
first_long_case guest_dies guest_dies
first_long_case first_ends_alone first_ends_alone TERM
first_long_case first_is_killed_alone first_ends_alone KILL
first_long_case first_ends first_ends TERM
first_case first_is_killed first_ends KILL
first_long_case both_end both_end
first_long_case first_dies_soon first_dies_soon
first_long_case first_stops first_stops
finish_cases
