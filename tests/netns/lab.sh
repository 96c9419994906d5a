#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# needs: processors
#
# xroce lab: hosts, programs and their statuses, rules that hit what they name, the same packets in
# each run, what is left after kill -9; as root, and as an ordinary user.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/unprivileged.sh"
USER_ID=4321
AS_USER=(setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups --inh-caps=-all --bounding-set=-all)
chown $USER_ID:$USER_ID "$OWN/home"
export HOME=$OWN/home

# lab NAME OPTION...: its output is in $WORK/NAME.out. Returns its status.
LAB=("$XROCE" lab)
lab() {
	local name=$1
	shift
	(cd "$OWN/home" && exec timeout -k 5 60 "${LAB[@]}" "$@") </dev/null >"$WORK/$name.out" 2>&1
}
need_status() { [ "$1" = "$2" ] || { fail "status $1, not $2"; show "$3"; }; }
# reaches PID WORD...: whether the process, or one of those below it, has such a command line
PINGPONG="ibv_rc_pingpong -d xroce_eth0 -g 0 -c"

hosts() {
	lab hosts --hosts 3 --mtu 4200 -- /bin/sh -c 'echo "$LAB_HOST of $LAB_HOSTS: $LAB_IP3 $LAB_IPV6_2"
		ping -q -c 1 -W 2 $LAB_IP3 >/dev/null && ping -q -c 1 -W 2 $LAB_IPV6_2 >/dev/null && echo reached
		echo "interfaces $(echo $(ls /sys/class/net))"; ibv_devinfo | grep -c hca_id; cat /sys/class/infiniband/xroce_eth0/ports/1/gids/0'
	need_status $? 0 hosts
	need_line hosts '^h1 of h1 h2 h3: 10\.77\.0\.3 fd77::2$'
	need_line hosts '^reached$'
	need_line hosts '^1$'
	need_line hosts '^interfaces eth0 lo$'
}

# The highest status counts, but not of a server that the lab ends.
statuses() {
	lab both --h1 'exit 3' --h2 'exit 7'
	need_status $? 7 both
	lab signal --h1 'kill -9 $$' --h2 true
	need_status $? 137 signal
	lab server --h1 'sleep 100' --h2 true --wait 0
	need_status $? 0 server
	lab deaf --h1 'trap "" TERM; sleep 100 & wait; sleep 100' --h2 true --wait 0
	need_status $? 0 deaf
	lab late --deadline 0.5 -- sleep 100
	need_status $? 124 late
	lab none -- /nonexistent
	need_status $? 127 none
	lab usage --h1 true -- true
	need_status $? 2 usage
	lab usage --h3 true
	need_status $? 2 usage
	need_line usage 'no host h3'
	lab usage --fault 'drop rc.sned nth=3' -- true
	need_status $? 2 usage
	need_line usage '^ {16}\^ neither a kind of packet'
	lab usage --at '1s stop h1' -- true
	need_status $? 2 usage
	need_line usage '^ {21}\^ it takes a time'
	lab usage --fault $'drop \e[2J' -- true
	need_line usage '^xroce lab: drop \?\[2J$'
}

pingpong() { lab "$1" "${@:2}" --h1 "$PINGPONG -n 100" --h2 "$PINGPONG -n 100 \$LAB_IP1"; }
programs() {
	pingpong plain
	need_status $? 0 plain
	need_equal "ends of a pingpong" "$(grep -c '^100 iters' "$WORK/plain.out")" 2
	pingpong shared --shared
	need_status $? 0 shared
	lab several --shared --fault 'drop rc.send nth=4' \
		--h1 "$PINGPONG -n 100 -p 4001 & $PINGPONG -n 100 -p 4002; wait" \
		--h2 "$PINGPONG -n 100 -p 4001 \$LAB_IP1 & sleep 0.3; $PINGPONG -n 100 -p 4002 \$LAB_IP1; wait"
	need_status $? 0 several
	need_equal "ends of pingpongs" "$(grep -c '^100 iters' "$WORK/several.out")" 4
}

# hit NAME N RULE: the report's line
need_hits() { need_line "$1" "^xroce lab: hit $2 of [0-9]*: $3\$"; }

# Each kind of fault, which the program survives.
faults() {
	pingpong faults --fault 'drop h2>h1 rc.send nth=3' --fault 'drop h1>h2 rc.ack nth=2..4' \
		--fault 'duplicate h1>h2 psn=+20' --fault 'swap h2>h1 psn=+30' --fault 'corrupt h1>h2 psn=+40' \
		--fault 'delay 5ms h1>h2 psn=+50' --fault 'corrupt icrc h2>h1 rc.send psn=+60' \
		--report "$OWN/home/report"
	need_status $? 0 faults
	need_hits faults 1 'drop h2>h1 rc.send nth=3'
	need_hits faults 3 'drop h1>h2 rc.ack nth=2..4'
	need_line faults '^xroce lab:     h1>h2 rc.send.middle qp 1 \(0x[0-9a-f]*\) psn 0x[0-9a-f]* \(\+50\) round 1$'
	/usr/bin/python3 - "$OWN/home/report" <<'END' || fail "the report: $(cat "$OWN/home/report")"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["status"] == 0 and report["packets"] > 400
assert [rule["hits"] for rule in report["rules"]] == [1, 3, 1, 1, 1, 1, 1], report
assert [p["status"] for p in report["programs"]] == [0, 0]
END
}

# A rule that never hit is a failure.
misses() {
	pingpong miss --fault 'drop cm.rep'
	need_status $? 1 miss
	need_line miss '^xroce lab: NEVER HIT, 0 of 0: drop cm.rep$'
	pingpong may --fault 'drop cm.rep' --allow-miss
	need_status $? 0 may
}

# A message that is never acknowledged ends the program.
gives_up() {
	lab dead --deadline 50 --fault 'drop h1>h2' --h1 "$PINGPONG -n 10" --h2 "$PINGPONG -n 10 \$LAB_IP1"
	need_status $? 1 dead
	need_line dead 'transport retry counter exceeded'
}

# The messages of the connection manager are repeated.
connections() {
	lab cm --fault 'drop cm.req nth=1' --fault 'drop cm.rep nth=1' --fault 'drop cm.rtu nth=1 ' \
		--h1 'rping -s -a $LAB_IP1 -C 5 -v' --h2 'rping -c -a $LAB_IP1 -C 5 -V'
	need_status $? 0 cm
	need_hits cm 1 'drop cm.req nth=1'
	need_hits cm 1 'drop cm.rep nth=1'
}

# The packets of a share, by their places.
same_packets() {
	local i options=(--loss 3% --duplicate 2% --seed 11)
	pingpong first "${options[@]}"
	need_status $? 0 first
	for i in 1 2; do
		pingpong again "${options[@]}"
		need_status $? 0 again
		diff <(places first) <(places again) >"$WORK/diff" || { fail "other packets"; cat "$WORK/diff"; }
	done
	need_least "packets that were hit" "$(places first | grep -c round)" 4
	pingpong other --loss 3% --duplicate 2% --seed 12
	! diff <(places first) <(places other) >/dev/null || fail "another seed hits the same packets"
}
# without what the kernel and the peers choose
places() { sed -nE 's/^xroce lab:     (h.*) qp ([0-9]*) .* (\(\+[0-9]*\) round .*)/\1 \2 \3/p' "$WORK/$1.out" | grep -v ack; }

links() {
	lab link --at '300ms link h2 200ms' --at '700ms partition 200ms' --at '1s stop h2 300ms' \
		--at '1400ms mtu 500 200ms' --allow-miss \
		--h1 "$PINGPONG -n 20000" --h2 "$PINGPONG -n 20000 \$LAB_IP1"
	need_status $? 0 link
	lab address --at '300ms address h1 200ms' -- sh -c 'sleep 0.4; ip -o addr show eth0; echo --; sleep 0.4; ip -o addr show eth0'
	need_status $? 0 address
	sed '/^--/,$d' "$WORK/address.out" | grep -q '10\.77' && fail "the address stays"
	sed '1,/^--/d' "$WORK/address.out" | grep -q '10\.77' || fail "the address does not come back"
	lab early --at '30s kill h1' -- true
	need_status $? 1 early
	need_line early '^xroce lab: NEVER BEGAN, the programs ended before: 30s kill h1$'
	lab killed --at '500ms kill h2' --h1 'sleep 100' --h2 'sleep 100' --wait 0
	need_status $? 137 killed
	lab rate --rate 100mbit --delay 1ms --h1 'ib_write_bw -d xroce_eth0 -s 65536 -n 60' \
		--h2 'ib_write_bw -d xroce_eth0 -s 65536 -n 60 $LAB_IP1'
	need_status $? 0 rate
	# MB/s of 2^20 bytes: less than the link's 11.9, and not much
	awk '/^ 65536/ { if ($4 > 5 && $4 < 12) good = 1 } END { exit !good }' "$WORK/rate.out" ||
		{ fail "not the link's rate"; show rate; }
}

# A signal ends the command: its processes end, also those in the background, and so do the hosts.
left() { ps -eo pid,args | grep -E "[s]leep 98765$1"; }
gone() { [ -z "$(left "$1")" ]; }
two_sleep() { [ "$(left $$ | grep -vc 'sh -c\|lab')" -ge 2 ]; }
# ended_by SIGNAL SECONDS: the command ends so soon after the signal, and nothing is left of it.
ended_by() {
	local pid
	(cd "$OWN/home" && exec "${LAB[@]}" -- sh -c "setsid sleep 98765$$ & sleep 98765$$") \
		</dev/null >"$WORK/killed.out" 2>&1 &
	pid=$!
	netns_children+=("$pid")
	wait_until 20 two_sleep || { fail "the programs do not start"; show killed; }
	kill "-$1" $pid
	finish $pid "$2"
	wait_until 5 gone $$ || fail "left: $(left $$)"
}
killed() { ended_by KILL 5; }
interrupted() { ended_by TERM 10; }

# A failed run: both ends are explained, faults are comments of the capture, and it can be repeated.
packets() {
	/usr/bin/python3 -B "$here/tests/netns/lib/pcapng.py" "$OWN/home/$1" >"$WORK/$1" || fail "$1 is no capture"
}
failure() {
	lab failed --deadline 3 --fault 'drop h1>h2 rc.send nth=5..' --capture "$OWN/home/capture" \
		--record "$OWN/home/record" --h1 "$PINGPONG -n 100" --h2 "$PINGPONG -n 100 \$LAB_IP1"
	need_status $? 2 failed
	need_line failed 'nth is a number'
	lab failed --deadline 3 --fault 'drop h1>h2 rc.send nth=5..9999' --capture "$OWN/home/capture" \
		--record "$OWN/home/record" --h1 "$PINGPONG -n 100" --h2 "$PINGPONG -n 100 \$LAB_IP1"
	need_status $? 124 failed
	# of h2 alone, if h1 gives up before the deadline
	need_line failed '^xroce lab: explain in h2:$'
	need_least "findings" "$(grep -cE 'QP 0x|qp 0x' "$WORK/failed.out")" 1
	need_line failed "^xroce lab: to run it again: xroce lab --deadline 3 --fault 'drop h1>h2 rc.send nth=5..9999' --h1 "
	packets capture
	need_least "packets with a comment" "$(grep -c 'h1>h2 rc.send.*; drop h1>h2 rc.send' "$WORK/capture")" 2
	need_equal "other comments" "$(grep -c 'xroce lab: h[12]>h[12] rc\.\([^s]\|s[^e]\)' "$WORK/capture")" 0
	lab again --replay "$OWN/home/record"
	need_status $? 124 again
	need_equal "rules of both" "$(grep -c '^xroce lab: hit' "$WORK/again.out")" 1
	lab other --replay "$OWN/home/record" -- true
	need_status $? 2 other
	lab other --replay "$OWN/home/record" --deadline 0.1x
	need_status $? 2 other
	lab other --replay "$OWN/home/capture"
	need_status $? 2 other
	pingpong good --capture "$OWN/home/good" --fault 'drop h1>h2 rc.send nth=5'
	need_status $? 0 good
	packets good
	need_equal "packets with a comment" "$(grep -c 'xroce lab: ' "$WORK/good")" 1
	need_least "packets" "$(grep -c '^in icrc' "$WORK/good")" 400
	need_equal "wrong packets" "$(grep -c '^in wrong' "$WORK/good")" 0
	! grep -q 'explain in\|run it again' "$WORK/good.out" || fail "a good run is explained"
}

# A lab that stays; $1 is its name, LAB the command.
keeper_of() { "${LAB[@]}" list | sed -nE "s/^$1 +pid ([0-9]+)\$/\1/p"; }
# The keeper ends with this test, also if that is cut off; netns_forget follows its end.
ends_with_test() { keeper=$(keeper_of "$1") && netns_children+=("$keeper"); }
no_lab() { [ -z "$(keeper_of "$1")" ]; }
kept() {
	local name=$1 pid server keeper
	lab up up "$name" --hosts 3 --fault 'drop h2>h1 rc.send nth=3'
	need_status $? 0 up
	ends_with_test "$name"
	lab again up "$name"
	need_status $? 1 again
	need_line again "there is a lab '$name'"
	need_equal "labs" "$("${LAB[@]}" list | grep -c "^$name *pid [0-9]*\$")" 1
	lab where exec "$name" h3 -- sh -c 'echo "$LAB_HOST of $LAB_HOSTS in $PWD: $LAB_IP1"
		ping -q -c 1 -W 2 $LAB_IP1 >/dev/null && echo reached; ls /sys/class/net; exit 5'
	need_status $? 5 where
	need_line where "^h3 of h1 h2 h3 in $OWN/home: 10\\.77\\.0\\.1\$"
	need_line where '^reached$'
	lab host exec "$name" h4 true
	need_status $? 2 host
	lab none exec "$name" h1 /nonexistent
	need_status $? 127 none
	lab wrong fault "$name" add 'drop rc.sned'
	need_status $? 2 wrong
	need_line wrong "'rc.sned' in the rule"
	lab add fault "$name" add 'drop h1>h2 rc.send nth=7'
	need_status $? 0 add
	lab server exec "$name" h1 -- $PINGPONG -n 100 &
	server=$!
	netns_children+=("$server")
	lab listens exec "$name" h1 --  sh -c 'for i in $(seq 200); do grep -q " 0A " /proc/net/tcp /proc/net/tcp6 && exit; sleep 0.05; done; exit 1'
	need_status $? 0 listens
	lab client exec "$name" h2 -- sh -c "$PINGPONG -n 100 \$LAB_IP1"
	need_status $? 0 client
	finish $server 10 || fail "the server ended with $?"
	lab rules fault "$name" list
	need_hits rules 1 'drop h2>h1 rc.send nth=3'
	need_hits rules 1 'drop h1>h2 rc.send nth=7'
	lab clear fault "$name" clear 'drop h2>h1 rc.send nth=3'
	need_status $? 0 clear
	lab clear fault "$name" clear 'drop h2>h1 rc.send nth=3'
	need_status $? 1 clear
	lab rules fault "$name" list
	! grep -q 'h2>h1' "$WORK/rules.out" || fail "a rule that was removed is listed"
	lab down down "$name"
	need_status $? 0 down
	need_hits down 1 'drop h1>h2 rc.send nth=7'
	no_lab "$name" || fail "the lab is still there"
	netns_forget "$keeper"
	lab down down "$name"
	need_status $? 1 down
	# a killed keeper leaves nothing
	lab up up "$name"
	need_status $? 0 up
	ends_with_test "$name"
	lab sleeper exec "$name" h1 -- sleep 98765$$ &
	server=$!
	netns_children+=("$server")
	wait_until 20 one_sleep || fail "the program does not start"
	pid=$(keeper_of "$name")
	kill -9 "$pid"
	finish $server 10
	need_equal "the program's status" $? 137
	wait_until 5 gone $$ || fail "left: $(left $$)"
	wait_until 5 no_lab "$name" || fail "the killed lab is still there"
	netns_forget "$keeper"
	lab up up "$name"
	need_status $? 0 up
	ends_with_test "$name"
	kill -TERM "$(keeper_of "$name")"
	wait_until 10 no_lab "$name" || fail "the lab does not end"
	netns_forget "$keeper"
}
one_sleep() { [ -n "$(left $$)" ]; }
kept_by_root() { kept root-$$; }

# An ordinary user: devices by UDP sockets.
by_user() {
	local LAB=("${AS_USER[@]}" "$OWN/bin/xroce" lab)
	"${AS_USER[@]}" unshare -Urn true 2>/dev/null || { skip_reason="no user namespaces for users"; return 77; }
	[ "${1:-}" != kept ] || { kept user-$$; return; }
	pingpong user --loss 1% --fault 'corrupt h1>h2 rc.send nth=5'
	need_status $? 0 user
	need_line user 'using UDP sockets'
	need_hits user 1 'corrupt h1>h2 rc.send nth=5'
	killed
}

# A program's output, a process that closes everything, and a forking one are no trouble.
programs_misbehave() {
	lab flood -- sh -c 'head -c 20000000 /dev/zero | tr "\0" x; for i in 1 2 3 4 5; do sleep 50 & done'
	need_status $? 0 flood
	lab closed -- sh -c 'exec 0<&- 1>&- 2>&-; sleep 0.1; exit 4'
	need_status $? 4 closed
	lab flood --cases host --case peer-stops --at '0.3s stop h1 10ms' -- sh -c 'timeout 1 yes; echo the end; exit 6'
	need_status $? 6 flood
	need_line flood '^    \| the end$'
	need_least "lines of the output" "$(wc -l <"$WORK/flood.out")" 100
	need_equal "far more lines" "$(($(wc -l <"$WORK/flood.out") > 5000))" 0
	lab forks --deadline 1 -- sh -c 'trap "" TERM; f() { sleep 98765'$$' & sleep 98765'$$'; }; f & f'
	need_status $? 124 forks
	wait_until 5 gone $$ || fail "left: $(left $$)"
}

# The same packets under load, a hundred times. Requests alone: the report shows three packets of a
# rule, and load decides how many acknowledgements there are.
hundred_runs() {
	local i load=() options=(--fault 'drop rc.send p=3% round=1' \
		--fault 'duplicate rc.send p=2% round=1' --seed 5)
	pingpong first "${options[@]}"
	need_status $? 0 first
	for i in 1 2 3 4; do
		sh -c 'while :; do :; done' &
		load+=($!)
		netns_children+=($!)
	done
	for ((i = 0; i < 100; i++)); do
		pingpong again "${options[@]}"
		need_status $? 0 again
		diff <(places first) <(places again) >"$WORK/diff" || { fail "other packets in run $i"; cat "$WORK/diff"; break; }
	done
	kill "${load[@]}"
}

# Cases: one that is survived, one that is not, and one whose rule selects nothing.
cases() {
	cat >"$OWN/home/cases.toml" <<-'END'
		[[case]]
		name = "lost-send"
		description = "a SEND is lost"
		fault = ["drop rc.send nth=3", 'duplicate rc.ack nth=2']
		[[case]]
		name = "dead"
		fault = "drop h1>h2"
		deadline = 2
		[[case]]
		name = "atomics"
		fault = "drop rc.atomic.ack"
		allow-miss = true
		[[case]]
		name = "killed"
		at = "0.2s kill h1"
		expect = "failure"
		allow-miss = true
	END
	pingpong cases --cases "$OWN/home/cases.toml" --each --junit "$OWN/home/junit" --report "$OWN/home/report"
	need_status $? 124 cases
	need_line cases '^  1 of 4  lost-send  *survived, hit [34]  \('
	need_line cases '^  2 of 4  dead  *FAILED: did not end before the deadline  \('
	need_line cases '^  3 of 4  atomics  *not reached: '
	need_line cases "^xroce lab --h1 '.*' --h2 '.*' --fault 'drop h1>h2' --deadline 2\$"
	/usr/bin/python3 - "$OWN/home/junit" "$OWN/home/report" <<-'END' || fail "the reports"
		import json, sys
		import xml.etree.ElementTree as xml
		suite = xml.parse(sys.argv[1]).getroot()[0]
		assert suite.get("tests") == "4" and suite.get("failures") == "1", suite.attrib
		cases = {case.get("name"): case for case in suite}
		assert cases["dead"].find("failure").text.startswith("xroce lab --h1 ")
		assert "NEVER" not in cases["dead"].find("system-out").text
		assert cases["atomics"].find("skipped") is not None and len(cases["lost-send"]) == 0
		report = json.load(open(sys.argv[2]))
		assert report["status"] == 124 and report["survived"] + report["not_reached"] == 3, report
		assert [case["result"] for case in report["cases"]][:3] == ["survived", "failed", "not reached"]
	END
	pingpong one --cases "$OWN/home/cases.toml" --case lost-send
	need_status $? 0 one
	lab fails --cases "$OWN/home/cases.toml" --each --h1 'echo said; exit 3'
	need_status $? 3 fails
	need_line fails '^    \| said$'
	need_line fails 'fail without a case, with status 3$'
	lab library --cases wire
	need_status $? 0 library
	need_line library '^lost-atomic-response  *the response to an atomic operation is lost$'
	lab none --cases nothing
	need_status $? 2 none
}

run_case hosts hosts
run_case statuses statuses
run_case programs programs
run_case faults faults
run_case misses misses
run_case cases cases
run_long_case gives_up gives_up
run_long_case connections connections
run_long_case same_packets same_packets
run_long_case links links
run_case killed killed
run_long_case interrupted interrupted
run_long_case failure failure
run_case kept kept_by_root
run_case by_user by_user
run_long_case kept_by_user by_user kept
run_long_case programs_misbehave programs_misbehave
run_long_case hundred_runs hundred_runs
finish_cases
