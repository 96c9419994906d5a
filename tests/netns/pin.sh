#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# Pinned maps (user/broker/pin.h): the pinned set, and for which user; they hold the process's
# counters, and are removed with the process, however it ends; directories without pins.
. "$(dirname "$0")/lib/case.sh"
. "$(dirname "$0")/lib/python.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS"/{pin_reader,steady_pingpong} "$OWN/bin/"

BPF=$WORK/bpf
PINS=$BPF/pins
MEMBER=(setpriv --reuid=12345 --regid=12346 --groups 12347 --inh-caps=-all --bounding-set=-all)
NET_A=$(stat -L -c %i /run/netns/$NS_A) NET_B=$(stat -L -c %i /run/netns/$NS_B)
mkdir "$BPF" && mount -t bpf -o mode=0755 bpf "$BPF" || skip_all "no BPF file system can be mounted"

# Maps that a process, and a broker, have read-only.
MAPS='xroce_cq xroce_cq_stat xroce_drop xroce_eng_drop xroce_eng_stat xroce_engine xroce_flow_cnt xroce_gid
	xroce_group xroce_mr_stat xroce_qp xroce_qp_stat xroce_rx xroce_sock xroce_srq_stat xroce_vector'
BROKERS='xroce_drop xroce_engine xroce_gid xroce_members xroce_owner xroce_pkey xroce_refused xroce_rx xroce_service
	xroce_tap'
words() { tr -s ' \t\n' ' ' <<<"$*" | sed 's/^ //; s/ $//'; }

index() { ip -n "$1" -o link show dev "$2" | cut -d: -f1; }
# at NS IFACE OWNER: the directory of its pins
at() {
	local ns=$NS_A net=$NET_A
	[ "$1" = b ] && ns=$NS_B net=$NET_B
	echo "$PINS/$2@$net-$(index $ns "$2")/$3"
}
# broker_at NS IFACE: the process of its broker
broker_at() { in_ns "$1" "$XROCE" list "$2" | sed -n 's/^  broker *pid \([0-9]*\) (xroce)$/\1/p'; }
# client_at NS IFACE PID: the directory of that client's pins
client_at() { echo "$(at "$1" "$2" client-)"[0-9]*"-$3"; }
is_there() { [ -d "$1" ]; }
is_not_there() { [ ! -e "$1" ]; }
is_empty() { [ -d "$1" ] && [ -z "$(ls -A "$1")" ]; }
nothing_is_left() {
	wait_until 10 is_not_there "$PINS" || fail "$1: left is $(find "$PINS" | tr '\n' ' ')"
}
# The kernel's two files are always in it.
# `ip` and `tc` of other tests, which look for any BPF file system, make directories of theirs.
need_empty() {
	need_equal "content of the file system" "$(find "$BPF" -mindepth 1 ! -name '*.debug' ! -path "$BPF/ip*" ! -path "$BPF/tc*" \
		! -path "$BPF/xdp*" | tr '\n' ' ')" ''
}

# pingpong NAME NS PORT WORD... [-- CLIENT]: waits for its client, or is one; its pid is in $child
server() {
	local name=$1 ns=$2 dev=$IF_A
	[ "$ns" = b ] && dev=$IF_B
	start "$name" "$ns" "${@:4}" "$OWN/bin/steady_pingpong" -d xroce_$dev -g 0 -p "$3"
	wait_until 10 listens_or_gone "$ns" "$3" "$child"
	listens "$ns" "$3" || { fail "$name does not listen"; show "$name"; return 1; }
}
pinning() { printf '%s\n' "$OWN/bin/xroce" run "--pin=$PINS" --dev "$1" --; }

# ---- the pinned maps ----

# The files of OWNER's directory are these maps, for root alone.
need_pinned() {
	need_equal "maps of $1" "$(words "$(ls "$1")")" "$(words "$2")"
	need_equal "modes of them" "$(stat -c '%a %U' "$1"/* | sort -u)" "400 root"
	need_equal "the directory's" "$(stat -c '%a %U' "$1")" "700 root"
}

# Of a process that is alone, its broker's and its own. They hold its counters, as stat prints them.
alone() {
	local dir broker_dir client name
	mapfile -t with < <(pinning $IF_A)
	server program a 18630 "${with[@]}" || return
	local program=$child
	broker_dir=$(at a $IF_A "broker-$(broker_at a $IF_A)")
	dir=$(client_at a $IF_A "$program")
	need_pinned "$broker_dir" "$BROKERS"
	need_pinned "$dir" "$MAPS"
	need_equal "owners" "$(words "$(ls "$(dirname "$dir")")")" "$(basename "$broker_dir") $(basename "$dir")"
	start client b "$XROCE" run --dev $IF_B -- "$OWN/bin/steady_pingpong" -d $DEV_B -g 0 -p 18630 $IP4_A
	client=$child
	wait_until 30 has_sent "$dir" 1000 || { fail "nothing is counted"; show program; show client; }
	kill -STOP "$program" "$client"
	in_a "$XROCE" stat --json --pid "$program" >"$WORK/stat.out"
	for name in tx_packets tx_bytes rx_packets; do
		need_equal "$name" "$(pinned "$dir" xroce_eng_stat $name)" "$(of_stat $name)"
		need_equal "$name of the QP" "$(pinned "$dir" xroce_qp_stat $name)" "$(of_stat $name)"
	done
	need_equal redirected "$(pinned "$dir" xroce_rx redirected)" "$(of_stat xdp_redirected)"
	need_equal "the process" "$(pinned "$dir" xroce_engine pid)" "$program"
	kill -CONT "$program" "$client"
	stop "$client"
	stop "$program"
	nothing_is_left "after its end"
	need_empty
}
pinned() { bpftool map dump pinned "$1/$2" | field "$3"; }
has_sent() { local n; n=$(pinned "$1" xroce_eng_stat tx_packets) && [ "$n" -ge "$2" ]; }
of_stat() { python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["ports"][0]["counters"][sys.argv[2]])' "$WORK/stat.out" "$1"; }

# The broker's pins, and each client's, which are removed with the client.
shared() {
	local broker_dir one two
	serve_options=(--pin="$PINS")
	serve a $IF_A || return
	broker_dir=$(at a $IF_A "broker-$broker")
	need_pinned "$broker_dir" "$BROKERS"
	server one a 18631 "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- || return
	one=$child
	server two a 18632 "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- || return
	two=$child
	need_equal "clients" "$(find "$PINS" -name 'client-*' -printf '%f\n' | sed 's/client-[0-9]*-//' | sort -n | tr '\n' ' ')" \
		"$(printf '%s\n' "$one" "$two" | sort -n | tr '\n' ' ')"
	client_dir=$(client_at a $IF_A "$one")
	need_pinned "$client_dir" "$MAPS"
	need_equal "the client's process" "$(pinned "$client_dir" xroce_engine pid)" "$one"
	need_equal "owners of QPs" "$(bpftool map dump pinned "$broker_dir/xroce_owner" | grep -cE "\"pid\": ($one|$two)")" 2
	kill -KILL "$one"
	finish "$one" 10
	wait_until 10 is_not_there "$client_dir" || fail "a client's maps stay"
	stop "$two"
	wait_until 10 has_no_clients || fail "a client's maps stay"
	is_there "$broker_dir" || fail "the broker's maps have gone"
	stop "$broker"
	nothing_is_left "after the broker's end"
	need_empty
}
has_no_clients() { [ -z "$(find "$PINS" -name 'client-*')" ]; }

# Members of a group read, and cannot write; others can do neither.
grouped() {
	serve_options=(--pin="$PINS" --pin-group 12347)
	serve a $IF_A || return
	server one a 18633 "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- || return
	local one=$child map
	for map in "$(at a $IF_A "broker-$broker")/xroce_rx" "$(echo "$(at a $IF_A client-)"*)/xroce_eng_stat"; do
		"${MEMBER[@]}" "$OWN/bin/pin_reader" "$map" >"$WORK/reader.out" 2>&1 || fail "a member may not read"
		need_line reader '^open for both EACCES$'
		need_line reader '^read an element, write EPERM$'
		"${NOBODY[@]}" "$OWN/bin/pin_reader" "$map" >"$WORK/reader.out" 2>&1 && fail "another may read"
		need_line reader '^open EACCES$'
		"${MEMBER[@]}" rm -f "$map" 2>/dev/null && fail "a member may take it away"
	done
	stop "$one"
	stop "$broker"
	nothing_is_left "after the broker's end"
}

# One interface name in two network namespaces.
two_namespaces() {
	ip -n $NS_A link add same type veth peer name other && ip -n $NS_B link add same type veth peer name other || return
	ip -n $NS_A addr add 10.78.0.1/24 dev same && ip -n $NS_B addr add 10.78.0.1/24 dev same
	ip -n $NS_A link set same up && ip -n $NS_B link set same up
	serve_options=(--pin="$PINS")
	serve a same || return
	local first=$broker
	start broker_other b "$XROCE" serve --pin="$PINS" same
	local second=$child
	wait_until 10 broker_answers b same "$second " || fail "no broker"
	is_there "$(at a same "broker-$first")" || fail "the first one's are not there"
	is_there "$(at b same "broker-$second")" || fail "the second one's are not there"
	stop "$first"
	wait_until 10 is_not_there "$(at a same "broker-$first")" || fail "the first one's stay"
	is_there "$(at b same "broker-$second")" || fail "the second one's have gone"
	stop "$second"
	nothing_is_left "after both"
	ip -n $NS_A link del same && ip -n $NS_B link del same
}

# A name with a dot, which the kernel does not let a BPF file system have.
dotted() {
	ip -n $NS_A link add $IF_A.7 type veth peer name other && ip -n $NS_A addr add 10.79.0.1/24 dev $IF_A.7 &&
		ip -n $NS_A link set $IF_A.7 up || return
	serve_options=(--pin="$PINS")
	serve a $IF_A.7 || return
	is_there "$PINS/$IF_A:7@$NET_A-$(index $NS_A $IF_A.7)/broker-$broker" || fail "not under that name: $(find "$PINS")"
	stop "$broker"
	nothing_is_left "after the broker's end"
	ip -n $NS_A link del $IF_A.7
}

# The process that had the interface to itself keeps its pins when another comes and goes; the
# broker pins the other's maps as well.
joined() {
	local first second broker_dir first_dir second_dir
	mapfile -t with < <(pinning $IF_A)
	server first a 18634 "${with[@]}" || return
	first=$child
	broker_dir=$(at a $IF_A "broker-$(broker_at a $IF_A)")
	first_dir=$(client_at a $IF_A "$first")
	need_pinned "$first_dir" "$MAPS"
	server second a 18635 "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- || return
	second=$child
	second_dir=$(client_at a $IF_A "$second")
	need_pinned "$second_dir" "$MAPS"
	need_pinned "$first_dir" "$MAPS"
	need_equal "owners of QPs" "$(bpftool map dump pinned "$broker_dir/xroce_owner" | grep -cE "\"pid\": ($first|$second)")" 2
	stop "$second"
	wait_until 10 is_not_there "$second_dir" || fail "the second one's stay"
	need_pinned "$first_dir" "$MAPS"
	need_pinned "$broker_dir" "$BROKERS"
	stop "$first"
	nothing_is_left "after all"
}

# ---- leftovers of a killed process ----

# The broker removes what a killed process had; if the broker is killed as well, a process that
# outlives both does, which `xroce run` has started.
killed_alone() {
	local broker program with
	with=(env XROCE_PIN="$PINS" LD_LIBRARY_PATH="$OWN/lib")
	[ "$1" = program ] || mapfile -t with < <(pinning $IF_A)
	server program a 18636 "${with[@]}" || return
	program=$child
	broker=$(broker_at a $IF_A)
	is_there "$(client_at a $IF_A "$program")" || fail "nothing is pinned"
	case $1 in
	program | watched) kill -KILL "$program" ;;
	both) kill -KILL "$broker" "$program" ;;
	esac
	finish "$program" 10
	nothing_is_left "after kill -9"
	need_empty
	wait_until 5 has_no_keeper || fail "a process is left"
	wait_until 10 has_no_broker a $IF_A || fail "the broker is left"
}
# in this network namespace
has_no_keeper() {
	local p ours name
	ours=net:[$NET_A]
	for p in /proc/[0-9]*; do
		{ read -r name <"$p/comm"; } 2>/dev/null && [ "$name" = xroce-pins ] && [ "$(readlink "$p/ns/net" 2>/dev/null)" = "$ours" ] && return 1
	done
	return 0
}

# Of a process and its broker, both killed, without a process that outlives them (no `xroce run`):
# the next process or `xroce stop` removes the pins, in any network namespace.
left_behind() {
	local dir broker_dir
	server program a 18637 env XROCE_PIN="$PINS" LD_LIBRARY_PATH="$OWN/lib" || return
	broker=$(broker_at a $IF_A)
	broker_dir=$(at a $IF_A "broker-$broker")
	dir=$(client_at a $IF_A "$child")
	need_pinned "$broker_dir" "$BROKERS"
	need_pinned "$dir" "$MAPS"
	kill -KILL "$broker" "$child"
	finish "$child" 10
	wait_until 10 has_no_broker a $IF_A || fail "the broker lives"
	is_there "$dir" && is_there "$broker_dir" || fail "who has taken it away?"
	case $1 in
	stop)
		in_b "$XROCE" stop --pin="$PINS" $IF_B >"$WORK/stop.out" 2>&1 || fail "exit status $?"
		need_line stop "removed the pinned maps of 2 killed processes in $PINS\$"
		;;
	alone)
		mapfile -t with < <(pinning $IF_B)
		server next b 18638 "${with[@]}" || return
		is_not_there "$dir" && is_not_there "$broker_dir" || fail "it stays"
		stop "$child"
		;;
	broker)
		serve_options=(--pin="$PINS")
		serve a $IF_A || return
		is_not_there "$dir" && is_not_there "$broker_dir" || fail "it stays"
		stop "$broker"
		;;
	esac
	nothing_is_left "$1"
	need_empty
}

# The directories of the broker and its clients, while a client lives.
killed_broker() {
	local one dir
	serve_options=(--pin="$PINS")
	serve a $IF_A || return
	dir=$(at a $IF_A "broker-$broker")
	server one a 18639 "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- || return
	one=$child
	kill -KILL "$broker"
	finish "$broker" 10
	is_there "$dir" || fail "who has taken it away?"
	stop "$one"
	serve a $IF_A || return
	is_not_there "$dir" || fail "the killed one's stays"
	has_no_clients || fail "its client's stay"
	is_there "$(at a $IF_A "broker-$broker")" || fail "the next one has none"
	stop "$broker"
	nothing_is_left "after the next one's end"
	need_empty
}

# Other owners' files, and directories of live processes, are never removed.
spares_others() {
	local dir
	serve_options=(--pin="$PINS")
	serve a $IF_A || return
	dir=$(at a $IF_A "broker-$broker")
	mkdir "$PINS/theirs" "$PINS/$IF_A@1-2" "$PINS/$IF_A@1-2/broker-x" "$PINS/$IF_A@1-3" "$PINS/$IF_A@1-3/alone-77"
	ln -s "$dir" "$PINS/$IF_A@1-3/alone-78"
	bpftool map pin pinned "$dir/xroce_rx" "$PINS/theirs/xroce_rx"
	bpftool map pin pinned "$dir/xroce_rx" "$PINS/$IF_A@1-3/alone-77/mine"
	bpftool map pin pinned "$dir/xroce_rx" "$PINS/$IF_A@1-3/alone-77/xroce_rx"
	in_b "$XROCE" stop --pin="$PINS" $IF_B >"$WORK/stop.out" 2>&1
	need_equal "exit status without a broker" $? 1
	need_equal "what is there" "$(cd "$PINS" && words "$(find . -mindepth 1 -name '*' ! -path "./$IF_A@$NET_A*" | sort)")" \
		"./theirs ./theirs/xroce_rx ./$IF_A@1-2 ./$IF_A@1-2/broker-x ./$IF_A@1-3 ./$IF_A@1-3/alone-77 ./$IF_A@1-3/alone-77/mine ./$IF_A@1-3/alone-78"
	need_pinned "$dir" "$BROKERS"
	rm -r "$PINS/theirs" "$PINS/$IF_A@1-2" "$PINS/$IF_A@1-3"
	stop "$broker"
	nothing_is_left "after the broker's end"
}

# A directory made by an administrator stays.
keeps_directory() {
	mkdir -m 700 "$BPF/kept"
	mapfile -t with < <(pinning $IF_A)
	server program a 18640 env XROCE_PIN="$BPF/kept/" "$XROCE" run --dev $IF_A -- || return
	need_equal "processes" "$(find "$BPF/kept" -mindepth 2 -maxdepth 2 -printf '%f\n' | sed 's/^client-[0-9]*-/client-N-/' | sort | tr '\n' ' ')" \
		"broker-$(broker_at a $IF_A) client-N-$child "
	stop "$child"
	# its broker removes the pins
	wait_until 10 is_empty "$BPF/kept" || fail "left is $(find "$BPF/kept" | tr '\n' ' ')"
	rmdir "$BPF/kept" || fail "the directory has gone"
}

# ---- cases without pins ----

# refused DIR SAID: the broker does not start; a program does, with a message.
refused() {
	wait_until 10 has_no_broker a $IF_A || fail "there is a broker"
	in_a timeout 20 "$XROCE" serve --pin="$1" $IF_A >"$WORK/broker.out" 2>&1
	need_equal "exit status of the broker" $? 1
	need_line broker "^xroce: $IF_A: cannot pin the maps: .*$2"
	server program a 18641 env XROCE_PIN="$1" "$XROCE" run --dev $IF_A -- || return
	need_line program "^xroce: $IF_A: cannot pin the maps: .*$2"
	stop "$child"
}
hostile() {
	local d
	mkdir "$BPF/real" "$BPF/worlds" "$BPF/groups" "$BPF/anothers" "$WORK/plain" && chmod 777 "$BPF/worlds" &&
		chmod 770 "$BPF/groups" && chown 12345 "$BPF/anothers" && ln -s "$BPF/real" "$BPF/linked" && ln -s "$BPF" "$WORK/by_link" || return
	refused "$BPF/worlds" 'is writable by other users'
	refused "$BPF/groups" 'is writable by other users'
	refused "$BPF/anothers" 'belongs to another user'
	refused "$BPF/linked" 'symbolic link'
	refused "$WORK/by_link/real" 'symbolic link'
	refused "$WORK/plain" 'is not on a BPF file system'
	refused "$WORK/plain/new" 'is not on a BPF file system'
	refused "$WORK/none/new" 'is not on a BPF file system'
	for d in real worlds groups anothers; do
		need_equal "what is in $d" "$(find "$BPF/$d" -mindepth 1)" ''
		rmdir "$BPF/$d"
	done
	rm "$BPF/linked" "$WORK/by_link"
	rmdir "$WORK/plain"
}
not_mounted() {
	skip_reason="the machine has a BPF file system on /sys/fs/bpf"
	! mountpoint -q /sys/fs/bpf || return 77
	wait_until 10 has_no_broker a $IF_A || fail "there is a broker"
	in_a timeout 20 "$XROCE" serve --pin $IF_A >"$WORK/broker.out" 2>&1
	need_equal "exit status" $? 1
	need_line broker 'mount -t bpf bpf /sys/fs/bpf'
	in_a "$XROCE" doctor $IF_A >"$WORK/doctor.out" 2>&1
	need_line doctor '^ok +pinned maps: not possible: .*mount -t bpf bpf /sys/fs/bpf'
	in_a unshare -m --propagation private sh -c 'mount -t bpf bpf /sys/fs/bpf && exec "$@"' - "$XROCE" doctor $IF_A >"$WORK/doctor.out" 2>&1
	need_line doctor '^ok +pinned maps: possible in /sys/fs/bpf/xroce'
}
# The default directory, in a mount namespace that has one; it is removed with the broker.
default_directory() {
	wait_until 10 has_no_broker a $IF_A || fail "there is a broker"
	in_a unshare -m --propagation private bash -c 'mount -t bpf bpf /sys/fs/bpf || exit 1
		"$0" serve --pin "$1" & broker=$!
		until "$0" list "$1" | grep -q "broker *pid"; do kill -0 $broker || exit 1; done
		ls /sys/fs/bpf/xroce/*/broker-$broker | grep -c ^xroce_
		"$0" stop "$1"; ls /sys/fs/bpf | grep -v debug; echo end' "$XROCE" $IF_A >"$WORK/default.out" 2>&1
	need_equal "what it says" "$(cat "$WORK/default.out")" "$(words "$BROKERS" | wc -w)
end"
}
wrong_usage() {
	local words
	for words in '--pin=x' '--pin=' '--pin-group root' '--pin-group nonesuch --pin'; do
		# shellcheck disable=SC2086 # several words
		in_a "$XROCE" serve $words $IF_A >"$WORK/broker.out" 2>&1
		need_equal "exit status of $words" $? 2
	done
	in_a "$XROCE" run --pin=x --dev $IF_A -- true >"$WORK/run.out" 2>&1
	need_equal "exit status of run" $? 2
	need_line run "invalid argument 'x' of --pin: it takes an absolute path"
	XROCE_PIN=x in_a "$XROCE" run --dev $IF_A -- true >"$WORK/run.out" 2>&1
	need_equal "exit status of run with the variable" $? 2
	XROCE_PIN=x LD_LIBRARY_PATH="$BUILD/lib" in_a ibv_devinfo >"$WORK/run.out" 2>&1 || fail "a variable is no reason to fail"
}

run_long_case alone alone
run_case shared shared
run_long_case grouped grouped
run_long_case two_namespaces two_namespaces
run_long_case dotted dotted
run_long_case joined joined
run_case killed_alone killed_alone program
run_long_case killed_watched killed_alone watched
run_long_case killed_with_broker killed_alone both
run_long_case left_behind_alone left_behind alone
run_long_case left_behind_broker left_behind broker
run_case left_behind_stop left_behind stop
run_long_case killed_broker killed_broker
run_long_case spares_others spares_others
run_case keeps_directory keeps_directory
run_long_case hostile hostile
run_case not_mounted not_mounted
run_long_case default_directory default_directory
run_case wrong_usage wrong_usage
finish_cases
