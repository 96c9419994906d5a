#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: core order XROCE_CASES=long XROCE_CASE=in_order
# tier: long long XROCE_CASES=long
# needs: processors
#
# xroce capture: its files have the packets that were sent, by our own reader (lib/pcapng.py) and by
# tshark, each ICRC right; drops have their reasons; losses are reported; nothing of it is left,
# also after kill -9.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_pair 4500

# capture NAME NS OPTION...: in the background, its pid in $child; it looks before this returns.
capture() {
	local name=$1 ns=$2
	shift 2
	rm -f "$WORK/$name.pcapng"*
	start "$name" "$ns" "$XROCE" capture -w "$WORK/$name.pcapng" "$@"
	wait_until 10 has_begun "$name" || fail "$name does not begin"
}
# With -C the first file has a number.
has_begun() { [ -s "$WORK/$1.pcapng" ] || [ -s "$WORK/$1.pcapng0" ]; }

# captured NAME: waits for its end or ends it; the packets that it wrote are in $WORK/NAME.packets
captured() {
	local name=$1 pid=$2
	kill -INT "$pid" 2>/dev/null
	finish "$pid" 20 || { fail "$name ends with $?"; show "$name"; }
	python3 -B "$here/tests/netns/lib/pcapng.py" "$WORK/$name.pcapng" >"$WORK/$name.packets" 2>"$WORK/$name.err" ||
		fail "$name.pcapng: $(cat "$WORK/$name.err")"
}
packets() { grep -cE -- "$2" "$WORK/$1.packets"; }

# tshark opens it, and finds that number of InfiniBand packets, and their comments.
tshark_agrees() {
	local name=$1 n
	command -v tshark >/dev/null || return 0
	HOME=$WORK tshark -n -r "$WORK/$name.pcapng" -Y infiniband -T fields -e infiniband.bth.opcode -e frame.comment \
		>"$WORK/$name.tshark" 2>"$WORK/$name.err"
	n=$(wc -l <"$WORK/$name.tshark")
	need_equal "packets that tshark finds" "$n" "$(packets "$name" '^(in|out|none) ')"
	need_least "packets with a comment" "$(grep -c 'CQE: QP' "$WORK/$name.tshark")" 1
}

# The process counts each packet that it is handed, as many as were captured; ICRCs are right.
all_is_there() {
	local family=$1 t=$2 tx=$3 capa data
	shift 3
	data=("$TOOLS/vdata" -t "$t" -m 1024 -n 40 -s 9)
	gids_for "$family" || return
	capture whole a $IF_A
	capa=$child
	before_client=capa_looks XROCE_TX=$tx keep=1 client_server 18600 60 \
		"${data[@]}" -d $DEV_A -g "$gid_a" -- "${data[@]}" -d $DEV_B -g "$gid_b" $IP4_A ||
		{ captured whole "$capa"; return 1; }
	captured whole "$capa"
	need_equal "wrong ICRCs" "$(packets whole '^(in|out) wrong')" 0
	need_equal "packets without a direction" "$(packets whole '^none')" 0
	need_equal "packets sent" "$(packets whole '^out icrc .* sent by QP 0x[0-9a-f]*[1-9a-f]')" "$(($(kept server xroce_eng_stat tx_packets) - $(kept server xroce_eng_stat flow_answers)))"
	need_equal "packets captured" "$(packets whole '^in icrc')" "$(kept server xroce_eng_stat rx_packets)"
	need_line whole ' 0 packets lost'
	[ "$tx" != gso ] || [ "$family" = v6 ] || need_least "packets of super-packets" "$(packets whole 'of a super-packet')" 10
	tshark_agrees whole
	drop_maps server
}

# Each process is found when it is looked for.
capa_looks() {
	server=$server_pid
	wait_until 10 looks "$capa" || fail "it does not look"
}

# Both do while data comes: the near one from the beginning, the far one for long enough.
ends_look() {
	capa=$near
	capa_looks
	(
		trap - EXIT
		wait_until 20 has_grown "$WORK/far.pcapng" 1000000
		rc=$?
		rm -f "$WORK/go"
		exit $rc
	) &
	waiter=$!
}

has_grown() { [ "$(stat -c %s "$1")" -gt "$2" ]; }

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
# The word that shows the observers of $server, and whether a process observes: from a map of its
# program, which no client of a broker holds.
looked_at() { trace_has '"listening": *'"$1"'\b'; }
looks() { trace_has '"owner": *'"$1"'\b'; }
trace_has() {
	[ "$(traces_with "$1" "$({
		bpftool prog show id "$(program_of "$server")"
		bpftool map show
	} 2>/dev/null | awk '{ for (i = 1; i < NF; i++) if ($i == "map_ids") { n = split($(i + 1), id, ","); while (n) mine[id[n--] ":"] } }
		$1 in mine')")" -gt 0 ]
}
# program_of PID: the program of its port
program_of() {
	in_a "$XROCE" stat --json | python3 -c 'import json, sys
for process in json.load(sys.stdin)["ports"]:
    if process["pid"] == int(sys.argv[1]):
        print(process["program_id"])' "$1"
}
# traces_with PATTERN MAPS: how many of these lines of `bpftool map show` are of tracers' places
# with PATTERN
traces_with() {
	local map n=0
	for map in $(awk '/ name \.data\.trace / { sub(":", "", $1); print $1 }' <<<"$2"); do
		bpftool -j map dump id "$map" 2>/dev/null | grep -qE "$1" && n=$((n + 1))
	done
	echo $n
}

# Packets that a check drops come with the reason, and with --drops nothing else does; filters.
drops_and_filters() {
	local capa capq capp
	server_on_a || return
	capture drops a --drops
	capa=$child
	capture nobody a -q 5
	capq=$child
	capture peer a --peer $IP4_B --snaplen 64
	capp=$child
	wait_until 10 looked_at 14 || fail "the three do not look: $(cat "$WORK"/{drops,nobody,peer}.out)"
	strangers
	captured drops "$capa"
	captured nobody "$capq"
	captured peer "$capp"
	need_equal "drops" "$(packets drops '^in .* dropped: no such QP \(qp_unknown\)')" 7
	need_equal "packets beside them" "$(packets drops '^(in|out|none)')" 7
	need_equal "packets of another QP" "$(packets nobody '^(in|out|none)')" 0
	need_equal "packets of the peer, cut off" "$(packets peer '^in short .* dropped: no such QP')" 7
	need_line drops '^xroce capture: 0 packets received, 7 dropped by a check, 0 sent; 0 packets lost'
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
	wait_until 10 looks "$capa" || fail "the second does not look"
	sleep_until_lease_passes
	strangers
	wait_until 10 looked_at '[48]' || fail "the place of one that was killed is in use"
	# all places, and one more
	for fifth in 1 2 3; do capture "more$fifth" a; done
	wait_until 10 looked_at 15 || fail "not all places can be taken"
	capture toomany a
	wait_until 10 grep -q 'all trace slots of the process are in use' "$WORK/toomany.out" || { fail "a fifth is not told"; show toomany; }
	kill -9 "$server"
	finish "$server" 5
	captured second "$capa"
	need_equal "packets" "$(packets second 'dropped: no such QP')" 7
	netns_end_captures
}
sleep_until_lease_passes() {
	local until=$(($(date +%s%N) + 2100000000))
	while [ "$(date +%s%N)" -lt $until ]; do read -r -t 0.05 <>"$WORK/quiet"; done
}
netns_end_captures() {
	local pid
	for pid in "${netns_children[@]}"; do stop "$pid"; done
}

# More than the file takes, until some of it is lost: each packet that the process counts, both
# ways, is there or counted as lost, to one. under_load [COMMAND...]: runs the process.
under_load() {
	local capa lost kept_packets counted data waiter=
	data=("$TOOLS/vdata" -m 4096 -x 60000 -n 40 -s 7 -k "$WORK/go")
	gids_once v4 || return
	: >"$WORK/go"
	capture load a --buffer 1
	capa=$child
	before_client=go_on_until_lost keep=1 client_server 18600 60 "$@" "${data[@]}" -d $DEV_A -g "$gid_a" -- \
		"${data[@]}" -d $DEV_B -g "$gid_b" $IP4_A || { captured load "$capa"; return 1; }
	wait "$waiter"
	captured load "$capa"
	need_equal "wrong ICRCs" "$(packets load '^(in|out) wrong')" 0
	lost=$(sed -n 's/.* \([0-9]*\) packets lost.*/\1/p' "$WORK/load.out")
	need_least "packets lost" "$lost" 1
	need_equal "packets lost in the statistics" "$(sed -n 's/^lost \([0-9]*\) .*/\1/p' "$WORK/load.packets")" "$lost"
	kept_packets=$(packets load '^(in|out) icrc')
	counted=$(($(kept server xroce_eng_stat rx_packets) + $(kept server xroce_eng_stat tx_packets) - $(kept server xroce_eng_stat flow_answers)))
	need_equal "packets that are there, and lost ones" $((kept_packets + lost)) $counted
	drop_maps server
}
# The same for a process whose reports go through the broker.
under_load_filtered() {
	local broker
	start broker a "$XROCE" serve $IF_A
	broker=$child
	wait_until 10 netns_answers a || { fail "no broker"; return; }
	XROCE_SHARE=always under_load /usr/bin/python3 "$here/tests/netns/lib/no_bpf.py"
	stop "$broker"
}
go_on_until_lost() {
	capa_looks
	(
		trap - EXIT
		wait_until 20 lost_or_gone
		rm -f "$WORK/go"
	) &
	waiter=$!
}
has_lost() { trace_has '"lost": *[1-9]'; }
lost_or_gone() { has_lost || is_gone_or_zombie "$server_pid"; }

# The next two send for as long as it takes to see enough, and lose nothing: their buffers hold more
# than is sent while the capture waits for a processor.

# Seen from both ends: each packet that came to B, which begins when it is looked for and so is not
# seen at once, A has sent, as often at least (a busy machine loses some), also where the kernel
# carried them as super-packets.
both_ends() {
	local family=$1 tx=$2 near far end waiter data capa
	data=("$TOOLS/vdata" -t rc -m 1024 -n 40 -s 5 -k "$WORK/go")
	gids_for "$family" || return
	: >"$WORK/go"
	capture near a --buffer 256 $IF_A
	near=$child
	capture far b --buffer 256 $IF_B
	far=$child
	before_client=ends_look XROCE_TX=$tx client_server 18600 60 "${data[@]}" -d $DEV_A -g "$gid_a" -- \
		"${data[@]}" -d $DEV_B -g "$gid_b" $IP4_A || { stop "$near"; stop "$far"; return 1; }
	wait "$waiter" || fail "the far one does not look"
	captured near "$near"
	captured far "$far"
	for end in near far; do
		need_equal "wrong ICRCs" "$(packets $end '^(in|out) wrong')" 0
		need_line $end ' 0 packets lost'
		for way in in out; do
			awk -v way=$way '$1 == way && /CQE: QP|sent by QP/ { print $3, $4, $5, $6 }' "$WORK/$end.packets" | sort >"$WORK/$end.$way"
		done
		need_least "packets received" "$(wc -l <"$WORK/$end.in")" 200
	done
	need_equal "packets at B that A did not send" "$(comm -13 "$WORK/near.out" "$WORK/far.in" | wc -l)" 0
	[ "$tx" != gso ] || [ "$family" = v6 ] || need_least "packets of super-packets" "$(packets far 'of a super-packet')" 10
	tshark_agrees near
	tshark_agrees far
}

# Frames with one or two VLAN tags, as they were on the wire; the tag that the QP reports.
tagged() {
	local family=$1 from=$IP4_B to=$IP4_A capa tci i=0
	gids_for "$family" || return
	[ "$family" = v4 ] || { from=$IP6_B to=$IP6_A; }
	start_on fields a "$TOOLS/fields" $DEV_A "$gid_a" 3 rc "$from" 0x4711
	fields=$child
	wait_until 10 grep -q '^qpn ' "$WORK/fields.out" || { fail "no receiver"; show fields; }
	capture tags a $IF_A
	capa=$child
	server=$fields
	wait_until 10 looked_at 8 || fail "it does not look"
	for tci in a07b 4007,c001 0fff; do
		in_b "$TOOLS/tagged" -i $IF_B -s $MAC_B -d $MAC_A -f "$from" -t "$to" -q "$(sed -n 's/^qpn //p' "$WORK/fields.out")" -T $tci -p 50001 -P $i || fail "tagged failed"
		i=$((i + 1))
	done
	finish "$fields" 10 || { fail "fields ended with $?"; show fields; }
	captured tags "$capa"
	need_equal "wrong ICRCs" "$(packets tags '^(in|out) wrong')" 0
	need_equal "packets with a tag" "$(packets tags '^in icrc 4 [0-9]+ [02] [0-9]+ 1 CQE: .*, VLAN TCI 0x(a07b|0fff)')" 2
	need_equal "packets with two" "$(packets tags '^in icrc 4 [0-9]+ 1 [0-9]+ 2 CQE: .*, VLAN TCI 0xc001')" 1
	command -v tshark >/dev/null || return 0
	need_equal "what tshark finds" "$(HOME=$WORK tshark -n -r "$WORK/tags.pcapng" -Y 'vlan && infiniband' -T fields -e vlan.id -e infiniband.bth.psn 2>/dev/null | tr '\t\n' ' ;')" "123 0;1 1;4095 2;"
}

# -C and -W: each file is whole, none is much longer than said, the oldest are written over.
rotating() {
	local capa f n=0
	gids_once v4 || return
	capture turn a -C 1 --file-count 3
	capa=$child
	client_server 18515 60 ib_send_bw -d $DEV_A -x "$gid_a" -s 65536 -n 2000 -F -- \
		ib_send_bw -d $DEV_B -x "$gid_b" -s 65536 -n 2000 -F $IP4_A || return
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

# The options that end it, and invalid ones.
bounds() {
	local capa
	server_on_a || return
	capture some a -c 3
	capa=$child
	wait_until 10 looked_at 8 || fail "it does not look"
	strangers
	finish "$capa" 10 || fail "-c ends with $?"
	python3 -B "$here/tests/netns/lib/pcapng.py" "$WORK/some.pcapng" >"$WORK/some.packets"
	need_equal "packets" "$(packets some '^in')" 3
	in_a timeout 20 "$XROCE" capture -w "$WORK/none.pcapng" -D 1 >"$WORK/none.out" 2>&1 || fail "-D ends with $?"
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

# A broker's client shows sent and received packets as well, and its QPs' events.
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
	before_client=both_look client_server 18600 60 \
		"$TOOLS/vdata" -d $DEV_A -g "$gid_a" -t rc -m 1024 -n 20 -s 3 -- \
		"$TOOLS/vdata" -d $DEV_B -g "$gid_b" -t rc -m 1024 -n 20 -s 3 $IP4_A || return
	strangers
	captured client "$capa"
	kill -INT "$watch"
	finish "$watch" 10 || fail "trace ends with $?"
	need_equal "wrong ICRCs" "$(packets client '^(in|out) wrong .*(CQE|sent by)')" 0
	need_equal "packets received" "$(packets client '^in icrc .* CQE: QP')" "$(grep -cE ' vdata\[[0-9]+\] QP 0x[0-9a-f]+ < ' "$WORK/shared.out")"
	need_equal "packets sent" "$(packets client '^out icrc .* sent by QP')" "$(grep -cE ' vdata\[[0-9]+\] QP 0x[0-9a-f]+ > ' "$WORK/shared.out")"
	need_least "packets sent" "$(packets client '^out icrc .* sent by QP .*\(vdata\)')" 100
	need_line shared ' vdata\[[0-9]+\] QP 0x[0-9a-f]+ \* state'
	need_equal "packets of nobody" "$(packets client '^in .* dropped: no such QP .*; of no process')" 7
	stop "$broker"
}

# Both have found the broker and its client.
both_look() {
	wait_until 30 looks_at_two "$watch" || fail "the trace does not look"
	wait_until 30 looks_at_two "$capa" || fail "the capture does not look"
}
looks_at_two() { [ "$(traces_with '"owner": *'"$1"'\b' "$(bpftool map show)")" -eq 2 ]; }

# Two clients of a broker, each with its own ring: no packet is received before it was sent, and
# times never decrease. Packets from before a process was found are reported. Packets that were sent
# again do not count: their first sending may be from before the capture.
in_order() {
	local broker capa data waiter
	gids_once v4 || return
	start broker a "$XROCE" serve $IF_A
	broker=$child
	wait_until 20 sh -c "nsenter --net=/run/netns/$NS_A $XROCE list $IF_A | grep -q '^  broker'" || fail "no broker"
	data=("$TOOLS/vdata" -t rc -m 1024 -n 40 -s 5 -d $DEV_A -g "$gid_a" -k "$WORK/go")
	: >"$WORK/go"
	start_on server a "${data[@]}"
	server=$child
	wait_until 30 listens_or_gone a 18600 "$server"
	start_on client a "${data[@]}" $IP4_A
	client=$child
	wait_until 20 sh -c "nsenter --net=/run/netns/$NS_A $XROCE stat | grep -q tx_packets" || fail "no packet"
	capture order a --buffer 256 $IF_A
	capa=$child
	wait_until 20 has_grown "$WORK/order.pcapng" 5000000 || fail "hardly anything is captured"
	# late, for less than a lease: by more than it reads of one ring before the other
	kill -STOP "$capa"
	sleep 0.1
	kill -CONT "$capa"
	rm -f "$WORK/go"
	finish "$client" 30 || { fail "the client ended with $?"; show client; }
	finish "$server" 30 || { fail "the server ended with $?"; show server; }
	captured order "$capa"
	need_line order ' 0 packets lost'
	need_line order "va: pid $client \\(vdata\\) had received [1-9][0-9]* packets and sent [1-9][0-9]* when the capture joined"
	need_no_line order 'written out of order'
	grep -qx 'backwards 0' "$WORK/order.packets" || fail "times fall: $(grep backwards "$WORK/order.packets")"
	need_equal "packets received before they were sent, of many" "$(awk '
		/ sent by QP / { out[$3, $4, $5] = NR; sent[$3, $4, $5]++ }
		/ CQE: QP / { came[$3, $4, $5] = NR; got[$3, $4, $5]++ }
		END { for (k in came) if (got[k] == 1 && sent[k] == 1) { n++; if (came[k] < out[k]) wrong++ } print wrong + 0, (n > 500) }' "$WORK/order.packets")" "0 1"
	stop "$broker"
}

# Copies the command, its library and the tools to where every user may read them.
copy_for_users() {
	chmod 755 "$WORK"
	mkdir -p "$WORK/own/bin" "$WORK/own/lib" "$WORK/own/files"
	chmod 777 "$WORK/own/files"
	install -m 755 "$XROCE" "$TOOLS"/{vdata,asker} "$WORK/own/bin"
	install -m 755 "$BUILD/lib/libibverbs.so.1" "$WORK/own/lib/libibverbs.so.1"
}

# A user's programs under a broker, which that user may inspect: all the information that root gets
# about them, and nothing of another user's.
users_own() {
	local broker watch capa roots other
	local nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
	gids_once v4 || return
	copy_for_users
	start broker a "$XROCE" serve $IF_A
	broker=$child
	wait_until 20 sh -c "nsenter --net=/run/netns/$NS_A $XROCE list $IF_A | grep -q '^  broker'" || fail "no broker"
	# another user's, which root alone sees
	start stranger a setpriv --reuid=65533 --regid=65533 --clear-groups --inh-caps=-all --bounding-set=-all \
		"$WORK/own/bin/xroce" run --share always --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g "$gid_a" -p 18700
	other=$child
	wait_until 10 listens_or_gone a 18700 "$other"
	capture roots a $IF_A
	roots=$child
	start mine a "${nobody[@]}" "$WORK/own/bin/xroce" capture -w "$WORK/own/files/mine.pcapng" $IF_A
	capa=$child
	start seen a "${nobody[@]}" "$WORK/own/bin/xroce" trace --json $IF_A
	watch=$child
	wait_until 10 test -s "$WORK/own/files/mine.pcapng" || { fail "the user's capture does not begin"; show mine; }
	start server a "${nobody[@]}" "$WORK/own/bin/xroce" run --share always --dev $IF_A -- \
		"$WORK/own/bin/vdata" -d $DEV_A -g "$gid_a" -p 18600 -t rc -m 1024 -n 40 -s 3
	server=$child
	wait_until 10 listens_or_gone a 18600 "$server"
	wait_until 10 looked_at 11 || fail "the three do not look"
	start client b "$XROCE" run --dev $IF_B -- "$TOOLS/vdata" -d $DEV_B -g "$gid_b" -p 18600 -t rc -m 1024 -n 40 -s 3 $IP4_A
	finish "$child" 60 || { fail "the client ends with $?"; show client; }
	finish "$server" 20 || { fail "the server ends with $?"; show server; }
	kill -INT "$watch"
	finish "$watch" 10 || { fail "trace ends with $?"; show seen; }
	kill -INT "$capa"
	finish "$capa" 10 || { fail "capture ends with $?"; show mine; }
	captured roots "$roots"
	mv "$WORK/own/files/mine.pcapng" "$WORK"
	python3 -B "$here/tests/netns/lib/pcapng.py" "$WORK/mine.pcapng" >"$WORK/mine.packets" 2>"$WORK/mine.err" || fail "mine.pcapng: $(cat "$WORK/mine.err")"
	need_equal "wrong ICRCs" "$(packets mine '^(in|out) wrong')" 0
	need_least "packets received" "$(packets mine '^in icrc .* CQE: QP')" 100
	need_least "packets sent" "$(packets mine '^out icrc .* sent by QP .*\(vdata\)')" 100
	need_equal "packets received, as root has it" "$(packets mine '^in .* CQE: QP')" "$(packets roots '^in .* CQE: QP.*\(vdata\)')"
	need_equal "packets sent, as root has it" "$(packets mine '^out ')" "$(packets roots '^out .*\(vdata\)')"
	need_equal "packets received, as traced" "$(grep -c '"kind":"received"' "$WORK/seen.out")" "$(packets mine '^in .* CQE: QP')"
	need_line seen '"kind":"event".*"event":"state"'
	need_line mine ' 0 packets lost'
	need_equal "what is not its own" "$(packets mine '(ibv_rc_pingpong|of no process)')" 0
	stop "$other"
	stop "$broker"
}

# What a user may have of that: half of a process's places, a bounded ring, and only its own. What
# it had goes with it, also by kill -9.
users_bounds() {
	local broker first second third ended rings
	local nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
	gids_once v4 || return
	copy_for_users
	start broker a "$XROCE" serve $IF_A
	broker=$child
	wait_until 20 sh -c "nsenter --net=/run/netns/$NS_A $XROCE list $IF_A | grep -q '^  broker'" || fail "no broker"
	start server a "${nobody[@]}" "$WORK/own/bin/xroce" run --share always --dev $IF_A -- \
		ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 100000000
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start first a "${nobody[@]}" "$WORK/own/bin/xroce" trace $IF_A
	first=$child
	start second a "${nobody[@]}" "$WORK/own/bin/xroce" trace $IF_A
	second=$child
	wait_until 10 looked_at 3 || { fail "the two do not look"; show first; show second; }
	start third a timeout 20 "${nobody[@]}" "$WORK/own/bin/xroce" trace -D 1 $IF_A
	finish "$child" 20
	ended=$?
	need_line third 'all trace slots of the process are in use'
	need_equal "status of a third" "$ended" 1
	# root has room for two more
	capture roots a $IF_A
	third=$child
	wait_until 10 looked_at 11 || fail "root does not look"
	captured roots "$third"
	wait_until 10 looked_at 3 || fail "root's place is not given back"
	rings=("$(map_id "$first" xroce_trace)" "$(map_id "$second" xroce_trace)")
	for id in "${rings[@]}"; do
		bpftool map show id "$id" >/dev/null || fail "no ring '$id'"
	done
	# a killed one's place, at once: without waiting for its lease
	kill -9 "$first"
	finish "$first" 5
	wait_until 1 looked_at '[12]' || fail "the place of one that was killed is in use"
	wait_until 10 no_map "${rings[0]}" || fail "its ring is there"
	# its process ends: it goes on, for others that come
	kill -9 "$server"
	finish "$server" 5
	kill -INT "$second"
	finish "$second" 10 || { fail "trace ends with $?"; show second; }
	wait_until 10 no_map "${rings[1]}" || fail "a ring is left"
	stop "$broker"
	# of a privileged process, which started its broker, a user sees nothing
	server_on_a || return
	in_a timeout 20 "${nobody[@]}" "$WORK/own/bin/xroce" trace -D 1 $IF_A >"$WORK/other.out" 2>&1
	need_equal "status without an own process" $? 0
	need_line other "no process of this user uses $IF_A yet; waiting"
	need_equal "lines" "$(wc -l <"$WORK/other.out")" 1
	stop "$server"
}

core_cases=(whole_ud_v6 both_ends_v4_gso tagged_v6)
for family in v4 v6; do
	for t in rc uc ud; do tier_case whole_${t}_$family all_is_there $family $t auto; done
	tier_case whole_rc_${family}_gso all_is_there $family rc gso
	for tx in auto gso; do tier_case both_ends_${family}_$tx both_ends $family $tx; done
	tier_case tagged_$family tagged $family
done
run_case drops_and_filters drops_and_filters
run_long_case in_order in_order
run_case under_load under_load
run_case under_load_filtered under_load_filtered
run_long_case rotating rotating
run_long_case bounds bounds
run_long_case by_a_broker by_a_broker
run_case users_own users_own
run_long_case users_bounds users_bounds
run_long_case ends ends
finish_cases
