#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# `xroce run` in a container whose first process waits for no orphan: neither brokers nor the
# processes of counters and pins stay as zombies, and the program gets its signals and has its exit
# status passed on.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
RUN=("$OWN/bin/xroce" run --dev $IF_A)
declare -A as=([root]='' [nobody]="${NOBODY[*]}")

# A first process that waits for no child. It runs the command TIMES times, one after the other, and
# prints exit statuses, and the names of zombies that are not its own children's.
cat "$here/tests/netns/lib/process_stat.py" - >"$OWN/first.py" <<'END'
import os, signal, sys, time
mine = []
for _ in range(int(sys.argv[1])):
    pid = os.fork()
    if not pid:
        os.execvp(sys.argv[2], sys.argv[2:])
    mine.append(str(pid))
    while (stat(pid) or "ZZ")[1] != "Z":
        time.sleep(0.01)
    print("status", os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT).si_status, flush=True)
def others():
    return [s for p in os.listdir("/proc") if p.isdigit() and p != "1" and p not in mine and (s := stat(p))]
ends = time.time() + 20
while any(state != "Z" for _, state in others()) and time.time() < ends:
    time.sleep(0.01)
print("left", *sorted(f"{name}:{state}" for name, state in others()))
END
cat >"$OWN/uses.py" <<'END'
"""Opens the device with a QP; then ends as the second word says."""
import os, signal, sys, time
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import IBV_QPT_RC
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
context = Context(name=sys.argv[1])
cq, pd = CQ(context, 4), PD(context)
qp = QP(pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(1, 1, 1, 1, 0)))
print("uses", os.path.isdir(f"/sys/class/infiniband/{sys.argv[1]}/ports/1/counters"), flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "signals":
    got = []
    signal.signal(signal.SIGTERM, lambda *_: got.append("TERM"))
    signal.signal(signal.SIGUSR1, lambda *_: got.append("USR1"))
    # the sender is outside of this process group
    print("ready", os.getppid(), flush=True)
    while len(got) < 2:
        time.sleep(0.01)
    print("got", *sorted(got), flush=True)
os._exit(7)
END
USES=(/usr/bin/python3 -B "$OWN/uses.py" $DEV_A)

# first WHO TIMES COMMAND...
first() {
	local who=$1
	shift
	# shellcheck disable=SC2086
	in_a unshare --pid --fork --kill-child --mount-proc ${as[$who]} \
		/usr/bin/python3 -B "$OWN/first.py" "$@" >"$WORK/first.out" 2>&1
}
# none_left WHO PORT END STATUS [OPTION...]: three programs in turn
none_left() {
	local who=$1 end=$3 status=$4
	export XROCE_PORT=$2
	shift 4
	first "$who" 3 "${RUN[@]}" "$@" -- "${USES[@]}" "$end"
	unset XROCE_PORT
	need_equal "programs that ran" "$(grep -c '^uses' "$WORK/first.out")" 3
	need_equal "programs that ended so" "$(grep -cx "status $status" "$WORK/first.out")" 3
	need_line first '^left$' || show first
}
pinned() {
	if [ ! -d "$WORK/bpf" ]; then
		mkdir "$WORK/bpf" && mount -t bpf bpf "$WORK/bpf" || { skip_reason="no BPF file system"; return 77; }
	fi
	none_left root xdp killed 9 --pin="$WORK/bpf/pins"
	[ -z "$(ls "$WORK/bpf")" ] || [ -z "$(find "$WORK/bpf/pins" -type f 2>/dev/null)" ] || fail "pins are left: $(find "$WORK/bpf")"
}
counters_are_there() {
	[ -c /dev/fuse ] || { skip_reason="no /dev/fuse"; return 77; }
	none_left root sockets exit 7
	need_equal "programs with counters" "$(grep -cx 'uses True' "$WORK/first.out")" 3
}

# A killed `xroce run` takes its program along; a signal to it reaches the program.
signals() {
	local pid
	start first a unshare --pid --fork --kill-child --mount-proc env XROCE_PORT=sockets \
		/usr/bin/python3 -B "$OWN/first.py" 1 "${RUN[@]}" -- "${USES[@]}" signals
	wait_until 20 grep -q ready "$WORK/first.out" || { fail "it does not run"; show first; return; }
	pid=$(pgrep -P "$(pgrep -P "$child" python3)" xroce-run)
	[ -n "$pid" ] || { fail "xroce run is not the parent"; stop "$child"; return; }
	need_equal "its descriptors" "$(readlink "/proc/$pid/fd/"* | sort -u)" /dev/null
	kill -USR1 "$pid"
	kill -TERM "$pid"
	finish "$child" 20
	need_line first '^got TERM USR1$'
	need_line first '^status 7$'
	need_line first '^left$'
	start first a unshare --pid --fork --kill-child --mount-proc env XROCE_PORT=sockets \
		/usr/bin/python3 -B "$OWN/first.py" 1 "${RUN[@]}" -- sleep 60
	wait_until 20 sleeps || { fail "it does not run"; show first; return; }
	kill -KILL "$pid"
	finish "$child" 20
	need_line first '^status 9$'
	need_no_line first '^left.*sleep:[^Z]'
}
sleeps() { pid=$(pgrep -P "$(pgrep -P "$child" python3)" xroce-run) && [ "$(ps -o comm= --ppid "$pid" | head -1)" = sleep ]; }

# Elsewhere the program stays in the process of `xroce run`.
in_place() {
	start program a "${RUN[@]}" -- sleep 60
	wait_until 10 grep -qx sleep "/proc/$child/comm" || fail "it is $(cat "/proc/$child/comm")"
	stop "$child"
}

run_case sockets none_left nobody sockets exit 7
run_case auto none_left root auto exit 7
run_case signals signals
run_case in_place in_place
run_long_case sockets_killed none_left nobody sockets killed 9
run_long_case auto_killed none_left root auto killed 9
run_long_case no_mounts none_left root sockets exit 7 --no-mounts
run_long_case counters counters_are_there
run_long_case pins pinned
finish_cases
