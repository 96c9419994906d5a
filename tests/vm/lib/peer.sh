# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs at both ends, ours in A and the guest's on its Soft-RoCE, and a capture between them in
# which each of our packets is judged. Sourced after guest.sh; the guest's name is "guest".

# peer_up MTU: an address of each family and an rxe device on the guest's eth0.
peer_up() {
	guest_do guest setup "ip link set eth0 mtu $1 up &&
		echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad &&
		ip addr add $IP4_B/24 dev eth0 && ip addr add $IP6_B/64 dev eth0 nodad &&
		rdma link add rxe0 type rxe netdev eth0" || { fail "no rxe in the guest"; show setup; return 1; }
	wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || fail "no path to the guest"
}

# peer_gids FAMILY: sets gid_a, ours, and gid_b, the guest's.
peer_gids() {
	local want
	case $1 in
	v4) gid_a=$(gid_index a ::ffff:$IP4_A) want='0000:0000:0000:0000:0000:ffff:' ;;
	v6) gid_a=$(gid_index a fd77:) want=fd77: ;;
	esac || { fail "no $1 GID of ours"; return 1; }
	guest_do guest gids "cd /sys/class/infiniband/rxe0/ports/1/gids && grep -l ^$want * | sort -n | head -1"
	gid_b=$(cat "$WORK/gids.out")
	[ -n "$gid_b" ] || fail "no $1 GID in the guest"
}

CAPTURE_PORT=4790

# peer_capture DEVICE, peer_judge PATH-MTU: what crosses that device of P, and its judgement.
peer_capture() {
	rm -f "$WORK/wire.pcap"
	start capture p tcpdump -Z root -i "$1" -s 0 -B 65536 --immediate-mode -U \
		-w "$WORK/wire.pcap" "(udp dst port 4791 or udp dst port $CAPTURE_PORT)"
	capture=$child
	wait_until 10 grep -q 'listening on' "$WORK/capture.out" || { fail "tcpdump does not start"; show capture; }
}
peer_judge() {
	# a last packet says that all before it are in the file
	in_a bash -c "echo the-capture-ends >/dev/udp/$IP4_B/$CAPTURE_PORT"
	wait_until 30 grep -q the-capture-ends "$WORK/wire.pcap" || fail "the capture has no end"
	kill "$capture"
	finish "$capture" 10
	need_line capture '^0 packets dropped by kernel' || return
	local by=()
	[ "${XROCE_PORT:-}" != sockets ] || by=(-s)
	"$VM_TOOLS/wirejudge" -a $MAC_A -m "$1" -f "${by[@]}" "$WORK/wire.pcap" >"$WORK/judge.out" 2>&1 ||
		{ fail "packets of ours are wrong"; show judge; }
	judged=$((${judged:-0} + $(sed -n 's/^judged \([0-9]*\) .*/\1/p' "$WORK/judge.out")))
	grep -E '^(ours|theirs|flipped) ' "$WORK/judge.out" >>"$WORK/opcodes.seen"
}

# peer_pair PORT SECONDS PROGRAM OPTIONS... -- GUEST'S-OPTIONS...: the server here, the client
# there. Both are run as `PROGRAM -d DEVICE -g GID OPTIONS`.
peer_pair() {
	local port=$1 bound=$2 program=$3 options=() rc
	shift 3
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	start_on server a "$program" -d $DEV_A -g "$gid_a" "${options[@]}"
	server_pid=$child
	wait_until 20 listens_or_gone a "$port" "$server_pid"
	guest_start guest client "${program##*/} -d rxe0 -g $gid_b $* ${options[*]} $IP4_A"
	guest_wait guest client "$bound"
	rc=$?
	[ $rc -eq 0 ] || fail "the guest's side ended with $rc: ${program##*/} ${options[*]}"
	finish "$server_pid" 20 || { fail "our side ended with $?: ${program##*/} ${options[*]}"; rc=1; }
	[ $rc -eq 0 ] || { show client; show server; guest_do guest client_end "killall -9 ${program##*/}"; }
	return $rc
}
