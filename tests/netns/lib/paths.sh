# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Data whose sender has several ways out, and which of them its frames took. Sourced after case.sh.
#
# A thread asks whether the peer takes redirected frames, and may wait for a processor before the
# answer. So data flows until the server's counters reach the state that the case needs.

# sent [WAY]: frames of the server by that way, or in all.
sent() { kept server xroce_eng_stat "tx_${1:-packets}"; }

# has_sent LEAST WAY...: the server has sent as many frames at least by each of these ways.
has_sent() {
	local way n
	for way in "${@:2}"; do
		n=$(sent "$way") && [ "$n" -ge "$1" ] || return 1
	done
}

# has_left_by WAY: a hundred frames of the server, and a quarter of all, left by that way.
has_left_by() { has_sent 100 "$1" && [ $(($(sent "$1") * 4)) -ge "$(sent)" ]; }

# data_until STATE TRANSPORT FAMILY MTU ROUNDS SEED [OPTION...]: vdata between B and A, ROUNDS of it
# and more until STATE, a command in one word, holds. The counters of the server are kept.
data_until() {
	local data_state=$1 t=$2 family=$3 mtu=$4 rounds=$5 seed=$6 waiter=
	shift 6
	gids_once "$family" || return
	: >"$WORK/go"
	before_client=go_on_until keep=1 client_server 18600 60 \
		"$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t "$t" -m "$mtu" -n "$rounds" -s "$seed" -k "$WORK/go" "$@" -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t "$t" -m "$mtu" -n "$rounds" -s "$seed" -k "$WORK/go" "$@" $IP4_A || return
	wait "$waiter" || fail "it never came to this: $data_state: $(kept_dump server xroce_eng_stat | tr '\n' ' ')"
	need_line server "^vdata: $t seed $seed side 0: [0-9]+ messages, [0-9]+ bytes right"
	need_line client "^vdata: $t seed $seed side 1: [0-9]+ messages, [0-9]+ bytes right"
	need_equal "packets with a wrong ICRC" "$(kept server xroce_eng_drop icrc)" 0
}
# Removes the file, in the background, when that state is reached or the server has exited.
go_on_until() {
	(
		trap - EXIT
		has_come=1
		wait_until 20 state_or_gone
		rm -f "$WORK/go"
		exit $has_come
	) &
	waiter=$!
}
state_or_gone() { { $data_state && has_come=0; } || is_gone_or_zombie "$server_pid"; }

# left_by WAY: no frame of the server left by another way, but by AF_XDP before it was known that
# the peer takes redirected frames.
left_by() {
	local way=$1 other
	[ "$way" = xsk ] || need_equal "frames that left by $way and AF_XDP" $(($(sent "$way") + $(sent xsk))) "$(sent)"
	for other in tap live gso; do
		[ $other = "$way" ] || need_equal "frames that left by $other" "$(sent $other)" 0
	done
}
