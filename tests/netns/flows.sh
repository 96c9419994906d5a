#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long san
# tier: long tsan
#
# What flows do with the frames that they take: tags, drops, counters; all of them counted at both
# ends. Frames come from a packet socket, or from the QP's own interface. Which frames match, raw.sh
# and tests/unit/test_raw.c say.
. "$(dirname "$0")/lib/case.sh"
netns_pair 1500
RAW=$TOOLS/raw
FLOWS=$TOOLS/flows

is_ready() { grep -q '^ready' "$WORK/$1.out"; }

# receiver FLOW...: started, and ready. Its pid is in $receiver.
receiver() {
	start_on receiver a "$FLOWS" $DEV_A "$@"
	receiver=$child
	wait_until 20 is_ready receiver || { stop "$receiver"; fail "the receiver is not ready"; show receiver; }
}

# sender PORT COUNT LENGTH
sender() {
	start sender b "$RAW" wire-send $IF_B -p "$1" -n "$2" -l "$3" -a
	finish "$child" 30 || { fail "the sender failed"; show sender; }
}

# ended: the last frame, which arrives after all others.
ended() {
	sender 9999 1 60
	finish "$receiver" 30 || { fail "the receiver failed"; show receiver; }
}

# says LINE
says() { need_line receiver "^$1\$"; }

tags() {
	receiver port=5000,tag=4294967295 port=5001,qp=1,tag=1 port=5002 || return
	sender 5000 100 100
	sender 5001 50 200
	sender 5002 30 300
	ended
	says 'qp 0 frames 100 bytes 10000 tag 4294967295'
	says 'qp 1 frames 50 bytes 10000 tag 1'
	says 'qp 0 frames 30 bytes 9000 tag 0'
}
run_case tags tags

# Two QPs with the same flow: each copy has its own flow's tag.
tags_of_copies() {
	receiver port=5000,tag=3 port=5000,qp=1,tag=4 port=5000,qp=2 || return
	sender 5000 100 100
	ended
	says 'qp 0 frames 100 bytes 10000 tag 3'
	says 'qp 1 frames 100 bytes 10000 tag 4'
	says 'qp 2 frames 100 bytes 10000 tag 0'
}
run_case tags_of_copies tags_of_copies

# A drop goes before a flow of its priority, not before one of a smaller; all are counted, and the
# kernel sees none.
drops() {
	receiver port=5000,qp=1,prio=5 port=5000,prio=5,drop,count=0 port=5001,prio=2 port=5001,prio=3,drop,count=1 port=5002,drop || return
	local flows=$receiver
	start kernel a "$RAW" wire-recv $IF_A -p 5003 -n 10 -l 100 -a
	local kernel=$child
	wait_until 20 is_ready kernel || fail "no packet socket"
	sender 5000 100 100
	sender 5001 20 100
	sender 5002 7 100
	in_a "$XROCE" list $IF_A >"$WORK/list.out" 2>&1
	sender 5003 10 100
	receiver=$flows ended
	says 'qp 0 frames 20 bytes 2000 tag 0'
	! grep -q '^qp 1' "$WORK/receiver.out" || { fail "QP 1 has frames"; show receiver; }
	says 'counters 0 packets 100 bytes 10000'
	says 'counters 1 packets 0 bytes 0'
	# packets to other ports than 5003 would end it: it compares each frame of the sender
	finish "$kernel" 20 || { fail "the kernel has seen others"; show kernel; }
	need_line kernel '^received 10$'
	need_line list 'received +20 frames, 107 refused'
}
run_case drops drops

# Of the interface nothing is left for the kernel but what flows take: drop as a default rule.
drops_the_rest() {
	receiver drop,count=2 port=5000,count=1 || return
	sender 5000 40 100
	sender 5005 60 100
	ended
	says 'qp 0 frames 40 bytes 4000 tag 0'
	says 'counters 1 packets 40 bytes 4000'
	# neighbour discovery of the kernels is dropped as well
	local got
	got=$(sed -n 's/^counters 2 packets \([0-9]*\) .*/\1/p' "$WORK/receiver.out")
	[ "${got:-0}" -ge 60 ] || { fail "counted $got of 60"; show receiver; }
}
run_case drops_the_rest drops_the_rest

# Every flow that takes a frame counts it, one object may be several flows', and what no receive
# takes is counted too.
counts() {
	receiver port=5000,count=0 port=5000,qp=1,count=1 port=5000,qp=2 port=5000,qp=1,count=1,prio=1 port=5001,count=1 || return
	sender 5000 300 64
	sender 5001 1000 1514
	ended
	says 'counters 0 packets 300 bytes 19200'
	says 'counters 1 packets 1300 bytes 1533200'
	says 'qp 2 frames 300 bytes 19200 tag 0'
}
run_case counts counts

# tunnelled vxlan|gre ID PORT COUNT: inner UDP packets of 100 bytes to that port.
tunnelled() {
	in_b python3 - $IF_B "$@" <<-'PYTHON' || fail "cannot send by $1"
		import socket, struct, sys
		iface, kind, number, port, count = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
		def ip(proto, payload):
		    header = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(payload), 0, 0, 64, proto, 0,
		                         bytes([10, 77, 1, 9]), bytes([10, 77, 1, 8]))
		    total = sum(struct.unpack('!10H', header))
		    total = (total & 0xffff) + (total >> 16)
		    return header[:10] + struct.pack('!H', ~total & 0xffff) + header[12:] + payload
		def udp(dport, payload):
		    return ip(17, struct.pack('!HHHH', 4000, dport, 8 + len(payload), 0) + payload)
		def ethernet(packet):
		    return bytes.fromhex('020000770001' '020000770009' '0800') + packet
		inner = udp(port, bytes(72))
		if kind == 'vxlan':
		    frame = ethernet(udp(4789, struct.pack('!II', 0x08000000, number << 8) + ethernet(inner)))
		else:
		    frame = ethernet(ip(47, struct.pack('!HHI', 0x2000, 0x0800, number) + inner))
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		s.bind((iface, 0))
		for i in range(count):
		    s.send(frame)
	PYTHON
}

# By VNI or key and the inner port; others are not counted.
tunnels() {
	receiver vni=7,port=5000,tag=7 key=9,port=5000,tag=9,count=0 vni=8,port=5001,drop,count=1 || return
	tunnelled vxlan 7 5000 50
	tunnelled vxlan 7 5001 50
	tunnelled vxlan 8 5000 50
	tunnelled vxlan 8 5001 30
	tunnelled gre 9 5000 40
	tunnelled gre 9 5001 50
	tunnelled gre 7 5000 50
	ended
	# 64 bytes are in front of the inner packet in VXLAN, 42 in GRE
	says 'qp 0 frames 50 bytes 8200 tag 7'
	says 'qp 0 frames 40 bytes 5680 tag 9'
	says 'counters 0 packets 40 bytes 5680'
	says 'counters 1 packets 30 bytes 4920'
}
run_long_case tunnels tunnels

finish_cases
