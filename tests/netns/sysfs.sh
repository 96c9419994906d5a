#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# needs: userns
#
# The files that programs look for: /sys/class/infiniband and /dev/infiniband, which `xroce run`
# shows to its program, in a mount namespace, as root and as an unprivileged user (there in a user
# namespace). They agree with the verbs; all other files are still there; and the program keeps all
# its other state.
# that it had before.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS/sysfs" "$TOOLS/limited" "$OWN/bin/"

RUN=("$OWN/bin/xroce" run)
# Any user other than nobody, whose number stands for unmapped users.
USER_=(setpriv --reuid=12345 --regid=12346 --groups 12347 --inh-caps=-all --bounding-set=-all)
declare -A as=([root]='' [user]="${USER_[*]}" [nobody]="${NOBODY[*]}")

# look WHO COMMAND...: in A, as that user; output in `looked`. Returns the command's status.
look() {
	local who=$1
	shift
	# shellcheck disable=SC2086 # several words
	in_a timeout 60 ${as[$who]} "$@" >"$WORK/looked.out" 2>&1 </dev/null
}
# see: look that must succeed
see() { look "$@" || { fail "it ended with $?: $*"; show looked; return 1; }; }

# ---- content ----

# Its MAC as an EUI-64: ff:fe in the middle, the second bit of the first byte inverted.
guid_of_mac() {
	local m
	IFS=: read -ra m < <(in_a ip -o link show dev $IF_A | sed 's|.*link/ether \([^ ]*\).*|\1|')
	printf '%02x%s:%sff:fe%s:%s%s\n' $((0x${m[0]} ^ 2)) "${m[@]:1}"
}
files() {
	see "$1" "${RUN[@]}" --dev $IF_A -- "$OWN/bin/sysfs" $DEV_A || return
	need_line looked '^compared 2[0-9][0-9] values, 0 differ$'
	see "$1" "${RUN[@]}" --dev $IF_A -- test -c /dev/infiniband/$DEV_A
	see "$1" "${RUN[@]}" --dev $IF_A -- cat /sys/class/infiniband/$DEV_A/node_guid
	need_line looked "^$(guid_of_mac)\$"
	# of all interfaces, in both directories
	see "$1" "${RUN[@]}" -- ls /sys/class/infiniband /dev/infiniband
	need_equal "times that it is listed" "$(grep -c "^$DEV_A\$" "$WORK/looked.out")" 2
}

# The link goes down: another state, and no carrier.
files_down() {
	in_a ip link set $IF_A down
	files root
	in_a ip link set $IF_A up
	netns_wait_ready
}

# A user that root becomes can read them, whatever root's umask.
files_umask() {
	see root sh -c 'umask 077 && exec "$@"' - "${RUN[@]}" --dev $IF_A -- \
		"${NOBODY[@]}" "$OWN/bin/sysfs" $DEV_A
	need_line looked ', 0 differ$'
}

# The output of ibstat and other programs that read only these files.
ibstat_says() {
	local guid
	skip_reason="ibstat is not installed (package infiniband-diags)"
	command -v ibstat >/dev/null && command -v ibstatus >/dev/null || return 77
	see "$1" "${RUN[@]}" --dev $IF_A -- ibv_devinfo || return
	guid=$(sed -n 's/^[[:space:]]*node_guid:[[:space:]]*//p' "$WORK/looked.out" | tr -d :)
	see "$1" "${RUN[@]}" --dev $IF_A -- ibstat || return
	need_line looked "^CA '$DEV_A'\$"
	need_line looked "Node GUID: 0x$guid\$"
	need_line looked 'State: Active$'
	need_line looked 'Physical state: LinkUp$'
	need_line looked 'Link layer: Ethernet$'
	see "$1" "${RUN[@]}" --dev $IF_A -- ibstatus || return
	need_line looked "Infiniband device '$DEV_A' port 1 status:"
	need_line looked 'state:[[:space:]]+4: ACTIVE'
	need_line looked 'link_layer:[[:space:]]+Ethernet'
}

# ---- other files in the directories ----

# bare COMMAND...: without any infiniband; beside COMMAND...: with a kernel's RDMA device. Both run
# as root in a mount namespace with a fake like sysfs and devtmpfs.
cat >"$OWN/bin/bare" <<'END'
#!/bin/bash
mkdir -p "$1" && mount -t tmpfs none "$1" && cp -a /dev/{null,zero,tty,fd} "$1" &&
	mkdir "$1"/{pts,net} && cp -a /dev/net/tun "$1/net" &&
	mount --rbind /dev/pts "$1/pts" && mount --rbind "$1" /dev || exit 1
shift
exec "$@"
END
cat >"$OWN/bin/beside" <<'END'
#!/bin/bash
mkdir -p "$1"/{class,node} && mount -t tmpfs none "$1/class" && mount -t tmpfs none "$1/node" ||
	exit 1
for class in /sys/class/*; do
	class=${class##*/}
	[ "$class" = infiniband ] ||
		{ mkdir "$1/class/$class" && mount --bind "/sys/class/$class" "$1/class/$class"; } || exit 1
done
mkdir "$1/class/infiniband" && ln -s ../../devices/virtual/mem/zero "$1/class/infiniband/mlx5_7" &&
	mkdir "$1/node/by-path" && ln -s ../uverbs7 "$1/node/by-path/seven" &&
	mknod -m 666 "$1/node/uverbs7" c 1 5 && mknod -m 600 "$1/node/rdma_cm" c 1 3 || exit 1
[ -d /dev/infiniband ] ||
	{ mount -t tmpfs none /dev && mkdir /dev/infiniband && mknod -m 666 /dev/null c 1 3; } || exit 1
mount --rbind "$1/class" /sys/class && mount --bind "$1/node" /dev/infiniband || exit 1
shift
exec "$@"
END
chmod 755 "$OWN/bin/bare" "$OWN/bin/beside"
BARE=(unshare -m --propagation private "$OWN/bin/bare" "$OWN/fake_dev")
BESIDE=(unshare -m --propagation private "$OWN/bin/beside" "$OWN/fake")

# The files in /dev and /sys/class, and their types; without infiniband.
cat >"$OWN/bin/inventory" <<'END'
#!/bin/bash
cd /dev && find . -mindepth 1 -maxdepth 1 ! -name infiniband -printf '%p %y %l ' \
	-exec stat -c '%a %t:%T' {} \; | sort
cd /sys/class && find . -mindepth 1 -maxdepth 1 ! -name infiniband -printf '%p %y\n' | sort
ls -1 /dev/net /sys/class/net /sys/class/tty/tty
cat /sys/class/mem/null/dev
echo written >/dev/null && head -c 3 /dev/zero | od -An -tx1 && [ ! -e /dev/infiniband ]
echo "no infiniband: $?"
END
chmod 755 "$OWN/bin/inventory"

keeps_all() {
	# shellcheck disable=SC2086 # several words
	in_a "${BARE[@]}" ${as[$1]} "$OWN/bin/inventory" >"$WORK/before.out" 2>&1
	grep -q 'no infiniband: 0' "$WORK/before.out" || { fail "the test's /dev"; show before; return; }
	# shellcheck disable=SC2086
	in_a "${BARE[@]}" ${as[$1]} "${RUN[@]}" --dev $IF_A -- "$OWN/bin/inventory" \
		>"$WORK/looked.out" 2>&1
	need_line looked 'no infiniband: 1'
	diff <(grep -v infiniband: "$WORK/before.out") <(grep -v infiniband: "$WORK/looked.out") \
		>"$WORK/diff.out" || { fail "something is not as it was"; show diff; }
	# changes by other processes in a directory of /dev are visible
	# shellcheck disable=SC2086
	in_a "${BARE[@]}" sh -c 'exec 3>/dev/net/late && exec "$@"' - ${as[$1]} \
		"${RUN[@]}" --dev $IF_A -- ls /dev/net >"$WORK/looked.out" 2>&1
	need_line looked '^late$'
}

devices_beside() {
	local script='cd /sys/class/infiniband && ls && cat mlx5_7/dev '$DEV_A'/node_type &&
		cd /dev/infiniband && head -c 2 uverbs7 | od -An -tx1 && test -c by-path/seven &&
		stat -c "%a %t:%T" rdma_cm'
	# shellcheck disable=SC2086
	in_a "${BESIDE[@]}" ${as[$1]} "${RUN[@]}" --dev $IF_A -- sh -c "$script" \
		>"$WORK/looked.out" 2>&1 || fail "it ended with $?"
	printf 'mlx5_7\n%s\n1:5\n1: CA\n 00 00\n600 1:3\n' $DEV_A |
		diff - "$WORK/looked.out" >"$WORK/diff.out" || { fail "not beside each other"; show diff; }
}

# ---- leftovers ----

# Others' tests mount as well.
has_our_mounts() { grep -E ' - tmpfs xroce | /(dev|sys/class)/infiniband' /proc/self/mountinfo; }
sees_files() { grep -q ' - tmpfs xroce ' "/proc/$1/mountinfo"; }
has_namespace() { readlink /proc/[0-9]*/ns/mnt | grep -qxF "$1"; }
has_no_namespace() { ! has_namespace "$1"; }

leaves_nothing() {
	local how=$2 namespace
	# shellcheck disable=SC2086
	start program a ${as[$1]} "${RUN[@]}" --dev $IF_A -- sleep 60
	wait_until 10 grep -q '^sleep$' "/proc/$child/comm" ||
		{ fail "it does not run"; show program; return; }
	sees_files "$child" || fail "no mount in its namespace"
	namespace=$(readlink "/proc/$child/ns/mnt")
	need_equal "the mounts of others" "$(has_our_mounts)" ''
	kill "-$how" "$child"
	finish "$child" 10
	need_equal "its exit status" $? $((128 + $(kill -l "$how")))
	wait_until 5 has_no_namespace "$namespace" || fail "a process has its mount namespace"
	need_equal "mounts" "$(has_our_mounts)" ''
	[ ! -e /dev/infiniband/$DEV_A ] && [ ! -e /sys/class/infiniband/$DEV_A ] || fail "files are left"
}

# With shared mounts, as systemd sets up: our mounts do not propagate, the program's do.
mounts_apart() {
	in_a unshare -m --propagation shared sh -c '
		seen=$1 && shift && mkdir -p "$seen" && mount -t tmpfs around "$seen" &&
			mkdir "$seen/at" || exit 1
		"$@" &
		until [ -e "$seen/up" ] || ! kill -0 $!; do sleep 0.02; done
		grep -c " - tmpfs xroce " /proc/$!/mountinfo
		grep -E " - tmpfs (xroce|by-program) " /proc/self/mountinfo
		kill $!' - "$OWN/seen" "${RUN[@]}" --dev $IF_A -- \
		sh -c "mount -t tmpfs by-program $OWN/seen/at && touch $OWN/seen/up && exec sleep 60" \
		>"$WORK/looked.out" 2>&1
	need_line looked '^2$'
	need_line looked 'tmpfs by-program'
	need_no_line looked 'tmpfs xroce'
}

# ---- identity of the program ----

# The same process, with its status, groups and directory; only a user gets a user namespace.
same_process() {
	local outside inside
	# shellcheck disable=SC2086
	start program a ${as[$1]} sh -c 'cd /tmp && umask 027 && exec "$@"' - "${RUN[@]}" --dev $IF_A -- \
		sh -c 'echo "pid $$ $(id -u) $(id -g) $(pwd) $(umask)"; readlink /proc/self/ns/user
			grep CapEff /proc/self/status; exit 7'
	finish "$child" 10
	need_equal "exit status" $? 7
	# shellcheck disable=SC2086
	need_line program "^pid $child $(${as[$1]} id -u) $(${as[$1]} id -g) /tmp 0027\$"
	outside=$(readlink /proc/self/ns/user)
	inside=$(grep '^user:' "$WORK/program.out")
	if [ "$1" = root ]; then
		need_equal "the user namespace" "$inside" "$outside"
	else
		[ "$inside" != "$outside" ] || fail "no user namespace"
		need_line program '^CapEff:[[:space:]]+0+$'
	fi
}

# sleeper NAME COMMAND...: a program by that command, which prints its user namespace; pid in $child
sleeper() {
	start "$1" a "${@:2}" "${USER_[@]}" "${RUN[@]}" --dev $IF_A -- sh -c 'readlink /proc/self/ns/user; exec sleep 60'
}
sleeps() { wait_until 10 grep -q '^user:' "$WORK/$1.out" || { fail "$1 does not run"; show "$1"; }; }
# user_namespaces NAME...: the number of their user namespaces
user_namespaces() { cat "${@/%/.out}" | sort -u | grep -c '^user:'; }

# Processes and their children see each other as before: `exe` is visible to processes with access
# to the other's memory. Eight that start at once share one user namespace.
siblings() {
	local i first
	mkfifo -m 666 "$OWN/begin"
	for i in 1 2 3 4 5 6 7 8; do
		start program$i a "${USER_[@]}" sh -c ': <"$0"; exec "$@"' "$OWN/begin" \
			"${RUN[@]}" --dev $IF_A -- sh -c 'readlink /proc/self/ns/user; exec sleep 60'
		[ $i -gt 1 ] || first=$child
		pids[i]=$child
	done
	exec 3<>"$OWN/begin" # whoever comes late passes
	for i in 1 2 3 4 5 6 7 8; do
		wait_until 10 grep -q '^sleep$' "/proc/${pids[i]}/comm" ||
			{ fail "program $i does not run"; show program$i; }
	done
	need_equal "user namespaces" "$(user_namespaces "$WORK"/program{1,2,3,4,5,6,7,8})" 1
	see user "${RUN[@]}" --dev $IF_A -- readlink "/proc/$first/exe"
	# a process with another group gets another namespace
	in_a setpriv --reuid=12345 --regid=12347 --clear-groups --inh-caps=-all --bounding-set=-all \
		"${RUN[@]}" --dev $IF_A -- sh -c "readlink /proc/self/ns/user; id -g
			ls /dev/infiniband/$DEV_A" >"$WORK/looked.out" 2>&1
	need_line looked '^12347$'
	need_line looked "^/dev/infiniband/$DEV_A\$"
	! grep -qxF "$(grep -h user: "$WORK/program1.out")" "$WORK/looked.out" ||
		fail "it joined that of another group"
	for i in 1 2 3 4 5 6 7 8; do
		stop "${pids[i]}"
	done
	exec 3<&-
}

# A container's namespace, visible from outside only, does not count.
container_apart() {
	local i pid pids=()
	# its first process stays root's: one of another user would outlive unshare
	sleeper apart unshare --pid --fork --kill-child --mount-proc sh -c '"$@" & wait' -
	pids+=("$child")
	sleeps apart
	for i in 1 2; do
		sleeper program$i
		pids+=("$child")
		sleeps program$i
	done
	need_equal "user namespaces outside" "$(user_namespaces "$WORK"/program{1,2})" 1
	need_equal "user namespaces" "$(user_namespaces "$WORK"/{apart,program1,program2})" 2
	for pid in "${pids[@]}"; do
		kill -9 "$pid"
		finish "$pid" 5 || :
	done
}

# lock_of WHO: a process of WHO holds the lock under which processes of all users start; its pid in
# $holder.
lock_of() {
	# shellcheck disable=SC2086
	start holder a ${as[$1]} /usr/bin/python3 -c 'import fcntl, time
lock = open("/proc/self/ns/user")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)'
	holder=$child
	wait_until 10 grep -q held "$WORK/holder.out" || { fail "the lock is not to be had"; show holder; }
}

# A process waits for a lock of the same user without a limit. All that start in that time share
# one user namespace.
own_lock() {
	local i
	lock_of user
	for i in 1 2 3 4; do
		sleeper program$i
		pids[i]=$child
	done
	read -r -t 8 <>"$WORK/quiet"
	need_equal "programs that did not wait" "$(cat "$WORK"/program[1-4].out | grep -c '^user:')" 0
	stop "$holder"
	for i in 1 2 3 4; do
		sleeps program$i
	done
	need_equal "user namespaces" "$(user_namespaces "$WORK"/program{1,2,3,4})" 1
	for i in 1 2 3 4; do
		stop "${pids[i]}"
	done
}

# A lock held by another user prevents no process from starting.
others_lock() {
	lock_of nobody
	see user "${RUN[@]}" --dev $IF_A -- ls /dev/infiniband/$DEV_A
	is_gone_or_zombie "$holder" && fail "the lock was not held"
	stop "$holder"
}

nested() {
	see "$1" "${RUN[@]}" -- "${RUN[@]}" --dev $IF_A -- \
		sh -c "$OWN/bin/sysfs $DEV_A &&
		ls /sys/class/infiniband /dev/infiniband | grep -c xroce_" || return
	need_line looked '^2$'
	need_line looked ', 0 differ$'
}

# A user namespace takes nothing from a broker's client: the broker is recognised as root's, and its
# users by their groups.
broker_of_group() {
	start broker a "$XROCE" serve --mode 0660 --group 12347 --max-qps 8 $IF_A
	broker=$child
	wait_until 10 broker_answers a $IF_A "$broker " || { fail "no broker"; show broker; return; }
	see user "${RUN[@]}" --dev $IF_A -- "$OWN/bin/limited" $DEV_A qps 8
	look nobody "${RUN[@]}" --dev $IF_A -- "$OWN/bin/limited" $DEV_A port
	need_line looked 'not permitted to use the broker'
	stop "$broker"
}
# Without a broker the program gets the same advice as without a namespace.
no_broker() {
	look user "${RUN[@]}" --port xdp --dev $IF_A -- "$OWN/bin/limited" $DEV_A port
	need_line looked 'no broker on '$IF_A'; as root, run `xroce serve'
}

# Root has the interface, by a broker. Its number is unmapped in the user namespace, and it is
# trusted.
root_has_it() {
	local holder owner
	start holder a "$XROCE" run --dev $IF_A --share never -- "$OWN/bin/limited" $DEV_A hold
	holder=$child
	wait_until 10 grep -q holds "$WORK/holder.out" || { fail "it has no interface"; show holder; }
	look user "${RUN[@]}" --dev $IF_A -- "$OWN/bin/limited" $DEV_A port
	owner=$(in_a "$XROCE" list $IF_A | sed -n 's/^  broker *pid \([0-9]*\) (xroce)$/\1/p')
	need_line looked "in use by process ${owner:-none} \\(xroce\\)"
	stop "$holder"
}

# ---- cases without the files ----

# Root without capabilities; a user with a capability; a user in a chroot, who gets no user
# namespace from the kernel; a user without write access to /proc, and so without a mapped number.
# Each user belongs to this run alone, as another test's namespace would do otherwise.
one=("${USER_[@]/12345/$((20000 + $$ % 40000))}")
cat >"$OWN/bin/rooted" <<'END'
#!/bin/bash
mkdir -p "$1" && mount --rbind / "$1" || exit 1
exec chroot "$@"
END
cat >"$OWN/bin/numberless" <<'END'
#!/bin/bash
mount --bind /proc /proc && mount -o remount,bind,ro /proc || exit 1
exec "$@"
END
chmod 755 "$OWN/bin/rooted" "$OWN/bin/numberless"
as[bounded]="setpriv --inh-caps=-all --bounding-set=-all"
as[rooted]="unshare -m --propagation private $OWN/bin/rooted $OWN/root ${one[*]}"
as[numberless]="unshare -m --propagation private $OWN/bin/numberless ${one[*]}"
as[capable]="setpriv --reuid=12345 --regid=12346 --clear-groups --inh-caps=+net_raw"
as[capable]+=" --ambient-caps=+net_raw"
refused() {
	XROCE_DEBUG=1 see "$1" "${RUN[@]}" --dev $IF_A -- ibv_devices || return
	need_line looked "$DEV_A"
	need_equal "lines of the reason" \
		"$(grep -c '^xroce run: cannot show the devices' "$WORK/looked.out")" 1
	need_equal "lines of what is missing" \
		"$(grep -c '^xroce: no /sys/class/infiniband/' "$WORK/looked.out")" 1
	see "$1" "${RUN[@]}" --dev $IF_A -- sh -c "readlink /proc/self/ns/user
		grep CapEff /proc/self/status; ! test -e /sys/class/infiniband/$DEV_A"
	need_no_line looked 'xroce'
	need_line looked "^$(readlink /proc/self/ns/user | sed 's/[][]/\\&/g')\$"
	[ "$1" != capable ] || need_line looked 'CapEff:[[:space:]]+0*2000$'
}

not_wanted() {
	see "$1" "${RUN[@]}" --no-mounts --dev $IF_A -- readlink /proc/self/ns/mnt
	need_line looked "^$(readlink /proc/self/ns/mnt | sed 's/[][]/\\&/g')\$"
}

# A set-user-ID program is not affected, and gains its privileges.
set_uid() {
	install -m 4755 "$(command -v id)" "$OWN/bin/id4"
	skip_reason="set-user-ID programs gain nothing in $WORK"
	look user "$OWN/bin/id4" -u
	grep -q '^0$' "$WORK/looked.out" || return 77
	see user "${RUN[@]}" --dev $IF_A -- "$OWN/bin/id4" -u
	need_line looked '^0$'
}

# Reported once per process, for an existing device, and only with XROCE_DEBUG.
library_alone() {
	# it lists devices twice
	XROCE_DEBUG=1 XROCE_DEV=$IF_A LD_LIBRARY_PATH=$OWN/lib look user "$OWN/bin/sysfs" $DEV_A
	need_equal "lines" "$(grep -c '^xroce: no /sys/class/infiniband/'$DEV_A "$WORK/looked.out")" 1
	XROCE_DEV=$IF_A LD_LIBRARY_PATH=$OWN/lib see user ibv_devinfo
	need_no_line looked '^xroce:'
	XROCE_DEBUG=1 see user "${RUN[@]}" --dev $IF_A -- ibv_devinfo
	need_no_line looked '^xroce'
	LD_LIBRARY_PATH=$OWN/lib SYSFS_PATH=/elsewhere// look user "$OWN/bin/sysfs" $DEV_A
	need_line looked 'ibdev_path is '
}

# Our devices are not the kernel's.
doctor_knows() {
	see root "${RUN[@]}" --dev $IF_A -- "$OWN/bin/xroce" doctor $IF_A
	need_no_line looked 'kernel RDMA'
}

# ---- UCX, with no environment variable ----

ucx_chooses() {
	local words=() server
	skip_reason="ucx_perftest is not installed (package ucx-utils)"
	command -v ucx_perftest >/dev/null || return 77
	# shellcheck disable=SC2206 # several words
	[ "$1" = root ] || words=(${as[$1]})
	see "$1" "${RUN[@]}" --dev $IF_A -- ucx_info -d
	need_line looked "Memory domain: $DEV_A\$"
	start server b "${words[@]}" "${RUN[@]}" --dev $IF_B -- ucx_perftest -t tag_bw -n 500 -s 65536
	server=$child
	wait_until 10 listens_or_gone b 13337 "$server"
	# it prints its chosen paths
	start client a "${words[@]}" "${RUN[@]}" --dev $IF_A -- env UCX_LOG_LEVEL=info \
		ucx_perftest $IP4_B -t tag_bw -n 500 -s 65536
	finish "$child" 60 ||
		{ fail "the client ended with $?"; show client; stop "$server"; show server; return; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	need_line client '^Final: +500 '
	need_line client "(rc|ud)_verbs/$DEV_A:1"
}

for who in root user nobody; do
	run=run_case
	[ $who != nobody ] || run=run_long_case
	$run files_$who files $who
	run_long_case ibstat_$who ibstat_says $who
	run_long_case keeps_all_$who keeps_all $who
	run_long_case devices_beside_$who devices_beside $who
	run_long_case ends_$who leaves_nothing $who TERM
	$run killed_$who leaves_nothing $who KILL
	run_long_case same_process_$who same_process $who
	run_long_case nested_$who nested $who
	run_long_case not_wanted_$who not_wanted $who
done
run_long_case files_down files_down
run_long_case files_umask files_umask
run_case mounts_apart mounts_apart
run_long_case siblings siblings
run_long_case container_apart container_apart
run_long_case own_lock own_lock
run_long_case others_lock others_lock
run_long_case broker_of_group broker_of_group
run_case no_broker no_broker
run_long_case root_has_it root_has_it
for who in bounded rooted numberless capable; do
	run_long_case refused_$who refused $who
done
run_case set_uid set_uid
run_long_case library_alone library_alone
run_case doctor_knows doctor_knows
run_long_case ucx_root ucx_chooses root
serve a $IF_A && serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
run_long_case ucx_user ucx_chooses user
finish_cases
