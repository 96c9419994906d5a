# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Asks a broker as a client of its own making, and prints what it is answered.

    who.py SOCKET [STEP...]

    hello                       the question's error, or whether the client is privileged
    list                        the clients' pids
    claim, stop                 the question's error
    maps=N, trace=N             of the client with the number N: the error, or how many
                                descriptors came
    prove                       a proof by the rules of user/os/ask.h
    prove=mark|address|size     one whose mark, address or size is not the nonce's
    again                       the same proof a second time
"""
import errno
import os
import socket
import struct
import sys

VERSION = int(os.environ['ASK_VERSION'])
HELLO, LIST, STOP, CLAIM, MAPS, TRACE, PROVE, PROOF = 1, 6, 7, 3, 14, 15, 17, 18
TRACE_RECEIVED = 1
SO_RCVBUFFORCE, IP_FREEBIND = 33, 15


def name(err):
    return errno.errorcode[-err] if err else 'ok'


class Broker:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        self.socket.connect(path)
        self.proof = None
        self.port = 0

    def ask(self, what, number=0, trace=bytes(32)):
        """Returns the answer's error and its bytes behind the head; descriptors are in came."""
        self.socket.send(struct.pack('<IIII', VERSION, what, number, 0) + trace)
        data, self.came, _, _ = socket.recv_fds(self.socket, 128, 32)
        _, answered, err, num_fds = struct.unpack('<IIiI', data[:16])
        assert answered == what, (what, answered)
        assert len(self.came) == (0 if err else num_fds), (self.came, num_fds)
        return err, data[16:]

    def look(self, what, number):
        """Asks for a client's maps, or to trace it; closes the descriptors. Counts them."""
        trace = struct.pack('<16xIIIBBH', 0, 64, 4096, TRACE_RECEIVED, 0, 0)
        err, _ = self.ask(what, number, trace) if what == TRACE else self.ask(what, number)
        for fd in self.came:
            os.close(fd)
        return name(err) if err else str(len(self.came))

    def prove(self, wrong=None):
        err, data = self.ask(PROVE)
        if err:
            return err
        nonce, first = struct.unpack('<II', data[:8])
        s = self.proof = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_MARK,
                         struct.pack('<I', nonce ^ (wrong == 'mark')))
        except PermissionError:
            pass
        other = 2 if wrong == 'size' else 0
        try:
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, (1 << 29) + (nonce & 0xfffffff) + other)
        except PermissionError:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192 + (nonce >> 17) + other)
        s.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        at = 127 << 24 | 1 << 22 | nonce & 0x3fffff
        host = socket.inet_ntoa(struct.pack('>I', at ^ (wrong == 'address')))
        try:
            s.bind((host, 1 + nonce % (first - 1)))
        except PermissionError:
            s.bind((host, 0))
        self.port = s.getsockname()[1]
        return self.ask(PROOF, self.port)[0]


def step(b, what):
    if what.startswith('prove'):
        return name(b.prove(what[6:]))
    if what == 'again':
        return name(b.ask(PROOF, b.port)[0])
    if what == 'list':
        pids, at = [], 0
        while True:
            err, data = b.ask(LIST, at)
            if err:
                break
            number, pid = struct.unpack('<II', data[:8])
            pids.append(pid)
            at = number + 1
        return ' '.join(map(str, pids)) if err == -errno.ENOENT else name(err)
    if what == 'hello':
        err, data = b.ask(HELLO)
        return name(err) if err else f'privileged {struct.unpack("<I", data[20:24])[0]}'
    if what.startswith(('maps=', 'trace=')):
        word, number = what.split('=')
        return b.look({'maps': MAPS, 'trace': TRACE}[word], int(number))
    return name(b.ask(*{'claim': (CLAIM, 4242), 'stop': (STOP, 0)}[what])[0])


def main():
    b = Broker(sys.argv[1])
    for what in sys.argv[2:]:
        print(f'{what}: {step(b, what)}', flush=True)
    os._exit(0)


main()
