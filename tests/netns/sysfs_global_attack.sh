#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# The files of devices for all processes (`xroce serve --files`) against interference: mounts over
# and beneath our mounts, foreign nodes and directories, a removed directory of ours, a keeper that
# does not answer; readers during all changes. The whole test runs in a separate mount namespace.
if [ -z "${XROCE_APART:-}" ]; then
	XROCE_APART=1 exec unshare -m --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/sysfs_global.sh"

# one more interface on A
ip -n $NS_A link add other type veth peer name peer && ip -n $NS_A addr add 10.78.0.1/24 dev other &&
	ip -n $NS_A link set other up && ip -n $NS_A link set peer up || exit 1
stop_ends() {
	in_a timeout 40 "$XROCE" stop -- "$1" >"$WORK/stop.out" 2>&1 || { fail "stop $1 ends with $?"; show stop; }
}
kill_both() {
	# shellcheck disable=SC2046 # several
	kill -9 $(keepers) "$broker" 2>/dev/null
	finish "$broker" 10 2>/dev/null
	wait_until 5 has_processes xroce-files 0 || fail "a keeper is left"
}

# ---- others' mounts ----

# A foreign mount is neither made read-only nor removed; our mount is removed after the foreign one.
covered() {
	with_files a $IF_A || return
	mount -t tmpfs -o mode=0755 theirs /sys/class || return
	ip -n $NS_A addr add 10.77.9.9/24 dev $IF_A
	wait_until 10 grep -rqs ':0a4d:0909$' "$HERE"/class/infiniband/$DEV_A/ports/1/gids || fail "an address that comes is not seen"
	: >/sys/class/theirs || fail "theirs cannot be written to"
	case $1 in
	stopped) stop_ends $IF_A ;;
	killed) kill_both ;;
	esac
	finish "$broker" 10 2>/dev/null
	ip -n $NS_A addr del 10.77.9.9/24 dev $IF_A
	need_equal "what is on top" "$(ls /sys/class)" theirs
	umount /sys/class || fail "theirs is not there"
	in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1
	nothing_is_left "after theirs"
}
# A user's unmount of our directory stays; the next server mounts it again.
unmounted() {
	with_files a $IF_A || return
	umount -l /sys/class
	with_files a other || return
	compare xroce_other
	stop "$broker"
	stop_ends $IF_A
	nothing_is_left "after both"
}
# In a copy of a mount namespace with such files, and with the same /dev: the outer one's files are
# beneath.
nested() {
	local outer inner
	with_files a $IF_A || return
	outer=$broker
	start inner a unshare -m --propagation private "$XROCE" serve --files other
	inner=$child
	wait_until 10 broker_answers a other "$inner " || { fail "no broker"; show inner; }
	need_no_line inner .
	need_equal "what is seen there" "$(nsenter -t "$inner" -m cat $SYS/xroce_other/ports/1/{state,counters/port_xmit_data} $SYS/$DEV_A/node_type | tr '\n' ' ')" '4: ACTIVE 0 1: CA '
	need_equal "devices here" "$(ls $SYS)" $DEV_A
	stop_ends other
	finish "$inner" 10
	# with the same name, in another network namespace: its device stays
	ip link add $IF_A netns $NS_B type veth peer name peer netns $NS_B && ip -n $NS_B link set $IF_A up && ip -n $NS_B link set peer up
	in_b unshare -m --propagation private sh -c "umount -l /sys/class; exec timeout 20 $XROCE serve --files $IF_A" >"$WORK/inner.out" 2>&1
	need_equal "exit status of the second" $? 1
	need_line inner 'files of a device with this name exist already'
	ip -n $NS_B link del $IF_A
	[ -c $NODES/$DEV_A ] || fail "the first one's node has gone"
	compare $DEV_A
	stop "$outer"
	nothing_is_left "after both"
}
# The remains of an ended mount namespace with a separate /dev: a node of that name here belongs to
# another owner.
another_dev() {
	ip link add $IF_A netns $NS_B type veth peer name peer netns $NS_B && ip -n $NS_B link set $IF_A up && ip -n $NS_B link set peer up
	# shellcheck disable=SC2016 # the inner shell's
	in_b unshare -m --propagation private bash -c '
		mkdir "$2" && mount -t tmpfs none "$2" && cp -a /dev/{null,fuse} "$2" && mkdir "$2/net" && cp -a /dev/net/tun "$2/net" && mount --bind "$2" /dev || exit
		"$0" serve --files "$1" & broker=$!
		until [ -c /dev/infiniband/xroce_$1 ]; do kill -0 $broker || exit; sleep 0.05; done
		for p in $(pgrep -x xroce-files); do [ "$(readlink /proc/$p/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ] && kill -9 $p; done
		kill -9 $broker; wait $broker; echo left' "$XROCE" $IF_A "$WORK/another" >"$WORK/left.out" 2>&1
	need_line left '^left$'
	ip -n $NS_B link del $IF_A
	mkdir -p $NODES && mknod $NODES/$DEV_A c 1 3
	in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 || fail "exit status $?"
	need_line stop 'removed the files of 1 device'
	[ -c $NODES/$DEV_A ] || fail "another's node has gone"
	rm -rf $NODES
	nothing_is_left "after it"
}

# ---- foreign nodes, and removed nodes of ours ----

null_node() {
	mkdir $NODES && mknod $NODES/$DEV_A c 1 3
	in_a timeout 20 "$XROCE" serve --files $IF_A >"$WORK/serve.out" 2>&1
	need_equal "exit status" $? 1
	need_line serve 'files of a device with this name exist already'
	[ -c $NODES/$DEV_A ] || fail "another's node has gone"
	rm -r $NODES
	nothing_is_left "after it"
}
empty_directory() {
	mkdir -m 0700 $NODES
	with_files a $IF_A || return
	stop "$broker"
	need_equal "the directory" "$(stat -c '%F %a' $NODES)" 'directory 700'
	rmdir $NODES
	nothing_is_left "after it"
}
removed() {
	with_files a $IF_A || return
	rm -rf /run/xroce/files
	case $1 in
	stop) stop_ends $IF_A && is_not_there $NODES/$DEV_A || fail "the node stays" ;;
	# the node's owner is no longer recorded
	killed) kill_both && rm $NODES/$DEV_A && in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 ;;
	serve)
		kill_both && rm $NODES/$DEV_A
		with_files a $IF_A || return
		compare $DEV_A
		stop "$broker"
		;;
	esac
	finish "$broker" 10 2>/dev/null
	# the directory was considered foreign
	[ ! -d $NODES ] || rmdir $NODES
	nothing_is_left "after $1"
}

# ---- ways to end ----

keeper_stopped() {
	with_files a $IF_A || return
	kill -STOP "$(keepers)"
	stop_ends $IF_A
	same_as_before || { fail "not gone when stop returns"; show diff; }
	finish "$broker" 10
	need_line broker_$IF_A 'xroce-files, has not answered for 10 s: it is killed'
	nothing_is_left "after stop"
}
# `xroce stop` removes all remains, wherever the files are.
killed_anywhere() {
	local i
	for i in {1..6}; do
		start broker a "$XROCE" serve --files $IF_A
		broker=$child
		if [ $((i % 3)) != 0 ]; then
			# during the start
			read -r -t 0.0$((RANDOM % 90 + 10)) <>"$WORK/quiet"
		else
			wait_until 10 test -c $NODES/$DEV_A
			kill -TERM "$broker"
			read -r -t 0.00$((RANDOM % 10)) <>"$WORK/quiet"
		fi
		kill_both
		in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1
		nothing_is_left "after round $i" || return
	done
}

# ---- readers ----

# Until the file `end` exists: each read is complete. With a device's name, the device is always
# there; without one, other classes are.
cat >"$WORK/reader.py" <<'PYTHON'
import os, re, sys, time
end, must = sys.argv[1], sys.argv[2:]
root = "/sys/class/infiniband/"
guid = "([0-9a-f]{4}:){%d}[0-9a-f]{4}"
want = {"node_guid": guid % 3, "ports/1/state": r"\d: [A-Z]+", "ports/1/rate": r"[\d.]+ Gb/sec \(.*\)",
        "ports/1/gids/0": guid % 7, "ports/1/gids/63": guid % 7}
wrong, reads, classes = {}, 0, None
while not os.path.exists(end):
    seen = sorted(set(os.listdir("/sys/class")) - {"infiniband"})
    if seen != (classes := classes or seen):
        wrong["classes " + " ".join(set(seen) ^ set(classes))] = 1
    try:
        names = must or os.listdir(root)
    except FileNotFoundError:
        names = []
    for name in names:
        for file, text in want.items():
            try:
                with open(root + name + "/" + file) as f:
                    got = f.read()
                reads += 1
                if not re.fullmatch(text + "\n", got):
                    wrong[f"{file} {got!r}"] = 1
            except OSError as e:
                if must or not isinstance(e, FileNotFoundError):
                    wrong[f"{file} {e}"] = 1
    time.sleep(0.001)
print("reads", reads, "wrong", *wrong)
PYTHON
reader() {
	rm -f "$WORK/end"
	start reader a python3 "$WORK/reader.py" "$WORK/end" "$@"
	reads=$child
}
reader_ends() {
	: >"$WORK/end"
	finish "$reads" 10 || fail "the reader ended with $?"
	need_line reader '^reads [1-9][0-9]* wrong$'
}
changes() {
	local i
	with_files a $IF_A || return
	reader $DEV_A
	for i in {1..60}; do
		ip -n $NS_A addr add 10.88.0."$i"/24 dev $IF_A
		ip -n $NS_A link set $IF_A mtu $((3000 + 10 * i))
		[ $((i % 10)) != 0 ] || { ip -n $NS_B link set $IF_B down; ip -n $NS_B link set $IF_B up; }
	done
	compare $DEV_A
	ip -n $NS_A addr flush dev $IF_A to 10.88.0.0/24
	ip -n $NS_A link set $IF_A mtu 4500
	compare $DEV_A
	ip -n $NS_B addr add $IP6_B/64 dev $IF_B nodad
	netns_wait_ready
	reader_ends
	stop "$broker"
	nothing_is_left "after the end"
}
# An address that is added during the start, before messages are watched.
changes_first() {
	skip_reason="strace is not installed"
	command -v strace >/dev/null || return 77
	start slow a strace -f -o /dev/null -e trace=socketpair -e inject=socketpair:delay_enter=1000000 "$XROCE" serve --files $IF_A
	wait_until 10 xdp_on $NS_A $IF_A || fail "it does not begin"
	ip -n $NS_A addr add 10.77.9.9/24 dev $IF_A
	wait_until 15 test -c $NODES/$DEV_A || { fail "no files"; show slow; }
	compare $DEV_A
	ip -n $NS_A addr del 10.77.9.9/24 dev $IF_A
	stop_ends $IF_A
	finish "$child" 10
	nothing_is_left "after the end"
}
# Three brokers that start at the same time, and end at the same time by different means.
come_and_go() {
	local i all
	reader
	for i in {1..4}; do
		all=()
		for at in "a $IF_A" "b $IF_B" "a other"; do
			start "go_${at#* }" "${at% *}" "$XROCE" serve --files "${at#* }"
			all+=("$child")
		done
		for at in $IF_A $IF_B other; do
			wait_until 10 test -e $SYS/xroce_$at/ports/1/counters/port_xmit_data || { fail "no files of $at"; show go_$at; }
			[ -c $NODES/xroce_$at ] || fail "no node of $at"
		done
		kill -TERM "${all[$((i % 3))]}"
		kill -KILL "${all[$(((i + 1) % 3))]}"
		kill -INT "${all[$(((i + 2) % 3))]}"
		for at in "${all[@]}"; do
			finish "$at" 10 2>/dev/null
		done
		nothing_is_left "after round $i" || break
	done
	reader_ends
}
# A process that has the directory open when the files are removed sees all classes in it.
kept_open() {
	local classes
	with_files a $IF_A || return
	classes=$(ls /sys/class)
	exec 9</sys/class
	case $1 in
	stopped) stop_ends $IF_A ;;
	killed) kill_both && in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 ;;
	esac
	finish "$broker" 10 2>/dev/null
	need_equal "classes" "$(ls /dev/fd/9/)" "$classes"
	exec 9<&-
	nothing_is_left "after $1"
}
# The kernel allows all but a slash, a colon and blanks.
odd_names() {
	local name
	for name in 'a\b' 'a#' '..a,b=' $'\001"*'; do
		ip -n $NS_A link set other down && ip -n $NS_A link set dev other name "$name" up || return
		start odd a "$XROCE" serve --files -- "$name"
		wait_until 10 test -e "$SYS/xroce_$name/ports/1/counters/port_xmit_data" || { fail "no files of $name"; show odd; }
		[ -c "$NODES/xroce_$name" ] || fail "no node of $name"
		need_equal "devices" "$(ls $SYS)" "xroce_$name"
		cat "$SYS/xroce_$name/ports/1/counters/port_xmit_data" >/dev/null || fail "no counters of $name"
		stop_ends "$name"
		finish "$child" 10
		ip -n $NS_A link set dev "$name" down && ip -n $NS_A link set dev "$name" name other up || return
		nothing_is_left "after $name"
	done
}

run_case covered_stopped covered stopped
run_long_case covered_killed covered killed
run_case unmounted unmounted
run_case nested nested
run_long_case another_dev another_dev
run_case null_node null_node
run_case empty_directory empty_directory
run_case removed_killed removed killed
for how in stop serve; do
	run_long_case removed_$how removed $how
done
run_long_case keeper_stopped keeper_stopped
run_long_case killed_anywhere killed_anywhere
run_long_case changes changes
run_long_case changes_first changes_first
run_long_case come_and_go come_and_go
for how in stopped killed; do
	run_long_case kept_open_$how kept_open $how
done
run_long_case odd_names odd_names
finish_cases
