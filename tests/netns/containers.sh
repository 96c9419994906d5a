#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Containers that use an interface through its broker, which serves from outside: user, PID, mount,
# IPC and UTS namespaces of an unprivileged user (unshare), and runc without a capability, with the
# default seccomp profile of Docker, on a root file system that is this machine's /usr.
# docs/containers.md tells a user how.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"

# serve_outside NETNS IFACE COMMAND...: a broker by `serve --netns`, once COMMAND succeeds; its pid
# is in $broker.
serve_outside() {
	local netns=$1 iface=$2
	shift 2
	"$XROCE" serve --netns "$netns" "$iface" >"$WORK/broker.out" 2>&1 &
	broker=$!
	netns_children+=("$broker")
	wait_until 10 "$@" || { fail "no broker of $netns on $iface"; show broker; }
}
answers_a() { broker_answers a $IF_A; }

# ---- containers ----

mkdir -p "$OWN/kept"
# inside MOUNT COMMAND...: with its own /run, which has xroce if MOUNT is `mounted`.
cat >"$OWN/bin/inside" <<END
#!/bin/bash
mount --bind /run/xroce "$OWN/kept" && mount -t tmpfs -o mode=755 none /run && mkdir /run/xroce || exit 1
[ "\$1" = none ] || mount --bind "$OWN/kept" /run/xroce || exit 1
umount "$OWN/kept"
shift
exec "\$@"
END
chmod 755 "$OWN/bin/inside"

seccomp=$(grep -v '^#' "$here/tests/netns/lib/docker_seccomp" | xargs printf ',"%s"')
# bundle MOUNT COMMAND...: what runc runs, in $BUNDLE.
BUNDLE=$WORK/bundle
mkdir -p "$BUNDLE/root"/{usr,etc,proc,sys,dev,run,tmp,own}
for dir in bin sbin lib lib64; do
	ln -s usr/$dir "$BUNDLE/root/$dir"
done
bundle() {
	local mount=$1 args xroce=
	shift
	args=$(printf ',"%s"' "$@")
	[ "$mount" = none ] || xroce=',{"destination":"/run/xroce","source":"/run/xroce","options":["bind"]}'
	cat >"$BUNDLE/config.json" <<END
{"ociVersion":"1.0.2","root":{"path":"root"},"hostname":"inside","process":{
	"user":{"uid":65534,"gid":65534},"noNewPrivileges":true,"cwd":"/",
	"env":["PATH=/usr/sbin:/usr/bin"],
	"args":[${args:1}],"capabilities":{"bounding":[],"effective":[],"permitted":[]}},
"mounts":[{"destination":"/proc","type":"proc","source":"proc"},
	{"destination":"/dev","type":"tmpfs","source":"tmpfs"},
	{"destination":"/usr","source":"/usr","options":["bind","ro"]},
	{"destination":"/own","source":"$OWN","options":["bind","ro"]}$xroce],
"linux":{"namespaces":[{"type":"pid"},{"type":"mount"},{"type":"ipc"},{"type":"uts"},
	{"type":"network","path":"$netns_path"}],
	"seccomp":{"defaultAction":"SCMP_ACT_ERRNO","architectures":["SCMP_ARCH_X86_64"],
	"syscalls":[{"names":[${seccomp:1}],"action":"SCMP_ACT_ALLOW"}]}}}
END
}
netns_path=/run/netns/$NS_A

# contain KIND COMMAND...: in words how the command is run; `xroce` is ours. KIND is user (a user
# namespace, whose root it is) or runc; user_none and runc_none have no /run/xroce.
contain() {
	local kind=$1 mount=mounted
	shift
	case $kind in *_none) mount=none ;; esac
	case $kind in
	user*)
		[ "$1" = xroce ] && set -- "$OWN/bin/$1" "${@:2}"
		words=("${NOBODY[@]}" unshare --user --map-root-user --mount --pid --fork --kill-child --mount-proc --ipc --uts
			"$OWN/bin/inside" $mount "$@")
		;;
	runc*)
		[ "$1" = xroce ] && set -- /own/bin/xroce "${@:2}"
		container=xr$$.$((++containers))
		bundle $mount "$@"
		words=(runc --root "$WORK/runc" run --bundle "$BUNDLE" $container)
		;;
	outside) words=("${NOBODY[@]}" "$OWN/bin/$1" "${@:2}") ;;
	esac
}
containers=0

possible() {
	case $1 in
	user*)
		skip_reason="no user namespaces for users"
		in_a "${NOBODY[@]}" unshare --user --map-root-user --mount true 2>/dev/null
		;;
	runc*)
		skip_reason="runc is not installed"
		command -v runc >/dev/null || return
		contain runc true
		skip_reason="runc starts no container here: $("${words[@]}" </dev/null 2>&1 | tail -1)"
		contain runc true
		"${words[@]}" </dev/null >/dev/null 2>&1
		;;
	esac
}

# run_inside NAME KIND COMMAND...: to its end
run_inside() {
	local name=$1
	shift
	contain "$@"
	start "$name" a "${words[@]}"
	finish "$child" 30
}

# end_inside KIND PID: a container that has not ended; the first process in it heeds no SIGTERM.
end_inside() {
	case $1 in runc*) runc --root "$WORK/runc" delete -f $container ;; esac
	kill -9 "$2" 2>/dev/null
	finish "$2" 5
}

# pingpong SERVER CLIENT: between two containers or outside, with checked data
pingpong() {
	local rc server tool=(xroce run --dev $IF_A --share always --
		ibv_rc_pingpong -c -d $DEV_A -g "$gid_a" -n 300)
	possible "$1" && possible "$2" || return 77
	contain "$1" "${tool[@]}"
	start server a "${words[@]}"
	server=$child
	wait_until 20 listens_or_gone a 18515 "$server"
	contain "$2" "${tool[@]}" $IP4_A
	start client a "${words[@]}"
	finish "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; end_inside "$1" "$server"; show server; return 1; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	need_line client '^2457600 bytes in '
	need_no_line client 'invalid data'
}

# ---- the view from inside ----

listed() {
	possible "$1" || return 77
	run_inside list "$1" xroce list $IF_A || fail "list ends with $?"
	need_line list '^  broker '
	run_inside stop "$1" xroce stop $IF_A && fail "it may stop the broker"
	need_line stop 'permission denied: only root or the broker.s own user may stop it'
	answers_a || fail "the broker has ended"
}

not_mounted() {
	possible "$1" || return 77
	run_inside program "$1" xroce run --dev $IF_A --share always -- \
		ibv_rc_pingpong -d $DEV_A -g 0 && fail "it works"
	need_line program "$IF_A: .*mount the host's /run/xroce"
	# without --share as well
	run_inside program "$1" xroce run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 && fail "it works"
	need_line program "$IF_A: .*mount the host's /run/xroce"
	run_inside doctor "$1" xroce doctor $IF_A && fail "doctor finds no fault"
	need_line doctor "^FAIL  $IF_A broker: .* -> mount the host's /run/xroce"
}

finds_no_fault() {
	possible runc || return 77
	run_inside doctor runc xroce doctor $IF_A || { fail "doctor ends with $?"; show doctor; }
	need_line doctor "^ok    $IF_A port: "
}

# Two clients with completion channels, in a connection of rdma_cm, with that seccomp profile: it
# refuses none of their system calls. An observer sees the packets that they send.
no_bpf() {
	local observer allowed
	mapfile -t allowed < <(grep -v '^#' "$here/tests/netns/lib/docker_seccomp" | xargs printf '%s\n')
	allowed=(/usr/bin/python3 "$OWN/filtered.py" "${allowed[@]}" --)
	cp "$here/tests/netns/lib/filtered.py" "$OWN"
	start observer a "${NOBODY[@]}" "$OWN/bin/xroce" trace $IF_A
	observer=$child
	wait_until 10 grep -q waiting "$WORK/observer.out" || fail "no observer"
	start server a "${NOBODY[@]}" "${allowed[@]}" "$OWN/bin/xroce" run --no-mounts --dev $IF_A \
		--share always -- rping -s -a $IP4_A -C 200
	server=$child
	wait_until 20 has_listener "$server"
	start client a "${NOBODY[@]}" "${allowed[@]}" "$OWN/bin/xroce" run --no-mounts --dev $IF_A \
		--share always -- rping -c -a $IP4_A -C 200
	finish "$child" 60 || { fail "the client ended with $?"; show client; }
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
	kill -INT "$observer"
	finish "$observer" 20 || { fail "the observer ended with $?"; show observer; }
	need_line observer ' > RC SEND'
}

# Nor do clients call bpf() where nothing refuses it.
calls_no_bpf() {
	local calls server traced=(strace -f -e trace=bpf,socket -o)
	start server a "${traced[@]}" "$WORK/server.calls" "${NOBODY[@]}" "$OWN/bin/xroce" run --no-mounts \
		--dev $IF_A --share always -- rping -s -a $IP4_A -C 200
	server=$child
	wait_until 30 has_listener "$server"
	start client a "${traced[@]}" "$WORK/client.calls" "${NOBODY[@]}" "$OWN/bin/xroce" run --no-mounts \
		--dev $IF_A --share always -- rping -c -a $IP4_A -C 200
	finish "$child" 60 || { fail "the client ended with $?"; show client; }
	finish "$server" 20 || { fail "the server ended with $?"; show server; }
	for calls in server client; do
		grep -q ' socket(' "$WORK/$calls.calls" || fail "nothing is traced of the $calls"
		! grep -m 3 ' bpf(' "$WORK/$calls.calls" >"$WORK/bpf.out" || { fail "the $calls called bpf()"; show bpf; }
	done
}
has_listener() { in_a "$XROCE" list $IF_A | grep -q '^  listens ' || is_gone_or_zombie "$1"; }

# The socket is there, in a private /run: ours may have a stale one.
has_own_door() {
	[ "$(stat -c %d "/proc/$1/root/run")" != "$(stat -c %d /run)" ] && [ -S "/proc/$1/root$2" ]
}

# Without /proc namespaces have other numbers, and each its own: interfaces of one index are not
# taken for each other.
without_proc() { in_ns "$1" unshare --mount sh -c 'umount --lazy /proc && exec "$@"' sh "$XROCE" "${@:2}"; }
is_listed_there() { without_proc b list $IF_B >"$WORK/there.out" 2>&1; grep -q '^  broker ' "$WORK/there.out"; }
no_proc() {
	local served
	need_equal "the index" "$(ip -n $NS_A -o link show dev $IF_A | cut -d: -f1)" \
		"$(ip -n $NS_B -o link show dev $IF_B | cut -d: -f1)"
	start served b unshare --mount sh -c 'umount --lazy /proc && exec "$@"' sh "$XROCE" serve $IF_B
	served=$child
	wait_at_most 10 is_listed_there || { fail "no broker"; show there; show served; }
	without_proc a list $IF_A >"$WORK/elsewhere.out" 2>&1
	need_line elsewhere 'interface va'
	need_no_line elsewhere '^  broker '
	stop "$served"
}

# The host's root has no number in there, so its directory is the proof: a directory that others may
# write to proves nothing.
open_to_all() {
	local opener path
	possible user || return 77
	path=/run/xroce/$(in_b stat -L -c %i /proc/self/ns/net)-
	path+=$(ip -n $NS_B -o link show dev $IF_B | cut -d: -f1).sock
	start opener b unshare --mount sh -c \
		"mount -t tmpfs -o mode=755 none /run && exec '$XROCE' serve $IF_B"
	opener=$child
	wait_until 10 has_own_door "$opener" "$path" || { fail "no broker"; show opener; }
	words=("${NOBODY[@]}" unshare --user --map-root-user "$OWN/bin/xroce" list $IF_B)
	nsenter -t "$opener" --mount --net "${words[@]}" </dev/null >"$WORK/closed.out" 2>&1
	chmod 777 "/proc/$opener/root/run/xroce"
	nsenter -t "$opener" --mount --net "${words[@]}" </dev/null >"$WORK/open.out" 2>&1
	need_line closed '^  broker '
	need_line open 'interface vb'
	need_no_line open '^  broker '
	stop "$opener"
}

# ---- the broker's end ----

# A container older than the present broker finds the new one.
restarted() {
	local waiting
	possible "$1" || return 77
	contain "$1" xroce run --dev $IF_A --share always -- ibv_rc_pingpong -d $DEV_A -g "$gid_a" -p 18516
	start waiting a "${words[@]}"
	waiting=$child
	wait_until 20 listens_or_gone a 18516 "$waiting"
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list '^  client .*ibv_rc_pingpong'
	in_a "$XROCE" stop $IF_A || fail "stop ends with $?"
	finish "$broker" 5 || fail "the broker ended with $?"
	end_inside "$1" "$waiting"
	serve_outside $NS_A $IF_A answers_a || return
	pingpong "$1" outside
}

# ---- a namespace without a name, as containers have ----

# The process whose namespace it is; an interface of it, and the other end in B.
anonymous() {
	local rc server
	nsenter --net=/run/netns/$NS_B unshare --net sleep infinity </dev/null >/dev/null 2>&1 &
	holder=$!
	netns_children+=("$holder")
	wait_until 5 other_namespace || { fail "no network namespace"; return; }
	ip link add ca mtu 4500 netns "$holder" type veth peer name cb mtu 4500 netns $NS_B || { fail "no interface"; return; }
	nsenter -t "$holder" --net sh -c \
		'ip addr add 10.77.1.1/24 dev ca && ip link set ca up && ip link set lo up'
	in_b sh -c 'ip addr add 10.77.1.2/24 dev cb && ip link set cb up'
	wait_until 5 in_b ping -q -c 1 -W 1 10.77.1.1
	serve_outside "$holder" ca anonymous_answers || return
	netns_path=/proc/$holder/ns/net
	contain "$1" xroce run --dev ca --share always -- ibv_rc_pingpong -c -d xroce_ca -g 0 -n 300
	start server a nsenter -t "$holder" --net "${words[@]}"
	server=$child
	wait_until 20 anonymous_listens
	start client b "$XROCE" run --dev cb --share never -- \
		ibv_rc_pingpong -c -d xroce_cb -g 0 -n 300 10.77.1.1
	finish "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	need_line client '^2457600 bytes in '
	nsenter -t "$holder" --net "$XROCE" stop ca || fail "stop ends with $?"
	finish "$broker" 5 || fail "the broker ended with $?"
	netns_path=/run/netns/$NS_A
	ip -n $NS_B link del cb
	stop "$holder"
}
# Its own: it begins in ours, and passes through B's.
other_namespace() {
	local is
	is=$(readlink "/proc/$holder/ns/net") && [ "$is" != "$(readlink /proc/self/ns/net)" ] &&
		[ "$is" != "$(in_b readlink /proc/self/ns/net)" ]
}
anonymous_answers() { nsenter -t "$holder" --net "$XROCE" list ca | grep -q 'broker *pid'; }
anonymous_listens() { nsenter -t "$holder" --net ss -Hltn 'sport = :18515' | grep -q .; }
in_anonymous() { possible "$1" || return 77; anonymous "$1"; }

serve_outside $NS_A $IF_A answers_a && gids_for v4 || { cat "$WORK/case.notes"; exit 1; }
run_case user_calls pingpong outside user
run_case runc_serves pingpong runc outside
run_case runc_listed listed runc
run_long_case user_serves pingpong user outside
run_long_case runc_calls pingpong outside runc
run_long_case user_listed listed user
for kind in user runc; do
	run_long_case ${kind}_not_mounted not_mounted ${kind}_none
	run_long_case ${kind}_restarted restarted $kind
	run_long_case ${kind}_by_pid in_anonymous $kind
done
run_long_case two_containers pingpong runc runc
run_long_case user_and_runc pingpong user runc
run_case finds_no_fault finds_no_fault
run_case no_bpf no_bpf
run_case calls_no_bpf calls_no_bpf
run_case open_to_all open_to_all
run_case no_proc no_proc
[ ! -d "$WORK/runc" ] || for c in "$WORK/runc"/*; do runc --root "$WORK/runc" delete -f "${c##*/}" 2>/dev/null; done
finish_cases
