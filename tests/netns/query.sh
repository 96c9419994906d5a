#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Queries: ibv_devinfo, `xroce list` and rdma(8) report the interface, and change nothing on it.
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

# rdma(8) lists our devices after the kernel's. A program in place of Debian's has the kernel's.
mkdir "$WORK/other" && cat >"$WORK/other/rdma" <<'END'
#!/bin/sh
case $* in
*-j*) echo '[{"ifname":"mlx5_9","port":1}]' ;;
link | "link show") echo 'link mlx5_9/1 state ACTIVE physical_state LINK_UP netdev eth9 ' ;;
*) echo "other $*" && exit 7 ;;
esac
END
chmod 755 "$WORK/other/rdma"
# rdma_prints WANT ARGUMENT...
rdma_prints() {
	local want=$1
	shift
	PATH=$WORK/other:$PATH on_a rdma "$@" >"$WORK/rdma.out" 2>&1 || fail "rdma $* ended with $?"
	need_equal "rdma $*" "$(cat "$WORK/rdma.out")" "$want"
}
rdma_lists() {
	local other='link mlx5_9/1 state ACTIVE physical_state LINK_UP netdev eth9 '
	local ours="link $DEV_A/1 state ACTIVE physical_state LINK_UP netdev $IF_A " index json

	index=$(in_a ip -o link show dev $IF_A | cut -d : -f 1)
	json="{\"ifindex\":$index,\"ifname\":\"$DEV_A\",\"port\":1,\"state\":\"ACTIVE\","
	json+="\"physical_state\":\"LINK_UP\",\"netdev\":\"$IF_A\",\"netdev_ifindex\":$index}"
	rdma_prints "$other"$'\n'"$ours" link
	rdma_prints "$other"$'\n'"$ours" link show
	rdma_prints "$ours" link show $DEV_A/1
	rdma_prints "[{\"ifname\":\"mlx5_9\",\"port\":1},$json]" link show -j
	rdma_prints "[$json]" --json l sh $DEV_A
	in_a ip link set $IF_A down
	rdma_prints "${ours/ACTIVE physical_state LINK_UP/DOWN physical_state DISABLED}" link show $DEV_A
	in_a ip link set $IF_A up
	netns_wait_ready
}
# Where the kernel has no RDMA devices, and rdma(8) fails or is missing.
rdma_alone() {
	printf '#!/bin/sh\necho no RDMA >&2\nexit 1\n' >"$WORK/other/rdma"
	rdma_prints "link $DEV_A/1 state ACTIVE physical_state LINK_UP netdev $IF_A " link show
}
# Other commands, and other devices.
rdma_hands_on() {
	local words rc

	for words in "link show mlx5_9" "link show nosuch" "-d dev show" "link add x type rxe" "system"; do
		# shellcheck disable=SC2086 # several words
		PATH=$WORK/other:$PATH on_a rdma $words >"$WORK/rdma.out" 2>&1
		rc=$?
		need_equal "status of rdma $words" $rc 7
		need_line rdma "^other $words\$"
	done
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
run_case rdma_hands_on rdma_hands_on
run_case rdma_lists rdma_lists
run_case rdma_alone rdma_alone
finish_cases
