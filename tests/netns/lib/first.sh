# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A process of root that had its interface alone (`first`, on A), its partner on B, which has the
# other end of the cable alone (`peer`), and others that come to A (`guest`, `third`), of a user
# without privileges. All of them are first_traffic.c: what arrives is checked message by message.
# Sourced behind case.sh, after the topology is made.

OWN=$WORK/own GO=$WORK/own/go
NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
index_a=$(ip -n $NS_A -o link show $IF_A | cut -d: -f1)
SOCKET=/run/xroce/$(stat -L -c %i /run/netns/$NS_A)-$index_a.sock
chmod 755 "$WORK"
mkdir -p "$OWN/bin" "$OWN/lib"
install -m 755 "$XROCE" "$OWN/bin/xroce.bin"
install -m 755 "$TOOLS"/{first_traffic,asker,sharer} "$OWN/bin"
install -m 755 "$BUILD/lib/libibverbs.so.1" "$OWN/lib/libibverbs.so.1"

# What the library finds beside itself and starts as a broker. A line in `started` each time: when
# its process began, in clock ticks as the kernel has it, however late that comes to run; what `how`
# says happens to it.
cat >"$OWN/bin/xroce" <<END
#!/bin/sh
cut -d' ' -f22 /proc/\$\$/stat >>$OWN/started
case "\$(cat $OWN/how 2>/dev/null)" in
kill) kill -9 \$\$ ;;
fail) exit 1 ;;
wait) while [ -e $OWN/how ]; do sleep 0.02; done ;;
esac
exec $OWN/bin/xroce.bin "\$@"
END
chmod 755 "$OWN/bin/xroce"
started() { wc -l <"$OWN/started"; }
has_started() { [ "$(started)" -ge "$1" ]; }

by_root() { words=("$OWN/bin/xroce.bin" run --dev "$1" --share "$2" --); }
by_user() { words=("${NOBODY[@]}" "$OWN/bin/xroce.bin" run --dev "$1" --share "$2" --); }

said() { grep -q "$2" "$WORK/$1.out"; }
said_or_gone() { said "$1" "$2" || is_gone_or_zombie "$3"; }

# traffic NAME NS WORDS... -- ARGUMENT...: one that is ready; its pid in $child
traffic() {
	local name=$1 ns=$2 dev=$DEV_A
	shift 2
	[ "$ns" = b ] && dev=$DEV_B
	start "$name" "$ns" "${words[@]}" "$OWN/bin/first_traffic" -d $dev "$@"
	wait_until 40 said_or_gone "$name" '^ready' "$child"
	said "$name" '^ready' || { fail "$name does not begin"; show "$name"; show first; return 1; }
}

# begin [OPTION...]: both ends of the cable at work, in $first and $peer: a link that stays, one
# that is made anew all the time, and one of the first with itself. Options are of both.
begin() {
	guests_died=
	: >"$GO"
	: >"$OWN/started"
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

# guests MESSAGES [OPTION...]: two processes of a user come to A. The one exchanges so many messages
# on each stream with the first, the peer, and the other; then both go. Sets $guest and $third;
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

# Neither of the two has lost a packet, as all messages are right, and as the counters say if there
# is one queue: between several, frames overtake each other, and RC asks for them again. Probes of
# the adaptive time-out are no loss: on a busy machine an answer may be late. Nor are time-outs of
# what was sent to guests that were killed.
nothing_was_lost() {
	local side f timeouts=timeouts
	[ "${XROCE_TEST_QUEUES:-1}" = 1 ] || return 0
	[ -z "${guests_died:-}" ] || timeouts=
	for side in first peer; do
		for f in $timeouts tx_sequence_naks rx_sequence_naks implied_naks tx_lost; do
			need_equal "$f of $side" "$(counter "${!side}" xroce_eng_stat $f)" 0
		done
		need_equal "PSNs of $side that came too early" "$(counter "${!side}" xroce_eng_drop psn_ahead)" 0
	done
}

# still_at_work: messages go on arriving at both; none of the two has said anything
arrived() {
	# before the program itself runs, the signal would end it: `xroce run` may have to wait
	wait_until 20 catches "${!1}" || return
	kill -USR1 "${!1}" || return
	# what it says comes with the next event at the latest
	wait_until 5 said_more "$1" "$2" || return 1
}
# Of signals bit 9 is SIGUSR1.
catches() {
	local caught
	caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
	[ -n "$caught" ] && [ $((0x$caught >> 9 & 1)) = 1 ]
}
said_more() { [ "$(grep -c '^at ' "$WORK/$1.out")" -gt "$2" ]; }
messages() {
	local lines
	lines=$(grep -c '^at ' "$WORK/$1.out")
	arrived "$1" "$lines"
	sed -n 's/^at \([0-9]*\) .*/\1/p' "$WORK/$1.out" | tail -n 1
}
has_more() { [ "$(messages "$1")" -gt "$2" ]; }
# goes_on NAME MESSAGES: so many more arrive there
goes_on() {
	wait_until 60 has_more "$1" $(($(messages "$1") + $2)) ||
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
# Those of clients; the hairpin that a broker made stays the first's, until that ends.
taps() { ip -n $NS_A -o link show type tun | grep -c ": xrt$index_a\."; }
devices() { ip -n $NS_A -o link show type tun | wc -l; }
has_no_clients() { [ -z "$(brokers)" ] && [ "$(taps)" = 0 ] && [ "$(devices)" -le 1 ]; }
is_alone() { has_no_clients && [ -S "$SOCKET" ]; }
what_is_there() {
	echo "brokers '$(brokers)', $(devices) TAP devices, socket: $(ls "$SOCKET" 2>&1)," \
		"XDP $(xdp_on $NS_A $IF_A && echo on || echo off)"
}
alone_again() {
	wait_until 15 is_alone || fail "not alone again: $(what_is_there)"
}

runs_nothing() { [ -z "$(brokers)" ] && [ "$(devices)" = 0 ] && xdp_off $NS_A $IF_A; }
nothing_is_there() { runs_nothing && [ ! -e "$SOCKET" ]; }
nothing_left() {
	wait_until 15 nothing_is_there || fail "left: $(what_is_there)"
}
# What the first and its partner have in the kernel, and later whether it has gone. No arrays of
# programs, whose programs tell: the kernel empties one when its last descriptor is closed, and one
# that is opened and closed again before it has come to that, only to look, stays for ever (Linux
# 6.18, prog_array_map_clear()).
remember() {
	local kind side id
	kept_ids=
	for side in first peer; do
		for kind in map prog link; do
			for id in $(bpf_ids "${!side}" $kind); do
				bpftool $kind show id "$id" | grep -q ': prog_array ' || kept_ids+="$kind $id"$'\n'
			done
		done
	done
}
# Those that are still there, in left_ids.
ids_are_gone() {
	local kind id
	left_ids=
	while read -r kind id; do
		[ -z "$kind" ] || ! bpftool "$kind" show id "$id" >/dev/null 2>&1 || left_ids+="$kind $id"$'\n'
	done <<<"$kept_ids"
	[ -z "$left_ids" ]
}
all_forgotten() {
	local kind id
	wait_until 20 ids_are_gone && return
	while read -r kind id; do
		fail "$kind $id is left: $(bpftool "$kind" show id "$id" 2>&1 | head -n 1)"
	done <<<"${left_ids%$'\n'}"
}

# end [LINES]: both sides come to an end, having received all; nothing is left. No lines of the
# library, or so many at most of the first's.
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
# A case, and whatever it leaves taken away, if it has failed.
first_case() {
	local name=$1
	shift
	run_case "$name" tidied "$@"
}
tidied() {
	local rc
	"$@"
	rc=$?
	{ [ $rc -eq 0 ] && [ ! -s "$WORK/case.notes" ]; } || clear
	return $rc
}
