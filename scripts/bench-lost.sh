#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a lost MAD costs: bench-lost.sh BUILD makes and ends one connection (cmtime -c 1) over a
# cable that drops none of its MADs, or one of them, and prints lines of raw.tsv: the phase's
# milliseconds at the client. A part of bench.sh --connecting.
set -u
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
BUILD=$(cd "${1:?usage: bench-lost.sh BUILD}" && pwd) || exit 1
XROCE=$BUILD/bin/xroce
export LC_ALL=C
unset XROCE_DEV LD_LIBRARY_PATH
. "$top/scripts/netns.sh"
netns_chain 4500
failed=0

forwards() { grep -q forwarding "$WORK/cable.out"; }
listens_by_cm() { in_a "$XROCE" list $IF_A | grep -q "^  listens   pid $1 "; }

# lost MASK: cmtime's output in $WORK/client
lost() {
	local server cable
	start cable p "$BUILD/tests/netns/impair" -m "$1" pa pb
	cable=$child
	wait_until 5 forwards && wait_until 10 in_a ping -q -c 1 -W 1 $IP4_B || netns_die "no cable"
	start server a "$XROCE" run --dev $IF_A -- cmtime -b $IP4_A -c 1
	server=$child
	wait_until 20 listens_by_cm "$server"
	in_b timeout 60 "$XROCE" run --dev $IF_B -- cmtime -s $IP4_A -c 1 >"$WORK/client" 2>&1
	stop "$server"
	stop "$cable"
	wait_until 10 xdp_off $NS_A $IF_A
}

# figure NAME PHASE
figure() {
	local ms
	ms=$(sed -nE "s/^$2 *: +([0-9.]+) .*/\1/p" "$WORK/client")
	if [ -n "$ms" ]; then
		printf '%s\t%s\tms\n' "$1" "$ms"
	else
		echo "bench-lost: no $1" >&2
		sed 's/^/    /' "$WORK/client" >&2
		failed=1
	fi
}

lost 0
figure cm_connect_lost_none connect
figure cm_disconnect_lost_none disconnect
lost 1
figure cm_connect_lost_req connect
lost 2
figure cm_connect_lost_rep connect
lost 8
figure cm_disconnect_lost_dreq disconnect
lost 16
figure cm_disconnect_lost_drep disconnect
exit $failed
