#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# The resources that a broker gives to clients and takes back, whatever a client does. The clients
# are asker.c, which sends no packet.
. "$(dirname "$0")/lib/case.sh"

netns_pair 4500

. "$(dirname "$0")/lib/broker.sh"

# asks NAME: the number of a question, as the first of 4 bytes; asks: one more than the last.
asks() {
	sed -n '/^enum ask_what/,/^};/p' "$here/user/os/ask.h" | grep -oE '^	ASK_[A-Z]+' |
		awk -v name="\t${1:-}" '$0 == name { exit } { n++ } END { printf "%02x000000", n + 1 }'
}

malformed() {
	local name number pid v
	v=$(printf %02x "$(sed -n 's/^#define ASK_VERSION \([0-9]*\)u$/\1/p' "$here/user/os/ask.h")")
	serve
	keep good hello claims 100 10
	while read -r name pid; do
		# shellcheck disable=SC2086
		ask bad hello $pid
		need_line bad "^${pid%% *} end$" || fail "$name is answered"
	done <<-END
		nothing raw 0 00
		a_byte raw 1 $v
		short raw 47 ${v}000000$(asks ASK_DRAW)05000000
		long raw 49 ${v}000000$(asks ASK_DRAW)05000000
		very_long raw 65536 ${v}000000$(asks ASK_DRAW)05000000
		no_ask raw 48 ${v}00000000000000
		beyond_the_last raw 48 ${v}000000$(asks)
		huge raw 48 ${v}000000ffffffffffffffff
		padding raw 48 ${v}000000$(asks ASK_DRAW)0500000001
		a_service_of_no_bind raw 48 ${v}000000$(asks ASK_DRAW)050000000000000001
		halves halves
	END
	# Only a client with sockets may ask for the way to others, and only the first of a broker
	# that ends with it may ask to be alone.
	ask bad raw 48 "${v}000000$(asks ASK_OTHERS)" hello raw 48 "${v}000000$(asks ASK_OTHERS)"
	need_equal "answers about others" "$(grep -c '^raw EPERM$' "$WORK/bad.out")" 2
	ask bad raw 48 "${v}000000$(asks ASK_HELLO)02000000"
	need_line bad '^raw EBUSY$'
	# A trace of no kind of record; of a client that does not exist; the end of a trace that
	# never began.
	number=$(sed -n 's/^hello 0 client \([0-9]*\) .*/\1/p' "$WORK/good.out")
	ask bad hello raw 48 "${v}000000$(asks ASK_TRACE)$(printf %02x "$number")00000000000000"
	need_line bad '^raw EINVAL$'
	ask bad hello raw 48 "${v}000000$(asks ASK_TRACE)ff00000000000000"
	need_line bad '^raw ENOENT$'
	ask bad hello raw 48 "${v}000000$(asks ASK_UNTRACE)0100000000000000"
	need_line bad '^raw ENOENT$'
	ask bad raw 16 02000000010000000000000000000000
	need_line bad '^raw EPROTONOSUPPORT$'
	ask bad raw 4 ffffffff
	need_line bad '^raw EPROTONOSUPPORT$'
	# Where descriptors are not refused by the kernel (before 6.16), they end the client.
	for pid in 1 253; do
		ask bad hello rights $pid
		need_line bad '^rights (EPERM|end)$'
	done
	ask good2 hello claim 100 claim 500 release 100
	need_line good2 '^claim EEXIST$'
	need_line good2 '^claim 0$'
	need_line good2 '^release ENOENT$'
	need_equal "what the broker said" "$(cat "$WORK/serve.out")" ""
	is_gone_or_zombie "$kept" && fail "another client ended"
	stop "$kept"
	end_server
}

# A client that sends and does not read is dropped; it delays no other.
flood() {
	local i pids=()
	serve
	for i in 1 2 3 4; do
		start "flood$i" a "$ASKER" "$SOCKET" flood 1000000
		pids+=("$child")
	done
	ask good hello claims 1000 500 rings 5
	need_line good '^claims 500 0$'
	need_line good '^rings 5 0$'
	for i in 1 2 3 4; do
		finish "${pids[i - 1]}" 20 || fail "flood $i ends with $?"
		need_line "flood$i" '^flood end$'
	done
	end_server
}

# Descriptors in flight count against the limits of the broker's user: one unread answer's
# descriptors, for each user of the broker. A client that reads gets its answers.
unread() {
	serve
	ask_nobody other unread 30 ring
	need_line other '^unread 1 30 0$'
	need_line other '^ring 0 fds 1$'
	ask hoard hoard 16
	need_line hoard '^hoard 1 0 16$'
	# after five seconds the first is ended; its answer stays unread, so the second gets none
	ask silent silent 2
	need_line silent '^silent 1 1 told [12]$'
	end_server
}

# An answer stays in flight when its client hangs up without reading it.
unread_at_end() {
	serve
	# one answer stays; another user is served; at its end the user is
	ask shut hoard_shut 20
	need_line shut '^hoard_shut 1 EDQUOT 0 0 0$'
	# of 64 users at most 16 at once, and with 16 of them shut no further ones but root's
	ask users hoard_users 64
	need_line users '^hoard_users 16 (1[6-9]|2[0-9]|3[01]) ENOSPC 0 0 ENOSPC 0$'
	end_server
	# answers without descriptors are memory: two clients and eight more connections have these
	serve --max-clients 2
	ask_nobody other floods 20
	need_line other '^floods 9$'
	ask_nobody other hello
	need_line other '^hello 0 '
	end_server
}

# Many clients with slow requests do not delay one with a small request, nor another user.
crowd() {
	local word claim hello
	serve
	ask crowd hello crowd 60
	read -r word claim hello < <(grep '^crowd' "$WORK/crowd.out")
	need_equal "what it did" "$word" crowd
	[ "$claim" -lt 30 ] || fail "$claim of 60 were served before a claim"
	[ "$hello" -lt 30 ] || fail "$hello of 60 were served before another user"
	end_server
}

numbers() {
	serve
	answers claim 5 draws 1 release 5 ring
	need_equal "without a port" "$answers" \
		"claim ENOTCONN,draws 0 ENOTCONN,release ENOENT,ring ENOTCONN fds 0,"
	answers hello claim 5 claim 5 release 5 release 5 claim 5 hello
	need_equal "with one" "$answers" \
		"hello 0,claim 0,claim EALREADY,release 0,release ENOENT,claim 0,hello EALREADY,"
	answers hello claim 0 claim 1 claim 0xffffff claim 0x1000005 claim 0xffffffff
	need_equal "no QP's, but for 1" "$answers" \
		"hello 0,claim EINVAL,claim 0,claim EINVAL,claim EINVAL,claim EINVAL,"
	keep first hello claims 100 1000
	ask second hello claims 100 1000 release 100
	need_line second '^claims 0 EEXIST$'
	need_line second '^release ENOENT$'
	# A client without that right learns of no number whether it is taken.
	answers_nobody hello claim 0 claim 1 claim 5 claim 100 claim 0xffffff release 100 draws 3000
	need_equal "of another user" "$answers" \
		"hello 0,claim EPERM,claim 0,claim EPERM,claim EPERM,claim EPERM,release ENOENT,draws 3000 0,"
	kill -9 "$kept"
	finish "$kept" 5
	wait_until 5 numbers_are_free || { fail "a dead client's numbers stay"; show second; }
	end_server
}
numbers_are_free() {
	ask second hello claims 100 1000 && grep -q '^claims 1000 0$' "$WORK/second.out"
}
# The answer, in one line.
answers() { ask own "$@" && answered; }
answers_nobody() { ask_nobody own "$@" && answered; }
answered() {
	answers=$(sed 's/^hello 0 .*/hello 0/' "$WORK/own.out" | tr '\n' ',')
}

# Each client has a QP 1; a service is of one of them, until it ends.
services() {
	local port=0x1060fa0 low=0x1060050
	serve --max-services 3
	answers hello claim 1 claim 1 release 1 release 1 bind $low 1 unbind $low 1 unbind $low 1
	need_equal "answers to root" "$answers" \
		"hello 0,claim 0,claim EALREADY,release 0,release ENOENT,bind 0,unbind 0,unbind ENOENT,"
	answers bind $port 3 unbind $port 3
	need_equal "answers without a port" "$answers" "bind ENOTCONN,unbind ENOENT,"
	keep holder hello claim 1 bind $port 3
	need_equal "keys of its service" "$(elements "$server" xroce_service)" 2
	need_equal "its place, and nobody's" "$(elements "$server" xroce_cm_client)" 2
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list ', bound to 1 service;'
	answers_nobody hello claim 1 bind $port 1 bind $port 2 bind $low 1 bind 0x1060fa1 1 \
		bind 0x1060fa1 1 bind 0x1060fa1 4 bind 0x1060fa1 0 bind 0x1060fa1 3 bind 0x1060fa1 2 \
		bind 0x1110fa0 1
	need_equal "answers to others" "$answers" "hello 0,claim 0,bind EADDRINUSE,bind EADDRINUSE,bind \
EACCES,bind 0,bind EEXIST,bind EINVAL,bind EINVAL,bind 0,bind 0,bind EDQUOT,"
	kill -9 "$kept"
	finish "$kept" 5
	answers_nobody hello bind $port 1 unbind $port 1
	need_equal "answers after its end" "$answers" "hello 0,bind 0,unbind 0,"
	wait_until 5 none_is_bound || fail "what clients had is left"
	end_server
}
none_is_bound() {
	[ "$(elements "$server" xroce_service)" = 0 ] && [ "$(elements "$server" xroce_cm_client)" = 0 ]
}

limits() {
	serve --max-clients 2 --max-qps 3 --max-rings 4
	ask_nobody other hello draws 5 rings 6
	need_line other '^draws 3 EDQUOT$'
	need_line other '^rings 4 EDQUOT$'
	start one a setpriv --reuid 65534 --regid 65534 --clear-groups "$ASKER" "$SOCKET" hello draws 2 hold
	start two a setpriv --reuid 65534 --regid 65534 --clear-groups "$ASKER" "$SOCKET" hello draws 2 hold
	wait_until 5 grep -q '^hold' "$WORK/one.out" && wait_until 5 grep -q '^hold' "$WORK/two.out"
	need_equal "QPs of the two" "$(grep -h '^draws' "$WORK/one.out" "$WORK/two.out" | awk '{ n += $2 } END { print n }')" 3
	ask_nobody other hello list 0
	need_line other '^hello EDQUOT$'
	need_line other '^list 0 '
	ask root hello claims 100 50 rings 50
	need_line root '^claims 50 0$'
	need_line root '^rings 50 0$'
	kill -9 "$child"
	finish "$child" 5
	wait_until 5 nobody_comes_in || fail "a dead client counts"
	end_server
}
# Their kernel memory: a port and eleven rings.
memory() {
	local words=(setpriv --reuid 65534 --regid 65534 --clear-groups "$ASKER" "$SOCKET") one two
	serve --max-memory 21
	keep root hello
	# as many rings as a process has, of 12 KiB; the next process of the user gets the rest
	start one a "${words[@]}" hello rings 100 hold
	one=$child
	wait_until 5 grep -q '^hold' "$WORK/one.out" || fail "no port"
	need_line one '^rings 64 ENOSPC$'
	ask_nobody other hello rings 100 list 0
	need_line other '^rings 21 EDQUOT$'
	start two a "${words[@]}" hello hold
	two=$child
	wait_until 5 grep -q '^hold' "$WORK/two.out" || fail "no second port"
	ask_nobody other hello
	need_line other '^hello EDQUOT$'
	need_equal "shown" "$(in_a "$XROCE" list $IF_A | grep -c '^  client .*; uses 10.0 MiB of kernel')" 2
	need_equal "shown as JSON" "$(in_a "$XROCE" list --json $IF_A | grep -oE '"memory": *10485760' | wc -l)" 2
	stop "$one"; stop "$two"
	wait_until 5 nobody_comes_in || fail "a dead client counts"
	kill -9 "$kept"
	finish "$kept" 5
	end_server
}
# Memory counts while a process keeps a descriptor of it, also after the end of its connection. A
# process that closes all may have any number of ports, one after the other.
kept_memory() {
	serve --max-memory 51
	ask_nobody other keeps 200
	need_line other '^keeps 5 EDQUOT 0$'
	ask_nobody other again 60
	need_line other '^again 60$'
	ask_nobody other traces 400
	need_line other '^traces [0-9]+ EDQUOT 0$'
	ask_nobody other hello
	need_line other '^hello 0 '
	end_server
	# the same of files
	serve --port sockets --max-memory 51
	ask_nobody other keeps 200
	need_line other '^keeps 5 EDQUOT 0$'
	ask_nobody other again 60
	need_line other '^again 60$'
	end_server
}
nobody_comes_in() { ask_nobody other hello && grep -q '^hello 0' "$WORK/other.out"; }

# A client may make its TAP device stay, and keep it open: it goes all the same.
orphans() {
	serve
	ask orphan orphan
	need_line orphan '^orphan gone$'
	end_server
}

# Frames cross to the other end of a veth while that is in another network namespace. Last of all
# cases: an end that moves loses its addresses.
pair_is() { bpftool map dump id "$1" | grep -q "^Found $2 element"; }
pair() {
	local map
	serve
	map=$(map_id "$server" xroce_pair) || fail "no map"
	wait_until 5 pair_is "$map" 1 || fail "the ends are in two namespaces"
	in_b ip link set $IF_B netns $NS_A
	wait_until 5 pair_is "$map" 0 || fail "both ends are here"
	in_a ip link set $IF_B netns $NS_B
	wait_until 5 pair_is "$map" 1 || fail "the other end has gone away again"
	end_server
}

# All at once, and all at once killed.
many() {
	local i pids=()
	serve
	for i in {1..64}; do
		start "many$i" a "$ASKER" "$SOCKET" hello claims $((i * 100)) 16 hold
		pids+=("$child")
	done
	for i in {1..64}; do
		wait_until 20 grep -q '^hold' "$WORK/many$i.out" || fail "client $i has no port"
		need_line "many$i" '^claims 16 0$'
	done
	need_equal "clients shown" "$(in_a "$XROCE" list $IF_A | grep -c '^  client .*, 16 QPs;')" 64
	{ kill -9 "${pids[@]}"; wait "${pids[@]}"; } 2>/dev/null
	for i in "${pids[@]}"; do netns_forget "$i"; done
	for i in {1..64}; do
		wait_until 5 program_is_gone "$(programs "many$i")" || fail "the program of client $i stays"
	done
	wait_until 5 taps_are "xrt$index_a\\." 4 || fail "$(taps "xrt$index_a\\.") TAP devices stay"
	end_server
}

descriptors() { find "/proc/$server/fd" -type l | wc -l; }
anonymous() { sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server/status"; }
spares_are_ready() { taps_are "xrt$index_a\\." 4 && [ "$(descriptors)" = "$1" ]; }

# Ports, one after the other, and connections that never ask for one.
nothing_leaks() {
	local fds memory i
	serve
	ask warm again 20
	wait_until 5 taps_are "xrt$index_a\\." 4
	wait_until 5 spares_settle
	fds=$settled_fds
	memory=$(anonymous)
	bound=200 ask again again 200
	need_line again '^again 200$'
	for i in {1..50}; do
		ask none list 0 raw 3 010101
	done
	wait_until 10 spares_are_ready "$fds" || fail "$(descriptors) descriptors, $fds before; $(taps "xrt$index_a\\.") TAP devices"
	need_least "memory before, and 300 KiB" $((memory + 300)) "$(anonymous)"
	need_equal "maps and programs" "$(bpf_ids "$server" prog | wc -l) $(bpf_ids "$server" map | wc -l)" "$settled_bpf"
	end_server
}
spares_settle() {
	settled_fds=$(descriptors)
	settled_bpf="$(bpf_ids "$server" prog | wc -l) $(bpf_ids "$server" map | wc -l)"
	read -r -t 0.2 <>"$WORK/quiet"
	[ "$settled_fds" = "$(descriptors)" ]
}

run_long_case broker_malformed malformed
run_long_case broker_flood flood
run_long_case broker_unread unread
run_case broker_unread_at_end unread_at_end
run_long_case broker_crowd crowd
run_case broker_numbers numbers
run_long_case broker_services services
run_long_case broker_limits limits
run_long_case broker_memory memory
run_long_case broker_kept_memory kept_memory
run_case broker_orphans orphans
run_long_case broker_many many
run_long_case broker_nothing_leaks nothing_leaks
run_case broker_pair pair
finish_cases
