#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The xroce command itself: what run sets and returns, what list and doctor say of interfaces in
# every condition, and that neither changes one.
. "$(dirname "$0")/../netns/lib/case.sh"
netns_pair 4500

# try STATUS COMMAND...: run it on A, bounded; output in cli.out.
try() {
	local want=$1 status
	shift
	in_a timeout 30 "$@" >"$WORK/cli.out" 2>&1
	status=$?
	[ $status -eq "$want" ] || { fail "$* ends with $status, not $want"; show cli; }
}

usage() {
	local word

	try 2 "$XROCE"
	try 0 "$XROCE" --help
	for word in run serve stop list doctor ping bench stat top qp cq srq mr clients capture trace explain export; do
		need_line cli "^  $word "
	done
	for word in run serve stop list doctor ping bench stat top qp clients capture trace explain export; do
		try 0 "$XROCE" $word --help
		need_line cli "^usage: xroce $word"
		try 0 "$XROCE" help $word
		need_line cli "^usage: xroce $word"
		try 2 "$XROCE" $word --nosuch
		need_line cli "unknown option '--nosuch'"
	done
	try 0 "$XROCE" --version
	need_line cli '^xroce [0-9]+\.[0-9]+'
	try 2 "$XROCE" nosuch
	try 2 "$XROCE" help nosuch
	need_line cli "^xroce: unknown command 'nosuch'"
	# a value that is refused is said with its option, however that is written
	for word in trace 'capture -w -'; do
		# shellcheck disable=SC2086 # words
		try 2 "$XROCE" $word -d x
		need_line cli "'x' is not what -d takes"
		# shellcheck disable=SC2086
		try 2 "$XROCE" $word --duration x
		need_line cli "'x' is not what --duration takes"
	done
	try 1 "$XROCE" explain
	need_line cli '^xroce explain: no process uses an interface here'
	try 1 "$XROCE" explain 1
	need_line cli '^xroce explain: there is no such queue pair or process'
	try 1 "$XROCE" capture -w "$WORK/nosuch/file"
	need_line cli "^xroce capture: cannot open $WORK/nosuch/file: No such file or directory"
	try 2 "$XROCE" list $IF_A lo
	try 2 "$XROCE" doctor $IF_A lo
	try 2 "$XROCE" run --dev
	try 2 "$XROCE" run --dev $IF_A --
}

run_environment() {
	local print='echo "[$LD_LIBRARY_PATH] [$XROCE_DEV]"' lib

	lib=$(cd "$BUILD/lib" && pwd -P)
	try 0 "$XROCE" run --dev $IF_A -- sh -c "$print"
	need_line cli "^\\[$lib\\] \\[$IF_A\\]\$"
	try 0 env LD_LIBRARY_PATH= XROCE_DEV=lo "$XROCE" run sh -c "$print"
	need_line cli "^\\[$lib\\] \\[lo\\]\$"
	try 0 env LD_LIBRARY_PATH=/one:/two "$XROCE" run -d$IF_A sh -c "$print"
	need_line cli "^\\[$lib:/one:/two\\] \\[$IF_A\\]\$"
	# What follows the command is the command's.
	try 0 "$XROCE" run -- echo --dev nosuch --help
	need_line cli '^--dev nosuch --help$'
}

# Each option is the library's variable; a value that it would not take is a mistake here.
run_tuning() {
	local print='echo "[$XROCE_SPIN_US] [$XROCE_VECTOR_CPUS] [$XROCE_SHARDS] [$XROCE_TX] [$XROCE_XDP] [$XROCE_ATTACH] [$XROCE_SHARE] [$XROCE_PKEY] [$XROCE_YIELD]"' option

	try 0 "$XROCE" run --spin 0 --cpus 1,0 --shards 2 --tx xsk --xdp native --attach dispatcher --share always --pkey 0x8001,2 --yield 9 -- sh -c "$print"
	need_line cli '^\[0\] \[1,0\] \[2\] \[xsk\] \[native\] \[dispatcher\] \[always\] \[0x8001,2\] \[9\]$'
	try 0 env XROCE_SPIN_US=7 "$XROCE" run -n8 -tgso -y1000000 sh -c "$print"
	need_line cli '^\[7\] \[\] \[8\] \[gso\] \[\] \[\] \[\] \[\] \[1000000\]$'
	for option in --spin= --spin=-1 --spin=1000001 --spin=5us --yield= --yield=-1 --yield=1000001 --yield=x --cpus= --cpus=,1 --cpus=1, --cpus=1,,2 --cpus=a --shards=0 --shards=9 --tx=tcp --tx= --xdp=nativ --attach=alone --share=yes --pkey= --pkey=0 --pkey=0x8000 --pkey=0x10000 --pkey=-1 --pkey=0x8001, --pkey=,1 --pkey=x --pkey=0x8001,0x8001 --pkey=0x1z "--pkey=$(seq -s, 1 32)"; do
		try 2 "$XROCE" run "$option" true
		need_line cli "^xroce run: '${option#*=}' is not "
	done
	try 2 "$XROCE" run --spin
}

run_status() {
	try 7 "$XROCE" run -- sh -c 'exit 7'
	try 127 "$XROCE" run -- no-such-command
	need_line cli "'no-such-command': command not found"
	try 127 "$XROCE" run -- "$WORK/no-such-file"
	echo text >"$WORK/plain"
	try 126 "$XROCE" run -- "$WORK/plain"
	try 126 "$XROCE" run -- "$WORK"
	try 2 "$XROCE" run --dev nosuch -- true
	need_line cli "no interface 'nosuch'"
	in_a ip tuntap add mode tun name tun0
	try 2 "$XROCE" run --dev tun0 -- true
	need_line cli "'tun0' is not an Ethernet interface"
	in_a ip link del tun0
}

run_warns_of_setuid() {
	cp "$(type -P true)" "$WORK/setuid" && chown 65534 "$WORK/setuid" && chmod 4755 "$WORK/setuid"
	try 0 "$XROCE" run -- "$WORK/setuid"
	need_line cli "warning: $WORK/setuid is set-user-ID"
	try 0 env PATH="/nonexistent::$WORK:$PATH" "$XROCE" run -- setuid
	need_line cli "warning: $WORK/setuid is set-user-ID"
	try 0 "$XROCE" run -- true
	need_no_line cli warning
}

# An installation: PREFIX/lib/xroce is ours, whatever lies in PREFIX/lib.
run_installed() {
	local p=$WORK/prefix real

	mkdir -p "$p/bin" "$p/lib/xroce" && cp "$XROCE" "$p/bin/" && cp "$(type -P true)" "$p/lib/libibverbs.so.1"
	real=$(cd "$p/lib/xroce" && pwd -P)
	try 2 "$p/bin/xroce" run -- true
	need_line cli 'neither in .*make install'
	cp "$BUILD/lib/libibverbs.so.1" "$p/lib/xroce/"
	try 0 "$p/bin/xroce" run -- sh -c 'echo "[$LD_LIBRARY_PATH]"'
	need_line cli "^\\[$real\\]\$"
	mkdir -p "$WORK/co:lon" && cp -r "$p/." "$WORK/co:lon/"
	try 2 "$WORK/co:lon/bin/xroce" run -- true
	need_line cli 'colon'
}

# mtu N: on both ends.
mtu() {
	in_a ip link set $IF_A mtu "$1"
	in_b ip link set $IF_B mtu "$1"
}

list_link() {
	try 0 "$XROCE" list $IF_A
	need_line cli "^$DEV_A\$"
	need_line cli 'link +up, 10000 Mb/s, MTU 4500, 1 receive queue$'
	need_line cli "GID 0 +::ffff:$IP4_A +RoCE v2\$"
	need_no_line cli xroce_lo
	mtu 1500
	try 0 "$XROCE" list $IF_A
	need_line cli 'path MTU +1024$'
	in_b ip link set $IF_B down
	try 0 "$XROCE" list $IF_A
	need_line cli 'link +down'
	in_b ip link set $IF_B up
	mtu 4500
	try 0 "$XROCE" list
	need_no_line cli '^xroce_lo$'
	try 0 env XROCE_DEV=lo "$XROCE" list
	need_line cli '^xroce_lo$'
	need_no_line cli "^$DEV_A\$"
	try 1 env XROCE_DEV=nosuch "$XROCE" list
	need_line cli 'XROCE_DEV=nosuch: no Ethernet interface'
}

# Which way frames will leave, and why not a faster one.
list_sends() {
	try 0 "$XROCE" list $IF_A
	need_line cli 'sends by +UDP super-packets and AF_XDP; XDP redirection while veth takes redirected frames'
	need_line cli 'path MTU +4096$'
	need_line cli 'XDP +nothing attached; generic when'
	try 0 env XROCE_TX=tap "$XROCE" list $IF_A
	need_line cli 'sends by +AF_XDP; XDP redirection while veth takes redirected frames'
	need_line cli 'XDP +nothing attached; native when'
	try 0 env XROCE_XDP=native "$XROCE" list $IF_A
	need_line cli 'path MTU +4096; active 2048, '
	in_b ethtool -K $IF_B gro on
	try 0 "$XROCE" list $IF_A
	need_line cli 'sends by +XDP redirection: '
	need_line cli 'path MTU +4096; active 2048, '
	try 0 env XROCE_TX=xsk "$XROCE" list $IF_A
	need_line cli 'sends by +AF_XDP, as XROCE_TX says$'
	try 0 env XROCE_TX=gso "$XROCE" list $IF_A
	need_line cli 'sends by +UDP super-packets, as XROCE_TX says$'
	need_line cli 'path MTU +4096$'
	try 0 env XROCE_TX=nosuch "$XROCE" list $IF_A
	need_line cli 'XROCE_TX=nosuch is ignored: it is not auto, xsk, tap, live or gso'
	need_equal "complaints" "$(grep -c XROCE_TX=nosuch "$WORK/cli.out")" 1
	try 0 unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/net && exec "$1" list "$2"' - "$XROCE" $IF_A
	need_line cli 'sends by +UDP super-packets and AF_XDP: redirection needs /dev/net/tun: No such file'
	need_line cli 'path MTU +4096$'
	in_b ethtool -K $IF_B gro off
	in_a ip link add bare type bridge
	try 0 "$XROCE" list bare
	need_line cli 'sends by +AF_XDP: bridge takes no redirected frames'
	in_a ip link del bare
}

# How frames of an interface in use have left: by each way, forced.
list_sent() {
	local way server client line

	gids_for v4 || return
	for way in 'xsk:TAP device 0, live frames 0, super-packets 0 .in 0., AF_XDP [1-9]' 'tap:TAP device [1-9][0-9]*, live frames 0,' \
		'live:TAP device 0, live frames [1-9]' 'gso:TAP device 0, live frames 0, super-packets [1-9][0-9]* .in [1-9][0-9]*., AF_XDP 0$'; do
		line="sent by +${way#*:}"
		export XROCE_TX=${way%%:*} XROCE_XDP=native
		start_on server a ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 100000000
		server=$child
		wait_until 10 listens_or_gone a 18515 "$server"
		start_on client b ibv_rc_pingpong -d $DEV_B -g "$gid_b" -n 100000000 $IP4_A
		client=$child
		wait_until 10 list_says "$line" || fail "xroce list does not say: $line"
		need_line cli "XDP +native, program [0-9]+ xroce_xdp, exclusive\$"
		need_no_line cli 'sends by'
		stop "$client"
		stop "$server"
		unset XROCE_TX XROCE_XDP
	done
}
list_says() { try 0 "$XROCE" list $IF_A && grep -qE "$1" "$WORK/cli.out"; }

# The TAP device that frames are redirected from: tried out, and what is lost without it.
# json EXPRESSION: of the document that was printed, d
json() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$WORK/cli.out" "$1" 2>&1
}

# The same as the lines have.
list_json() {
	try 0 "$XROCE" list --json $IF_A
	need_equal "the device" "$(json '[(v["name"], v["interface"], v["up"], v["speed_mbps"], v["mtu"], v["path_mtu"], v["rx_queues"]) for v in d["devices"]]')" \
		"[('$DEV_A', '$IF_A', True, 10000, 4500, 4096, 1)]"
	need_equal "its MAC" "$(json 'd["devices"][0]["mac"]')" "$MAC_A"
	need_equal "its first GID" "$(json 'd["devices"][0]["gids"][0]')" "::ffff:$IP4_A"
	need_equal "nothing attached" "$(json '(d["devices"][0]["xdp"]["program_id"], d["devices"][0]["xdp"]["mode"], "in_use" in d["devices"][0])')" "(None, 'generic', False)"
	try 0 "$XROCE" list -j
	need_equal "all devices" "$(json "sorted(v['interface'] for v in d['devices'])")" "['$IF_A']"
	try 1 env XROCE_DEV=nosuch "$XROCE" list --json
	start server a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18599
	local server=$child
	wait_until 10 listens_or_gone a 18599 "$server"
	try 0 "$XROCE" list --json $IF_A
	need_equal "in use" "$(json '(d["devices"][0]["sharing"]["pid"], d["devices"][0]["sharing"]["command"])')" "($server, 'ibv_rc_pingpong')"
	need_equal "what it received" "$(json 'd["devices"][0]["received"]["frames"]')" 0
	need_equal "our program" "$(json 'd["devices"][0]["xdp"]["xroce_program_id"] == d["devices"][0]["xdp"]["program_id"]')" True
	need_equal "who listens" "$(json 'd["devices"][0]["listeners"]')" "[]"
	stop "$server"
	start broker a "$XROCE" serve $IF_A
	local broker=$child
	wait_until 10 has_broker
	start server a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18598
	server=$child
	wait_until 10 listens_or_gone a 18598 "$server"
	try 0 "$XROCE" list --json $IF_A
	need_equal "the broker and its client" "$(json '(d["devices"][0]["broker"]["pid"], [(c["pid"], c["qps"]) for c in d["devices"][0]["broker"]["clients"]])')" "($broker, [($server, 1)])"
	stop "$server"
	stop "$broker"
}
has_broker() { in_a "$XROCE" list $IF_A | grep -q 'broker *pid'; }

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

# What takes long says so on a terminal, and nowhere else.
progress_on_a_terminal() {
	try 0 script -qec "$XROCE capture -d 1 -w $WORK/none.pcapng $IF_A" "$WORK/typed"
	grep -qaP '\r\x1b\[K0 packets received, 0 dropped, 0 sent; ' "$WORK/typed" || fail "capture says nothing on a terminal"
	grep -qaP 'ends it\r\x1b\[Kxroce capture: 0 packets received' "$WORK/typed" || fail "the line stays"
	in_a "$XROCE" capture -d 1 -w "$WORK/none.pcapng" $IF_A >"$WORK/cli.out" 2>&1
	need_no_line cli 'ends it'
	grep -qP '\x1b' "$WORK/cli.out" && fail "escape codes in a file"
	start typing a script -qefc "$XROCE serve $IF_A" "$WORK/typed"
	wait_until 10 grep -qaF "serves $IF_A; ^C ends it" "$WORK/typed" || fail "serve says nothing on a terminal"
	try 0 "$XROCE" stop $IF_A
	finish "$child" 10 || fail "serve ends with $?"
}

doctor_redirection() {
	local -x XROCE_XDP=native
	try 0 "$XROCE" doctor $IF_A
	need_line cli '^ok    redirection: '
	need_line cli "^ok    $IF_A MTU: 4500 gives path MTU 4096; programs are told 2048"
	try 0 unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/net && exec "$1" doctor "$2"' - "$XROCE" $IF_A
	need_line cli '^warn  redirection: .*another way, which is slower: making a TAP device: No such file.* -> .modprobe tun.'
	need_line cli "^ok    $IF_A MTU: 4500 gives path MTU 4096\$"
	try 0 setpriv --bounding-set -sys_admin "$XROCE" doctor $IF_A
	need_line cli '^warn  redirection: .*making a network namespace: .* -> run with CAP_SYS_ADMIN'
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
	need_line cli "^ok    $IF_A XDP mode: generic: what veth sends"
	need_line cli "^ok    $IF_A XDP hook: free"
	need_line cli "^ok    $IF_A MTU: 4500 gives path MTU 4096"
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
	try 1 setpriv --bounding-set -all "$XROCE" doctor $IF_A
	need_line cli '^FAIL  privileges: missing CAP_NET_ADMIN CAP_BPF CAP_NET_RAW -> run as root'
	need_line cli "^ok    $IF_A link"
	try 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/open/bin/xroce" doctor $IF_A
	need_line cli '^FAIL  privileges'
	need_line cli "^ok    $IF_A XDP hook: free"
	try 0 setpriv --reuid 65534 --regid 65534 --clear-groups "$WORK/open/bin/xroce" list $IF_A
	need_line cli "GID 0 +::ffff:$IP4_A"
	try 1 setpriv --bounding-set -net_raw "$XROCE" doctor $IF_A
	need_line cli '^FAIL  privileges: missing CAP_NET_RAW '
	# No way to make a namespace: the rest is told by what can be tried without.
	try 0 setpriv --bounding-set=-all,+net_admin,+bpf,+perfmon,+net_raw,+ipc_lock "$XROCE" doctor $IF_A
	need_line cli '^ok    XDP program: loads'
	need_line cli '^ok    AF_XDP: sockets can be made'
	# Only what the verifier says of the program can tell whether it wants a capability more:
	# doctor names it, or all is well.
	in_a setpriv --bounding-set=-all,+net_admin,+bpf,+net_raw,+ipc_lock "$XROCE" doctor $IF_A >"$WORK/cli.out" 2>&1
	need_line cli '^(ok    XDP program: loads|FAIL  XDP program: .* -> run as root, or with CAP_PERFMON)'
	# Root of a user namespace only.
	try 1 unshare --user --map-root-user "$XROCE" doctor $IF_A
	need_line cli '^FAIL  privileges: those of a user namespace'
}

# locked BYTES: how a program runs that may lock no more than that.
locked() { echo prlimit --memlock="$1:$1" setpriv --bounding-set -ipc_lock,-sys_resource; }

doctor_limits() {
	# shellcheck disable=SC2046
	try 1 $(locked 65536) "$XROCE" doctor $IF_A
	need_line cli '^FAIL  locked memory: 64 KiB'
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
	need_line cli "^warn  $IF_A MTU: 1500 gives path MTU 1024; path MTU 4096 needs 4184 -> .ip link set $IF_A mtu 4500"
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
	need_line cli '^FAIL  bare addresses: none, so no GID -> .ip address add'
	need_line cli '^warn  bare XDP mode: generic: bridge has no native XDP'
	in_a ip link del bare
	unshare --net "$XROCE" doctor >"$WORK/cli.out" 2>&1
	need_equal "exit status" $? 1
	need_line cli '^FAIL  interfaces: none'
}

# hook_taken OPTION MODE OFF: another program on the hook, put there by ip(8).
hook_taken() {
	local option=$1 mode=$2 off=$3

	printf '__attribute__((section("xdp"), used)) int other(void *ctx) { return 2; }\nchar l[] __attribute__((section("license"), used)) = "GPL";\n' \
		>"$WORK/other.c"
	clang -target bpf -O2 -g -c "$WORK/other.c" -o "$WORK/other.o" || return
	mtu 1500 # what a program without xdp.frags takes
	# ip mounts bpffs when it loads a program, and leaves it: in a mount namespace of its own it
	# goes with it.
	in_a unshare --mount ip link set $IF_A "$option" obj "$WORK/other.o" sec xdp || return
	try 1 "$XROCE" doctor $IF_A
	need_line cli "^FAIL  $IF_A XDP hook: taken by another program, id [0-9]+, other, $mode mode -> .*ip link set dev $IF_A $off off"
	try 0 "$XROCE" list $IF_A
	need_line cli "XDP +$mode, program [0-9]+ other\$"
	xdp_on $NS_A $IF_A || fail "the other program is gone"
	in_a ip link set $IF_A "$option" off
	mtu 4500
}

# The holder of an interface is known by an abstract socket, whoever binds it; and not by another
# interface's.
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
	need_line cli "^warn  $IF_A kernel RDMA: rxe7 is on this interface too.*rdma link delete rxe7"
	need_no_line cli mlx5_0
	need_no_line cli "rdma link delete $DEV_A"
}

run_case usage usage
run_case run_environment run_environment
run_case run_tuning run_tuning
run_case run_status run_status
run_case run_warns_of_setuid run_warns_of_setuid
run_case run_installed run_installed
run_case list_link list_link
run_case list_sends list_sends
run_case list_sent list_sent
run_case list_json list_json
run_case doctor_json doctor_json
run_case progress_on_a_terminal progress_on_a_terminal
run_case doctor_healthy doctor_healthy
run_case doctor_redirection doctor_redirection
run_case doctor_unprivileged doctor_unprivileged
run_case doctor_limits doctor_limits
run_case doctor_limits_lifted doctor_limits_lifted
run_case doctor_mtu doctor_mtu
run_case doctor_link_and_addresses doctor_link_and_addresses
run_case hook_taken_native hook_taken xdpdrv native xdp
run_case hook_taken_generic hook_taken xdpgeneric generic xdpgeneric
run_case held held
run_case kernel_rdma kernel_rdma
finish_cases
