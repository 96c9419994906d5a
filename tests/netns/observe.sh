#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# The subcommands that inspect processes: they show the true state and history, as a table and as
# JSON; filters; root sees all, and a user only that user's processes.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"

# A second user without privileges.
USER_=(setpriv --reuid=12345 --regid=12346 --clear-groups --inh-caps=-all --bounding-set=-all)

# show_as WHO SUBCOMMAND...: runs it in A; output in `shown`. Returns its status.
show_as() {
	local who=() name=$1
	case $name in nobody) who=("${NOBODY[@]}") ;; user) who=("${USER_[@]}") ;; esac
	shift
	in_a timeout 30 "${who[@]}" "$OWN/bin/xroce" "$@" >"$WORK/shown.out" 2>"$WORK/said.out"
}
# json EXPRESSION: evaluates a Python expression of d, the valid JSON document in `shown`.
json() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$WORK/shown.out" "$1" 2>&1
}

# waiting NAME PORT [WHO]: a server on A that waits for its client; its pid is in $waiting.
waiting() {
	local who=()
	case ${3:-root} in nobody) who=("${NOBODY[@]}") ;; user) who=("${USER_[@]}") ;; esac
	start "$1" a "${who[@]}" "$OWN/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p "$2"
	waiting=$child
	wait_until 10 listens_or_gone a "$2" "$waiting"
	listens a "$2" || { fail "$1 does not listen"; show "$1"; return 1; }
}

# value COUNTER: of the only process in the JSON that `stat` has printed
value() { json "d[\"ports\"][0][\"counters\"][\"$1\"]"; }

# ---- clients ----

clients_nobody_there() {
	show_as root clients || fail "exit status $?"
	need_equal "lines" "$(wc -l <"$WORK/shown.out")" 1
	show_as root clients --json || fail "exit status $?"
	need_equal "clients" "$(json 'd')" "{'clients': []}"
	show_as root clients --pid 1
	need_equal "exit status of a filter that finds nothing" $? 1
	need_line said '^xroce clients: no such process$'
}

clients_sole() {
	waiting server 18520 || return
	show_as root clients || fail "exit status $?"
	need_line shown "^$IF_A +sole +[0-9]+ +$waiting +ibv_rc_pingpong +root +1 "
	show_as root clients --json --pid "$waiting" --dev $DEV_A || fail "exit status $?"
	need_equal "the process" "$(json '[(c["dev"], c["pid"], c["uid"], c["kind"], c["qps"]) for c in d["clients"]]')" \
		"[('$IF_A', $waiting, 0, 'sole', 1)]"
	show_as nobody clients
	need_equal "exit status of one that may see nothing" $? 0
	need_line said "^xroce clients: other users' processes, if any, are not shown"
	need_equal "lines" "$(wc -l <"$WORK/shown.out")" 1
	stop "$waiting"
}

# With a broker each user sees that user's processes, by descriptors from the broker. The queue of
# the broker's name, a socket that it never reads, is full of queries.
clients_asked_often() {
	waiting server 18521 || return
	in_a python3 -c 'import os, socket, sys
n = 0
while n < 10000:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.setblocking(False)
    try:
        s.connect("\0xroce/" + sys.argv[1])
    except BlockingIOError:
        break
    s.close()
    n += 1
print("full after", n)' "$(ip -n $NS_A -o link show dev $IF_A | cut -d: -f1)" >"$WORK/full.out" 2>&1
	need_line full '^full after [1-9][0-9]*$'
	show_as root clients || fail "exit status $?"
	need_line shown "^$IF_A +sole +[0-9]+ +$waiting +ibv_rc_pingpong +root +1 "
	show_as root list $IF_A || fail "exit status $?"
	need_line shown "^  client +[0-9]+: pid $waiting \\(ibv_rc_pingpong\\) of root, 1 QP;"
	show_as root list --json $IF_A || fail "exit status $?"
	need_equal "whose it is" "$(json '[c["pid"] for c in d["devices"][0]["broker"]["clients"]]')" "[$waiting]"
	stop "$waiting"
}

clients_of_broker() {
	local of_nobody of_user of_root who
	serve a $IF_A || return
	waiting one 18521 nobody && of_nobody=$waiting
	waiting two 18522 user && of_user=$waiting
	waiting three 18523 root && of_root=$waiting
	for who in nobody user; do
		local own=of_$who
		show_as $who clients --json || fail "$who: exit status $?"
		need_equal "what $who sees" "$(json '[(c["pid"], c["kind"], c["qps"]) for c in d["clients"]]')" "[(${!own}, 'client', 1)]"
	done
	show_as root clients --json || fail "exit status $?"
	need_equal "what root sees" "$(json 'sorted(c["pid"] for c in d["clients"])')" \
		"$(printf '%s\n' "$of_nobody" "$of_user" "$of_root" | sort -n | paste -sd, | sed 's/,/, /g; s/.*/[&]/')"
	show_as nobody clients --pid "$of_user"
	need_equal "exit status for another's" $? 1
	stop "$of_nobody"; stop "$of_user"; stop "$of_root"
	stop "$broker"
}

# The broker's descriptors can be read and not written, and are of the shown maps alone.
maps_are_read_only() {
	serve a $IF_A || return
	waiting one 18524 nobody || return
	install -m 755 "$TOOLS/asker" "$OWN/bin/"
	local socket
	socket=/run/xroce/$(stat -L -c %i /run/netns/$NS_A)-$(ip -n $NS_A -o link show $IF_A | cut -d: -f1).sock
	in_a timeout 20 "${NOBODY[@]}" "$OWN/bin/asker" "$socket" maps 0 0 maps 0 3 maps 0 999 maps 1 0 >"$WORK/asked.out" 2>&1
	need_line asked '^maps 0 fds 1[0-9] written 0 mapped 0 names .*xroce_qp( |$)'
	need_no_line asked 'xroce_(xsk|turn|others|ring|channel)'
	need_line asked '^maps 0 fds 0 written 0 mapped 0 names$'
	need_line asked '^maps ENOENT$'
	in_a timeout 20 "${USER_[@]}" "$OWN/bin/asker" "$socket" maps 0 0 maps 1 0 >"$WORK/other.out" 2>&1
	need_equal "what another is told" "$(sort -u "$WORK/other.out")" "maps ENOENT"
	stop "$waiting"
	stop "$broker"
}

# ---- stat ----

# has_come_to_rest PID: it receives no more packets.
has_come_to_rest() { local n; n=$(counter "$1" xroce_eng_stat rx_packets) && [ "$n" = "$(counter "$1" xroce_eng_stat rx_packets)" ]; }

# Two processes that have finished together and stay: the counts equal the maps, and one has
# received as much as the other sent.
stat_of_two() {
	local server client name maps
	start server a "$XROCE" run --dev $IF_A -- "$TOOLS/steady_pingpong" -d $DEV_A -g 0
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start client b "$XROCE" run --dev $IF_B -- "$TOOLS/steady_pingpong" -d $DEV_B -g 0 $IP4_A
	client=$child
	wait_until 10 has_counted rx_packets 1000 || fail "nothing is counted"
	# both are stopped: the counts do not change; the server between two packets
	kill -STOP "$client"
	wait_until 10 has_come_to_rest "$server"
	kill -STOP "$server"
	show_as root stat --json --pid "$server" || fail "exit status $?"
	for name in rx_packets tx_packets tx_bytes tx_acks rx_acks; do
		maps=$(bpftool map dump id "$(map_id "$server" xroce_eng_stat)" | field $name)
		need_equal "$name" "$(value $name)" "$maps"
	done
	need_equal "redirected" "$(value xdp_redirected)" "$(bpftool map dump id "$(map_id "$server" xroce_rx)" | field redirected)"
	# the same under other names, and by the only QP's counters
	need_equal "rxe's sent_pkts" "$(json 'd["ports"][0]["rxe"]["sent_pkts"]')" "$(value tx_packets)"
	need_equal "packets of the port" "$(json '[d["ports"][0]["port"][k] for k in ("port_rcv_packets", "port_xmit_packets")]')" \
		"[$(($(value xdp_redirected) - $(value xdp_super_packets) + $(value xdp_super_segments))), $(value tx_packets)]"
	need_equal "words received" "$(json 'd["ports"][0]["port"]["port_rcv_data"]')" $(($(value xdp_redirected_bytes) / 4))
	need_equal "mlx5's rx_icrc_encapsulated" "$(json 'd["ports"][0]["mlx5"]["rx_icrc_encapsulated"]')" 0
	for name in rx_packets tx_packets tx_bytes tx_retransmitted rx_sequence_naks; do
		need_equal "$name of the QP" "$(counter "$server" xroce_qp_stat $name)" "$(value $name)"
	done
	for name in '"pid": '"$server" '"state": "XROCE_QPS_RTS"' '"transport": "XROCE_RC"' '"path_mtu": 1024' '"error_reason": "XROCE_REASON_NONE"'; do
		bpftool map dump id "$(map_id "$server" xroce_qp_stat)" | grep -q "$name" || fail "the QP does not show $name"
	done
	need_equal "bytes of memory regions" "$(counter "$server" xroce_mr_stat length)" 4096
	# of a receive and a send for each message, of at most four packets and four ACKs
	need_least "completions" "$(counter "$server" xroce_cq_stat completions)" 250
	show_as root stat --pid "$server" || fail "exit status $?"
	need_line shown "^$IF_A +$server +steady_pingpong +tx_packets +[1-9][0-9]* +- +packets sent"
	need_no_line shown ' rx_atomics '
	show_as root stat --json --interval 0.1 --count 3 --pid "$server" || fail "exit status $?"
	need_equal "documents" "$(wc -l <"$WORK/shown.out")" 3
	tail -1 "$WORK/shown.out" >"$WORK/last" && mv "$WORK/last" "$WORK/shown.out"
	need_equal "packets per second of one that is stopped" "$(json 'd["ports"][0]["per_second"]["tx_packets"]')" 0.0
	kill -CONT "$server" "$client"
	show_as root stat --json --interval 0.2 --count 2 --pid "$server" || fail "exit status $?"
	tail -1 "$WORK/shown.out" >"$WORK/last" && mv "$WORK/last" "$WORK/shown.out"
	need_equal "packets per second of one that runs are some" "$(json 'd["ports"][0]["per_second"]["tx_packets"] > 0')" True
	stop "$client"; stop "$server"
}

# ---- qp ----

qp_waiting() {
	waiting server 18525 || return
	show_as root qp || fail "exit status $?"
	need_line shown "^$IF_A +0x[0-9a-f]{6} +RC +init +$waiting +ibv_rc_pingpong "
	show_as root qp --state init --json || fail "exit status $?"
	need_equal "the QP" "$(json '[(q["type"], q["state"], q["pid"], q["error"]) for q in d["qps"]]')" "[('RC', 'init', $waiting, None)]"
	show_as root qp --state rts
	need_equal "exit status for a state that none has" $? 1
	need_line said '^xroce qp: no such queue pair$'
	stop "$waiting"
}

# Both ends of a connection agree on it, and with the maps.
qp_of_two() {
	local server client qpn_a qpn_b i
	start server a "$XROCE" run --dev $IF_A -- "$TOOLS/steady_pingpong" -d $DEV_A -g 0
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start client b "$XROCE" run --dev $IF_B -- "$TOOLS/steady_pingpong" -d $DEV_B -g 0 $IP4_A
	client=$child
	wait_until 10 has_counted rx_packets 1000 || fail "nothing is counted"
	kill -STOP "$server" "$client"
	qpn_a=$(bpftool map dump id "$(map_id "$server" xroce_qp_stat)" | field qpn)
	qpn_b=$(bpftool map dump id "$(map_id "$client" xroce_qp_stat)" | field qpn)
	show_as root qp --json --qpn "$qpn_a" || fail "exit status $?"
	need_equal "the QP" "$(json '[(q["qpn"], q["peer_qpn"], q["state"], q["peer"], q["local"], q["path_mtu"]) for q in d["qps"]]')" \
		"[($qpn_a, $qpn_b, 'rts', '$IP4_B', '$IP4_A', 1024)]"
	for i in tx_packets rx_packets tx_bytes sq_psn rq_psn msn; do
		need_equal "$i" "$(json "d['qps'][0]['$i']")" "$(bpftool map dump id "$(map_id "$server" xroce_qp_stat)" | field $i)"
	done
	need_equal "packets by XDP" "$(json 'd["qps"][0]["xdp_packets"]')" "$(bpftool map dump id "$(map_id "$server" xroce_qp)" | field rx_packets)"
	show_as root qp --peer $IP4_B || fail "by its peer: exit status $?"
	show_as root qp --peer $IP4_A
	need_equal "exit status for a peer that none has" $? 1
	show_as nobody qp
	need_equal "exit status of one that may see nothing" $? 0
	need_line said "other users' processes, if any, are not shown"
	kill -CONT "$server" "$client"
	stop "$client"; stop "$server"
}

# The CQ, the region and, of srq_pingpong, the SRQ of both ends: equal to the programs' objects and
# to the maps.
objects_of_two() {
	local server client
	start server a "$XROCE" run --dev $IF_A -- ibv_srq_pingpong -e -d $DEV_A -g 0 -q 2 -r 37 -s 8192 -n 1000000000
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start client b "$XROCE" run --dev $IF_B -- ibv_srq_pingpong -e -d $DEV_B -g 0 -q 2 -r 37 -s 8192 -n 1000000000 $IP4_A
	client=$child
	wait_until 10 has_counted rx_packets 1000 || fail "nothing is counted"
	kill -STOP "$server" "$client"
	show_as root cq --json --pid "$server" || fail "exit status $?"
	need_equal "the CQ" "$(json '[(c["pid"], c["entries"] >= 37 + 2, c["has_channel"], c["overruns"], c["events"] > 0) for c in d["cqs"]]')" \
		"[($server, True, True, 0, True)]"
	need_equal "its completions" "$(json 'd["cqs"][0]["completions"]')" "$(bpftool map dump id "$(map_id "$server" xroce_cq_stat)" | field completions)"
	show_as root srq --json || fail "exit status $?"
	need_equal "the SRQ" "$(json '[(s["pid"], s["entries"], s["waiting"] < 37, s["xrcd"]) for s in d["srqs"]]')" "[($server, 37, True, None)]"
	need_equal "receives taken" "$(json 'd["srqs"][0]["taken"]')" "$(bpftool map dump id "$(map_id "$server" xroce_srq_stat)" | field taken)"
	show_as root mr --json || fail "exit status $?"
	need_equal "the region" "$(json '[(m["pid"], m["kind"], m["length"], m["rights"]) for m in d["mrs"]]')" "[($server, 'region', 8192, 'write')]"
	bpftool map dump id "$(map_id "$server" xroce_mr_stat)" >"$WORK/dump.out"
	need_line dump "\"key\": $(json 'd["mrs"][0]["key"]'),\$"
	show_as root mr --sort length || fail "sorted: exit status $?"
	need_line shown "^$IF_A +$server +ibv_srq_pingpon +0x[0-9a-f]{8} +region +0x[0-9a-f]+ +8192 +write "
	show_as nobody cq
	need_equal "exit status of one that may see nothing" $? 0
	need_line said "other users' processes, if any, are not shown"
	kill -CONT "$server" "$client"
	stop "$client"; stop "$server"
}

# A user sees the queue pairs of that user's processes.
qp_of_broker() {
	local of_nobody of_user
	serve a $IF_A || return
	waiting one 18526 nobody && of_nobody=$waiting
	waiting two 18527 user && of_user=$waiting
	show_as nobody qp --json || fail "exit status $?"
	need_equal "what nobody sees" "$(json '[(q["pid"], q["state"]) for q in d["qps"]]')" "[($of_nobody, 'init')]"
	show_as user qp --json || fail "exit status $?"
	need_equal "what the user sees" "$(json '[(q["pid"], q["state"]) for q in d["qps"]]')" "[($of_user, 'init')]"
	stop "$of_nobody"; stop "$of_user"
	stop "$broker"
}

has_counted() { show_as root stat --json --dev $IF_A && [ "$(value "$1")" -ge "$2" ] 2>/dev/null; }

wrong_usage() {
	local option
	for option in --interval=0 --interval=x --count=0 --qpn=1; do
		show_as root stat $option
		need_equal "exit status of stat with $option" $? 2
	done
	for option in --qpn=0x1000000 --peer=x --state=x --sort=x; do
		show_as root qp $option
		need_equal "exit status of qp with $option" $? 2
	done
	for option in --qpn=1 --sort=x more; do
		show_as root cq $option
		need_equal "exit status of cq with $option" $? 2
	done
	for option in --nosuch --pid=x --pid=-1 --pid more -d; do
		show_as root clients $option
		need_equal "exit status with $option" $? 2
	done
	show_as root clients --dev nosuch
	need_equal "exit status with no such interface" $? 2
	show_as root clients --help || fail "--help"
	need_line shown '^usage: xroce clients '
}

# With too few descriptors nothing is shown, and the error names the limit. The minimum is enough
# for a process.
few_descriptors() {
	local command
	for command in qp stat clients mr explain "top -c 1" "trace -D 1" "capture -D 1 -w $WORK/few" "export --once"; do
		# shellcheck disable=SC2086 # words
		in_a timeout 20 prlimit --nofile=10 "$XROCE" $command >"$WORK/few.out" 2>&1
		need_equal "exit status of $command" $? 1
		need_line few 'too few file descriptors to inspect processes: the limit is 10; raise `ulimit -n` to 64'
	done
	in_a timeout 20 prlimit --nofile=10 "$XROCE" doctor >"$WORK/few.out" 2>&1 && fail "doctor finds nothing"
	need_line few '^FAIL .*Too many open files -> raise `ulimit -n`$'
	need_no_line few 'Too many open files -> use '
	waiting one 18515
	in_a timeout 20 prlimit --nofile=64 "$XROCE" stat >"$WORK/few.out" 2>&1 || { fail "stat with 64"; show few; }
	in_a timeout 20 prlimit --nofile=64 "$XROCE" qp >"$WORK/few.out" 2>&1 || { fail "qp with 64"; show few; }
	need_line few " $waiting "
	stop "$waiting"
}

# A stopped broker is reported as not answering; no answer is not "no clients".
broker_is_stopped() {
	local broker asked listed in_json
	start broker a "$XROCE" serve $IF_A
	broker=$child
	wait_until 10 netns_answers a || { fail "no broker"; return; }
	kill -STOP "$broker"
	# each waits for the broker for some seconds, so at the same time
	start silent_clients a timeout 20 "$XROCE" clients
	asked=$child
	start silent_list a timeout 15 "$XROCE" list $IF_A
	listed=$child
	start silent_json a timeout 15 "$XROCE" list --json $IF_A
	in_json=$child
	in_a timeout 15 "$XROCE" doctor $IF_A >"$WORK/silent.out" 2>&1
	need_equal "exit status of doctor" $? 1
	need_line silent "$IF_A.*broker.* process $broker .xroce. does not answer"
	finish "$asked" 20
	need_equal "exit status" $? 1
	need_line silent_clients "^xroce clients: the broker of $IF_A does not answer"
	finish "$listed" 15 || fail "list ends with $?"
	need_line silent_list "^  broker    pid $broker .xroce., does not answer"
	finish "$in_json" 15 || fail "list --json ends with $?"
	need_line silent_json '"silent": true'
	kill -CONT "$broker"
	in_a timeout 20 "$XROCE" clients >"$WORK/silent.out" 2>&1 || fail "exit status $? later"
	stop "$broker"
}

run_case few_descriptors few_descriptors
run_case broker_is_stopped broker_is_stopped
run_long_case clients_nobody_there clients_nobody_there
run_long_case clients_sole clients_sole
run_long_case clients_asked_often clients_asked_often
run_case clients_of_broker clients_of_broker
run_case maps_are_read_only maps_are_read_only
run_long_case stat_of_two stat_of_two
run_case qp_waiting qp_waiting
run_long_case qp_of_two qp_of_two
run_long_case objects_of_two objects_of_two
run_long_case qp_of_broker qp_of_broker
run_case wrong_usage wrong_usage
finish_cases
