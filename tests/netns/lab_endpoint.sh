#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# needs: processors
#
# Rules of an endpoint in `xroce lab`: each kind in unmodified programs, with its hits in the
# report; the same hits in each run; two programs whose bugs only a fault shows.
. "$(dirname "$0")/lib/case.sh"
LAB=("$XROCE" lab)
# lab NAME OPTION...: its output is in $WORK/NAME.out. Returns its status.
lab() {
	local name=$1
	shift
	timeout -k 5 90 "${LAB[@]}" --deadline 60 "$@" </dev/null >"$WORK/$name.out" 2>&1
}
need_status() { [ "$1" = "$2" ] || { fail "status $1, not $2"; show "$3"; }; }
# need_hits NAME N RULE: the report's line
need_hits() { need_line "$1" "^xroce lab: hit $2 of [0-9]*: $3\$"; }
PINGPONG="ibv_rc_pingpong -d xroce_eth0 -g 0 -c -n 100"
pingpong() { lab "$1" "${@:2}" --h1 "$PINGPONG" --h2 "$PINGPONG \$LAB_IP1"; }

# Faults that a program survives, on one host or both.
survived() {
	pingpong survived --fault 'rnr h1 nth=1..3 timer=1' --fault 'credits=0 h2 nth=1..5' \
		--fault 'late 1ms h1 recv nth=10' --fault 'cnp h2 rc.send.last nth=7'
	need_status $? 0 survived
	need_hits survived 3 'rnr h1 nth=1..3 timer=1'
	need_line survived '^xroce lab:     h1 rc.send.first qp 1 \(0x[0-9a-f]*\) psn 0x[0-9a-f]* \(\+0\) round 2$'
	need_hits survived 5 'credits=0 h2 nth=1..5'
	need_hits survived 1 'late 1ms h1 recv nth=10'
	need_line survived '^xroce lab:     h1 recv [0-9]* of qp 1 \(0x[0-9a-f]*\)$'
	need_hits survived 1 'cnp h2 rc.send.last nth=7'
}

# A call that fails, and a completion, are what the program reports.
reported() {
	pingpong call --fault 'fail ibv_reg_mr ENOMEM h1 nth=1' --wait 1
	need_status $? 1 call
	need_line call "Couldn't register MR"
	need_hits call 1 'fail ibv_reg_mr ENOMEM h1 nth=1'
	need_line call '^xroce lab:     h1 ibv_reg_mr, call 1$'
	pingpong completion --fault 'complete RETRY_EXC_ERR h2 send nth=50'
	need_status $? 1 completion
	need_line completion 'transport retry counter exceeded'
	need_hits completion 1 'complete RETRY_EXC_ERR h2 send nth=50'
}

# The client learns the reason; the server sees nothing of the request.
rejected() {
	lab rejected --fault 'reject cm.req h1 nth=1' --wait 1 --h1 'rping -s -a $LAB_IP1 -C 3 -v' \
		--h2 'rping -c -a $LAB_IP1 -C 3'
	[ $? -ne 0 ] || fail "rping survives a rejected request"
	need_line rejected 'RDMA_CM_EVENT_REJECTED, error 28'
	need_hits rejected 1 'reject cm.req h1 nth=1'
	need_line rejected '^xroce lab:     h1 cm.req 1$'
}

# A rule that no process hit fails the lab; a wrong one is found before it.
missed() {
	pingpong missed --fault 'fail ibv_create_ah ENOMEM'
	need_status $? 1 missed
	need_line missed '^xroce lab: NEVER HIT, 0 of 0: fail ibv_create_ah ENOMEM$'
	lab wrong --fault 'fail ibv_reg_mmr ENOMEM' -- true
	need_status $? 2 wrong
	need_line wrong 'did you mean ibv_reg_mr\?$'
	lab absent --fault 'rnr h3' -- true
	need_status $? 2 absent
	XROCE_FAULT='complete X' lab outside -- $PINGPONG
	need_line outside "XROCE_FAULT: 'X' in rule 'complete X': no such status"
}

# The results are there although the process was killed.
killed() {
	lab killed --fault 'rnr h1 nth=1' --allow-miss --h1 "$PINGPONG -n 1000000" \
		--h2 "$PINGPONG -n 1000000 \$LAB_IP1" --at '1s kill h1' --at '1100ms kill h2'
	need_status $? 137 killed
	need_hits killed 1 'rnr h1 nth=1'
}

# Shares: the same hits in each run, others with another seed.
shares() {
	local i
	for i in 1 2; do
		pingpong "share$i" --seed 5 --fault 'rnr p=10% timer=1' --fault 'late 1ms send p=5%'
		need_status $? 0 "share$i"
		grep -E '^xroce lab: (hit|    )' "$WORK/share$i.out" | sed 's/(0x[0-9a-f]*)//;s/psn 0x[0-9a-f]*//' \
			>"$WORK/share$i"
	done
	diff "$WORK/share1" "$WORK/share2" >"$WORK/diff" || { fail "other hits"; cat "$WORK/diff"; }
	pingpong other --seed 6 --fault 'rnr p=10% timer=1' --fault 'late 1ms send p=5%'
	! diff "$WORK/share1" <(grep -E '^xroce lab: (hit|    )' "$WORK/other.out" |
		sed 's/(0x[0-9a-f]*)//;s/psn 0x[0-9a-f]*//') >/dev/null || fail "another seed has the same hits"
}

# A bug is found by its case, which the program without it survives.
PLANTED="$BUILD/tests/netns/planted -d xroce_eth0"
bugs() {
	local bug fault
	for bug in flushed reuse; do
		case $bug in
		flushed) fault='recovers' ;;
		reuse) fault='rnr-storm' ;;
		esac
		lab "$bug" -- $PLANTED $bug
		need_status $? 0 "$bug"
		lab "$bug-right" --cases endpoint --case $fault -- $PLANTED $bug right
		need_status $? 0 "$bug-right"
		lab "$bug-found" --cases endpoint --case $fault -- $PLANTED $bug
		need_status $? 1 "$bug-found"
		need_line "$bug-found" 'message [0-9]* is wrong$'
	done
}

perftest() {
	local flags="-d xroce_eth0 -x 0 -s 4096 -n 500"
	lab bw --fault 'rnr p=2% timer=1' --fault 'late 500us p=5%' --h1 "ib_send_bw $flags" \
		--h2 "ib_send_bw $flags \$LAB_IP1"
	need_status $? 0 bw
	lab nak --fault 'nak remote-access h1 rc.read nth=20' --h1 "ib_read_bw $flags" \
		--h2 "ib_read_bw $flags \$LAB_IP1"
	[ $? -ne 0 ] || fail "ib_read_bw survives a NAK"
	need_hits nak 1 'nak remote-access h1 rc.read nth=20'
	lab nomem --fault 'fail ibv_create_cq ENOMEM h2' --h1 "ib_write_bw $flags" \
		--h2 "ib_write_bw $flags \$LAB_IP1"
	[ $? -ne 0 ] || fail "ib_write_bw survives a failed ibv_create_cq()"
}

connections() {
	lab rping --fault 'late 1ms p=20%' --fault 'event GID_CHANGE nth=2' \
		--h1 'rping -s -a $LAB_IP1 -C 10 -v' --h2 'rping -c -a $LAB_IP1 -C 10 -V'
	need_status $? 0 rping
}

# The verbs fail one by one: a program ends, and without a signal.
each_call() {
	lab each --deadline 20 --cases endpoint --each --h1 "$PINGPONG" --h2 "$PINGPONG \$LAB_IP1"
	! grep -E 'status 1(2[89]|3[0-9])' "$WORK/each.out" || fail "a program crashed"
}

run_case survived survived
run_case reported reported
run_case rejected rejected
run_case missed missed
run_case bugs bugs
run_long_case killed killed
run_long_case shares shares
run_long_case perftest perftest
run_long_case connections connections
run_long_case each_call each_call
finish_cases
