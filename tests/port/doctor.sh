#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The findings of `xroce doctor` for an interface in every condition, and that it changes none.
. "$(dirname "$0")/lib/cli.sh"

doctor_json() {
	try 0 "$XROCE" doctor --json $IF_A
	need_equal "failures" "$(json 'd["failures"]')" 0
	need_equal "of the interface" "$(json '[f["level"] for f in d["findings"] if f.get("interface") == "'$IF_A'" and f["what"] == "link"]')" "['ok']"
	need_equal "a finding of the host" "$(json '[f["level"] for f in d["findings"] if f["interface"] is None and f["what"] == "privileges"]')" "['ok']"
	need_equal "names" "$(json '{tuple(f) for f in d["findings"]}')" "{('level', 'interface', 'what', 'finding', 'remedy')}"
	cp "$WORK/cli.out" "$WORK/doctor.json"
	try 0 "$XROCE" doctor $IF_A
	need_equal "as many as there are lines" "$(wc -l <"$WORK/cli.out")" "$(grep -c '"level"' "$WORK/doctor.json")"
	in_a ip link set $IF_A mtu 100
	try 1 "$XROCE" doctor $IF_A -j
	need_equal "what fails" "$(json '[(f["what"], f["remedy"] != "") for f in d["findings"] if f["level"] == "fail"][0]')" "('MTU', True)"
	need_equal "failures" "$(json 'd["failures"] > 0')" True
	mtu 4500
	try 2 "$XROCE" doctor --nosuch
	try 2 "$XROCE" list --json $IF_A lo
}

# A slow step is announced on a terminal, and nowhere else.
progress_on_a_terminal() {
	try 0 script -qec "$XROCE capture -D 1 -w $WORK/none.pcapng $IF_A" "$WORK/typed"
	grep -qaP '\r\x1b\[K0 packets received, 0 dropped, 0 sent; ' "$WORK/typed" || fail "capture says nothing on a terminal"
	grep -qaP 'stops\r\x1b\[Kxroce capture: 0 packets received' "$WORK/typed" || fail "the line stays"
	in_a "$XROCE" capture -D 1 -w "$WORK/none.pcapng" $IF_A >"$WORK/cli.out" 2>&1
	need_no_line cli '[\^]C stops'
	grep -qP '\x1b' "$WORK/cli.out" && fail "escape codes in a file"
	start typing a script -qefc "$XROCE serve $IF_A" "$WORK/typed"
	wait_until 10 grep -qaF "serving $IF_A; ^C stops it" "$WORK/typed" || fail "serve says nothing on a terminal"
	try 0 "$XROCE" stop $IF_A
	finish "$child" 10 || fail "serve ends with $?"
}

# The TAP device that frames are redirected from: tried, and the loss without it named.
doctor_redirection() {
	local -x XROCE_XDP=native
	try 0 "$XROCE" doctor $IF_A
	need_line cli '^ok    redirection: '
	need_line cli "^ok    $IF_A MTU: 4500 allows path MTU 4096; programs see 2048"
	try 0 unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/net && exec "$1" doctor "$2"' - "$XROCE" $IF_A
	need_line cli '^warn  redirection: .*by a slower way: creating a TAP device: No such file.* -> run .modprobe tun.'
	need_line cli "^ok    $IF_A MTU: 4500 allows path MTU 4096\$"
	try 0 setpriv --bounding-set -sys_admin "$XROCE" doctor $IF_A
	need_line cli '^warn  redirection: .*creating a network namespace: .* -> run with CAP_SYS_ADMIN'
	in_a ip -o link show | grep -q 'xroce[0-9]' && fail "doctor leaves a TAP device"
	return 0
}

doctor_healthy() {
	try 0 "$XROCE" doctor $IF_A
	need_no_line cli '^(FAIL|warn)'
	need_line cli '^ok    XDP program: loads'
	need_line cli '^ok    bpf_link: '
	need_line cli '^ok    AF_XDP: '
	need_line cli '^ok    segmentation: '
	need_line cli "^ok    $IF_A XDP mode: generic: veth then sends"
	need_line cli "^ok    $IF_A XDP hook: free"
	need_line cli "^ok    $IF_A MTU: 4500 allows path MTU 4096"
	try 0 "$XROCE" doctor
	need_line cli "^ok    $IF_A link: up"
	need_no_line cli ' lo link'
	try 0 "$XROCE" doctor lo
	need_line cli '^ok    lo XDP mode: generic'
	try 0 env XROCE_XDP=native "$XROCE" doctor $IF_A
	need_line cli "^ok    $IF_A XDP mode: native \\(veth"
	xdp_off $NS_A $IF_A || fail "doctor leaves XDP attached"
}

# Without capabilities, and as another user without any right to look around.
doctor_unprivileged() {
	mkdir -p "$WORK/open/bin" && cp "$XROCE" "$WORK/open/bin/" && chmod a+x "$WORK" "$WORK/open" "$WORK/open/bin"
	try 1 env XROCE_PORT=xdp setpriv --bounding-set -all "$XROCE" doctor $IF_A
	need_line cli '^FAIL  privileges: missing CAP_NET_ADMIN CAP_BPF CAP_NET_RAW -> run as root'
	need_line cli "^ok    $IF_A link"
	try 1 env XROCE_PORT=xdp setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/open/bin/xroce" doctor $IF_A
	need_line cli '^FAIL  privileges'
	need_line cli "^ok    $IF_A XDP hook: free"
	try 0 setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/open/bin/xroce" list $IF_A
	need_line cli "GID 0 +::ffff:$IP4_A"
	try 1 env XROCE_PORT=xdp setpriv --bounding-set -net_raw "$XROCE" doctor $IF_A
	need_line cli '^FAIL  privileges: missing CAP_NET_RAW '
	try 0 setpriv --bounding-set=-all "$XROCE" doctor $IF_A
	need_line cli '^warn  privileges: missing CAP_NET_ADMIN .*: ports use UDP sockets'
	need_line cli "^ok    $IF_A port: a program can open one, by UDP sockets"
	# No way to make a namespace: the rest is reported from checks that need none.
	try 0 setpriv --bounding-set=-all,+net_admin,+bpf,+perfmon,+net_raw,+ipc_lock "$XROCE" doctor $IF_A
	need_line cli '^ok    XDP program: loads'
	need_line cli '^ok    AF_XDP: sockets can be created'
	# Only the verifier's output shows whether the program needs one more capability: doctor
	# reports it, or all is well.
	in_a setpriv --bounding-set=-all,+net_admin,+bpf,+net_raw,+ipc_lock "$XROCE" doctor $IF_A >"$WORK/cli.out" 2>&1
	need_line cli '^(ok    XDP program: loads|FAIL  XDP program: .* -> run as root, or with CAP_PERFMON)'
	# Root of a user namespace only.
	try 1 env XROCE_PORT=xdp unshare --user --map-root-user "$XROCE" doctor $IF_A
	need_line cli '^FAIL  privileges: only those of a user namespace'
}

# A seccomp profile that refuses bpf(2), as a container's: root's capabilities have no effect.
doctor_without_bpf() {
	local filter
	mapfile -t filter < <(grep -v '^#' "$here/tests/netns/lib/docker_seccomp" | xargs printf '%s\n')
	# for the files, the probes, and the broker that it starts
	filter=(/usr/bin/python3 -B "$here/tests/netns/lib/filtered.py" "${filter[@]}" mount umount2 unshare setns
		set_mempolicy --)
	in_a timeout 60 env XROCE_PORT=xdp "${filter[@]}" "$XROCE" doctor $IF_A >"$WORK/cli.out" 2>&1
	need_equal "exit status of the filter" $? 99
	need_line cli '^refused: bpf$'
	need_line cli '^FAIL  privileges: bpf\(2\) is refused despite the capabilities .* -> allow bpf'
	need_line cli "^FAIL  $IF_A broker: no broker"
	in_a timeout 60 "${filter[@]}" "$XROCE" doctor $IF_A >"$WORK/cli.out" 2>&1
	need_no_line cli '^FAIL'
	need_line cli '^warn  privileges: bpf\(2\) is refused .*: ports use UDP sockets'
	need_line cli "^ok    $IF_A port: a program can open one, by UDP sockets"
	need_line cli '^refused: bpf$'
}

# locked BYTES: how a program runs that may lock no more than that.
locked() { echo prlimit --memlock="$1:$1" setpriv --bounding-set -ipc_lock,-sys_resource; }

doctor_limits() {
	# shellcheck disable=SC2046
	try 1 $(locked 65536) "$XROCE" doctor $IF_A
	need_line cli '^FAIL  locked memory: limit of 64 KiB'
	need_line cli '^FAIL  AF_XDP: sockets do not bind: .* -> raise'
}

doctor_limits_lifted() {
	skip_reason='no CAP_SYS_RESOURCE here'
	prlimit --memlock=unlimited:unlimited true 2>/dev/null || return 77
	# shellcheck disable=SC2046
	try 0 $(locked unlimited) "$XROCE" doctor $IF_A
	need_line cli '^ok    locked memory: not limited$'
	try 0 prlimit --memlock=65536:65536 setpriv --bounding-set -ipc_lock "$XROCE" doctor $IF_A
	need_line cli '^ok    locked memory: not limited .CAP_SYS_RESOURCE'
	need_line cli '^ok    AF_XDP: sockets bind'
}

doctor_mtu() {
	mtu 1500
	try 0 "$XROCE" doctor $IF_A
	need_line cli "^warn  $IF_A MTU: 1500 allows path MTU 1024; path MTU 4096 needs 4184 -> run .ip link set $IF_A mtu 4500"
	mtu 300
	try 1 "$XROCE" doctor $IF_A
	need_line cli "^FAIL  $IF_A MTU: 300 is too small"
	try 0 "$XROCE" list $IF_A
	need_line cli 'path MTU +none'
	mtu 4500
	# A small MTU switches IPv6 off.
	in_a ip addr replace $IP6_A/64 dev $IF_A nodad
	in_b ip addr replace $IP6_B/64 dev $IF_B nodad
}

doctor_link_and_addresses() {
	in_b ip link set $IF_B down
	try 1 "$XROCE" doctor $IF_A
	need_line cli "^FAIL  $IF_A link: down -> "
	in_b ip link set $IF_B up
	in_a ip link add bare type bridge
	in_a ip link set bare addrgenmode none
	try 1 "$XROCE" doctor bare
	need_line cli '^FAIL  bare addresses: no address, so no GID -> run .ip address add'
	need_line cli '^warn  bare XDP mode: generic: bridge has no native XDP'
	in_a ip link del bare
	unshare --net "$XROCE" doctor >"$WORK/cli.out" 2>&1
	need_equal "exit status" $? 1
	need_line cli '^FAIL  interfaces: no interface except lo'
}

# hook_taken OPTION MODE OFF: another program on the hook, put there by ip(8).
hook_taken() {
	local option=$1 mode=$2 off=$3

	printf '__attribute__((section("xdp"), used)) int other(void *ctx) { return 2; }\nchar l[] __attribute__((section("license"), used)) = "GPL";\n' \
		>"$WORK/other.c"
	clang -target bpf -O2 -g -c "$WORK/other.c" -o "$WORK/other.o" || return
	mtu 1500 # what a program without xdp.frags takes
	# ip mounts bpffs when it loads a program, and leaves it mounted: in a private mount
	# namespace it is removed as well.
	in_a unshare --mount ip link set $IF_A "$option" obj "$WORK/other.o" sec xdp || return
	try 1 "$XROCE" doctor $IF_A
	need_line cli "^FAIL  $IF_A XDP hook: in use by another program, id [0-9]+, other, $mode mode -> .*ip link set dev $IF_A $off off"
	try 0 "$XROCE" list $IF_A
	need_line cli "XDP +$mode, program [0-9]+ other\$"
	xdp_on $NS_A $IF_A || fail "the other program is gone"
	in_a ip link set $IF_A "$option" off
	mtu 4500
}

# The owner of an interface is known by an abstract socket, whichever process binds it; and not by
# another interface's.
held() {
	local ifindex

	ifindex=$(in_a ip -o link show dev $IF_A | cut -d: -f1)
	start holder a perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && bind(S, pack_sockaddr_un("\0xroce/$ARGV[0]")) && listen(S, 9) or die;
		$| = 1; print "listens\n"; sleep 60' "$ifindex"
	wait_until 10 grep -q listens "$WORK/holder.out" || fail "no holder"
	try 0 "$XROCE" doctor $IF_A
	need_line cli "^warn  $IF_A XDP hook: in use by perl \\(pid $child\\)"
	try 0 "$XROCE" list $IF_A
	need_line cli "in use +by perl \\(pid $child\\)"
	try 0 "$XROCE" doctor lo
	need_line cli '^ok    lo XDP hook: free'
	stop "$child"
}

# The kernel's own RDMA devices, as sysfs would show them.
kernel_rdma() {
	local gid=$WORK/class/infiniband/rxe7/ports/1/gid_attrs/ndevs

	mkdir -p "$gid" && echo $IF_A >"$gid/0" && mkdir -p "$WORK/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs"
	# and one of ours, as `xroce run` shows it
	cp -r "$WORK/class/infiniband/rxe7" "$WORK/class/infiniband/$DEV_A"
	try 0 unshare --mount sh -c 'mount --bind "$1" /sys/class && exec "$2" doctor "$3"' - "$WORK/class" "$XROCE" $IF_A
	need_line cli "^warn  $IF_A kernel RDMA: rxe7 is on this interface as well.*rdma link delete rxe7"
	need_no_line cli mlx5_0
	need_no_line cli "rdma link delete $DEV_A"
}
run_case doctor_json doctor_json
run_case progress_on_a_terminal progress_on_a_terminal
run_case doctor_healthy doctor_healthy
run_case doctor_redirection doctor_redirection
run_case doctor_unprivileged doctor_unprivileged
run_case doctor_without_bpf doctor_without_bpf
run_case doctor_limits doctor_limits
run_case doctor_limits_lifted doctor_limits_lifted
run_case doctor_mtu doctor_mtu
run_case doctor_link_and_addresses doctor_link_and_addresses
run_case hook_taken_native hook_taken xdpdrv native xdp
run_case hook_taken_generic hook_taken xdpgeneric generic xdpgeneric
run_case held held
run_case kernel_rdma kernel_rdma
finish_cases
