#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Queries: ibv_devinfo and `xroce list` say what the interface has, and touch nothing on it.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

devinfo_says() {
	on_a timeout 10 ibv_devinfo -v >"$WORK/devinfo.out" 2>&1 || { fail "ibv_devinfo ends with $?"; show devinfo; return; }
	need_line devinfo "hca_id:[[:space:]]+$DEV_A\$"
	need_line devinfo 'phys_port_cnt:[[:space:]]+1$'
	need_line devinfo 'state:[[:space:]]+PORT_ACTIVE'
	need_line devinfo 'max_mtu:[[:space:]]+4096 '
	need_line devinfo "active_mtu:[[:space:]]+$1 "
	need_line devinfo 'link_layer:[[:space:]]+Ethernet$'
	# IPv4 first, then the global IPv6 address, then the link-local one.
	need_line devinfo "GID\\[ *0\\]:[[:space:]]+::ffff:$IP4_A, RoCE v2\$"
	need_line devinfo "GID\\[ *1\\]:[[:space:]]+$IP6_A, RoCE v2\$"
	need_line devinfo 'GID\[ *2\]:[[:space:]]+fe80::.*, RoCE v2$'
	need_no_line devinfo 'GID\[ *3\]'
}

list_says() {
	in_a "$XROCE" list >"$WORK/list.out" 2>&1 || fail "xroce list ends with $?"
	need_line list "^$DEV_A\$"
	need_line list "::ffff:$IP4_A"
	need_line list "$IP6_A"
	need_line list "path MTU +4096$1"
	need_line list "XDP +nothing attached; $2 "
}

# What a program asks of the kernel while it only queries: no program is loaded, no map made, no
# AF_XDP socket opened.
attaches_nothing() {
	in_a strace -f -o "$WORK/trace.out" -e trace=bpf,socket "$XROCE" run --dev $IF_A -- timeout 10 "$@" >"$WORK/query.out" 2>&1 ||
		{ fail "$1 ends with $?"; show query; }
	need_line trace 'socket\('
	need_no_line trace 'BPF_PROG_LOAD|BPF_MAP_CREATE|BPF_LINK_CREATE|AF_XDP'
	xdp_off $NS_A $IF_A || fail "XDP is attached after $1"
}

follows_mtu() {
	in_a ip link set $IF_A mtu 1500
	devinfo_says 1024
	in_a ip link set $IF_A mtu 4500
}

# For a link with room for 4096: the MTU of the fastest path, unless that path is turned off.
run_case devinfo devinfo_says 4096
XROCE_XDP=native run_case devinfo_native devinfo_says 2048
XROCE_XDP=native XROCE_TX=xsk run_case devinfo_xsk devinfo_says 4096
run_case devinfo_follows_mtu follows_mtu
run_case list list_says '$' generic
XROCE_XDP=native run_case list_native list_says '; active 2048, ' native
run_case devinfo_attaches_nothing attaches_nothing ibv_devinfo -v
run_case devices_attaches_nothing attaches_nothing ibv_devices
finish_cases
