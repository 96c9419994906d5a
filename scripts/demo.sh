#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs unmodified programs of Debian's ibverbs-utils between two network namespaces that a veth pair
# joins: demo.sh [BUILD]. Removes everything that it made. Exit status 1 if anything did not work.
set -u

top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
BUILD=${1:-$top/build}
case $BUILD in /*) ;; *) BUILD=$top/$BUILD ;; esac
XROCE=$BUILD/bin/xroce
export LC_ALL=C
unset XROCE_DEV LD_LIBRARY_PATH
. "$top/scripts/netns.sh"

failed=0
title() { printf '\n== %s\n' "$*"; }
bad() {
	echo "demo: $*" >&2
	failed=1
}
# as HOST COMMAND...: prints the command, then runs it on that host.
as() {
	local host=$1
	shift
	printf '%s# %s\n' "${host^^}" "${*/#"$XROCE"/xroce}"
	in_ns "$host" timeout 60 "$@"
}

# exchange TOOL [OPTION...]: the server on A, the client on B; prints the client's words.
exchange() {
	local tool=$1 server
	shift
	echo "A# xroce run --dev $IF_A -- $tool -d $DEV_A -g 0 $*"
	start server a "$XROCE" run --dev $IF_A -- "$tool" -d $DEV_A -g 0 "$@"
	server=$child
	wait_until 10 listens_or_gone a 18515 "$server"
	if ! as b "$XROCE" run --dev $IF_B -- "$tool" -d $DEV_B -g 0 "$@" $IP4_A >"$WORK/client.out" 2>&1; then
		bad "$tool failed"
		sed 's/^/    server: /' "$WORK/server.out"
	fi
	cat "$WORK/client.out"
	finish "$server" 10 || bad "the server of $tool ended with $?"
	grep -q 'bytes in' "$WORK/client.out" || bad "$tool says nothing of bytes"
	seen+=("$tool $*: $(sed -n 's/^\([0-9]* bytes in .*\)$/\1/p; s/^\([0-9]* iters in .*\)$/\1/p' "$WORK/client.out" | paste -sd ',' | sed 's/,/, /')")
}
seen=()

title "Two hosts: namespace A with $IF_A ($IP4_A), namespace B with $IF_B ($IP4_B)"
netns_pair 4500
ip -n $NS_A -br addr show dev $IF_A
ip -n $NS_B -br addr show dev $IF_B

title "Is this machine fit for it?"
as a "$XROCE" doctor $IF_A || bad "xroce doctor found something amiss"

title "The device, as xroce and as Debian's ibv_devinfo see it"
as a "$XROCE" list $IF_A || bad "xroce list failed"
as a "$XROCE" run --dev $IF_A -- ibv_devinfo || bad "ibv_devinfo failed"

title "Unreliable datagrams"
exchange ibv_ud_pingpong -n 2000

# A kernel without multi-buffer AF_XDP, before 6.6, has a path MTU of 2048 at most.
mtu=$(as a "$XROCE" run --dev $IF_A -- ibv_devinfo -v | sed -n 's/.*max_mtu:[^0-9]*\([0-9]*\).*/\1/p')
title "Reliable connection, 16 KiB messages, path MTU $mtu"
exchange ibv_rc_pingpong -n 2000 -s 16384 -m "$mtu"

title "Looking into a running exchange with bpftool"
start server a "$XROCE" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -n 100000000
server=$child
wait_until 10 listens_or_gone a 18515 "$server"
start client b "$XROCE" run --dev $IF_B -- ibv_rc_pingpong -d $DEV_B -g 0 -n 100000000 $IP4_A
client=$child

moving() { local n; n=$(counter "$server" xroce_rx redirected) && [ "$n" -gt "$1" ]; }
if wait_until 10 moving 1000; then
	maps=$(bpf_ids "$server" map)
	progs=$(bpf_ids "$server" prog)
	for m in xroce_qp xroce_rx xroce_eng_stat; do
		id=$(map_id "$server" $m) && bpftool map dump id "$id" >"$WORK/$m.dump" || bad "no map $m"
	done
	echo "# bpftool map dump id $(map_id "$server" xroce_qp)        (xroce_qp: the one queue pair of A; free elements left out)"
	awk -v RS='[}],[{]' '/"qpn": [1-9]/' "$WORK/xroce_qp.dump"
	echo "# bpftool map dump id $(map_id "$server" xroce_rx)        (xroce_rx: what XDP did; summed over the CPUs, zeros left out)"
	nonzero <"$WORK/xroce_rx.dump" | sed 's/^/    /'
	echo "# bpftool map dump id $(map_id "$server" xroce_eng_stat)        (xroce_eng_stat: what the transport did; zeros left out)"
	nonzero <"$WORK/xroce_eng_stat.dump" | sed 's/^/    /'
	before=$(field redirected <"$WORK/xroce_rx.dump")
	if wait_until 10 moving $((before + 1000)); then
		after=$(counter "$server" xroce_rx redirected)
		echo "A moment later redirected has gone from $before to $after."
		seen+=("XDP on $IF_A redirected $before packets to the library, a moment later $after")
	else
		bad "the counters do not move"
	fi
else
	bad "no packets flow"
	cat "$WORK/server.out" "$WORK/client.out"
	maps='' progs=''
fi

title "Both are killed (-9): what stays?"
kill -9 "$server" "$client"
finish "$server" 5
finish "$client" 5
gone() { for i in $maps; do bpftool map show id "$i" && return 1; done; for i in $progs; do bpftool prog show id "$i" && return 1; done; return 0; }
if wait_until 5 xdp_off $NS_A $IF_A && wait_until 5 xdp_off $NS_B $IF_B && wait_until 5 gone; then
	echo "No XDP program on either interface, none of the $(wc -w <<<"$maps") maps is left."
	seen+=("after kill -9 nothing was attached and no map was left")
else
	bad "something of ours is left"
fi

title "Several processes of one interface, by a user without any privilege"
# a folder that the unprivileged user can read
mkdir -p "$WORK/open/bin" "$WORK/open/lib" && cp "$XROCE" "$WORK/open/bin" &&
	cp "$BUILD"/lib/libibverbs.so.1 "$WORK/open/lib" && chmod a+x "$WORK" || bad "cannot copy the build"
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
as a "$XROCE" serve --background $IF_A || bad "xroce serve does not begin"
echo "A# (as nobody) xroce run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -n 2000"
start server a "${nobody[@]}" "$WORK/open/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -n 2000
server=$child
wait_until 10 listens_or_gone a 18515 "$server"
as a "$XROCE" list $IF_A | grep -E '^ +(broker|client) ' || bad "xroce list shows no broker"
echo "A# (as nobody) xroce run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -n 2000 $IP4_A"
if in_a "${nobody[@]}" timeout 60 "$WORK/open/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong -d $DEV_A -g 0 -n 2000 $IP4_A \
	>"$WORK/client.out" 2>&1 && grep -q 'bytes in' "$WORK/client.out"; then
	seen+=("two processes of user nobody talked to each other through $IF_A")
else
	bad "two processes of nobody do not talk to each other"
fi
cat "$WORK/client.out"
finish "$server" 10 || bad "the server ended with $?"
as a "$XROCE" stop $IF_A || bad "xroce stop failed"
xdp_off $NS_A $IF_A || bad "something of the broker is left"

title "Seen"
for line in "${seen[@]}"; do
	echo "- $line"
done
if [ $failed -ne 0 ]; then
	echo "The demonstration did not work: see above." >&2
	exit 1
fi
