# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A root process that has its interface to itself (`first`, on A), its partner on B at the other end
# of the cable (`peer`), and unprivileged processes that come on A (`guest`, `third`). All of them
# are first_traffic.c, which checks each message. Sourced after case.sh and the topology.

OWN=$WORK/own GO=$WORK/own/go
NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
index_a=$(ip -n $NS_A -o link show $IF_A | cut -d: -f1)
SOCKET=/run/xroce/$(stat -L -c %i /run/netns/$NS_A)-$index_a.sock
chmod 755 "$WORK"
mkdir -p "$OWN/bin" "$OWN/lib"
install -m 755 "$XROCE" "$OWN/bin/xroce.bin"
install -m 755 "$TOOLS"/{first_traffic,asker,sharer} "$OWN/bin"
install -m 755 "$BUILD/lib/libibverbs.so.1" "$OWN/lib/libibverbs.so.1"

# The program that the library finds in its directory and starts as a broker. Each start adds a line
# to `pids` and `started`: its process and its start time, in the kernel's clock ticks, however late
# it runs. `how` selects its behaviour.
cat >"$OWN/bin/xroce" <<END
#!/bin/sh
echo \$\$ >>$OWN/pids
cut -d' ' -f22 /proc/\$\$/stat >>$OWN/started
case "\$(cat $OWN/how 2>/dev/null)" in
kill) kill -9 \$\$ ;;
fail) exit 1 ;;
environment) env >$OWN/environment ;;
unloaded) exit 127 ;;
wait) while [ -e $OWN/how ]; do sleep 0.02; done ;;
esac
exec $OWN/bin/xroce.bin "\$@"
END
chmod 755 "$OWN/bin/xroce"
: >"$OWN/pids"
started() { wc -l <"$OWN/started"; }
has_started() { [ "$(started)" -ge "$1" ]; }

by_root() { words=("$OWN/bin/xroce.bin" run --dev "$1" --share "$2" --); }
by_user() { words=("${NOBODY[@]}" "$OWN/bin/xroce.bin" run --dev "$1" --share "$2" --); }

# These polled checks start no process while the answer is no.
said() {
	local line
	while IFS= read -r line || [ -n "$line" ]; do
		[[ ! $line =~ $2 ]] || return 0
	done <"$WORK/$1.out"
	return 1
}
said_or_gone() { said "$1" "$2" || is_gone_or_zombie "$3"; }

# traffic NAME NS WORDS... -- ARGUMENT...: starts a ready one; its pid in $child
traffic() {
	local name=$1 ns=$2 dev=$DEV_A
	shift 2
	[ "$ns" = b ] && dev=$DEV_B
	start "$name" "$ns" "${words[@]}" "$OWN/bin/first_traffic" -d $dev "$@"
	wait_until 40 said_or_gone "$name" '^ready' "$child"
	said "$name" '^ready' || { fail "$name does not begin"; show "$name"; show first; return 1; }
}

# begin [OPTION...]: starts both ends of the cable, in $first and $peer: a link that stays, another
# that is remade all the time, and one from the first to itself. Both get the options.
begin() {
	guests_died=
	: >"$GO"
	: >"$OWN/started"
	: >"$OWN/pids"
	rm -f "$OWN/how"
	by_root $IF_A auto
	traffic first a -p 18600 -k "$GO" "$@" $IP4_A:18600 || return
	first=$child
	by_root $IF_B never
	traffic peer b -p 18601 -k "$GO" "$@" $IP4_A:18600 $IP4_A:18600/200 || return
	peer=$child
	listens_alone || { fail "$SOCKET: nobody listens for others"; return 1; }
}
listens_alone() { [ -S "$SOCKET" ]; }

# guests MESSAGES [OPTION...]: two unprivileged processes join on A. One exchanges MESSAGES messages
# on each stream with the first, the peer, and the other; then both exit. Sets $guest and $third;
# guests_end waits.
guests() {
	local n=$1
	shift
	by_user $IF_A auto
	traffic third a -p 18602 "$@" || return
	third=$child
	traffic guest a -m "$n" "$@" $IP4_A:18600 $IP4_B:18601 $IP4_A:18602 || return
	guest=$child
}
guests_end() {
	local rc
	finish "$guest" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the guest ended with $rc"; show guest; }
	[ $rc -eq 0 ] || stop "$third"
	finish "$third" 20 || { fail "the third ended with $?"; show third; }
	need_line guest ' messages right, [0-9]* bytes, 3 links ended, 0 lost$'
}

# Neither of the two has lost a packet: all messages are right and, with one queue, so are the
# counters. With several queues frames overtake each other, and RC resends them. Probes of the
# adaptive time-out are no loss, as an answer may be late on a busy machine. Nor are time-outs of
# messages to killed guests.
nothing_was_lost() {
	local side f maps timeouts=timeouts
	[ "${XROCE_TEST_QUEUES:-1}" = 1 ] || return 0
	[ -z "${guests_died:-}" ] || timeouts=
	for side in first peer; do
		maps=$(maps_of "${!side}")
		dump_map xroce_eng_stat
		for f in $timeouts tx_sequence_naks rx_sequence_naks implied_naks tx_lost; do
			need_equal "$f of $side" "$(field $f <"$WORK/dump")" 0
		done
		dump_map xroce_eng_drop
		need_equal "PSNs of $side that came too early" "$(field psn_ahead <"$WORK/dump")" 0
	done
}
# dumps one of the maps in $maps to a file
dump_map() {
	bpftool map dump id "$(awk -v name="$1" '$1 == name { print $2 }' <<<"$maps")" >"$WORK/dump"
}

# still_at_work: messages go on arriving at both; none of the two has said anything
arrived() {
	# before the program itself runs, the signal would end it: `xroce run` may have to wait
	wait_until 20 catches "${!1}" || return
	kill -USR1 "${!1}" || return
	# its message comes with the next event at the latest
	wait_until 5 said_more "$1" "$2" || return 1
}
# Of signals bit 9 is SIGUSR1.
catches() {
	local word caught=
	while read -r word caught && [ "$word" != SigCgt: ]; do :; done 2>/dev/null <"/proc/$1/status"
	[ -n "$caught" ] && [ $((0x$caught >> 9 & 1)) = 1 ]
}
# count_at NAME: the lines `at MESSAGES ...` that it has written, in $at_lines; the last, in $count.
count_at() {
	local word n _
	at_lines=0 count=
	while read -r word n _; do
		[ "$word" != at ] || { count=$n; at_lines=$((at_lines + 1)); }
	done <"$WORK/$1.out"
}
said_more() { count_at "$1"; [ "$at_lines" -gt "$2" ]; }
# messages NAME: sets $count to its messages so far
messages() {
	count_at "$1"
	arrived "$1" "$at_lines"
	count_at "$1"
}
has_more() { messages "$1"; [ "$count" -gt "$2" ]; }
# goes_on NAME MESSAGES: waits for MESSAGES more messages there
goes_on() {
	messages "$1"
	wait_until 60 has_more "$1" $((count + $2)) ||
		{ fail "$1 stands still"; show "$1"; }
}
still_at_work() {
	local side
	for side in first peer; do
		is_gone_or_zombie "${!side}" && { fail "$side has ended"; show $side; return 1; }
		goes_on $side 300
	done
}

# The pids of A's brokers.
brokers() {
	local p
	for p in $(ip netns pids $NS_A); do
		tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -q 'serve .*--while-used' && echo "$p"
	done
}
# Counts TAP devices of clients, without the broker's hairpin.
taps() { ip -n $NS_A -o link show type tun | grep -c ": xrt$index_a\."; }
devices() { ip -n $NS_A -o link show type tun | wc -l; }
# The first's own program is on the hook. The spare devices of a broker that has shared stay.
is_alone() {
	[ -S "$SOCKET" ] && in_a "$XROCE" list $IF_A >"$WORK/alone" 2>&1 &&
		grep -q '^  XDP .* xroce_xdp, ' "$WORK/alone" &&
		[ "$(grep -c '^  client  *[0-9]' "$WORK/alone")" = 1 ]
}
what_is_there() {
	echo "brokers '$(brokers)', $(devices) TAP devices, socket: $(ls "$SOCKET" 2>&1)," \
		"XDP $(xdp_on $NS_A $IF_A && echo on || echo off)"
}
alone_again() {
	wait_until 15 is_alone || fail "not alone again: $(what_is_there)"
}

runs_nothing() { [ -z "$(brokers)" ] && [ "$(devices)" = 0 ] && xdp_off $NS_A $IF_A; }
nothing_is_there() { [ ! -e "$SOCKET" ] && runs_nothing; }
nothing_left() {
	wait_until 15 nothing_is_there || fail "left: $(what_is_there)"
}
# Lists the kernel objects of the first and its partner, to check later that they are freed. Program
# arrays (type 3) are left out; their programs are listed. The kernel clears such an array when its
# last descriptor is closed. If a reader opens and closes the array before that, it stays for ever
# (Linux 6.18, prog_array_map_clear()).
remember() {
	mapfile -t kept_ids < <(cat "/proc/$first/fdinfo/"* "/proc/$peer/fdinfo/"* 2>/dev/null |
		awk '$1 == "map_type:" { type = $2 }
			$1 == "map_id:" && type != 3 || $1 == "prog_id:" || $1 == "link_id:" {
				sub("_id:", "", $1); print $1, $2 }' | sort -u)
}
all_forgotten() {
	local left
	left=$("$TOOLS/bpf_left" 20 "${kept_ids[@]}") || fail "of BPF is left: $left"
}

# end [LINES]: both sides end after all messages have arrived, and nothing is left. The first prints
# at most LINES lines of the library, default none.
end() {
	local side rc lines=${1:-0}
	remember
	rm -f "$GO"
	for side in first peer; do
		finish "${!side}" 30
		rc=$?
		[ $rc -eq 0 ] || { fail "$side ended with $rc"; show $side; }
		need_line $side '^first_traffic: [1-9][0-9]* messages right'
		need_least "most lines of the library in $side" "$lines" \
			"$(grep -c '^xroce: ' "$WORK/$side.out")"
		lines=0
	done
	nothing_left
	all_forgotten
}
# A case that went wrong leaves no process for the next one.
clear() {
	local pid
	rm -f "$GO" "$OWN/how"
	for pid in "${netns_children[@]}"; do
		kill -CONT "$pid" 2>/dev/null
		kill -9 "$pid" 2>/dev/null
		finish "$pid" 5
	done
	for pid in $(brokers); do
		kill -9 "$pid"
	done
	wait_until 10 xdp_off $NS_A $IF_A
	rm -f "$SOCKET"
}
# Runs a case, and cleans up if it failed.
first_case() {
	local name=$1
	shift
	run_case "$name" tidied "$@"
}
# first_long_case NAME FUNCTION [ARG...]: as first_case, for a case of the long tier.
first_long_case() {
	local name=$1
	shift
	run_long_case "$name" tidied "$@"
}
tidied() {
	local rc
	"$@"
	rc=$?
	{ [ $rc -eq 0 ] && [ ! -s "$WORK/case.notes" ]; } || clear
	return $rc
}
