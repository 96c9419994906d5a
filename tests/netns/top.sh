#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# xroce top in a terminal (tmux): each key, another size, ^Z, each way that it ends; programs that
# come and are killed; names that a terminal must not obey. As tables and JSON: no escape codes, and
# rates that add up to the counters that `xroce stat` shows; a user sees its own.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"

# ---- a terminal ----

TMUX_=xr$$ tmux_nth=0
export TMUX_TMPDIR=$WORK
t() { tmux -L $TMUX_ "$@" 2>/dev/null; }
trap 't kill-server; netns_cleanup' EXIT

# terminal [NAME=VALUE...]: a shell in A, in a terminal of 150 x 30, its pid in $shell. Ends the one
# before.
terminal() {
	t kill-server
	# another socket: the server of before may be about to leave its own
	TMUX_=xr$$.$((tmux_nth++))
	# shellcheck disable=SC2016 # the shell's own words
	env -u TMUX LC_ALL=C.UTF-8 tmux -L $TMUX_ -u -f /dev/null new-session -d -x 150 -y 30 \
		"exec nsenter --net=/run/netns/$NS_A env LC_ALL=C.UTF-8 PS1='ready ' $* bash --norc --noprofile -i" || return
	wait_until 10 shows '^ready'
	shell=$(t display -p '#{pane_pid}')
}
screen() { t capture-pane -p; }
shows() { screen | grep -qE -- "$1"; }
shows_not() { ! shows "$1"; }
keys() { t send-keys "$@"; }
# sees PATTERN WHAT
sees() { wait_until 10 shows "$1" || { fail "$2: no line like $1"; screen >"$WORK/screen.out"; show screen; return 1; }; }
sees_not() { wait_until 10 shows_not "$1" || { fail "$2: there is a line like $1"; screen >"$WORK/screen.out"; show screen; return 1; }; }
# of the other page, the cursor, the wrap of lines; and what the kernel does with keys
modes() { t display -p '#{alternate_on} #{cursor_flag} #{wrap_flag}'; stty -F "$(t display -p '#{pane_tty}')" -g; }
are_modes() { [ "$(modes)" = "$1" ]; }
are_modes_not() { ! are_modes "$1"; }

# top_pid: the process that runs in the terminal.
top_pid() { pgrep -P "$shell" -x xroce; }
has_no_top() { [ -z "$(top_pid)" ]; }
# live [OPTION...]: in the terminal, once there is a row.
live() {
	keys "clear; $XROCE top $*" Enter
	sees 'DEV .*RX-BPS' "top begins" && top=$(top_pid)
}

# ---- the displayed values ----

# pair NAME [PROGRAM]: an endless pingpong between A and B; pids in $server and $client
pair() {
	local program=${1:-$TOOLS/steady_pingpong}
	start server a "$XROCE" run --dev $IF_A -- "$program" -d $DEV_A -g 0
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	start client b "$XROCE" run --dev $IF_B -- "$TOOLS/steady_pingpong" -d $DEV_B -g 0 $IP4_A
	client=$child
	wait_until 10 has_counted 1000 || { fail "nothing is counted"; show server; show client; return 1; }
}
has_counted() { local n; n=$(counter "$server" xroce_eng_stat rx_packets) && [ "$n" -ge "$1" ]; }
has_come_to_rest() { local n; n=$(counter "$1" xroce_eng_stat rx_packets) && [ "$n" = "$(counter "$1" xroce_eng_stat rx_packets)" ]; }
end_pair() { stop "$client"; stop "$server"; }

# ---- live ----

keys_and_views() {
	local qpn before
	pair || return
	qpn=$(printf '0x%06x' "$(bpftool map dump id "$(map_id "$server" xroce_qp_stat)" | field qpn)")
	terminal || { fail "no tmux"; return 1; }
	before=$(modes)
	live -i 0.2 || return
	need_equal "another page, no cursor" "$(modes | head -1)" "1 0 1"
	sees "^$IF_A +$qpn RC +rts +$server steady_pingpong $IP4_B +[0-9.]+[kMG] +[0-9.]+[kMG] " "the queue pair"
	sees "^$IF_A +rx +[0-9.]+[kMG]b/s +[0-9.]+k?p/s +tx .* drops +[0-9.]+k?/s \\([0-9]+\\)  lost +0/s" "the interface"
	sees "^$IF_A .*[▁▂▃▄▅▆▇█]{3}" "a spark line"
	sees "^xroce top +[0-9:]+ +queue pairs 1  by RATE  every 0.2 s" "the head"
	keys p; sees '^xroce top .* processes 1  by RATE' "p"
	sees "^$IF_A +$server steady_pingpong +1 " "p: the process"
	keys c; sees '^xroce top .* completion queues 1  by COMP' "c"
	sees "^$IF_A +[0-9]+ +$server steady_pingpong +[0-9.]+k?" "c: the CQ"
	keys i; sees '^xroce top .* interfaces [0-9]+  by RATE' "i"
	sees "^$IF_A +1 +1 +[0-9.]+[kMG]" "i: the interface"
	keys Q; sees '^xroce top .* queue pairs 1  by RATE' "Q"
	keys '<'; sees 'by RTT-US' "<"
	keys '>'; sees 'by RATE' ">"
	keys s; sees 'by RETRANS' "s"
	keys r; sees 'by RETRANS reversed' "r"
	keys r; sees_not 'reversed' "r again"
	keys Left; sees 'by RATE' "Left"
	keys +; sees 'every 0.5 s' "+"
	keys -; sees 'every 0.2 s' "-"
	keys /; sees '^/_' "/"
	keys -l 'nosuch'; sees "queue pairs 0 of 1 with 'nosuch'" "a filter, as it is typed"
	sees '^ No queue pairs' "a filter of none"
	keys BSpace; sees "with 'nosuc'" "Backspace"
	keys Enter; sees '^h help' "Enter"
	keys Escape; sees 'queue pairs 1  by' "Escape ends the filter"
	keys / ; keys -l PINGPONG; keys Enter; sees "queue pairs 1 of 1 with 'PINGPONG'" "a filter that finds it"
	keys Escape
	keys Space; sees 'paused' "space"
	keys Space; sees_not 'paused' "space again"
	keys h; sees '^ RETR/S +request packets retransmitted per second' "h"
	keys x; sees "^$IF_A +$qpn" "a key after h"
	keys q; sees '^ready' "q"
	wait_until 10 are_modes "$before" || fail "q: the modes are $(modes), not $before"
	keys "echo status \$?" Enter; sees '^status 0' "q"
	end_pair
}

# Pending input while nothing is sampled: keys work, and rows do not change.
paused_stays() {
	local row
	pair || return
	terminal || return
	live -i 0.1 || return
	keys Space; sees paused "space"
	row=$(screen | grep "^$IF_A +*0x")
	wait_until 10 has_counted $(($(counter "$server" xroce_eng_stat rx_packets) + 2000))
	keys r; sees reversed "r while it is paused"
	need_equal "the row" "$(screen | grep "^$IF_A +*0x")" "$row"
	keys q
	end_pair
}

longest_line() { screen | LC_ALL=C.UTF-8 wc -L; }
resized() {
	pair || return
	terminal || return
	live -i 10 || return
	sees ' TYPE ' "150 columns"
	# no sample comes for ten seconds: what redraws is the size
	t resize-window -x 44 -y 9
	sees_not ' TYPE ' "44 columns"
	sees 'QPN .*RX-BPS' "44 columns"
	need_equal "lines" "$(screen | wc -l)" 9
	need_equal "wider than the terminal" "$(($(longest_line) > 44))" 0
	sees '^h help' "the last line of a low one"
	t resize-window -x 12 -y 3; sees '^ +QPN' "12 columns"
	t resize-window -x 1 -y 1; wait_until 10 shows '^[0-9a-f]?$'
	is_gone "$top" && fail "it ends in a terminal of 1 x 1"
	t resize-window -x 180 -y 40; sees ' TYPE .* RTT-US .*RETRANS' "180 columns"
	keys q; sees '^ready' "q"
	end_pair
}

# ^Z gives the terminal back and stops; fg takes it again, with the size that it has now.
stopped() {
	local before
	pair || return
	terminal || return
	before=$(modes | head -1)
	live -i 0.2 || return
	keys C-z; sees 'Stopped' "^Z"
	need_equal "modes when stopped" "$(modes | head -1)" "$before"
	wait_until 10 grep -q '^State:.T' "/proc/$top/status" || fail "it is not stopped"
	keys "echo echoed" Enter; sees '^echoed' "a shell at work"
	t resize-window -x 60 -y 20
	keys "clear; fg" Enter; sees 'DEV .*RX-BPS' "fg"
	need_equal "modes after fg" "$(modes | head -1)" "1 0 1"
	sees_not ' TYPE ' "the size that it has now"
	# stopped by a signal that cannot be caught, it takes the terminal again when it resumes
	kill -STOP "$top"; wait_until 10 grep -q '^State:.T' "/proc/$top/status"
	sees Stopped "SIGSTOP"
	keys "clear; fg" Enter; sees 'DEV .*RX-BPS' "fg after SIGSTOP"
	keys p; sees 'processes 1 ' "a key after that"
	keys q; sees '^ready' "q"
	end_pair
}

# ended_by SIGNAL STATUS [KEY]
ended_by() {
	local before now
	terminal || return
	before=$(modes)
	live -i 0.2 || return
	if [ -n "${3:-}" ]; then keys "$3"; else kill "-$1" "$top"; fi
	wait_until 10 is_gone "$top" || fail "$1 does not end it"
	sees '^ready' "$1"
	wait_until 10 are_modes "$before" || { now=$(modes); fail "$1: the modes are $now, not $before"; }
	keys "echo status \$?" Enter; sees "^status $2" "$1"
}
ends_give_back() {
	ended_by INT 0 C-c
	ended_by TERM 0
	ended_by HUP 0
	ended_by QUIT 0
	ended_by SEGV 139
	ended_by ABRT 134
}

# The terminal goes: so does top.
terminal_gone() {
	terminal || return
	live -i 60 || return
	t kill-server
	wait_until 10 is_gone "$top" || { fail "it stays without a terminal"; kill "$top"; }
}

# A terminal that takes nothing, as after a connection hangs, delays no signal.
terminal_hangs() {
	python3 - "$XROCE" $IF_A "/run/netns/$NS_A" >"$WORK/hangs.out" 2>&1 <<'PYTHON'
import fcntl, os, pty, select, signal, struct, sys, termios
pid, master = pty.fork()
if not pid:
    os.environ["TERM"] = "xterm"
    os.execvp("nsenter", ["nsenter", "--net=" + sys.argv[3], sys.argv[1], "top", "-i", "0.01"])
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 400, 900, 0, 0))
os.read(master, 1)
# no more reads, until the pending output grows no further
fd = os.pidfd_open(pid)
last, same = -1, 0
while same < 20:
    select.select([fd], [], [], 0.05)
    n = struct.unpack("i", fcntl.ioctl(master, termios.FIONREAD, b"\0" * 4))[0]
    same, last = (same + 1, n) if n == last else (0, n)
os.kill(pid, signal.SIGTERM)
print("ended" if select.select([fd], [], [], 10)[0] else "stays")
os.kill(pid, signal.SIGKILL)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
	need_line hangs '^ended$'
	need_line hangs '^0$'
}

# A job of the background is stopped as it takes the terminal, and ends by a signal all the same:
# `timeout 5 xroce top`, and kill(1) of a job.
background_ends() {
	python3 - "$XROCE" "/run/netns/$NS_A" >"$WORK/background.out" 2>&1 <<'PYTHON'
import os, pty, select, signal, sys
pid, master = pty.fork()
if not pid:
    os.environ["TERM"] = "xterm"
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        os.execvp("nsenter", ["nsenter", "--net=" + sys.argv[2], sys.argv[1], "top"])
    print("stopped" if os.WIFSTOPPED(os.waitpid(job, os.WUNTRACED)[1]) else "not stopped")
    fd = os.pidfd_open(job)
    os.kill(job, signal.SIGTERM)
    os.kill(job, signal.SIGCONT)
    print("ended" if select.select([fd], [], [], 10)[0] else "stays")
    os.kill(job, signal.SIGKILL)
    print("status", os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]), flush=True)
    os._exit(0)
text = b""
while True:
    try:
        more = os.read(master, 4096)
    except OSError:
        more = b""
    if not more:
        break
    text += more
print(text.decode().replace("\r", ""), end="")
os.waitpid(pid, 0)
PYTHON
	need_line background '^stopped$'
	need_line background '^ended$'
	need_line background '^status 0$'
}

# A frame is what has changed: the screen is blanked once, and the line of keys is sent once.
frames_are_changes() {
	terminal || return
	keys "clear; strace -o $WORK/writes -e trace=write -s 400 $XROCE top -i 0.1 -c 10" Enter
	sees 'DEV .*RX-BPS' "top begins"
	sees '^ready' "-c 10"
	need_equal "times that it is entered" "$(grep -c '^write(.*\\33\[?1049h' "$WORK/writes")" 1
	need_equal "times that it is blanked" "$(grep -cE '^write\(.*\\33\[2?J' "$WORK/writes")" 1
	need_equal "times that the keys are sent" "$(grep -c '^write(.*h help' "$WORK/writes")" 1
}

# A program that is killed is no row any more, the next one is; the interface remembers.
watched_is_killed() {
	local old
	terminal || return
	live -i 0.1 || return
	sees '^ No queue pairs' "nobody"
	pair || return
	sees " $server steady_pingpong" "a program that has come"
	{ kill -9 "$server"; finish "$server" 5; } 2>/dev/null
	old=$server
	sees_not " $server steady_pingpong" "a program that was killed"
	stop "$client"
	pair || return
	sees " $server steady_pingpong" "the next one"
	[ "$server" != "$old" ] || fail "the same pid"
	keys q; sees '^ready' "q"
	end_pair
}

# An interface that is made while it runs is a row, and none any more when it is gone.
interface_comes() {
	terminal || return
	live -i 0.1 --view interfaces || return
	ip -n $NS_A link add late type veth peer name late2
	sees '^late ' "an interface that has come"
	ip -n $NS_A link del late
	sees_not '^late ' "an interface that has gone"
	keys q; sees '^ready' "q"
}

# Of a name that is escape codes and wide characters, a terminal is sent none.
hostile_name() {
	local evil
	evil=$WORK/$(printf 'a\033[31m\xe4\xb8\xad\007')
	install -m 755 "$TOOLS/steady_pingpong" "$evil"
	pair "$evil" || return
	terminal NO_COLOR=1 || return
	t pipe-pane "cat >$WORK/raw"
	live -i 0.1 || return
	sees " $server a\\?\\[31m\\?\\?\\?\\?" "the name"
	keys / ; keys -l "a?[31m"; keys Enter; sees "queue pairs 1 of 1 with" "a filter of it"
	keys q; sees '^ready' "q"
	grep -qaF "$(printf '\033[31m')" "$WORK/raw" && fail "the name's escape codes are sent"
	grep -qaP '\033\[[0-9;]+m' "$WORK/raw" && fail "colours in spite of NO_COLOR"
	grep -qaP '\x07|\xe4\xb8\xad' "$WORK/raw" && fail "a bell or a wide character is sent"
	in_a "$XROCE" top --batch -c 1 -i 0.1 >"$WORK/batch.out"
	need_line batch "^$IF_A .* $server +a\\?\\[31m\\?\\?\\?\\?"
	end_pair
	rm -f "$evil"
}

# On a terminal in colours, and in another locale's characters.
colours_and_locale() {
	pair || return
	terminal || return
	t pipe-pane "cat >$WORK/raw"
	live -i 0.1 || return
	sees '[▁▂▃▄▅▆▇█]{3}' "blocks"
	keys q; sees '^ready' "q"
	wait_until 10 grep -qaP '\033\[36m' "$WORK/raw" || fail "no colour"
	terminal LC_ALL=C || return
	live -i 0.1 || return
	sees '[-_.:=+*#]{4}$' "a spark line in ASCII"
	shows '[▁▂▃▄▅▆▇█]' && fail "blocks in a locale of ASCII"
	keys q; sees '^ready' "q"
	# of a terminal that can do nothing, tables
	terminal TERM=dumb || return
	keys "$XROCE top -c 1 -i 0.1" Enter; sees '^DEV .*RX-BPS' "TERM=dumb"
	sees '^ready' "-c 1"
	end_pair
}

# ---- as tables and JSON ----

shown() { in_a timeout 30 "$OWN/bin/xroce" top "$@" >"$WORK/shown.out" 2>"$WORK/said.out"; }
# json EXPRESSION: of the documents in `shown`, a list d.
json() {
	python3 -c 'import json, sys
d = [json.loads(line) for line in open(sys.argv[1])]
print(eval(sys.argv[2]))' "$WORK/shown.out" "$1" 2>&1
}

tables() {
	pair || return
	shown -c 3 -i 0.1 || fail "exit status $?"
	grep -qP '[\x00-\x09\x0b-\x1f\x7f-\xff]' "$WORK/shown.out" && fail "more than printable ASCII in a pipe"
	need_equal "tables" "$(grep -c '^DEV .*QPN' "$WORK/shown.out")" 3
	need_line shown "^$IF_A +0x[0-9a-f]{6} +RC +rts +$server +steady_pingpong +$IP4_B +[0-9.]+[kMG] "
	shown --view processes --batch -c 1 -i 0.1 || fail "exit status $?"
	need_line shown "^$IF_A +$server +steady_pingpong +1 +[0-9.]+[kMG] "
	shown --view cqs -c 1 -i 0.1 && need_line shown '^DEV +CQ +PID'
	shown --view interfaces -c 1 -i 0.1 && need_line shown "^$IF_A +1 +1 "
	shown --peer $IP4_B -c 1 -i 0.1 || fail "its peer: exit status $?"
	shown --peer $IP4_A -c 1 -i 0.1
	need_equal "exit status for a peer that none has" $? 1
	need_line said 'no such queue pair or process'
	shown --pid "$server" --dev $IF_A --state rts --json -c 1 -i 0.1 || fail "filters: exit status $?"
	need_equal "what filters leave" "$(json '[(len(r["qps"]), len(r["processes"]), len(r["cqs"]), len(r["interfaces"])) for r in d]')" "[(1, 1, 1, 1)]"
	shown --qpn 1 --json -c 1 -i 0.1
	need_equal "what a QP's number leaves" "$(json '[len(r["qps"]) + len(r["processes"]) + len(r["cqs"]) for r in d]')" "[0]"
	end_pair
}

# One interval after the other, from before the traffic starts until after it ends. Rates times
# seconds equal the growth of the counters, of QPs, processes and the interface. The counters equal
# the values of `xroce stat` and of the sending program.
rates_are_counters() {
	local top name
	start top a "$XROCE" top --json -i 0.1
	top=$child
	wait_until 10 grep -q . "$WORK/top.out" || fail "no line"
	pair || return
	kill -STOP "$client"
	wait_until 10 has_come_to_rest "$server"
	kill -STOP "$server"
	# two more lines: the last one has all
	name=$(wc -l <"$WORK/top.out")
	wait_until 10 has_lines top $((name + 3)) || fail "it has stopped"
	kill -INT "$top"; finish "$top" 10 || fail "SIGINT: exit status $?"
	cp "$WORK/top.out" "$WORK/shown.out"
	in_a "$XROCE" stat --json --pid "$server" >"$WORK/stat.out"
	python3 - "$WORK/shown.out" "$WORK/stat.out" "$server" >"$WORK/agree.out" 2>&1 <<'PYTHON'
import json, sys
rounds = [json.loads(line) for line in open(sys.argv[1])]
stat = json.load(open(sys.argv[2]))["ports"][0]["counters"]
pid = int(sys.argv[3])
names = {"rx_packets": "rx_packets", "tx_packets": "tx_packets", "tx_bytes": "tx_bytes",
         "rx_bytes": "xdp_redirected_bytes", "retransmitted": "tx_retransmitted"}
for view in "qps", "processes", "interfaces":
    for name, counter in names.items():
        if view == "qps" and name == "rx_bytes":
            continue  # of the engine's, not of XDP's
        rate, factor = name + "_per_second", 1
        if name.endswith("_bytes"):
            rate, factor = name[:2] + "_bits_per_second", 8
        all, last, seen = 0, 0, 0
        for r in rounds:
            for row in r[view]:
                if row["dev"] == "va" and row.get("pid", pid) == pid:
                    all += row[rate] / factor * r["seconds"]
                    last, seen = row[name], seen + 1
        fine = seen and round(all) == last == stat[counter]
        print("fine" if fine else "WRONG", view, name, seen, round(all), last, stat[counter])
PYTHON
	need_equal "sums that agree" "$(grep -c ^fine "$WORK/agree.out")" 14
	grep -q WRONG "$WORK/agree.out" && show agree
	need_least "packets" "$(json 'd[-1]["processes"][0]["rx_packets"]')" 1000
	need_equal "rates at rest" "$(json 'd[-1]["processes"][0]["rx_packets_per_second"]')" 0.0
	kill -CONT "$server" "$client"
	end_pair
}
has_lines() { [ "$(wc -l <"$WORK/$1.out")" -ge "$2" ]; }

# A user sees its own processes; if there are none, nothing, and a message.
own_and_others() {
	local one two
	serve a $IF_A || return
	start one a "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18530
	one=$child
	start two a "$OWN/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -p 18531
	two=$child
	wait_until 10 listens_or_gone a 18530 "$one"
	wait_until 10 listens_or_gone a 18531 "$two"
	shown --json -c 1 -i 0.1
	need_equal "what root sees" "$(json 'sorted(q["pid"] for q in d[0]["qps"])')" "[$(printf '%s\n' "$one" "$two" | sort -n | paste -sd, | sed 's/,/, /')]"
	in_a timeout 20 "${NOBODY[@]}" "$OWN/bin/xroce" top --json -c 1 -i 0.1 >"$WORK/shown.out" || fail "exit status $?"
	need_equal "what the user sees" "$(json '[q["pid"] for q in d[0]["qps"]]')" "[$one]"
	stop "$one"; stop "$two"; stop "$broker"
	pair || return
	in_a timeout 20 "${NOBODY[@]}" "$OWN/bin/xroce" top --json -c 1 -i 0.1 >"$WORK/shown.out" 2>"$WORK/said.out"
	need_equal "exit status of one that may see nothing" $? 0
	need_line said "other users' processes, if any, are not shown"
	end_pair
}

wrong_usage() {
	local option
	for option in --interval=0 --count=0 --view=x --sort=x --qpn=0x1000000 --nosuch more --sort; do
		shown $option
		need_equal "exit status with $option" $? 2
	done
	shown --view cqs --sort qpn
	need_equal "a column of another view" $? 2
	shown --dev nosuch
	need_equal "no such interface" $? 2
	shown --help && need_line shown '^usage: xroce top'
	return 0
}

run_case keys_and_views keys_and_views
run_long_case paused_stays paused_stays
run_long_case resized resized
run_long_case stopped stopped
run_long_case ends_give_back ends_give_back
run_case terminal_gone terminal_gone
run_long_case terminal_hangs terminal_hangs
run_case background_ends background_ends
run_long_case frames_are_changes frames_are_changes
run_long_case watched_is_killed watched_is_killed
run_long_case interface_comes interface_comes
run_case hostile_name hostile_name
run_long_case colours_and_locale colours_and_locale
run_long_case tables tables
run_long_case rates_are_counters rates_are_counters
run_long_case own_and_others own_and_others
run_case wrong_usage wrong_usage
finish_cases
