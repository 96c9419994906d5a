# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads what `xroce capture` wrote, apart from the code under test.

pcapng.py FILE: a line a packet: its direction (in, out, none), whether its ICRC is right (icrc,
wrong, short; other: not UDP), opcode, destination QPN, PSN, length, VLAN tags, and the comment. At the end a
line `lost N in N`: what the interfaces' statistics say, and before it `backwards N`: packets whose
time is less than that of one before. Exit status 1 if it is no pcapng file.
"""
import struct
import sys
import zlib


def blocks(data):
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("=II", data, at)
        if length % 4 or struct.unpack_from("=I", data, at + length - 4)[0] != length:
            sys.exit(f"block at {at} is not whole")
        yield kind, data[at + 8 : at + length - 4]
        at += length


def options(data):
    found, at = {}, 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from("=HH", data, at)
        if not code:
            break
        found[code] = data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


def icrc(ip, udp_at, end):
    masked = bytearray(ip[:end])
    if ip[0] >> 4 == 4:
        masked[1] = masked[8] = 0xFF
        masked[10:12] = b"\xff\xff"
    else:
        masked[0] |= 0x0F
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF
    masked[udp_at + 6 : udp_at + 8] = b"\xff\xff"
    masked[udp_at + 8 + 4] = 0xFF
    return zlib.crc32(bytes(8 * [0xFF]) + bytes(masked))


def describe(frame, length):
    at, tags = 12, 0
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
        tags += 1
    ip = frame[at + 2 :]
    by_udp = {b"\x08\x00": 9, b"\x86\xdd": 6}.get(frame[at : at + 2])
    if not by_udp or ip[by_udp] != 17:
        return ("other", 0, 0, 0, length, tags)
    udp_at = 20 if ip[0] >> 4 == 4 else 40
    bth = ip[udp_at + 8 :]
    what = (bth[0], int.from_bytes(bth[5:8], "big"), int.from_bytes(bth[9:12], "big"), length, tags)
    if len(frame) < length:
        return ("short", *what)
    end = struct.unpack_from(">H", ip, 2)[0] if udp_at == 20 else 40 + struct.unpack_from(">H", ip, 4)[0]
    right = struct.unpack_from("<I", ip, end - 4)[0] == icrc(ip, udp_at, end - 4)
    return ("icrc" if right else "wrong", *what)


def main():
    data = open(sys.argv[1], "rb").read()
    lost = received = latest = backwards = 0
    for kind, body in blocks(data):
        if kind == 0x0A0D0D0A and struct.unpack_from("=I", body)[0] != 0x1A2B3C4D:
            sys.exit("another byte order")
        if kind == 6:
            high, low, captured, length = struct.unpack_from("=IIII", body, 4)
            backwards += high << 32 | low < latest
            latest = max(latest, high << 32 | low)
            said = options(body[20 + (captured + 3) // 4 * 4 :])
            flags = struct.unpack("=I", said[2])[0] & 3 if 2 in said else 0
            print(("none", "in", "out")[flags], *describe(body[20 : 20 + captured], length), said.get(1, b"").decode())
        if kind == 5:
            said = options(body[12:])
            received += struct.unpack("=Q", said[4])[0]
            lost += struct.unpack("=Q", said[5])[0]
    print("backwards", backwards)
    print("lost", lost, "in", received)


main()
