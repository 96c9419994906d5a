#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# `xroce explain` names the faults: they are staged with programs that then stay as they are,
# through a forwarder that loses, marks, corrupts or drops packets that are too long; of healthy
# pairs it reports no fault. With XROCE_EXPLAIN_KEEP=DIR each text is kept there.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_chain 4500
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/cable.sh"

USER_=(setpriv --reuid=12345 --regid=12346 --clear-groups --inh-caps=-all --bounding-set=-all)
install -m 755 "$TOOLS/staged" "$OWN/bin/staged"
FOUND=3

# explain_in NS WHO ARGUMENT...: as text in `said` and, at the same time, as JSON in `json`. Its
# exit status; $DIFFER if they do not end alike, as on a busy machine, where one may see what the
# other does not.
DIFFER=99
explain_in() {
	local ns=$1 who=() rc as_text
	case $2 in nobody) who=("${NOBODY[@]}") ;; user) who=("${USER_[@]}") ;; esac
	shift 2
	in_ns "$ns" timeout 30 "${who[@]}" "$OWN/bin/xroce" explain "$@" >"$WORK/said.out" 2>&1 &
	in_ns "$ns" timeout 30 "${who[@]}" "$OWN/bin/xroce" explain --json "$@" >"$WORK/json.out" 2>"$WORK/json.err"
	rc=$?
	wait $!
	as_text=$?
	[ $as_text -eq $rc ] || return $DIFFER
	return $rc
}
json() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
f = [f for p in d["processes"] for f in p["findings"]]
q = [q for p in d["processes"] for q in p["qps"]]
number = lambda id, name: [n["value"] for x in f if x["id"] == id for n in x["numbers"] if n["name"] == name][0]
print(eval(sys.argv[2]))' "$WORK/json.out" "$1" 2>&1
}
# The first finding and its severity; all findings but notes.
first() { json '"%s %s" % (f[0]["id"], f[0]["severity"]) if f else "none"'; }
causes() { json '" ".join(x["id"] for x in f if x["severity"] != "note" and not x["is_consequence"])'; }
keep_text() { [ -z "${XROCE_EXPLAIN_KEEP:-}" ] || cp "$WORK/said.out" "$XROCE_EXPLAIN_KEEP/$1.txt"; }

# names NS WHO ID SEVERITY ARGUMENT...: that is the first finding, with its numbers and the advice.
# On a busy machine a worse one may appear for a second: it runs again.
is_named() {
	explain_in "$1" "$2" "${@:5}"
	[ $? -eq $FOUND ] && [ "$(first)" = "$3 $4" ]
}
names() {
	wait_until 30 is_named "$@" || { fail "the first finding is '$(first)', not '$3 $4'"; show said; return; }
	keep_text "${FUNCNAME[1]}-$1"
	need_equal "it has numbers, and what to do" "$(json 'bool(f[0]["numbers"] and f[0]["advice"] and f[0]["text"])')" True
	need_line said "^  $4 +[A-Z]"
	need_line said ' -> '
}
# nothing_but: the same, and nothing else is a cause.
is_alone() { is_named "$@" && [ "$(causes)" = "$3" ]; }
nothing_but() { wait_until 30 is_alone "$@" || { fail "more than $3: $(causes)"; show said; }; }
# nothing NS WHO ARGUMENT...: all is well.
is_nothing() { explain_in "$@" && [ -z "$(causes)" ]; }
nothing() {
	wait_until 40 is_nothing "$@" || { fail "something is wrong: $(causes)"; show said; return; }
	keep_text "${FUNCNAME[1]}-$1"
	need_line said '^  No problem found\.$'
}

# ---- a pair of programs ----

# On a busy machine they would wait for a CPU, and that would be said: they come first here.
FAST=(setsid nice -n -20 sh -c 'echo -20 2>/dev/null >/proc/self/autogroup; exec "$@"' fast)
run_on() { # NAME NS COMMAND...
	local dev=$IF_A
	[ "$2" = b ] && dev=$IF_B
	start "$1" "$2" "${FAST[@]}" "$XROCE" run --dev "$dev" -- "${@:3}"
}
path_with() { cable_with "$@" && chrt -f -p 1 "$cable"; }

qpn_of() { sed -n 's/^QPN //p' "$WORK/$1.out"; }
is_said() { grep -q "$2" "$WORK/$1.out"; }
is_said_or_gone() { is_said "$1" "$2" || is_gone_or_zombie "$3"; }

# stage FAULT [OPTION...]: both ends until they are connected; their pids and QPNs.
stage() {
	local fault=$1
	shift
	gids_once v4 || return
	run_on server a "$TOOLS/staged" -d $DEV_A -g "$gid_a" "$@" "$fault"
	server=$child
	wait_until 10 listens_or_gone a 18640 "$server"
	run_on client b "$TOOLS/staged" -d $DEV_B -g "$gid_b" "$@" "$fault" $IP4_A
	client=$child
	wait_until 20 is_said_or_gone client connected "$client"
	is_said client connected || { fail "it is not connected"; show server; show client; return 1; }
	qpn_a=$(qpn_of server) qpn_b=$(qpn_of client)
}
unstage() { stop "$client"; stop "$server"; }
fails() { wait_until 30 is_said client "failed: $1" || { fail "no request fails"; show client; }; }
has_sent() { [ "$(counter "$1" xroce_qp_stat tx_packets)" -ge "$2" ]; }
# has_more PID MAP FIELD THAN
has_more() { [ "$(counter "$1" "$2" "$3")" -gt "$4" ]; }
runs() { wait_until 20 has_sent "$client" 500 || fail "nothing is sent"; }

# ---- what no fault is ----

# The server always polls, and has the CPU time that it wants.
healthy_pingpong() {
	gids_once v4 || return
	path_with -l 0
	run_on server a "$TOOLS/steady_pingpong" -s -d $DEV_A -g "$gid_a"
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	run_on client b "$TOOLS/steady_pingpong" -d $DEV_B -g "$gid_b" $IP4_A
	client=$child
	runs
	nothing a root "$server"
	nothing b root "$client"
	need_equal "the queue pair" "$(json '[(x["state"], x["peer"], x["peer_is_here"], x["tx_packets_per_s"] > 0) for x in q]')" \
		"[('rts', '$IP4_A', True, True)]"
	unstage
}

healthy_bulk() {
	stage bulk -m 1024 || return
	runs
	nothing a root "$qpn_a"
	nothing b root "$qpn_b"
	unstage
}

# An idle pair is no fault, and is reported as idle.
idle() {
	stage still || return
	nothing a root --qpn "$qpn_a"
	need_equal "the note" "$(json '[x["id"] for x in f]')" "['idle']"
	unstage
}

waiting_for_a_peer() {
	gids_once v4 || return
	run_on server a ibv_rc_pingpong -d $DEV_A -g "$gid_a"
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	nothing a root "$server"
	need_equal "the note" "$(json '[x["id"] for x in f]')" "['not-connected']"
	stop "$server"
}

# ---- requests that are refused ----

wrong_key() {
	stage key || return
	fails 'remote access error'
	names b root error broken "$qpn_b"
	need_equal "its reason" "$(json 'number("error", "error_reason")')" 7
	need_line said 'remote access error'
	names a root error broken "$qpn_a"
	need_equal "its reason" "$(json 'number("error", "error_reason")')" 65
	unstage
}

invalid_request() {
	stage invalid || return
	fails 'remote invalid request error'
	names b root error broken "$qpn_b"
	need_equal "its reason" "$(json 'number("error", "error_reason")')" 6
	names a root error broken "$qpn_a"
	need_line said 'longer than the receive'
	unstage
}

cq_overrun() {
	stage cq || return
	wait_until 20 has_more "$server" xroce_cq_stat overruns 0 || fail "no CQ overruns"
	names a root cq-overrun broken "$qpn_a"
	need_least "entries" "$(json 'number("cq-overrun", "cq_entries")')" 8
	unstage
}

rnr_for_ever() {
	stage rnr || return
	wait_until 20 has_more "$client" xroce_qp_stat rx_rnr_naks 10 || fail "no RNR NAK"
	names b root rnr broken "$qpn_b"
	need_least "RNR NAKs" "$(json 'number("rnr", "rx_rnr_naks")')" 10
	names a root rnr-here broken "$qpn_a"
	unstage
}

# ---- a peer that does not answer ----

peer_killed() {
	stage bulk || return
	runs
	kill -KILL "$server"
	finish "$server" 10
	fails 'transport retry counter exceeded'
	names b root peer-silent broken "$qpn_b"
	need_line said 'of the peer has exited|has probably exited, or was killed'
	nothing_but b root peer-silent broken "$qpn_b"
	unstage
}

# The same on one interface, where it can be known.
peer_gone_here() {
	local words=("${FAST[@]}" "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A --share always --)
	gids_once v4 || return
	serve a $IF_A || return
	start server a "${words[@]}" "$OWN/bin/staged" -d $DEV_A -g "$gid_a" still
	server=$child
	wait_until 10 listens_or_gone a 18640 "$server"
	start client a "${words[@]}" "$OWN/bin/staged" -d $DEV_A -g "$gid_a" still $IP4_A
	client=$child
	wait_until 20 is_said_or_gone client connected "$client"
	nothing a nobody "$client"
	explain_in a user "$client"
	need_equal "exit status for another's process" $? 1
	need_line said 'no such queue pair or process, or permission denied for this user'
	# its own user sees both ends
	explain_in a nobody
	need_equal "processes that their user sees" "$(json '[p["pid"] for p in d["processes"]] == sorted(['"$server, $client"'])')" True
	need_equal "both ends" "$(json '[x["peer_is_here"] for x in q]')" "[True, True]"
	kill -KILL "$server"
	finish "$server" 10
	names a root peer-gone slow "$client"
	stop "$client"
	stop "$broker"
}

is_stopped() { ! cut -d' ' -f3 /proc/"$1"/task/*/stat | grep -qv T; }

peer_stopped() {
	stage bulk || return
	runs
	kill -STOP "$server"
	wait_until 10 is_stopped "$server" || fail "it does not stop"
	names a root process-stopped broken "$server"
	fails 'transport retry counter exceeded'
	names b root peer-stopped broken "$qpn_b"
	need_equal "what follows from it" "$(json '[x["id"] for x in f if x["is_consequence"]]')" "['peer-silent']"
	kill -CONT "$server"
	unstage
}

# sink OPTION...: a UD queue pair that receives, $sink and $qpn.
begin_sink() {
	start_on sink a "$TOOLS/udsink" "$@" $DEV_A
	sink=$child
	wait_until 10 is_said sink QPN || { fail "no queue pair"; show sink; return 1; }
	qpn=$(qpn_of sink)
}
datagrams() { in_b "$TOOLS/supers" -i $IF_B -D $MAC_A -S $IP4_B -T $IP4_A -q "$qpn" -Q 0x11111111 -n "$1" >/dev/null; }

# It always polls, on a CPU that another process uses: it runs only when the CPU is otherwise idle.
starve_sink() {
	begin_sink -p || return
	taskset -c 0 bash -c 'while :; do :; done' &
	hog=$!
	netns_children+=("$hog")
	taskset -acp 0 "$sink" >/dev/null && chrt -a -i -p 0 "$sink" || fail "it keeps its CPU"
}

starved() {
	local sink qpn hog
	starve_sink || return
	names a root process-starved slow "$sink"
	need_least "threads that want to run" "$(json 'number("process-starved", "threads_ready")')" 1
	stop "$hog"
	stop "$sink"
}

link_down() {
	stage bulk || return
	runs
	ip -n $NS_P link set pb down
	names b root link-down broken "$client"
	ip -n $NS_P link set pb up
	ip -n $NS_B link set $IF_B down
	names b root link-down broken "$qpn_b"
	need_line said 'is down: it neither sends nor receives'
	ip -n $NS_B link set $IF_B up
	unstage
	path_with -l 0 # it has ended with its interface
}

pkey_mismatch() {
	local words=("${FAST[@]}" "${NOBODY[@]}" "$OWN/bin/xroce" run --share always) a b
	gids_once v4 || return
	serve_options=(--pkey 0x8001)
	serve a $IF_A && a=$broker || return
	serve_options=(--pkey 0x8002)
	serve b $IF_B && b=$broker || return
	serve_options=()
	start server a "${words[@]}" --dev $IF_A -- "$OWN/bin/staged" -d $DEV_A -g "$gid_a" -p 1 pkey
	server=$child
	wait_until 10 listens_or_gone a 18640 "$server"
	start client b "${words[@]}" --dev $IF_B -- "$OWN/bin/staged" -d $DEV_B -g "$gid_b" -p 1 pkey $IP4_A
	client=$child
	fails 'transport retry counter exceeded'
	names b root pkey-mismatch broken "$client"
	# an unprivileged user sees one end, where the finding shows: the end that drops
	names a nobody pkey-mismatch broken "$server"
	need_least "packets dropped" "$(json 'number("pkey-mismatch", "drop_pkey")')" 1
	explain_in b nobody "$client"
	need_equal "exit status of the user at the other end" $? $FOUND
	need_equal "what can be known there" "$(first)" "peer-silent broken"
	need_line said 'its P_Key differs'
	unstage
	stop "$a"
	stop "$b"
}

# ---- the path ----

mtu_of_path() {
	path_with -b 1500
	stage bulk -m 4096 || return
	fails 'transport retry counter exceeded'
	names b root mtu-of-path broken "$qpn_b"
	need_least "bytes" "$(json 'number("mtu-of-path", "resent_bytes")')" 4096
	unstage
	# a link in between that is narrower than both ends
	path_with -l 0
	ip -n $NS_P link set pb mtu 1500
	stage bulk -m 4096 || return
	fails 'transport retry counter exceeded'
	names b root mtu-of-path broken "$qpn_b"
	ip -n $NS_P link set pb mtu 4500
	unstage
}

mtu_of_interface() {
	stage still -m 4096 || return
	ip -n $NS_B link set $IF_B mtu 1500
	names b root mtu-of-interface broken "$qpn_b"
	ip -n $NS_B link set $IF_B mtu 4500
	unstage
}

loss() {
	path_with -s 3 -l 10
	stage bulk -m 1024 || return
	runs
	names b root loss slow "$client"
	names a root loss-inbound slow "$server"
	path_with -l 0
	unstage
}

congestion() {
	export XROCE_ECN=1
	path_with -s 4 -e 100
	stage bulk || { unset XROCE_ECN; return; }
	unset XROCE_ECN
	runs
	names b root congestion slow "$qpn_b"
	need_least "notifications" "$(json 'number("congestion", "rx_cnps")')" 1
	names a root congestion-marks slow "$qpn_a"
	cable_did marked
	path_with -l 0
	unstage
}

# ---- what others send ----

spoiled() {
	path_with -s 5 -c 20
	stage bulk || return
	runs
	names a root icrc-errors slow "$qpn_a"
	cable_did spoiled
	path_with -l 0
	unstage
}

# Repeated packets to the QP from an address that is not its peer's.
forged() {
	local forger
	stage still || return
	start forger b "$TOOLS/supers" -i $IF_B -D $MAC_A -S 10.77.0.66 -T $IP4_A -q "$qpn_a" -n 1000000 -r 200
	forger=$child
	wait_until 10 has_more "$server" xroce_drop peer 10 || fail "nothing is dropped"
	names a root foreign-packets slow "$qpn_a"
	need_line said 'drop_peer [1-9]'
	stop "$forger"
	unstage
}

ring_overflow() {
	local sink qpn
	begin_sink || return
	kill -STOP "$sink"
	wait_until 10 is_stopped "$sink" || fail "it does not stop"
	datagrams 8000
	wait_until 10 has_more "$sink" xroce_rx redirected 5000 || fail "nothing comes"
	names a root process-stopped broken "$qpn"
	need_equal "all" "$(causes)" "process-stopped ring-overflow"
	need_least "frames that are not taken" "$(json 'number("ring-overflow", "frames_not_taken")')" 5000
	kill -CONT "$sink"
	stop "$sink"
}

# It runs, but less than the packets that come need.
ring_overflow_starved() {
	local sink qpn hog flood
	starve_sink || return
	start flood b "$TOOLS/supers" -i $IF_B -D $MAC_A -S $IP4_B -T $IP4_A -q "$qpn" -Q 0x11111111 -n 100000000
	flood=$child
	wait_until 10 has_more "$sink" xroce_rx redirected 20000 || fail "nothing comes"
	names a root process-starved slow "$qpn"
	# the ring is full, or no buffer is left for it: which comes first is the scheduler's
	[[ $(causes) == "process-starved "@(ring-overflow|no-buffer)* ]] || { fail "what is found is $(causes)"; show said; }
	stop "$flood"
	stop "$hog"
	stop "$sink"
}

# ---- the command ----

usage() {
	local argument
	for argument in 0x1000000 x -1 --interval=0 --qpn=x --nosuch '1 2' '--pid=1 2'; do
		# shellcheck disable=SC2086 # words
		explain_in a root $argument
		need_equal "exit status with $argument" $? $([ "$argument" = 0x1000000 ] && echo 1 || echo 2)
	done
	explain_in a root 99999999
	need_equal "exit status for what there is not" $? 1
	explain_in a root
	need_equal "exit status where nobody is" $? 1
	explain_in a root --help
	need_line said '^usage: xroce explain '
}

path_with -l 0
run_long_case usage usage
run_long_case healthy_pingpong healthy_pingpong
run_long_case healthy_bulk healthy_bulk
run_case idle idle
run_long_case waiting_for_a_peer waiting_for_a_peer
run_case wrong_key wrong_key
run_long_case invalid_request invalid_request
run_long_case cq_overrun cq_overrun
run_long_case rnr_for_ever rnr_for_ever
run_long_case peer_killed peer_killed
run_long_case peer_gone_here peer_gone_here
run_long_case peer_stopped peer_stopped
run_long_case starved starved
run_long_case link_down link_down
run_long_case pkey_mismatch pkey_mismatch
run_long_case mtu_of_path mtu_of_path
run_case mtu_of_interface mtu_of_interface
run_long_case loss loss
run_long_case congestion congestion
run_long_case spoiled spoiled
run_long_case forged forged
run_long_case ring_overflow ring_overflow
run_long_case ring_overflow_starved ring_overflow_starved
stop "$cable"
finish_cases
