#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# An administrator changes an interface while a process uses it: MTU, MAC, addresses, name, link
# state, network namespace. The owner is a process, or brokers at both ends with a user's programs.
# Checks the data, new connections of the process, the output of every observing command during the
# change, and the state that remains at the end.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/as_before.sh"
ENDS=(a b)
. "$(dirname "$0")/lib/vdata.sh"
. "$(dirname "$0")/lib/python.sh"
netns_pair 4500
netns_add $NS_P
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS"/{vdata,again} "$OWN/bin"
# Neighbours are notified of a change of MAC or address at once.
for ns in a b; do
	in_ns $ns sh -c 'echo 1 >/proc/sys/net/ipv4/conf/all/arp_notify'
done

# ---- processes ----

# prepare MODE: `alone`, or brokers at both ends; sets in `words` how programs are started.
prepare() {
	there_is >"$WORK/before.out"
	brokers=()
	words=("$OWN/bin/xroce" run)
	[ "$1" = broker ] || return 0
	serve a $IF_A && brokers+=("$broker") && serve b $IF_B && brokers+=("$broker") || return
	words=("${NOBODY[@]}" "$OWN/bin/xroce" run --share always)
}
# settle: stops the brokers, and checks that the initial state is restored.
settle() {
	local pid
	for pid in "${brokers[@]}"; do
		stop "$pid"
	done
	nothing_left
}

# begin MODE [OPTION...]: checked traffic until $WORK/go is removed, in $server and $client.
begin() {
	local options=(-g 0 -k "$WORK/go" -n 1 -T 18 -i 2 "${@:2}")
	prepare "$1" || return
	: >"$WORK/go"
	start server a "${words[@]}" --dev $IF_A -- "$OWN/bin/vdata" -d $DEV_A "${options[@]}"
	server=$child
	wait_until 10 listens_or_gone a 18600 "$server"
	start client b "${words[@]}" --dev $IF_B -- "$OWN/bin/vdata" -d $DEV_B "${options[@]}" $IP4_A
	client=$child
	goes_on
}
end() { vdata_ends; settle; }

# keep MODE [OPTION...]: a process on A that keeps its device and connects again, in $keeper.
keep() {
	prepare "$1" || return
	start keeper a "${words[@]}" --dev $IF_A -- "$OWN/bin/again" -d $DEV_A -g 0 "${@:2}"
	keeper=$child
	wait_until 10 listens_or_gone a 18650 "$keeper"
}
# meets NS [OPTION...]: a new process in NS connects to it.
meets() {
	local dev=$IF_A
	[ "$1" = a ] || dev=$IF_B
	start other "$1" "${words[@]}" --dev $dev -- "$OWN/bin/again" -d xroce_$dev -g 0 "${@:2}" $IP4_A
	finish "$child" 60 || { fail "an exchange with $1 ends with $?"; show other; show keeper; return 1; }
	times=$((times + 1))
	wait_until 5 said_right
}
said_right() { [ "$(grep -c '^right' "$WORK/keeper.out")" -ge $times ]; }
meets_itself() {
	times=$((times + 1))
	kill -USR1 "$keeper"
	wait_until 30 said_right_or_gone
	said_right || { fail "it does not meet itself"; show keeper; return 1; }
}
said_right_or_gone() { said_right || is_gone_or_zombie "$keeper"; }
dismiss() {
	stop "$keeper"
	settle
}

# ---- output of the observing commands ----

list_json() { in_a "$XROCE" list --json $IF_A >"$WORK/list.json" 2>"$WORK/list.err"; }
of_list() {
	python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))["devices"][0]
print(eval(sys.argv[2]))' "$WORK/list.json" "$1" 2>&1
}
# lists EXPRESSION VALUE: compares the current output of `xroce list --json`.
lists() {
	list_json
	need_equal "$1 of list" "$(of_list "$1")" "$2"
}
lists_soon() { list_json && [ "$(of_list "$1")" = "$2" ]; }

# looks: each observing command prints the same as text and as complete JSON, and both exit alike.
looks() {
	local what words rc as_text
	for what in list stat qp cq srq mr clients doctor "explain -i 0.2" "top -c 1 -i 0.2 -b"; do
		read -ra words <<<"$what"
		in_a timeout 20 "$XROCE" "${words[@]}" --json >"$WORK/look.json" 2>"$WORK/look.err"
		rc=$?
		in_a timeout 20 "$XROCE" "${words[@]}" >"$WORK/look.out" 2>&1
		as_text=$?
		case $what in
		explain*) [[ "$rc$as_text" =~ ^[03]+$ ]] ;;
		doctor) [ $rc = $as_text ] && [ $rc -le 1 ] ;;
		*) [ $rc = 0 ] && [ $as_text = 0 ] ;;
		esac || { fail "xroce $what ends with $as_text, as JSON with $rc: $(head -n 1 "$WORK/look.err")"; show look; }
		python3 -m json.tool "$WORK/look.json" >/dev/null 2>&1 || fail "xroce $what --json is no JSON"
	done
	in_a timeout 20 "$XROCE" export -1 >"$WORK/metrics.out" 2>"$WORK/look.err" || fail "xroce export -1 ends with $?"
	need_line metrics '^xroce_device_up\{'
}
# says COMMAND...: saves the output in `said`
says() { in_a timeout 20 "$XROCE" "$@" >"$WORK/said.out" 2>&1; }

# same_figures: stops both processes, so that text and JSON must have the same numbers.
same_figures() {
	kill -STOP "$server" "$client"
	in_a "$XROCE" stat --pid "$server" >"$WORK/stat.out"
	in_a "$XROCE" stat --pid "$server" --json >"$WORK/stat.json"
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	list_json
	in_a "$XROCE" qp --pid "$server" >"$WORK/qp.out"
	in_a "$XROCE" qp --pid "$server" --json >"$WORK/qp.json"
	kill -CONT "$server" "$client"
	python3 - "$WORK" "$server" >"$WORK/figures.out" 2>&1 <<'END' || { fail "text and JSON differ"; show figures; }
import json, re, sys
work, pid = sys.argv[1], int(sys.argv[2])
read = lambda name: open(f"{work}/{name}").read()
wrong = []
stat = {}
for line in read("stat.out").splitlines():
    word = line.split()
    if len(word) > 4 and word[1] == str(pid):
        stat[word[3]] = int(word[4])
port, = json.loads(read("stat.json"))["ports"]
want = {k: n for k, n in port["counters"].items() if n}
# these have current values, also for a stopped process
moving = {k for k in want if k.startswith("sock_")}
for k in sorted(set(stat) | set(want)):
    if k not in moving and stat.get(k, 0) != want.get(k, 0):
        wrong.append(f"stat: {k} is {stat.get(k)} and {want.get(k)}")
device, = json.loads(read("list.json"))["devices"]
text = read("list.out")
for k, pattern in (("mtu", r"MTU (\d+)"), ("path_mtu", r"path MTU +(\d+)")):
    found = re.search(pattern, text)
    if not found or int(found[1]) != device[k]:
        wrong.append(f"list: {k} is {found and found[1]} and {device[k]}")
if re.findall(r"GID \d+ +(\S+)", text) != device["gids"]:
    wrong.append("list: GIDs")
if bool(re.search(r"link +up", text)) != device["up"]:
    wrong.append("list: link")
q, = json.loads(read("qp.json"))["qps"]
head, row = [l.split() for l in read("qp.out").splitlines()[:2]]
if int(row[1], 16) != q["qpn"] or q["state"] not in row or str(q["peer"]) not in row:
    wrong.append(f"qp: {row} and {q}")
print("\n".join(wrong))
sys.exit(bool(wrong))
END
}

# watch: observing commands that run during all changes; watched judges their output.
watch() {
	watchers=()
	start watch_stat a "$XROCE" stat --json -i 0.1
	watchers+=("$child")
	start watch_top a "$XROCE" top --json -i 0.1
	watchers+=("$child")
	start watch_trace a "$XROCE" trace --json $IF_A
	watchers+=("$child")
	start watch_capture a "$XROCE" capture --snaplen 128 -w "$WORK/captured" $IF_A
	watchers+=("$child")
	wait_until 10 watch_sees || fail "they do not begin"
}
watch_sees() { [ "$(wc -l <"$WORK/watch_stat.out")" -ge 2 ] && grep -q qpn "$WORK/watch_trace.out"; }
# watched: they have run to the end, and have seen the last change.
watched() {
	local pid lines
	lines=$(wc -l <"$WORK/watch_trace.out")
	wait_at_most 5 trace_has_more "$lines" || fail "trace says nothing more"
	for pid in "${watchers[@]}"; do
		is_gone_or_zombie "$pid" && fail "one has ended"
		kill -TERM "$pid"
	done
	finish "${watchers[1]}" 10 || fail "top ends with $?"
	finish "${watchers[2]}" 10 || fail "trace ends with $?"
	finish "${watchers[3]}" 10 || fail "capture ends with $?"
	finish "${watchers[0]}" 10
	python3 "$here/tests/netns/lib/pcapng.py" "$WORK/captured" >"$WORK/pcapng.out" 2>&1 || { fail "the captured file is not whole"; show pcapng; }
	python3 - "$WORK" >"$WORK/judged.out" 2>&1 <<'END' || { fail "what they printed is wrong"; show judged; }
import json, sys
def documents(name):
    for line in open(f"{sys.argv[1]}/{name}.out"):
        if line.startswith("{") and line.endswith("\n"):
            yield json.loads(line)
before = {}
rounds = 0
for d in documents("watch_stat"):
    rounds += 1
    for p in d["ports"]:
        last = before.setdefault(p["pid"], {})
        for k, n in p["counters"].items():
            assert k in ("tx_pacer", "sock_rx_left") or n >= last.get(k, 0), f"{k} of {p['pid']} falls from {last[k]} to {n}"
        last.update(p["counters"])
assert rounds > 5, f"{rounds} rounds of stat"
tops = list(documents("watch_top"))
assert len(tops) > 5 and tops[-1]["interfaces"], f"{len(tops)} rounds of top, the last one {tops[-1]}"
assert sum(1 for _ in documents("watch_trace")) > 100
END
}
trace_has_more() { [ "$(wc -l <"$WORK/watch_trace.out")" -gt "$1" ]; }

# ---- the MTU ----

set_mtu() { ip -n $NS_A link set $IF_A mtu "$1" && ip -n $NS_B link set $IF_B mtu "$1"; }
active_mtu() { on_a ibv_devinfo -d $DEV_A | awk '$1 == "active_mtu:" { print $2 }'; }

mtu() {
	begin "$1" -m 1024 || return
	watch
	set_mtu 1500
	lists '(v["mtu"], v["path_mtu"])' '(1500, 1024)'
	need_equal "active_mtu" "$(active_mtu)" 1024
	looks
	need_line metrics "^xroce_device_mtu_bytes\\{device=\"$IF_A\"\\} 1500"
	same_figures
	goes_on
	set_mtu 9000
	lists '(v["mtu"], v["path_mtu"])' '(9000, 4096)'
	need_equal "active_mtu" "$(active_mtu)" 4096
	goes_on
	watched
	set_mtu 4500
	goes_on
	end
}
# Packets that no longer fit are explained, and leave once they fit again.
mtu_too_small() {
	begin "$1" -m 4096 || return
	ip -n $NS_A link set $IF_A mtu 1500
	wait_until 10 explains mtu-of-interface || { fail "nothing of the MTU"; show said; }
	set_mtu 4500
	goes_on
	end
}
explains() { says explain --json -i 0.2 "$server"; grep -q "\"$1\"" "$WORK/said.out"; }
# A process that started with a small MTU gets a larger one later.
mtu_grows() {
	local times=0
	set_mtu 1500
	keep "$1" -m 4096 || return
	set_mtu 4500
	meets b -m 4096
	meets_itself
	set_mtu 1500
	dismiss
	set_mtu 4500
}

# ---- the MAC ----

mac() {
	local times=0 other=02:00:00:77:00:19
	keep "$1" || return
	meets b && meets_itself || return
	ip -n $NS_A link set $IF_A address $other
	lists 'v["mac"]' $other
	start capture a "$XROCE" capture -w "$WORK/mac" $IF_A
	local capture=$child
	wait_until 10 grep -q "pid $keeper" "$WORK/capture.out"
	meets b
	meets_itself
	[ "$1" = alone ] || meets a
	kill -INT "$capture"
	finish "$capture" 10 || { fail "capture ends with $?"; show capture; }
	tshark -r "$WORK/mac" -T fields -e eth.src -e eth.dst -Y "ip.dst == $IP4_B" 2>/dev/null | sort | uniq -c >"$WORK/macs.out"
	need_line macs "$other.$MAC_B"
	need_no_line macs "$MAC_A"
	ip -n $NS_A link set $IF_A address $MAC_A
	meets b
	meets_itself
	dismiss
}
# The neighbour's MAC changes: new connections use the new one.
neighbour_mac() {
	local times=0 other=02:00:00:77:00:29
	keep "$1" || return
	meets b || return
	ip -n $NS_B link set $IF_B address $other
	wait_until 10 in_a sh -c "ping -q -c 1 -W 1 $IP4_B && ip neigh show $IP4_B | grep -q $other" || fail "the kernel does not know it"
	start capture a "$XROCE" capture -w "$WORK/mac" $IF_A
	local capture=$child
	wait_until 10 grep -q "pid $keeper" "$WORK/capture.out"
	meets b
	kill -INT "$capture"
	finish "$capture" 10 || { fail "capture ends with $?"; show capture; }
	tshark -r "$WORK/mac" -T fields -e eth.dst -Y "ip.dst == $IP4_B" 2>/dev/null | sort | uniq -c >"$WORK/macs.out"
	need_line macs "$other"
	need_no_line macs "$MAC_B"
	ip -n $NS_B link set $IF_B address $MAC_B
	meets b
	dismiss
}

# ---- addresses ----

# QPs with the address wait or continue, and continue once the address is back.
address() {
	begin "$1" -m 1024 || return
	watch
	ip -n $NS_A addr del $IP4_A/24 dev $IF_A
	lists '"::ffff:'$IP4_A'" in v["gids"]' False
	looks
	same_figures
	says qp --pid "$server"
	need_line said " rts "
	ip -n $NS_A addr add $IP4_A/24 dev $IF_A
	lists 'v["gids"][0]' "::ffff:$IP4_A"
	goes_on
	watched
	end
}
# A new address is usable at once, in a process that existed before.
new_address() {
	local times=0 old=$IP4_A IP4_A=10.77.0.11
	keep "$1" || return
	ip -n $NS_A addr add $IP4_A/24 dev $IF_A
	meets b
	ip -n $NS_A addr del $old/24 dev $IF_A
	# the kernel has removed the second address with the first
	ip -n $NS_A addr replace $IP4_A/24 dev $IF_A
	lists 'v["gids"][0]' "::ffff:$IP4_A"
	meets b
	meets_itself
	[ "$1" = alone ] || meets a
	ip -n $NS_A addr del $IP4_A/24 dev $IF_A
	IP4_A=$old
	ip -n $NS_A addr add $IP4_A/24 dev $IF_A
	meets b
	dismiss
}

# ---- up and down ----

down() { ip -n $NS_A link set $IF_A down; }
up() {
	ip -n $NS_A link set $IF_A up
	ip -n $NS_A addr replace $IP6_A/64 dev $IF_A nodad
	wait_until 10 netns_is_ready $NS_A $IF_A
}
# A link that is down for less than the retries: 8 times 4.3 s.
link() {
	begin "$1" -m 1024 -T 20 || return
	watch
	down
	lists 'v["up"]' False
	looks
	need_line metrics "^xroce_device_up\\{device=\"$IF_A\"\\} 0"
	same_figures
	says doctor $IF_A
	need_equal "status of doctor" $? 1
	need_line said "^FAIL  $IF_A link: "
	explains link-down || { fail "nothing of the link"; show said; }
	up
	lists 'v["up"]' True
	goes_on
	explains link-down && fail "still of the link"
	watched
	end
}

# ---- another network namespace ----

# The interface moves to another namespace while a process uses it, and stays alive. Other processes
# can use it there, and here after its return.
moves() {
	local times=0 there=$NS_P pid
	keep "$1" || return
	meets b || return
	ip -n $NS_A link set $IF_A netns $there
	says list $IF_A
	need_equal "status of list" $? 2
	says stat --dev $IF_A
	need_equal "status of stat" $? 2
	looks_anywhere
	configured $there
	used_in p
	ip -n $there link set $IF_A netns $NS_A
	configured $NS_A
	used_in a
	stop "$keeper"
	for pid in "${brokers[@]}"; do
		stop "$pid"
	done
	prepare alone
	used_in a
	nothing_left
}
configured() {
	netns_host "$1" $IF_A $MAC_A $IP4_A $IP6_A
	wait_until 10 netns_is_ready "$1" $IF_A
	wait_until 10 in_b ping -q -c 1 -W 1 $IP4_A || fail "no path"
}
# used_in NS: two new programs, one of them in NS
used_in() {
	start fresh "$1" "$OWN/bin/xroce" run --dev $IF_A -- "$OWN/bin/vdata" -d $DEV_A -g 0 -n 20 -p 18601
	local fresh=$child
	wait_until 10 listens_or_gone "$1" 18601 "$fresh"
	start partner b "$OWN/bin/xroce" run --dev $IF_B -- "$OWN/bin/vdata" -d $DEV_B -g 0 -n 20 -p 18601 $IP4_A
	finish "$child" 30 || { fail "in $1: the partner ends with $?"; show partner; show fresh; stop "$fresh"; return; }
	finish "$fresh" 10 || { fail "in $1: it ends with $?"; show fresh; }
}
looks_anywhere() {
	local what words
	for what in stat qp cq mr clients "top -c 1 -i 0.1 -b"; do
		read -ra words <<<"$what"
		in_a timeout 20 "$XROCE" "${words[@]}" --json >"$WORK/look.json" 2>"$WORK/look.err"
		[ $? -le 1 ] || fail "xroce $what ends with more than 1: $(head -n 1 "$WORK/look.err")"
		[ ! -s "$WORK/look.json" ] || python3 -m json.tool "$WORK/look.json" >/dev/null 2>&1 || fail "xroce $what --json is no JSON"
	done
}

# The interface is renamed: its process continues, and is found by the new name.
renamed() {
	local times=0
	keep "$1" || return
	meets b || return
	ip -n $NS_A link set $IF_A name vz || { fail "it keeps its name"; return; }
	says clients --dev vz
	need_line said "^vz +.* $keeper +again "
	says clients --dev $IF_A
	need_equal "status of clients for the old name" $? 2
	local IF_A=vz
	lists '(v["name"], v["interface"])' "('xroce_vz', 'vz')"
	says explain "$keeper"
	need_line said "^vz: process $keeper "
	meets b
	meets_itself
	[ "$1" = alone ] || meets a
	ip -n $NS_A link set vz name va
	IF_A=va
	meets b
	dismiss
}

# ---- SIGKILL while commands observe ----

killed() {
	local what words rc looker
	prepare "$1" || return
	for what in "stat --json -i 0.2 -c 4" "top --json -i 0.2 -c 4" "explain --json -i 0.6" "trace --json -D 1" "capture -w $WORK/killed -D 1"; do
		start victim a "${words[@]}" --dev $IF_A -- "$OWN/bin/again" -d $DEV_A -g 0
		victim=$child
		wait_until 10 listens_or_gone a 18650 "$victim"
		# shellcheck disable=SC2086 # words
		nsenter --net=/run/netns/$NS_A timeout 20 "$XROCE" $what >"$WORK/looker.out" 2>"$WORK/looker.err" &
		looker=$!
		netns_children+=("$looker")
		read -r -t 0.3 <>"$WORK/quiet"
		kill -KILL "$victim"
		finish "$victim" 10
		finish "$looker" 20
		rc=$?
		# explain exits with 1 if the process no longer exists
		[ $rc = 0 ] || [[ $what = explain* && $rc = [13] ]] || { fail "xroce $what ends with $rc"; show looker; }
		case $what in
		capture*) python3 "$here/tests/netns/lib/pcapng.py" "$WORK/killed" >"$WORK/pcapng.out" 2>&1 || { fail "the captured file is not whole"; show pcapng; } ;;
		explain*) python3 -m json.tool "$WORK/looker.out" >/dev/null 2>&1 || { fail "xroce $what: no JSON"; show looker; } ;;
		*) python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin]' <"$WORK/looker.out" 2>/dev/null || { fail "xroce $what: no JSON"; show looker; } ;;
		esac
	done
	settle
}
# The program and its broker are killed at the same moment, or one after the other.
all_killed() {
	local pid
	keep broker || return
	kill -KILL "$keeper" "${brokers[@]}"
	for pid in "$keeper" "${brokers[@]}"; do
		finish "$pid" 10
	done
	nothing_left
	keep broker || return
	kill -KILL "${brokers[@]}"
	for pid in "${brokers[@]}"; do
		finish "$pid" 10
	done
	kill -KILL "$keeper"
	finish "$keeper" 10
	nothing_left
}

# ---- other traffic ----

# ping, TCP and UDP next to the port: before, during and after RoCEv2 traffic
host_traffic() {
	local what
	for what in tcp:5000 udp:4790 udp:4792; do
		start other a "$TOOLS/traffic" ${what%:*} ${what#*:}
		wait_until 5 bound_or_gone ${what%:*} ${what#*:} "$child"
		in_b timeout 30 "$TOOLS/traffic" ${what%:*} ${what#*:} "$1" >"$WORK/other_client.out" 2>&1 ||
			{ fail "$what: the client ends with $?"; show other_client; }
		finish "$child" 10 || { fail "$what: the server ends with $?"; show other; }
	done
	in_b ping -q -n -c 20 -i 0.01 -s 4000 "$1" >"$WORK/ping.out" 2>&1
	need_line ping '20 packets transmitted, 20 received'
}
bound_or_gone() { in_a ss -Hln --"$1" "sport = :$2" | grep -q . || is_gone_or_zombie "$3"; }
beside() {
	host_traffic $IP4_A
	begin "$1" -m 1024 || return
	host_traffic $IP4_A
	host_traffic $IP6_A
	goes_on
	end
	host_traffic $IP6_A
}

core_cases=(mtu_grows_alone mac_alone mac_broker new_address_alone)
for mode in alone broker; do
	tier_case mtu_$mode mtu $mode
	tier_case mtu_too_small_$mode mtu_too_small $mode
	tier_case mtu_grows_$mode mtu_grows $mode
	tier_case mac_$mode mac $mode
	tier_case neighbour_mac_$mode neighbour_mac $mode
	tier_case address_$mode address $mode
	tier_case new_address_$mode new_address $mode
	tier_case link_$mode link $mode
	tier_case renamed_$mode renamed $mode
	tier_case killed_$mode killed $mode
	tier_case beside_$mode beside $mode
done
tier_case all_killed all_killed
tier_case moves_alone moves alone
tier_case moves_broker moves broker
finish_cases
