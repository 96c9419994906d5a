#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Clients of a broker that are killed at any moment, while other clients must not notice; the broker
# killed under their traffic; many starts and ends. XROCE_CHAOS_KILLS and XROCE_CHAOS_STARTS make it
# longer: 600 and 1000 by hand.
#
# The deaths of clients at each of their steps are brokersim's (tests/brokersim). Only here the
# kernel closes what a process that was killed had, with packets under way.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

KILLS=${XROCE_CHAOS_KILLS:-10} STARTS=${XROCE_CHAOS_STARTS:-100}
chmod 755 "$WORK"
mkdir -p "$WORK/own/bin" "$WORK/own/lib"
install -m 755 "$XROCE" "$TOOLS"/{vdata,crowded,asker} "$WORK/own/bin"
install -m 755 "$BUILD/lib/libibverbs.so.1" "$WORK/own/lib/libibverbs.so.1"
OWN=$WORK/own/bin
index_a=$(ip -n $NS_A -o link show $IF_A | cut -d: -f1)
NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
SHARED=("${NOBODY[@]}" "$OWN/xroce" run --share always --dev $IF_A --)

answers() { in_ns "$1" "$XROCE" list | grep -q 'broker *pid'; }
taps() { ip -n $NS_A -o link show type tun | grep -c "xrt$index_a\\."; }
descriptors() { local fd=("/proc/$broker/fd/"*); echo ${#fd[@]}; }
anonymous() { sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$broker/status"; }
numbers() { bpftool map dump id "$owners" | grep -c '"key":'; }
has() { echo "$(descriptors) $(bpf_ids "$broker" prog | wc -l) $(bpf_ids "$broker" map | wc -l) $(taps) $(numbers)"; }
settled=
settles() {
	local before=$settled
	settled=$(has)
	[ "$settled" = "$before" ] || { read -r -t 0.3 <>"$WORK/quiet"; false; }
}
has_settled_at() { [ "$(descriptors)" = "${1%% *}" ] && [ "$(has)" = "$1" ]; }

serve() {
	start broker a "$XROCE" serve $IF_A
	broker=$child
	wait_until 10 answers a || { fail "no broker"; show broker; }
	owners=$(map_id "$broker" xroce_owner | sort -n | head -1)
}

# A first client: when one of a user has ended, the broker loads the program that lists maps, and
# keeps it.
serve_once() {
	programs=$(bpf_ids "$broker" prog | wc -l)
	crowd once -s 1
	finish "$child" 30 || { fail "the first client ends with $?"; show once; }
	wait_until 20 lists_maps || fail "the broker does not look for maps"
}
lists_maps() { [ "$(bpf_ids "$broker" prog | wc -l)" -gt "$programs" ]; }

# What a stopped broker leaves, if it was not killed.
serve_no_more() {
	in_a "$XROCE" stop $IF_A || fail "stop ends with $?"
	finish "$broker" 5 || fail "the broker ends with $?"
	xdp_off $NS_A $IF_A || fail "an XDP program is left"
	need_equal "TAP devices left" "$(taps)" 0
	need_equal "what the broker said" "$(cat "$WORK/broker.out")" ""
}

# pair NAME PORT NS: two processes that exchange checked data while $WORK/own/go exists, the first
# on A, their pids in first and second. They pause between rounds, so that 18 of them leave CPU
# time, until they are hurried: a killed process has work under way.
pair() {
	local name=$1 port=$2 ns=$3 client=("${SHARED[@]}") dev=$DEV_A gid=$gid_a
	local options=(-e -n 1 -x 20000 -i 30 -k "$WORK/own/go" -p "$port" -s "$port" -T 16)
	if [ "$ns" = b ]; then
		client=("${NOBODY[@]}" "$OWN/xroce" run --share always --dev $IF_B --)
		dev=$DEV_B gid=$gid_b
	fi
	start "$name-server" a "${SHARED[@]}" "$OWN/vdata" -d $DEV_A -g "$gid_a" "${options[@]}"
	first=$child
	wait_until 20 listens_or_gone a "$port" "$first"
	start "$name-client" "$ns" "${client[@]}" "$OWN/vdata" -d $dev -g "$gid" "${options[@]}" $IP4_A
	second=$child
}

# Also ends a process that is still starting, as do the next lines.
hurry() {
	kill -USR1 "$@" 2>/dev/null
	read -r -t 0.03 <>"$WORK/quiet"
}

# end PID HOW: its status does not matter
end() {
	[ "$2" != STOP ] || { kill -STOP "$1"; read -r -t 0.02 <>"$WORK/quiet"; set -- "$1" KILL; }
	kill -"$2" "$1" 2>/dev/null
	finish "$1" 5 2>/dev/null
}

# Of 16 clients on A, six are left alone: two pairs here and two over the wire. The other ten are
# five pairs; a process of one is killed, its partner too, and the pair is started again.
killed_clients() {
	local i how ways=(KILL STOP SEGV) left=() firsts=() seconds=() memory none there
	start broker_b b "$XROCE" serve $IF_B
	there=$child
	serve
	wait_until 10 answers b || { fail "no broker on B"; show broker_b; }
	serve_once
	none=$(settled_now)
	: >"$WORK/own/go"
	for i in 1 2; do
		pair near$i $((18700 + i)) a
		left+=("$first" "$second")
		pair wire$i $((18710 + i)) b
		left+=("$first" "$second")
	done
	for i in 0 1 2 3 4; do
		pair victim$i $((18720 + i)) a
		firsts[i]=$first seconds[i]=$second
	done
	memory=$(anonymous)
	for ((k = 0; k < KILLS; k++)); do
		i=$((k % 5)) how=${ways[k % 3]}
		hurry "${firsts[i]}" "${seconds[i]}"
		if [ $((k / 5 % 2)) = 0 ]; then
			end "${firsts[i]}" $how
			end "${seconds[i]}" KILL
		else
			end "${seconds[i]}" $how
			end "${firsts[i]}" KILL
		fi
		pair victim$i $((18720 + i)) a
		firsts[i]=$first seconds[i]=$second
		read -r -t 0.1 <>"$WORK/quiet"
	done
	hurry "${firsts[@]}" "${seconds[@]}"
	for i in 0 1 2 3 4; do
		end "${firsts[i]}" KILL
		end "${seconds[i]}" KILL
	done
	for i in "${left[@]}"; do
		is_gone_or_zombie "$i" && fail "a process that was left alone has ended"
	done
	rm -f "$WORK/own/go"
	for i in "${left[@]}"; do
		finish "$i" 30 || fail "a process that was left alone ended with $?"
	done
	for i in near1 near2 wire1 wire2; do
		for how in server client; do
			need_line $i-$how 'messages, [1-9][0-9]* bytes right' || show $i-$how
		done
	done
	wait_until 20 has_settled_at "$none" ||
		fail "descriptors, programs, maps, TAP devices, QP numbers: $(has), before any client: $none"
	need_least "memory with the first clients, and 1 MiB" $((memory + 1024)) "$(anonymous)"
	serve_no_more
	stop "$there"
}
settled_now() { wait_until 10 settles; echo "$settled"; }

crowd() { start "$1" a "${SHARED[@]}" "$OWN/crowded" -d $DEV_A -g "$gid_a" "${@:2}"; }

# All of its clients hear of it, and all of their work is flushed; then all is as in the beginning.
killed_broker() {
	local crowded
	serve
	crowd lost -n 8 -q 4 -l
	crowded=$child
	wait_until 30 grep -q talks "$WORK/lost.out" || { fail "no traffic"; show lost; }
	kill -9 "$broker"
	finish "$broker" 5
	finish "$crowded" 60 || { fail "the clients end with $?"; show lost; }
	need_line lost '8 processes, 4 QPs each, [1-9][0-9]* messages right, [1-9][0-9]* requests flushed'
	wait_until 5 xdp_off $NS_A $IF_A || fail "XDP outlives the broker"
	wait_until 5 taps_are_gone || fail "$(taps) TAP devices outlive the broker and its clients"
	serve
	crowd anew -n 4 -q 4 -m 50
	finish "$child" 60 || { fail "new clients end with $?"; show anew; }
	need_line anew ' 800 messages right'
	serve_no_more
}
taps_are_gone() { [ "$(taps)" = 0 ]; }

# 64 processes with 16 QPs each, torn down; the memory and the time are for the reader.
crowds() {
	local none
	serve
	serve_once
	none=$(settled_now)
	crowd crowd -n 64 -q 16 -m 10 -i 1
	finish "$child" 60 || { fail "the crowd ends with $?"; show crowd; }
	need_line crowd '64 processes, 16 QPs each, 10240 messages right'
	wait_until 20 has_settled_at "$none" || fail "left: $(has), before: $none"
	serve_no_more
}

starts() {
	local none memory
	serve
	crowd warm -s 10
	finish "$child" 30 || { fail "starts end with $?"; show warm; }
	none=$(settled_now) memory=$(anonymous)
	crowd starts -s "$STARTS"
	finish "$child" $((60 + STARTS)) || { fail "starts end with $?"; show starts; }
	need_line starts "^crowded: $STARTS one after the other"
	wait_until 20 has_settled_at "$none" || fail "left: $(has), before: $none"
	need_least "memory before, and 300 KiB" $((memory + 300)) "$(anonymous)"
	serve_no_more
}

gids_for v4 || netns_die "no GID"
run_long_case chaos_killed_clients killed_clients
run_case chaos_killed_broker killed_broker
run_long_case chaos_crowd crowds
run_long_case chaos_starts starts
[ -z "${XROCE_CHAOS_SHOW:-}" ] || grep -h '^crowded' "$WORK"/*.out
finish_cases
