# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Two hosts in one machine: network namespaces A and B joined by a veth pair (or by a third
# namespace that a forwarder sits in). Sourced by the demonstration and by tests/netns. It owns the
# namespaces, interfaces, children and the scratch directory that it makes, names them after this
# shell's pid, and removes them on any exit. It never touches another namespace.
#
#   netns_pair [MTU [QUEUES]]	A:va -- B:vb
#   netns_chain [MTU [QUEUES]]	A:va -- P:pa, P:pb -- B:vb
#				nothing forwards until a program in P does
#
# QUEUES: receive and transmit queues of each interface; XROCE_TEST_QUEUES, or 1.
#
# Commands enter with nsenter --net: `ip netns exec` would mount a new sysfs over /sys/fs/bpf.

set -u

NS_A=xr$$a NS_B=xr$$b NS_P=xr$$p
IF_A=va IF_B=vb
DEV_A=xroce_$IF_A DEV_B=xroce_$IF_B
IP4_A=10.77.0.1 IP4_B=10.77.0.2
IP6_A=fd77::1 IP6_B=fd77::2
MAC_A=02:00:00:77:00:01 MAC_B=02:00:00:77:00:02

netns_made=()
netns_children=()
WORK=$(mktemp -d "${TMPDIR:-/tmp}/xroce.XXXXXX") || exit 1
# No process writes there: reading it with a time-out sleeps without starting a process.
mkfifo "$WORK/quiet" || exit 1

in_a() { nsenter --net=/run/netns/$NS_A "$@"; }
in_b() { nsenter --net=/run/netns/$NS_B "$@"; }
in_p() { nsenter --net=/run/netns/$NS_P "$@"; }

# The same by name: in_ns a COMMAND...
in_ns() { local n=$1; shift; "in_$n" "$@"; }

# split_words FIRST SECOND WORD... -- WORD...: into the caller's arrays of those names.
split_words() {
	local -n first_=$1 second_=$2
	shift 2
	first_=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		first_+=("$1")
		shift
	done
	second_=("${@:2}")
}

# The time of the program ends then, in $SECONDS, less what the cleanup takes.
netns_last=$((SECONDS + 300))
if [ -n "${XROCE_TEST_ENDS:-}" ]; then
	printf -v netns_now '%(%s)T' -1
	netns_last=$((SECONDS + XROCE_TEST_ENDS - netns_now - 20))
fi

# wait_until SECONDS COMMAND...: polls the command until it succeeds. SECONDS is what that should
# take at most: a longer wait is noted in $WORK/case.slow. Returns 1 when the time of the whole
# program is up.
wait_until() {
	local seconds=$1 began=$SECONDS
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $netns_last ] || return 1
		read -r -t 0.02 <>"$WORK/quiet"
	done
	[ $((SECONDS - began)) -le "$seconds" ] ||
		echo "waited $((SECONDS - began)) s, not $seconds s: $*" >>"$WORK/case.slow"
	return 0
}

# wait_at_most SECONDS COMMAND...: the same, but returns 1 after SECONDS.
wait_at_most() {
	local end=$((SECONDS + $1 + 1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		read -r -t 0.02 <>"$WORK/quiet"
	done
	return 0
}

# start NAME NS COMMAND...: runs COMMAND in the background with its output in $WORK/NAME.out, and
# sets $child to its pid. nsenter and `xroce run` exec, so this is the pid of the program itself.
start() {
	local name=$1 ns
	case $2 in a) ns=$NS_A ;; b) ns=$NS_B ;; p) ns=$NS_P ;; esac
	shift 2
	# here, not in the child: what an earlier one of that name printed must not be taken for
	# this one's
	: >"$WORK/$name.out"
	nsenter --net=/run/netns/$ns "$@" </dev/null >"$WORK/$name.out" 2>&1 &
	child=$!
	netns_children+=("$child")
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }
# Polled by all that wait for an end, so it starts no process. The state follows the name, which is
# in parentheses and may have any character.
is_gone_or_zombie() {
	local stat=
	read -r -d '' stat 2>/dev/null <"/proc/$1/stat"
	stat=${stat##*) }
	[[ $stat == [ZX]* ]] || { [ -z "$stat" ] && is_gone "$1"; }
}

# finish PID SECONDS: waits for a child that was started, as wait_until does. Returns its exit
# status, or 124 after killing it when the time of the whole program is up.
finish() { finish_by wait_until "$@"; }
# finish_at_most PID SECONDS: the same, but kills it after SECONDS.
finish_at_most() { finish_by wait_at_most "$@"; }
finish_by() {
	local rc
	if ! "$1" "$3" is_gone_or_zombie "$2"; then
		kill -9 "$2" 2>/dev/null
		wait "$2" 2>/dev/null
		rc=124
	else
		wait "$2" 2>/dev/null
		rc=$?
	fi
	netns_forget "$2"
	return $rc
}

# listens NS TCP-PORT
listens() { [ -n "$(in_ns "$1" ss -Hltn "sport = :$2")" ]; }
# listens_by NS TCP-PORT PID: the same, without a process, by a process that is or will be there. 0A
# is a socket that listens.
listens_by() {
	local ns port file at state
	case $1 in a) ns=$NS_A ;; b) ns=$NS_B ;; p) ns=$NS_P ;; esac
	[ "/proc/$3/ns/net" -ef "/run/netns/$ns" ] || return
	printf -v port '%04X' "$2"
	for file in tcp tcp6; do
		while read -r _ at _ state _; do
			[ "${at##*:}-$state" != "$port-0A" ] || return 0
		done 2>/dev/null <"/proc/$3/net/$file"
	done
	return 1
}
listens_or_gone() { listens_by "$@" || is_gone_or_zombie "$3"; }

netns_forget() {
	local pid left=()
	for pid in "${netns_children[@]}"; do
		[ "$pid" = "$1" ] || left+=("$pid")
	done
	netns_children=("${left[@]}")
}

# stop PID: end a child that was started, by TERM and, if it stays, by KILL.
stop() {
	kill "$1" 2>/dev/null
	finish_at_most "$1" 5
	return 0
}

netns_cleanup() {
	local pid ns
	trap '' INT TERM HUP
	for pid in "${netns_children[@]}"; do
		kill "$pid" 2>/dev/null
	done
	for pid in "${netns_children[@]}"; do
		finish_at_most "$pid" 3
	done
	if mountpoint -q "$WORK/bpf" 2>/dev/null; then
		umount "$WORK/bpf"
	fi
	for ns in "${netns_made[@]}"; do
		netns_forget_sockets "$ns"
		ip netns del "$ns"
	done
	netns_made=()
	rm -rf --one-file-system "$WORK"
}
trap netns_cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

netns_die() {
	echo "netns: $*" >&2
	exit 1
}

# Removes sockets of killed processes of a namespace. The kernel may give the number of the
# namespace to a later one, in which a test would take the socket for a broker's.
netns_forget_sockets() { rm -f "/run/xroce/$(stat -L -c %i "/run/netns/$1")"-*.sock; }

# A namespace that is created from within a namespace with this setting gets its own small table of
# TCP connections (Linux 6.1). Reading /proc/net/tcp, as listens_by() does, visits every bucket.
netns_small_tables='echo 256 >/proc/sys/net/ipv4/tcp_child_ehash_entries; exec "$@"'
netns_add() {
	unshare --net sh -c "$netns_small_tables" sh ip netns add "$1" 2>/dev/null ||
		ip netns add "$1" || netns_die "cannot make a network namespace: run as root"
	netns_made+=("$1")
	netns_forget_sockets "$1"
	ip -n "$1" link set lo up
}

# Addresses are usable at once: no duplicate address detection, on the link-local address neither.
netns_host() {
	local ns=$1 dev=$2 mac=$3 ip4=$4 ip6=$5
	nsenter --net=/run/netns/$ns sh -c "echo 0 > /proc/sys/net/ipv6/conf/$dev/accept_dad" || netns_die "no IPv6 in this kernel"
	ip -n "$ns" link set "$dev" address "$mac" up &&
		ip -n "$ns" addr add "$ip4/24" dev "$dev" &&
		ip -n "$ns" addr add "$ip6/64" dev "$dev" nodad || netns_die "cannot configure $dev"
}

netns_is_ready() {
	ip -n "$1" -o link show dev "$2" | grep -q LOWER_UP &&
		ip -n "$1" -6 -o addr show dev "$2" scope link | grep -q fe80: &&
		! ip -n "$1" -6 -o addr show dev "$2" | grep -q tentative
}

netns_wait_ready() {
	wait_until 10 netns_is_ready $NS_A $IF_A || netns_die "$IF_A does not come up"
	wait_until 10 netns_is_ready $NS_B $IF_B || netns_die "$IF_B does not come up"
	[ "${1:-}" = no-path ] || wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || netns_die "no path from A to B"
}

# With XROCE_TEST_BROKER=1: both interfaces have brokers, and all that runs uses them.
netns_answers() { in_ns "$1" "$XROCE" list | grep -q 'broker *pid'; }
netns_serve() {
	[ -n "${XROCE_TEST_BROKER:-}" ] || return 0
	start broker_a a "$XROCE" serve $IF_A
	start broker_b b "$XROCE" serve $IF_B
	wait_until 10 netns_answers a && wait_until 10 netns_answers b || netns_die "no broker"
	export XROCE_SHARE=always
}

netns_pair() {
	local mtu=${1:-4500} queues=${2:-${XROCE_TEST_QUEUES:-1}}
	netns_add $NS_A
	netns_add $NS_B
	ip link add $IF_A mtu "$mtu" netns $NS_A numrxqueues "$queues" numtxqueues "$queues" type veth \
		peer name $IF_B mtu "$mtu" netns $NS_B numrxqueues "$queues" numtxqueues "$queues" || netns_die "cannot make a veth pair"
	netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
	netns_host $NS_B $IF_B $MAC_B $IP4_B $IP6_B
	netns_wait_ready
	netns_serve
}

# A forwarder copies packets as they are, so whole packets with whole checksums must reach it: no
# offloads.
netns_chain() {
	local mtu=${1:-4500} i
	local queues=(numrxqueues "${2:-${XROCE_TEST_QUEUES:-1}}" numtxqueues "${2:-${XROCE_TEST_QUEUES:-1}}")
	netns_add $NS_A
	netns_add $NS_B
	netns_add $NS_P
	ip link add $IF_A mtu "$mtu" netns $NS_A "${queues[@]}" type veth peer name pa mtu "$mtu" netns $NS_P "${queues[@]}" &&
		ip link add $IF_B mtu "$mtu" netns $NS_B "${queues[@]}" type veth peer name pb mtu "$mtu" netns $NS_P "${queues[@]}" ||
		netns_die "cannot make a veth pair"
	in_a ethtool -K $IF_A tx off tso off gso off gro off >/dev/null && in_b ethtool -K $IF_B tx off tso off gso off gro off >/dev/null ||
		netns_die "cannot switch offloads off"
	for i in pa pb; do
		nsenter --net=/run/netns/$NS_P sh -c "echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6"
		ip -n $NS_P link set $i up
	done
	netns_host $NS_A $IF_A $MAC_A $IP4_A $IP6_A
	netns_host $NS_B $IF_B $MAC_B $IP4_B $IP6_B
	netns_wait_ready no-path
	netns_serve
}

# ---- what our programs hold in the kernel ----

# xdp_on NS DEV: true while an XDP program is attached.
xdp_on() { ip -n "$1" -o -d link show dev "$2" | grep -qE 'xdp(generic|offload)?[ /]|prog/xdp'; }
xdp_off() { ! xdp_on "$1" "$2"; }

# bpf_ids PID map|prog: the ids that the process has descriptors of.
bpf_ids() {
	cat "/proc/$1/fdinfo/"* 2>/dev/null | awk -v key="$2_id:" '$1 == key { print $2 }' | sort -nu
}

# program_maps PID: the ids of the maps of the XDP program that a broker has loaded for the process,
# which has descriptors of some of them.
program_maps() {
	{ bpf_ids "$1" map; bpftool prog show; } |
		awk 'NF == 1 { mine[$1] = 1 }
			/ name / { xdp = / name xroce_xdp / }
			xdp { for (i = 1; i < NF; i++) if ($i == "map_ids") {
				n = split($(i + 1), id, ","); hit = 0
				for (k = 1; k <= n; k++) hit += id[k] in mine
				for (k = 1; hit && k <= n; k++) print id[k]
			} }'
}

# maps_of PID: "name id" of each map that the process has a descriptor of, and of its program's.
# Names are not unique in a machine, descriptors are.
maps_of() {
	local ids
	ids=$({ bpf_ids "$1" map; program_maps "$1"; } | sort -nu)
	[ -n "$ids" ] || return 0
	# A machine may have many maps; all of them only if one of ours has just gone.
	# shellcheck disable=SC2086 # a word a map
	{ printf 'map show id %s\n' $ids | bpftool batch file - 2>/dev/null || bpftool map show; } |
		awk -v ids="${ids//$'\n'/ }" 'BEGIN { n = split(ids, id); for (i = 1; i <= n; i++) mine[id[i] ":"] = 1 }
			$1 in mine { delete mine[$1]; for (i = 2; i < NF; i++) if ($i == "name") { sub(":", "", $1); print $(i + 1), $1 } }'
}

# no_map ID: there is none of that id.
no_map() { ! bpftool map show id "$1" >/dev/null 2>&1; }
# map_id PID NAME: the id of the process's map of that name.
map_id() { maps_of "$1" | awk -v name="$2" '$1 == name { print $2; found = 1 } END { exit !found }'; }

# field NAME: from a `bpftool map dump` on standard input, the sum of that field over all elements
# and CPUs; fails if it is not there.
field() {
	awk -v want="\"$1\":" '{ for (i = 1; i < NF; i++) if ($i == want) { gsub(/[^0-9]/, "", $(i + 1)); n += $(i + 1); seen = 1 } }
		END { if (!seen) exit 1; printf "%d\n", n }'
}

# nonzero: from a dump on standard input, "name value" for each counter that is not zero, summed
# over elements and CPUs.
nonzero() {
	awk '/^ *"[a-z_0-9]+": [0-9]/ && $1 !~ /"(key|cpu)"/ { gsub(/[":,]/, ""); if (!($1 in v)) order[++n] = $1; v[$1] += $2 }
		END { for (i = 1; i <= n; i++) if (v[order[i]]) print order[i], v[order[i]] }'
}

# counter PID MAP FIELD, of a running process.
counter() {
	local id
	id=$(map_id "$1" "$2") || return 1
	bpftool map dump id "$id" | field "$3"
}

# has_bpf_maps: false for ports by UDP sockets, whose maps are files that nothing can pin.
has_bpf_maps() { [ "${XROCE_PORT:-}" != sockets ]; }
# keep_maps PID TAG: hold the process's counters beyond its end, by pinning them in a bpffs of our
# own. kept TAG MAP FIELD reads one.
keep_maps() {
	local pins
	if [ ! -d "$WORK/bpf" ]; then
		mkdir "$WORK/bpf" && mount -t bpf bpf "$WORK/bpf" || return 1
	fi
	mapfile -t pins < <(maps_of "$1" | awk -v to="$WORK/bpf/$2-" \
		'/^xroce_(rx|drop|sock|eng_stat|eng_drop) / && !seen[$1]++ { print "map pin id", $2, to $1 }')
	[ ${#pins[@]} -eq 5 ] && printf '%s\n' "${pins[@]}" | bpftool batch file - >/dev/null
}
kept() { bpftool map dump pinned "$WORK/bpf/$1-$2" | field "$3"; }
# kept_of TAG MAP KEY FIELD: of that element alone.
kept_of() { bpftool map lookup pinned "$WORK/bpf/$1-$2" key "$3" 0 0 0 | field "$4"; }
# RoCEv2 packets that XDP handed over, counted one by one.
kept_packets() {
	local redirected supers segments
	redirected=$(kept "$1" xroce_rx redirected) && supers=$(kept "$1" xroce_rx super_packets) && segments=$(kept "$1" xroce_rx super_segments) &&
		echo $((redirected - supers + segments))
}
kept_dump() { bpftool map dump pinned "$WORK/bpf/$1-$2" | nonzero; }
drop_maps() {
	local pins=("$WORK/bpf/$1-"*)
	[ ! -e "${pins[0]}" ] || rm -f "${pins[@]}"
}
