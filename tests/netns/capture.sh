#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# xroce capture: what it writes is what was sent, by an own reader (lib/pcapng.py) and by tshark,
# each ICRC right; drops come with their reasons; what was lost is said; nothing is left of it, also
# after kill -9.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500

# capture NAME NS OPTION...: in the background, its pid in $child; it looks before this returns.
capture() {
	local name=$1 ns=$2
	shift 2
	rm -f "$WORK/$name.pcapng"*
	start "$name" "$ns" "$XROCE" capture -w "$WORK/$name.pcapng" "$@"
	wait_until 10 test -s "$WORK/$name.pcapng" || wait_until 1 test -s "$WORK/$name.pcapng0" || fail "$name does not begin"
}

# captured NAME: it ends by itself or is ended; what it wrote is in $WORK/NAME.packets
captured() {
	local name=$1 pid=$2
	kill -INT "$pid" 2>/dev/null
	finish "$pid" 20 || { fail "$name ends with $?"; show "$name"; }
	python3 -B "$here/tests/netns/lib/pcapng.py" "$WORK/$name.pcapng" >"$WORK/$name.packets" 2>"$WORK/$name.err" ||
		fail "$name.pcapng: $(cat "$WORK/$name.err")"
}
packets() { grep -cE -- "$2" "$WORK/$1.packets"; }

# tshark opens it, and finds so many packets of InfiniBand, and their comments.
tshark_agrees() {
	local name=$1 n
	command -v tshark >/dev/null || return 0
	n=$(HOME=$WORK tshark -n -r "$WORK/$name.pcapng" -Y infiniband -T fields -e infiniband.bth.opcode 2>"$WORK/$name.err" | wc -l)
	need_equal "packets that tshark finds" "$n" "$(packets "$name" '^(in|out|none) ')"
	n=$(HOME=$WORK tshark -n -r "$WORK/$name.pcapng" -Y 'frame.comment contains "CQE: QP"' 2>/dev/null | wc -l)
	need_least "packets with a comment" "$n" 1
}

# The process counts each packet that it is handed, as many as were captured; ICRCs are right.
all_is_there() {
	local family=$1 t=$2 tx=$3 capa
	shift 3
	gids_for "$family" || return
	capture whole a $IF_A
	capa=$child
	XROCE_TX=$tx keep=1 client_server 18600 60 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t "$t" -m 1024 -n 40 -s 9 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t "$t" -m 1024 -n 40 -s 9 $IP4_A || return
	captured whole "$capa"
	need_equal "wrong ICRCs" "$(packets whole '^(in|out) wrong')" 0
	need_equal "packets without a direction" "$(packets whole '^none')" 0
	need_equal "packets sent" "$(packets whole '^out icrc .* sent by QP [1-9]')" "$(($(kept server xroce_eng_stat tx_packets) - $(kept server xroce_eng_stat flow_answers)))"
	need_equal "packets captured" "$(packets whole '^in icrc')" "$(kept server xroce_eng_stat rx_packets)"
	need_line whole ' 0 records lost'
	[ "$tx" != gso ] || [ "$family" = v6 ] || need_least "packets of super-packets" "$(packets whole 'of a super-packet')" 10
	tshark_agrees whole
	drop_maps server
}

# A program on A that receives what B sends to no QP of it: 7 packets, each dropped.
strangers() {
	in_b python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(7):
    s.sendto(bytes([4, 0x40, 0xff, 0xff, 0, 0, 0x12, 0x34, 0, 0, 0, i]) + bytes(20), ('$IP4_A', 4791))
"
}
server_on_a() {
	gids_once v4 || return
	start_on server a ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 100000000 -s 1024
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
}
looked_at() { bpftool -j map dump id "$(map_id "$server" .data.trace)" 2>/dev/null | grep -q "\"listening\": *$1"; }

# Packets that a check drops come with the reason, and with --drops nothing else does; filters.
drops_and_filters() {
	local capa capq capp
	server_on_a || return
	capture drops a --drops
	capa=$child
	capture nobody a -q 5
	capq=$child
	capture peer a --peer $IP4_B -s 64
	capp=$child
	wait_until 10 looked_at 7 || fail "the three do not look: $(bpftool map dump id "$(map_id "$server" .data.trace)" | head -20)"
	strangers
	captured drops "$capa"
	captured nobody "$capq"
	captured peer "$capp"
	need_equal "drops" "$(packets drops '^in .* dropped: no such QP \(qp_unknown\)')" 7
	need_equal "packets beside them" "$(packets drops '^(in|out|none)')" 7
	need_equal "packets of another QP" "$(packets nobody '^(in|out|none)')" 0
	need_equal "packets of the peer, cut off" "$(packets peer '^in short .* dropped: no such QP')" 7
	need_line drops '^xroce capture: 0 packets received, 7 dropped by a check, 0 sent; 0 records lost'
	looked_at 0 || fail "their places are not given back"
	stop "$server"
}

# Whatever happens to one of them, the other goes on, and nothing is left of a capture.
ends() {
	local capa fifth
	server_on_a || return
	capture first a
	kill -9 "$child"
	finish "$child" 5
	capture second a
	capa=$child
	wait_until 10 looked_at '[2-9]' || looked_at '1' || fail "the second does not look"
	sleep_until_lease_passes
	strangers
	wait_until 10 looked_at 2 || wait_until 1 looked_at 1 || fail "the place of one that was killed is in use"
	# all places, and one more
	for fifth in 1 2 3; do capture "more$fifth" a; done
	wait_until 10 looked_at 15 || fail "not all places can be taken"
	capture toomany a
	wait_until 10 grep -q 'looked at by 4 others already' "$WORK/toomany.out" || { fail "a fifth is not told"; show toomany; }
	kill -9 "$server"
	finish "$server" 5
	captured second "$capa"
	need_equal "packets" "$(packets second 'dropped: no such QP')" 7
	netns_end_captures
}
sleep_until_lease_passes() {
	local until=$(($(date +%s%N) + 2100000000))
	while [ "$(date +%s%N)" -lt $until ]; do read -r -t 0.05 <> <(:); done
}
netns_end_captures() {
	local pid
	for pid in "${netns_children[@]}"; do stop "$pid"; done
}

# More than the file takes: what is lost is said, and all is there or lost.
under_load() {
	local capa sum got
	gids_once v4 || return
	capture load a --buffer 1
	capa=$child
	keep=1 client_server 18515 60 ib_send_bw -d $DEV_A -x "$gid_a" -s 65536 -n 3000 -F -- \
		ib_send_bw -d $DEV_B -x "$gid_b" -s 65536 -n 3000 -F $IP4_A || return
	captured load "$capa"
	got=$(packets load '^in icrc')
	need_equal "wrong ICRCs" "$(packets load '^in wrong')" 0
	sum=$(sed -n 's/.* \([0-9]*\) records lost.*/\1/p' "$WORK/load.out")
	need_equal "records lost in the statistics" "$(sed -n 's/^lost \([0-9]*\) .*/\1/p' "$WORK/load.packets")" "$sum"
	if [ "$sum" -gt 0 ]; then
		[ "$got" -lt "$(kept server xroce_eng_stat rx_packets)" ] || fail "nothing is missing, but $sum records are lost"
	else
		need_equal "packets" "$got" "$(kept server xroce_eng_stat rx_packets)"
	fi
	drop_maps server
}

# -C and -W: each file is whole, none is much longer than said, the oldest are written over.
rotating() {
	local capa f n=0
	gids_once v4 || return
	capture turn a -C 1 -W 3
	capa=$child
	client_server 18515 60 ib_send_bw -d $DEV_A -x "$gid_a" -s 65536 -n 150 -F -- \
		ib_send_bw -d $DEV_B -x "$gid_b" -s 65536 -n 150 -F $IP4_A || return
	kill -INT "$capa"
	finish "$capa" 10 || fail "it ends with $?"
	for f in "$WORK"/turn.pcapng[0-2]; do
		python3 -B "$here/tests/netns/lib/pcapng.py" "$f" >"$WORK/turn.packets" || fail "$f is not whole"
		need_equal "wrong ICRCs" "$(packets turn '^in wrong')" 0
		[ "$(stat -c %s "$f")" -le 1010000 ] || fail "$f is too long"
		n=$((n + 1))
	done
	need_equal "files" "$n $(find "$WORK" -name 'turn.pcapng*' | wc -l)" "3 3"
}

# The options that end it, and those that are wrong.
bounds() {
	local capa
	server_on_a || return
	capture some a -c 3
	capa=$child
	wait_until 10 looked_at 1
	strangers
	finish "$capa" 10 || fail "-c ends with $?"
	python3 -B "$here/tests/netns/lib/pcapng.py" "$WORK/some.pcapng" >"$WORK/some.packets"
	need_equal "packets" "$(packets some '^in')" 3
	in_a timeout 20 "$XROCE" capture -w "$WORK/none.pcapng" -d 1 >"$WORK/none.out" 2>&1 || fail "-d ends with $?"
	need_line none '^xroce capture: 0 packets'
	stop "$server"
	in_a "$XROCE" capture -w x nosuch >"$WORK/wrong.out" 2>&1
	need_equal "status of an unknown interface" $? 2
	in_a "$XROCE" capture >"$WORK/wrong.out" 2>&1
	need_equal "status without a file" $? 2
	in_a "$XROCE" capture -w "$WORK/x" -c 0 >"$WORK/wrong.out" 2>&1
	need_equal "status of -c 0" $? 2
	in_a "$XROCE" capture -w "$WORK/none/x" >"$WORK/wrong.out" 2>&1
	need_equal "status of a file that cannot be made" $? 1
}

# A client of a broker shows what it sends and receives as well, and its QPs' events.
by_a_broker() {
	local broker watch capa
	gids_once v4 || return
	start broker a "$XROCE" serve $IF_A
	broker=$child
	wait_until 20 sh -c "nsenter --net=/run/netns/$NS_A $XROCE list $IF_A | grep -q '^  broker'" || fail "no broker"
	start shared a "$XROCE" trace $IF_A
	watch=$child
	capture client a $IF_A
	capa=$child
	client_server 18600 60 "$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t rc -m 1024 -n 20 -s 3 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t rc -m 1024 -n 20 -s 3 $IP4_A || return
	strangers
	captured client "$capa"
	kill -INT "$watch"
	finish "$watch" 10 || fail "trace ends with $?"
	need_equal "wrong ICRCs" "$(packets client '^(in|out) wrong .*(CQE|sent by)')" 0
	need_equal "packets received" "$(packets client '^in icrc .* CQE: QP')" "$(grep -cE ' vdata\[[0-9]+\] QP [0-9]+ < ' "$WORK/shared.out")"
	need_least "packets received" "$(packets client '^in icrc .* CQE: QP')" 100
	need_equal "packets of nobody" "$(packets client '^in .* dropped: no such QP .*; of no process')" 7
	stop "$broker"
}

for family in v4 v6; do
	for t in rc uc ud; do run_case whole_${t}_$family all_is_there $family $t auto; done
	run_case whole_rc_${family}_gso all_is_there $family rc gso
done
run_case drops_and_filters drops_and_filters
run_case under_load under_load
run_case rotating rotating
run_case bounds bounds
run_case by_a_broker by_a_broker
run_case ends ends
finish_cases
