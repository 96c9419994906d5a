#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# MADs of processes that share an interface, each with its own QP 1: unprivileged clients of a
# broker, with each other and with a remote host; the receiver of a MAD; services that are taken; a
# killed process; packets that may not be sent.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS/mads" "$OWN/bin"

serving() { grep -q '^ready' "$WORK/$1.out" || is_gone_or_zombie "$2"; }
# server NAME NS ARGUMENT...: starts a server that stays, unprivileged on A, alone on B; its pid in
# $child
server() {
	local name=$1 ns=$2
	shift 2
	begin "$name" "$ns" -w "$@"
	wait_until 20 serving "$name" "$child"
	need_line "$name" '^ready' || return
	servers+=("$name" "$child")
}
begin() {
	local name=$1 ns=$2 dev=$DEV_A gid=$gid_a
	local words=("${NOBODY[@]}" "$OWN/bin/xroce" run --share always --dev $IF_A --)
	shift 2
	[ "$ns" = a ] || { dev=$DEV_B gid=$gid_b; words=("$XROCE" run --share never --dev $IF_B --); }
	start "$name" "$ns" "${words[@]}" "$OWN/bin/mads" "$@" $dev "$gid"
}
# asks NAME NS COUNT ARGUMENT...: to its end
asks() {
	local name=$1 count=$3
	begin "$1" "$2" -n "$3" "${@:4}"
	finish "$child" 60 || { fail "$name ended with $?"; show "$name"; return; }
	need_line "$name" "^asked $count, repeated [0-9]+, served 0\$"
}
# Each has received nothing that is not its own, and is there to the end.
end_servers() {
	local i
	for ((i = 0; i < ${#servers[@]}; i += 2)); do
		kill "${servers[i + 1]}"
		finish "${servers[i + 1]}" 10 || { fail "${servers[i]} ended with $?"; show "${servers[i]}"; }
	done
	servers=()
}
servers=()

# of_family FAMILY ADDRESS-A ADDRESS-B
of_family() {
	local places
	gids_for "$1" || return
	server one a -s 0x01064000 -s "0x01064001@$2"
	server two a -s 0x01064002
	server far b -s 0x01064000
	places=$(sed -n 's/^place //p' "$WORK/one.out" "$WORK/two.out" | sort -u | wc -l)
	need_equal "places of the two" "$places" 2
	need_no_line one '^place 0x0$'
	asks to_one a 200 -f -c "0x01064000@$2"
	asks to_two a 200 -c "0x01064002@$2"
	asks to_far a 200 -c "0x01064000@$3"
	end_servers
	server one a -s 0x01064000 -s "0x01064001@$2"
	server two a -s 0x01064002
	asks far_to_one b 200 -c "0x01064001@$2"
	asks far_to_two b 200 -c "0x01064002@$2"
	end_servers
}

# Who asks is served itself meanwhile; its own services are by the same way as others'.
at_once() {
	local i names=(p q r)
	gids_for v4 || return
	for i in 0 1 2; do
		server "${names[i]}" a -s $((0x01064000 + i)) -n 300 -g "$OWN/go" \
			-c "$((0x01064000 + (i + 1) % 3))@$IP4_A"
	done
	: >"$OWN/go"
	for i in 0 1 2; do
		wait_until 30 has_exchanged "${servers[$((2 * i + 1))]:-0}" "${names[i]}" 600 ||
			{ fail "${names[i]} stands still"; show "${names[i]}"; }
	done
	end_servers
}
# In a process that serves and asks, both are counted.
has_exchanged() {
	kill -USR1 "$1"
	[ "$(sed -n 's/^at //p' "$WORK/$2.out" | tail -n 1)" -ge "$3" ]
}

taken() {
	gids_for v4 || return
	server one a -s 0x01064000 -s "0x01064001@$IP4_A" -s 0x01064000
	need_equal "services that it has" "$(grep -c ': bound$' "$WORK/one.out")" 3
	# the same; any and one; other families, ids and addresses are free
	server two a -s 0x01064000 -s "0x01064000@$IP4_A" -s 0x01064001 -s "0x01064001@$IP4_A" \
		-s "0x01064001@$IP6_A" -s 0x01114000 -s 0x01064002
	need_equal "services taken" "$(sed -n 's/^service .*: //p' "$WORK/two.out" | tr '\n' ' ')" \
		"EADDRINUSE EADDRINUSE EADDRINUSE EADDRINUSE bound bound bound "
	asks three a 100 -c "0x01064002@$IP4_A"
	asks three a 100 -c "0x01064000@$IP4_A"
	kill -9 "${servers[1]}"
	servers=("${servers[@]:2}")
	wait_until 10 is_free 0x01064000 || { fail "what a killed one had stays taken"; show probe; }
	asks three a 100 -c "0x01064002@$IP4_A"
	end_servers
}
is_free() {
	begin probe a -n 1 -s "$1" -c "$1@$IP4_A"
	finish "$child" 20 && grep -q 'bound$' "$WORK/probe.out"
}

# By an unprivileged client, from QP 1: to another client, and to the host elsewhere.
hostile() {
	gids_for v4 || return
	server near a -s 0x01064000
	server far b -s 0x01064000
	asks hostile a 20 -x -c "0x01064000@$IP4_A"
	need_line hostile '^forbidden 12$'
	asks hostile a 20 -x -c "0x01064000@$IP4_B"
	need_least "refused for another's id" "$(counter "$broker" xroce_refused mad_id)" 4
	need_least "refused as no MAD" "$(counter "$broker" xroce_refused mad)" 16
	end_servers
}

# answered_by_others NS: a process there waits for an answer of `victim`, which is stopped. Another
# user's answers to that request must not arrive.
answered_by_others() {
	local asker to=$IP4_B place tid=0x1234567890abcdef
	[ "$1" = b ] || to=$IP4_A
	gids_for v4 || return
	server victim a -s 0x01064000
	kill -STOP "${servers[1]}"
	begin asker "$1" -n 5 -t $tid -g "$OWN/asks" -c "0x01064000@$IP4_A"
	asker=$child
	wait_until 20 serving asker "$asker"
	place=$(sed -n 's/^place //p' "$WORK/asker.out")
	: >"$OWN/asks"
	wait_until 10 is_asked $((place << 21)) || fail "no request arrives"
	begin hostile a -n 20 -i 5000 -y "$place:$tid@$to"
	finish "$child" 30 || { fail "the hostile client ended with $?"; show hostile; }
	need_line hostile '^forged 20$'
	kill -CONT "${servers[1]}"
	finish "$asker" 30 || { fail "the asker ended with $?"; show asker; }
	need_line asker '^asked 5, '
	rm -f "$OWN/asks"
	end_servers
	need_least "refused as another's to answer" "$(counter "$broker" xroce_refused mad_answer)" 100
}
# is_asked ID: a request with that id has arrived
is_asked() { bpftool map dump id "$(map_id "$broker" xroce_asked)" | grep -q "\"id\": $1,"; }

serve a $IF_A || { cat "$WORK/case.notes"; exit 1; }
run_case v4 of_family v4 $IP4_A $IP4_B
run_long_case v6 of_family v6 $IP6_A $IP6_B
run_long_case at_once at_once
run_case taken taken
run_case hostile hostile
run_case answers_far answered_by_others b
run_case answers_near answered_by_others a
finish_cases
