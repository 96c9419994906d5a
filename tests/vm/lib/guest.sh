# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A virtual machine as a peer: a stock Debian kernel under QEMU's software emulation. It boots once
# and then takes commands. Sourced behind tests/netns/lib/case.sh; what that script's traps take away
# at any exit includes the machine.
#
#   A:va -- P:pa . P:pb -- guest eth0	A and P are namespaces of scripts/netns.sh, pb is a TAP device
#
# The guest has what would be B's addresses, so that cable.sh can forward between pa and pb.
#
#   guest_topology MTU		A and P; guest_bridge joins pa and pb, guest_unbridge parts them
#   guest_boot NAME VERSION CPUS [-p PROGRAM]... [QEMU-ARGUMENT]...
#   guest_start GUEST NAME COMMAND	a line for the guest's shell, in the background
#   guest_wait GUEST NAME SECONDS	its exit status; 124 when the time is up. Output: $WORK/NAME.out
#   guest_do GUEST NAME COMMAND	both, within 30 seconds
#   guest_off GUEST

. "$(dirname "${BASH_SOURCE[0]}")/kernel.sh"

VM_CACHE=$BUILD/vm
VM_TOOLS=$BUILD/tests/vm

# What must be on this machine; else sets $skip_reason.
guest_possible() {
	local tool
	if [ "$(uname -m)" != x86_64 ]; then
		skip_reason="the guest is an x86_64, this machine is $(uname -m)"
		return 1
	fi
	for tool in qemu-system-x86_64 busybox cpio xz tcpdump dpkg-deb apt-get; do
		if ! command -v $tool >/dev/null; then
			skip_reason="$tool is not installed (scripts/deps.sh)"
			return 1
		fi
	done
	if [ ! -c /dev/net/tun ]; then
		skip_reason="no /dev/net/tun for a TAP device"
		return 1
	fi
}

guest_topology() {
	local mtu=$1 dev
	guest_mtu=$mtu
	netns_add $NS_A
	netns_add $NS_P
	ip link add $IF_A mtu "$mtu" netns $NS_A numrxqueues 2 numtxqueues 2 type veth \
		peer name pa mtu "$mtu" netns $NS_P || netns_die "cannot make a veth pair"
	in_p ip tuntap add pb mode tap || netns_die "cannot make a TAP device"
	ip -n $NS_P link set pb mtu "$mtu"
	for dev in pa pb; do
		nsenter --net=/run/netns/$NS_P sh -c "echo 1 > /proc/sys/net/ipv6/conf/$dev/disable_ipv6"
		ip -n $NS_P link set $dev up
	done
	netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
}

guest_bridge() {
	ip -n $NS_P link add br0 type bridge mcast_snooping 0 || netns_die "cannot make a bridge"
	ip -n $NS_P link set br0 mtu "$guest_mtu" up
	ip -n $NS_P link set pa master br0 && ip -n $NS_P link set pb master br0
}
guest_unbridge() { ip -n $NS_P link del br0; }

# guest_boot: a card on pb unless the arguments bring cards of their own (-netdev ...).
guest_boot() {
	local name=$1 version=$2 cpus=$3 dir=$WORK/$1 programs=() cards=()
	shift 3
	while [ "${1:-}" = -p ]; do
		programs+=("$2")
		shift 2
	done
	case " $* " in *" -netdev "*) ;; *)
		cards=(-netdev tap,id=n0,ifname=pb,script=no,downscript=no
			-device "virtio-net-pci,netdev=n0,romfile=,mac=$MAC_B,${VM_CARD:-csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off}") ;;
	esac
	kernel_get "$version" || { fail "$skip_reason"; return 1; }
	mkdir -p "$dir" && mkfifo "$dir/port.in" "$dir/port.out" || return
	kernel_overlay "$(command -v dash)" "$(command -v ip)" "$(command -v tc)" "$(command -v rdma)" "${programs[@]}" ||
		{ fail "programs for the guest cannot be gathered"; return 1; }
	cat "$VM_KERNEL/initrd.cpio" "$VM_OVERLAY" >"$dir/initrd.cpio"
	rm -f "$VM_OVERLAY"
	nsenter --net=/run/netns/$NS_P nice qemu-system-x86_64 -accel "${XROCE_VM_ACCEL:-tcg,thread=multi}" \
		-M pc -cpu "${XROCE_VM_CPU:-max,-erms,-pclmulqdq}" -smp "$cpus" -m "${VM_MEMORY:-640}" \
		-nodefaults -display none -monitor none -no-reboot -serial "file:$dir/console" \
		-kernel "$VM_KERNEL/vmlinux" -initrd "$dir/initrd.cpio" \
		-append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr clocksource=hpet net.ifnames=0 random.trust_cpu=on ${VM_KARGS:-}" \
		-fsdev "local,id=host,path=$dir,security_model=none" -device virtio-9p-pci,fsdev=host,mount_tag=host \
		-device virtio-serial-pci -chardev "pipe,id=port,path=$dir/port" -device virtserialport,chardev=port,name=port \
		"${cards[@]}" "$@" </dev/null >"$dir/qemu.out" 2>&1 &
	printf -v "guest_pid_$name" %s $!
	netns_children+=($!)
	# both directions, so that neither open waits for the other end
	exec {guest_fd}<>"$dir/port.in"
	printf -v "guest_fd_$name" %s "$guest_fd"
	if ! wait_until 120 guest_is_up_or_gone "$name" || [ ! -e "$dir/up" ]; then
		ln -sf "$name/console" "$WORK/console.out"
		ln -sf "$name/qemu.out" "$WORK/qemu.out"
		fail "the guest does not boot"
		show qemu
		show console
		return 1
	fi
}
guest_pid() { local v=guest_pid_$1; echo "${!v}"; }
guest_is_up_or_gone() { [ -e "$WORK/$1/up" ] || is_gone_or_zombie "$(guest_pid "$1")"; }

guest_start() {
	local fd=guest_fd_$1
	rm -f "$WORK/$1/$2.rc" "$WORK/$1/$2.out"
	: >"$WORK/$1/$2.out"
	ln -sf "$1/$2.out" "$WORK/$2.out"
	echo "$2 ${3//$'\n'/ }" >&"${!fd}"
}
guest_has_ended() { [ -e "$WORK/$1/$2.rc" ] || is_gone_or_zombie "$(guest_pid "$1")"; }
guest_wait() {
	wait_until "$3" guest_has_ended "$1" "$2"
	return "$(cat "$WORK/$1/$2.rc" 2>/dev/null || echo 124)"
}
guest_do() { guest_start "$@" && guest_wait "$1" "$2" 30; }

guest_off() {
	local fd=guest_fd_$1
	echo poweroff >&"${!fd}"
	finish "$(guest_pid "$1")" 10
	exec {guest_fd}>&-
}
