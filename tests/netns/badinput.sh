#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Errors are reported in one clear line that names the remedy, with the errno of the man page, and
# leave nothing allocated.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
export XROCE_PORT=xdp

gids_for v4 || netns_die "no GID"

# attempt COMMAND...: run it on A, bounded; output in bad.out, exit status in $status.
attempt() {
	in_a timeout 20 "$@" >"$WORK/bad.out" 2>&1
	status=$?
	[ $status -ne 124 ] || fail "it hangs: $*"
	[ $status -ne 0 ] || fail "it works: $*"
	# 128 + signal; 255 is what ibv_devinfo means by -1.
	[ $status -le 128 ] || [ $status -eq 255 ] || fail "it crashes with $status: $*"
}

unknown_interface() {
	attempt "$XROCE" run --dev nosuch -- ibv_devinfo
	need_line bad "no interface 'nosuch'.*xroce list"
	attempt env XROCE_DEV=nosuch LD_LIBRARY_PATH="$BUILD/lib" ibv_devinfo
	attempt "$XROCE" list nosuch
	need_line bad "no interface 'nosuch'"
}

wrong_usage() {
	attempt "$XROCE"
	attempt "$XROCE" nosuch
	need_line bad "unknown command 'nosuch'"
	attempt "$XROCE" run --nosuch
	attempt "$XROCE" run
	need_line bad 'no command'
	attempt "$XROCE" run -- /nonexistent/command
	need_equal "exit status" "$status" 127
}

no_privileges() {
	# User 65534 may not be able to read the build directory: the kernel's refusal is under
	# test, so drop capabilities only.
	attempt setpriv --bounding-set -all --inh-caps -all "$XROCE" run --dev $IF_A -- setpriv --reuid 65534 --regid 65534 --clear-groups true
	attempt setpriv --bounding-set -all "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g "$gid_a"
	need_line bad 'not permitted.*run as root, or with CAP_NET_ADMIN, CAP_BPF and CAP_NET_RAW'
	xdp_off $NS_A $IF_A || fail "XDP is attached"
}

# Queries need no privileges at all.
queries_without_privileges() {
	in_a setpriv --bounding-set -all "$XROCE" run --dev $IF_A -- timeout 10 ibv_devinfo >"$WORK/bad.out" 2>&1 ||
		{ fail "ibv_devinfo ends with $?"; show bad; }
	need_line bad PORT_ACTIVE
}

taken_by_process() {
	start_on holder a ibv_rc_pingpong -d $DEV_A -g "$gid_a"
	wait_until 10 listens_or_gone a 18515 "$child"
	attempt "$XROCE" run --dev $IF_A --share never -- ibv_uc_pingpong -d $DEV_A -g "$gid_a" -p 18516
	need_line bad "in use by process [0-9]* \\(xroce\\) for a process that shares it with no other"
	# Queries still work.
	on_a timeout 10 ibv_devinfo >"$WORK/bad.out" 2>&1 || fail "ibv_devinfo beside it ends with $?"
	kill -0 "$child" 2>/dev/null || fail "the holder did not survive"
	stop "$child"
}

# Any local user can bind the name that announces the owner of an interface: this keeps no process
# off it, and is not believed.
name_taken_by_a_stranger() {
	local ifindex stranger

	ifindex=$(in_a ip -o link show dev $IF_A | cut -d: -f1)
	start stranger a setpriv --reuid 65534 --regid 65534 --clear-groups perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) &&
		bind(S, pack_sockaddr_un("\0xroce/$ARGV[0]")) && listen(S, 0) or die; $| = 1; print "listens\n"; sleep 60' "$ifindex"
	stranger=$child
	wait_until 10 grep -q listens "$WORK/stranger.out" || fail "no stranger"
	in_a "$XROCE" list $IF_A >"$WORK/bad.out" 2>&1
	need_no_line bad 'in use'
	start_on holder a ibv_rc_pingpong -d $DEV_A -g "$gid_a"
	wait_until 10 listens_or_gone a 18515 "$child"
	kill -0 "$child" 2>/dev/null || fail "a stranger keeps root off the interface: $(cat "$WORK/holder.out")"
	# The second one is still kept off, by the hook.
	attempt "$XROCE" run --dev $IF_A --share never -- ibv_uc_pingpong -d $DEV_A -g "$gid_a" -p 18516
	need_line bad 'in use by another process'
	stop "$child"
	stop "$stranger"
}

# The usual limit of 8 MiB is enough for two processes: the broker has no limit.
memlock_of_two() {
	local first
	local words=(prlimit --memlock=8388608:8388608
		setpriv --inh-caps=-ipc_lock,-sys_resource --bounding-set=-ipc_lock,-sys_resource
		"$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0)
	start first a "${words[@]}"
	first=$child
	wait_until 10 listens_or_gone a 18515 "$first"
	start second a "${words[@]}" -p 18516
	wait_until 20 listens_or_gone a 18516 "$child"
	is_gone_or_zombie "$child" && { fail "there is no room for two"; show second; }
	stop "$child"
	stop "$first"
}

# The locked memory of a user's processes is counted together: the limit and its remedy are named.
memlock_used_up() {
	in_a bash -c 'ulimit -l 1024; exec "$@"' - setpriv --bounding-set=-all,+net_admin,+bpf,+net_raw,+sys_admin "$XROCE" run --dev $IF_A -- \
		timeout 10 ibv_rc_pingpong -d $DEV_A -g "$gid_a" >"$WORK/bad.out" 2>&1 && fail "it runs"
	need_line bad 'limit of locked memory ..ulimit -l., 1024 KiB.*LimitMEMLOCK= of a service.*CAP_IPC_LOCK'
	xdp_off $NS_A $IF_A || fail "XDP is attached"
}

# A limit of the length of files (ulimit -f) is none of the memory that packets need.
file_size() {
	local server
	start server a prlimit --fsize=65536 "$XROCE" run --dev $IF_A -- ib_write_bw -d $DEV_A -x "$gid_a" -n 100
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	on_b timeout 20 ib_write_bw -d $DEV_B -x "$gid_b" -n 100 $IP4_A >"$WORK/client.out" 2>&1 || { fail "the client ends with $?"; show client; }
	finish "$server" 10 || { fail "the server ends with $?"; show server; }
}

# With the three capabilities alone it works, and each missing one is reported in one line, without
# the verifier's log.
# Without CAP_PERFMON `xroce doctor` took 3.6 s of processor time, probably because the kernel's
# verifier then follows speculative paths, too.
few_capabilities() {
	local caps=-all,+net_admin,+bpf,+net_raw
	start server a setpriv --bounding-set=$caps "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 10
	wait_until 10 listens_or_gone a 18515 "$child"
	on_b timeout 20 ibv_rc_pingpong -d $DEV_B -g "$gid_b" -n 10 $IP4_A >"$WORK/bad.out" 2>&1 || { fail "pingpong ends with $?"; show bad; }
	finish "$child" 10 || { fail "its server ends with $?"; show server; }
	[ "$(grep -c . "$WORK/server.out")" -le 8 ] || { fail "it says too much"; show server; }
	need_line server 'loading the transmit program: .*run with CAP_PERFMON'
	need_no_line server 'libbpf'
	start doctor a setpriv --bounding-set=$caps "$XROCE" doctor $IF_A
	finish "$child" 20
	need_line doctor 'redirection: .*CAP_PERFMON'
	need_no_line doctor 'libbpf'
}

# A root of a user namespace's own has none of the privileges that count.
user_namespace() {
	in_a unshare --user --map-root-user "$XROCE" run --dev $IF_A -- timeout 10 ibv_rc_pingpong -d $DEV_A -g "$gid_a" >"$WORK/bad.out" 2>&1 &&
		fail "it runs"
	need_line bad 'the kernel requires privileges of the initial user namespace'
}

# RoCE needs a GID: a program's EINVAL does not say so.
no_gid() {
	start server a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A
	wait_until 10 listens_or_gone a 18515 "$child"
	on_b timeout 20 ibv_rc_pingpong -d $DEV_B $IP4_A >"$WORK/bad.out" 2>&1 && fail "it runs"
	# The server connects first, and ends.
	finish "$child" 10 && fail "the server goes on"
	need_line server 'RoCE needs a GRH; choose a GID of this device by its index .-g 0'
}

hook_taken() {
	local src=$WORK/other.bpf.c
	printf '__attribute__((section("xdp"), used)) int other(void *ctx) { return 2; }\nchar l[] __attribute__((section("license"), used)) = "GPL";\n' >"$src"
	clang -target bpf -O2 -g -c "$src" -o "$WORK/other.o" 2>"$WORK/bad.out" || { fail "clang ends with $?"; show bad; return; }
	# xdp.frags is for libbpf to say; without it the kernel takes the program only at a smaller
	# MTU.
	in_a ip link set $IF_A mtu 1500
	in_b ip link set $IF_B mtu 1500
	# ip mounts bpffs when it loads a program, and leaves it mounted: in a private mount
	# namespace it is removed as well.
	in_a unshare --mount ip link set $IF_A xdpdrv obj "$WORK/other.o" sec xdp 2>"$WORK/bad.out" || { fail "ip link set xdp ends with $?"; show bad; }
	attempt "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g "$gid_a"
	need_line bad 'program [0-9]+ .* is attached; .*xdp off'
	xdp_on $NS_A $IF_A || fail "the other program was taken away"
	in_a ip link set $IF_A xdpdrv off
	in_a ip link set $IF_A mtu 4500
	in_b ip link set $IF_B mtu 4500
}

# PMTU 4096 asked on a link of MTU 1500: refused when the queue pair is to be connected.
mtu_too_small() {
	in_a ip link set $IF_A mtu 1500
	start_on server a ibv_rc_pingpong -d $DEV_A -g "$gid_a" -m 4096
	wait_until 10 listens_or_gone a 18515 "$child"
	on_b timeout 20 ibv_rc_pingpong -d $DEV_B -g "$gid_b" -m 1024 $IP4_A >"$WORK/bad.out" 2>&1
	finish "$child" 10
	status=$?
	need_equal "exit status" $status 1
	need_line server "path MTU 4096 is too large for $IF_A, whose MTU is 1500"
	need_line server 'Failed to modify QP to RTR'
	in_a ip link set $IF_A mtu 4500
}

link_down() {
	in_a ip link set $IF_A down
	on_a timeout 10 ibv_devinfo >"$WORK/bad.out" 2>&1 || fail "ibv_devinfo ends with $?"
	need_line bad 'state:[[:space:]]+PORT_DOWN'
	in_a ip link set $IF_A up
	# The global IPv6 address goes with the link.
	in_a ip addr replace $IP6_A/64 dev $IF_A nodad
	wait_until 10 netns_is_ready $NS_A $IF_A || fail "$IF_A does not come up again"
}

# doctor exits with 0 if all is well, and otherwise names the faults.
doctor() {
	in_a timeout 20 "$XROCE" doctor $IF_A >"$WORK/bad.out" 2>&1 || { fail "doctor ends with $? where all is well"; show bad; }
	attempt setpriv --bounding-set -all "$XROCE" doctor $IF_A
	need_line bad 'CAP_NET_ADMIN'
	attempt unshare --mount --propagation private sh -c 'umount -l /proc && exec "$@"' - "$XROCE" doctor $IF_A
	need_line bad '^FAIL  library: .*: /proc is not mounted'
	in_a unshare --mount --propagation private sh -c 'umount -l /sys && exec "$@"' - "$XROCE" doctor $IF_A >"$WORK/bad.out" 2>&1
	need_line bad '^warn  kernel: .*without /sys'
	attempt "$XROCE" doctor nosuch
	need_line bad "nosuch"
	xdp_off $NS_A $IF_A || fail "doctor leaves XDP attached"
}

run_case unknown_interface unknown_interface
run_case wrong_usage wrong_usage
run_case no_privileges no_privileges
run_case queries_without_privileges queries_without_privileges
run_case taken_by_process taken_by_process
run_case name_taken_by_a_stranger name_taken_by_a_stranger
run_case memlock_used_up memlock_used_up
run_case memlock_of_two memlock_of_two
run_case file_size file_size
run_long_case few_capabilities few_capabilities
run_case user_namespace user_namespace
run_case no_gid no_gid
run_case hook_taken hook_taken
run_case mtu_too_small mtu_too_small
run_case link_down link_down
run_case doctor doctor
finish_cases
