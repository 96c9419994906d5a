#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# If the fast transmit paths are not available, the program reports that in one line and uses the
# others. However a program ends, their devices end with it, also when it has a child, and with many
# ports.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# by_sockets WHY COMMAND...: the server runs by COMMAND, and is refused something.
by_sockets() {
	local line=$1
	shift
	gids_for v4 || return
	keep=1 client_server 18600 60 "$@" "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -m 1024 -n 30 -s 9 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -m 1024 -n 30 -s 9 $IP4_A || return
	need_line server '^vdata: rc .* bytes right'
	need_line server "^xroce: $IF_A: sending without XDP redirection, which is slower: $line"
	need_equal "such lines" "$(grep -c 'sending without' "$WORK/server.out")" 1
	need_equal "frames that left by sockets" $(($(kept server xroce_eng_stat tx_xsk) + $(kept server xroce_eng_stat tx_gso))) "$(kept server xroce_eng_stat tx_packets)"
	need_least "frames that left as super-packets" "$(kept server xroce_eng_stat tx_gso)" 100
	need_no_line client 'sending without'
	drop_maps server
}

no_tun() { by_sockets 'creating a TAP device: No such file or directory' unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/net && exec "$@"' -; }
wrong_tun() {
	by_sockets 'creating a TAP device: Inappropriate ioctl' unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/net && : >/dev/net/tun && exec "$@"' -
}
# As a user that may neither create a namespace nor use CAP_SYS_ADMIN.
no_sys_admin() { by_sockets 'creating a network namespace: Operation not permitted' setpriv --bounding-set -sys_admin --inh-caps -sys_admin; }
quiet() {
	XROCE_QUIET=1 start_on server a unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/net && exec "$@"' - "$TOOLS/vector_events" $DEV_A 0 5
	wait_until 10 grep -q '^vector_events: 5' "$WORK/server.out" || fail "vector_events does not end"
	need_no_line server 'sending without'
	stop "$child"
}

# taps PID: how many TAP devices the process has.
taps() { cat "/proc/$1/fdinfo/"* 2>/dev/null | grep -c '^iff:'; }
ids() { bpf_ids "$1" map; bpf_ids "$1" prog; bpf_ids "$1" link; }
no_ids_of() { ! ids "$1" | grep -q .; }
# are_gone KIND ID...: the kernel has none of these. One listing: a call for each takes seconds.
are_gone() {
	local kind=$1
	shift
	bpftool "$kind" show | awk -v ids="$*" 'BEGIN { n = split(ids, id, " "); while (n) mine[id[n--] ":"] = 1 }
		$1 in mine { found = 1 } END { exit found }'
}

# Ports on several interfaces; a child by fork() holds none of them up when the parent is killed.
many_ports() {
	local i parent offspring n=6 kind
	for ((i = 1; i < n; i++)); do
		ip link add ma$i netns $NS_A type veth peer name mb$i netns $NS_B && ip -n $NS_A link set ma$i up && ip -n $NS_B link set mb$i up
	done
	start many a "$XROCE" run -- "$TOOLS/many_ports" 3
	parent=$child
	wait_until 60 said_or_gone "$parent"
	offspring=$(sed -n "s/^$n ports, child //p" "$WORK/many.out")
	[ -n "$offspring" ] || { fail "no line of $n ports"; show many; stop "$parent"; return; }
	need_equal "TAP devices of the parent" "$(taps "$parent")" $n
	in_a ip -o link show | grep -q ': xroce[0-9]' && fail "a TAP device is in sight"
	wait_until 5 no_ids_of "$offspring" || fail "the child holds on to $(ids "$offspring")"
	need_equal "TAP devices of the child" "$(taps "$offspring")" 0
	declare -A held=([map]=$(bpf_ids "$parent" map) [prog]=$(bpf_ids "$parent" prog) [link]=$(bpf_ids "$parent" link))
	need_least "programs" "$(wc -w <<<"${held[prog]}")" $((2 * n))
	need_least "links" "$(wc -w <<<"${held[link]}")" $n
	kill -9 "$parent"
	finish "$parent" 5
	kill -0 "$offspring" || fail "the child has gone, too"
	for kind in map prog link; do
		# shellcheck disable=SC2086 # a word an id
		wait_until 5 are_gone $kind ${held[$kind]} || fail "not all of these $kind ids are gone: ${held[$kind]}"
	done
	kill "$offspring"
	for ((i = 1; i < n; i++)); do
		xdp_off $NS_A ma$i || fail "XDP stays on ma$i"
		ip -n $NS_A link del ma$i
	done
}
said_or_gone() { grep -q '^[0-9]* ports' "$WORK/many.out" || is_gone_or_zombie "$1"; }

core_cases=(no_tun no_sys_admin quiet many_ports)
tier_case no_tun no_tun
tier_case wrong_tun wrong_tun
tier_case no_sys_admin no_sys_admin
tier_case quiet quiet
tier_case many_ports many_ports
finish_cases
