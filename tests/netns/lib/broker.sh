# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A broker of A's interface, and asker.c as its clients. Sourced after netns_pair.
ASKER=$WORK/open/asker
mkdir "$WORK/open" && cp "$TOOLS/asker" "$XROCE" "$WORK/open" && chmod a+x "$WORK" "$WORK/open" || exit 1
index_a=$(ip -n $NS_A -o link show $IF_A | cut -d: -f1)
SOCKET=/run/xroce/$(stat -L -c %i /run/netns/$NS_A)-$index_a.sock

nobody() { in_a setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
socket_is_there() { [ -S "$SOCKET" ]; }
# serves, or has ended
settled() { grep -q '^READY' "$WORK/notified.out" || is_gone_or_zombie "$server"; }

# serve [OPTION...]: a broker of A's interface, once it serves; its pid is in $server.
serve() {
	rm -f "$WORK/notify"
	start notified a "$TOOLS/asker" "$WORK/notify" notified
	notified=$child
	wait_until 5 test -S "$WORK/notify"
	start serve a env NOTIFY_SOCKET="$WORK/notify" "$XROCE" serve "$@" $IF_A
	server=$child
	wait_until 10 settled
	is_gone_or_zombie "$server" && { fail "it does not serve"; show serve; }
	return 0
}

# ask NAME COMMAND...: runs it as root to its end, within $bound; output in NAME.out
ask() {
	local name=$1
	shift
	in_a timeout "${bound:-30}" "$ASKER" "$SOCKET" "$@" >"$WORK/$name.out" 2>&1
}
ask_nobody() {
	local name=$1
	shift
	nobody timeout 30 "$ASKER" "$SOCKET" "$@" >"$WORK/$name.out" 2>&1
}
# keep NAME COMMAND...: a client that stays, once it has done that; its pid is in $kept
keep() {
	local name=$1
	shift
	start "$name" a "$ASKER" "$SOCKET" "$@" hold
	kept=$child
	wait_until 10 grep -qE '^(hold|.* end$)' "$WORK/$name.out" || fail "$name does not come to its end"
}

taps() { ip -n $NS_A -o link show type tun | grep -c "$1"; }
taps_are() { [ "$(taps "$1")" = "$2" ]; }
nothing_left() { xdp_off $NS_A $IF_A && taps_are xrt 0 && ! socket_is_there; }
# Programs that clients got, by their output.
programs() { sed -n 's/^hello 0 .* prog \([0-9]*\) .*/\1/p' "$WORK/$1.out"; }
program_is_gone() { ! bpftool prog show id "$1"; }

end_server() {
	in_a "$XROCE" stop $IF_A >"$WORK/stop.out" 2>&1 || { fail "stop ends with $?"; show stop; }
	nothing_left || fail "something is left when stop returns"
	finish "$server" 5 || fail "it ends with $?"
	finish "$notified" 5 || fail "it did not say that it stops"
	need_line notified '^STOPPING=1$'
}
# elements BROKER MAP: how many entries it has.
elements() { bpftool map dump id "$(map_id "$1" "$2" | sort -n | head -1)" | grep -c '"key":'; }
