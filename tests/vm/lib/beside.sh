# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Our XDP program next to another one in libxdp's dispatcher, inside a guest, whose kernel has
# freplace: xdp-filter, which counts passed packets. Sourced after guest.sh; the guest's name is
# "guest". Ours are both ends of the veth pair v0 -- v1; v1 is in namespace far.

BESIDE_TOOLS=(/usr/sbin/xdp-filter /usr/bin/ibv_rc_pingpong)
BESIDE_OBJECTS=/usr/lib/x86_64-linux-gnu/bpf
beside_run="/xroce/bin/xroce run --dev"

beside_possible() {
	local tool
	for tool in "${BESIDE_TOOLS[@]}"; do
		[ -x "$tool" ] || { skip_reason="$tool is not installed (scripts/deps.sh)"; return 1; }
	done
}

beside_up() {
	mkdir -p "$WORK/guest/bpf" && cp "$BESIDE_OBJECTS"/xdp{-dispatcher,filt_alw_udp}.o "$WORK/guest/bpf" || return
	guest_do guest beside "mkdir -p $BESIDE_OBJECTS && cp /host/bpf/* $BESIDE_OBJECTS && modprobe veth &&
		ip netns add far && ip link add v0 type veth peer name v1 netns far &&
		ip link set v0 up && ip addr add 10.76.0.1/24 dev v0 &&
		ip netns exec far ip link set v1 up && ip netns exec far ip addr add 10.76.0.2/24 dev v1" ||
		{ fail "no veth pair in the guest"; show beside; }
}

beside_list() { guest_do guest list "/xroce/bin/xroce list v0"; }
# hook_is PATTERN: the present output of `xroce list` for v0's hook.
hook_is() { beside_list && grep -qE "^  XDP  .*$1" "$WORK/list.out"; }
need_hook() { wait_until 20 hook_is "$1" || { fail "the hook is not: $1"; show list; }; }

beside_filter() {
	guest_do guest filter "xdp-filter load v0 -m native -f udp -p allow" || { fail "xdp-filter: $?"; show filter; }
}
# Sets $seen: packets that the filter has let pass.
beside_seen() {
	guest_do guest status "xdp-filter status"
	seen=$(sed -nE 's/^ *XDP_PASS +([0-9]+) pkts.*/\1/p' "$WORK/status.out")
	[ -n "$seen" ] || { fail "xdp-filter does not count"; show status; seen=0; }
}

beside_listens() { guest_do guest listens "netstat -ltn | grep -q ':18515 '"; }
# beside_server [VARIABLE=VALUE]
beside_server() {
	guest_start guest server "env ${1:-} $beside_run v0 -- ibv_rc_pingpong -d xroce_v0 -g 0 -n 20"
	wait_until 40 beside_listens || { fail "no server"; show server; }
}
beside_client() {
	guest_start guest client "ip netns exec far $beside_run v1 -- ibv_rc_pingpong -d xroce_v1 -g 0 -n 20 10.76.0.1"
	guest_wait guest client 90 || { fail "the client ended with $?"; show client; show server; }
	guest_wait guest server 20 || { fail "the server ended with $?"; show server; }
}
# The broker first: else it would tidy up.
beside_kill() {
	guest_do guest kill "killall -9 xroce; killall -9 ibv_rc_pingpong"
	guest_wait guest server 20
}
# The pins of slots: what libxdp needs to go on with.
need_pins() {
	guest_do guest pins "ls /sys/fs/bpf/xdp/dispatch-*/"
	[ "$(grep -c -- -prog "$WORK/pins.out")" = "$1" ] || { fail "not $1 programs pinned"; show pins; }
}

# A client's messages arrive, and the filter sees their packets.
beside_both_see() {
	local before
	beside_seen
	before=$seen
	beside_client
	beside_seen
	# a request and an ACK a message, or more
	need_least "packets that the filter saw" $((seen - before)) 40
	need_line client '^20 iters'
}

# ---- the cases ----

# The filter is there first: ours goes after it, and does not affect it at its end.
beside_second() {
	beside_filter
	need_hook 'native, dispatcher [0-9]+, which accepts an xroce program, with xdpfilt_alw_udp$'
	beside_server
	need_hook 'native, program [0-9]+ xroce_xdp in dispatcher [0-9]+, with xdpfilt_alw_udp$'
	beside_both_see
	need_hook 'native, dispatcher [0-9]+, which accepts an xroce program, with xdpfilt_alw_udp$'
	need_pins 1
}

# Killed, it is in no slot; the next one removes its remains.
beside_killed() {
	beside_server
	need_hook 'xroce_xdp in dispatcher'
	beside_kill
	need_hook 'dispatcher [0-9]+, which accepts an xroce program, with xdpfilt_alw_udp$'
	beside_server
	need_pins 2
	beside_client
	need_pins 1
	guest_do guest unload "xdp-filter unload v0" || { fail "xdp-filter cannot be unloaded"; show unload; }
	need_hook 'nothing attached'
}

# Ours is there first; the filter comes and rebuilds the dispatcher. Killed after that, ours is in
# no slot either, and the filter continues.
beside_first() {
	local before
	beside_server XROCE_ATTACH=dispatcher
	need_hook 'native, program [0-9]+ xroce_xdp in dispatcher [0-9]+$'
	beside_filter
	need_hook 'native, program [0-9]+ xroce_xdp in dispatcher [0-9]+, with xdpfilt_alw_udp$'
	beside_both_see
	need_hook 'dispatcher [0-9]+, which accepts an xroce program, with xdpfilt_alw_udp$'
	guest_do guest unload "xdp-filter unload v0"
	beside_server XROCE_ATTACH=dispatcher
	beside_links
	before=$links
	beside_filter
	need_hook 'xroce_xdp in dispatcher [0-9]+, with xdpfilt_alw_udp$'
	wait_until 20 beside_has_other_links "$before" || fail "the broker has not taken its link"
	beside_kill
	need_hook 'dispatcher [0-9]+, which accepts an xroce program, with xdpfilt_alw_udp$'
	guest_do guest unload "xdp-filter unload v0"
}
# The links among the broker's descriptors, by their numbers: $links.
beside_links() {
	guest_do guest links "for p in \$(pidof xroce); do cat /proc/\$p/fdinfo/*; done"
	links=$(sed -n 's/^link_id:[[:space:]]*//p' "$WORK/links.out" | sort)
}
beside_has_other_links() { beside_links && [ -n "$links" ] && [ "$links" != "$1" ]; }

# Only our remains, and no other program: exclusive again.
beside_alone_again() {
	beside_server XROCE_ATTACH=dispatcher
	need_hook 'xroce_xdp in dispatcher [0-9]+$'
	beside_kill
	need_hook 'dispatcher [0-9]+, which accepts an xroce program$'
	beside_server
	need_hook 'native, program [0-9]+ xroce_xdp, exclusive$'
	beside_kill
	need_hook 'nothing attached'
}
