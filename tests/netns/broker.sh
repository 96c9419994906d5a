#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# The broker itself: its command, its socket, its interface, other brokers. Its clients here are
# asker.c, which sends no packet; broker_clients.sh tests what clients do, shared.sh programs.
. "$(dirname "$0")/lib/case.sh"

netns_pair 4500

. "$(dirname "$0")/lib/broker.sh"

# ---- the command ----

serve_and_stop() {
	serve
	need_equal "the socket's mode" "$(stat -c %a "$SOCKET")" 666
	need_equal "its directory's" "$(stat -c %a /run/xroce)" 755
	xdp_on $NS_A $IF_A || fail "no XDP program"
	ask hello hello claim 5 ring list 0 list 1
	need_line hello "^hello 0 client [0-9]+ ifindex $index_a prog [0-9]+ ring 4194304 native 0 privileged 1 fds 17$"
	need_line hello '^claim 0$'
	need_line hello '^ring 0 fds 1$'
	need_line hello '^list 0 client [0-9]+ pid [0-9]+ uid 0 qps 1 asker$'
	need_line hello '^list ENOENT$'
	ask_nobody other hello claim 7 draws 2 stop
	need_line other '^hello 0 .* privileged 0 fds 17$'
	need_line other '^claim EPERM$'
	need_line other '^draws 2 0$'
	need_line other '^stop EPERM$'
	socket_is_there || fail "anybody stops it"
	end_server
	in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 && fail "stop where no broker is"
	need_line stop 'no broker on this interface'
}

signals() {
	local signal
	for signal in TERM INT; do
		serve
		keep client hello claim 5
		kill -$signal "$server"
		finish "$server" 5 || fail "SIG$signal: it ends with $?"
		nothing_left || fail "SIG$signal: something is left"
		finish "$kept" 5
		need_line client '^hold end$'
		stop "$notified"
	done
}

# Root without CAP_NET_ADMIN sees clients of root only, and a line reports that.
limited_root() {
	local limited=(setpriv --bounding-set=-all --inh-caps=-all "$WORK/open/xroce")
	in_a "$WORK/open/xroce" list $IF_A >"$WORK/list.out"
	need_line list '^  broker    pid [0-9]+ \(xroce\)$'
	in_a "${limited[@]}" list $IF_A >"$WORK/list.out"
	need_line list '^  broker    .*, with these clients of this user:$'
	in_a "${limited[@]}" list --json $IF_A >"$WORK/list.out"
	need_line list '"others_hidden": *true'
}

# As root of a user namespace, with capabilities there, a user traces its own process.
traced_in_user_namespace() {
	local client
	serve
	start client a setpriv --reuid 65534 --regid 65534 --clear-groups "$ASKER" "$SOCKET" hello hold
	client=$child
	wait_until 10 grep -qE '^hold' "$WORK/client.out" || fail "no client"
	nobody timeout 20 unshare -Ur "$WORK/open/xroce" trace -D 1 $IF_A >"$WORK/trace.out" 2>&1 ||
		{ fail "trace ends with $?"; show trace; }
	need_no_line trace 'permission denied'
	end_server
	finish "$client" 5
}

# The socket's mode limits which users may connect.
modes() {
	serve --mode 0600
	ask_nobody other hello && fail "mode 0600: anybody comes in"
	nobody "$WORK/open/xroce" list $IF_A >"$WORK/list.out"
	need_line list '^  broker    permission denied for this user'
	nobody "$WORK/open/xroce" doctor $IF_A >"$WORK/doctor.out"
	need_line doctor "^FAIL  $IF_A broker: permission denied for this user -> "
	end_server
	serve --group 65534 --mode 0660
	ask_nobody other hello
	need_line other '^hello 0 '
	nobody "$WORK/open/xroce" doctor $IF_A >"$WORK/doctor.out"
	need_line doctor "^ok    $IF_A broker: process $server \\(xroce\\)"
	need_line doctor '^ok    privileges: none needed'
	limited_root
	end_server
	XROCE_PORT=xdp nobody "$WORK/open/xroce" doctor $IF_A >"$WORK/doctor.out"
	need_line doctor "^FAIL  $IF_A broker: no broker on $IF_A -> as root, run .xroce serve $IF_A."
}

wrong_usage() {
	local option
	for option in --mode=888 --mode=01777 --mode= --mode=x --group=nosuchgroup --max-clients=0 --max-clients=1025 --max-qps=65537 --max-rings=-1 --max-services=8193 --max-memory=0 --max-qps=1x --nosuch; do
		in_a timeout 10 "$XROCE" serve "$option" $IF_A >"$WORK/usage.out" 2>&1
		need_equal "exit status with $option" $? 2
	done
	in_a timeout 10 "$XROCE" serve >"$WORK/usage.out" 2>&1
	need_equal "exit status without an interface" $? 2
	in_a timeout 10 "$XROCE" serve nosuch >"$WORK/usage.out" 2>&1
	need_equal "exit status with no such interface" $? 2
	in_a timeout 10 "$XROCE" serve --netns nosuch $IF_A >"$WORK/usage.out" 2>&1
	need_equal "exit status with no such namespace" $? 2
	in_a timeout 10 "$XROCE" serve --netns ../netns/$NS_A $IF_A >"$WORK/usage.out" 2>&1
	need_equal "exit status with a path for a name" $? 2
	nothing_left || fail "something is left"
}

# A present process is named, whichever came first.
second() {
	local share
	serve
	in_a timeout 10 "$XROCE" serve $IF_A >"$WORK/second.out" 2>&1
	need_equal "the second broker's exit status" $? 1
	need_line second "^xroce: $IF_A: process $server \\(xroce\\) is already the broker of this interface; .xroce stop $IF_A. ends it"
	ask hello hello
	need_line hello '^hello 0 '
	end_server
	# nor with the broker of a process, whether the process shares or not
	for share in auto never; do
		start alone a env XROCE_SHARE=$share "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0
		wait_until 10 listens_or_gone a 18515 "$child"
		in_a "$XROCE" list $IF_A >"$WORK/list.out"
		server=$(sed -n 's/^  broker    pid \([0-9]*\) (xroce)$/\1/p' "$WORK/list.out")
		need_line list "^  client    [0-9]+: pid $child \\(.*pingpong\\) of root, 1 QP; received 0 frames by its AF_XDP sockets;"
		in_a timeout 10 "$XROCE" serve $IF_A >"$WORK/second.out" 2>&1
		need_equal "exit status beside a process, $share" $? 1
		need_line second "^xroce: $IF_A: process ${server:-none} \\(xroce\\) is already the broker of this interface; .xroce stop $IF_A. ends it"
		is_gone_or_zombie "$child" && fail "the process has ended, $share"
		stop "$child"
		wait_until 10 nothing_left || fail "something is left, $share"
	done
}

# A socket without a listener is a dead broker's; a file of another owner stays. The holder of the
# interface's name returns it after the broker has asked for its identity: like an on-demand broker,
# which closes its socket first and releases the name last.
given_back() {
	start holder a python3 -c "
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
s.bind('\\0xroce/$index_a')
s.listen()
print('held', flush=True)
s.accept()
"
	local holder=$child
	wait_until 10 grep -q '^held' "$WORK/holder.out" || fail "the name is not held"
	serve
	finish "$holder" 5 || { fail "nobody asked for the name"; show holder; }
	end_server
}

# refused_directory OPTIONS SAID: with a /run/xroce of these mount options, it does not start.
refused_directory() {
	in_a timeout 20 unshare -m sh -c 'mount -t tmpfs -o "$1" none /run/xroce && exec "$2" serve "$3"' \
		sh "$1" "$XROCE" $IF_A >"$WORK/refused.out" 2>&1
	need_equal "exit status with $1" $? 1
	need_line refused "^xroce: $IF_A: $2"
}
refused_directories() {
	mkdir -p /run/xroce
	refused_directory mode=777 '/run/xroce belongs to another user, is writable by other users,'
	refused_directory mode=755,uid=12345 '/run/xroce belongs to another user,'
	refused_directory mode=755,ro "cannot listen on $SOCKET: Read-only file system"
	nothing_left || fail "something is left"
}

# Sockets of killed processes: one of a deleted network namespace is removed; one of a live
# namespace, a young one, one with a listener and a file of another kind are not.
dead_sockets() {
	local dir=/run/xroce gone=4999999991 who name left
	mkdir -p $dir
	python3 - $dir $gone "$(stat -L -c %i /run/netns/$NS_B)" >"$WORK/dead.out" 2>&1 <<-'END' &
		import os, socket, sys, time
		d, gone, here = sys.argv[1:]
		kept = []
		for name, listens, age in ((f"{gone}-1", 0, 999), (f"{gone}-2", 0, 0), (f"{gone}-3", 1, 999), (f"{here}-999999", 0, 999)):
		    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		    s.bind(f"{d}/{name}.sock")
		    if listens:
		        s.listen()
		        kept.append(s)
		    else:
		        s.close()
		    os.utime(f"{d}/{name}.sock", (time.time() - age,) * 2)
		for name in (f"{gone}-4.sock", f"{gone}-5.sockets"):
		    open(f"{d}/{name}", "w").close()
		    os.utime(f"{d}/{name}", (0, 0))
		print("made", flush=True)
		time.sleep(60)
	END
	who=$!
	netns_children+=("$who")
	wait_until 10 grep -q made "$WORK/dead.out" || { fail "no sockets"; show dead; }
	serve
	for name in $gone-1.sock $gone-2.sock $gone-3.sock $gone-4.sock $gone-5.sockets "$(stat -L -c %i /run/netns/$NS_B)-999999.sock"; do
		[ ! -e "$dir/$name" ] || left+="${name/#$gone/gone} "
		rm -f "${dir:?}/$name"
	done
	need_equal "what is left" "${left% *[0-9]-999999.sock }" 'gone-2.sock gone-3.sock gone-4.sock gone-5.sockets'
	stop "$server"
	stop "$who"
}
stale_socket() {
	serve
	keep client hello
	kill -9 "$server"
	finish "$server" 5
	stop "$notified"
	socket_is_there || fail "no socket is left: what is tried here?"
	xdp_off $NS_A $IF_A || fail "XDP outlives the broker"
	finish "$kept" 5
	need_line client '^hold end$'
	wait_until 5 taps_are xrt 0 || fail "TAP devices outlive the broker and its client"
	serve
	ask hello hello
	need_line hello '^hello 0 '
	end_server
	echo text >"$SOCKET"
	in_a timeout 10 "$XROCE" serve $IF_A >"$WORK/second.out" 2>&1
	need_equal "exit status beside a file" $? 1
	need_equal "the file" "$(cat "$SOCKET")" text
	rm -f "$SOCKET"
	xdp_off $NS_A $IF_A || fail "XDP is left"
}

# What a dead broker's living clients keep, the next one takes.
left_by_a_killed_one() {
	local left
	serve
	start orphan a setsid "$ASKER" "$SOCKET" hello hold
	kept=$child
	wait_until 5 grep -q '^hold' "$WORK/orphan.out"
	kill -STOP "$kept"
	kill -9 "$server"
	finish "$server" 5
	stop "$notified"
	need_equal "TAP devices of a client that lives" "$(taps xrt)" 2
	# the redirecting programs ended with the broker
	ip -n $NS_A -o link show type tun | grep -q xdp && fail "an XDP program stays"
	left=$(ip -n $NS_A -o link show type tun | cut -d: -f1 | paste -sd '|')
	serve
	ip -n $NS_A -o link show type tun | grep -qE "^($left):" && fail "the old broker's TAP devices stay"
	kill -CONT "$kept"
	finish "$kept" 5
	end_server
}

interface_goes() {
	serve
	keep client hello
	ip -n $NS_A link del $IF_A
	finish "$server" 10 || fail "it ends with $?"
	need_line serve 'the interface was removed'
	finish "$kept" 5
	need_line client '^hold end$'
	socket_is_there && fail "a socket is left"
	taps_are xrt 0 || fail "TAP devices are left"
	stop "$notified"
	netns_cleanup_pair
}
# A new pair, in the same namespaces.
netns_cleanup_pair() {
	ip link add $IF_A mtu 4500 netns $NS_A type veth peer name $IF_B mtu 4500 netns $NS_B || return 1
	netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
	netns_host $NS_B $IF_B $MAC_B $IP4_B $IP6_B
	netns_wait_ready
	index_a=$(ip -n $NS_A -o link show $IF_A | cut -d: -f1)
	SOCKET=/run/xroce/$(stat -L -c %i /run/netns/$NS_A)-$index_a.sock
}

# elements PID MAP: their number. The broker's own map of a name is its oldest; its spare instances'
# are newer.
gids() { elements "$server" xroce_gid; }
gids_are() { [ "$(gids)" = "$1" ]; }

addresses() {
	local before
	serve
	before=$(gids)
	need_least "addresses" "$before" 3
	ip -n $NS_A addr add 10.77.9.9/24 dev $IF_A
	wait_until 5 gids_are $((before + 1)) || fail "a new address is not heard of"
	ip -n $NS_A addr del 10.77.9.9/24 dev $IF_A
	wait_until 5 gids_are "$before" || fail "an address that has gone stays"
	end_server
}

# Two interfaces of a namespace: each broker knows the other's addresses, of another process too.
near() { elements "$1" xroce_neighbour; }
near_is() { [ "$(near "$1")" = "$2" ]; }
two_interfaces() {
	local other
	ip -n $NS_A link add two type veth peer name owt
	nsenter --net=/run/netns/$NS_A sh -c 'echo 1 >/proc/sys/net/ipv6/conf/two/disable_ipv6'
	ip -n $NS_A addr add 10.78.0.1/24 dev two
	ip -n $NS_A link set two up
	serve
	near_is "$server" 0 || fail "near before there is another"
	start other a "$XROCE" serve two
	other=$child
	wait_until 5 near_is "$server" 1 || fail "the other's addresses: $(near "$server")"
	ip -n $NS_A addr add 10.78.0.2/24 dev two
	wait_until 5 near_is "$server" 2 || fail "the other's new address: $(near "$server")"
	ip -n $NS_A addr del 10.78.0.2/24 dev two
	wait_until 5 near_is "$server" 1 || fail "an address that the other has lost: $(near "$server")"
	wait_until 5 near_is "$other" "$(gids)" || fail "near to the second: $(near "$other") of $(gids)"
	in_a "$XROCE" list >"$WORK/list.out"
	need_no_line list xroce_xrt
	in_a "$XROCE" stop two || fail "stop ends with $?"
	finish "$other" 5 || fail "the other ends with $?"
	wait_until 5 near_is "$server" 0 || fail "near when it has gone: $(near "$server")"
	end_server
	# one process for both; each ends by itself
	start both a "$XROCE" serve $IF_A two
	other=$child
	wait_until 5 socket_is_there
	in_a "$XROCE" stop $IF_A || fail "stop of one ends with $?"
	is_gone_or_zombie "$other" && fail "stop of one ends both"
	in_a "$XROCE" list two >"$WORK/list.out"
	need_line list "^  broker    pid $other "
	in_a "$XROCE" stop two || fail "stop of the other ends with $?"
	finish "$other" 5 || fail "it ends with $?"
	ip -n $NS_A link del two
	taps_are xrt 0 || fail "TAP devices are left"
}

# The IPv4 addresses of an interface without a broker, on the same network, have a next hop: its
# link-local address.
interface_beside() {
	ip -n $NS_A link add two address 02:aa:77:00:00:09 type veth peer name owt
	nsenter --net=/run/netns/$NS_A sh -c 'echo 0 >/proc/sys/net/ipv6/conf/two/accept_dad'
	ip -n $NS_A addr add 10.77.0.9/24 dev two
	ip -n $NS_A addr add 10.78.0.9/24 dev two
	serve
	near_is "$server" 0 || fail "near while it is down"
	ip -n $NS_A link set owt up
	ip -n $NS_A link set two up
	wait_until 5 near_is "$server" 1 || fail "its addresses: $(near "$server")"
	bpftool map dump id "$(map_id "$server" xroce_neighbour | sort -n | head -1)" >"$WORK/near.out"
	need_line near '"hairpin": 0,'
	# fe80::aa:77ff:fe00:9
	need_equal "the next hop" "$(tr -d ' \n' <"$WORK/near.out" | grep -oE '"next_hop":\[[^]]*')" \
		'"next_hop":[254,128,0,0,0,0,0,0,0,170,119,255,254,0,0,9'
	ip -n $NS_A link del two
	wait_until 5 near_is "$server" 0 || fail "near when it has gone"
	end_server
}

# From outside of the namespace.
other_namespace() {
	"$XROCE" serve --netns $NS_A $IF_A >"$WORK/serve.out" 2>&1 &
	server=$!
	netns_children+=("$server")
	wait_until 5 socket_is_there || { fail "it does not serve"; show serve; }
	ask hello hello
	need_line hello '^hello 0 '
	in_a "$XROCE" stop $IF_A || fail "stop ends with $?"
	finish "$server" 5 || fail "it ends with $?"
	keep_namespace=$(in_a sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!')
	"$XROCE" serve --netns "$keep_namespace" $IF_A >"$WORK/serve.out" 2>&1 &
	server=$!
	netns_children+=("$server")
	wait_until 5 socket_is_there || { fail "it does not serve by a process's number"; show serve; }
	kill "$keep_namespace"
	in_a "$XROCE" stop $IF_A || fail "stop ends with $?"
	finish "$server" 5 || fail "it ends with $?"
}

# looks NAME PID WHO...: as WHO, at that process, in which nothing happens.
looks() {
	local name=$1 pid=$2 rc
	shift 2
	in_a timeout 20 "$@" "$WORK/open/xroce" trace -D 1 -p "$pid" $IF_A >"$WORK/$name.out" 2>&1
	rc=$?
	need_equal "status and words of trace, $name" "$rc $(cat "$WORK/$name.out")" "0 "
	in_a timeout 20 "$@" "$WORK/open/xroce" stat --json --pid "$pid" >"$WORK/$name.out" 2>&1 || fail "stat ends with $?"
	need_line "$name" "\"pid\": *$pid[,}]"
}

# As in the unit: exactly these capabilities, and the machine's BPF file system. All commands that
# inspect clients work, through read-only maps.
few_capabilities() {
	local bounding=-all,+net_admin,+bpf,+perfmon,+chown as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	start serve a unshare -m sh -c 'mount -t bpf -o mode=0700 bpf /sys/fs/bpf && exec "$@"' sh \
		setpriv --bounding-set=$bounding "$XROCE" serve --group 65534 --mode 0660 --max-memory 51 $IF_A
	server=$child
	wait_until 5 socket_is_there || { fail "it does not serve"; show serve; }
	ask_nobody other keeps 20
	need_line other '^keeps 5 EDQUOT 0$'
	ask_nobody other hello draws 5 ring
	need_line other '^hello 0 '
	need_line other '^draws 5 0$'
	need_line other '^ring 0 fds 1$'
	start other a "${as[@]}" "$ASKER" "$SOCKET" hello maps 0 0 hold
	wait_until 5 grep -q '^hold' "$WORK/other.out" || fail "no port"
	need_line other '^maps 0 fds 16 written 0 mapped 0 names .*xroce_qp( |$)'
	looked=$child
	looks own "$looked" "${as[@]}"
	need_equal "names that are left" "$(nsenter -t "$server" -m ls /sys/fs/bpf | grep -c xroce)" 0
	stop "$looked"
	in_a "$XROCE" stop $IF_A || fail "stop ends with $?"
	finish "$server" 5 || fail "it ends with $?"
	nothing_left || fail "something is left"
}

# A client that freezes all it can of its maps is inspected like any other.
frozen() {
	serve
	start other a setpriv --reuid 65534 --regid 65534 --clear-groups "$ASKER" "$SOCKET" freeze hold
	wait_until 5 grep -q '^hold' "$WORK/other.out" || fail "no port"
	looked=$child
	need_line other '^freeze [0-9]+ engine EBUSY$'
	looks root "$looked" env
	stop "$looked"
	end_server
}

shown() {
	serve
	keep client hello claims 100 3
	start other a setpriv --reuid 65534 --regid 65534 --clear-groups "$ASKER" "$SOCKET" hello draws 1 hold
	wait_until 5 grep -q '^hold' "$WORK/other.out"
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list 'program [0-9]+ xroce_mux, of a broker$'
	need_line list "^  broker    pid $server \\(xroce\\)$"
	need_line list "^  client    [0-9]+: pid $kept \\(asker\\) of root, 3 QPs; received 0 frames by its ring; sent by TAP device 0, and 0 to processes here; uses 10.0 MiB of kernel memory$"
	need_line list "^  client    [0-9]+: pid $child \\(asker\\) of [a-z]+, 1 QP;"
	need_no_line list 'in use'
	nobody "$WORK/open/xroce" list $IF_A >"$WORK/list.out"
	need_line list "pid $child "
	need_no_line list "pid $kept "
	stop "$child"
	stop "$kept"
	end_server
}

run_case broker_serve_and_stop serve_and_stop
run_case broker_signals signals
run_case broker_modes modes
run_case traced_in_user_namespace traced_in_user_namespace
run_case broker_wrong_usage wrong_usage
run_case broker_second second
run_case broker_refused_directories refused_directories
run_long_case broker_given_back given_back
run_case broker_stale_socket stale_socket
run_long_case broker_dead_sockets dead_sockets
run_case broker_left_by_a_killed_one left_by_a_killed_one
run_case broker_interface_goes interface_goes
run_case broker_addresses addresses
run_long_case broker_two_interfaces two_interfaces
run_long_case broker_interface_beside interface_beside
run_long_case broker_other_namespace other_namespace
run_case broker_few_capabilities few_capabilities
run_case broker_frozen frozen
run_long_case broker_shown shown
finish_cases
