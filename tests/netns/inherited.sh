#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# needs: processors
#
# A broker that a program starts does not keep the program's scheduling and limits. A program that
# spins on memory, in real time and bound to one CPU, has its traffic, and its broker answers.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
RUN=("$OWN/bin/xroce" run --dev)
CPUS=$(taskset -pc $$ | sed 's/.*: //')
FIRST=${CPUS%%[,-]*}
PINNED=(taskset -c "$FIRST" chrt -f 10)

# A spinning program needs a CPU, and so does the rest.
possible() {
	skip_reason="one CPU"
	[ "$CPUS" != "$FIRST" ] || return 77
	skip_reason="no real-time policy here"
	"${PINNED[@]}" true 2>/dev/null || return 77
}

# The process of A's broker.
broker_pid() { in_a "$XROCE" list $IF_A | sed -n 's/^  broker *pid \([0-9]*\) .*/\1/p'; }
has_broker_now() { broker_answers a $IF_A; }
has_none() { has_no_broker a $IF_A && has_no_broker b $IF_B; }

# ib_write_lat waits for each message by reading the last byte of its buffer, with no call.
spins() {
	local server
	possible || return
	export XROCE_PORT=$1
	start server a "${PINNED[@]}" "${RUN[@]}" $IF_A -- ib_write_lat -x 0 -F -n 500
	server=$child
	wait_until 20 listens_or_gone a 18515 "$server"
	start client b "${RUN[@]}" $IF_B -- ib_write_lat -x 0 -F -n 500 $IP4_A
	finish_at_most "$child" 20 || { fail "the client ended with $?"; show client; }
	finish_at_most "$server" 10 || { fail "the server ended with $?"; show server; }
	unset XROCE_PORT
	wait_until 20 has_none || fail "a broker is left"
}

# While it spins, its broker serves others: also programs that join the interface.
joined() {
	local server peer
	possible || return
	export XROCE_PORT=$1
	start spinner a "${PINNED[@]}" "${RUN[@]}" $IF_A -- ib_write_lat -x 0 -F -n 100000000
	server=$child
	wait_until 20 listens_or_gone a 18515 "$server"
	start peer b "${RUN[@]}" $IF_B -- ib_write_lat -x 0 -F -n 100000000 $IP4_A
	peer=$child
	wait_until 20 is_busy "$server" || { fail "no traffic"; show spinner; show peer; }
	start other a "${RUN[@]}" $IF_A -- ibv_rc_pingpong -g 0 -c -n 100 -p 18600
	wait_at_most 20 listens_or_gone a 18600 "$child" || fail "the second program does not start"
	start joining b "${RUN[@]}" $IF_B -- ibv_rc_pingpong -g 0 -c -n 100 -p 18600 $IP4_A
	finish_at_most "$child" 20 || { fail "the second program has no traffic: $?"; show joining; show other; }
	kill -9 "$server"
	finish "$server" 10
	stop "$peer"
	unset XROCE_PORT
	wait_until 20 has_none || fail "a broker is left"
}
is_busy() { [ "$(in_a "$XROCE" stat --json --pid "$1" 2>/dev/null | grep -oE '"tx_packets": *[0-9]+' | grep -oE '[0-9]+$')0" -gt 1000 ]; }

# ---- settings ----

cat >"$OWN/holds.py" <<'END'
"""Opens the device with a QP, says so, and waits for its end."""
import sys, time
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import IBV_QPT_RC
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
context = Context(name=sys.argv[1])
cq, pd = CQ(context, 4), PD(context)
qp = QP(pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(1, 1, 1, 1, 0)))
print("holds", flush=True)
time.sleep(60)
END
limit_of() { sed -nE "s/^$2 +([^ ]+) .*/\1/p" "/proc/$1/limits"; }
# settings PID: one line each
settings() {
	echo "policy $(chrt -p "$1" | sed -n 's/.*policy: //p')"
	echo "nice $(sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f17)"
	echo "io $(ionice -p "$1" | cut -d: -f1)"
	echo "CPUs $(taskset -pc "$1" | sed 's/.*: //')"
	echo "slack $(cat "/proc/$1/timerslack_ns")"
	echo "CPU time $(limit_of "$1" 'Max cpu time')"
	echo "memory $(limit_of "$1" 'Max address space') $(limit_of "$1" 'Max data size')"
	echo "oom $(cat "/proc/$1/oom_score_adj")"
	echo "umask $(sed -n 's/^Umask:[[:space:]]*//p' "/proc/$1/status")"
	# except two that glibc keeps for itself
	echo "signals $(($(sed -nE 's/^SigIgn:[[:space:]]*(.*)/0x\1/p' "/proc/$1/status") & ~(3 << 31)))"
}
# wanted IGNORED: of a process that ignores these signals, a bitmap.
wanted() {
	printf '%s\n' "policy SCHED_OTHER" "nice 0" "io none" "CPUs $CPUS" "slack 50000" \
		"CPU time unlimited" "memory unlimited unlimited" "oom ${OOM:-0}" "umask 0022" "signals $1"
}
counters_of_a() {
	local p name
	for p in /proc/[0-9]*; do
		{ read -r name <"$p/comm"; } 2>/dev/null && [ "$name" = xroce-counters ] &&
			[ "$p/ns/net" -ef /run/netns/$NS_A ] && echo "${p#/proc/}"
	done
}
# A program with all of these settings, and none of them at its broker and its counters' server.
settings_of() {
	local holder broker counters
	possible || return
	# shellcheck disable=SC2016
	start holder a "${PINNED[@]}" prlimit --cpu=600:unlimited --as=8000000000:unlimited \
		--data=8000000000:unlimited ionice -c 2 -n 7 bash -c 'umask 077; trap "" PIPE USR1
			echo 500 >/proc/self/oom_score_adj; echo 7000000 >/proc/self/timerslack_ns
			renice -n 5 $$ >/dev/null; exec "$@"' \
		- "${RUN[@]}" $IF_A -- /usr/bin/python3 -B "$OWN/holds.py" $DEV_A
	holder=$child
	wait_until 20 grep -q holds "$WORK/holder.out" || { fail "it does not run"; show holder; return; }
	broker=$(broker_pid)
	[ -n "$broker" ] || { fail "no broker"; stop "$holder"; return; }
	settings "$holder" >"$WORK/holder.settings"
	grep -qx 'policy SCHED_FIFO' "$WORK/holder.settings" && grep -qx 'oom 500' "$WORK/holder.settings" &&
		grep -qx 'nice 5' "$WORK/holder.settings" && grep -qx 'umask 0077' "$WORK/holder.settings" ||
		fail "the program has other settings: $(tr '\n' ';' <"$WORK/holder.settings")"
	settings "$broker" >"$WORK/broker.out"
	# SIGXFSZ
	wanted $((1 << 24)) | diff - "$WORK/broker.out" >"$WORK/diff.out" || { fail "the broker's settings"; show diff; }
	counters=$(counters_of_a)
	if [ -c /dev/fuse ]; then
		settings "$counters" >"$WORK/counters.out"
		wanted 0 | diff - "$WORK/counters.out" >"$WORK/diff.out" || { fail "the settings of xroce-counters"; show diff; }
	fi
	stop "$holder"
	wait_until 20 has_none || fail "a broker is left"
}

# What an administrator sets for a broker stays.
served() {
	local before
	possible || return
	start served a "${PINNED[@]}" "$XROCE" serve $IF_A
	wait_until 10 has_broker_now || fail "no broker"
	settings "$child" >"$WORK/served.out"
	need_line served '^policy SCHED_FIFO$'
	need_line served "^CPUs $FIRST\$"
	stop "$child"
	in_a "${PINNED[@]}" "$XROCE" serve --background $IF_A || fail "no broker in the background"
	before=$(broker_pid)
	settings "$before" >"$WORK/served.out"
	need_line served '^policy SCHED_FIFO$'
	in_a "$XROCE" stop $IF_A
}

run_case spins_sockets spins sockets
run_case settings settings_of
run_long_case spins_auto spins auto
run_long_case joined_sockets joined sockets
run_long_case joined_auto joined auto
run_long_case served served
finish_cases
