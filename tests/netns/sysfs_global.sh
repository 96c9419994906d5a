#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# The files of devices for all processes (`xroce serve --files`): they agree with the verbs, also
# after changes; the rest of /sys/class and /dev is as before; no file remains, whichever process
# exits and however. The whole test runs in a separate mount namespace.
if [ -z "${XROCE_APART:-}" ]; then
	XROCE_APART=1 exec unshare -m --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/sysfs_global.sh"

# The same, except for the counters, which cannot be read.
compare_without_counters() {
	in_a timeout 60 "${ALONE[@]}" XROCE_DEV=$IF_A "$OWN/bin/sysfs" $DEV_A >"$WORK/looked.out" 2>&1
	need_line looked '^compared [0-9]+ values, '
	need_equal "what differs" "$(grep -v "^ports/1/[hw_]*counters/.* is ''" "$WORK/looked.out" | grep -v ^compared)" ''
}

# ---- content ----

files() {
	more_options=(--pkey '0x8001,0x0002')
	with_files a $IF_A || return
	more_options=()
	compare $DEV_A
	need_equal "P_Keys" "$(cat $SYS/$DEV_A/ports/1/pkeys/* | tr '\n' ' ')" '0xffff 0x8001 0x0002 '
	need_equal "the node" "$(stat -c '%F %t:%T %a' $NODES/$DEV_A)" 'character special file 1:3 666'
	need_equal "devices" "$(ls $SYS)" $DEV_A
	"${NOBODY[@]}" sh -c "cat $SYS/$DEV_A/node_type && : >$NODES/$DEV_A" >"$WORK/looked.out" 2>&1 || fail "nobody may not use them"
	need_line looked '^1: CA$'
	rm $SYS/$DEV_A/node_type 2>/dev/null && fail "one can be removed"
	stop "$broker"
	nothing_is_left "after the end"
}
# By a program started without `xroce run`.
ucx() {
	skip_reason="ucx_info is not installed (package ucx-utils)"
	command -v ucx_info >/dev/null || return 77
	with_files a $IF_A || return
	in_a timeout 60 "${ALONE[@]}" ucx_info -d >"$WORK/looked.out" 2>&1
	need_line looked "Memory domain: $DEV_A\$"
	if command -v ibstat >/dev/null; then
		in_a timeout 60 "${ALONE[@]}" ibstat >"$WORK/looked.out" 2>&1
		need_line looked "^CA '$DEV_A'\$"
		need_line looked 'State: Active$'
	fi
	stop "$broker"
	nothing_is_left "after the end"
}

# Two hosts, each of which sees the other's files as well; programs use only the library.
ucx_chooses() {
	local first server
	skip_reason="ucx_perftest is not installed (package ucx-utils)"
	command -v ucx_perftest >/dev/null || return 77
	with_files a $IF_A || return
	first=$broker
	with_files b $IF_B || return
	start server b "${ALONE[@]}" ucx_perftest -t tag_bw -n 500 -s 65536
	server=$child
	wait_until 10 listens_or_gone b 13337 "$server"
	start client a "${ALONE[@]}" UCX_LOG_LEVEL=info ucx_perftest $IP4_B -t tag_bw -n 500 -s 65536
	finish "$child" 60 ||
		{ fail "the client ended with $?"; show client; stop "$server"; show server; return; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	need_line client '^Final: +500 '
	need_line client "(rc|ud)_verbs/$DEV_A:1"
	stop "$first"
	stop "$broker"
	nothing_is_left "after the end"
}

# Also a failed lookup before the file exists.
follows() {
	local state=$SYS/$DEV_A/ports/1/state
	with_files a $IF_A || return
	! cat $SYS/$DEV_A/ports/1/gid_attrs/types/9 2>/dev/null || fail "an empty slot has a type"
	ip -n $NS_A addr add 10.77.9.9/24 dev $IF_A
	ip -n $NS_A addr add fd78::9/64 dev $IF_A nodad
	wait_until 10 grep -rqs ':0a4d:0909$' $SYS/$DEV_A/ports/1/gids || fail "an address that comes is not seen"
	compare $DEV_A
	ip -n $NS_A addr del 10.77.9.9/24 dev $IF_A
	ip -n $NS_A addr del fd78::9/64 dev $IF_A
	compare $DEV_A
	need_equal "its state" "$(cat $state)" '4: ACTIVE'
	# an open file does not hinder other readers
	exec 9<$state
	ip -n $NS_B link set $IF_B down
	wait_until 10 grep -q '^1: DOWN' $state || fail "that the link goes down is not seen"
	compare $DEV_A
	ip -n $NS_B link set $IF_B up
	wait_until 10 grep -q '^4: ACTIVE' $state || fail "that it comes is not seen"
	exec 9<&-
	ip -n $NS_B addr add $IP6_B/64 dev $IF_B nodad
	netns_wait_ready
	compare $DEV_A
	stop "$broker"
	nothing_is_left "after the end"
}

# Sums over two users' processes, equal to root's stat.
counters() {
	local server client port=$SYS/$DEV_A/ports/1 want
	with_files a $IF_A || return
	need_equal "sent, before" "$(cat $port/counters/port_xmit_packets)" 0
	start server a "${ALONE[@]}" ibv_rc_pingpong -d $DEV_A -g 0 -n 1000000000 -p 18701
	server=$child
	wait_until 10 listens_or_gone a 18701 "$server"
	start client a "${ALONE[@]}" ibv_rc_pingpong -d $DEV_A -g 0 -n 1000000000 -p 18701 $IP4_A
	client=$child
	wait_until 20 sent_so_many $port 2000 || { fail "nothing is counted"; show server; show client; }
	kill -STOP "$server" "$client"
	in_a "$XROCE" stat --json --dev $IF_A >"$WORK/stat.out"
	want=$(python3 -c 'import json, sys
print(sum(p["port"]["port_xmit_packets"] for p in json.load(open(sys.argv[1]))["ports"]))' "$WORK/stat.out")
	need_equal "sent" "$("${NOBODY[@]}" cat $port/counters/port_xmit_packets)" "$want"
	kill -CONT "$server" "$client"
	stop "$client"
	stop "$server"
	stop "$broker"
	nothing_is_left "after the end"
}
sent_so_many() { [ "$(cat "$1/counters/port_xmit_packets")" -ge "$2" ]; }
counters_killed() {
	with_files a $IF_A || return
	kill -9 "$(processes xroce-counters)"
	! cat $SYS/$DEV_A/ports/1/counters/port_xmit_packets 2>"$WORK/looked.out" || fail "who answers?"
	need_line looked 'not connected|connection abort'
	need_equal "others" "$(cat $SYS/$DEV_A/node_type)" '1: CA'
	stop "$broker"
	nothing_is_left "after the end"
}
# SIGIO notifies the serving process of the keeper's exit, and may be raised without one.
counters_told() {
	local served
	with_files a $IF_A || return
	served=$(processes xroce-counters)
	kill -IO "$served"
	compare $DEV_A
	need_equal "who serves the counters" "$(processes xroce-counters)" "$served"
	kill -9 "$(keepers)"
	wait_until 5 has_processes xroce-counters 0 || fail "it stays behind the keeper"
	stop "$broker"
	nothing_is_left "after the end"
}
without_fuse() {
	mount --bind /dev/null /dev/fuse
	with_files a $IF_A || { umount /dev/fuse; return; }
	need_line broker_$IF_A '^xroce serve: cannot serve counter files'
	compare_without_counters
	need_equal "directories of counters" "$(ls -d $SYS/$DEV_A/ports/1/*counters 2>/dev/null)" ''
	stop "$broker"
	umount /dev/fuse
	nothing_is_left "after the end"
}

# ---- foreign files ----

rest_is_as_before() {
	local writable=/sys/class/firmware/timeout
	find /sys/class /dev -mindepth 1 -maxdepth 2 ! -path '*infiniband*' ! -path '*/bdi/*' -printf '%p %y %l %m\n' | sort >"$WORK/rest"
	with_files a $IF_A || return
	find /sys/class /dev -mindepth 1 -maxdepth 2 ! -path '*infiniband*' ! -path '*/bdi/*' -printf '%p %y %l %m\n' | sort |
		diff "$WORK/rest" - >"$WORK/diff.out" || { fail "something is not as it was"; show diff; }
	need_equal "an interface's real path" "$(readlink -f /sys/class/net/lo)" /sys/devices/virtual/net/lo
	if [ -e $writable ]; then
		cat $writable >"$WORK/value"
		cat "$WORK/value" >$writable || fail "an attribute of a class cannot be written"
	fi
	stop "$broker"
	nothing_is_left "after the end"
}
# If the kernel has the class, only the class is covered; its devices are visible, also later ones.
beside_kernels() {
	in_a unshare -m --propagation private bash -c '
		broker= && fake=$1 && mkdir -p "$fake"/class/infiniband && mount -t tmpfs none "$fake/class" &&
			for c in /sys/class/*; do mkdir "$fake/class/${c##*/}" && mount --bind "$c" "$fake/class/${c##*/}" || exit; done
		mkdir "$fake/class/infiniband" && ln -s ../../devices/virtual/mem/zero "$fake/class/infiniband/mlx5_7" &&
			mount --rbind "$fake/class" /sys/class || exit
		"$2" serve --files "$3" & broker=$!
		until [ -c /dev/infiniband/xroce_$3 ]; do kill -0 $broker || exit; sleep 0.05; done
		echo "all:" $(ls /sys/class/infiniband) $(cat /sys/class/infiniband/mlx5_7/dev)
		ln -s ../../devices/virtual/mem/null "$fake/class/infiniband/mlx5_8"
		echo "later:" $(ls /sys/class/infiniband) $(cat /sys/class/infiniband/mlx5_8/dev)
		echo "covered:" $(sed -n "s/.* \(\/sys[^ ]*\) .* - overlay xroce .*/\1/p" /proc/self/mountinfo)
		"$2" stop "$3"; wait $broker
		echo "after:" $(ls /sys/class/infiniband) $(ls /dev/infiniband 2>/dev/null)' - "$WORK/fake" "$XROCE" $IF_A >"$WORK/beside.out" 2>&1
	printf '%s\n' "all: mlx5_7 $DEV_A 1:5" "later: mlx5_7 mlx5_8 $DEV_A 1:3" "covered: $SYS" "after: mlx5_7 mlx5_8" |
		diff - "$WORK/beside.out" >"$WORK/diff.out" || { fail "not as it should be"; show diff; }
	nothing_is_left "after the end"
}
# Foreign files in /dev/infiniband stay.
others_nodes() {
	mkdir $NODES && mknod $NODES/rdma_cm c 1 3
	with_files a $IF_A || return
	need_equal "nodes" "$(ls $NODES | tr '\n' ' ')" "rdma_cm $DEV_A "
	stop "$broker"
	need_equal "nodes after the end" "$(ls $NODES)" rdma_cm
	rm $NODES/rdma_cm && rmdir $NODES
	nothing_is_left "after the end"
}
under_run() {
	with_files a $IF_A || return
	in_a "$XROCE" run --dev $IF_A -- sh -c "ls $SYS $NODES; $OWN/bin/sysfs $DEV_A" >"$WORK/looked.out" 2>&1
	need_equal "times that it is listed" "$(grep -c "^$DEV_A\$" "$WORK/looked.out")" 2
	need_line looked ', 0 differ$'
	compare $DEV_A
	stop "$broker"
	nothing_is_left "after the end"
}

# ---- several brokers ----

two_brokers() {
	local first second
	with_files a $IF_A || return
	first=$broker
	! ls $SYS/$DEV_B 2>/dev/null || fail "whose is $DEV_B?"
	with_files b $IF_B || return
	second=$broker
	compare $DEV_A a
	compare $DEV_B b
	need_equal "mounts of the overlay" "$(grep -c ' - overlay xroce ' /proc/self/mountinfo)" 1
	case $1 in first) stop "$first" ;; second) stop "$second" ;; esac
	case $1 in
	first) compare $DEV_B b && need_equal "devices" "$(ls $SYS $NODES | grep xroce)" "$DEV_B"$'\n'"$DEV_B" && stop "$second" ;;
	second) compare $DEV_A a && need_equal "devices" "$(ls $SYS $NODES | grep xroce)" "$DEV_A"$'\n'"$DEV_A" && stop "$first" ;;
	esac
	nothing_is_left "after both"
}
# Two interfaces of one process; one broker is stopped, or one interface is deleted.
two_interfaces() {
	ip -n $NS_A link add other type veth peer name peer && ip -n $NS_A addr add 10.78.0.1/24 dev other && ip -n $NS_A link set other up &&
		ip -n $NS_A link set peer up || return
	with_files a $IF_A other || return
	compare $DEV_A
	compare xroce_other
	case $1 in
	stopped)
		in_a "$XROCE" stop other >"$WORK/stop.out" 2>&1 || fail "stop ends with $?"
		need_equal "devices" "$(ls $SYS $NODES | grep xroce)" "$DEV_A"$'\n'"$DEV_A"
		;;
	gone) ip -n $NS_A link del other && wait_until 5 is_not_there $SYS/xroce_other || fail "its files stay" ;;
	renamed)
		ip -n $NS_A link set other down && ip -n $NS_A link set other name another && ip -n $NS_A link set another up
		wait_until 5 is_not_there $SYS/xroce_other || fail "the old name's files stay"
		;;
	esac
	compare $DEV_A
	[ -e $NODES/xroce_other ] && fail "its node stays"
	stop "$broker"
	ip -n $NS_A link del another 2>/dev/null || ip -n $NS_A link del other 2>/dev/null
	nothing_is_left "after the end"
}

# ---- ways to end ----

ends() {
	with_files a $IF_A || return
	case $1 in
	stop) in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 || fail "stop ends with $?"
		same_as_before || { fail "not gone when it returns"; show diff; } ;;
	*) kill "-$1" "$broker" ;;
	esac
	finish "$broker" 10
	nothing_is_left "after $1"
}
# All processes of the service get SIGTERM at the same time.
ends_all() {
	with_files a $IF_A || return
	# shellcheck disable=SC2046 # several
	kill -TERM $(keepers) $(processes xroce-counters) "$broker"
	finish "$broker" 10
	nothing_is_left "after TERM to all"
}
in_background() {
	in_a "$XROCE" serve --files --background $IF_A >"$WORK/serve.out" 2>&1 || { fail "it ends with $?"; show serve; return; }
	need_no_line serve 'cannot serve counter files'
	compare $DEV_A
	in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 || fail "stop ends with $?"
	nothing_is_left "after stop"
}
keeper_killed() {
	with_files a $IF_A || return
	kill -9 "$(keepers)"
	wait_until 5 has_processes xroce-files 0
	wait_until 5 has_processes xroce-counters 0 || fail "its server of counters stays"
	compare_without_counters
	stop "$broker"
	nothing_is_left "after the end"
}
both_killed() {
	local last
	with_files a $IF_A || return
	# shellcheck disable=SC2046
	kill -9 $(keepers) "$broker"
	finish "$broker" 10
	need_equal "what is left" "$(ls $SYS)" $DEV_A
	in_a "$XROCE" doctor $IF_A >"$WORK/doctor.out" 2>&1
	need_line doctor '^warn +files: 1 device left by a killed broker'
	last=$SYS/$DEV_A
	case $1 in
	stop)
		in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 || fail "exit status $?"
		need_line stop '^xroce stop: removed the files of 1 device whose broker was killed$'
		;;
	serve)
		serve_options=()
		serve b $IF_B || return
		is_not_there $last || fail "they stay"
		stop "$broker"
		;;
	files)
		with_files a $IF_A || return
		compare $DEV_A
		stop "$broker"
		;;
	esac
	nothing_is_left "after $1"
	in_a "$XROCE" doctor $IF_A >"$WORK/doctor.out" 2>&1
	need_line doctor '^ok +files: .*serve --files'
}
# namespace_gone [again]: in a mount namespace that ends with all its mounts. again: a new one has
# the same number by now.
namespace_gone() {
	local other= gone its
	# the keeper and the broker are killed; the process that serves the counters exits by itself
	in_a unshare -m --propagation private bash -c '"$0" serve --files "$1" & broker=$!
		here() {
			for p in $(pgrep -x "$1"); do
				[ "$(readlink /proc/$p/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ] || echo $p
			done
		}
		# it answers once its keeper has reported the files
		until "$0" list "$1" 2>/dev/null | grep -q "^  broker"; do kill -0 $broker || exit; sleep 0.05; done
		kill -9 $(here xroce-files)
		until [ -z "$(here "xroce-(files|counters)")" ]; do sleep 0.02; done
		kill -9 $broker; wait $broker; [ -c /dev/infiniband/xroce_$1 ] && echo left' "$XROCE" $IF_A >"$WORK/left.out" 2>&1
	need_line left '^left$'
	if [ "${1:-}" ]; then
		start other a unshare -m --propagation private sleep 60
		other=$child
		wait_until 5 is_apart "$other" || fail "no other namespace"
		gone=$(echo /run/xroce/files/*) its=/run/xroce/files/$(stat -L -c %i "/proc/$other/ns/mnt")
		# the number may be the same already
		[ "$gone" = "$its" ] || mv "$gone" "$its"
	fi
	in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 || fail "exit status $?"
	need_line stop 'removed the files of 1 device'
	nothing_is_left "after it"
	[ -z "$other" ] || stop "$other"
}
is_apart() { [ "$(cat "/proc/$1/comm")" = sleep ] && [ "$(readlink "/proc/$1/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]; }

# ---- cases without the files ----

# refused SAID COMMAND...
refused() {
	local said=$1
	shift
	in_a timeout 20 "$@" >"$WORK/serve.out" 2>&1
	need_equal "exit status" $? 1
	need_line serve "^xroce serve: no files in $SYS and $NODES.*$said"
	nothing_is_left "after it"
}
CAPS='-all,+net_admin,+bpf,+perfmon,+chown,+sys_resource'
unprivileged() { refused 'needs root with CAP_SYS_ADMIN' setpriv --bounding-set=$CAPS "$XROCE" serve --files $IF_A; }
read_only_dev() {
	mount -o remount,bind,ro /dev
	refused 'Read-only file system' "$XROCE" serve --files $IF_A
	mount -o remount,bind,rw /dev
	nothing_is_left "after it"
}
there_already() {
	mkdir $NODES && mknod $NODES/$DEV_A c 1 5
	in_a timeout 20 "$XROCE" serve --files $IF_A >"$WORK/serve.out" 2>&1
	need_equal "exit status" $? 1
	need_line serve "of $DEV_A: files of a device with this name exist already"
	need_equal "the node" "$(stat -c '%t:%T' $NODES/$DEV_A)" 1:5
	rm -r $NODES
	nothing_is_left "after it"
}
not_ours() {
	mkdir -p /run/xroce/files && chown 12345 /run/xroce/files
	refused 'needs root|not permitted' "$XROCE" serve --files $IF_A
	chown 0 /run/xroce/files
	rmdir /run/xroce/files
}
wrong_usage() {
	in_a "$XROCE" serve --files --netns $NS_A $IF_A >"$WORK/serve.out" 2>&1
	need_equal "exit status" $? 2
	nothing_is_left "after it"
}

run_case files files
run_long_case ucx ucx
run_long_case ucx_chooses ucx_chooses
run_long_case follows follows
run_long_case counters counters
run_long_case counters_killed counters_killed
run_long_case counters_told counters_told
run_long_case without_fuse without_fuse
run_long_case rest_is_as_before rest_is_as_before
run_long_case beside_kernels beside_kernels
run_long_case others_nodes others_nodes
run_case under_run under_run
run_long_case two_brokers_first two_brokers first
run_long_case two_brokers_second two_brokers second
for how in stopped gone renamed; do
	run_long_case two_interfaces_$how two_interfaces $how
done
for how in stop TERM INT KILL; do
	run_long_case ends_$how ends $how
done
run_case ends_all ends_all
run_long_case in_background in_background
run_case keeper_killed keeper_killed
for how in stop serve files; do
	run_long_case both_killed_$how both_killed $how
done
run_long_case namespace_gone namespace_gone
run_long_case namespace_number_again namespace_gone again
run_case unprivileged unprivileged
run_case read_only_dev read_only_dev
run_long_case there_already there_already
run_case not_ours not_ours
run_case wrong_usage wrong_usage
finish_cases
