#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long unshare XROCE_PLACES=unshare
# tier: long podman XROCE_PLACES=podman
# tier: long podman_user XROCE_PLACES=podman_user
# tier: long runc XROCE_PLACES=runc
# needs: alone
#
# `xroce run -- PROGRAM` without any privilege: unmodified programs by UDP sockets, which
# XROCE_PORT=auto selects, on `lo` and over a veth pair between two ends. The ends are
#
#   unshare      network namespaces of `unshare -Urn`, which an ordinary user starts
#   podman       containers of rootless Podman, of the same user; root inside
#   podman_user  containers of Podman whose processes have the user
#   runc         containers of runc, of the first user, with Docker's seccomp profile; root inside
#
# Containers have no capability, a seccomp profile, a read-only root file system made of this
# machine's /usr, and nothing of the host but the build. docs/containers.md has a table.
. "$(dirname "$0")/lib/case.sh"
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/counted.sh"
. "$here/tests/netns/lib/ucx_small.sh"
. "$here/tests/netns/lib/agent.sh"

DEV=eth0 # of both ends, as in containers
USER_ID=4321
HOME_DIR=$WORK/user
AS_USER=(setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups --inh-caps=-all --bounding-set=-all
	env -i PATH=/usr/sbin:/usr/bin "HOME=$HOME_DIR" "XDG_RUNTIME_DIR=$HOME_DIR" LC_ALL=C)
mkdir "$HOME_DIR"
cp "$here/tests/netns/rootless/rc_pair.py" "$here/tests/pyverbs/resources.py" "$OWN/bin"
mpicc.openmpi -O2 -w -o "$OWN/bin/data" "$here/tests/netns/mpi/data.c" || netns_die "mpicc.openmpi fails"

# ---- two ends ----

# The words before a command in an end, and a process there.
enter_a=() enter_b=() pid_a='' pid_b=''

# adopt PID PID: the processes whose network namespaces the ends have.
adopt() {
	pid_a=$1 pid_b=$2
	ip netns attach $NS_A "$pid_a" && netns_made+=($NS_A) &&
		ip netns attach $NS_B "$pid_b" && netns_made+=($NS_B)
}

veth="ip link add $DEV mtu 4500 type veth peer name $DEV mtu 4500 netns"
address_a="ip address add $IP4_A/24 dev $DEV && ip link set $DEV up && ip link set lo up"
address_b="ip address add $IP4_B/24 dev $DEV && ip link set $DEV up && ip link set lo up"

# hold END COMMAND...: starts a process that stays in its own namespaces, in $held_END.
hold() {
	local -n held_=held_$1
	"${@:2}" </dev/null >"$WORK/hold.out" 2>&1 &
	held_=$!
	netns_children+=("$held_")
	wait_until 10 is_named sleep "$held_" || { fail "no namespaces"; show hold; }
}
is_named() { [ "$(<"/proc/$2/comm")" = "$1" ]; }

# The user makes all of it, the veth pair too.
unshare_up() {
	hold a "${AS_USER[@]}" unshare -Urn sleep infinity &&
		hold b "${AS_USER[@]}" nsenter --preserve-credentials -t "$held_a" --user --net unshare --net --uts sleep infinity &&
		adopt "$held_a" "$held_b" || return
	local in=("${AS_USER[@]}" nsenter --preserve-credentials --user --net)
	enter_a=("${in[@]}" -t "$pid_a") enter_b=("${in[@]}" -t "$pid_b" --uts)
	"${enter_b[@]}" hostname end-b
	"${enter_a[@]}" sh -c "$veth $pid_b && $address_a" && "${enter_b[@]}" sh -c "$address_b"
}
unshare_down() { stop "$held_b"; stop "$held_a"; }

# UCX looks for a file of this directory, which `xroce run` cannot always mount.
NODES=/dev/infiniband
# An image from the files of this machine, which containers get at the same paths.
ROOT=$HOME_DIR/root
make_root() {
	local dir
	mkdir -p "$ROOT"/{usr,etc,proc,sys,dev,run,tmp,var/tmp} "$ROOT$OWN"
	for dir in bin sbin lib lib64; do
		ln -s usr/$dir "$ROOT/$dir"
	done
	chmod 1777 "$ROOT/tmp" "$ROOT/var/tmp"
	cp -rL /etc/openmpi "$ROOT/etc"
	printf 'root:x:0:0::/tmp:/bin/sh\nuser:x:%s:%s::/tmp:/bin/sh\n' $USER_ID $USER_ID >"$ROOT/etc/passwd"
	printf 'root:x:0:\nuser:x:%s:\n' $USER_ID >"$ROOT/etc/group"
}

# A veth pair from outside, as a network plugin makes it.
join_ends() {
	in_a sh -c "$veth $pid_b && $address_a" && in_b sh -c "$address_b"
}

# A file of locks, not one in /dev/shm of all containers of the user.
printf '[engine]\nlock_type = "file"\n' >"$WORK/containers.conf"
podman=()
podman_words() {
	local own=$1
	podman=("${@:2}" env "CONTAINERS_CONF=$WORK/containers.conf" podman --runtime runc
		--cgroup-manager cgroupfs --events-backend none --log-level error
		--root "$own/storage" --runroot "$own/runroot" --tmpdir "$own/tmpdir")
}
# podman_start END OPTION...
podman_start() {
	local end=$1 name=xr$$$1
	"${podman[@]}" run -d --name "$name" --hostname "end-$end" --network none --cap-drop=all --read-only \
		--log-driver none -v /usr:/usr:ro -v "$OWN:$OWN:ro" -v "$OWN/home:$OWN/home" "${@:2}" \
		--rootfs "$ROOT" sleep infinity </dev/null >"$WORK/podman.out" 2>&1 ||
		{ fail "Podman starts no container"; show podman; return 1; }
	"${podman[@]}" inspect --format '{{.State.Pid}}' "$name" 2>/dev/null >"$WORK/pid_$end"
}
podman_ends() {
	podman_start a "$@" && podman_start b "$@" && adopt "$(<"$WORK/pid_a")" "$(<"$WORK/pid_b")" && join_ends || return
	enter_a=("${podman[@]}" exec xr$$a)
	enter_b=("${podman[@]}" exec xr$$b)
}
podman_up() {
	podman_words "$HOME_DIR/podman" "${AS_USER[@]}"
	podman_ends --device /dev/null:$NODES/xroce_$DEV --device /dev/null:$NODES/xroce_lo
}
podman_user_up() {
	podman_words "$WORK/podman"
	podman_ends --user $USER_ID:$USER_ID --cgroup-parent /xr$$
}
podman_remove() { "${podman[@]}" rm -f -t 0 xr$$a xr$$b >/dev/null 2>&1; }
podman_user_down() {
	podman_remove
	umount "$WORK/podman/storage/overlay" 2>/dev/null
	wait_at_most 5 has_no_cgroups
}
# the processes that watched the containers end soon
has_no_cgroups() {
	find /sys/fs/cgroup -maxdepth 4 -depth -type d -path "*/xr$$*" -exec rmdir {} \;
	[ -z "$(find /sys/fs/cgroup -maxdepth 2 -name xr$$)" ]
}
# A process keeps the namespaces of the user's containers.
podman_down() {
	podman_remove
	[ ! -s "$HOME_DIR/podman/tmpdir/pause.pid" ] || kill -9 "$(<"$HOME_DIR/podman/tmpdir/pause.pid")"
}

seccomp=$(grep -v '^#' "$here/tests/netns/lib/docker_seccomp" | xargs printf ',"%s"')
# runc_bundle END: its directory of runc
runc_bundle() {
	local id='[{"containerID":0,"hostID":'$USER_ID',"size":1}]'
	mkdir "$HOME_DIR/$1" && chown $USER_ID:$USER_ID "$HOME_DIR/$1"
	cat >"$HOME_DIR/$1/config.json" <<END_OF_CONFIG
{"ociVersion":"1.0.2","root":{"path":"$ROOT","readonly":true},"hostname":"end-$1","process":{
	"user":{"uid":0,"gid":0},"noNewPrivileges":true,"cwd":"/","env":["PATH=/usr/sbin:/usr/bin"],
	"args":["sleep","infinity"],"capabilities":{"bounding":[],"effective":[],"permitted":[]}},
"mounts":[{"destination":"/proc","type":"proc","source":"proc"},
	{"destination":"/dev","type":"tmpfs","source":"tmpfs"},
	{"destination":"/tmp","type":"tmpfs","source":"tmpfs","options":["mode=1777"]},
	{"destination":"/sys","type":"sysfs","source":"sysfs","options":["nosuid","noexec","nodev","ro"]},
	{"destination":"$NODES/xroce_$DEV","source":"/dev/null","options":["bind"]},
	{"destination":"$NODES/xroce_lo","source":"/dev/null","options":["bind"]},
	{"destination":"/usr","source":"/usr","options":["bind","ro"]},
	{"destination":"$OWN","source":"$OWN","options":["bind","ro"]},
	{"destination":"$OWN/home","source":"$OWN/home","options":["bind"]}],
"linux":{"namespaces":[{"type":"user"},{"type":"pid"},{"type":"mount"},{"type":"ipc"},{"type":"uts"},
	{"type":"network"}],"uidMappings":$id,"gidMappings":$id,
	"seccomp":{"defaultAction":"SCMP_ACT_ERRNO","architectures":["SCMP_ARCH_X86_64"],
	"syscalls":[{"names":[${seccomp:1}],"action":"SCMP_ACT_ALLOW"}]}}}
END_OF_CONFIG
}
runc=("${AS_USER[@]}" runc --root "$HOME_DIR/runc")
runc_start() {
	runc_bundle "$1"
	"${runc[@]}" run -d --pid-file "$HOME_DIR/$1/pid" --bundle "$HOME_DIR/$1" xr$$$1 </dev/null >"$WORK/runc.out" 2>&1 ||
		{ fail "runc starts no container"; show runc; }
}
runc_up() {
	runc_start a && runc_start b && adopt "$(<"$HOME_DIR/a/pid")" "$(<"$HOME_DIR/b/pid")" && join_ends || return
	enter_a=("${runc[@]}" exec xr$$a)
	enter_b=("${runc[@]}" exec xr$$b)
}
runc_down() {
	"${runc[@]}" delete -f xr$$a
	"${runc[@]}" delete -f xr$$b
} >/dev/null 2>&1

possible() {
	case $1 in
	podman*)
		skip_reason="podman is not installed (scripts/deps.sh vm)"
		command -v podman >/dev/null || return
		;;
	esac
	skip_reason="no user namespaces for users"
	[ "$1" = podman_user ] || "${AS_USER[@]}" unshare --user --map-root-user true 2>/dev/null
}
place='' is_up=''
reaches_b() { in_a ping -q -c 1 -W 1 $IP4_B; }
place_up() {
	is_up=
	possible "$1" || return 77
	place=$1
	"${place}_up" && wait_until 10 reaches_b && is_up=yes || fail "no two ends of $place"
}
place_down() {
	[ -n "$place" ] || return 0
	"${place}_down"
	for ns in "${netns_made[@]}"; do
		ip netns del "$ns"
	done
	netns_made=() place=
}
trap 'place_down; netns_cleanup' EXIT

# ---- programs ----

settings=(env "PATH=$OWN/bin:/usr/sbin:/usr/bin" HOME=/tmp TMPDIR=/tmp PYTHONDONTWRITEBYTECODE=1
	XROCE_PORT=auto XROCE_COUNTERS=1)

# begin NAME END COMMAND...: its pid, or that of the command that waits for it, is in $child.
begin() {
	local name=$1
	local -n enter_=enter_$2
	: >"$WORK/$name.out"
	"${enter_[@]}" "${settings[@]}" "${@:3}" </dev/null >"$WORK/$name.out" 2>&1 &
	child=$!
	netns_children+=("$child")
}

# look END COMMAND...: `xroce` in that end, by the user that its programs have
look() {
	local -n pid_=pid_$1
	local in=(nsenter -t "$pid_" --net)
	case $place in
	unshare) in=("${AS_USER[@]}" "${in[@]}" --preserve-credentials --user) ;;
	podman_user) in+=(--mount --pid "${AS_USER[@]}") ;;
	*) in=("${AS_USER[@]}" "${in[@]}" --preserve-credentials --user --mount --pid) ;;
	esac
	"${in[@]}" "$OWN/bin/xroce" "${@:2}"
}
is_by_sockets() {
	look "$1" list "$dev" >"$WORK/list.out" 2>&1
	grep -q '^  broker .*receives by UDP sockets' "$WORK/list.out"
}
# A broker stays for a second after its last client. Prints the port of each end, as it is listed.
need_sockets() {
	local end
	for end in "$@"; do
		wait_at_most 20 is_by_sockets $end || { fail "end $end is not by UDP sockets"; show list; }
		echo "# $place $end: $(sed -nE "s/^  broker .*(receives by [^;,]*).*/$dev \\1/p" "$WORK/list.out")"
	done
}
# need_reason N NAME...: the line that says why there are sockets, once of each of N brokers
need_reason() {
	local n=$1 name files=()
	shift
	for name in "$@"; do
		files+=("$WORK/$name.out")
	done
	need_equal "lines that say why" "$(cat "${files[@]}" |
		grep -c "^xroce: $dev: no privileges for XDP: using UDP sockets")" "$n"
	need_equal "lines on sockets" "$(cat "${files[@]}" | grep -c 'UDP sockets')" "$n"
}
need_nothing_left() { wait_until 20 nothing_is_left || fail "left: $(in_a ss -uan; in_b ss -uan)"; }
nothing_is_left() { [ -z "$(in_a ss -Huan 'sport = 4791'; in_b ss -Huan 'sport = 4791')" ]; }

# both lo|wire PORT|cm SERVER... -- CLIENT...: on `lo` of one end, or over the veth pair, with
# DEVICE and ADDRESS replaced. Each program sends more than 100 packets.
both() {
	local where=$1 port=$2 run=(xroce run --) ends=(a b) address=$IP4_A pid server client rc
	dev=$DEV
	[ "$where" = wire ] || { run=(xroce run --dev lo --) ends=(a) dev=lo address=127.0.0.1; }
	set -- "${@//DEVICE/xroce_$dev}"
	split_words server client "${@:3}"
	need_nothing_left
	begin server a "${run[@]}" "${server[@]//ADDRESS/$address}"
	pid=$child
	wait_until 20 listens_or_ends "$port" "$pid"
	begin client "${ends[-1]}" "${run[@]}" "${client[@]//ADDRESS/$address}"
	need_sockets "${ends[@]}"
	finish "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; stop "$pid"; show server; return 1; }
	finish "$pid" 20 || { fail "the server ended with $?"; show server; }
	need_reason ${#ends[@]} server client
	need_least "packets" $(($(counted server in) + $(counted client in))) 100
}
listens_or_ends() {
	is_gone_or_zombie "$2" && return
	case $1 in cm) look a list "$dev" | grep -q '^  listens ' ;; *) listens a "$1" ;; esac
}

# Ends that sleep, or wait for long: docs/sockets.md, "busy processors".
pingpong() {
	local tool=(ibv_rc_pingpong -c -e -g 0 -n 300)
	both "$1" 18515 "${tool[@]}" -- "${tool[@]}" ADDRESS || return
	need_line client '^2457600 bytes in '
	need_no_line client 'invalid data'
}
perftest() {
	local tool=("$2" -x 0 -F -u 18 -n 500 -s "$3")
	both "$1" 18515 "${tool[@]}" -- "${tool[@]}" ADDRESS || return
	need_line client "^ *$3 +500 "
}
rping() {
	both "$1" cm rping -s -a ADDRESS -C 100 -- rping -c -v -V -a ADDRESS -C 100 || return
	need_equal "pings" "$(grep -c '^ping data: rdma-ping-' "$WORK/client.out")" 100
}
ucx=(env "${ucx_small[@]}" UCX_TLS=rc_verbs,ud_verbs:aux,self UCX_IB_GID_INDEX=0 UCX_WARN_UNUSED_ENV_VARS=n)
ucx() {
	local tool=("${ucx[@]}" UCX_NET_DEVICES=DEVICE:1 ucx_perftest -t tag_lat -n 500 -w 10 -s 8)
	both "$1" 13337 "${tool[@]}" -- "${tool[@]}" ADDRESS || return
	need_line client '^Final: +500 '
}
# An unmodified program on pyverbs.
pyverbs() {
	local pair=(/usr/bin/python3 "$OWN/bin/rc_pair.py" DEVICE)
	both "$1" 18520 "${pair[@]}" -- "${pair[@]}" ADDRESS || return
	need_line server '^rc_pair: 100 messages right$' && need_line client '^rc_pair: 100 messages right$'
}
# Four ranks, on one end or two on each.
mpi() {
	local ends=(a b) count=2 words=(mpirun.openmpi --oversubscribe -n 4 --mca pml ucx --mca osc ucx
		--mca btl ^openib,vader,tcp,ofi,uct --mca hwloc_base_binding_policy none)
	local run=(xroce run --)
	dev=$DEV
	case $1 in
	wire) words+=(--map-by node --mca plm_rsh_agent "$AGENT" --host $IP4_A:2,$IP4_B:2) ;;
	lo) run=(xroce run --dev lo --) ends=(a) dev=lo count=1 words+=(--mca plm_rsh_agent false) ;;
	esac
	need_nothing_left
	if [ $count = 2 ]; then
		rm -f "$OWN/home/calls"
		mkfifo -m 666 "$OWN/home/calls"
		begin answer b "$OWN/bin/answer"
		agent_pid=$child
	fi
	begin mpi a env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		OMPI_MCA_mpi_yield_when_idle=1 "${words[@]}" -x XROCE_COUNTERS -x XROCE_PORT -x PATH \
		"${ucx[@]}" UCX_NET_DEVICES=xroce_$dev:1 "${run[@]}" "$OWN/bin/data"
	need_sockets "${ends[@]}"
	finish "$child" 120 || { fail "mpirun ended with $?"; show mpi; }
	[ $count = 1 ] || agent_stop
	need_line mpi "^data ok: 4 ranks on $count hosts, [0-9]+ bytes checked"
	need_equal "ranks on our device" "$(grep -c 'xroce: xroce_[^ ]* of pid' "$WORK/mpi.out")" 4
	need_reason $count mpi
}

# ---- what containers have ----

# privileges END: lines of the privileges of a program there, and of the objects that it finds
privileges() {
	local -n enter_=enter_$1
	# shellcheck disable=SC2016
	"${enter_[@]}" sh -c 'grep -E "^(Cap(Prm|Eff|Bnd|Amb)|Seccomp):" /proc/self/status
		for i in / /usr /etc '"$OWN"'/lib; do
			mkdir $i/new 2>/dev/null && echo "writes to $i"
		done
		ls -d /dev/net/tun /dev/fuse /run/xroce /sys/fs/bpf/* 2>/dev/null
		grep -E "^[^ ]* [^ ]* bpf " /proc/mounts
		cat /proc/self/uid_map' 2>&1
}
has_none() {
	local end
	for end in a b; do
		privileges $end | tr -s '\t ' ' ' >"$WORK/has.out"
		need_equal "capabilities" "$(grep -c '^Cap.*: 0000000000000000$' "$WORK/has.out")" 4
		need_line has '^Seccomp: 2$'
		need_no_line has '^writes|^/dev|^/run|^/sys| bpf '
	done
}
# Root of a user namespace in which no other user has a number.
is_mapped() {
	privileges a | tr -s '\t ' ' ' >"$WORK/has.out"
	need_line has "^ ?0 $USER_ID 1\$"
}

# ---- cases ----

programs=(pingpong send_bw write_lat rping ucx mpi pyverbs)
try() {
	case $1 in
	send_bw) perftest "$2" ib_send_bw 4096 ;;
	write_lat) perftest "$2" ib_write_lat 64 ;;
	*) "$1" "$2" ;;
	esac
}
# documented PLACE: the table in docs/containers.md names just these programs.
documented() {
	local row
	row=$(grep "^| \`$1\`:" "$here/docs/containers.md")
	need_equal "the port" "$(cut -d'|' -f4 <<<"$row" | xargs)" sockets
	need_equal "the programs" "$(cut -d'|' -f5 <<<"$row" | tr -d '\`,' | xargs)" "${programs[*]}"
}

make_root
chown -hR $USER_ID:$USER_ID "$HOME_DIR" "$OWN/home"
for end in ${XROCE_PLACES:-unshare podman podman_user runc}; do
	run_case ${end}_up place_up $end
	case $end in
	unshare) checks=(is_mapped) ;;
	podman_user) checks=(has_none) ;;
	*) checks=(is_mapped has_none) ;;
	esac
	for name in documented ${is_up:+"${checks[@]}"}; do
		run_case ${end}_$name $name $end
	done
	for program in ${is_up:+"${programs[@]}"}; do
		for where in lo wire; do
			run_case ${end}_${program}_$where try $program $where
		done
	done
	place_down
done
finish_cases
