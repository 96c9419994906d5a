#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# The commands that look into processes while these start, end and are killed, brokers come and go,
# and interfaces are renamed and deleted: each ends as the manual page says, and nothing of a tracer
# stays, however it ended. A new command goes into one of the two lists. XROCE_CHURN_ROUNDS=200 for
# long.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
LOOKS=(list clients stat qp cq srq mr 'stat --json' 'qp --json' 'clients --json' 'stat -i 0.01 -c 3' doctor)
STREAMS=('trace --json' "capture -w $WORK/captured")
ROUNDS=${XROCE_CHURN_ROUNDS:-30}

netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS/hostile_maps" "$OWN/bin/"

# ---- the changes: in a separate process, which ends all that it starts ----

# spawn COMMAND...: in A; its pid in $spawned
spawn() {
	: >"$WORK/spawned.out"
	# no function: that would be a shell's pid
	nsenter --net=/run/netns/$NS_A "$@" </dev/null >"$WORK/spawned.out" 2>&1 &
	spawned=$!
}
kill_spawned() { kill "-$1" "$2" 2>/dev/null; wait "$2" 2>/dev/null; }
says_honest() { grep -q '^honest$' "$WORK/spawned.out" || is_gone_or_zombie "$1"; }
# owner DEV [WHO...]: a process with objects on it
owner() { spawn "${@:2}" "$OWN/bin/xroce" run --dev "$1" -- "$OWN/bin/hostile_maps" "xroce_$1" 0; wait_until 20 says_honest "$spawned"; }
broker_or_none() { broker_answers a $IF_A || is_gone_or_zombie "$1"; }

change() {
	local one two
	case $(($1 % 5)) in
	0)
		owner $IF_A
		kill_spawned KILL "$spawned"
		;;
	1)
		spawn "$XROCE" serve $IF_A
		one=$spawned
		wait_until 20 broker_or_none "$one"
		owner $IF_A "${NOBODY[@]}"
		kill_spawned KILL "$spawned"
		owner $IF_A
		in_a timeout 20 "$XROCE" stop $IF_A >/dev/null 2>&1
		kill_spawned TERM "$spawned"
		kill_spawned TERM "$one"
		;;
	2)
		spawn "$XROCE" serve $IF_A
		one=$spawned
		wait_until 20 broker_or_none "$one"
		owner $IF_A "${NOBODY[@]}"
		kill_spawned KILL "$one"
		kill_spawned TERM "$spawned"
		;;
	3 | 4)
		ip -n $NS_A link add vx address 02:00:00:77:00:05 type veth peer name vy
		ip -n $NS_A link set vy up
		ip -n $NS_A link set vx up
		ip -n $NS_A addr add 10.78.0.1/24 dev vx
		owner vx
		two=vx
		[ $(($1 % 5)) = 3 ] || { ip -n $NS_A link set vx name vz && two=vz; }
		ip -n $NS_A link del $two
		kill_spawned TERM "$spawned"
		;;
	esac
}
changes() {
	trap - EXIT
	for ((i = 0; i < ROUNDS; i++)); do
		echo $i >"$WORK/round"
		change $i
	done
	echo all >"$WORK/round"
}

# ---- the observers ----

looked=0
look() {
	local words status
	read -ra words <<<"$1"
	looked=$((looked + 1))
	in_a timeout -k 1 30 "$XROCE" "${words[@]}" >"$WORK/look.out" 2>"$WORK/look.err" </dev/null
	status=$?
	case $status in
	0 | 1) ;;
	*) fail "xroce $1 ends with $status in round $(cat "$WORK/round"): $(head -c 300 "$WORK/look.err")" ;;
	esac
	[[ $1 != *--json ]] || python3 -c 'import json, sys; json.load(sys.stdin)' <"$WORK/look.out" 2>/dev/null || fail "xroce $1 prints no JSON in round $(cat "$WORK/round")"
}
has_changed() { [ "$(cat "$WORK/round")" = all ]; }

while_all_changes() {
	local streams=() stream words changer n=0
	echo 0 >"$WORK/round"
	for stream in "${STREAMS[@]}"; do
		read -ra words <<<"$stream"
		start "stream${#streams[@]}" a "$XROCE" "${words[@]}"
		streams+=("$child")
	done
	changes &
	changer=$!
	netns_children+=("$changer")
	until has_changed && [ $looked -ge 200 ]; do
		look "${LOOKS[n++ % ${#LOOKS[@]}]}"
		is_gone_or_zombie "$changer" && ! has_changed && { fail "the changes have ended early"; break; }
	done
	finish "$changer" 10
	for ((n = 0; n < ${#streams[@]}; n++)); do
		is_gone_or_zombie "${streams[n]}" && { fail "${STREAMS[n]} has ended"; show "stream$n"; }
		kill -TERM "${streams[n]}" 2>/dev/null
		finish "${streams[n]}" 20 || { fail "${STREAMS[n]} ends with $?"; show "stream$n"; }
	done
	python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin if l.startswith("{")]' <"$WORK/stream0.out" || fail "a line of trace is no JSON"
	python3 "$here/tests/netns/lib/pcapng.py" "$WORK/captured" >"$WORK/pcapng.out" 2>&1 || { fail "the captured file is not whole"; show pcapng; }
	need_equal "processes that look" "$(pgrep -f "^$XROCE (trace|capture)" | xargs -r -n 1 nsenter_of | wc -l)" 0
	xdp_off $NS_A $IF_A || wait_until 10 xdp_off $NS_A $IF_A || fail "XDP is still on $IF_A"
	echo "# looked $looked times in $ROUNDS rounds"
}
# pids of this test's namespace only: others run at the same time
nsenter_of() { [ "/proc/$1/ns/net" -ef "/run/netns/$NS_A" ] && echo "$1"; }
export -f nsenter_of

# ---- places of tracers ----

listening() { bpftool -j map dump id "$(map_id "$1" .data.trace)" | grep -oE '"listening":[0-9]+' | grep -oE '[0-9]+$'; }
rings() { bpftool map dump id "$(map_id "$1" xroce_tracer)" 2>/dev/null | grep -cE '(inner_map_id|value): *[0-9 ]*[1-9]'; }
listens_to() { [ "$(listening "$1")" = "$2" ]; }
can_be_traced() { in_a timeout 20 "$XROCE" trace -D 1 $IF_A >"$WORK/traced.out" 2>&1 && ! grep -q 'cannot trace' "$WORK/traced.out"; }

places() {
	local of i tracers how
	owner $IF_A
	of=$spawned
	netns_children+=("$of")
	for how in TERM INT TERM KILL; do
		tracers=()
		for i in 1 2 3 4; do
			start "tracer$i" a "$XROCE" trace $IF_A
			tracers+=("$child")
		done
		wait_until 20 listens_to "$of" 15 || { fail "listening is $(listening "$of"), not 15, before $how"; break; }
		! can_be_traced || fail "a fifth looks"
		for i in "${tracers[@]}"; do kill -$how "$i"; done
		for i in "${tracers[@]}"; do finish "$i" 20; done
		[ $how = KILL ] && continue
		need_equal "who looks after $how" "$(listening "$of")" 0
		need_equal "rings after $how" "$(rings "$of")" 0
	done
	# leases end
	wait_until 10 can_be_traced || { fail "places of tracers that were killed stay"; show traced; }
	kill_spawned KILL "$of"
	netns_forget "$of"
}

run_case while_all_changes while_all_changes
run_case tracers_places places
finish_cases
