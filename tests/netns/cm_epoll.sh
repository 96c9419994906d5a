#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# epoll(7), signals and other calls of event loops under librspreload.so: tests/netns/epolls.c, both
# ends in one process, judged first on the kernel's TCP. Each limit of rsockets is reported once.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# judge LABEL COMMAND...: its lines are this test's.
judge() {
	local label=$1 rc
	shift
	"$@" timeout 120 "$TOOLS/epolls" $IP4_A "${XROCE_CASE:-*}" "_$label" >"$WORK/$label.out" 2>&1
	rc=$?
	cat "$WORK/$label.out"
	case $rc in
	0) ;;
	1) case_failed=1 ;;
	*) echo "not ok epolls_$label it ended with $rc"; case_failed=1 ;;
	esac
	case_ran=1
}

# Nothing of the case came by TCP, so that rsockets were judged.
no_tcp_was_used() {
	local out
	out=$(in_a nstat -asz TcpActiveOpens | awk '/ActiveOpens/ {print $2}')
	if [ "$out" = "$1" ]; then
		echo "ok no_tcp"
	else
		echo "not ok no_tcp $out connections of TCP were made, $1 before"
		case_failed=1
	fi
}

judge tcp in_a
opens=$(in_a nstat -asz TcpActiveOpens | awk '/ActiveOpens/ {print $2}')
judge rsockets in_a "$XROCE" run --rsockets --dev $IF_A --
no_tcp_was_used "$opens"

# Each twice, and one line of each kind; what the call answers is the program's to see.
said_once() {
	in_a "$XROCE" run --rsockets --dev $IF_A -- timeout 60 python3 -c "
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.fdopen.restype = ctypes.c_void_p
s = socket.create_server(('$IP4_A', 7474))
c = socket.create_connection(('$IP4_A', 7474))
a, b = socket.socketpair()
r, w = os.pipe()
os.write(w, b'x')

def refused(call, *args):
    try:
        call(*args)
    except OSError:
        return
    raise AssertionError(args)

for i in range(2):
    assert not libc.fdopen(c.fileno(), b'r')
    refused(os.splice, r, c.fileno(), 1)
    refused(c.setsockopt, socket.SOL_SOCKET, socket.SO_MARK, 1)
    socket.send_fds(a, [b'x'], [c.fileno()])
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
child = os.fork()
if not child:
    refused(c.send, b'x')
    refused(s.accept)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
c.send(b'alive')
assert s.accept()[0].recv(5) == b'alive'
" >"$WORK/said.out" 2>&1 || fail "it ended with $?"
	local what
	for what in 'open a stream' 'splice()' 'set option' 'pass descriptor' 'use descriptor'; do
		[ "$(grep -c "^librspreload: cannot $what.* rsocket" "$WORK/said.out")" = 1 ] ||
			fail "not said once: cannot $what"
	done
	[ "$(wc -l <"$WORK/said.out")" = 5 ] || fail "more was said"
	[ ! -s "$WORK/case.notes" ] || show said
}

# A child of vfork() closes and copies its own descriptors, and no rsocket of the parent. A child of
# fork() that closes a listener removes it from no set of the parent.
children() {
	in_a "$XROCE" run --rsockets --dev $IF_A -- timeout 60 python3 -c "
import os, select, socket, subprocess
s = socket.create_server(('$IP4_A', 7475))
c = socket.create_connection(('$IP4_A', 7475))
a = s.accept()[0]
subprocess.run(['true'], check=True, stdin=a.fileno())
subprocess.run(['true'], check=True, close_fds=False, stdin=a.fileno())
c.send(b'alive')
assert a.recv(5) == b'alive'
" >"$WORK/children.out" 2>&1 || { fail "it ended with $?"; show children; }
	RDMAV_FORK_SAFE=1 in_a "$XROCE" run --rsockets --dev $IF_A -- timeout 60 python3 -c "
import os, select, socket
s = socket.create_server(('$IP4_A', 7476))
e = select.epoll()
e.register(s, select.EPOLLIN)
if not os.fork():
    s.close()
    os._exit(0)
os.wait()
c = socket.socket()
c.connect(('$IP4_A', 7476))
assert e.poll(10) == [(s.fileno(), select.EPOLLIN)]
" >"$WORK/children.out" 2>&1 || { fail "that which forks ended with $?"; show children; }
}
run_case said_once said_once
run_case children children
finish_cases
