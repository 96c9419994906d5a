#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# needs: alone
#
# XROCE_PORT=sockets: unmodified programs of a user without any capability, whose broker receives by
# UDP sockets: between hosts, on one host, on lo; what observers see; what ends leave. Alone:
# docs/sockets.md, "busy processors".
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
# a number that a user namespace keeps
USER_ID=4321
NOBODY=(setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups --inh-caps=-all --bounding-set=-all)
chown $USER_ID:$USER_ID "$OWN/home"
install -m 755 "$TOOLS/cm_crowd" "$OWN/bin"
export XROCE_PORT=sockets HOME=$OWN/home
RUN=("${NOBODY[@]}" "$OWN/bin/xroce" run)

# nothing_is_left NS: no program on the hook, no socket at the port.
nothing_is_left() {
	[ -z "$(in_ns "$1" ss -Huan 'sport = 4791')" ] && ! in_ns "$1" ip link show | grep -q xdp
}
none_is_left() { nothing_is_left a && nothing_is_left b; }
need_nothing_left() { wait_until 20 none_is_left || fail "left: $(in_a ss -uan; in_b ss -uan; in_a ip link)"; }

# both CLIENT_NS CLIENT_DEV ADDRESS PORT COMMAND...: a server on A, and the same as a client.
both() {
	local ns=$1 dev=$2 address=$3 port=$4 server rc
	shift 4
	start server a "${RUN[@]}" --dev "${SERVER_DEV:-$IF_A}" -- "$@"
	server=$child
	wait_until 10 listens_or_gone a "$port" "$server"
	start client "$ns" "${RUN[@]}" --dev "$dev" -- "$@" "$address"
	finish "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc: $*"; show client; stop "$server"; show server; return 1; }
	finish "$server" 10 || { fail "the server ended with $?: $*"; show server; }
}

# The pingpongs check the data that they get.
pingpong() { both b $IF_B $IP4_A 18515 "ibv_$1_pingpong" -c -n 200 "${@:2}"; }
pingpongs() {
	pingpong rc -g 0 && pingpong ud -g 0 -s 1024
	need_nothing_left
}
more_pingpongs() {
	pingpong uc -g 0 && pingpong srq -g 0 && pingpong rc -g 0 -e && pingpong rc -g 1
	need_nothing_left
}

perftest() {
	both b $IF_B $IP4_A 18515 ib_write_bw -x 0 -F -n 500 -s 65536 || return
	both b $IF_B $IP4_A 18515 ib_send_bw -x 0 -F -n 5000 -s 64 || return
	both b $IF_B $IP4_A 18515 ib_read_bw -x 0 -F -n 500 -s 65536 || return
	both b $IF_B $IP4_A 18515 ib_atomic_bw -x 0 -F -n 500 || return
	both b $IF_B $IP4_A 18515 ib_send_bw -x 0 -F -c UD -n 2000 -s 1024 || return
	both b $IF_B $IP4_A 18515 ib_write_lat -x 0 -F -n 500
}

# Two processes of one broker, and of one on lo.
one_host() {
	both a $IF_A $IP4_A 18515 ibv_rc_pingpong -g 0 -c -n 200 || return
	both a $IF_A $IP4_A 18515 ib_write_bw -x 0 -F -n 500 -s 65536 || return
	SERVER_DEV=lo both a lo 127.0.0.1 18515 ibv_rc_pingpong -g 0 -c -n 200
	need_nothing_left
}

# crowd SERVER_NS: connections by rdma_cm, whose messages are checked.
crowd() {
	local server
	start server a "${RUN[@]}" --dev $IF_A -- "$OWN/bin/cm_crowd" serve $IP4_A
	server=$child
	wait_until 20 grep -q '^ready' "$WORK/server.out" || { fail "no server"; show server; }
	for _ in 1 2; do
		start often "$1" "${RUN[@]}" --dev "$2" -- "$OWN/bin/cm_crowd" connect $IP4_A 4 5 10
		finish "$child" 60 || { fail "the client ended with $?"; show often; }
		need_line often '^cm_crowd: 20 connections$'
	done
	is_gone_or_zombie "$server" && { fail "the server has ended"; show server; }
	stop "$server"
	need_nothing_left
}
crowds() { crowd b $IF_B && crowd a $IF_A; }

# A killed process is one client less. Its peer learns of it from the transport.
killed() {
	local server peer
	start server a "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0 -n 1000000
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start peer b "${RUN[@]}" --dev $IF_B -- ibv_rc_pingpong -g 0 -n 1000000 $IP4_A
	peer=$child
	wait_until 20 has_traffic || fail "no packets"
	kill -9 "$server"
	finish "$server" 10
	finish "$peer" 60 && fail "the peer of a killed process succeeded"
	both b $IF_B $IP4_A 18515 ibv_rc_pingpong -g 0 -c -n 100
	need_nothing_left
}

# A killed broker is the end of its clients' device: the requests of one at work are flushed, and an
# idle one lives on. The next process has a broker at once.
broker_killed() {
	local idle victim peer broker
	start idle a "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0 -p 18700
	idle=$child
	wait_until 10 listens_or_gone a 18700 "$idle"
	start victim a "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0 -n 1000000
	victim=$child
	wait_until 10 listens_or_gone a 18515 "$victim"
	start peer b "${RUN[@]}" --dev $IF_B -- ibv_rc_pingpong -g 0 -n 1000000 $IP4_A
	peer=$child
	wait_until 20 has_traffic || fail "no packets"
	broker=$(look list $IF_A | sed -n 's/^  broker *pid \([0-9]*\) .*/\1/p')
	kill -9 "$broker" || fail "no broker"
	both b $IF_B $IP4_A 18516 ibv_rc_pingpong -p 18516 -g 0 -c -n 100
	finish "$victim" 10 && fail "a client of a killed broker succeeded"
	need_line victim 'Work Request Flushed Error'
	finish "$peer" 60 && fail "its peer succeeded"
	is_gone_or_zombie "$idle" && { fail "the idle client has ended"; show idle; }
	stop "$idle"
	need_nothing_left
}
look() { in_a "${NOBODY[@]}" "$OWN/bin/xroce" "$@"; }
# A client has received 100 packets and more.
has_traffic() { look clients --json 2>&1 | grep -qE '"rx_packets": *[1-9][0-9]{2}'; }

# The user sees the own process as with any broker.
observed() {
	local server
	start server a "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0 -n 1000000
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start peer b "${RUN[@]}" --dev $IF_B -- ibv_rc_pingpong -g 0 -n 1000000 $IP4_A
	wait_until 20 has_traffic || fail "no packets"
	look qp >"$WORK/qp.out" 2>&1
	need_line qp "^$IF_A +0x[0-9a-f]+ +RC +rts .*ibv_rc_pingpong +$IP4_B "
	look explain >"$WORK/explain.out" 2>&1
	# whatever else it says of a busy machine
	need_line explain 'its rings: received [1-9][0-9]* frames, lost 0; checks dropped 0; the kernel refused 0'
	look stat >"$WORK/stat.out" 2>&1
	need_line stat ' tx_udp +[1-9]'
	look trace --duration 1 >"$WORK/trace.out" 2>&1
	need_line trace " < .*SEND_"
	need_line trace " > .*SEND_"
	look list $IF_A >"$WORK/list.out" 2>&1
	need_line list '^  XDP +nothing attached, as the broker receives by UDP sockets$'
	need_line list '^  broker +pid [0-9]+ \(xroce\), receives by UDP sockets'
	need_line list 'ibv_rc_pingpong.*; sends by its own UDP sockets'
	need_no_line list 'sends by  |TAP device|AF_XDP'
	need_line list '^  path MTU +4096$'
	look list --json $IF_A >"$WORK/list.out" 2>&1
	need_line list '"receives_by": *"UDP sockets"'
	need_line list '"sends_by": *"udp"'
	look doctor $IF_A >"$WORK/doctor.out" 2>&1
	need_line doctor "^ok    $IF_A XDP mode: none: ports use UDP sockets"
	need_line doctor "^ok    $IF_A broker: .* can use the interface, by UDP sockets"
	need_no_line doctor "$IF_A (queues|MTU: .*redirected)"
	stop "$child"
	stop "$server"
	need_nothing_left
}

# The user captures each packet that the own processes count, in both directions, and its ICRC is
# right: of super-packets, and of single packets.
traces() { ls -l "/proc/$1/fd" 2>/dev/null | grep -q 'memfd:xroce_trace'; }
counted() { sed -nE "s/^xroce: .*packets in ([0-9]+) out ([0-9]+) .*/\\$1/p" "$WORK/server.out"; }
captured_of() {
	local gid=$1 size=$2 server capa
	rm -f "$OWN/home/whole.pcapng"
	start capa a "${NOBODY[@]}" "$OWN/bin/xroce" capture -w "$OWN/home/whole.pcapng" $IF_A
	capa=$child
	start server a "${NOBODY[@]}" env XROCE_COUNTERS=1 "$OWN/bin/xroce" run --dev $IF_A -- \
		ibv_rc_pingpong -g "$gid" -c -n 100 -s "$size"
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	wait_until 10 traces "$capa" || fail "it does not look"
	start client b "${RUN[@]}" --dev $IF_B -- ibv_rc_pingpong -g "$gid" -c -n 100 -s "$size" $IP4_A
	finish "$child" 60 || { fail "the client ended with $?"; show client; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	kill -INT "$capa"
	finish "$capa" 20 || { fail "capture ends with $?"; show capa; }
	python3 -B "$here/tests/netns/lib/pcapng.py" "$OWN/home/whole.pcapng" >"$WORK/packets.out" 2>&1
	need_equal "packets received" "$(grep -c '^in icrc' "$WORK/packets.out")" "$(counted 1)"
	need_equal "packets sent" "$(grep -c '^out icrc' "$WORK/packets.out")" "$(counted 2)"
	need_no_line packets '^(in|out|none) (wrong|short)'
	need_line capa ' 0 packets lost'
}
captured() {
	captured_of 0 16384
	captured_of 1 64
	need_nothing_left
}

# `xroce list` shows where a process listens by rdma_cm.
listed() {
	local server
	start server a "${RUN[@]}" --dev $IF_A -- "$OWN/bin/cm_crowd" serve $IP4_A
	server=$child
	wait_until 20 grep -q '^ready' "$WORK/server.out" || { fail "no server"; show server; }
	look list $IF_A >"$WORK/list.out" 2>&1
	need_line list "^  listens   pid $server \(cm_crowd\): TCP port [0-9]+ at $IP4_A$"
	look list --json $IF_A >"$WORK/list.out" 2>&1
	need_line list "\"address\": *\"$IP4_A\""
	stop "$server"
	need_nothing_left
}

# Another program has the port: the message names port and address.
taken() {
	local other
	start other a python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 4791))
print("bound", flush=True)
time.sleep(60)' $IP4_A
	other=$child
	wait_until 10 grep -q bound "$WORK/other.out"
	start refused a "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0
	finish "$child" 20 && fail "a port without its socket"
	need_line refused "UDP port 4791 of $IP4_A is in use"
	stop "$other"
}

# A new address whose port another program has, as when an address moves between two interfaces: the
# broker receives as soon as the port is free.
moved() {
	local server other
	start server a "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start other a python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND
s.bind((sys.argv[1], 4791))
print("bound", flush=True)
time.sleep(60)' 10.77.9.1
	other=$child
	wait_until 10 grep -q bound "$WORK/other.out"
	in_a ip address add 10.77.9.1/24 dev $IF_A
	wait_until 10 lists 10.77.9.1 || fail "the broker does not follow"
	stop "$other"
	wait_until 10 receives_at 10.77.9.1 || fail "the address stays without a socket"
	in_a ip address del 10.77.9.1/24 dev $IF_A
	stop "$server"
	need_nothing_left
}
lists() { look list $IF_A | grep -q "ffff:$1 "; }
receives_at() { in_a ss -Huanp "src $1:4791" | grep -q xroce; }

# A program with a preloaded library: the broker that it starts has none.
preloaded() {
	start server a "${RUN[@]}" --rsockets --dev $IF_A -- python3 -c "
import socket
s = socket.create_server(('$IP4_A', 7475))
c, _ = s.accept()
c.sendall(c.recv(100))"
	server=$child
	wait_until 20 serves_rsockets || fail "no listener"
	start client b "${RUN[@]}" --rsockets --dev $IF_B -- python3 -c "
import socket
c = socket.create_connection(('$IP4_A', 7475))
c.sendall(b'there and back')
assert c.recv(100) == b'there and back'
print('good')"
	finish "$child" 30 || { fail "the client ended with $?"; show client; show server; }
	need_line client '^good$'
	stop "$server"
	need_nothing_left
}
serves_rsockets() { look list $IF_A | grep -q 'bound to 1 service'; }

# One end by XDP in generic mode, which gets super-packets uncut: they cost no retransmission. veth
# carries single packets of this length as well.
with_xdp() {
	local server end sent size=$1
	start server a "${RUN_A[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0 -c -n 100 -s "$size"
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start client b "${RUN_B[@]}" --dev $IF_B -- ibv_rc_pingpong -g 0 -c -n 100 -s "$size" $IP4_A
	finish "$child" 60 || { fail "the client ended with $?"; show client; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	# without retransmissions 100 messages and an acknowledgement or two of each
	for end in server client; do
		sent=$(sed -nE 's/^xroce: .*packets in [0-9]+ out ([0-9]+) .*/\1/p' "$WORK/$end.out")
		[ "${sent:-0}" -ge 100 ] && [ "$sent" -le $((2 * 100 * (2 + size / 1024))) ] ||
			{ fail "$end sent ${sent:-no} packets"; show $end; }
	done
}
mixed() {
	local by_xdp=(env XROCE_PORT=xdp XROCE_SHARE=always XROCE_COUNTERS=1 "$XROCE" run)
	local by_sockets=("${NOBODY[@]}" env XROCE_COUNTERS=1 "$OWN/bin/xroce" run)
	RUN_A=("${by_xdp[@]}") RUN_B=("${by_sockets[@]}")
	with_xdp 16384
	with_xdp 64
	RUN_A=("${by_sockets[@]}") RUN_B=("${by_xdp[@]}")
	with_xdp 16384
	need_nothing_left
}

# says_raw NUMBER RUN...: the raw packet QPs that ibv_query_device() announces
says_raw() {
	local number=$1
	shift
	in_a "$@" --dev $IF_A -- ibv_devinfo -v >"$WORK/devinfo.out" 2>&1
	need_line devinfo "max_raw_ethy_qp:[[:space:]]+$number\$"
}

# The default: XDP where it is possible, else sockets, after one line that says why.
auto() {
	local server
	unset XROCE_PORT
	both b $IF_B $IP4_A 18515 ibv_rc_pingpong -g 0 -c -n 100
	need_line server "^xroce: $IF_A: no privileges for XDP: using UDP sockets"
	need_nothing_left
	# raw packet QPs are reported to root only
	says_raw 0 "${RUN[@]}"
	says_raw '[1-9][0-9]*' "$XROCE" run
	# nor where the port would be a shared one
	says_raw 0 env XROCE_SHARE=always "$XROCE" run
	in_a "$XROCE" serve --background --port xdp $IF_A || fail "no broker"
	says_raw 0 "$XROCE" run
	in_a "$XROCE" stop $IF_A || fail "the broker does not end"
	# root, and another XDP program on the interface, which stays
	# ip mounts bpffs
	in_a unshare --mount ip link set dev $IF_A xdpgeneric obj "$WORK/pass.o" sec xdp || { fail "no other program"; return; }
	start server a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -g 0 -c -n 100
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start client b "$XROCE" run --dev $IF_B -- ibv_rc_pingpong -g 0 -c -n 100 $IP4_A
	finish "$child" 60 || { fail "the client ended with $?"; show client; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	need_line server "^xroce: $IF_A: cannot attach the XDP program: .*pass"
	need_line server "^xroce: $IF_A: using UDP sockets"
	[ "$(grep -c . "$WORK/client.out")" = "$(grep -vc ^xroce "$WORK/client.out")" ] || { fail "a line of root's client"; show client; }
	in_a ip link show dev $IF_A | grep -q xdpgeneric || fail "the other program is gone"
	# a request for XDP is one, but for a broker that is there
	wait_until 10 has_no_socket || fail "the broker does not end"
	XROCE_PORT=xdp start refused a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -g 0
	finish "$child" 20 && fail "a port beside another program"
	wait_until 10 has_no_socket || fail "the broker does not end"
	XROCE_XDP=generic start refused a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -g 0
	finish "$child" 20 && fail "a port beside another program"
	in_a ip link set dev $IF_A xdpgeneric off
	export XROCE_PORT=sockets
}
# at_once SECONDS [WORD...]: processes that start at such intervals, after these words. One prints
# the reason, and none takes a broker that is starting for one without its socket here.
at_once() {
	local i all=()
	unset XROCE_PORT
	for i in {1..12}; do
		start once_$i a "${@:2}" "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0 -p $((18600 + i))
		all+=("$child")
		[ "$1" = 0 ] || read -r -t "$1" <>"$WORK/quiet"
	done
	for i in {1..12}; do
		wait_until 20 listens_or_gone a $((18600 + i)) "${all[i - 1]}"
	done
	cat "$WORK"/once_{1..12}.out >"$WORK/once.out"
	need_equal "lines that give the reason" "$(grep -c 'using UDP sockets' "$WORK/once.out")" 1
	need_equal "all lines of xroce" "$(grep -c '^xroce: ' "$WORK/once.out")" 1 || show once
	for i in "${all[@]}"; do
		stop "$i"
	done
	export XROCE_PORT=sockets
	need_nothing_left
}
# shellcheck disable=SC2016
private_run=(unshare --mount sh -c 'mount -t tmpfs -o mode=755 none /run && exec "$@"' sh)
pass_object() {
	cat >"$WORK/pass.c" <<'END'
__attribute__((section("xdp"), used)) int pass(void *ctx) { return 2; }
char licence[] __attribute__((section("license"), used)) = "GPL";
END
	clang -O2 -g -target bpf -c "$WORK/pass.c" -o "$WORK/pass.o"
}

# RLIMIT_FSIZE of 0, which ends a process that writes to a file: the library writes none, and a
# broker that it starts raises the limit.
small_files() {
	# shellcheck disable=SC2016
	both b $IF_B $IP4_A 18515 bash -c 'set -o pipefail; prlimit --fsize=0:unlimited "$@" | cat' \
		limited ibv_rc_pingpong -g 0 -c -n 100
	# the server's broker, which has no limit
	need_nothing_left
	start hard a prlimit --fsize=1048576:1048576 "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0
	finish "$child" 20 && fail "a port with files of 1 MiB"
	need_line hard "^xroce: $IF_A: cannot .*: the limit of a file's size .* is too low"
	need_nothing_left
}

# A program that closes the library's descriptors, and one that enters a directory without /proc.
closes_all() {
	local how
	mkdir -p "$WORK/files" "$WORK/empty"
	for how in closes leaves; do
		start $how a "$XROCE" run --dev $IF_A -- "$TOOLS/closer" $how "$WORK/files"
		finish "$child" 20 || { fail "$how ended with $?"; show $how; }
		need_line $how '^0 files were closed$'
	done
	need_line closes "^xroce: $IF_A: this program has closed descriptors of libibverbs"
	start closer a "$XROCE" run --dev $IF_A -- "$TOOLS/closer" chroot "$WORK/empty"
	finish "$child" 20 || { fail "in a directory without /proc it ended with $?"; show closer; }
	need_nothing_left
}

# Answers by the GRH of a single datagram (ibv_init_ah_from_wc()): its IPv4 checksum is correct.
answers() {
	local server
	start server a "${RUN[@]}" --dev $IF_A -- udaddy -C 1 -c 1
	server=$child
	wait_until 10 is_bound || fail "udaddy does not listen"
	start client b "${RUN[@]}" --dev $IF_B -- udaddy -C 1 -c 1 -s $IP4_A
	finish "$child" 30 || { fail "the client ended with $?"; show client; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	need_nothing_left
}
is_bound() { look list $IF_A 2>&1 | grep -q 'bound to 1 service'; }

# Another user listens at the addresses of brokers and of the interface's holder, and does not
# answer: no program waits for it, takes a port from it, or takes it for root. In the user namespace
# of `xroce run` neither has a number.
squatted() {
	local index other user
	index=$(ip -n $NS_A -o link show dev $IF_A | cut -d: -f1)
	start other a setpriv --reuid=4322 --regid=4322 --clear-groups /usr/bin/python3 -c 'import socket, sys, time
all = []
for name in sys.argv[1:]:
    user = "/user/" in name
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if user else socket.SOCK_STREAM)
    s.bind("\0" + name)
    s.listen(0 if user else 64)
    all.append(s)
print("bound", flush=True)
time.sleep(60)' "xroce/$index/user/0" "xroce/$index/user/$USER_ID" "xroce/$index" "xroce/$index/alone"
	other=$child
	wait_until 10 grep -q bound "$WORK/other.out"
	both b $IF_B $IP4_A 18515 ibv_rc_pingpong -g 0 -c -n 100
	need_nothing_left
	XROCE_PORT=auto start server a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -g 0 -c -n 100
	user=$child
	wait_until 10 listens_or_gone a 18515 "$user"
	start client b "${RUN[@]}" --dev $IF_B -- ibv_rc_pingpong -g 0 -c -n 100 $IP4_A
	finish "$child" 30 || { fail "the client ended with $?"; show client; }
	finish "$user" 10 || { fail "root's server ended with $?"; show server; }
	stop "$other"
	need_nothing_left
}

# Another user's broker has the interface: `doctor` and `stop` name it. Of the broker that it starts
# itself `doctor` does not warn.
foreign() {
	local server claims="process [0-9]+ \\(xroce\\) of another user claims the interface"
	in_a "${NOBODY[@]}" env -u XROCE_PORT "$OWN/bin/xroce" doctor $IF_A >"$WORK/own.out" 2>&1
	need_line own "^ok +$IF_A port: a program can open one, by UDP sockets"
	need_no_line own 'XDP hook: in use'
	need_nothing_left
	start server a "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0 -e
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	in_a "$XROCE" doctor $IF_A >"$WORK/root.out" 2>&1
	need_line root "^warn +$IF_A broker: none for this user; $claims -> end it"
	in_a setpriv --reuid=4322 --regid=4322 --clear-groups "$OWN/bin/xroce" doctor $IF_A >"$WORK/other.out" 2>&1
	need_line other "^warn +$IF_A broker: none for this user; $claims"
	need_line other "^FAIL +$IF_A port: UDP port 4791 .* $claims"
	in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 && fail "stop succeeds"
	need_line stop "^xroce stop: .*: $claims; .kill [0-9]+. ends it"
	stop "$server"
	need_nothing_left
}

# A broker of root's takes the interface: the device of a user's broker is lost.
rival() {
	local server
	start server a "${RUN[@]}" --dev $IF_A -- ibv_rc_pingpong -g 0 -e
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	XROCE_PORT=xdp serve a $IF_A || return
	wait_until 10 has_no_socket || fail "the user's broker goes on"
	stop "$broker"
	stop "$server"
	need_nothing_left
}
has_no_socket() { [ -z "$(in_a ss -Huan 'sport = 4791')" ]; }

pass_object
run_case pingpongs pingpongs
run_case mixed mixed
run_case auto auto
run_case at_once at_once 0
run_long_case at_once_in_containers at_once 0.01 "${private_run[@]}"
run_long_case rival rival
run_case foreign foreign
run_long_case answers answers
run_long_case small_files small_files
run_long_case closes_all closes_all
run_long_case squatted squatted
run_case one_host one_host
run_long_case more_pingpongs more_pingpongs
run_long_case crowds crowds
run_case observed observed
run_case captured captured
run_case listed listed
run_long_case preloaded preloaded
run_case taken taken
run_long_case moved moved
run_long_case perftest perftest
run_long_case killed killed
run_case broker_killed broker_killed
finish_cases
