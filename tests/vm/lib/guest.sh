# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A virtual machine as a peer: a stock Debian kernel under QEMU's software emulation. It boots once
# and then takes commands. Sourced after tests/netns/lib/case.sh, whose exit traps also remove the
# machine.
#
#   A:va -- P:pa . P:pb -- guest eth0
#
# A and P are namespaces of scripts/netns.sh, pb is a TAP device.
#
# The guest has what would be B's addresses, so that cable.sh can forward between pa and pb.
#
# VM_ARCH, set before this file is sourced, is the guest's processor: amd64, or arm64. With arm64
# also VM_ROOT (kernel.sh), and VM_BUILD, the build for the guest.
#
#   guest_topology MTU		A and P; guest_bridge joins pa and pb, guest_unbridge parts them
#   guest_boot NAME VERSION CPUS [-p PROGRAM]... [QEMU-ARGUMENT]...
#   guest_start GUEST NAME COMMAND	a line for the guest's shell, in the background
#   guest_wait GUEST NAME SECONDS	its exit status; 124 when the time is up.
#					Output: $WORK/NAME.out
#   guest_do GUEST NAME COMMAND	both, within 30 seconds
#   guest_off GUEST

VM_ARCH=${VM_ARCH:-amd64}
VM_ROOT=${VM_ROOT:-}
VM_BUILD=${VM_BUILD:-$BUILD}
VM_CACHE=$BUILD/vm
VM_TOOLS=$VM_BUILD/tests/vm
case $VM_ARCH in
amd64)
	VM_TRIPLET=x86_64-linux-gnu
	VM_QEMU=qemu-system-x86_64
	VM_MACHINE=pc
	VM_CPU=max,-erms,-pclmulqdq
	VM_BOOT="console=ttyS0 no_timer_check clocksource=hpet"
	;;
arm64)
	VM_CACHE+=/$VM_ARCH
	VM_TRIPLET=aarch64-linux-gnu
	VM_QEMU=qemu-system-aarch64
	VM_MACHINE=virt
	# signs pointers by a hash that is fast to emulate
	VM_CPU=max,pauth-impdef=on
	VM_BOOT=console=ttyAMA0
	;;
esac

. "$(dirname "${BASH_SOURCE[0]}")/kernel.sh"

# Checks the requirements on this machine; else sets $skip_reason.
guest_possible() {
	local tool
	if [ -z "$VM_ROOT" ] && [ "$(uname -m)" != x86_64 ]; then
		skip_reason="the guest is an x86_64, this machine is $(uname -m)"
		return 1
	fi
	for tool in $VM_QEMU busybox cpio xz dpkg-deb apt-get; do
		if ! command -v $tool >/dev/null; then
			skip_reason="$tool is not installed (scripts/deps.sh)"
			return 1
		fi
	done
	[ "${VM_TAP:-}" != none ] || return 0
	if ! command -v tcpdump >/dev/null; then
		skip_reason="tcpdump is not installed (scripts/deps.sh)"
		return 1
	fi
	if [ ! -c /dev/net/tun ]; then
		skip_reason="no /dev/net/tun for a TAP device"
		return 1
	fi
}

guest_topology() {
	local mtu=$1
	guest_mtu=$mtu
	netns_add $NS_A
	netns_add $NS_P
	ip link add $IF_A mtu "$mtu" netns $NS_A numrxqueues 2 numtxqueues 2 type veth \
		peer name pa mtu "$mtu" netns $NS_P || netns_die "cannot make a veth pair"
	ip -n $NS_P link set pa up
	nsenter --net=/run/netns/$NS_P sh -c "echo 1 > /proc/sys/net/ipv6/conf/pa/disable_ipv6"
	guest_tap pb
	netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
}

# guest_tap NAME [multi_queue]: one more way out of P; a bridge that is there takes it.
guest_tap() {
	in_p ip tuntap add "$1" mode tap ${2:-} || netns_die "cannot make a TAP device"
	nsenter --net=/run/netns/$NS_P sh -c "echo 1 > /proc/sys/net/ipv6/conf/$1/disable_ipv6"
	ip -n $NS_P link set "$1" mtu "$guest_mtu" up
	if ip -n $NS_P link show br0 >/dev/null 2>&1; then
		ip -n $NS_P link set "$1" master br0
	fi
}

guest_bridge() {
	ip -n $NS_P link add br0 type bridge mcast_snooping 0 || netns_die "cannot make a bridge"
	ip -n $NS_P link set br0 mtu "$guest_mtu" up
	ip -n $NS_P link set pa master br0 && ip -n $NS_P link set pb master br0
}
guest_unbridge() { ip -n $NS_P link del br0; }

# A guest's card, by variables: VM_TAP, the device in P (VM_TAP=none: no card); VM_MODEL; VM_MAC;
# VM_QUEUES; VM_CARD, more properties. By default virtio_net without offloads: each frame is as on
# the wire.
VM_PLAIN=csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off
guest_card() {
	local model=${VM_MODEL:-virtio-net-pci} queues=${VM_QUEUES:-1} more=${VM_CARD-$VM_PLAIN} tap
	tap=tap,id=n0,ifname=${VM_TAP:-pb},script=no,downscript=no
	[ "$model" = virtio-net-pci ] || more=
	if [ "$queues" -gt 1 ]; then
		tap=$tap,queues=$queues
		more=${more:+$more,}mq=on,vectors=$((2 * queues + 2))
	fi
	enter=(nsenter --net=/run/netns/$NS_P)
	card=(-netdev "$tap" -device "$model,netdev=n0,romfile=,mac=${VM_MAC:-$MAC_B}${more:+,$more}")
}

guest_boot() {
	local name=$1 version=$2 cpus=$3 dir=$WORK/$1 programs=() enter=() card=()
	shift 3
	while [ "${1:-}" = -p ]; do
		programs+=("$2")
		shift 2
	done
	kernel_get "$version" || { fail "$skip_reason"; return 1; }
	rm -rf "$dir"
	mkdir -p "$dir" && mkfifo "$dir/port.in" "$dir/port.out" || return
	VM_OURS=("$VM_BUILD/bin/xroce" "$VM_BUILD"/lib/lib*.so*)
	kernel_overlay "$(kernel_program dash)" "$(kernel_program ip)" "$(kernel_program tc)" "$(kernel_program rdma)" \
		"${programs[@]}" || { fail "programs for the guest cannot be gathered"; return 1; }
	cat "$VM_KERNEL/initrd.cpio" "$VM_OVERLAY" >"$dir/initrd.cpio"
	rm -f "$VM_OVERLAY"
	[ "${VM_TAP:-}" = none ] || guest_card
	"${enter[@]}" $VM_QEMU -accel "${XROCE_VM_ACCEL:-tcg,thread=multi}" \
		-M $VM_MACHINE -cpu "${XROCE_VM_CPU:-$VM_CPU}" -smp "$cpus" -m "${VM_MEMORY:-640}" \
		-nodefaults -display none -monitor none -no-reboot -serial "file:$dir/console" \
		-kernel "$VM_KERNEL/vmlinux" -initrd "$dir/initrd.cpio" \
		-append "quiet panic=-1 mitigations=off nokaslr net.ifnames=0 random.trust_cpu=on $VM_BOOT ${VM_KARGS:-}" \
		-fsdev "local,id=host,path=$dir,security_model=none" -device virtio-9p-pci,fsdev=host,mount_tag=host \
		-device virtio-serial-pci -chardev "pipe,id=port,path=$dir/port" -device virtserialport,chardev=port,name=port \
		"${card[@]}" "$@" </dev/null >"$dir/qemu.out" 2>&1 &
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
	eval "exec ${!fd}>&-"
}
