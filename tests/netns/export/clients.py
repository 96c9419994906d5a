# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Clients of an HTTP server, well-behaved and not. clients.py PORT|PATH WHAT [N [PID]]
#   parallel N   N requests at once: each is answered with 200, a whole text and its length
#   slow N       N connections that send a byte now and then, until each has been cut off; prints
#                how many were, and how many requests of others were answered meanwhile
#   silent N     N connections that send nothing; prints whether a request is answered within 5 s
#   garbage      invalid or oversized requests; prints the answers' status codes
#   gone N       N connections that are closed at the same moment, while the process PID is stopped;
#                prints whether an earlier connection's request is answered
#   deaf         four that ask, and take nothing of the answer, until they are cut off: at a Unix
#                socket, which takes less than an answer; TCP's end would not come through
import os
import random
import select
import signal
import socket
import sys
import time

PORT = sys.argv[1]
BOUND = 60
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


def connect():
    s = socket.socket(socket.AF_UNIX if "/" in PORT else socket.AF_INET)
    s.settimeout(BOUND)
    s.connect(PORT if "/" in PORT else ("127.0.0.1", int(PORT)))
    return s


def answer(s):
    got = b""
    while True:
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            break
        if not more:
            break
        got += more
    return got


def is_whole(got):
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = [int(line[15:]) for line in lines if line.startswith(b"content-length:")]
    return head.startswith(b"HTTP/1.1 200 ") and length == [len(body)] and b"xroce_up 1\n" in body


def ask():
    s = connect()
    s.sendall(GET)
    got = answer(s)
    s.close()
    return is_whole(got)


def parallel(n):
    sockets = [connect() for _ in range(n)]
    for s in sockets:
        s.sendall(GET)
    good = 0
    for s in sockets:
        good += is_whole(answer(s))
        s.close()
    print(good)


def slow(n):
    request = b"GET /metrics HTTP/1.1\r\nX: " + 4000 * b"x"
    sockets = {connect(): 0 for _ in range(n)}
    end, cut, answered = time.monotonic() + BOUND, 0, 0
    while sockets and time.monotonic() < end:
        readable, _, _ = select.select(list(sockets), [], [], 0.2)
        for s in readable:
            try:
                s.recv(4096)
            except OSError:
                pass
            s.close()
            del sockets[s]
            cut += 1
        for s in list(sockets):
            try:
                s.send(request[sockets[s]:sockets[s] + 1])
                sockets[s] += 1
            except OSError:
                s.close()
                del sockets[s]
                cut += 1
        answered += ask()
    print(cut, "of", n, "answered", min(answered, 3))


def silent(n):
    sockets = [connect() for _ in range(n)]
    begun = time.monotonic()
    print(ask() and time.monotonic() - begun < 5)
    for s in sockets:
        s.close()


def garbage():
    random.seed(4711)
    noise = bytes(random.randrange(256) for _ in range(4000))
    codes = []
    for request in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics\r\n\r\n", b"\0" * 100 + b"\r\n\r\n",
                    noise + b"\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\n\r\n",
                    b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
                    b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\nHost: x\r\nA: " + 40000 * b"a" + b"\r\n\r\n",
                    b"GET /" + 40000 * b"a" + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + 9000 * b"A: b\r\n" + b"\r\n",
                    b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nx",
                    b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                    b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: " + 3000 * b"\"\\,;" + b"\r\n\r\n",
                    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise):
        s = connect()
        try:
            s.sendall(request)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            got = answer(s)
        except OSError:
            got = b""
        codes.append(got[9:12].decode("latin1") if got.startswith(b"HTTP/") else "-")
        s.close()
    print(*codes)


def deaf():
    sockets = [connect() for _ in range(4)]
    waiting = select.poll()
    for s in sockets:
        s.sendall(GET)
        waiting.register(s, select.POLLHUP)
    end, gone = time.monotonic() + BOUND, set()
    while len(gone) < len(sockets) and time.monotonic() < end:
        for fd, _ in waiting.poll(500):
            gone.add(fd)
            waiting.unregister(fd)
    print(len(gone), "short" if not any(map(is_whole, map(answer, sockets))) else "whole")


def gone(n, pid):
    sockets = [connect() for _ in range(n)]
    time.sleep(0.5)
    s = connect()
    s.sendall(GET)
    time.sleep(0.2)
    os.kill(pid, signal.SIGSTOP)
    for one in sockets:
        one.close()
    time.sleep(0.2)
    os.kill(pid, signal.SIGCONT)
    print(is_whole(answer(s)))


what = sys.argv[2]
if what == "gone":
    gone(int(sys.argv[3]), int(sys.argv[4]))
elif what in ("parallel", "slow", "silent"):
    globals()[what](int(sys.argv[3]))
else:
    globals()[what]()
