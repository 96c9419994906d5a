#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# needs: userns
#
# The counters among the files that `xroce run` shows: their values equal those of `xroce stat
# --json` and of the maps, for the processes that the user may see. The process that serves them is
# not visible to the program, and nothing of it stays, whichever process is killed.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS/steady_pingpong" "$OWN/bin/"

RUN=("$OWN/bin/xroce" run --dev $IF_A --)
USER_=(setpriv --reuid=12345 --regid=12346 --clear-groups --inh-caps=-all --bounding-set=-all)
declare -A as=([root]='' [user]="${USER_[*]}" [nobody]="${NOBODY[*]}")
PORT=/sys/class/infiniband/$DEV_A/ports/1

# look WHO COMMAND...: in A, as that user; output in `looked`. Returns the command's status.
look() {
	local who=$1
	shift
	# shellcheck disable=SC2086 # several words
	in_a timeout 60 ${as[$who]} "$@" >"$WORK/looked.out" 2>&1 </dev/null
}
see() { look "$@" || { fail "it ended with $?: $*"; show looked; return 1; }; }

# The processes that serve counters in this network namespace, without other tests' processes.
servers() {
	local ours p name
	ours=net:[$(stat -L -c %i /run/netns/$NS_A)]
	for p in /proc/[0-9]*; do
		{ read -r name <"$p/comm"; } 2>/dev/null && [ "$name" = xroce-counters ] || continue
		[ "$(readlink "$p/ns/net" 2>/dev/null)" = "$ours" ] && echo "${p#/proc/}"
	done
}
has_servers() { [ "$(servers | wc -l)" -eq "$1" ]; }
no_servers() {
	wait_until 10 has_servers 0 || fail "processes are left: $(servers | tr '\n' ' ')"
	need_equal "mounts of others" "$(grep -F fuse.xroce /proc/self/mountinfo)" ''
}

# ---- values ----

# agree WHO: each file that WHO sees has the sum of stat's values for WHO, with processes stopped.
# Saves the values in `looked`, a line "NAME VALUE" each.
agree() {
	# shellcheck disable=SC2016 # the inner shell's
	see "$1" "${RUN[@]}" sh -c 'cd "$0" && grep "" counters/* hw_counters/* | sed "s/:/ /"' $PORT || return
	# shellcheck disable=SC2086
	in_a timeout 30 ${as[$1]} "$OWN/bin/xroce" stat --json --dev $IF_A >"$WORK/stat.out" 2>/dev/null
	python3 - "$WORK/stat.out" "$WORK/looked.out" >"$WORK/differ.out" 2>&1 <<-'END' || { fail "$1: not what stat says"; show differ; }
		import json, sys
		ports = json.load(open(sys.argv[1]))["ports"]
		want = {}
		for family, directory in ("port", "counters"), ("mlx5", "hw_counters"), ("rxe", "hw_counters"):
		    for p in ports:
		        for name in p[family]:
		            want.setdefault(f"{directory}/{name}", {}).setdefault(family, 0)
		            want[f"{directory}/{name}"][family] += p[family][name]
		got = dict(line.split() for line in open(sys.argv[2]))
		bad = 0
		for name in sorted(set(want) | set(got)):
		    values = set(want.get(name, {}).values()) if ports else {0}
		    if values != {int(got.get(name, -1))}:
		        bad = 1
		        print(name, got.get(name), want.get(name))
		sys.exit(bad)
	END
}
of_file() { sed -n "s|^$1 ||p" "$WORK/looked.out"; }

# traffic WHO [CLIENT]: a pingpong that has run for a while and is then stopped; sets $server and
# $client to the pids.
traffic() {
	# shellcheck disable=SC2086
	start server a ${as[$1]} "${RUN[@]}" "$OWN/bin/steady_pingpong" -d $DEV_A -g 0 -p "$2"
	server=$child
	wait_until 10 listens_or_gone a "$2" "$server"
	# shellcheck disable=SC2086
	start client b ${as[${3:-root}]} "$OWN/bin/xroce" run --dev $IF_B -- "$OWN/bin/steady_pingpong" -d $DEV_B -g 0 -p "$2" $IP4_A
	client=$child
	wait_until 30 has_sent "$server" 1000 || { fail "no traffic"; show server; show client; return 1; }
	kill -STOP "$client" "$server"
}
end_traffic() {
	kill -CONT "$server" "$client"
	stop "$client"
	stop "$server"
}
# sent PID: packets sent by a process on A, from root's stat
sent() { in_a "$XROCE" stat --json --pid "$1" 2>/dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin)["ports"][0]["counters"][sys.argv[1]])' "${2:-tx_packets}"; }
has_sent() { local n; n=$(sent "$1") && [ "${n:-0}" -ge "$2" ]; }

# A process that has the interface to itself: stat, the files and bpftool agree. For a user without
# access to the process all counters are 0. The process takes no part in that, but its broker does.
agree_alone() {
	local owner
	traffic root 18610 || return
	agree root
	need_equal "packets sent, of bpftool" "$(of_file hw_counters/sent_pkts)" "$(counter "$server" xroce_eng_stat tx_packets)"
	need_equal "words received, of bpftool" "$(of_file counters/port_rcv_data)" $(($(counter "$server" xroce_rx redirected_bytes) / 4))
	need_least "packets received" "$(of_file counters/port_rcv_packets)" 1000
	agree user
	need_equal "packets sent, to a user" "$(of_file hw_counters/sent_pkts)" 0
	owner=$(in_a "$XROCE" list $IF_A | sed -n 's/^  broker *pid \([0-9]*\) (xroce)$/\1/p')
	kill -STOP "$owner"
	look user "${RUN[@]}" sh -c "cat $PORT/counters/* $PORT/hw_counters/*" && fail "one that does not answer is read"
	need_equal "reads that failed" "$(grep -c 'Connection timed out' "$WORK/looked.out")" "$(names_of_doc | wc -l)"
	kill -CONT "$owner"
	agree user
	need_equal "packets sent, to a user" "$(of_file hw_counters/sent_pkts)" 0
	end_traffic
}

# With a broker: each user sees the sum of that user's processes, root the sum of all.
agree_shared() {
	local of_nobody of_root all
	traffic nobody 18611 nobody || return
	local one=$server other=$client
	traffic user 18612 user || return
	agree nobody
	of_nobody=$(of_file hw_counters/sent_pkts)
	need_equal "packets sent of nobody's" "$of_nobody" "$(sent "$one")"
	agree user
	need_equal "packets sent of the user's" "$(of_file hw_counters/sent_pkts)" "$(sent "$server")"
	agree root
	of_root=$(of_file hw_counters/sent_pkts)
	all=$(($(sent "$one") + $(sent "$server")))
	need_equal "packets sent of all" "$of_root" "$all"
	end_traffic
	server=$one client=$other
	end_traffic
}

# The values change: read twice by one program during traffic, by the same and by a new descriptor.
live() {
	traffic root 18613 || return
	start reader a "${RUN[@]}" python3 -uc 'import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print(int(os.pread(fd, 4096, 0)))
open(sys.argv[2]).read()
print(int(os.pread(fd, 4096, 0)))
print(int(open(sys.argv[1]).read()))
print(len(os.pread(fd, 4096, 1)), len(os.pread(fd, 4096, 4095)))' $PORT/counters/port_xmit_packets "$OWN/go"
	local reader=$child before
	before=$(sent "$server")
	wait_until 10 grep -q . "$WORK/reader.out" || fail "nothing is read"
	kill -CONT "$server" "$client"
	wait_until 30 has_sent "$server" $((before + 1000)) || fail "no more traffic"
	kill -STOP "$client" "$server"
	echo >"$OWN/go"
	finish "$reader" 20 || fail "the reader ended with $?"
	need_equal "what it read" "$(cat "$WORK/reader.out")" "$before
$(sent "$server")
$(sent "$server")
$(sent "$server" | wc -c | awk '{ print $1 - 1 }') 0"
	end_traffic
}

# Same mode, size and type as sysfs files, and read-only.
form() {
	# shellcheck disable=SC2016
	see "$1" "${RUN[@]}" bash -c 'cd "$0" && stat -c "%a %s %F" counters/* hw_counters/* | sort -u
		stat -c "%a %F" counters hw_counters; ls -1 counters hw_counters | grep -vc :
		for f in counters/* hw_counters/*; do od -An -c $f; done | grep -vcE "^ +[0-9]( +[0-9])* +.n$"
		dd if=counters/port_rcv_data bs=1 count=1 skip=9 2>/dev/null | wc -c
		: 2>/dev/null >counters/port_rcv_data || echo "not written"
		: 2>/dev/null >counters/mine || echo "not made"; rm -f counters/port_rcv_data 2>/dev/null || echo "not removed"
		cat counters/mine 2>/dev/null || echo "none of that name"' $PORT
	printf '444 %s regular file\n755 directory\n755 directory\n%s\n0\n0\nnot written\nnot made\nnot removed\nnone of that name\n' \
		"$(getconf PAGESIZE)" $(($(names_of_doc | wc -l) + 1)) | diff - "$WORK/looked.out" >"$WORK/diff.out" ||
		{ fail "not of that form"; show diff; }
}
# the names in docs/counters.md, once per directory, and the blank line between the directories
names_of_doc() {
	awk '/^## /{ port = /port/ } /^\| `/ { gsub(/[|`]/, ""); print port, $1 }' "$here/docs/counters.md" | sort -u
}

# After root changes to a user, the program still reads root's values.
becomes_nobody() {
	traffic root 18614 || return
	see root "${RUN[@]}" "${NOBODY[@]}" cat $PORT/hw_counters/sent_pkts
	need_equal "packets sent" "$(cat "$WORK/looked.out")" "$(sent "$server")"
	end_traffic
}

# ---- the process that serves the files ----

# It is no child of the program, and shares no descriptor, argument or session with it; a user's has
# no capability.
unseen() {
	local of_server
	# shellcheck disable=SC2016 # shellcheck disable=SC2086
	start program a ${as[$1]} sh -c 'exec "$@" 9<&- 8<&- 7<&-' - "${RUN[@]}" \
		bash -c 'echo "children $(cat /proc/$$/task/$$/children)."; wait -n; echo "wait $?"
			ls -l /proc/$$/fd; cat "$0"/counters/port_rcv_data; read -r <>"$1"' $PORT "$OWN/never"
	local program=$child
	wait_until 10 grep -q '^0$' "$WORK/program.out" || { fail "it does not read"; show program; }
	# the only child is the cat of the command substitution
	need_line program '^children [0-9]* ?\.$'
	need_line program '^wait 127$'
	need_no_line program 'fuse|socket:'
	has_servers 1 || fail "there are $(servers | wc -l) processes that serve"
	of_server=$(servers)
	need_equal "its session" "$(ps -o sid= -p "$of_server" | grep -cx " *$(ps -o sid= -p "$program" | tr -d ' ')")" 0
	need_equal "its words" "$(tr '\0' ' ' <"/proc/$of_server/cmdline" | tr -d ' ')" xroce-counters
	need_equal "its descriptors" "$(readlink "/proc/$of_server/fd/"* | sort -u | tr '\n' ' ')" "/dev/fuse /dev/null "
	need_equal "its directory" "$(readlink "/proc/$of_server/cwd")" /
	local set caps=0000000000000000
	# CAP_NET_ADMIN
	[ "$1" != root ] || caps=0000000000001000
	for set in CapEff CapPrm; do
		need_equal "its $set" "$(sed -n "s/^$set:[[:space:]]*//p" "/proc/$of_server/status")" $caps
	done
	[ "$(readlink "/proc/$of_server/ns/mnt")" != "$(readlink "/proc/$program/ns/mnt")" ] || fail "it is in the program's mount namespace"
	kill "$program"
	finish "$program" 10
	no_servers
}

# A first process of a PID namespace that waits for no child, or blocks SIGCHLD and waits for all.
# It starts the command three times, and reports the fate of the processes that serve counters.
cat "$here/tests/netns/lib/process_stat.py" - >"$OWN/first.py" <<'END'
import os, signal, sys, time
def wait():
    while sys.argv[1] == "waits":
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
def servers(dead):
    found = [stat(p) for p in os.listdir("/proc") if p.isdigit()]
    return sum(s is not None and s[0] == "xroce-counters" and (s[1] == "Z") == dead for s in found)
if sys.argv[1] == "waits":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
for _ in range(3):
    pid = os.fork()
    if not pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        os.execvp(sys.argv[2], sys.argv[2:])
    while (stat(pid) or "ZZ")[1] != "Z":
        time.sleep(0.01)
    wait()
while servers(dead=False):
    time.sleep(0.01)
wait()
print("zombies", servers(dead=True))
END
by_first() {
	in_a unshare --pid --fork --kill-child --mount-proc /usr/bin/python3 "$OWN/first.py" "$1" \
		"${RUN[@]}" sh -c '[ ! -d "$0/counters" ] || cat "$0/counters/port_rcv_data"; echo ran' $PORT \
		>"$WORK/looked.out" 2>&1
	need_equal "programs that ran" "$(grep -c '^ran$' "$WORK/looked.out")" 3
	need_equal "programs with counters" "$(grep -c '^[0-9]*$' "$WORK/looked.out")" "$2"
	need_line looked '^zombies 0$'
}

killed_program() {
	# shellcheck disable=SC2086
	start program a ${as[$1]} "${RUN[@]}" sleep 60
	wait_until 10 grep -q '^sleep$' "/proc/$child/comm" || fail "it does not run"
	wait_until 10 has_servers 1 || fail "nothing serves"
	kill -KILL "$child"
	finish "$child" 10
	no_servers
}

# A child that outlives its parent keeps the files.
killed_parent() {
	# shellcheck disable=SC2016
	start program a "${RUN[@]}" sh -c '(trap "" HUP; read -r go <"$1"; exec cat "$0"/counters/port_rcv_data >"$2") & exec sleep 60' \
		$PORT "$OWN/go" "$WORK/child.out"
	wait_until 10 grep -q '^sleep$' "/proc/$child/comm" || fail "it does not run"
	kill -KILL "$child"
	finish "$child" 10
	wait_until 10 has_servers 1 || fail "not one server for the child: $(servers)"
	echo >"$OWN/go"
	wait_until 10 grep -qx 0 "$WORK/child.out" || { fail "the child reads nothing"; show child; }
	no_servers
}

# Without the process, a read of a file fails at once; the program and its traffic continue.
killed_server() {
	traffic root 18615 || return
	# the pingpong's own files, by its mount namespace
	local before of_server
	for of_server in $(servers); do kill -KILL "$of_server"; done
	wait_until 5 has_servers 0
	in_a timeout 20 nsenter -t "$server" -m cat $PORT/counters/port_rcv_data >"$WORK/looked.out" 2>&1
	need_equal "exit status of a read" $? 1
	need_line looked 'Transport endpoint is not connected'
	in_a timeout 20 nsenter -t "$server" -m cat $PORT/state >"$WORK/looked.out" 2>&1
	need_equal "another file" "$(cat "$WORK/looked.out")" "4: ACTIVE"
	before=$(sent "$server")
	kill -CONT "$server" "$client"
	wait_until 30 has_sent "$server" $((before + 1000)) || fail "the program does not go on"
	stop "$client"
	stop "$server"
	no_servers
}

# A nested `xroce run` serves its own files; where it cannot, as for users, the outer one's remain.
nested() {
	local inner=1
	[ "$1" = root ] && inner=2
	# shellcheck disable=SC2016 # shellcheck disable=SC2086
	start program a ${as[$1]} "${RUN[@]}" bash -c '
		"${@:3}" bash -c "cat $0/counters/port_rcv_data; echo inner; read -r go <$1/go"
		cat $0/hw_counters/sent_pkts; echo outer; read -r go <$1/go' $PORT "$OWN" - "${RUN[@]}"
	local program=$child
	wait_until 10 grep -qx inner "$WORK/program.out" || { fail "the inner one"; show program; }
	wait_until 5 has_servers $inner || fail "there are $(servers | wc -l) processes, not $inner"
	echo >"$OWN/go"
	wait_until 10 grep -qx outer "$WORK/program.out" || { fail "the outer one"; show program; }
	wait_until 10 has_servers 1 || fail "there are $(servers | wc -l) processes, not 1"
	echo >"$OWN/go"
	finish "$program" 10 || fail "it ended with $?"
	need_equal "what they read" "$(grep -c '^0$' "$WORK/program.out")" 2
	no_servers
}

# in_server WHAT: descriptors, or KiB of data, of the process that serves the files
in_server() {
	local p
	p=$(servers)
	case $1 in
	descriptors) find "/proc/$p/fd" -mindepth 1 | wc -l ;;
	memory) sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$p/status" ;;
	esac
}

thousand_reads() {
	local fds memory of_broker
	traffic nobody 18616 nobody || return
	local busy="$server $client"
	local of_server
	for of_server in $(servers); do kill -KILL "$of_server"; done
	wait_until 5 has_servers 0
	# shellcheck disable=SC2016 # shellcheck disable=SC2086
	start reader a ${as[nobody]} "${RUN[@]}" bash -c 'cd "$0"/hw_counters
		many() { for ((i = 0; i < $1; i++)); do read -r n <sent_pkts; ((n)) || echo "it is $n"; done; }
		many 100; echo begun; read -r go <"$1"; many 1000; echo "all $n"; read -r go <"$1"' $PORT "$OWN/go"
	local reader=$child
	wait_until 20 grep -qx begun "$WORK/reader.out" || { fail "it does not read"; show reader; }
	fds=$(in_server descriptors) memory=$(in_server memory)
	of_broker=$(find "/proc/$broker_of_a/fd" -mindepth 1 | wc -l)
	echo >"$OWN/go"
	wait_until 60 grep -q '^all' "$WORK/reader.out" || { fail "they do not come to an end"; show reader; }
	need_line reader "^all $(sent "${busy%% *}")\$"
	need_no_line reader '^it is'
	need_equal "descriptors after a thousand reads" "$(in_server descriptors)" "$fds"
	need_least "KiB left of 64" $((memory + 64 - $(in_server memory))) 0
	need_equal "descriptors of the broker" "$(find "/proc/$broker_of_a/fd" -mindepth 1 | wc -l)" "$of_broker"
	echo >"$OWN/go"
	finish "$reader" 10 || fail "it ended with $?"
	end_traffic
	no_servers
}

# ---- cases without counters ----

without() {
	need_line looked '^node_type$'
	need_no_line looked '^(hw_)?counters$'
	has_servers 0 || fail "a process serves"
}
not_wanted() {
	see "$1" "$OWN/bin/xroce" run --no-mounts --dev $IF_A -- bash -c "test ! -e $PORT"
	has_servers 0 || fail "a process serves"
}
# no_device WHO NODE SAID: /dev/fuse is another node
no_device() {
	local list="ls /sys/class/infiniband/$DEV_A $PORT"
	# shellcheck disable=SC2086
	in_a unshare -m sh -c 'mount --bind "$0" /dev/fuse && exec "$@"' "$2" ${as[$1]} env XROCE_DEBUG=1 "${RUN[@]}" $list \
		>"$WORK/looked.out" 2>&1 || fail "it ended with $?"
	need_line looked "cannot serve counter files.*$3"
	without
	# shellcheck disable=SC2086
	in_a unshare -m sh -c 'mount --bind "$0" /dev/fuse && exec "$@"' "$2" ${as[$1]} "${RUN[@]}" $list >"$WORK/looked.out" 2>&1
	need_no_line looked '^xroce'
}
# The program would be the parent of the process that serves the files.
first_process() {
	in_a unshare -fp --mount-proc env XROCE_DEBUG=1 "${RUN[@]}" sh -c "ls /sys/class/infiniband/$DEV_A $PORT; cat /proc/1/task/1/children" \
		>"$WORK/looked.out" 2>&1 || fail "it ended with $?"
	need_line looked 'cannot serve counter files'
	without
}

# A deleted interface, or one with the name of another by now.
interface_gone() {
	ip -n $NS_A link add gone type veth peer name other || { fail "no interface"; return; }
	# shellcheck disable=SC2016
	start reader a "$OWN/bin/xroce" run -- sh -c 'cd /sys/class/infiniband/xroce_gone/ports/1/counters; cat port_rcv_data; read -r go <"$0"
		cat port_rcv_data; read -r go <"$0"; cat port_rcv_data' "$OWN/go"
	local reader=$child
	wait_until 10 grep -qx 0 "$WORK/reader.out" || fail "nothing is read"
	ip -n $NS_A link del gone
	echo >"$OWN/go"
	wait_until 10 grep -q 'No such device' "$WORK/reader.out" || { fail "a read of what has gone"; show reader; }
	ip -n $NS_A link add gone type veth peer name other
	echo >"$OWN/go"
	finish "$reader" 10
	need_equal "reads that failed" "$(grep -c 'No such device' "$WORK/reader.out")" 2
	ip -n $NS_A link del gone
}

mkfifo -m 666 "$OWN/go" "$OWN/never"
mknod -m 600 "$OWN/closed" c 10 229

for who in root user nobody; do
	run=run_case
	[ $who != nobody ] || run=run_long_case
	$run form_$who form $who
	run_long_case unseen_$who unseen $who
	$run killed_program_$who killed_program $who
	run_long_case nested_$who nested $who
	run_long_case not_wanted_$who not_wanted $who
	run_long_case no_device_$who no_device $who /dev/null 'Invalid argument'
done
run_case may_not_open no_device user "$OWN/closed" 'Permission denied'
run_case first_process first_process
run_case first_waits by_first waits 3
run_case first_waits_not by_first not 3
run_long_case agree_alone agree_alone
run_case live live
run_long_case becomes_nobody becomes_nobody
run_case killed_parent killed_parent
run_long_case killed_server killed_server
run_long_case interface_gone interface_gone
if [ "${XROCE_CASES:-}" != core ]; then
	serve a $IF_A && broker_of_a=$broker && serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
fi
run_long_case agree_shared agree_shared
run_long_case thousand_reads thousand_reads
finish_cases
