#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# An attacker on the path (attack.c) sends changed copies of valid packets with right ICRCs, ahead
# of the genuine ones: every byte and completion is right all the same, the connection lives, and
# every RoCEv2 frame that reached the server is accounted for. XROCE_ATTACK_SECONDS makes it longer.
# What counts is how many forgeries there are: one end that polls takes the processor from the other
# and from the attacker, so all but one case sleep on events, which has more of them in a second.
. "$(dirname "$0")/lib/case.sh"
netns_chain 4500
seconds=${XROCE_ATTACK_SECONDS:-40}
attacker=

# attack_with OPTION...: the attacker is the cable.
attack_with() {
	[ -z "$attacker" ] || stop "$attacker"
	start attacker p "$TOOLS/attack" "$@" pa pb
	attacker=$child
	wait_until 5 grep -q forwarding "$WORK/attacker.out" || { fail "the attacker does not start"; show attacker; }
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "no path from A to B"
}

# What the attacker has sent towards A, by its own count.
left_to_a() {
	local lines
	lines=$(grep -c '^to first' "$WORK/attacker.out")
	kill -USR1 "$attacker"
	wait_until 5 has_reported "$lines" || return 1
	sed -n 's/^to first \([0-9]*\) .*/\1/p' "$WORK/attacker.out" | tail -n 1
}
has_reported() { [ "$(grep -c '^to first' "$WORK/attacker.out")" -gt "$1" ]; }

# What XDP on A has seen of it: each RoCEv2 frame is redirected or dropped.
seen_by_a() { echo $(($(kept server xroce_rx redirected) + $(kept server xroce_rx dropped))); }
all_are_seen() { local left; left=$(left_to_a) && [ "$(seen_by_a)" -eq "$left" ]; }

rests_or_gone() { grep -q '^rests$' "$WORK/$1.out" || is_gone_or_zombie "$2"; }
let_go() { : <>"$WORK/$1.fifo"; }

# attacked FAMILY SEED SECONDS events|polls OPTION-OF-ATTACK...
attacked() {
	local family=$1 seed=$2 bound=$3 how=$4 server client name both
	shift 4
	attack_with -s "$seed" "$@"
	gids_once "$family" || return
	: >"$WORK/keep"
	for name in server client; do
		rm -f "$WORK/$name.fifo"
		mkfifo "$WORK/$name.fifo"
	done
	both=(-n 20 -s "$seed" -k "$WORK/keep" -w 1000)
	[ "$how" = polls ] || both+=(-e)
	start_on server a "$TOOLS/vdata" -d $DEV_A -g "$gid_a" "${both[@]}" -q "$WORK/server.fifo"
	server=$child
	wait_until 10 listens_or_gone a 18600 "$server"
	keep_maps "$server" server || { fail "the server has no maps of ours"; show server; return; }
	start_on client b "$TOOLS/vdata" -d $DEV_B -g "$gid_b" "${both[@]}" -q "$WORK/client.fifo" $IP4_A
	client=$child
	bound=$((SECONDS + bound))
	while [ $SECONDS -lt $bound ] && ! is_gone_or_zombie "$client"; do
		read -r -t 0.2 <>"$WORK/quiet"
	done
	is_gone_or_zombie "$client" && fail "it ends before its time"
	rm "$WORK/keep"
	# Both are idle after the transfer, with the same counts as before.
	wait_until 60 rests_or_gone server "$server" && wait_until 60 rests_or_gone client "$client" ||
		fail "an end does not rest"
	wait_until 60 all_are_seen || fail "$(left_to_a) frames left for A, $(seen_by_a) were redirected or dropped"
	let_go server
	let_go client
	finish "$client" 60 || { fail "the client ended with $?"; show client; }
	finish "$server" 60 || { fail "the server ended with $?"; show server; }
	need_line server '^vdata: rc .* bytes right'
	need_line client '^vdata: rc .* bytes right'
	drop_maps server
}

# attacked_by KIND...: each was sent, or the case has shown nothing.
attacked_by() {
	local kind
	kill "$attacker"
	finish "$attacker" 5
	attacker=
	for kind; do
		need_line attacker " $kind [1-9]"
	done
}

everything() {
	attacked "$@"
	attacked_by far repeated early replay nak cnp misaddressed strange lookalike fragment
}
# IPv6 has no identification and no fragments of that kind.
everything_v6() {
	attacked "$@"
	attacked_by far repeated early replay nak cnp misaddressed strange
}
one_kind() {
	attacked v4 7 4 events -k "$1" -r "${2:-500}"
	attacked_by "$1"
}

run_long_case everything_v4 everything v4 1 "$seconds" events -r 200
run_long_case everything_v6 everything_v6 v6 2 $((seconds / 4)) polls -r 200
run_case replay one_kind replay
run_case nak one_kind nak
for kind in repeated early lookalike; do
	run_long_case $kind one_kind $kind
done
[ -z "$attacker" ] || stop "$attacker"
finish_cases
