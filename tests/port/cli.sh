#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The xroce command itself: its usage, the environment and status of `xroce run`, and what `xroce
# list` prints of an interface in every condition.
. "$(dirname "$0")/lib/cli.sh"

usage() {
	local word

	try 2 "$XROCE"
	try 0 "$XROCE" --help
	need_no_line cli '.{81}'
	for word in run serve stop list doctor ping bench stat top qp cq srq mr clients capture trace explain export; do
		need_line cli "^  $word "
	done
	for word in run serve stop list doctor ping bench stat top qp cq srq mr clients capture trace explain export; do
		try 0 "$XROCE" $word --help
		need_no_line cli '.{81}'
		need_line cli "^usage: xroce $word"
		try 0 "$XROCE" help $word
		need_line cli "^usage: xroce $word"
		try 0 "$XROCE" $word -h
		need_line cli '^  -h, --help +print this help$'
		try 2 "$XROCE" $word --nosuch
		need_line cli "unknown option '--nosuch'"
	done
	try 0 "$XROCE" --version
	need_line cli '^xroce [0-9]+\.[0-9]+'
	try 2 "$XROCE" nosuch
	try 2 "$XROCE" help list x
	need_line cli "^xroce: unexpected argument 'x' of help"
	try 2 "$XROCE" --version x
	try 2 "$XROCE" help nosuch
	need_line cli "^xroce: unknown command 'nosuch'; 'xroce --help' lists the commands\$"
	try 2 "$XROCE" expl
	need_line cli "^xroce: unknown command 'expl'; did you mean 'explain'\?\$"
	try 2 "$XROCE" bnech
	need_line cli "^xroce: unknown command 'bnech'; did you mean 'bench'\?\$"
	# of a short name few letters may differ
	try 2 "$XROCE" foo
	need_line cli "^xroce: unknown command 'foo'; 'xroce --help' lists the commands\$"
	try 2 "$XROCE" tip
	need_line cli "did you mean 'top'"
	# a refused value is reported with its option, in either spelling
	for word in trace 'capture -w -'; do
		# shellcheck disable=SC2086 # words
		try 2 "$XROCE" $word -D x
		need_line cli "invalid argument 'x' of -D"
		# shellcheck disable=SC2086
		try 2 "$XROCE" $word --duration x
		need_line cli "invalid argument 'x' of --duration"
	done
	try 1 "$XROCE" explain
	need_line cli '^xroce explain: no process uses an interface here'
	try 1 "$XROCE" explain 1
	need_line cli '^xroce explain: no such queue pair or process'
	try 1 "$XROCE" capture -w "$WORK/nosuch/file"
	need_line cli "^xroce capture: cannot open $WORK/nosuch/file: No such file or directory"
	try 2 "$XROCE" list --json=1
	need_line cli "option '--json' takes no argument"
	try 2 "$XROCE" list -jx
	need_line cli "unknown option '-x'"
	try 2 "$XROCE" ping -c
	need_line cli "option '-c' needs an argument"
	try 2 "$XROCE" ping -c 010x 192.0.2.1
	need_line cli "invalid argument '010x' of -c: it takes a number from 1 on"
	try 2 "$XROCE" list $IF_A lo
	try 2 "$XROCE" doctor $IF_A lo
	# the reader of the output ends before the first block
	in_a bash -c '{ sleep 0.3; "$1" capture -w - -D 2 2>"$2/piped"; echo $? >"$2/status"; } | true' _ "$XROCE" "$WORK"
	need_equal "the status of a capture without a reader" "$(cat "$WORK/status")" 0
	try 2 "$XROCE" export --format openmetrics
	need_line cli '^xroce export: --format needs --once$'
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
	local print='echo "[$XROCE_SPIN_US] [$XROCE_VECTOR_CPUS] [$XROCE_SHARDS] [$XROCE_TX] [$XROCE_XDP] [$XROCE_ATTACH] [$XROCE_SHARE] [$XROCE_PKEY] [$XROCE_YIELD]"' option word

	try 0 "$XROCE" run --spin 0 --cpus 1,0 --shards 2 --tx xsk --xdp native --attach dispatcher --share always --pkey 0x8001,2 --yield 9 -- sh -c "$print"
	need_line cli '^\[0\] \[1,0\] \[2\] \[xsk\] \[native\] \[dispatcher\] \[always\] \[0x8001,2\] \[9\]$'
	try 0 env XROCE_SPIN_US=7 "$XROCE" run --shards=8 --tx=gso --yield=1000000 sh -c "$print"
	need_line cli '^\[7\] \[\] \[8\] \[gso\] \[\] \[\] \[\] \[\] \[1000000\]$'
	for option in --spin= --spin=-1 --spin=1000001 --spin=5us --yield= --yield=-1 --yield=1000001 --yield=x --cpus= --cpus=,1 --cpus=1, --cpus=1,,2 --cpus=a --shards=0 --shards=9 --tx=tcp --tx= --xdp=nativ --attach=alone --share=yes --pkey= --pkey=0 --pkey=0x8000 --pkey=0x10000 --pkey=-1 --pkey=0x8001, --pkey=,1 --pkey=x --pkey=0x8001,0x8001 --pkey=0x1z "--pkey=$(seq -s, 1 32)"; do
		try 2 "$XROCE" run "$option" true
		word="'${option#*=}' of ${option%%=*}"
		need_line cli "^xroce run: invalid argument $word: it takes "
	done
	try 2 "$XROCE" run --spin
	for option in SPIN_US=-1 YIELD=x VECTOR_CPUS=1, SHARDS=0 TX=x XDP=x ATTACH=x SHARE=x PORT=x PKEY=0 OFF=foo ECN=2 PIN=tmp TCP_PORTS=x TCP_PORTS=70000 TCP_PORTS=22,, TCP_PORTS=0; do
		try 2 env "XROCE_$option" "$XROCE" run -- touch "$WORK/ran"
		need_line cli "^xroce run: invalid value '${option#*=}' of XROCE_${option%%=*}: it takes "
		need_equal "lines about $option" "$(wc -l <"$WORK/cli.out")" 1
		[ ! -e "$WORK/ran" ] || fail "the program ran with $option"
	done
	try 0 env XROCE_TX= XROCE_ECN=1 XROCE_QUIET=x XROCE_TCP_PORTS=22,19765 "$XROCE" run -- true
	try 0 env XROCE_TX=x "$XROCE" run --tx tap -- true
	# without xroce run, the library and the broker that it starts report a value once
	for option in TX=x XDP=x ECN=2 SPIN_US=x; do
		in_a timeout 2 env "XROCE_$option" LD_LIBRARY_PATH="$BUILD/lib" \
			ibv_rc_pingpong -d $DEV_A -g 0 >"$WORK/cli.out" 2>&1
		need_equal "lines about $option" "$(grep -c "XROCE_$option is ignored" "$WORK/cli.out")" 1
	done
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

# An installation: PREFIX/lib/xroce is ours, even if PREFIX/lib has other files.
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
	need_line cli 'XROCE_DEV=nosuch: no such Ethernet interface'
}

# Which way frames will leave, and why not a faster one.
list_sends() {
	try 0 "$XROCE" list $IF_A
	need_line cli 'sends by +UDP super-packets and AF_XDP; XDP redirection while veth accepts redirected frames'
	need_line cli 'path MTU +4096$'
	need_line cli 'XDP +nothing attached; generic when'
	try 0 env XROCE_TX=tap "$XROCE" list $IF_A
	need_line cli 'sends by +AF_XDP; XDP redirection while veth accepts redirected frames'
	need_line cli 'XDP +nothing attached; native when'
	try 0 env XROCE_XDP=native "$XROCE" list $IF_A
	need_line cli 'path MTU +4096; active 2048, '
	in_b ethtool -K $IF_B gro on
	try 0 "$XROCE" list $IF_A
	need_line cli 'sends by +XDP redirection: '
	need_line cli 'path MTU +4096; active 2048, '
	try 0 env XROCE_TX=xsk "$XROCE" list $IF_A
	need_line cli 'sends by +AF_XDP, set by XROCE_TX$'
	try 0 env XROCE_TX=gso "$XROCE" list $IF_A
	need_line cli 'sends by +UDP super-packets, set by XROCE_TX$'
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
	need_line cli 'sends by +AF_XDP: bridge does not accept redirected frames'
	in_a ip link del bare
	# UDP sockets have no way by XDP, nor its limits
	try 0 env XROCE_PORT=sockets XROCE_XDP=native "$XROCE" list $IF_A
	need_line cli "XDP +nothing attached, as this user's programs receive and send by UDP sockets\$"
	need_line cli 'path MTU +4096$'
	need_no_line cli 'sends by'
	try 0 env XROCE_PORT=sockets "$XROCE" doctor $IF_A
	need_line cli "^ok    $IF_A XDP mode: none: ports use UDP sockets\$"
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
	need_equal "in use" "$(json '[(c["pid"], c["command"], c["has_sockets"]) for c in d["devices"][0]["broker"]["clients"]]')" "[($server, 'ibv_rc_pingpong', True)]"
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
finish_cases
