#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# tier: long shards XROCE_TEST_QUEUES=2
# tier: long san XROCE_CASE=@(everything*|own_packets|spread*|super_packets*|full)
# tier: long tsan XROCE_CASE=@(everything*|own_packets|spread*|super_packets*|full)
#
# Sniffers and flows that do not trap: RoCEv2, frames that flows take and drop, and frames that pass
# to the kernel are all copied, and still reach their receivers. XROCE_TEST_QUEUES=2: packets of our
# QPs come to two shards, and all copies to the first.
. "$(dirname "$0")/lib/case.sh"
netns_pair 1500

SEGMENTS=60

is_ready() { grep -q '^ready' "$WORK/receiver.out"; }

# receiver OPTION...: started, and ready. Its pid is in $receiver, in $qpn its UD QP's number.
receiver() {
	start_on receiver a "$TOOLS/sniffer" "$@" $DEV_A
	receiver=$child
	wait_until 20 is_ready || { stop "$receiver"; fail "the receiver is not ready"; show receiver; return 1; }
	qpn=$(sed -n 's/^ready //p' "$WORK/receiver.out")
	drop_maps receiver
	keep_maps "$receiver" receiver || fail "the receiver has no maps of ours"
}

# roce COUNT: datagrams to the UD queue pair, by a packet socket.
roce() {
	in_b python3 - $IF_B $MAC_A $MAC_B $IP4_A $IP4_B "$qpn" "$1" <<-'PYTHON' || fail "cannot send RoCEv2"
		import socket, struct, sys, zlib
		iface, to, own, dst, src, qpn, count = sys.argv[1:]
		mac = lambda text: bytes.fromhex(text.replace(':', ''))
		payload = bytes(64)
		bth = struct.pack('!BBHII', 0x64, 0, 0xffff, int(qpn), 0)
		deth = struct.pack('!II', 0x11111111, 0x77)
		rest = deth + payload
		udp = struct.pack('!HHHH', 50000, 4791, 8 + len(bth) + len(rest) + 4, 0)
		def ip(tos, ttl, check):
		    return struct.pack('!BBHHHBBH', 0x45, tos, 20 + len(udp) + len(bth) + len(rest) + 4, 0,
		                       0x4000, ttl, 17, check) + socket.inet_aton(src) + socket.inet_aton(dst)
		total = sum(struct.unpack('!10H', ip(0, 64, 0)))
		total = (total & 0xffff) + (total >> 16)
		total = (total & 0xffff) + (total >> 16)
		masked = bytes([255] * 8) + ip(255, 255, 0xffff) + udp[:6] + b'\xff\xff' + bth[:4] + b'\xff' + bth[5:]
		icrc = struct.pack('<I', zlib.crc32(masked + rest))
		frame = mac(to) + mac(own) + b'\x08\x00' + ip(0, 64, ~total & 0xffff) + udp + bth + rest + icrc
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		s.bind((iface, 0))
		for i in range(int(count)):
		    s.send(frame)
	PYTHON
}

# udp PORT COUNT [BYTES]: by a socket of the kernel's.
udp() {
	in_b python3 - $IP4_A "$@" <<-'PYTHON' || fail "cannot send UDP"
		import socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for i in range(int(sys.argv[3])):
		    try:
		        s.sendto(bytes(int(sys.argv[4]) if len(sys.argv) > 4 else 100), (sys.argv[1], int(sys.argv[2])))
		    except ConnectionRefusedError:
		        pass
	PYTHON
}

# ended: the last frame, and the receiver's end.
ended() {
	udp 9999 1
	finish "$receiver" 30 || { fail "the receiver failed"; show receiver; }
}

says() { need_line receiver "^$1\$"; }

# Of UDP that no socket of A's kernel has wanted.
no_ports() { in_a awk '$1 == "Udp:" && $2 ~ /^[0-9]/ { print $3 }' /proc/net/snmp; }

# everything OPTION...: all kinds of traffic.
everything() {
	local before
	receiver "$@" -s 2 -t 5000 -f 5001 -d 5002 || return
	before=$(no_ports)
	in_b ip neigh flush dev $IF_B
	in_b ping -c 1 -W 5 -q $IP4_A >"$WORK/ping.out" 2>&1 || { fail "no ping"; show ping; }
	roce 100
	udp 5000 20
	udp 5001 30
	udp 5002 40
	udp 5003 10
	in_b timeout 5 bash -c "exec 3<>/dev/tcp/$IP4_A/7" 2>"$WORK/tcp.out"
	need_line tcp 'refused'
	# including the flow that does not trap
	need_equal "UDP of the kernel" $(($(no_ports) - before)) 30
	ended
	# the flow control's probes are sent as well
	need_equal sniffers "$(grep -cE '^s roce 100 sent 10[0-9] udp 100 arp [1-9][0-9]* tcp [1-9][0-9]*$' "$WORK/receiver.out")" 2 || show receiver
	says 't roce 0 sent 0 udp 20 arp 0 tcp 0'
	says 'f roce 0 sent 0 udp 30 arp 0 tcp 0'
	says 'd roce 0 sent 0 udp 0 arp 0 tcp 0'
	says 'ud 100'
}
run_long_case everything everything
run_case everything_by_events everything -e

# A flow that does not trap has our own QPs' packets as well, and they go on.
own_packets() {
	receiver -t 4791 || return
	roce 50
	ended
	says 't roce 50 sent 0 udp 0 arp 0 tcp 0'
	says 'ud 50'
}
run_case own_packets own_packets

# With a table, each copy is in the work queue that its hash says: of many source ports, in all.
many_ports() {
	in_b python3 - $IP4_A "$@" <<-'PYTHON' || fail "cannot send UDP"
		import socket, sys
		for i in range(int(sys.argv[3])):
		    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		    s.bind(('0.0.0.0', 20000 + i))
		    s.sendto(bytes(100), (sys.argv[1], int(sys.argv[2])))
		    s.close()
	PYTHON
}
spread() {
	receiver "$@" -f 5001 -r 4 -s 1 -t 5000 -r 2 -s 1 || return
	roce 50
	many_ports 5000 80
	many_ports 5001 80
	ended
	need_equal sniffers "$(grep -cE '^s roce 50 sent 5[0-9] udp 160 ' "$WORK/receiver.out")" 2 || show receiver
	says 't roce 0 sent 0 udp 80 arp 0 tcp 0'
	says 'f roce 0 sent 0 udp 80 arp 0 tcp 0'
	says 't all 80 in 4'
	says 's all [0-9]+ in 4'
	says 's all [0-9]+ in 2'
	says 'ud 50'
}
run_long_case spread spread
run_long_case spread_by_events spread -e

# super COUNT: frames of SEGMENTS datagrams each to the UD queue pair.
super() {
	in_b "$TOOLS/supers" -i $IF_B -D $MAC_A -S $IP4_B -T $IP4_A -q "$qpn" -Q 0x11111111 -s $SEGMENTS -n "$1" >"$WORK/supers.out" 2>&1 ||
		{ fail "supers ends with $?"; show supers; }
}
set_mtu() { in_a ip link set $IF_A mtu "$1" && in_b ip link set $IF_B mtu "$1" || fail "no MTU of $1"; }

# A super-packet, longer than any frame that a raw packet QP may have: each packet of it is copied.
super_packets() {
	set_mtu 9000
	receiver "$@" -s 1 -t 4791 || return
	super 4
	ended
	says "s roce $((4 * SEGMENTS)) sent [0-9]+ udp 0 arp [0-9]+ tcp 0"
	says "t roce $((4 * SEGMENTS)) sent 0 udp 0 arp 0 tcp 0"
	says "t all $((4 * SEGMENTS)) in [01]"
	# of several shards another one may own the QP: docs/limits.md, "Receiving"
	[ "${XROCE_TEST_QUEUES:-1}" -gt 1 ] || says "ud $((4 * SEGMENTS))"
	need_least "super-packets" "$(kept receiver xroce_rx super_packets)" 4
	need_equal "copies lost" "$(kept receiver xroce_rx copies_lost)" 0
	set_mtu 1500
}
run_long_case super_packets super_packets
run_case super_packets_spread super_packets -r 2

copies_lost() { kept receiver xroce_rx copies_lost; }
has_room() {
	local before
	before=$(copies_lost)
	udp 6001 1
	[ "$(copies_lost)" = "$before" ]
}
# Frames that A's interface has received.
arrived() { in_a awk -v dev=$IF_A: '$1 == dev { print $3 }' /proc/net/dev; }

# The ring of copies is full while its reader is idle: each frame is copied or counted as lost, and
# passes. The sniffer gets each copy, or had no receive for it.
full() {
	local before frames lost stopped seen copied refused
	receiver -s 1 || return
	before=$(no_ports) frames=$(arrived)
	lost=$(copies_lost) copied=$(kept receiver xroce_rx copied)
	stopped=$(pgrep -P "$receiver" -x sniffer || echo "$receiver")
	kill -STOP "$stopped"
	udp 6000 4000 1400
	need_equal "UDP of the kernel" $(($(no_ports) - before)) 4000
	seen=$(($(kept receiver xroce_rx copied) - copied + $(copies_lost) - lost))
	need_equal "frames that were copied or not" "$seen" $(($(arrived) - frames))
	need_least "copies lost" $(($(copies_lost) - lost)) 100
	kill -CONT "$stopped"
	# and it goes on
	wait_until 10 has_room || fail "nothing reads the ring"
	udp 5000 100
	ended
	says 's roce 0 sent 0 udp 100 arp [0-9]+ tcp 0'
	# the last frame was for a flow, so the engine has made its copy
	copied=$(($(kept receiver xroce_rx copied) + 1))
	refused=$(kept receiver xroce_eng_drop no_receive)
	need_equal "copies received or refused" $(($(sed -n 's/^s all \([0-9]*\) in 0$/\1/p' "$WORK/receiver.out") + refused)) "$copied"
}
run_long_case full full

# kill -9 takes all of it.
is_bare() { ! in_a ip -d link show $IF_A | grep -q 'prog/xdp\|xdpgeneric\|promiscuity [1-9]'; }
killed() {
	receiver -s 2 -t 5000 || return
	kill -9 "$receiver"
	finish "$receiver" 5
	wait_until 5 is_bare || fail "something is left: $(in_a ip -d link show $IF_A)"
}
run_case killed killed

finish_cases
