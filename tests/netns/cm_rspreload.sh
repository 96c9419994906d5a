#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Programs that know nothing of rsockets, with librspreload.so (`xroce run --rsockets`): select()
# and poll(), copies of descriptors, threads, a server that forks; a peer without rsockets, and
# peers that receive nothing.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/cm.sh"

for program in iperf3 rstream udpong curl; do
	command -v $program >/dev/null || { echo "skip cm_rspreload no $program"; exit 0; }
done
netns_pair 4500

rs_a() { in_a "$XROCE" run --rsockets --dev $IF_A -- "$@"; }
rs_b() { in_b "$XROCE" run --rsockets --dev $IF_B -- "$@"; }
# serve NAME COMMAND...: in A, on rsockets
serve() {
	local name=$1
	shift
	start "$name" a "$XROCE" run --rsockets --dev $IF_A -- "$@"
}

# ask SERVER COMMAND...: a client in B, once the server listens.
ask() {
	local server=$1
	shift
	cm_wait_listening "$server" || { echo "# nobody listens" >"$WORK/client.out"; return 1; }
	rs_b timeout 60 "$@" >"$WORK/client.out" 2>&1
}

no_tcp() {
	in_a ss -Htln "sport = :$1" | grep -q . && fail "it listens at port $1 of TCP"
	return 0
}

transfer() {
	local address=$1
	shift
	serve server iperf3 -s -1 -B "$address"
	local server=$child
	ask "$server" iperf3 -c "$address" -n 5M "$@" ||
		{ fail "the client ended with $?"; show client; }
	no_tcp 5201
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
	need_line client ' receiver'
}

# The same options for both, on their kernel's sockets as the program has it.
sockets() {
	serve server rstream -T s "$@" -b $IP4_A
	local server=$child
	ask "$server" rstream -s $IP4_A -T s "$@" ||
		{ fail "the client ended with $?"; show client; show server; }
	no_tcp 7471
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
}

datagrams() {
	serve server udpong -T s -b $IP4_A
	local server=$child
	wait_until 10 in_a sh -c 'ss -Huln sport = :7174 | grep -q .' || fail "no server"
	rs_b timeout 60 udpong -T s -s $IP4_A -S 1000 -C 500 >"$WORK/client.out" 2>&1 ||
		{ fail "the client ended with $?"; show client; show server; }
	stop "$server"
}

# TCP carries the first bytes of a connection whose server may fork.
forks() {
	export RDMAV_FORK_SAFE=1
	serve server timeout 90 rstream -T f -T b -S 10000 -C 100
	local server=$child
	wait_until 10 in_a sh -c 'ss -Htln sport = :7471 | grep -q .' || fail "no server"
	rs_b timeout 60 rstream -s $IP4_A -T f -T b -S 10000 -C 100 >"$WORK/client.out" 2>&1 ||
		{ fail "the client ended with $?"; show client; show server; }
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
	unset RDMAV_FORK_SAFE
	# 4 MB by TCP would be in its counters
	local octets
	octets=$(in_a nstat -asz IpExtInOctets | awk '/InOctets/ {print $2}')
	[ "${octets:-0}" -lt 1000000 ] || fail "$octets bytes came by TCP or UDP"
}

# The end of the TCP connection is seen before the rsocket that takes its place.
forks_late() {
	export RDMAV_FORK_SAFE=1
	serve server timeout 60 python3 -c "
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('$IP4_A', 7472))
s.listen()
c = s.accept()[0]
c.sendall(c.recv(5)[::-1])"
	local server=$child
	unset RDMAV_FORK_SAFE
	wait_until 10 in_a sh -c 'ss -Htln sport = :7472 | grep -q .' || fail "no server"
	in_b timeout 30 "$XROCE" run --dev $IF_B -- python3 -c "
import ctypes, socket, struct, time
cm = ctypes.CDLL('librdmacm.so.1', use_errno=True)
s = socket.create_connection(('$IP4_A', 7472))
assert s.recv(4, socket.MSG_WAITALL) == bytes(4)
s.close()
time.sleep(0.3)
to = struct.pack('=HH4s8x', socket.AF_INET, socket.htons(7472), socket.inet_aton('$IP4_A'))
rs = cm.rsocket(socket.AF_INET, socket.SOCK_STREAM, 0)
assert rs >= 0 and not cm.rconnect(rs, to, len(to)), ctypes.get_errno()
answer = ctypes.create_string_buffer(5)
assert cm.rsend(rs, b'later', 5, 0) == 5
assert cm.rrecv(rs, answer, 5, socket.MSG_WAITALL) == 5 and answer.raw == b'retal'
" >"$WORK/client.out" 2>&1 || { fail "the client ended with $?"; show client; }
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
}

# serve_python NAME PORT COMMAND...: runs the Python program of standard input in A by COMMAND, with
# `listener` bound to the port, and waits until it listens.
serve_python() {
	local name=$1 port=$2
	shift 2
	{
		echo "import socket, threading"
		echo "listener = socket.socket()"
		echo "listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)"
		echo "listener.bind(('$IP4_A', $port))"
		echo "listener.listen()"
		cat
	} >"$WORK/$name.py"
	start "$name" a "$@" timeout 60 python3 "$WORK/$name.py"
	wait_until 10 in_a sh -c "ss -Htln sport = :$port | grep -q ." || fail "no server"
}
run_a=("$XROCE" run --rsockets --dev $IF_A --)

# fork_client PORT: runs the Python program of standard input in B, with `s` connected to the port.
fork_client() {
	{
		echo "import socket, threading"
		echo "s = socket.create_connection(('$IP4_A', $1))"
		cat
	} >"$WORK/client.py"
	RDMAV_FORK_SAFE=1 rs_b timeout 20 python3 "$WORK/client.py" >"$WORK/client.out" 2>&1 ||
		{ fail "the client ended with $?"; show client; }
}

# One connection, used at first by two threads of each side.
forks_threads() {
	RDMAV_FORK_SAFE=1 serve_python server 7473 "${run_a[@]}" <<-END
		c = listener.accept()[0]
		sender = threading.Thread(target=lambda: c.sendall(b'x' * 100000))
		sender.start()
		got = c.recv(100000, socket.MSG_WAITALL)
		sender.join()
		assert got == b'y' * 100000, len(got)
		assert c.recv(1) == b''
	END
	local server=$child
	fork_client 7473 <<-END
		import struct
		time = struct.pack('ll', 15, 0)
		s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time)
		s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
		sender = threading.Thread(target=lambda: s.sendall(b'y' * 100000))
		sender.start()
		got = s.recv(100000, socket.MSG_WAITALL)
		sender.join()
		assert got == b'x' * 100000, len(got)
		assert s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16) == time
		assert s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
	END
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
}

# Two connections of one process, which become rsockets at the same time. The server counts the
# sockets that are TCP's at the end.
forks_connections() {
	RDMAV_FORK_SAFE=1 serve_python server 7474 "${run_a[@]}" <<-END
		def answer(c):
		    c.sendall(c.recv(5, socket.MSG_WAITALL)[::-1])
		    assert c.recv(1) == b''
		threads = [threading.Thread(target=answer, args=(listener.accept()[0],))
		           for _ in range(2)]
		for t in threads: t.start()
		for t in threads: t.join()
	END
	local server=$child
	fork_client 7474 <<-END
		others = [s, socket.create_connection(('$IP4_A', 7474))]
		def ask(c):
		    c.sendall(b'hello')
		    assert c.recv(5, socket.MSG_WAITALL) == b'olleh'
		threads = [threading.Thread(target=ask, args=(c,)) for c in others]
		for t in threads: t.start()
		for t in threads: t.join()
		with open('/proc/net/tcp') as f:
		    tcp = [line for line in f if ':1D32 01 ' in line]
		assert not tcp, tcp
	END
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
}

# The announcement is no data of the program, also where no rsocket follows it.
forks_refused() {
	serve other rstream -b $IP4_A -p 7500
	local other=$child
	cm_wait_listening "$other" || fail "nobody listens"
	serve_python server 7475 <<-END
		c = listener.accept()[0]
		c.sendall(bytes(4))
		c.sendall(c.recv(5, socket.MSG_WAITALL)[::-1])
	END
	local server=$child
	fork_client 7475 <<-END
		s.sendall(b'hello')
		got = s.recv(5, socket.MSG_WAITALL)
		assert got == b'olleh', got
	END
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
	stop "$other"
}

# A client of TCP, which sends at once: the server does not wait for an rsocket.
forks_tcp_client() {
	RDMAV_FORK_SAFE=1 serve_python server 7476 "${run_a[@]}" <<-END
		c = listener.accept()[0]
		c.sendall(c.recv(5, socket.MSG_WAITALL)[::-1])
	END
	local server=$child
	in_b timeout 15 python3 -c "
import socket
s = socket.create_connection(('$IP4_A', 7476))
s.sendall(b'hello')
got = s.recv(9, socket.MSG_WAITALL)
assert got == bytes(4) + b'olleh', got
" >"$WORK/client.out" 2>&1 || { fail "the client ended with $?"; show client; }
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
}

# It is refused there as an rsocket, and reached by TCP: by a program that waits in connect().
without() {
	head -c 300000 /dev/urandom >"$WORK/page"
	serve other rstream -b $IP4_A -p 7500
	local other=$child
	start server a timeout 60 python3 -m http.server -d "$WORK" 8123
	local server=$child
	wait_until 10 in_a sh -c 'ss -Htln sport = :8123 | grep -q .' || fail "no server"
	rs_b timeout 30 python3 -c "
import socket
s = socket.create_connection(('$IP4_A', 8123))
s.sendall(b'GET /page HTTP/1.0\r\n\r\n')
got = b''.join(iter(lambda: s.recv(65536), b''))
open('$WORK/got', 'wb').write(got.split(b'\r\n\r\n', 1)[1])
" >"$WORK/client.out" 2>&1 ||
		{ fail "the client ended with $?"; show client; }
	cmp "$WORK/page" "$WORK/got" 2>>"$WORK/case.notes" || fail "another page"
	stop "$server"
	stop "$other"
}

# An rsocket that becomes TCP's keeps its options, its address and its port.
keeps_options() {
	serve other rstream -b $IP4_A -p 7500
	local other=$child
	cm_wait_listening "$other" || fail "nobody listens"
	serve_python server 7477 <<-END
		c, peer = listener.accept()
		c.sendall(b'%d' % peer[1])
	END
	local server=$child
	rs_b timeout 30 python3 -c "
import socket, struct
level, time, linger = socket.SOL_SOCKET, struct.pack('ll', 15, 0), struct.pack('ii', 1, 3)
s = socket.socket()
s.setsockopt(level, socket.SO_RCVTIMEO, time)
s.setsockopt(level, socket.SO_SNDTIMEO, time)
s.setsockopt(level, socket.SO_LINGER, linger)
s.setsockopt(level, socket.SO_KEEPALIVE, 1)
s.bind(('$IP4_B', 7478))
s.connect(('$IP4_A', 7477))
assert s.recv(4, socket.MSG_WAITALL) == b'7478'
assert s.getsockname() == ('$IP4_B', 7478)
assert s.getsockopt(level, socket.SO_RCVTIMEO, 16) == time
assert s.getsockopt(level, socket.SO_SNDTIMEO, 16) == time
assert s.getsockopt(level, socket.SO_LINGER, 8) == linger
assert s.getsockopt(level, socket.SO_KEEPALIVE) == 1
" >"$WORK/client.out" 2>&1 || { fail "the client ended with $?"; show client; }
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
	stop "$other"
}

web() {
	head -c 3000000 /dev/urandom >"$WORK/page"
	serve server python3 -m http.server -d "$WORK" 8123
	local server=$child
	ask "$server" curl -sS -o "$WORK/got" http://$IP4_A:8123/page ||
		{ fail "the client ended with $?"; show client; show server; }
	no_tcp 8123
	cmp "$WORK/page" "$WORK/got" 2>>"$WORK/case.notes" || fail "another page"
	stop "$server"
}

# A server of one thread, which sends a byte to each client and closes. Two clients have no receives
# for it (rsockets/hostile.c), and keep it from no other client.
silent() {
	serve server python3 -c "
import select, socket
s = socket.create_server(('$IP4_A', 7479))
e = select.epoll()
e.register(s, select.EPOLLIN)
while True:
    e.poll()
    c = s.accept()[0]
    c.setblocking(False)
    c.send(b'x')
    c.close()"
	local server=$child
	cm_wait_listening "$server" || { fail "nobody listens"; return; }
	start_on silent_1 b "$TOOLS/rsockets" $IP4_A silent 7479
	local one=$child
	start_on silent_2 b "$TOOLS/rsockets" $IP4_A silent 7479
	local two=$child
	wait_until 20 grep -q connected "$WORK/silent_1.out" "$WORK/silent_2.out"
	rs_b timeout 30 python3 -c "
import socket, time
for i in range(5):
    begun = time.monotonic()
    s = socket.create_connection(('$IP4_A', 7479))
    assert s.recv(2, socket.MSG_WAITALL) == b'x'
    s.close()
    assert not i or time.monotonic() - begun < 2, time.monotonic() - begun
" >"$WORK/client.out" 2>&1 || { fail "the client ended with $?"; show client; show silent_1; }
	stop "$one"
	stop "$two"
	stop "$server"
}

# A program that sends, closes or not, and exits at once.
sends_and_exits() {
	local how
	for how in 's.close()' 's.shutdown(socket.SHUT_WR)' 's.detach()'; do
		serve server python3 -c "
import socket
s = socket.create_server(('$IP4_A', 7480))
c = s.accept()[0]
got = b''.join(iter(lambda: c.recv(65536), b''))
assert got == b'z' * 100000, len(got)"
		local server=$child
		ask "$server" python3 -c "
import socket
s = socket.create_connection(('$IP4_A', 7480))
s.sendall(b'z' * 100000)
$how" || { fail "the client ended with $?: $how"; show client; }
		finish "$server" 20 || { fail "the server ended with $?: $how"; show server; }
	done
}

# The first of an interface starts a broker by a helper in the memory of the program, whose rsocket
# has the number of a descriptor of the helper.
within() {
	rs_a timeout 30 python3 -c "
import os, socket
os.closerange(3, 5)
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
assert near.fileno() == 4
near.connect(('$IP4_B', 7473))
near.close()
" >"$WORK/client.out" 2>&1 || { fail "the client ended with $?"; show client; }
}

run_case within within
run_case select_v4 transfer $IP4_A
run_long_case select_v6 transfer $IP6_A
run_long_case select_reverse transfer $IP4_A -R
run_long_case select_streams transfer $IP4_A -P 4
run_long_case poll sockets -T a -S 10000 -C 100
run_long_case blocking sockets -T b -S 10000 -C 100
run_case datagrams datagrams
run_case forks forks
run_case forks_threads forks_threads
run_case forks_connections forks_connections
run_case forks_refused forks_refused
run_case forks_tcp_client forks_tcp_client
run_long_case forks_late forks_late
run_case web web
run_case keeps_options keeps_options
run_case silent silent
run_case sends_and_exits sends_and_exits
run_long_case without without
finish_cases
